"""The notebook runs, and its results show themselves; what they show is escaped."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from bmpaudit.attack import Evidence, Gaussian
from bmpaudit.proof import expose, prove

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


def test_it_runs_and_shows_tables_and_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without results"
    for cell in notebook.cells:
        cell.source = cell.source.replace("SHADOWS = 64", "SHADOWS = 32").replace(
            "shadows=SHADOWS", "shadows=SHADOWS, prior_draws=500"
        )
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    results = [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert ["text/html" in data or "image/png" in data for data in results] == [True] * 6
    assert sum("image/png" in data for data in results) == 1


def test_names_are_escaped() -> None:
    rng = np.random.default_rng(0)
    members = rng.random((40, 20)) < 0.5
    models = Evidence(
        {"<b>query": (rng.normal(size=members.shape) + members).astype(np.float32)}, members, np.arange(40)
    )
    priors = np.full(20, 0.5)
    proof = prove(Gaussian(), models, priors)._repr_html_()
    exposure = expose(Gaussian(), models, priors)._repr_html_()
    assert "&lt;b&gt;query" in proof
    assert "<b>" not in proof + exposure
    assert proof.count("<tr>") == 4
    assert exposure.startswith("<p>")
    assert "<td>99 %</td>" in exposure
