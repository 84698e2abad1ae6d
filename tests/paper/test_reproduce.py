"""The run as a whole, on the demo graph with few models: stopped, gone on with, and never computed twice."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit.attack import DecisionSettings, Evidence, node_mia
from bmpaudit.errors import DataError, InputError
from bmpaudit.estimation import estimate
from bmpaudit.paper import CONFIGURATIONS as PAPERS_CONFIGURATIONS
from bmpaudit.paper import counts as counts_module
from bmpaudit.paper import experiments, measures, output, records, reproduce, study, workflow
from bmpaudit.paper.counts import AttackCounts
from bmpaudit.paper.experiments import BEYOND, MEASURES, VARIANTS, Configuration
from bmpaudit.paper.results import ResultsFile
from bmpaudit.shadow import train_shadows

CONFIGURATIONS = tuple(Configuration("demo", 0.25, sampling, "gcn") for sampling in ("random", "snowball"))
NUM_MODELS = 12


@contextmanager
def unwatched(_what: str, _total: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


class Calls:
    """Counts what is trained and estimated, and can stop it all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trained: Counter[str] = Counter()
        self.measured = 0
        self.stop_after = 10**9
        train = train_shadows

        def counting_train(*args: Any, **kwargs: Any) -> Any:
            self._tick()
            self.trained[str(args[3])] += 1
            return train(*args, **kwargs)

        def stub_cell(counts: Any, measure: str) -> dict[str, Any]:
            self._tick()
            self.measured += 1
            errors = float(counts.false_positives.sum() + counts.false_negatives.sum())
            return {"p5": errors, "p50": errors + 1, "p95": errors + 2, "measure": measure, "seconds": 0.5}

        monkeypatch.setattr(reproduce, "train_shadows", counting_train)
        monkeypatch.setattr(measures, "measure_cell", stub_cell)

    def _tick(self) -> None:
        self.stop_after -= 1
        if self.stop_after < 0:
            raise KeyboardInterrupt


def runs(out: Path) -> list[reproduce.Run]:
    return [reproduce.Run(of, seed, NUM_MODELS, out) for seed in range(2) for of in CONFIGURATIONS]


def everything(out: Path, **options: Any) -> None:
    reproduce.train_and_attack(runs(out), unwatched, num_threads=1, **options)
    for counting in ("paper", "ours"):
        reproduce.compute_all(reproduce.cell_tasks(runs(out), counting), unwatched)


