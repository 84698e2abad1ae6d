"""The whole reproduction, under the paper's names but on the demo graph, so that every part of the page is there."""

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction import CONFIGURATIONS, run, workflow
from reproduction import beyond as growth
from reproduction import beyond as study
from reproduction import run as cell_results
from reproduction import workflow as output
from reproduction.experiments import BEYOND
from reproduction.records import cell_records

from bmpaudit.auditing import Runtime
from bmpaudit.samplers import Priors
from bmpaudit.util.errors import InputError
from bmpaudit.util.files import folder_lock

QUIET = Runtime(num_threads=1, quiet=True)


def stub_cell(counts: Any, _plan: Any, _runtime: Any, *, definition: str) -> dict[str, Any]:
    errors = float(counts.false_positives.sum()) / 1000
    cell = {"p5": errors, "p50": errors + 1, "p95": errors + 2, "mean": errors + 1, "floor": -1.0, "seconds": 0.5}
    cell |= {"accuracy": 0.5, "balanced_accuracy": 0.5, "num_nodes": counts.num_nodes}
    return cell | {"num_not_auditable": len(counts.not_auditable), "num_constant": len(definition)}


def stub_joint(counts: Any, plan: Any, _runtime: Any) -> dict[str, Any]:
    quantiles = {f"epsilon_{side}_{name}": 3.0 for side in ("left", "right") for name in ("p5", "p50", "p95")}
    left, right = np.random.default_rng(plan.seed).normal(3 + counts.num_nodes / 1000, 0.1, (2, 50)).tolist()
    return {**quantiles, "left_exceeds_right": 0.5, "left": left, "right": right, "seconds": 1}


def stub_mhaar(*_: Any, **__: Any) -> dict[str, Any]:
    diagnostics = {"r_hat": 1.5, "bulk_ess": 5.0, "acceptance_rate": 0.2}
    return {"p5": 1.0, "p50": 2.0, "p95": 3.0, **diagnostics, "seconds": 9.0}


def stub_deciding(*_: Any, **__: Any) -> dict[str, Any]:
    node = {"node": 3, "node_low": 1.0, "node_prior_prob": 0.2, "node_is_constant": False, "node_counts": [6, 2, 1, 1]}
    return {**node, "p50_without_1": 2.0, "p50_without_10": 1.0}


def stub_proof(shadows: Any, *_: Any) -> dict[str, Any]:
    bound = {"proven": 3.0, "floor": -1.0, "num_guesses": 9, "num_hits": 9, "num_challenged": shadows.num_models}
    precision = [0.5, 0.9, 0.99, 0.999]
    names = ("correct_mean", "correct_low", "correct_high", "named", "by_prior")
    exposure = {"precision": precision, "total": 10.0, **{name: [4.0, 3.0, 2.0, 1.0] for name in names}}
    bounds = dict.fromkeys(("epsilon_right", "epsilon_left", "mp"), bound)
    return {**bounds, "exposure": exposure, "auc": 0.6, "calibration_error": 0.0, "seconds": 1, "processor_seconds": 1}


def test_everything_writes_tables_figures_and_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = run.load_graph("demo")
    monkeypatch.setattr(run, "load_graph", lambda _: graph)
    prior_prob = np.full(graph.num_nodes, 0.25)
    monkeypatch.setattr(run, "known_priors", lambda _, sampler: Priors.from_formula(sampler, prior_prob))
    monkeypatch.setattr(workflow, "NUM_MODELS", 8 * 10)
    monkeypatch.setattr(workflow, "STUDY_MODELS", 8 * 10)
    monkeypatch.setattr(output, "BEYOND", BEYOND[:1])
    monkeypatch.setattr(study, "STUDY_FRACTIONS", (0.2, 0.8))
    monkeypatch.setattr(cell_results, "cell_posterior", stub_cell)
    monkeypatch.setattr(cell_results, "joint_posterior", stub_joint)
    monkeypatch.setattr(cell_results, "mhaar_posterior", stub_mhaar)
    monkeypatch.setattr(cell_results, "deciding_nodes", stub_deciding)
    monkeypatch.setattr(run, "prove_and_expose", stub_proof)
    monkeypatch.setattr(growth, "prove_and_expose", stub_proof)
    monkeypatch.setattr(growth, "load_graph", run.load_graph)
    monkeypatch.setattr(growth, "known_priors", run.known_priors)
    monkeypatch.setattr(growth, "GROWTH_SIZES", (6,))
    monkeypatch.setattr(workflow, "GROWTH_MODELS", 9 * 10)
    names = ("cora-25-snowball-gcn", "cora-50-uniform-gcn", "cora-50-snowball-gcn", "citeseer-25-uniform-gcn")
    chosen = [configuration for configuration in CONFIGURATIONS if configuration.name in names]
    leftover = tmp_path / "runs" / names[0] / ".counts.partial-abcdefgh.npz"
    leftover.parent.mkdir(parents=True)
    leftover.touch()

    options: dict[str, Any] = {"num_seeds": 1, "runtime": QUIET, "quick": True}
    summary = workflow.run_everything(tmp_path, chosen, beyond=True, study=True, growth=True, **options)
    assert not leftover.exists()
    assert summary.num_cells == 64
    assert "cells agree with the published tables" in str(summary)
    folder = tmp_path / "reproduction"
    for name in set(output.OUTPUT_TABLES) - {"plain_costs", "variants"}:
        assert (folder / f"{name}.csv").exists(), name
    for name in ("figure-1-regions", "figure-2-marginal-effects", "figure-4-joint", "study-training-fraction"):
        assert (folder / f"{name}.png").stat().st_size < 400_000
    for name in ("proven", "exposure-curves", "growth"):
        assert (folder / f"{name}.png").stat().st_size < 400_000
    page = summary.page.read_text()
    for heading in (
        "In brief",
        "Settings",
        "The tables",
        "What does not",
        "The figures",
        "Two ways",
        "Exact posteriors",
    ):
        assert f"\n## {heading}" in page
    for heading in ("What is proven", "What one released model", "How results move", "For which purposes"):
        assert f"\n## {heading}" in page
    for heading in ("The paper's findings", "Beyond the paper", "Study", "Run time"):
        assert f"\n## {heading}" in page
    assert "{{" not in page

    again = workflow.run_everything(tmp_path, chosen, page_only=True, **options)
    assert again.page.read_text() == page
    cells = cell_records(run.Run(configuration, 0, 8, tmp_path) for configuration in chosen)
    assert len(cells) == 128


def hold_lock(folder: Path, is_held: Any, may_end: Any) -> None:
    with folder_lock(folder):
        is_held.set()
        may_end.wait(60)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    is_held, may_end = context.Event(), context.Event()
    other = context.Process(target=hold_lock, args=(tmp_path, is_held, may_end))
    other.start()
    try:
        assert is_held.wait(60)
        with pytest.raises(InputError, match="is in use by another process"):
            workflow.run_everything(tmp_path, [], num_seeds=1, runtime=QUIET, page_only=True)
    finally:
        may_end.set()
        other.join()
