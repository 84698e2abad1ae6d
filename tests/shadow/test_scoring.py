"""Releases, queries and statistics of one's own, on both engines."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import fill, random_graph
from own_parts import ConstantEngine, NoisyOutputs, Rounded, SomeEdges, first_class

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Engine
from bmpaudit.models import GCN, Training
from bmpaudit.releases import Clean, FullEdges, LabelOnly, NoEdges, NoisyLastLayer, OutputRelease, label_margin
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ModelState, ShadowPlan, train_shadows
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.shadow.engines.torch import TorchEngine
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import Purpose, stream

PLAN = ShadowPlan(Uniform(0.5), GCN(dropout=0.0), Training(epochs=5), seed=3)
ENGINES = [("native", NativeEngine), ("torch", TorchEngine)]


@pytest.fixture(params=ENGINES, ids=lambda engine: engine[0])
def engine(request: pytest.FixtureRequest) -> tuple[str, Callable[[Graph, ShadowPlan], Engine]]:
    chosen: tuple[str, Callable[[Graph, ShadowPlan], Engine]] = request.param
    return chosen


def filled(engine: Any, plan: ShadowPlan, indices: list[int], **options: Any) -> Any:
    graph = random_graph()
    named = replace(plan, engine=engine[0])
    return fill(engine[1](graph, named), graph, named, indices, **options)


def test_a_release_changes_what_is_given_out_and_nothing_else(engine: Any) -> None:
    clean = filled(engine, PLAN, [0, 4], keep_logits=True)
    plan = replace(PLAN, releases=(Clean(), Rounded(1), NoisyLastLayer()))
    batch = filled(engine, plan, [0, 4], keep_logits=True)
    names = [view.name for view in plan.views]
    for number, view in enumerate(PLAN.views):
        here = names.index(view.name)
        assert batch.statistics[here].tobytes() == clean.statistics[number].tobytes()
        assert batch.logits[here].tobytes() == clean.logits[number].tobytes()
    labels = random_graph().labels
    for query in ("full", "none"):
        rounded = batch.logits[names.index(f"{query}_clean")].round(1)
        assert np.array_equal(batch.logits[names.index(f"{query}_rounded-1")], rounded)
        assert np.array_equal(batch.statistics[names.index(f"{query}_rounded-1")], label_margin(rounded, labels))
    assert np.array_equal(batch.train_accuracy, clean.train_accuracy)


def test_a_statistic_takes_the_place_of_the_margin(engine: Any) -> None:
    batch = filled(engine, replace(PLAN, statistic=first_class), [2], keep_logits=True)
    assert np.array_equal(batch.statistics, batch.logits[..., 0])
    assert (batch.state == ModelState.TRAINED).all()


def test_random_releases_draw_anew_for_each_query_and_depend_on_the_model_alone(engine: Any) -> None:
    plan = replace(PLAN, releases=(NoisyOutputs(), Clean()))
    batch = filled(engine, plan, [0, 7], keep_logits=True)
    alone = filled(engine, plan, [7], keep_logits=True)
    assert alone.statistics[:, 0].tobytes() == batch.statistics[:, 1].tobytes()
    noise = {
        query: batch.logits[2 * number, 1].astype(np.float64) - batch.logits[2 * number + 1, 1]
        for number, query in enumerate(("full", "none"))
    }
    rng = stream(PLAN.seed, 7, Purpose.RELEASE)
    for query in ("full", "none"):
        assert noise[query] == pytest.approx(rng.normal(size=noise[query].shape), abs=1e-5)
    fewer = filled(engine, replace(plan, queries=(FullEdges(),)), [7])
    assert fewer.statistics[0, 0].tobytes() == batch.statistics[0, 1].tobytes()


def test_models_are_the_same_on_any_threads_when_releases_are_applied_in_python() -> None:
    plan = replace(PLAN, releases=(NoisyOutputs(), NoisyLastLayer()))
    one = filled(ENGINES[0], plan, list(range(40)), num_threads=1)
    many = filled(ENGINES[0], plan, list(range(40)), num_threads=3)
    assert one.statistics.tobytes() == many.statistics.tobytes()
    backwards = filled(ENGINES[0], plan, [39, 3])
    assert backwards.statistics.tobytes() == one.statistics[:, [39, 3]].tobytes()


def test_noise_levels_do_not_add_up(engine: Any) -> None:
    plan = replace(PLAN, releases=(NoisyLastLayer(0.5), NoisyLastLayer(0.1), Clean()))
    batch = filled(engine, plan, [1])
    for number, release in enumerate(plan.releases):
        alone = filled(engine, replace(plan, releases=(release,)), [1])
        assert alone.statistics[0].tobytes() == batch.statistics[number].tobytes()
        assert alone.statistics[1].tobytes() == batch.statistics[3 + number].tobytes()


def test_noise_of_several_levels_is_one_draw_at_several_scales() -> None:
    plan = replace(PLAN, releases=(Clean(), NoisyLastLayer(0.125), NoisyLastLayer(0.5)))
    batch = filled(ENGINES[0], plan, [1], keep_logits=True)
    clean, little, much = (batch.logits[number, 0].astype(np.float64) for number in range(3))
    assert much - clean == pytest.approx(4 * (little - clean), abs=1e-4)
    assert np.abs(little - clean).max() > 0.01


def test_a_query_shows_its_own_edges(engine: Any) -> None:
    graph = random_graph()
    plan = replace(PLAN, releases=(Clean(), NoisyLastLayer()), queries=(FullEdges(), SomeEdges(20), NoEdges()))
    batch = filled(engine, plan, [0], keep_logits=True)
    full, some, none = batch.logits[::2, 0]
    assert not np.array_equal(some, full)
    shown = SomeEdges(20).graph(graph)
    assert 0 < shown.num_edges < graph.num_edges
    alone = shown.degrees == 0
    assert np.allclose(some[alone], none[alone], atol=1e-6)
    assert not np.allclose(some[~alone], none[~alone], atol=1e-6)
    without = filled(engine, replace(plan, queries=(FullEdges(), NoEdges())), [0], keep_logits=True)
    assert without.statistics.tobytes() == batch.statistics[[0, 1, 4, 5]].tobytes()
    assert np.array_equal(without.train_accuracy, batch.train_accuracy)


def test_both_engines_agree_on_queries_and_noise_levels() -> None:
    plan = replace(
        PLAN, releases=(NoisyLastLayer(0.5), Rounded(1), NoisyLastLayer(0.1)), queries=(SomeEdges(20), NoEdges())
    )
    native, other = (filled(engine, plan, [0, 3], keep_logits=True) for engine in ENGINES)
    for number, view in enumerate(plan.views):
        apart = 0.11 if view.release_name == "rounded-1" else 1e-3  # a digit that rounds the other way
        assert native.logits[number] == pytest.approx(other.logits[number], abs=apart)


def test_accuracy_is_asked_with_full_edges_whatever_the_queries(engine: Any) -> None:
    full = filled(engine, PLAN, [0, 1])
    none = filled(engine, replace(PLAN, queries=(NoEdges(),)), [0, 1])
    assert np.array_equal(full.train_accuracy, none.train_accuracy)
    assert np.array_equal(full.held_out_accuracy, none.held_out_accuracy)


@pytest.mark.parametrize("releases", [(Clean(), NoisyLastLayer(2.0)), (Clean(), NoisyLastLayer(2.0), LabelOnly())])
def test_each_view_has_the_accuracy_of_what_it_gives_out(engine: Any, releases: tuple[Any, ...]) -> None:
    """By logits that are kept, whichever of its two ways the native engine takes."""
    plan = replace(PLAN, releases=releases)
    batch = filled(engine, plan, [0, 1, 2], keep_logits=True)
    labels = random_graph().labels
    for number in range(len(plan.views)):
        for row, member in enumerate(batch.memberships):
            right = batch.logits[number, row].argmax(axis=1) == labels
            assert batch.view_train_accuracy[number, row] == pytest.approx(right[member].mean(), abs=1e-6)
            assert batch.view_held_out_accuracy[number, row] == pytest.approx(right[~member].mean(), abs=1e-6)
    names = [view.name for view in plan.views]
    assert batch.view_train_accuracy[names.index("full_clean")].tobytes() == batch.train_accuracy.tobytes()
    assert batch.view_held_out_accuracy[0].tobytes() == batch.held_out_accuracy.tobytes()
    noisy = batch.view_train_accuracy[names.index("full_noisy-2.0")]
    assert noisy.mean() < batch.train_accuracy.mean()


@dataclass(frozen=True)
class Fewer(OutputRelease):
    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        return logits[:-1]


@dataclass(frozen=True)
class Nothing(OutputRelease):
    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        logits[:] = np.nan
        return logits


@dataclass(frozen=True)
class Half:
    def graph(self, graph: Graph) -> Graph:
        return random_graph(num_nodes=graph.num_nodes // 2)


def one_number(outputs: np.ndarray, labels: np.ndarray) -> Any:  # noqa: ARG001
    return outputs.mean()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"releases": (Fewer(),)},
            r"release fewer must give outputs of shape \(60, 3\) \(nodes, classes\), got \(59, 3\)",
        ),
        ({"statistic": one_number}, r"one number for each of 60 nodes, got shape \(\)"),
        ({"queries": (Half(),)}, r"query Half\(\) must show a graph with the same nodes: 60, got 30"),
    ],
)
def test_parts_that_give_the_wrong_shape_are_refused(change: dict[str, Any], message: str, engine: Any) -> None:
    with pytest.raises(InputError, match=message):
        filled(engine, replace(PLAN, **change), [0])


def test_a_release_that_gives_no_numbers_fails_the_model_and_not_the_run(engine: Any) -> None:
    batch = filled(engine, replace(PLAN, releases=(Clean(), Nothing())), [0, 1], keep_logits=True)
    assert batch.state.tolist() == [ModelState.FAILED] * 2
    assert np.isnan(batch.statistics).all()
    assert np.isnan(batch.logits).all()
    assert np.isnan(batch.train_accuracy).all()


def test_a_stop_keeps_what_is_finished_when_releases_are_applied_in_python() -> None:
    graph = datasets.load("demo")
    plan = replace(PLAN, releases=(Rounded(1),), training=Training(epochs=200))

    def stop_soon(done: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    batch = ShadowBatch.empty(graph, plan, np.arange(600), draw_memberships(graph, plan.sampler, 600, plan.seed))
    with pytest.raises(KeyboardInterrupt):
        NativeEngine(graph, plan).fill(batch, 2, stop_soon)
    finished = np.flatnonzero(batch.is_done)
    assert 3 <= len(finished) < 600
    assert np.isfinite(batch.statistics[:, finished]).all()
    assert np.isnan(batch.statistics[:, ~batch.is_done]).all()


def test_an_engine_of_ones_own_is_found_by_name(tmp_path: Path) -> None:
    graph = random_graph()
    plan = replace(PLAN, engine="own_parts:ConstantEngine")
    runs = train_shadows(graph, plan, 3, tmp_path)
    assert runs.statistics["full_noisy"].tolist() == [[float(j)] * 60 for j in range(3)]
    assert ConstantEngine.__name__ in plan.describe(graph)["engine"]
    with pytest.raises(InputError, match="own_parts:Nobody: AttributeError"):
        train_shadows(graph, replace(PLAN, engine="own_parts:Nobody"), 3, tmp_path / "other")
