import numpy as np
import pytest
import scipy.stats

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.lower_bound import LeakageInterval, node_leakage
from bmpaudit.privacy import implied_epsilon
from bmpaudit.util.errors import InputError

PROBABILITIES = np.array([0.05, 0.5, 0.95])

# (n0, n1, A, B): ordinary, one-sided, extreme, lopsided, blind.
CASES = [
    (0, 0, 0, 0),
    (1, 1, 1, 0),
    (0, 50, 0, 3),
    (750, 250, 50, 100),
    (750, 250, 375, 125),
    (500, 500, 0, 0),
    (500, 500, 500, 500),
    (998, 2, 0, 2),
    (10_000, 2, 5_000, 0),
    (2, 10_000, 1, 9_000),
    (1_000_000, 10, 0, 0),
    (40, 60, 40, 0),
]


def quantiles(*cases: tuple[int, int, int, int], num_threads: int = 2) -> np.ndarray:
    return _native.leakage_quantiles(np.array(cases, dtype=np.float64), PROBABILITIES, num_threads)


def one_node(num_out: int, num_in: int, false_positives: int, false_negatives: int, prior: float = 0.5) -> ErrorCounts:
    return ErrorCounts.from_arrays([num_out], [num_in], [false_positives], [false_negatives], [prior])


def parts(interval: LeakageInterval) -> np.ndarray:
    return np.stack([interval.low, interval.median, interval.high])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("prior_odds", [1.0, 0.2])
def test_quantiles_agree_with_draws_through_implied_epsilon(case: tuple[int, int, int, int], prior_odds: float) -> None:
    num_out, num_in, false_positives, false_negatives = case
    rng = np.random.default_rng(7)
    draws = 100_000
    alpha = rng.beta(false_positives + 1, num_out - false_positives + 1, draws)
    beta = rng.beta(false_negatives + 1, num_in - false_negatives + 1, draws)
    implied = implied_epsilon(alpha, beta, prior_odds)
    leakage = node_leakage(one_node(*case, prior=prior_odds / (1 + prior_odds)))
    for drawn, found in ((implied.right, leakage.right), (implied.left, leakage.left)):
        below = (drawn[:, None] <= parts(found)[:, 0]).sum(axis=0)
        # Each number of draws below a quantile is binomial; 1e-9 leaves room for all comparisons here.
        assert (below >= scipy.stats.binom.ppf(1e-9, draws, PROBABILITIES)).all()
        assert (below <= scipy.stats.binom.isf(1e-9, draws, PROBABILITIES)).all()


@pytest.mark.parametrize("case", CASES)
def test_quantiles_agree_with_a_slow_integral(case: tuple[int, int, int, int]) -> None:
    num_out, num_in, false_positives, false_negatives = case
    alpha = scipy.stats.beta(false_positives + 1, num_out - false_positives + 1)
    detected = scipy.stats.beta(num_in - false_negatives + 1, false_negatives + 1)
    # The midpoint rule over quantiles of 1-β.
    points = detected.ppf((np.arange(200_000) + 0.5) / 200_000)
    for t, p in zip(quantiles(case)[0, 0], PROBABILITIES, strict=True):
        c = np.exp(-t)
        cdf = np.mean(alpha.cdf(1 - c * (1 - points)) - alpha.cdf(c * points))
        assert cdf == pytest.approx(p, abs=2e-7)


def test_without_trials_the_law_is_known() -> None:
    # Pr(e_R - log η ≤ t) is the area of R, 1 - e^{-t}.
    np.testing.assert_allclose(
        quantiles((0, 0, 0, 0)), np.broadcast_to(-np.log1p(-PROBABILITIES), (2, 1, 3)), atol=1e-8
    )


