"""Attack, proof, exposure and estimation on workers give the bytes that one process gives."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from cluster_fixture import dask_processes
from killing_parts import Killing, KillingRight, Refusing

from bmpaudit import datasets
from bmpaudit.attack import Evidence, Gaussian, Student
from bmpaudit.attack import evidence as neighbours
from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.stages import (
    Attacks,
    Estimates,
    attack_files,
    posterior_files,
    proof_files,
    run_attacks,
    run_estimates,
    run_permutation_test,
    run_proofs,
)
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.io.codec import to_arrays
from bmpaudit.models import GCN, Training
from bmpaudit.plan import AuditPlan
from bmpaudit.proof import expose, prove
from bmpaudit.releases import Clean
from bmpaudit.samplers import Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowStore, train_shadows
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError
from bmpaudit.workers import executor_at


def small_plan(*definitions: Any) -> AuditPlan:
    return AuditPlan(
        sampler=Uniform(0.25),
        model=GCN(hidden=4),
        training=Training(epochs=20),
        shadows=40,
        releases=(Clean(),),
        release_as="scores",
        definitions=definitions,
    )


PLAN = small_plan("bmp-r", "bmp", "mp")
HERE = Runtime(quiet=True, num_threads=2)
CROSS_FITTED = Killing("", os.getpid())


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


@pytest.fixture(scope="module")
def folder(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    train_shadows(graph, PLAN.shadow_plan, PLAN.shadows, folder)
    return folder


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "MAX_BLOCK", PLAN.shadows * 300)


def evidence(folder: Path, graph: Graph, attack: Attack) -> Evidence:
    runs = ShadowStore(folder, graph, PLAN.shadow_plan, read_only=True).read()
    return Evidence.of_runs(runs, "clean", ["full", "none"] if attack.fuses_queries else ["none"], graph)


def found_out(attack: Attack, folder: Path, graph: Graph, executor: Executor | None) -> dict[str, bytes]:
    """Every array of what is exposed and what is proven."""
    models, prior = evidence(folder, graph, attack), prior_probabilities(graph, PLAN.sampler).prob
    counts: list[int] = []
    options: dict[str, Any] = {"num_threads": 2, "executor": executor, "progress": counts.append}
    exposed = expose(attack, models, prior, **options)
    assert counts == sorted(counts)
    assert counts[-1] == 2 * graph.num_nodes
    counts.clear()
    one_guess = prove([attack], models, prior, **options)
    assert counts == sorted(counts)
    assert graph.num_nodes / 2 < counts[-1] <= graph.num_nodes
    arrays = {**to_arrays(exposed, "exposed"), **to_arrays(one_guess, "proven")}
    return {name: np.asarray(values).tobytes() for name, values in arrays.items()}


@pytest.mark.parametrize("most_in_memory", [matrices.MOST_IN_MEMORY, 1_000])
@pytest.mark.parametrize("attack", [Student(), Gaussian(), CROSS_FITTED], ids=["student", "gaussian", "cross-fitted"])
def test_proof_and_exposure_in_blocks_of_nodes(
    attack: Attack,
    most_in_memory: int,
    folder: Path,
    graph: Graph,
    processes: Executor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", most_in_memory)
    if attack is CROSS_FITTED:
        attack = Killing(str(folder), 0)  # which is there: nobody is killed
    assert found_out(attack, folder, graph, processes) == found_out(attack, folder, graph, None)
    assert list(folder.rglob(".*partial*")) == []


@pytest.mark.parametrize("most_in_memory", [matrices.MOST_IN_MEMORY, 1_000])
def test_means_over_neighbours_are_worked_out_once_for_all_workers(
    most_in_memory: int, folder: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who gets a job has the means that were there when it was sent, in memory or from a file beside the models."""
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", most_in_memory)
    models = evidence(folder, graph, Student())
    means = {query: np.asarray(models.neighbour_means(query, 1)) for query in models.queries}
    models.share_neighbour_means()
    assert len(list(folder.rglob(".*partial*"))) == (0 if most_in_memory > 1_000 else 2)
    content = cloudpickle.dumps(
        [models.take(slice(20)).without_targets(), models.take(slice(20, 40)).without_targets()]
    )
    monkeypatch.delattr(neighbours, "neighbour_means")
    for query, expected in means.items():
        for part, rows in zip(pickle.loads(content), (slice(20), slice(20, 40)), strict=True):
            np.testing.assert_array_equal(part.neighbour_means(query, 1)[:, :], expected[rows])
    del models
    gc.collect()
    assert list(folder.rglob(".*partial*")) == []


