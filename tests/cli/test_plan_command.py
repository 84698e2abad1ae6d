"""The commands `bmpaudit plan init|check|cost`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from command_line import run_well, run_wrong

from bmpaudit.plan import AuditPlan, PlanFile, read_plan
from bmpaudit.samplers import RandomWalk, Snowball


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_init_check_and_cost(tmp_path: Path) -> None:
    usual = ("--graph", "demo", "--sampler", "snowball", "--shadows", 64, "--release-as", "scores")
    printed = run_well("plan", "init", *usual)
    assert printed == "audit.toml: run it with bmpaudit audit --plan audit.toml --out DIR\n"
    plan = AuditPlan(sampler=Snowball(0.25), shadows=64, release_as="scores")
    assert read_plan(tmp_path / "audit.toml") == PlanFile("demo", plan)
    assert "# Number of shadow models; can be raised later" in (tmp_path / "audit.toml").read_text()

    assert run_well("plan", "check", "audit.toml") == (
        "audit.toml: fine. demo, Snowball 25 %, GCN\n64 shadow models, 4 views, bmp-r, bmp-l, mp\n"
    )
    checked = json.loads(run_well("plan", "check", "audit.toml", "--json"))
    assert checked == tomllib.loads((tmp_path / "audit.toml").read_text())

    cost = json.loads(run_well("plan", "cost", "audit.toml", "--json"))
    steps = ["training", "priors", "permutation test", "attack", "proof and exposure", "estimation", "report"]
    assert (cost["num_models"], list(cost["seconds"])) == (64, steps)
    assert cost["total"] == pytest.approx(sum(cost["seconds"].values()))
    printed = run_well("plan", "cost", "audit.toml")
    assert printed.startswith("demo, Snowball 25 %, GCN, 64 models\n")
    assert all(f"\n {step} " in printed for step in [*steps, "in all"])
    assert {path.name for path in tmp_path.iterdir()} == {"audit.toml"}


def test_init_does_not_need_the_graph_and_does_not_overwrite_a_file(tmp_path: Path) -> None:
    run_well("plan", "init", "mine.toml", "--graph", "not/yet/there.npz")
    assert read_plan(tmp_path / "mine.toml").graph == "not/yet/there.npz"
    again = run_wrong("plan", "init", "mine.toml", "--graph", "demo")
    assert again == "mine.toml exists; --force overwrites it"
    run_well("plan", "init", "mine.toml", "--graph", "demo", "--force")
    assert read_plan(tmp_path / "mine.toml").graph == "demo"


def test_init_from_another_plan(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('graph = "demo"\nshadows = 9\n')
    run_well("plan", "init", "b.toml", "--plan", "a.toml", "--sampler", "random-walk")
    assert read_plan(tmp_path / "b.toml") == PlanFile("demo", AuditPlan(sampler=RandomWalk(), shadows=9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "nowhere.toml"), "nowhere.toml: no such file; `bmpaudit plan init` writes one"),
        (("check", "wrong.toml"), "wrong.toml: prior_draws must be an integer, got 'many'"),
        (("check", "broken.toml"), "broken.toml: damaged or not a TOML file: "),
        (("check", "."), "Invalid value for 'FILE': File '.' is a directory."),
        (("cost", "empty.toml"), "empty.toml names no graph"),
        (("cost", "wrong.toml"), "wrong.toml: prior_draws must be an integer, got 'many'"),
        (("init", "new.toml", "--heads", 3), "--heads is for --model gat, got --model gcn"),
        (
            ("init", "new.toml", "--train-fraction", 3),
            "[sampler] train_fraction must be in (0, 1), got train_fraction=3",
        ),
        (("init", "new.toml", "--plan", "wrong.toml"), "wrong.toml: prior_draws must be an integer"),
    ],
)
def test_what_is_wrong_is_reported_in_one_line(tmp_path: Path, arguments: tuple[object, ...], message: str) -> None:
    (tmp_path / "wrong.toml").write_text('[decision]\nprior_draws = "many"\n')
    (tmp_path / "broken.toml").write_text("shadows 3\n")
    (tmp_path / "empty.toml").write_text("")
    assert run_wrong("plan", *arguments).startswith(message)
    assert not (tmp_path / "new.toml").exists()