@pytest.mark.parametrize("case", CASES)
def test_flip_and_duality(case: tuple[int, int, int, int]) -> None:
    num_out, num_in, false_positives, false_negatives = case
    flipped = (num_out, num_in, num_out - false_positives, num_in - false_negatives)
    dual = (num_in, num_out, false_negatives, false_positives)
    here = quantiles(case)
    np.testing.assert_allclose(quantiles(flipped), here, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(quantiles(dual)[::-1], here, rtol=1e-6, atol=1e-6)


def test_all_quantiles_are_positive_finite_and_in_order() -> None:
    found = quantiles(*CASES)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert (np.diff(found, axis=2) > 0).all()


def test_threads_and_neighbours_do_not_matter() -> None:
    together = quantiles(*CASES, num_threads=1)
    np.testing.assert_array_equal(quantiles(*CASES, num_threads=5), together)
    for k, case in enumerate(CASES):
        np.testing.assert_array_equal(quantiles(case)[:, 0], together[:, k])


def test_a_constant_decision_looks_strong_and_is_flagged() -> None:
    leakage = node_leakage(one_node(998, 2, 0, 2, prior=0.25))
    assert leakage.excess_right.median[0] == pytest.approx(5.6, abs=0.05)
    assert leakage.right.median[0] == pytest.approx(leakage.excess_right.median[0] - np.log(3))
    assert leakage.is_constant.all()
    assert "constant decision" in str(leakage)


def test_ranking_is_by_the_lower_end() -> None:
    counts = ErrorCounts.from_arrays(
        num_out=[998, 500, 500], num_in=[2, 500, 500], false_positives=[0, 250, 2], false_negatives=[2, 250, 50],
        prior_prob=0.5, node=["blind", "safe", "leaky"],
    )  # fmt: skip
    leakage = node_leakage(counts)
    # The blind attack has the higher median and upper end, and yet comes second.
    assert leakage.right.high[0] > leakage.right.high[2]
    assert leakage.right.median[0] > leakage.right.median[2]
    assert counts.node[leakage.ranked()].tolist() == ["leaky", "blind", "safe"]


@pytest.mark.parametrize(("prior", "right", "left"), [(0.0, -np.inf, np.inf), (1.0, np.inf, -np.inf)])
def test_a_certain_prior_decides_alone(prior: float, right: float, left: float) -> None:
    leakage = node_leakage(one_node(10, 10, 1, 1, prior=prior))
    assert (parts(leakage.right) == right).all()
    assert (parts(leakage.left) == left).all()
    assert np.isfinite(parts(leakage.excess_right)).all()


def test_frame_holds_every_node() -> None:
    counts = ErrorCounts.from_arrays([75, 75], [25, 25], [2, 2], [3, 3], [0.25, 0.5])
    frame = node_leakage(counts, level=0.8).to_frame()
    assert frame["node"].tolist() == [0, 1]
    # The same counts: the same excess, and e_R apart by the difference of the floors.
    assert frame["excess_right_low"][0] == frame["excess_right_low"][1]
    assert frame["right_low"][1] - frame["right_low"][0] == pytest.approx(np.log(3))
    assert not frame["is_constant"].any()


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, np.nan])
def test_a_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="level must be in"):
        node_leakage(one_node(1, 1, 0, 0), level=level)


@pytest.mark.parametrize(("num_out", "num_in"), [(20, 20), (750, 250), (50, 3)])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_at_their_level(num_out: int, num_in: int, level: float) -> None:
    rng = np.random.default_rng(11)
    size = 1_000
    alpha, beta = rng.uniform(size=(2, size))
    prior = rng.uniform(0.05, 0.95, size)
    counts = ErrorCounts.from_arrays(
        num_out, num_in, rng.binomial(num_out, alpha), rng.binomial(num_in, beta), prior_prob=prior
    )
    leakage = node_leakage(counts, level=level)
    truth = implied_epsilon(alpha, beta, counts.prior_odds)
    for true, found in ((truth.right, leakage.right), (truth.left, leakage.left)):
        covered = int(((found.low <= true) & (true <= found.high)).sum())
        below = int((true < found.low).sum())
        assert scipy.stats.binomtest(covered, size, level).pvalue > 1e-5
        assert scipy.stats.binomtest(below, size, (1 - level) / 2).pvalue > 1e-5
