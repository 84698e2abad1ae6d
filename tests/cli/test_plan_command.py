"""The commands `bmpaudit plan init|check|cost`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from command_line import Command

from bmpaudit.plan import AuditPlan, PlanFile, read_plan
from bmpaudit.samplers import RandomWalk, Snowball


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capsys)


def test_init_check_and_cost(command: Command, tmp_path: Path) -> None:
    printed = command.well("plan", "init", "--graph", "demo", "--sampler", "snowball", "--shadows", 64)
    assert printed == "audit.toml: run it with bmpaudit audit --plan audit.toml --out DIR\n"
    plan = AuditPlan(sampler=Snowball(0.25), num_shadows=64)
    assert read_plan(tmp_path / "audit.toml") == PlanFile("demo", plan)
    assert "# number of shadow models; may be raised later" in (tmp_path / "audit.toml").read_text()

    assert command.well("plan", "check", "audit.toml") == (
        "audit.toml: fine. demo, Snowball 25 %, GCN\n"
        "64 shadow models, 8 variants of the attack, bmp, bmp-r, bmp-l, mp\n"
    )
    checked = json.loads(command.well("plan", "check", "audit.toml", "--json"))
    assert checked == tomllib.loads((tmp_path / "audit.toml").read_text())

    cost = json.loads(command.well("plan", "cost", "audit.toml", "--json"))
    assert cost["num_models"] == 64
    assert "64" in command.well("plan", "cost", "audit.toml")
    assert {path.name for path in tmp_path.iterdir()} == {"audit.toml"}


def test_init_does_not_need_the_graph_and_does_not_write_over_a_file(command: Command, tmp_path: Path) -> None:
    command.well("plan", "init", "mine.toml", "--graph", "not/yet/there.npz")
    assert read_plan(tmp_path / "mine.toml").graph == "not/yet/there.npz"
    again = command.wrong("plan", "init", "mine.toml", "--graph", "demo")
    assert again == "mine.toml exists; --force writes over it"
    command.well("plan", "init", "mine.toml", "--graph", "demo", "--force")
    assert read_plan(tmp_path / "mine.toml").graph == "demo"


def test_init_from_another_plan(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('graph = "demo"\nshadows = 9\n')
    command.well("plan", "init", "b.toml", "--plan", "a.toml", "--sampler", "random-walk")
    assert read_plan(tmp_path / "b.toml") == PlanFile(
        "demo", AuditPlan(sampler=RandomWalk(num_roots=83), num_shadows=9)
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("check", "nowhere.toml"), "nowhere.toml: no such file; `bmpaudit plan init` writes one"),
        (("check", "wrong.toml"), "wrong.toml: attack.prior_draws must be an integer, got 'many'"),
        (("check", "broken.toml"), "broken.toml: not a TOML file: "),
        (("check", "."), "Invalid value for 'FILE': File '.' is a directory."),
        (("cost", "empty.toml"), "empty.toml names no graph"),
        (("cost", "wrong.toml"), "wrong.toml: attack.prior_draws must be an integer, got 'many'"),
        (("init", "new.toml", "--heads", 3), "--heads is for --model gat, got --model gcn"),
        (
            ("init", "new.toml", "--train-fraction", 3),
            "[sampler] train_fraction must be in (0, 1), got train_fraction=3",
        ),
        (("init", "new.toml", "--plan", "wrong.toml"), "wrong.toml: attack.prior_draws must be an integer"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    command: Command, tmp_path: Path, arguments: tuple[object, ...], told: str
) -> None:
    (tmp_path / "wrong.toml").write_text('[attack]\nprior_draws = "many"\n')
    (tmp_path / "broken.toml").write_text("shadows 3\n")
    (tmp_path / "empty.toml").write_text("")
    assert command.wrong("plan", *arguments).startswith(told)
    assert not (tmp_path / "new.toml").exists()
