"""Samplers of the user's own: found by name, slow ones within a time budget, broken ones with a clear error."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bmpaudit import datasets, registry
from bmpaudit.graph.graph import Graph
from bmpaudit.samplers import Uniform, draw_memberships, prior_probabilities
from bmpaudit.samplers.priors import exact_priors
from bmpaudit.util.errors import InputError


@pytest.fixture(scope="module")
def demo() -> Graph:
    return datasets.load("demo")


def hubs_and_luck(graph: Graph, rng: np.random.Generator) -> list[int]:
    return [*np.argsort(graph.degrees)[-3:].tolist(), int(rng.integers(10))]


def test_any_function_is_a_sampler(demo: Graph) -> None:
    memberships = draw_memberships(demo, hubs_and_luck, 40, seed=1)
    assert (memberships.sum(axis=1) == 4).all()
    assert np.array_equal(memberships[5:7], draw_memberships(demo, hubs_and_luck, 2, seed=1, first=5))
    priors = prior_probabilities(demo, hubs_and_luck, num_draws=2_000)
    assert (priors.prob[np.argsort(demo.degrees)[-3:]] == 1).all()
    assert priors.prob[:10] == pytest.approx(np.full(10, 0.1), abs=6 * np.sqrt(0.09 / 2_000))


def test_the_registry_builds_a_function_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo: Graph) -> None:
    (tmp_path / "their_samplers.py").write_text(
        "def last_ten(graph, rng):\n    return range(graph.num_nodes - 10, graph.num_nodes)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "their_samplers", raising=False)
    sampler = registry.build(registry.SAMPLER, "their_samplers:last_ten")
    assert registry.name_of(registry.SAMPLER, sampler) == "their_samplers:last_ten"
    assert prior_probabilities(demo, sampler, num_draws=5).prob.sum() == 10


class FakeClock:
    """A clock that a sampler moves forward."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def slow_sampler(clock: FakeClock, seconds: float) -> Callable[[Graph, np.random.Generator], npt.ArrayLike]:
    def sample(graph: Graph, rng: np.random.Generator) -> npt.ArrayLike:
        clock.now += seconds
        return rng.choice(graph.num_nodes, 250, replace=False)

    return sample


def test_a_time_budget_ends_the_draws_and_the_result_can_be_repeated(demo: Graph) -> None:
    clock, reports = FakeClock(), list[int]()
    sampler = slow_sampler(clock, 0.01)
    priors = prior_probabilities(demo, sampler, seed=3, seconds=10, clock=clock, progress=reports.append)
    assert priors.num_draws == 1_000
    assert reports == list(range(1, 1_001))
    assert priors.standard_error == pytest.approx(np.full(demo.num_nodes, np.sqrt(0.25 * 0.75 / 1_000)), rel=0.2)
    again = prior_probabilities(demo, sampler, seed=3, num_draws=priors.num_draws)
    for name in ("prob", "standard_error", "pilot_counts"):
        assert np.array_equal(getattr(priors, name), getattr(again, name))
    assert priors.floor == again.floor


def test_a_time_budget_draws_a_few_hundred_samples_at_least(demo: Graph) -> None:
    clock = FakeClock()
    sampler = slow_sampler(clock, 60)
    assert prior_probabilities(demo, sampler, seconds=0.001, clock=clock).num_draws == 400
    assert prior_probabilities(demo, sampler, seconds=0.001, clock=clock, num_draws=50).num_draws == 50


def test_a_time_budget_does_not_exceed_the_number_of_draws(demo: Graph) -> None:
    clock = FakeClock()
    assert (
        prior_probabilities(demo, slow_sampler(clock, 0.001), seconds=10, clock=clock, num_draws=700).num_draws == 700
    )


def test_built_in_samplers_draw_all_samples_whatever_the_time(demo: Graph) -> None:
    priors = prior_probabilities(demo, Uniform(0.25), exact=False, num_draws=5_000, seconds=1e-9)
    assert priors.num_draws == 5_000


