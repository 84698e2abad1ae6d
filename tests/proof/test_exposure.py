from collections.abc import Callable

import numpy as np
import pytest
import scipy.special
import scipy.stats

from bmpaudit.proof import expose_log_odds
from bmpaudit.proof.exposure import PRECISIONS, BothSides, Exposure, NamedNodes, band, exposure_of
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

HIGH = scipy.special.logit(0.995)
AT_99 = PRECISIONS.index(0.99)


def test_counts_by_hand() -> None:
    log_odds = np.array([[HIGH, HIGH, 0.1, -HIGH], [HIGH, -1.0, -HIGH, -HIGH], [0.2, 0.2, 0.2, -HIGH]])
    memberships = np.array([[1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]], dtype=bool)
    result = expose_log_odds(log_odds, memberships)
    members, others = result.members, result.non_members
    k = members.at(0.99)
    assert members.named[k] == pytest.approx(3 / 3)
    assert members.correct.mean[k] == pytest.approx(2 / 3)
    assert members.share_correct[k] == pytest.approx(2 / 3)
    assert members.named[members.at(0.5)] == pytest.approx((3 + 1 + 3) / 3)
    assert others.named[k] == pytest.approx(4 / 3)
    assert others.correct.mean[k] == pytest.approx(3 / 3)
    assert members.total == pytest.approx(6 / 3)
    assert result.member_nodes.num_models.tolist() == [3, 1, 1, 1]
    assert result.member_nodes.num_named.tolist() == [2, 0, 0, 0]
    assert result.non_member_nodes.num_models.tolist() == [0, 2, 2, 2]
    assert result.non_member_nodes.num_named.tolist() == [0, 0, 1, 2]
    # In the tenths of the models to which 0 and 1 do not belong no non-member is above -1.0, or 0.2.
    assert result.member_nodes.num_possible.tolist() == [2, 0, 0, 0]
    assert result.member_nodes.ranked()[0] == 0


def test_who_might_be_named_is_above_all_non_members_of_the_other_models() -> None:
    """Slow reference: ten folds of models, and on the other side members in place of non-members."""
    rng = np.random.default_rng(3)
    memberships = rng.random((30, 12)) < 0.4
    log_odds = np.round(rng.normal(size=memberships.shape) + 3 * memberships - 1, 1)
    fold = np.arange(30) // 3
    result = expose_log_odds(log_odds, memberships)
    for nodes, values, right in (
        (result.member_nodes, log_odds, memberships),
        (result.non_member_nodes, -log_odds, ~memberships),
    ):
        possible = np.zeros(12, dtype=int)
        for model, node in zip(*np.nonzero(right), strict=True):
            others = values[fold != fold[model]][~right[fold != fold[model]]]
            is_named = values[model, node] >= np.float32(scipy.special.logit(0.99))
            possible[node] += is_named or values[model, node] > others.max()
        assert nodes.num_possible.tolist() == possible.tolist()
        assert (nodes.num_possible >= nodes.num_named).all()
        assert (nodes.num_possible > nodes.num_named).any()


def test_limits_of_nodes_are_clopper_pearson_and_the_upper_one_may_be_farther() -> None:
    rng = np.random.default_rng(0)
    memberships = rng.random((40, 30)) < 0.5
    result = expose_log_odds(np.where(rng.random((40, 30)) < 0.3, HIGH, 0.0), memberships, nodes=np.arange(100, 130))
    nodes = result.member_nodes
    assert nodes.node[0] == 100
    for named, number, low, high in zip(nodes.num_named, nodes.num_models, nodes.low, nodes.high, strict=True):
        interval = scipy.stats.binomtest(int(named), int(number)).proportion_ci(0.95, method="exact")
        share = named / number
        distance = scipy.stats.norm.isf(0.025) * np.sqrt(3 * share * (1 - share) / number)
        assert low == pytest.approx(interval.low)
        assert high == pytest.approx(min(max(interval.high, share + distance), 1))


