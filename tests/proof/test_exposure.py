from collections.abc import Callable

import numpy as np
import pytest
import scipy.special
import scipy.stats

from bmpaudit.proof import exposure
from bmpaudit.proof.exposure import PRECISIONS, BothSides, NamedNodes, band, exposure_of
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

HIGH = scipy.special.logit(0.995)
AT_99 = PRECISIONS.index(0.99)


def test_counts_by_hand() -> None:
    log_odds = np.array([[HIGH, HIGH, 0.1, -HIGH], [HIGH, -1.0, -HIGH, -HIGH], [0.2, 0.2, 0.2, -HIGH]])
    memberships = np.array([[1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]], dtype=bool)
    result = exposure(log_odds, memberships)
    members, others = result.members, result.non_members
    k = members.at(0.99)
    assert members.named.mean[k] == pytest.approx(3 / 3)
    assert members.correct.mean[k] == pytest.approx(2 / 3)
    assert members.share_correct.mean[k] == pytest.approx(2 / 3)
    assert members.named.mean[members.at(0.5)] == pytest.approx((3 + 1 + 3) / 3)
    assert others.named.mean[k] == pytest.approx(4 / 3)
    assert others.correct.mean[k] == pytest.approx(3 / 3)
    assert members.total == pytest.approx(6 / 3)
    assert result.member_nodes.num_models.tolist() == [3, 1, 1, 1]
    assert result.member_nodes.num_named.tolist() == [2, 0, 0, 0]
    assert result.non_member_nodes.num_models.tolist() == [0, 2, 2, 2]
    assert result.non_member_nodes.num_named.tolist() == [0, 0, 1, 2]
    assert result.member_nodes.ranked()[0] == 0


def test_limits_of_nodes_are_clopper_pearson() -> None:
    rng = np.random.default_rng(0)
    memberships = rng.random((40, 30)) < 0.5
    result = exposure(np.where(rng.random((40, 30)) < 0.3, HIGH, 0.0), memberships, nodes=np.arange(100, 130))
    nodes = result.member_nodes
    assert nodes.node[0] == 100
    for named, number, low, high in zip(nodes.num_named, nodes.num_models, nodes.low, nodes.high, strict=True):
        interval = scipy.stats.binomtest(int(named), int(number)).proportion_ci(0.95, method="exact")
        assert (low, high) == pytest.approx((interval.low, interval.high))


def test_a_node_without_models_has_no_share_and_comes_last() -> None:
    memberships = np.array([[True, False], [True, False]])
    nodes = exposure(np.full((2, 2), HIGH), memberships).member_nodes
    assert np.isnan(nodes.share[1])
    assert (nodes.low[1], nodes.high[1]) == (0.0, 1.0)
    assert nodes.ranked().tolist() == [0, 1]


def poisson(rng: np.random.Generator, size: int) -> Floats:
    return rng.poisson(20, size).astype(float)


def with_failures(rng: np.random.Generator, size: int) -> Floats:
    """Six models in a hundred name next to nobody, as with snowball samples that end early."""
    return np.where(rng.random(size) < 0.94, rng.normal(150, 20, size).round(), 2.0)


def over_dispersed(rng: np.random.Generator, size: int) -> Floats:
    return rng.negative_binomial(2, 2 / 52, size).clip(0, 399).astype(float)


@pytest.mark.parametrize(("law", "mean"), [(poisson, 20), (with_failures, 141.12), (over_dispersed, 49.995)])
def test_bands_over_models_hold(law: Callable[[np.random.Generator, int], Floats], mean: float) -> None:
    """Named nodes of one model depend on each other completely: only the number of models counts."""
    rng, repeats, models, nodes = np.random.default_rng(1), 300, 96, 400
    held = 0
    for _ in range(repeats):
        named = law(rng, models)
        log_odds = np.where(np.arange(nodes) < named[:, None], HIGH, -HIGH)
        curve = exposure(log_odds, np.ones((models, nodes), dtype=bool)).members
        k = curve.at(0.99)
        held += bool(curve.named.low[k] <= mean <= curve.named.high[k])
    # Limits may fall a little short of their level for skewed laws; 0.93 is what is promised from 64 models on.
    assert held >= scipy.stats.binom.ppf(1e-4, repeats, 0.93)


def test_too_few_models_say_how_many_would_do() -> None:
    rng = np.random.default_rng(2)

    def audit(models: int) -> str:
        named = with_failures(rng, models)
        log_odds = np.where(np.arange(400) < named[:, None], HIGH, -HIGH)
        return exposure(log_odds, np.ones((models, 400), dtype=bool)).statement()

    assert "8 models are too few to say" in audit(8)
    assert audit(8).endswith("would do")
    assert audit(200).startswith("from one released model an adversary can name about 1")
    assert "of its 400 training nodes, and 100 % of the names are right" in audit(200)


def test_an_attack_that_still_gains_from_models_says_so() -> None:
    memberships = np.ones((64, 100), dtype=bool)
    log_odds, half = (np.tile(np.where(np.arange(100) < number, HIGH, 0.0), (64, 1)) for number in (30, 20))
    curve = exposure(log_odds, memberships, log_odds_half=half).members
    k = curve.at(0.99)
    assert curve.still_to_come[k] == pytest.approx(10 / (2**0.5 - 1))
    assert (curve.named.low[k], curve.named.high[k]) == (30, 30)
    assert (curve.interval.low[k], curve.interval.high[k]) == pytest.approx((30, 30 + 10 / (2**0.5 - 1)))
    assert not curve.is_settled[k]
    # ±12 around 42 have to become ±10.5, at n^-0.7.
    assert curve.models_needed[k] == pytest.approx(64 * (12.07 / 10.52) ** (1 / 0.7), rel=0.01)
    assert exposure(log_odds, memberships, log_odds_half=log_odds).members.is_settled[k]


