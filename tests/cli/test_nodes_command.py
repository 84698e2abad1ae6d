"""The command `bmpaudit nodes`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import run_well, run_wrong

from bmpaudit.attack import Gaussian
from bmpaudit.graph.graph import Graph
from bmpaudit.models import MLP, Training
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan
from bmpaudit.proof import NodeExposure
from bmpaudit.samplers import Uniform

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
        release_as="scores",
        queries="full",
        rules="weak",
        definitions="mp",
        attack=Gaussian(min_models=4),  # some nodes are in fewer samples
    )
    path: Path = tmp_path_factory.mktemp("nodes") / "audit"
    audit(graph, plan, folder=path, pictures="none")
    return path


@pytest.fixture(scope="module")
def table(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "nodes.parquet")


@pytest.fixture
def replaced(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A table of known content, which the command reads instead of the audit's: members 0 to 3 are named."""
    made = table.copy()
    models, named = np.full(NUM_NODES, 8), np.zeros(NUM_NODES, dtype=np.int64)
    models[[1, 3]], named[:4] = (2, 0), (4, 2, 8, 0)
    for side in ("member", "non_member"):
        nodes = NodeExposure(np.arange(NUM_NODES), models, named, np.zeros(NUM_NODES, dtype=np.int64), named, 0.95)
        made[f"{side}_models"], made[f"{side}_named"], made[f"{side}_wrong"] = models, named, 0
        for name in ("share", "low", "high"):
            made[f"{side}_exposure{'' if name == 'share' else f'_{name}'}"] = getattr(nodes, name)
        models, named = np.full(NUM_NODES, 9), np.zeros(NUM_NODES, dtype=np.int64)
    made["num_out"], made["num_in"], made["false_positives"], made["false_negatives"] = 9, 3, 4, 2
    # Wrong every time, and right every time: the region that e_R comes from does not tell them apart.
    made.loc[5, ["false_positives", "false_negatives"]] = (9, 3)
    made.loc[6, ["false_positives", "false_negatives"]] = (0, 0)
    made["p_value"], made["is_leaking"] = 0.25, False
    made.loc[[2, 9], ["p_value", "is_leaking"]] = (0.005, True)
    monkeypatch.setattr("bmpaudit.auditing.finished.read_nodes", lambda _: made)
    return made


def rows(*arguments: object) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = json.loads(run_well("nodes", *arguments, "--json"), parse_constant=pytest.fail)
    return table


@pytest.mark.usefixtures("replaced")
def test_most_exposed_first_and_unknown_last(folder: Path, table: pd.DataFrame) -> None:
    shown = rows(folder, "--top", 1000)
    # 8 of 8, 4 of 8, 2 of 2 (at least 16 %, as 4 of 8), who leaks, others by accuracy, who was in no model.
    assert [row["node"] for row in shown[:5]] == [2, 1, 0, 9, 6]
    assert [row["node"] for row in shown[-2:]] == [5, 3]
    assert list(shown[0]) == list(table)
    assert shown[-1]["member_exposure"] is None


@pytest.mark.usefixtures("replaced")
def test_where_nobody_is_named_the_test_of_each_node_decides(folder: Path) -> None:
    shown = rows(folder, "--side", "left", "--top", 1000)
    assert [row["node"] for row in shown[:3]] == [2, 9, 6]
    assert [row["is_leaking"] for row in shown[:3]] == [True, True, False]
    assert shown[-1]["node"] == 5
    last = run_well("nodes", folder, "--side", "left").split("nodes, ")[1]
    assert " ".join(last.split()) == (
        "those proven to leak first, then by p-value: in these models nobody is named as a non-member with 99 % "
        f"certainty proven to leak, by shuffled memberships: 2 of {NUM_NODES} nodes"
    )


def test_top_nodes_and_classes(folder: Path, table: pd.DataFrame) -> None:
    assert len(rows(folder)) == 20
    assert len(rows(folder, "--top", 3)) == 3
    chosen = rows(folder, "--class", "[red]", "--top", 1000)
    assert {row["node"] for row in chosen} == set(table["node"][table["class"] == "[red]"])
    assert [row["node"] for row in rows(folder, "--node", "7")] == [0]  # by name before by number
    assert {row["node"] for row in rows(folder, "--node", "8", "--node", "paper 9")} == {8, 9}


@pytest.mark.usefixtures("replaced")
def test_prints_a_table_that_is_not_cut(folder: Path) -> None:
    printed = run_well("nodes", folder, "--top", 1000)
    lines = printed.splitlines()
    assert lines[1].split() == ["node", "class", "degree", "γ", "named", "exposure", "p", "leaks"]
    assert " ".join(printed.split()).endswith(
        f"{NUM_NODES} of {NUM_NODES} nodes, ranked by the lower limit of the exposure; exposure is the share of models "
        f"with the node that name it as a member with 99 % certainty proven to leak, by shuffled memberships: 2 of "
        f"{NUM_NODES} nodes"
    )
    assert "8/8   100 % (63 to 100)   0.005   proven" in lines[3]
    assert len([line for line in lines if " % (" in line]) == NUM_NODES - 1
    assert "[bold]x[/bold]" in printed
    assert "[red]" in printed
    assert f"{'n' * 31}…" in printed
    assert printed.count("…") == 1


def test_the_table_of_an_audit_can_be_ranked(folder: Path, table: pd.DataFrame) -> None:
    for side, name in (("right", "member"), ("left", "non_member")):
        shown = rows(folder, "--top", 1000, "--side", side)
        assert sorted(row["node"] for row in shown) == list(range(NUM_NODES))
        risks = [
            row[f"{name}_exposure_low"] * row[f"{name}_named"] / max(row[f"{name}_named"] + row[f"{name}_wrong"], 1)
            for row in shown
            if row[f"{name}_exposure"] is not None
        ]
        assert risks == sorted(risks, reverse=True)
        assert shown == [table.astype(object).where(table.notna(), None).loc[row["node"]].to_dict() for row in shown]


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


def test_names_cannot_command_the_terminal(folder: Path, replaced: pd.DataFrame) -> None:
    replaced["name"] = [f"\x1b[2J\x9b31m\u202e{node}" for node in range(NUM_NODES)]
    replaced["class"] = "\x07\rbell"
    for output in (run_well("nodes", folder), run_well("nodes", folder, "--json")):
        assert not set(output) & set("\x1b\x9b\u202e\x07\r")
        assert r"\u001b[2J\u009b31m\u202e" in output
    assert json.loads(run_well("nodes", folder, "--json"))[0]["name"].startswith("\x1b[2J")
    assert r"there is no node '\x1b[2J'" in run_wrong("nodes", folder, "--node", "\x1b[2J")
