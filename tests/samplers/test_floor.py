"""The floor holds at its confidence level, and lies close to the truth."""

import numpy as np
import pytest
import scipy.stats

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import ExactPriors
from bmpaudit.privacy import prior_floor
from bmpaudit.samplers import Bernoulli, PriorFloor, RandomWalk, Snowball, Uniform, prior_probabilities
from bmpaudit.samplers.priors import clopper_pearson, floor_bound, pilot_size
from bmpaudit.util.values import Floats


@pytest.fixture(scope="module")
def cora() -> Graph:
    return datasets.load("cora")


def true_floor(prob: Floats) -> PriorFloor:
    pair = prior_floor(prob / (1 - prob))
    return PriorFloor(pair.left, pair.right)


def test_exact_priors_have_an_exact_floor(cora: Graph) -> None:
    floor = prior_probabilities(cora, Uniform(0.25)).floor
    assert floor.level is None
    assert floor.level is None
    assert floor.left == pytest.approx(np.log(3))
    assert floor.right == pytest.approx(-np.log(3))


LAWS = {
    "all nodes equal": np.full(300, 0.25),
    "one node apart": np.concatenate([np.full(299, 0.3), [0.02]]),
    "many rare nodes": np.concatenate([np.full(60, 0.004), np.linspace(0.05, 0.9, 240)]),
    "nearly certain nodes": np.concatenate([np.full(20, 0.999), np.linspace(0.1, 0.95, 280)]),
    "all different": np.linspace(0.01, 0.99, 300),
}


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("law", LAWS)
def test_both_bounds_hold_together_at_their_level(law: str, level: float) -> None:
    """Independent nodes, where the extreme of the frequencies is most biased; 500 repetitions."""
    prob, rng = LAWS[law], np.random.default_rng(8)
    truth = true_floor(prob)
    num_draws = 800
    num_pilot = pilot_size(num_draws)
    misses = 0
    for _ in range(500):
        pilot, rest = rng.binomial(num_pilot, prob), rng.binomial(num_draws - num_pilot, prob)
        floor = floor_bound(pilot + rest, pilot, num_draws, level)
        assert floor.level == level
        misses += floor.left > truth.left or floor.right > truth.right
    assert misses <= scipy.stats.binom.isf(1e-5, 500, 1 - level)


@pytest.mark.parametrize("sampler", [Uniform(0.25), Bernoulli(0.1), RandomWalk(0.25)], ids=str)
def test_bounds_from_draws_hold_where_the_truth_is_known(sampler: ExactPriors, cora: Graph) -> None:
    truth = true_floor(sampler.exact_priors(cora))
    misses = plain_misses = 0
    for seed in range(60):
        priors = prior_probabilities(cora, sampler, num_draws=1_000, seed=seed, exact=False)
        assert priors.floor.level is not None
        misses += priors.floor.left > truth.left or priors.floor.right > truth.right
        plain_misses += priors.floor_estimate.left > truth.left
    assert misses <= scipy.stats.binom.isf(1e-5, 60, 0.05)
    assert plain_misses == 60, "the plain extreme of the frequencies always lies above the truth"


def test_snowball_floor_is_close_to_the_truth_and_below_it(cora: Graph) -> None:
    """The rarest nodes of Cora under snowball are its pairs, drawn if one of the two is the seed: η = 2/(N - 2)."""
    truth = np.log((cora.num_nodes - 2) / 2)
    for seed in range(2):
        priors = prior_probabilities(cora, Snowball(0.25), seed=seed)
        assert truth - 0.35 < priors.floor.left < truth
        assert priors.floor_estimate.left > truth + 0.1
        assert priors.floor_estimate.right - 0.1 < priors.floor.right < priors.floor_estimate.right


def test_a_higher_level_lowers_the_bound(cora: Graph) -> None:
    priors = prior_probabilities(cora, Snowball(0.25), num_draws=2_000)
    counts = np.rint(priors.prob * priors.num_draws).astype(np.int64)
    floors = [floor_bound(counts, priors.pilot_counts, 2_000, level) for level in (0.5, 0.9, 0.95, 0.999)]
    assert priors.floor == floors[2]
    assert all(np.diff([floor.left for floor in floors]) < 0)
    assert all(np.diff([floor.right for floor in floors]) < 0)


@pytest.mark.parametrize("num_draws", [1, 3, 4, 10])
def test_few_draws_say_little_but_give_a_bound(num_draws: int, cora: Graph) -> None:
    priors = prior_probabilities(cora, Snowball(0.25), num_draws=num_draws)
    assert (priors.prob == 0).any()
    assert priors.floor_estimate.left == np.inf
    assert -np.inf < priors.floor.left < 2


def test_the_pilot_is_a_power_of_two_and_at_most_a_quarter() -> None:
    for num_draws in range(4, 2_000):
        num_pilot = pilot_size(num_draws)
        assert num_draws / 8 < num_pilot <= num_draws / 4
        assert num_pilot & (num_pilot - 1) == 0


def test_clopper_pearson_agrees_with_scipy() -> None:
    for successes, num_trials in ((0, 10), (3, 10), (10, 10), (1, 100_000)):
        expected = scipy.stats.binomtest(successes, num_trials).proportion_ci(0.9, method="exact")
        assert clopper_pearson(successes, num_trials, 0.05) == pytest.approx((expected.low, expected.high))