def both_sides(named: Floats) -> BothSides:
    """As if so many nodes of each model were named at every precision."""
    counts, nodes = np.tile(named[:, None], len(PRECISIONS)), np.zeros(400, dtype=np.int64)
    side = NamedNodes(counts, counts, 0 * counts, 0 * counts, nodes, nodes, nodes)
    return BothSides(side, side)


@pytest.mark.parametrize("rate", [0.5, 0.7, 1.0])
def test_intervals_hold_what_any_number_of_models_would_name(rate: float) -> None:
    """With numbers that grow as e - b n^-r the interval at n holds e, and so intervals at all n overlap."""
    rng, repeats, limit = np.random.default_rng(3), 200, 150
    held = dict.fromkeys((64, 256, 1000), 0)
    overlaps = 0
    for _ in range(repeats):
        lows, highs = [], []
        for number in held:
            missing = 80 * (64 / number) ** rate
            # A model that names many names many with half of the models, too.
            size = rng.normal(1, 0.15, number) * np.where(rng.random(number) < 0.94, 1, 0.05)
            named, before = (size * (limit - much) / 0.943 for much in (missing, missing * 2**rate))
            interval = exposure_of(both_sides(named), both_sides(before), np.arange(400), 400, 0, 0.95).members.interval
            lows.append(interval.low[AT_99])
            highs.append(interval.high[AT_99])
            held[number] += bool(lows[-1] <= limit <= highs[-1])
        overlaps += max(lows) <= min(highs)
    for hits in (*held.values(), overlaps):
        assert hits >= scipy.stats.binom.ppf(1e-4, repeats, 0.93)


def test_limits_undo_skewness() -> None:
    """Of log-normal numbers Student's t misses far more often above than below; both sides must be about equal."""
    rng, mean = np.random.default_rng(4), np.exp(0.5)
    values = np.exp(rng.normal(size=(256, 2000)))
    limits = band(values, 0.95)
    above, below = (limits.high < mean).mean(), (limits.low > mean).mean()
    assert above < 0.05
    assert below < 0.05
    plain_t = values.mean(axis=0) + 1.969 * values.std(axis=0, ddof=1) / 16
    assert (plain_t < mean).mean() > above


def test_a_node_that_is_always_wrong_never_ranks_high() -> None:
    memberships = np.random.default_rng(0).random((40, 4)) < 0.5
    log_odds = np.where(memberships, HIGH, -HIGH)
    log_odds[:, 0] *= -1  # wrong every time
    log_odds[:, 1] = HIGH  # named whether it is in or not
    log_odds[::4, 2] = 0.0
    nodes = exposure(log_odds, memberships).member_nodes
    assert nodes.ranked().tolist() == [3, 2, 1, 0]
    assert nodes.share_correct[0] == 0
    assert nodes.num_wrong[1] == (~memberships[:, 1]).sum()


def test_that_nobody_is_named_is_not_settled_while_less_certain_names_still_come() -> None:
    likely = scipy.special.logit(0.96)
    log_odds, half = (np.tile(np.where(np.arange(100) < number, likely, 0.0), (64, 1)) for number in (40, 10))
    result = exposure(log_odds, np.ones((64, 100), dtype=bool), log_odds_half=half)
    assert "64 models are too few to say how many can be named with 99 % certainty" in result.statement()


def test_nobody_named() -> None:
    memberships = np.random.default_rng(0).random((64, 5)) < 0.5
    assert exposure(np.zeros((64, 5)), memberships).statement() == "no training node can be named with 99 % certainty"


def test_results_are_a_table() -> None:
    memberships = np.random.default_rng(0).random((64, 5)) < 0.5
    result = exposure(np.where(memberships, HIGH, -1.0), memberships)
    assert result.members.num_models == 64
    assert result.members.precision.tolist() == [0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999]
    assert np.isnan(result.members.share_correct.mean[-1])
    assert len({len(line) for line in str(result).splitlines()[2:]}) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_odds": np.zeros((3, 2))}, r"must have one shape \(num_models, num_nodes\), got \(3, 2\) and \(4, 2\)"),
        ({"log_odds": np.full((4, 2), np.nan)}, "log-odds must not be NaN"),
        ({"log_odds": np.zeros((1, 2)), "memberships": np.ones((1, 2))}, "there must be at least 2 models"),
        ({"level": 2.0}, "level must be in"),
        (
            {"log_odds_half": np.zeros((4, 3))},
            r"log_odds_half must be numbers of shape \(4, 2\) as log-odds, got \(4, 3\)",
        ),
    ],
)
def test_bad_input(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"log_odds": np.zeros((4, 2)), "memberships": np.ones((4, 2), dtype=bool), **changes}
    with pytest.raises(InputError, match=message):
        exposure(**arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"precision must be one of 0\.5"):
        exposure(np.zeros((4, 2)), np.ones((4, 2), dtype=bool)).members.at(0.2)