def test_of_a_node_in_three_samples_anything_may_be_true() -> None:
    memberships = np.zeros((40, 3), dtype=bool)
    memberships[:3, 0], memberships[:4, 1], memberships[20:, 2] = True, True, True
    nodes = expose_log_odds(np.zeros((40, 3)), memberships).member_nodes
    assert nodes.high[:2] == pytest.approx([1.0, scipy.stats.binomtest(0, 4).proportion_ci(0.95, "exact").high])


def test_a_node_without_models_has_no_share_and_comes_last() -> None:
    memberships = np.array([[True, False], [True, False]])
    nodes = expose_log_odds(np.full((2, 2), HIGH), memberships).member_nodes
    assert np.isnan(nodes.share[1])
    assert (nodes.low[1], nodes.high[1]) == (0.0, 1.0)
    assert nodes.ranked().tolist() == [0, 1]


def named_rightly(named: Floats, num_nodes: int, log_odds: float = HIGH, half: Floats | None = None) -> Exposure:
    """So many members are named in each model, by equal log-odds, and a node that is never one: others cannot be."""
    before = named if half is None else half
    values, values_half = (
        np.where(np.arange(num_nodes + 1) < number[:, None], log_odds, -HIGH) for number in (named, before)
    )
    values[:, -1] = values_half[:, -1] = log_odds
    memberships = np.tile(np.arange(num_nodes + 1) < num_nodes, (len(named), 1))
    return expose_log_odds(values, memberships, log_odds_half=None if half is None else values_half)


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
        curve = named_rightly(named, nodes).members
        k = curve.at(0.99)
        held += bool(curve.correct.low[k] <= mean <= curve.correct.high[k])
    # Limits may fall a little short of their level for skewed laws; 0.93 is what is promised from 64 models on.
    assert held >= scipy.stats.binom.ppf(1e-4, repeats, 0.93)


def test_too_few_models_say_so() -> None:
    rng = np.random.default_rng(2)

    def audit(models: int) -> str:
        return named_rightly(with_failures(rng, models), 400).statement()

    assert audit(8).startswith("from one released model an adversary can name ")
    assert audit(8).endswith(
        "of its 400 training nodes with 99 % certainty; more shadow models would say it more precisely"
    )
    assert audit(200).startswith("from one released model an adversary can name about 1")
    assert "of its 400 training nodes, and 99." in audit(200)


def test_an_attack_that_still_gains_from_models_says_so() -> None:
    number = np.full(64, 30.0)
    curve = named_rightly(number, 100, half=np.full(64, 20.0)).members
    k = curve.at(0.99)
    assert (curve.correct.low[k], curve.correct.high[k]) == pytest.approx((30, 30 + 10 / (2**0.5 - 1)))
    assert not curve.is_settled[k]
    assert named_rightly(number, 100, half=number).members.is_settled[k]


def both_sides(named: Floats, possible: Floats | None = None, effects: Floats | None = None) -> BothSides:
    """As if so many nodes of each model were named rightly at every precision; effects differ by direction."""
    counts, might = (
        np.tile(each[:, None], len(PRECISIONS)) for each in (named, named if possible is None else possible)
    )
    effect = np.tile((0 * named if effects is None else effects)[:, None], len(PRECISIONS))
    nodes = np.zeros(400, dtype=np.int64)
    side = NamedNodes(counts, counts, might, effect, -2 * effect, nodes, nodes, nodes, nodes)
    return BothSides(side, side)


def plain_limits(values: Floats) -> tuple[float, float]:
    """Student's, right where there is no skewness."""
    spread = scipy.stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - spread), float(values.mean() + spread)


