"""Graphs from functions of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bmpaudit import datasets
from bmpaudit.datasets.catalog import graph_from_function
from bmpaudit.util.errors import DataError, UntrustedCodeError

CODE = """
import numpy as np
from bmpaudit.graph.graph import Graph

def kite():
    return Graph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)], np.eye(4, dtype=np.float32), [0, 1, 1, 0])

def fails():
    raise RuntimeError("no\\nluck")

def invalid():
    return Graph.from_edges([], np.eye(2), [0, 0])

def nothing():
    return None

def leaves():
    raise SystemExit(3)

value = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with modules of the user's own, which are forgotten afterwards."""
    (tmp_path / "my_graphs.py").write_text(CODE)
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "inside.py").write_text(CODE)
    (tmp_path / "my_broken.py").write_text("def kite(:")
    monkeypatch.chdir(tmp_path)
    for name in ("my_graphs", "my_package", "my_package.inside", "my_broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_modules_of_the_current_folder() -> None:
    before = list(sys.path)
    assert datasets.load("my_graphs:kite").num_edges == 4
    assert datasets.load("my_package.inside:kite").num_nodes == 4
    assert sys.path == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_graphs:fails", "my_graphs:fails: RuntimeError: no luck"),
        ("my_graphs:invalid", "my_graphs:invalid: InputError: labels must name at least two classes"),
        ("my_graphs:nothing", "my_graphs:nothing must return a bmpaudit.Graph, got NoneType"),
        ("my_graphs:leaves", "my_graphs:leaves: SystemExit: 3"),
        ("my_graphs:missing", "my_graphs:missing: AttributeError: module 'my_graphs' has no attribute 'missing'"),
        ("my_graphs:value", "my_graphs:value: TypeError: 'int' object is not callable"),
        ("my_broken:kite", "my_broken:kite: SyntaxError: "),
        ("not_there:kite", "not_there:kite: ModuleNotFoundError: No module named 'not_there'"),
    ],
)
def test_failures_are_explained_in_one_line(name: str, message: str) -> None:
    before = list(sys.path)
    with pytest.raises(DataError) as failure:
        graph_from_function(name)
    assert str(failure.value).startswith(message)
    assert "\n" not in str(failure.value)
    assert sys.path == before


def test_code_is_not_run_unless_it_is_trusted(here: Path) -> None:
    evidence = here / "evidence"
    (here / "my_payload.py").write_text(f"from pathlib import Path\nPath({str(evidence)!r}).touch()\n")
    with pytest.raises(UntrustedCodeError, match=r"the graph 'my_payload:run' is code .* the module 'my_payload'"):
        datasets.load("my_payload:run", trust_code=False)
    assert not evidence.exists()
    assert "my_payload" not in sys.modules
    assert datasets.load("my_graphs:kite", trust_code=True).num_nodes == 4


def test_what_is_not_code_needs_no_trust(tmp_path: Path) -> None:
    demo = datasets.load("demo", trust_code=False)
    demo.to_npz(tmp_path / "mine.npz")
    assert datasets.load(tmp_path / "mine.npz", trust_code=False) == demo
