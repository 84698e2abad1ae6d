"""Models trained elsewhere live in a folder like our own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GCN, TrainedElsewhere, Training
from bmpaudit.releases import Clean, FullEdges, NoEdges
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan, ShadowRuns, ShadowStore, import_runs, train_shadows
from bmpaudit.util.errors import InputError

PLAN = ShadowPlan(Uniform(0.25), TrainedElsewhere(), releases=(Clean(),))


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


@pytest.fixture(scope="module")
def runs(graph: Graph) -> ShadowRuns:
    rng = np.random.default_rng(0)
    memberships = draw_memberships(graph, PLAN.sampler, 70, 0)
    views = {name: rng.normal(size=memberships.shape) for name in ("none_clean", "full_clean")}
    return ShadowRuns.from_arrays(memberships, views, graph)


def first(runs: ShadowRuns, count: int) -> ShadowRuns:
    return ShadowRuns.from_arrays(
        runs.memberships[:count], {name: rows[:count] for name, rows in runs.statistics.items()}, np.zeros(1_000)
    )


def same(one: ShadowRuns, two: ShadowRuns) -> bool:
    return np.array_equal(one.memberships, two.memberships) and all(
        one.statistics[name].tobytes() == two.statistics[name].tobytes() for name in one.statistics
    )


def test_outside_models_are_read_back_from_the_folder_alone(graph: Graph, runs: ShadowRuns, tmp_path: Path) -> None:
    stored = import_runs(graph, PLAN, runs, tmp_path)
    assert list(stored.statistics) == ["full_clean", "none_clean"]
    read = ShadowStore(tmp_path, graph, PLAN, read_only=True).read()
    assert same(runs, stored)
    assert same(runs, read)
    assert np.isnan(read.train_accuracy).all()
    assert same(first(runs, 40), ShadowStore(tmp_path, graph, PLAN, read_only=True).read(40))


def test_no_more_of_them_can_be_trained_and_none_is_replaced(graph: Graph, runs: ShadowRuns, tmp_path: Path) -> None:
    import_runs(graph, PLAN, runs, tmp_path)
    with pytest.raises(InputError, match="these models were trained elsewhere; bmpaudit cannot train more of them"):
        train_shadows(graph, PLAN, 100, tmp_path)
    with pytest.raises(InputError, match="holds models that were trained elsewhere; this plan has model gcn"):
        train_shadows(graph, replace(PLAN, model=GCN()), 100, tmp_path)
    assert same(runs, ShadowStore(tmp_path, graph, PLAN, read_only=True).read())


def test_an_import_can_be_repeated_and_extended_but_not_changed(graph: Graph, runs: ShadowRuns, tmp_path: Path) -> None:
    import_runs(graph, PLAN, first(runs, 40), tmp_path)
    assert same(import_runs(graph, PLAN, runs, tmp_path), runs)
    assert same(import_runs(graph, PLAN, runs, tmp_path), runs)
    with pytest.raises(InputError, match="holds 70 models trained elsewhere that are not among these"):
        import_runs(graph, PLAN, first(runs, 40), tmp_path)
    other = replace(runs, statistics={name: rows + 1 for name, rows in runs.statistics.items()})
    with pytest.raises(InputError, match="holds 70 models trained elsewhere that are not among these"):
        import_runs(graph, PLAN, other, tmp_path)
    assert same(runs, ShadowStore(tmp_path, graph, PLAN, read_only=True).read())


def test_an_import_that_was_killed_is_completed(
    graph: Graph, runs: ShadowRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = ShadowStore.write, [1]

    def killed(store: ShadowStore, batch: Any) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        write(store, batch)

    with monkeypatch.context() as patch:
        patch.setattr(ShadowStore, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            import_runs(graph, PLAN, runs, tmp_path)
    assert ShadowStore(tmp_path, graph, PLAN, read_only=True).read().num_models == 32
    assert same(import_runs(graph, PLAN, runs, tmp_path), runs)


def test_a_folder_of_trained_models_takes_no_others(graph: Graph, runs: ShadowRuns, tmp_path: Path) -> None:
    train_shadows(graph, replace(PLAN, model=GCN(), training=Training(epochs=2)), 2, tmp_path)
    with pytest.raises(InputError, match=r"holds shadow models with model gcn .*; this plan has model elsewhere"):
        import_runs(graph, PLAN, runs, tmp_path)


def test_models_that_do_not_fit_are_refused_and_leave_no_folder(graph: Graph, runs: ShadowRuns, tmp_path: Path) -> None:
    nobody = runs.memberships.copy()
    nobody[3] = False
    small = ShadowRuns.from_arrays(np.eye(3), np.zeros((3, 3)), np.zeros(3))
    for plan, imported, message in (
        (replace(PLAN, model=GCN()), runs, r"the model TrainedElsewhere\(\), got GCN"),
        (PLAN, small, "must be of the graph's 1,000 nodes, got 3"),
        (replace(PLAN, queries=(FullEdges(),)), runs, "queries and releases: full_clean, got none_clean, full_clean"),
        (
            replace(PLAN, queries=(NoEdges(),)),
            replace(runs, statistics={}),
            "queries and releases: none_clean, got none",
        ),
        (PLAN, replace(runs, memberships=nobody), "at least one member, got none for model 3"),
    ):
        with pytest.raises(InputError, match=message):
            import_runs(graph, plan, imported, tmp_path / "audit")
    assert not (tmp_path / "audit").exists()


def test_outputs_from_elsewhere_bring_the_accuracy_of_each_view(graph: Graph, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(12, graph.num_nodes, graph.num_classes))
    memberships = rng.random((12, graph.num_nodes)) < 0.5
    margins = rng.normal(size=memberships.shape)
    outside = ShadowRuns.from_arrays(memberships, {"full_clean": logits, "none_clean": margins}, graph)
    stored = import_runs(graph, PLAN, outside, tmp_path).view_accuracy
    right = logits.argmax(axis=2) == graph.labels
    for model in range(12):
        assert stored["full_clean"].train[model] == pytest.approx(right[model, memberships[model]].mean())
        assert stored["full_clean"].held_out[model] == pytest.approx(right[model, ~memberships[model]].mean())
    assert np.isnan(stored["none_clean"].held_out).all()
