"""The command `bmpaudit compare`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import run_well, run_wrong

from bmpaudit import AuditPlan, Graph
from bmpaudit.auditing.run import audit
from bmpaudit.shadow import MLP, Training

NUM_NODES = 40
NAMES = ["[bold]x[/bold]", *(f"paper {node}" for node in range(1, NUM_NODES))]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """An audit of models that learnt nearly nothing, and one of models that learnt by heart."""
    place = tmp_path_factory.mktemp("audits")
    labels = [node % 3 for node in range(NUM_NODES)]
    features = [[float(node == other) for other in range(NUM_NODES)] for node in range(NUM_NODES)]
    path = [(node, node + 1) for node in range(NUM_NODES - 1)]
    graph = Graph.from_edges(path, features, labels, node_names=NAMES)
    plan = AuditPlan(
        model=MLP(hidden=8, dropout=0.0),
        shadows=40,
        releases="clean",
        rules="weak",
        definitions="bmp-r",
        permutations=2,
    )
    for name, epochs in (("one", 1), ("two", 30)):
        training = Training(epochs=epochs, learning_rate=0.1)
        audit(graph, plan, training=training, folder=place / name, pictures=False)
    return [place / "one", place / "two"]


def test_table_and_files(folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    printed = run_well("compare", *folders, "--out", tmp_path / "out")
    assert "two leaks more than one" in printed
    assert "two − one" in printed
    assert "[bold]x[/bold]" in run_well("compare", *folders, "--top", NUM_NODES)  # a name, not markup
    assert "training.epochs" in printed
    assert printed.splitlines()[-1] == f"page: {tmp_path / 'out' / 'compare.html'}"
    written = {"compare.html", "compare.pdf", "compare.png", "compare.json", "compare_nodes.parquet"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == written


def test_tables_are_not_cut_off(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = run_well("compare", *folders)
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_json(folders: list[Path]) -> None:
    comparison = json.loads(run_well("compare", *folders, "--json", "--top", "1"), parse_constant=pytest.fail)
    assert comparison["differences"][0]["more_prob"] > 0.95
    assert len(comparison["nodes"][0]["changed_most"]) == 1
    assert [row["label"] for row in comparison["audits"]] == ["one", "two"]
    assert comparison["audits"][1]["is_leakage_found"] is True


def test_audits_in_folders_of_one_name_are_told_apart(folders: list[Path], tmp_path: Path) -> None:
    shutil.copytree(folders[1], tmp_path / "one")
    comparison = json.loads(run_well("compare", folders[0], tmp_path / "one", "--json"))
    assert [row["label"] for row in comparison["audits"]] == [str(folders[0]), str(tmp_path / "one")]


def test_nothing_is_changed_in_the_folders(folders: list[Path]) -> None:
    before = {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*")}
    run_well("compare", *folders)
    assert {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "compare takes at least two audit folders, got 0"),
        (["{one}"], "compare takes at least two audit folders, got 1"),
        (["{one}", "{one}/posteriors"], "is not an audit folder"),
        (["{one}", "/nowhere/at/all"], "is not an audit folder"),
        (["{one}", "{two}", "--definition", "mp"], "mp was not estimated"),
        (["{one}", "{two}", "--definition", "dp"], "dp was not estimated"),
        (["{one}", "{two}", "--side", "left"], "about the other side"),
        (["{one}", "{two}", "--variant", "best"], "has no attack 'best'"),
    ],
)
def test_wrong_use_is_reported_in_one_line(folders: list[Path], arguments: list[str], message: str) -> None:
    assert message in run_wrong("compare", *(each.format(one=folders[0], two=folders[1]) for each in arguments))