def test_python_and_native_samplers_split_their_draws_alike(demo: Graph) -> None:
    """A Python sampler that draws what a native one does gets the same priors, pilot and floor."""

    def python_uniform(graph: Graph, rng: np.random.Generator) -> npt.ArrayLike:
        return Uniform(0.25).sample(graph, rng)

    native = prior_probabilities(demo, Uniform(0.25), exact=False, num_draws=500)
    python = prior_probabilities(demo, python_uniform, num_draws=500)
    assert np.array_equal(native.prob, python.prob)
    assert np.array_equal(native.pilot_counts, python.pilot_counts)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_the_time_budget_must_be_positive(seconds: float, demo: Graph) -> None:
    with pytest.raises(InputError, match=f"seconds must be greater than 0, got seconds={seconds}"):
        prior_probabilities(demo, hubs_and_luck, seconds=seconds)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([0, 0, 1], "must return distinct node ids, got 1 repeated"),
        ([-1], r"must return node ids in \[0, 1000\), got -1"),
        ([1000], r"must return node ids in \[0, 1000\), got 1000"),
        ([0.5], r"must return a list of node ids, got float64 of shape \(1,\)"),
        ([[1, 2]], r"must return a list of node ids, got int64 of shape \(1, 2\)"),
        (None, "must return a list of node ids, got NoneType"),
        ({1, 2}, "must return a list of node ids, got set"),
        (np.ones(1000, dtype=bool), r"must return .*, got bool of shape .*; for a mask, return np.flatnonzero\(mask\)"),
        ([[1], [2, 3]], "failed: ValueError: .*inhomogeneous"),
    ],
)
def test_an_impossible_sample_raises_and_names_the_sampler(returned: Any, message: str, demo: Graph) -> None:
    def broken(_graph: Graph, _rng: np.random.Generator) -> Any:
        return returned

    for call in (draw_memberships, lambda *arguments, **_: prior_probabilities(*arguments[:2])):
        with pytest.raises(InputError, match=f"sampler .*:.*broken {message}") as error:
            call(demo, broken, 1, seed=0)
        assert "\n" not in str(error.value)


def test_a_sampler_that_raises_is_named_in_one_line(demo: Graph) -> None:
    @dataclass(frozen=True)
    class Fragile:
        def sample(self, _graph: Graph, _rng: np.random.Generator) -> Any:
            raise KeyError("first line\nsecond line")

    with pytest.raises(InputError, match=r"^sampler .*Fragile failed: KeyError: .*first line.*second line'$"):
        draw_memberships(demo, Fragile(), 1, seed=0)


def test_randomness_must_come_from_the_generator(demo: Graph) -> None:
    hidden = np.random.default_rng(0)

    def forgetful(graph: Graph, _rng: np.random.Generator) -> Any:
        return hidden.choice(graph.num_nodes, 5, replace=False)

    with pytest.raises(InputError, match="forgetful must take all its randomness from rng, got two different samples"):
        prior_probabilities(demo, forgetful)


def test_a_class_in_place_of_an_object_raises(demo: Graph) -> None:
    with pytest.raises(InputError, match=r"sampler uniform is a class, not an object: use Uniform\(\)"):
        prior_probabilities(demo, Uniform)  # type: ignore[arg-type]


def test_what_cannot_sample_raises(demo: Graph) -> None:
    with pytest.raises(InputError, match=r"must have a method sample\(graph, rng\) or be a function .*, got 3"):
        prior_probabilities(demo, 3)  # type: ignore[arg-type]


def test_code_that_is_not_trusted_is_not_run(demo: Graph) -> None:
    part = registry.build(registry.SAMPLER, "payload:run", trust_code=False)
    with pytest.raises(InputError, match="'payload:run' is code that a file names"):
        prior_probabilities(demo, part)


@pytest.mark.parametrize(
    ("prob", "message"),
    [
        ([0.5], r"exact_priors of sampler .*Formula must have shape \(1000,\), one for each node, got \(1,\)"),
        (np.full(1000, 1.5), r"exact_priors of sampler .*Formula must be in \[0, 1\], got 1.5 for node 0"),
        (np.full(1000, np.nan), r"exact_priors of sampler .*Formula must be in \[0, 1\], got nan for node 0"),
        ("high", "exact_priors of sampler .*Formula failed: ValueError"),
    ],
)
def test_a_broken_formula_raises(prob: Any, message: str, demo: Graph) -> None:
    @dataclass(frozen=True)
    class Formula:
        def sample(self, _graph: Graph, _rng: np.random.Generator) -> Any:
            return [0]

        def exact_priors(self, _graph: Graph) -> Any:
            return prob

    with pytest.raises(InputError, match=message):
        prior_probabilities(demo, Formula())


def test_a_broken_formula_names_the_node() -> None:
    graph = Graph.from_edges([(0, 1)], np.ones((2, 1)), [0, 1], node_names=["Ann", "Bob"])

    class Formula(Uniform):
        def exact_priors(self, graph: Graph) -> Any:  # noqa: ARG002
            return [0.5, -0.1]

    with pytest.raises(InputError, match=r"got -0\.1 for node 'Bob'"):
        exact_priors(Formula(), graph)


def test_a_sample_may_be_empty(demo: Graph) -> None:
    assert not draw_memberships(demo, lambda _graph, _rng: [], 3, seed=0).any()
