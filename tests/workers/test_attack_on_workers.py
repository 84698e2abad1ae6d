"""Attacks whose errors are counted by workers, a block of nodes each, give what one machine gives."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.attack import RMIA, Challenges, Evidence, Gaussian, Student, challenge
from bmpaudit.attack import challenges as on_workers
from bmpaudit.attack.rules import Strong, Weak
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Attack
from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, ShadowStore, train_shadows
from bmpaudit.util import matrices
from bmpaudit.util.matrices import LazyMatrix

PLAN = ShadowPlan(Uniform(0.25), GCN(hidden=4), Training(epochs=20))
NUM_MODELS = 40


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


@pytest.fixture(scope="module")
def folder(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    train_shadows(graph, PLAN, NUM_MODELS, folder)
    return folder


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def attacked(
    attack: Attack, folder: Path, graph: Graph, executor: Executor | None, counts: list[int], half: bool = False
) -> Challenges:
    runs = ShadowStore(folder, graph, PLAN, read_only=True).read()
    models = Evidence.of_runs(runs, "clean", ["full", "none"] if attack.fuses_queries else ["none"], graph)
    return challenge(
        attack,
        models.take(slice(20)) if half else models,
        prior_probabilities(graph, PLAN.sampler).prob,
        {"weak": Weak(), "strong": Strong()},
        fitting=models.take(slice(20, 40)) if half else None,
        with_scores=True,
        most_scores=NUM_MODELS * 333,
        executor=executor,
        progress=counts.append,
    )


def assert_same(found: Challenges, expected: Challenges) -> None:
    assert found.not_auditable == expected.not_auditable
    np.testing.assert_array_equal(found.is_counted, expected.is_counted)
    for rule, errors in expected.errors.items():
        np.testing.assert_array_equal(found.errors[rule].false_positives, errors.false_positives)
        np.testing.assert_array_equal(found.errors[rule].false_negatives, errors.false_negatives)
    assert found.scores is not None
    assert expected.scores is not None
    assert found.scores.log_likelihood_ratio.tobytes() == expected.scores.log_likelihood_ratio.tobytes()


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("most_in_memory", [matrices.MOST_IN_MEMORY, 1_000])
@pytest.mark.parametrize("attack", [Student(), Gaussian(), RMIA()], ids=lambda attack: type(attack).__name__)
def test_blocks_of_nodes_are_attacked_by_workers(
    attack: Attack,
    most_in_memory: int,
    half: bool,
    folder: Path,
    graph: Graph,
    processes: Executor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", most_in_memory)
    monkeypatch.setattr(matrices, "MAX_BLOCK", NUM_MODELS * 300)
    counts: list[int] = []
    found = attacked(attack, folder, graph, processes, counts, half)
    assert counts == sorted(counts)
    assert counts[-1] == graph.num_nodes
    assert len(counts) > 3
    assert_same(found, attacked(attack, folder, graph, None, [], half))
    assert list(folder.glob(".*partial*")) == []


def test_a_worker_that_cannot_read_the_models_leaves_the_block_to_others(
    folder: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", 1_000)
    monkeypatch.setattr(matrices, "MAX_BLOCK", NUM_MODELS * 300)
    asked: list[slice] = []

    def blind(_: object, block: slice) -> None:
        asked.append(block)

    monkeypatch.setattr(on_workers, "_run_block", blind)
    with ThreadPoolExecutor(2) as threads:
        found = attacked(Student(), folder, graph, threads, [])
    assert [block.start for block in asked] == [256, 512, 768]  # the first is done here
    assert_same(found, attacked(Student(), folder, graph, None, []))


def test_little_work_stays_here(folder: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody(Executor):
        def submit(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise AssertionError

    runs = ShadowStore(folder, graph, PLAN, read_only=True).read()
    assert not isinstance(runs.memberships, LazyMatrix)
    expected = attacked(Student(), folder, graph, None, [])
    assert_same(attacked(Student(), folder, graph, Nobody(), []), expected)
    most = NUM_MODELS * graph.num_nodes * 4 // 5
    monkeypatch.setattr(matrices, "MAX_BLOCK", most)
    counts: list[int] = []
    assert_same(attacked(Student(), folder, graph, Nobody(), counts), expected)
    assert 512 in counts  # the first of several blocks
    monkeypatch.setattr(matrices, "MAX_BLOCK", most - 1)
    with pytest.raises(AssertionError):
        attacked(Student(), folder, graph, Nobody(), [])