def test_limits_are_the_furthest_of_those_that_there_are() -> None:
    turns = np.tile([-1.0, -1.0, 1.0, 1.0], 16)
    named, effects = 20 + 2 * turns, np.tile([-1.0, 1.0, -1.0, 1.0], 16)

    def made(possible: Floats | None, half: Floats | None) -> tuple[float, float]:
        before = None if half is None else [np.tile(half[:, None], len(PRECISIONS))] * 2
        curve = exposure_of(both_sides(named, possible, effects), before, np.arange(400), 100, 0, 0.95).members
        return float(curve.correct.low[AT_99]), float(curve.correct.high[AT_99])

    low = plain_limits(named - 2 * effects)[0]
    assert made(None, None) == pytest.approx((low, plain_limits(named + effects)[1]))
    might = named + 5 + turns
    assert made(might, None) == pytest.approx((low, plain_limits(might + effects)[1]))
    moved = named - effects / 2
    missing = (moved - (named - 12)) / (2**0.5 - 1)
    assert made(might, named - 12) == pytest.approx((low, plain_limits(moved + missing)[1]))
    assert made(might, named + 50) == pytest.approx((low, plain_limits(might + effects)[1]))
    assert made(named + 500, None) == pytest.approx((low, 100))  # of so many members


def test_what_the_sampling_alone_tells_is_said() -> None:
    prior = np.where(np.arange(400) < 3, 0.995, 0.25)
    result = exposure_of(both_sides(np.full(64, 40.0)), None, np.arange(400), 103, 297, 0.95, prior)
    assert result.members.by_prior[[AT_99, 0]] == pytest.approx([3 * 0.995] * 2)
    assert result.members.by_prior[-1] == 0
    assert result.non_members.by_prior[[0, 1, 2]] == pytest.approx([397 * 0.75, 397 * 0.75, 0])
    assert result.statement().endswith(" (the sampling alone tells 2.98)")


@pytest.mark.parametrize(("num_models", "spread", "settled"), [(64, 2.0, True), (64, 40.0, False), (31, 2.0, False)])
def test_what_is_settled(num_models: int, spread: float, settled: bool) -> None:
    named = 50 + spread * np.where(np.arange(num_models) % 2, 1.0, -1.0)
    sides = both_sides(named, None if settled or num_models < 32 else named + 60)
    assert exposure_of(sides, None, np.arange(400), 200, 0, 0.95).members.is_settled[AT_99] == settled


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
            half = [np.tile(before[:, None], len(PRECISIONS))] * 2
            interval = exposure_of(both_sides(named), half, np.arange(400), 400, 0, 0.95).members.correct
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
    nodes = expose_log_odds(log_odds, memberships).member_nodes
    assert nodes.ranked().tolist() == [3, 2, 1, 0]
    assert nodes.share_correct[0] == 0
    assert nodes.num_wrong[1] == (~memberships[:, 1]).sum()


def test_that_nobody_is_named_is_not_settled_while_less_certain_names_still_come() -> None:
    likely = float(scipy.special.logit(0.96))
    curve = named_rightly(np.full(64, 40.0), 100, likely, half=np.full(64, 10.0)).members
    assert not curve.is_settled[AT_99]
    assert curve.correct.high[AT_99] < 0.5
    assert named_rightly(np.full(64, 40.0), 100, likely, half=np.full(64, 40.0)).members.is_settled[AT_99]


def test_nobody_named() -> None:
    """That it did not happen in 64 models leaves up to -log(0.05)/64 a model."""
    memberships = np.random.default_rng(0).random((64, 5)) < 0.5
    assert expose_log_odds(np.zeros((64, 5)), memberships).statement() == (
        "at most 0.0468 training nodes per released model can be named with 99 % certainty, by this attack"
    )


def test_results_are_a_table() -> None:
    memberships = np.random.default_rng(0).random((64, 5)) < 0.5
    result = expose_log_odds(np.where(memberships, HIGH, -1.0), memberships)
    assert result.members.num_models == 64
    assert result.members.precision.tolist() == [0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999]
    assert np.isnan(result.members.share_correct[-1])
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
        expose_log_odds(**arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"precision must be one of 0\.5"):
        expose_log_odds(np.zeros((4, 2)), np.ones((4, 2), dtype=bool)).members.at(0.2)
