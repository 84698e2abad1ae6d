"""Training, attacks and results on the demo graph with few models: stopped, resumed, and never computed twice."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction import experiments
from reproduction import run as cell_results
from reproduction import run as run_module
from reproduction import run as tasks
from reproduction.experiments import COUNTINGS, VARIANTS, Configuration
from reproduction.run import AttackCounts, ResultsFile, Run, known_priors, load_counts, load_graph, train_and_attack

from bmpaudit.attack import DecisionSettings, Evidence, node_mia
from bmpaudit.auditing import Runtime, Workspace
from bmpaudit.auditing.finished import read_runs, stored_subject
from bmpaudit.pipeline import pipeline
from bmpaudit.shadow import ShadowRuns, train_shadows
from bmpaudit.util.errors import DataError, InputError

CONFIGURATIONS = tuple(Configuration("demo", 0.25, sampler, "gcn") for sampler in ("uniform", "snowball"))
NUM_MODELS = 12
QUIET = Runtime(num_threads=1, quiet=True)


class Calls:
    """Counts what is trained and estimated, and can stop everything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trained: Counter[str] = Counter()
        self.num_estimated = 0
        self.stop_after = 10**9

        def counting_train(*args: Any, **kwargs: Any) -> Any:
            self._tick()
            self.trained[str(args[3])] += 1
            return train_shadows(*args, **kwargs)

        def stub_cell(counts: Any, _plan: Any, _runtime: Any, *, definition: str) -> dict[str, Any]:
            self._tick()
            self.num_estimated += 1
            errors = float(counts.false_positives.sum() + counts.false_negatives.sum())
            return {"p5": errors, "p50": errors + 1, "p95": errors + 2, "definition": definition, "seconds": 0.5}

        monkeypatch.setattr(pipeline, "train_shadows", counting_train)
        monkeypatch.setattr(cell_results, "cell_posterior", stub_cell)

    def _tick(self) -> None:
        self.stop_after -= 1
        if self.stop_after < 0:
            raise KeyboardInterrupt


def runs(out: Path) -> list[Run]:
    return [Run(configuration, seed, NUM_MODELS, out) for seed in range(2) for configuration in CONFIGURATIONS]


def everything(out: Path, **options: Any) -> None:
    train_and_attack(runs(out), QUIET, **options)
    for counting in COUNTINGS:
        tasks.compute_all(tasks.cell_tasks(runs(out), counting), QUIET)


