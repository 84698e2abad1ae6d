"""One example for each task: each function runs, on a small graph, and returns what it promises."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_graph import small_graph

from bmpaudit.auditing.context import Runtime

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT: dict[str, Any] = {"runtime": Runtime(1, quiet=True), "definitions": "bmp-r"}
Load = Callable[[str], Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """An example by its name, as somebody beside it would import it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def test_audit_cora(load: Load) -> None:
    done = load("audit_cora").audit_cora(small_graph(), 16, **SHORT)
    assert done.title == "graph, Snowball 25 %, GCN"


def test_own_model(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    example = load("own_model")
    monkeypatch.setattr(example, "EPOCHS", 2)
    done = example.audit_own_model(small_graph().to_pyg(), 8, **SHORT)
    assert done.title == "graph, Uniform 25 %, Sage"


def test_own_sampler(load: Load) -> None:
    done = load("own_sampler").audit_own_sampler(small_graph(), 16, prior_draws=2_000, **SHORT)
    assert done.priors.num_draws > 0
    degree = np.diff(done.graph.indptr)
    assert done.priors.prob[degree.argmax()] > done.priors.prob[degree.argmin()], "hubs are more likely to be in"


def test_from_counts(load: Load, tmp_path: Path) -> None:
    example = load("from_counts")
    path = tmp_path / "counts.csv"
    path.write_text(example.TABLE, encoding="utf-8")
    found = example.from_counts(path)
    assert found.posterior.num_nodes == 3
    assert found.proven.right.bound <= found.posterior.quantile(0.95)


def test_from_logits(load: Load) -> None:
    example = load("from_logits")
    found = example.from_logits(**example.made_up(64, 20))
    assert found.proof.is_leakage_proven
    assert found.exposure.num_nodes == 20


def test_infer_released(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    example = load("infer_released")
    monkeypatch.setattr(example, "EPOCHS", 20)
    found = example.infer_released(24)
    assert len(found.table) == 1_000
    assert found.score is not None
    assert found.score.auc > 0.5


def test_compare_defences(load: Load) -> None:
    found = load("compare_defences").compare_defences(small_graph(), 24, runtime=SHORT["runtime"])
    (verdict,) = found.verdicts
    assert verdict


def test_on_dask(load: Load) -> None:
    distributed = pytest.importorskip("distributed")
    example = load("on_dask")
    with distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
        done = example.audit_on_dask(client, small_graph(), 32, definitions="bmp-r", releases="clean")
    assert done.runs.num_models == 32


def test_ci_gate(load: Load) -> None:
    example = load("ci_gate")
    result = example.gate(small_graph(), 24, "40@0.99", runtime=SHORT["runtime"])
    assert result.exit_code in (0, 3), "nobody can name more nodes than there are, whatever 24 models settle"
    assert [threshold.label for threshold in result.thresholds] == ["max_exposure 40@0.99"]
