"""Graphs from functions of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bmpaudit import DataError, datasets
from bmpaudit.datasets.from_code import graph_from_function, is_function_name

CODE = """
import numpy as np
from bmpaudit import Graph

def kite():
    return Graph.from_edges([(0, 1), (0, 2), (1, 2), (2, 3)], np.eye(4, dtype=np.float32), [0, 1, 1, 0])

def fails():
    raise RuntimeError("no\\nluck")

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
    ("name", "told"),
    [
        ("my_graphs:fails", "my_graphs:fails: RuntimeError: no"),
        ("my_graphs:nothing", "my_graphs:nothing must return a bmpaudit.Graph, got NoneType"),
        ("my_graphs:leaves", "my_graphs:leaves: SystemExit: 3"),
        ("my_graphs:missing", "my_graphs:missing: AttributeError: module 'my_graphs' has no attribute 'missing'"),
        ("my_graphs:value", "my_graphs:value: TypeError: 'int' object is not callable"),
        ("my_broken:kite", "my_broken:kite: SyntaxError: "),
        ("not_there:kite", "not_there:kite: ModuleNotFoundError: No module named 'not_there'"),
    ],
)
def test_what_is_wrong_is_told(name: str, told: str) -> None:
    before = list(sys.path)
    with pytest.raises(DataError) as wrong:
        graph_from_function(name)
    assert str(wrong.value).startswith(told)
    assert sys.path == before


def test_which_texts_are_names_of_functions() -> None:
    assert all(map(is_function_name, ("a:b", "a.b_c.d:e1")))
    assert not any(map(is_function_name, ("a", "a:", ":b", "a:b:c", "a/b:c", "a b:c", "a.:b", "C:/x", "a-b:c")))
