"""The command `bmpaudit nodes`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import run_well, run_wrong

from bmpaudit import AuditPlan, Graph
from bmpaudit.attack import Gaussian
from bmpaudit.auditing.run import audit
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import MLP, Training

NUM_NODES = 40
# One is named like another one's number, one is markup to Rich, one is long.
NAMES = ["7", "[bold]x[/bold]", "n" * 60, *(f"paper {node}" for node in range(3, NUM_NODES))]
CLASSES = ("[red]", "maths", "physics")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(7)
    graph = Graph.from_edges(
        [(node, node + 1) for node in range(NUM_NODES - 1)],
        np.eye(NUM_NODES, dtype=np.float32),
        rng.permutation(np.arange(NUM_NODES) % 3),
        node_names=NAMES,
        class_names=CLASSES,
    )
    plan = AuditPlan(
        sampler=Uniform(0.3),
        model=MLP(hidden=8, dropout=0.0),
        training=Training(epochs=15, learning_rate=0.1),
        shadows=20,
        releases="clean",
        queries="full",
        rules="weak",
        permutations=2,
        definitions="mp",
        attack=Gaussian(min_models=4),  # some nodes are in fewer samples
    )
    path: Path = tmp_path_factory.mktemp("nodes") / "audit"
    audit(graph, plan, folder=path, pictures=False)
    return path


@pytest.fixture(scope="module")
def table(folder: Path) -> pd.DataFrame:
    nodes = pd.read_parquet(folder / "nodes.parquet")
    assert nodes["right_low"].isna().any()
    return nodes


def rows(*arguments: object) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = json.loads(run_well("nodes", *arguments, "--json"), parse_constant=pytest.fail)
    return table


@pytest.mark.parametrize("side", ["right", "left"])
def test_most_leaking_first_and_unknown_last(folder: Path, table: pd.DataFrame, side: str) -> None:
    shown = rows(folder, "--top", 1000, "--side", side)
    ranked = table.sort_values(f"{side}_low", ascending=False, na_position="last", kind="stable")
    assert [row["node"] for row in shown] == ranked["node"].tolist()
    assert list(shown[0]) == list(table)
    assert shown[-1][f"{side}_low"] is None
    assert shown[-1]["flag"].startswith("not auditable: ")
    assert shown[0][f"{side}_median"] == ranked[f"{side}_median"].iloc[0]


def test_top_nodes_and_classes(folder: Path, table: pd.DataFrame) -> None:
    assert len(rows(folder)) == 20
    assert len(rows(folder, "--top", 3)) == 3
    chosen = rows(folder, "--class", "[red]", "--top", 1000)
    assert {row["node"] for row in chosen} == set(table["node"][table["class"] == "[red]"])
    assert [row["node"] for row in rows(folder, "--node", "7")] == [0]  # by name before by number
    assert {row["node"] for row in rows(folder, "--node", "8", "--node", "paper 9")} == {8, 9}


def test_prints_a_table_that_is_not_cut(folder: Path, table: pd.DataFrame) -> None:
    printed = run_well("nodes", folder, "--top", 1000)
    lines = printed.splitlines()
    assert lines[1].split() == ["node", "class", "degree", "γ", "A/n0", "B/n1", "floor", "e_R", "interval"]
    assert lines[-1] == f"{NUM_NODES} of {NUM_NODES} nodes, by the lower end of the interval of e_R"
    assert len([line for line in lines if " to " in line]) == table["right_low"].notna().sum()
    assert "[bold]x[/bold]" in printed
    assert "[red]" in printed
    assert f"{'n' * 31}…" in printed
    assert printed.count("…") == 1
    first = table.sort_values("right_low", ascending=False, kind="stable").iloc[0]
    assert f"{first['false_positives']}/{first['num_out']}" in lines[3]
    assert f"{first['right_low']:.2f} to {first['right_high']:.2f}" in lines[3]
    assert "e_L" in run_well("nodes", folder, "--side", "left")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--node", "nobody"), "--node: there is no node 'nobody'"),
        (("--node", "40"), "--node: there is no node '40'"),
        (("--class", "biology"), "--class must be one of [red], maths, physics, got 'biology'"),
        (("--node", "8", "--class", "biology"), "--class must be one of [red], maths, physics, got 'biology'"),
        (("--top", 0), "Invalid value for '--top': 0 is not in the range x>=1."),
        (("--side", "up"), "Invalid value for '--side': 'up' is not one of 'right', 'left'."),
    ],
)
def test_what_is_wrong_is_reported_in_one_line(folder: Path, arguments: tuple[object, ...], message: str) -> None:
    assert run_wrong("nodes", folder, *arguments) == message


def test_damage_is_reported(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1 nonsense")
    for path in (tmp_path, tmp_path / "nowhere"):
        assert run_wrong("nodes", path).startswith(str(path))
    assert "is a file" in run_wrong("nodes", folder / "summary.json")
