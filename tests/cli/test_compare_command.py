"""The command `bmpaudit compare`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import run_well, run_wrong

from bmpaudit.graph.graph import Graph
from bmpaudit.models import MLP, Training
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan

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
        release_as="scores",
        shadows=40,
        rules="weak",
        definitions="bmp-r",
        permutations=199,
    )
    for name, epochs in (("one", 1), ("two", 30)):
        training = Training(epochs=epochs, learning_rate=0.1)
        audit(graph, plan, training=training, folder=place / name, pictures="none")
    return [place / "one", place / "two"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The demo graph, models trained for a short and for a long time, and with another seed."""
    place = tmp_path_factory.mktemp("demo")
    plan = AuditPlan(
        shadows=40, release_as="scores", queries="full", rules="strong", definitions="bmp-r", permutations=199
    )
    for name, epochs, seed in (("long", 200, 0), ("short", 5, 0), ("again", 200, 1)):
        audit("demo", plan.replace(seed=seed), training=Training(epochs=epochs), folder=place / name, pictures="none")
    return [place / name for name in ("long", "short", "again")]


def figures(comparison: dict[str, Any], position: int = 0) -> dict[str, dict[str, Any]]:
    return {row["quantity"]: row for row in comparison["differences"][position]["figures"]}


def test_fewer_epochs_expose_less_and_cost_accuracy(demo: list[Path]) -> None:
    comparison = json.loads(run_well("compare", *demo, "--json"), parse_constant=pytest.fail)
    short = figures(comparison)
    assert set(short) == {"named_90", "named_99", "auc", "tpr", "held_out_accuracy"}
    assert all(row["high"] < 0 and row["is_paired"] for name, row in short.items() if name != "named_99")
    assert short["named_99"]["mean"] < 0
    assert comparison["verdicts"][0].startswith("short ")
    assert comparison["audits"][0]["proven"]["epsilon_right"] > comparison["audits"][0]["floor"]["epsilon_right"]
    # The same recipe with another seed: independent models, and no difference beyond chance.
    again = figures(comparison, 1)
    assert not any(row["is_paired"] for row in again.values())
    assert all(row["low"] <= 0 <= row["high"] for name, row in again.items() if name != "tpr")
    for row, audits in ((short, (0, 1)), (again, (0, 2))):
        means = [comparison["audits"][each]["figures"]["auc"]["mean"] for each in audits]
        assert row["auc"]["mean"] == pytest.approx(means[1] - means[0])


def test_releases_of_one_audit(demo: list[Path]) -> None:
    comparison = json.loads(run_well("compare", f"{demo[0]}:clean", f"{demo[0]}:noisy", "--json"))
    assert [row["label"] for row in comparison["audits"]] == ["clean", "noisy"]
    noisy = figures(comparison)
    assert noisy["held_out_accuracy"]["mean"] < 0  # noise costs accuracy
    assert noisy["auc"]["high"] < 0
    assert all(row["is_paired"] and row["num_models"] == [40, 40] for row in noisy.values())
    assert "is not known" not in comparison["verdicts"][0]
    assert comparison["audits"][1]["figures"]["held_out_accuracy"] is not None
    # Another release of the same models is never told apart from itself.
    same = json.loads(run_well("compare", demo[0], f"{demo[0]}:clean", "--json"))
    assert all(row["mean"] == 0 and row["low"] == row["high"] == 0 for row in figures(same).values())


def test_table_and_files(folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    printed = run_well("compare", *folders, "--out", tmp_path / "out")
    assert "two − one" in printed
    assert "Intervals are from 40 pairs of models with the same training sample." in printed
    assert "held-out accuracy" in printed
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
    assert comparison["format"] == 2
    assert comparison["estimated"]["differences"][0]["more_prob"] > 0.95
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
        ([], "compare takes at least two audit folders or releases, got 0"),
        (["{one}"], "compare takes at least two audit folders or releases, got 1"),
        (["{one}:clean", "{one}:silent"], "has no release 'silent'; it has clean, noisy"),
        (["{one}", "/nowhere:noisy"], "/nowhere is not an audit folder"),
        (["{one}", "{one}/posteriors"], "is not an audit folder"),
        (["{one}", "/nowhere/at/all"], "is not an audit folder"),
        (["{one}", "{two}", "--definition", "mp"], "mp was not estimated"),
        (["{one}", "{two}", "--definition", "dp"], "dp was not estimated"),
        (["{one}", "{two}", "--side", "left", "--definition", "bmp-r"], "about the other side"),
        (["{one}:noisy", "{two}", "--variant", "full+none_clean_weak"], "is an attack on the release clean"),
        (["{one}", "{two}", "--variant", "best"], "has no attack 'best'"),
    ],
)
def test_wrong_use_is_reported_in_one_line(folders: list[Path], arguments: list[str], message: str) -> None:
    assert message in run_wrong("compare", *(each.format(one=folders[0], two=folders[1]) for each in arguments))