@dataclass(frozen=True)
class Watched(Runtime):
    """Notes the progress of the last step."""

    counts: list[int] = field(default_factory=list)

    def progress(self, what: str, total: int) -> AbstractContextManager[Progress]:
        self.counts.clear()

        @contextmanager
        def noted() -> Iterator[Progress]:
            yield self.counts.append
            assert self.counts == sorted(self.counts), what
            assert self.counts[-1] == total, what

        return noted()


def attacked(folder: Path, graph: Graph, runtime: Runtime, plan: AuditPlan = PLAN) -> tuple[Attacks, dict[str, Any]]:
    runs = ShadowStore(folder, graph, PLAN.shadow_plan, read_only=True).read()
    priors = prior_probabilities(graph, plan.sampler)
    attacks = run_attacks(plan, graph, runs, priors, run_permutation_test(plan, graph, runs, runtime), runtime)
    findings = run_proofs(plan, graph, runs, priors, attacks, runtime)
    return attacks, {**attack_files(attacks), **proof_files(plan, findings)}


def contents(estimates: Estimates, files: dict[str, Any], folder: Path) -> dict[str, bytes]:
    """What the files of the steps hold, and what of the estimates is in none of them."""
    written = {}
    for name, write in {**files, **posterior_files(estimates)}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
        written[name] = path.read_bytes()
    written["half"] = repr(sorted(estimates.half_medians.items())).encode()
    for place, influence in estimates.influences.items():
        for name, values in to_arrays(influence, " ".join(place)).items():
            written[name] = np.asarray(values).tobytes()
    return written


@pytest.fixture(scope="module")
def alone(folder: Path, graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> tuple[Attacks, dict[str, bytes]]:
    attacks, files = attacked(folder, graph, HERE)
    return attacks, contents(run_estimates(PLAN, attacks, HERE), files, tmp_path_factory.mktemp("alone"))


@pytest.mark.parametrize("kind", ["processes", "local"])
def test_all_steps(
    kind: str,
    folder: Path,
    graph: Graph,
    alone: tuple[Attacks, dict[str, bytes]],
    processes: Executor,
    tmp_path: Path,
) -> None:
    with executor_at("local:2") if kind == "local" else contextmanager(lambda: iter([processes]))() as executor:
        runtime = Watched(num_threads=2, executor=executor)
        attacks, files = attacked(folder, graph, runtime)
        estimates = run_estimates(PLAN, attacks, runtime)
    assert len(runtime.counts) == 3 + 2 + 2  # posteriors of the main variant, of the other, and of half of the models
    assert contents(estimates, files, tmp_path) == alone[1]
    assert {row.likelihood.num_threads for part in estimates.posteriors.values() for row in part.values()} == {2}


@pytest.mark.parametrize("num_threads", [1, 3])
def test_posteriors_do_not_depend_on_the_number_of_threads(
    num_threads: int, alone: tuple[Attacks, dict[str, bytes]], tmp_path: Path
) -> None:
    estimates = run_estimates(PLAN, alone[0], replace(HERE, num_threads=num_threads))
    found = contents(estimates, {}, tmp_path)
    assert found == {name: alone[1][name] for name in found}


def test_a_posterior_that_cannot_be_computed(alone: tuple[Attacks, dict[str, bytes]], processes: Executor) -> None:
    plan = small_plan("mp", Refusing())
    estimates = run_estimates(plan, alone[0], replace(HERE, executor=processes))
    assert estimates.not_estimated == run_estimates(plan, alone[0], HERE).not_estimated
    name = f"{alone[0].main} could not be estimated: there is no ε for float64"
    assert any(name in reason for reason in estimates.not_estimated)
    assert any("of half of the models" in reason for reason in estimates.not_estimated)
    assert all(list(row) == ["mp"] for row in estimates.posteriors.values())
    plan = small_plan(Refusing())
    with pytest.raises(InputError, match="could not be estimated: there is no ε"):
        run_estimates(plan, alone[0], replace(HERE, executor=processes))


def test_a_worker_that_dies_on_the_way(
    folder: Path, graph: Graph, alone: tuple[Attacks, dict[str, bytes]], tmp_path: Path
) -> None:
    """Others do what it had in work."""
    attack = Killing(str(tmp_path / "block"), os.getpid())
    definition = KillingRight(mark=str(tmp_path / "posterior"), spared=os.getpid())
    plan = small_plan("mp", definition)
    with dask_processes(3) as cluster, executor_at(cluster.address) as executor:
        found = found_out(attack, folder, graph, executor)
        estimates = run_estimates(plan, alone[0], replace(HERE, executor=executor))
        assert (tmp_path / "block").exists()
        assert (tmp_path / "posterior").exists()
        assert sorted(worker.poll() is None for worker in cluster.workers) == [False, False, True]
    assert found == found_out(attack, folder, graph, None)
    expected = contents(run_estimates(plan, alone[0], HERE), {}, tmp_path / "expected")
    assert contents(estimates, {}, tmp_path / "found") == expected
