"""docs/formats.md tells the truth: its examples run, its tables are complete."""

import doctest
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bmpaudit.graph.graph import Graph

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
TEXT = PAGE.read_text(encoding="utf-8")


def _documented(heading: str) -> list[str]:
    """The names in the first column of the tables below a heading."""
    section = TEXT.split(f"\n## {heading}")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```pycon\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert doctest.DocTestRunner().run(examples).failed == 0


def _graphs() -> list[Graph]:
    dense, sparse = np.full((4, 2), 0.1), np.eye(4, 9) * 0.1
    return [
        Graph.from_edges([(0, 1)], features, [0, 1, 1, 0], node_names=list("abcd"), class_names=["x", "y"])
        for features in (dense, sparse)
    ]


def test_keys_of_the_archive(tmp_path: Path) -> None:
    written: set[str] = set()
    for graph in _graphs():
        graph.to_npz(tmp_path / "graph.npz")
        written |= set(np.load(tmp_path / "graph.npz"))
    assert written == set(_documented("One archive"))


def test_columns_of_the_tables(tmp_path: Path) -> None:
    _graphs()[0].to_folder(tmp_path)
    nodes, edges = (list(pd.read_csv(tmp_path / f"{table}.csv")) for table in ("nodes", "edges"))
    assert nodes == ["node", "label", "class_name", "feature_0", "feature_1"]
    assert [*nodes[:3], *edges] == _documented("A folder of two tables")
