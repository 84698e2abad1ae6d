import numpy as np
import pytest
import scipy.stats

from bmpaudit import Graph, InputError, datasets
from bmpaudit.samplers import (
    Bernoulli,
    RandomWalk,
    Sampler,
    Snowball,
    Stratified,
    Uniform,
    draw_memberships,
    prior_probabilities,
)
from bmpaudit.samplers.draw import count_memberships
from bmpaudit.streams import Purpose


@pytest.fixture(scope="module")
def cora() -> Graph:
    return datasets.load("cora")


@pytest.mark.parametrize("sampler", [Uniform(0.25), Bernoulli(0.1), Stratified(0.5), RandomWalk(200)], ids=str)
def test_closed_forms_agree_with_the_frequency_of_draws(sampler: Sampler, cora: Graph) -> None:
    exact = prior_probabilities(cora, sampler)
    estimate = prior_probabilities(cora, sampler, exact=False)
    assert exact.is_exact
    assert not exact.standard_error.any()
    assert estimate.num_draws == 100_000
    z = (estimate.prob - exact.prob) / np.sqrt(exact.prob * (1 - exact.prob) / estimate.num_draws)
    assert np.abs(z).max() < scipy.stats.norm.isf(1e-6 / cora.num_nodes)


def test_standard_errors_are_binomial_and_never_zero(cora: Graph) -> None:
    priors = prior_probabilities(cora, Snowball(0.25), num_draws=2_000)
    usual = np.sqrt(priors.prob * (1 - priors.prob) / 2_000)
    common = (priors.prob > 0.1) & (priors.prob < 0.9)
    assert priors.standard_error[common] == pytest.approx(usual[common], rel=0.01)
    assert (priors.standard_error > 0).all()
    assert priors.num_never_drawn == (priors.prob == 0).sum() > 0


def test_the_frequency_over_few_samples_lifts_the_floor(cora: Graph) -> None:
    """The paper's way to take the prior: the largest of N noisy frequencies (true floor: log(1/3) = -1.10)."""
    assert prior_probabilities(cora, Uniform(0.25)).floor.right == pytest.approx(np.log(1 / 3))
    for num_draws, floor in ((1_000, -0.85), (100, -0.37)):
        biased = prior_probabilities(cora, Uniform(0.25), num_draws=num_draws, exact=False).floor.right
        assert biased == pytest.approx(floor, abs=0.1)


def test_floor_is_minus_log_of_the_smallest_and_log_of_the_largest_odds(cora: Graph) -> None:
    priors = prior_probabilities(cora, Snowball(0.25), num_draws=20_000)
    assert priors.floor.left == pytest.approx(-np.log(priors.odds.min()))
    assert priors.floor.right == pytest.approx(np.log(priors.prob.max() / (1 - priors.prob.max())))


def test_a_node_that_is_always_in_has_infinite_odds() -> None:
    graph = Graph.from_edges([(0, 1)], np.ones((3, 1)), [0, 0, 1])
    priors = prior_probabilities(graph, Stratified(0.5))
    assert priors.odds.tolist() == [1.0, 1.0, np.inf]
    assert priors.floor.right == np.inf


def test_prior_draws_are_not_the_training_samples(cora: Graph) -> None:
    training = draw_memberships(cora, Uniform(0.25), 50, seed=0).sum(axis=0)
    assert not np.array_equal(training, count_memberships(cora, Uniform(0.25), 50, 0, Purpose.PRIOR))
    assert np.array_equal(training, count_memberships(cora, Uniform(0.25), 50, 0, Purpose.SAMPLE))


def test_counting_is_the_same_on_any_number_of_threads_and_in_any_parts(
    cora: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    whole = count_memberships(cora, Snowball(0.25), 500, 3, Purpose.PRIOR, num_threads=1)
    monkeypatch.setattr("bmpaudit.samplers.draw._FLAGS_AT_ONCE", 150 * cora.num_nodes)
    parts = count_memberships(cora, Snowball(0.25), 500, 3, Purpose.PRIOR, told.append, num_threads=3)
    assert np.array_equal(whole, parts)
    assert told == [150, 300, 450, 500]


def test_any_function_is_a_sampler() -> None:
    graph = datasets.load("demo")

    def hubs_and_luck(graph: Graph, rng: np.random.Generator) -> list[int]:
        return [*np.argsort(graph.degrees)[-3:].tolist(), int(rng.integers(10))]

    memberships = draw_memberships(graph, hubs_and_luck, 40, seed=1)
    assert (memberships.sum(axis=1) == 4).all()
    assert np.array_equal(memberships[5:7], draw_memberships(graph, hubs_and_luck, 2, seed=1, first=5))
    priors = prior_probabilities(graph, hubs_and_luck, num_draws=2_000)
    assert (priors.prob[np.argsort(graph.degrees)[-3:]] == 1).all()
    assert priors.prob[:10] == pytest.approx(np.full(10, 0.1), abs=6 * np.sqrt(0.09 / 2_000))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([0, 0, 1], "distinct node ids, got 1 repeated"),
        ([-1], r"node ids in \[0, 1000\), got -1"),
        ([1000], r"node ids in \[0, 1000\), got 1000"),
        ([0.5], "must return a list of node ids, got float64"),
        ([[1, 2]], r"must return a list of node ids, got int64 of shape \(1, 2\)"),
    ],
)
def test_what_is_not_a_sample_is_refused(returned: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_memberships(datasets.load("demo"), lambda _graph, _rng: returned, 1, seed=0)  # type: ignore[arg-type,return-value]


def test_a_sample_may_be_empty() -> None:
    assert not draw_memberships(datasets.load("demo"), lambda _graph, _rng: [], 3, seed=0).any()


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_number_of_samples_must_be_positive(count: int) -> None:
    with pytest.raises(InputError, match=f"num_samples must be a whole number of at least 1, got num_samples={count}"):
        draw_memberships(datasets.load("demo"), Uniform(0.5), count, seed=0)
    with pytest.raises(InputError, match=f"num_samples must be a whole number of at least 1, got num_samples={count}"):
        prior_probabilities(datasets.load("demo"), Snowball(0.5), num_draws=count)


def test_first_sample_must_not_be_negative() -> None:
    with pytest.raises(InputError, match="first must be at least 0, got first=-1"):
        draw_memberships(datasets.load("demo"), Uniform(0.5), 1, seed=0, first=-1)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True])
def test_seed_must_be_a_whole_number_in_range(seed: int) -> None:
    with pytest.raises(InputError, match=r"seed must be a whole number in \[0, 2\*\*63\)"):
        draw_memberships(datasets.load("demo"), Uniform(0.5), 1, seed=seed)