def contents(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for run in runs(out):
        counts = AttackCounts.load(run.counts_path)
        found[f"{run.folder.name} errors"] = {name: np.stack(made).tolist() for name, made in counts.errors.items()}
        found[f"{run.folder.name} results"] = json.loads((run.folder / "results.json").read_text())
    return found


def test_stopped_anywhere_and_gone_on_with_is_the_same_and_computes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    everything(tmp_path / "whole")
    whole, num_posteriors = contents(tmp_path / "whole"), 4 * 16 * 2
    assert (sum(calls.trained.values()), calls.measured) == (4, num_posteriors)

    calls.trained.clear()
    calls.measured, stops = 0, 0
    for stop_after in (1, 2, 5, 17, 40):
        calls.stop_after = stop_after
        with pytest.raises(KeyboardInterrupt):
            everything(tmp_path / "stopped")
        stops += 1
    calls.stop_after = 10**9
    everything(tmp_path / "stopped")
    assert stops == 5
    assert set(calls.trained.values()) == {1}
    assert (len(calls.trained), calls.measured) == (4, num_posteriors)
    assert contents(tmp_path / "stopped") == whole

    everything(tmp_path / "stopped")
    assert (sum(calls.trained.values()), calls.measured) == (4, num_posteriors)


def test_shadow_models_are_removed_unless_kept_and_resuming_does_not_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    everything(tmp_path, keep_shadows=True)
    assert all(run.shadows.exists() for run in runs(tmp_path))
    everything(tmp_path)  # what a stop before their removal leaves is removed
    assert not any(run.shadows.exists() for run in runs(tmp_path))
    assert sum(calls.trained.values()) == 4


def test_counts_are_those_of_the_attack_both_ways(tmp_path: Path) -> None:
    run = reproduce.Run(CONFIGURATIONS[1], 0, NUM_MODELS, tmp_path)
    reproduce.train_and_attack([run], unwatched, num_threads=1, keep_shadows=True)
    graph = reproduce.load_graph("demo")
    shadows = train_shadows(graph, run.configuration.plan(0), NUM_MODELS, run.shadows)
    prior = reproduce.exact_priors("demo", run.configuration.sampler)
    counts = AttackCounts.load(run.counts_path)
    for variant in VARIANTS:
        models = Evidence.of_runs(shadows, variant.output, [variant.edges])
        kept = DecisionSettings(unfittable="non-member")
        expected = {
            "paper": node_mia(models, "shadow-frequency", rule=variant.decision, settings=kept),
            "ours": node_mia(models, prior, rule=variant.decision),
        }
        for counting in ("paper", "ours"):
            found = counts.error_counts(variant, counting)
            for name in ("node", "num_out", "num_in", "false_positives", "false_negatives", "prior_prob"):
                assert np.array_equal(getattr(found, name), getattr(expected[counting], name))
            assert found.not_auditable == expected[counting].not_auditable
    assert counts.error_counts(VARIANTS[0], "paper").num_nodes == graph.num_nodes
    assert counts.error_counts(VARIANTS[0], "ours").num_nodes < graph.num_nodes


def test_the_order_in_which_decisions_are_presented_cannot_swap_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = reproduce.Run(CONFIGURATIONS[1], 0, NUM_MODELS, tmp_path)
    reproduce.train_and_attack([run], unwatched, num_threads=1)
    expected = {variant: AttackCounts.load(run.counts_path).error_counts(variant, "ours") for variant in VARIANTS}
    for module in (experiments, counts_module):
        if hasattr(module, "DECISIONS"):
            monkeypatch.setattr(module, "DECISIONS", tuple(reversed(experiments.DECISIONS)))
    for variant, counts in expected.items():
        again = AttackCounts.load(run.counts_path).error_counts(variant, "ours")
        assert np.array_equal(again.false_positives, counts.false_positives)
        assert np.array_equal(again.false_negatives, counts.false_negatives)


def test_measures_of_a_cell_are_those_of_the_estimator(tmp_path: Path) -> None:
    run = reproduce.Run(CONFIGURATIONS[1], 0, NUM_MODELS, tmp_path)
    reproduce.train_and_attack([run], unwatched, num_threads=1)
    for counting in ("paper", "ours"):
        counts = AttackCounts.load(run.counts_path).error_counts(VARIANTS[0], counting)
        for measure in MEASURES:
            found, posterior = measures.measure_cell(counts, measure), estimate(counts, measure)
            assert [found[name] for name in ("p5", "p50", "p95")] == posterior.quantile([0.05, 0.5, 0.95]).tolist()
            assert found["mean"] == posterior.mean()
            if measure == "bmp-r":
                assert found["floor"] == posterior.floor.right
            assert found["num_not_auditable"] == len(counts.not_auditable)
            trials = counts.num_out.sum() + counts.num_in.sum()
            errors = counts.false_positives.sum() + counts.false_negatives.sum()
            assert found["accuracy"] == pytest.approx(1 - errors / trials)
    deciding = measures.measure_deciding_nodes(counts, "bmp-r")
    assert deciding["node"] in counts.node
    nodes = measures.measure_nodes(counts, keep_nodes=True)
    assert len(nodes["nodes"]["prior"]) == nodes["all_num"] == counts.num_nodes
    assert nodes["unflagged_num"] == counts.num_nodes - counts.is_constant.sum()


def test_results_of_another_plan_and_damaged_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Calls(monkeypatch)
    run, other = (reproduce.Run(of, 0, NUM_MODELS, tmp_path) for of in CONFIGURATIONS)
    reproduce.train_and_attack([run], unwatched, num_threads=1)
    other.folder.mkdir(parents=True)
    other.counts_path.write_bytes(run.counts_path.read_bytes())
    with pytest.raises(InputError, match=r"holds results of another plan \(sampler differ\); use a new folder"):
        reproduce.train_and_attack([other], unwatched)
    other.counts_path.write_bytes(b"nonsense")
    reproduce.load_counts.cache_clear()
    with pytest.raises(DataError, match=r"counts\.npz: damaged"):
        reproduce.train_and_attack([other], unwatched)
    (run.folder / "results.json").write_text("{")
    with pytest.raises(DataError, match=r"results\.json: damaged"):
        _ = run.results


def test_a_second_process_is_kept_off(tmp_path: Path) -> None:
    with reproduce.run_folder_lock(tmp_path):
        import filelock

        with pytest.raises(filelock.Timeout):
            filelock.FileLock(tmp_path / ".lock", is_singleton=False).acquire(timeout=0)
    with reproduce.run_folder_lock(tmp_path):
        pass


def test_results_are_stored_one_by_one(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "results.json")
    results.put("a", {"x": 1.5})
    assert dict(ResultsFile(tmp_path / "results.json")) == {"a": {"x": 1.5}}
    results.put("b", {"x": 2.5})
    assert sorted(ResultsFile(tmp_path / "results.json")) == ["a", "b"]


def test_everything_writes_tables_figures_and_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's names on the demo graph, so that every part of the page has something to show."""
    graph = reproduce.load_graph("demo")
    monkeypatch.setattr(reproduce, "load_graph", lambda _: graph)
    monkeypatch.setattr(workflow, "NUM_MODELS", 8 * 10)
    monkeypatch.setattr(workflow, "STUDY_MODELS", 8 * 10)
    monkeypatch.setattr(reproduce, "exact_priors", lambda *_: np.full(graph.num_nodes, 0.25))
    monkeypatch.setattr(output, "BEYOND", BEYOND[:1])
    monkeypatch.setattr(study, "STUDY_FRACTIONS", (0.2, 0.8))

    def stub_cell(counts: Any, measure: str) -> dict[str, Any]:
        errors = float(counts.false_positives.sum()) / 1000
        told = {"p5": errors, "p50": errors + 1, "p95": errors + 2, "mean": errors + 1, "floor": -1.0, "seconds": 0.5}
        told |= {"accuracy": 0.5, "balanced_accuracy": 0.5, "num_nodes": counts.num_nodes}
        return told | {"num_not_auditable": len(counts.not_auditable), "num_constant": len(measure)}

    def stub_joint(counts: Any, seed: int) -> dict[str, Any]:
        quantiles = {f"epsilon_{side}_{name}": 3.0 for side in ("left", "right") for name in ("p5", "p50", "p95")}
        draws = np.random.default_rng(seed).normal(3 + counts.num_nodes / 1000, 0.1, (2, 50))
        return {
            **quantiles,
            "left_exceeds_right": 0.5,
            "left": draws[0].tolist(),
            "right": draws[1].tolist(),
            "seconds": 1,
        }

    def stub_mhaar(_counts: Any, _measure: str, _seed: int, _iterations: int) -> dict[str, Any]:
        return {"p5": 1.0, "p50": 2.0, "p95": 3.0, "r_hat": 1.5, "bulk_ess": 5.0} | {
            "acceptance_rate": 0.2,
            "seconds": 9.0,
        }

    monkeypatch.setattr(measures, "measure_cell", stub_cell)
    monkeypatch.setattr(measures, "measure_joint", stub_joint)
    monkeypatch.setattr(measures, "measure_by_mhaar", stub_mhaar)
    monkeypatch.setattr(measures, "measure_deciding_nodes", lambda *_: _deciding())
    names = ("cora-25-snowball-gcn", "cora-50-random-gcn", "cora-50-snowball-gcn", "citeseer-25-random-gcn")
    chosen = [of for of in PAPERS_CONFIGURATIONS if of.name in names]
    summary = workflow.run_everything(
        tmp_path, chosen, num_seeds=1, watch=unwatched, quick=True, beyond=True, study=True, num_threads=1
    )
    assert summary.num_cells == 64
    assert "cells agree with the published tables" in str(summary)
    folder = tmp_path / "reproduction"
    for name in (
        "cells",
        "verdicts",
        "findings",
        "disagreements",
        "nodes",
        "joint",
        "mhaar",
        "runs",
        "beyond",
        "study",
    ):
        assert (folder / f"{name}.csv").exists(), name
    for name in ("figure-1-regions", "figure-2-marginal-effects", "figure-4-joint", "study-training-fraction"):
        assert (folder / f"{name}.png").stat().st_size < 400_000
    page = summary.page.read_text()
    for heading in ("In brief", "Settings", "The tables", "What does not", "The figures", "Two ways", "Exact against"):
        assert f"\n## {heading}" in page
    for heading in ("The paper's findings", "Beyond the paper", "Study", "Run time"):
        assert f"\n## {heading}" in page
    assert "{{" not in page

    again = workflow.run_everything(tmp_path, chosen, num_seeds=1, watch=unwatched, quick=True, page_only=True)
    assert again.page.read_text() == page
    cells = records.cell_records(reproduce.Run(of, 0, 8, tmp_path) for of in chosen)
    assert len(cells) == 128


def _deciding() -> dict[str, Any]:
    return {
        "node": 3,
        "node_low": 1.0,
        "node_prior": 0.2,
        "node_is_constant": False,
        "node_counts": [6, 2, 1, 1],
        "p50_without_1": 2.0,
        "p50_without_10": 1.0,
    }