def contents(out: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for run in runs(out):
        for counting, challenges in AttackCounts.load(run.counts_path).challenges.items():
            errors = {name: np.stack(made).tolist() for name, made in challenges.errors.items()}
            values[f"{run.folder.name} {counting}"] = errors
        results = json.loads((run.folder / "results.json").read_text())
        times = [result.pop("processor_seconds") for result in results.values()]
        assert min(times) >= 0
        values[f"{run.folder.name} results"] = results
    return values


def shadows_of(run: Run) -> ShadowRuns:
    workspace = Workspace(run.audit_folder)
    subject = stored_subject(workspace)
    return read_runs(workspace, subject.graph, subject.plan)


def test_stopped_anywhere_and_resumed_is_the_same_and_computes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    everything(tmp_path / "whole")
    whole, num_posteriors = contents(tmp_path / "whole"), 4 * 16 * 2
    assert (sum(calls.trained.values()), calls.num_estimated) == (4, num_posteriors)

    calls.trained.clear()
    calls.num_estimated, stops = 0, 0
    for stop_after in (1, 2, 5, 17, 40):
        calls.stop_after = stop_after
        with pytest.raises(KeyboardInterrupt):
            everything(tmp_path / "stopped")
        stops += 1
    calls.stop_after = 10**9
    everything(tmp_path / "stopped")
    assert stops == 5
    assert set(calls.trained.values()) == {1}
    assert (len(calls.trained), calls.num_estimated) == (4, num_posteriors)
    assert contents(tmp_path / "stopped") == whole

    everything(tmp_path / "stopped")
    assert (sum(calls.trained.values()), calls.num_estimated) == (4, num_posteriors)


def test_a_process_killed_before_anything_was_written_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    run = Run(CONFIGURATIONS[0], 0, NUM_MODELS, tmp_path)
    run.audit_folder.mkdir(parents=True)
    for name in (".lock", ".plan.partial-abcdefgh.toml"):
        (run.audit_folder / name).touch()
    train_and_attack([run], QUIET)
    assert run.counts_path.exists()


def test_shadow_models_are_removed_unless_kept_and_resuming_does_not_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    everything(tmp_path, keep_shadows=True)
    for run in runs(tmp_path):
        subject = stored_subject(Workspace(run.audit_folder))  # they are kept as an audit folder
        assert (subject.source, subject.plan) == ("demo", run.plan("ours"))
    everything(tmp_path)  # removes what a stop just before the removal leaves
    assert not any(run.audit_folder.exists() for run in runs(tmp_path))
    assert sum(calls.trained.values()) == 4


def test_counts_are_those_of_the_attack_both_ways(tmp_path: Path) -> None:
    run = Run(CONFIGURATIONS[1], 0, NUM_MODELS, tmp_path)
    train_and_attack([run], QUIET, keep_shadows=True)
    shadows, counts = shadows_of(run), AttackCounts.load(run.counts_path)
    priors = known_priors("demo", run.plan("ours").sampler)
    for variant in VARIANTS:
        models = Evidence.of_runs(shadows, variant.release, variant.queries)
        kept = DecisionSettings(unfittable="non-member")
        expected = {
            "paper": node_mia(models, "shadow-frequency", rule=variant.rule, settings=kept),
            "ours": node_mia(models, priors.prob, rule=variant.rule),
        }
        for counting in COUNTINGS:
            stored = counts.error_counts(variant, counting)
            for name in ("node", "num_out", "num_in", "false_positives", "false_negatives", "prior_prob"):
                assert np.array_equal(getattr(stored, name), getattr(expected[counting], name))
            assert stored.not_auditable == expected[counting].not_auditable
    num_nodes = load_graph("demo").num_nodes
    assert counts.error_counts(VARIANTS[0], "paper").num_nodes == num_nodes
    assert counts.error_counts(VARIANTS[0], "ours").num_nodes < num_nodes


@pytest.mark.parametrize("order", [("weak", "strong"), ("strong", "weak")])
def test_the_order_of_rules_cannot_swap_weak_and_strong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]
) -> None:
    run = Run(CONFIGURATIONS[1], 0, NUM_MODELS, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(experiments, "RULES", order)
        train_and_attack([run], QUIET, keep_shadows=True)
    counts = AttackCounts.load(run.counts_path)
    errors = {}
    for variant in VARIANTS:
        models = Evidence.of_runs(shadows_of(run), variant.release, variant.queries)
        kept = DecisionSettings(unfittable="non-member")
        expected = node_mia(models, "shadow-frequency", rule=variant.rule, settings=kept)
        stored = counts.error_counts(variant, "paper")
        assert np.array_equal(stored.false_positives, expected.false_positives)
        assert np.array_equal(stored.false_negatives, expected.false_negatives)
        errors[variant.rule] = stored.false_positives
    assert not np.array_equal(errors["weak"], errors["strong"])  # so that swapping them would show


def test_results_of_another_plan_or_build_and_damaged_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Calls(monkeypatch)
    run, other = (Run(configuration, 0, NUM_MODELS, tmp_path) for configuration in CONFIGURATIONS)
    train_and_attack([run], QUIET)
    other.folder.mkdir(parents=True)
    shutil.copy(run.counts_path, other.counts_path)
    with pytest.raises(InputError, match=r"holds results of another plan \(other sampler\): use a new folder"):
        train_and_attack([other], QUIET)
    other.counts_path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"counts\.npz: damaged"):
        train_and_attack([other], QUIET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "build_id", lambda: "another")
        with pytest.raises(InputError, match="holds results of another version of bmpaudit: use a new folder"):
            train_and_attack([run], QUIET)
    assert load_counts(run).about["num_models"] == NUM_MODELS  # can still be shown
    run.results_path.write_text("{")
    with pytest.raises(DataError, match=r"results\.json: damaged"):
        _ = run.results


def test_results_of_errors_that_are_made_again_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Calls(monkeypatch)
    run = Run(CONFIGURATIONS[0], 0, NUM_MODELS, tmp_path)
    train_and_attack([run], QUIET)
    run.results.put("stale", {"p50": 1.0})
    run.counts_path.unlink()
    train_and_attack([run], QUIET)
    assert len(run.results) == 0


def test_results_are_stored_one_by_one(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "results.json")
    results.put("a", {"x": 1.5})
    assert dict(ResultsFile(tmp_path / "results.json")) == {"a": {"x": 1.5}}
    results.put("b", {"x": 2.5})
    assert sorted(ResultsFile(tmp_path / "results.json")) == ["a", "b"]
