"""The commands audit, demo, sample, attack and report."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from command_line import Command

from bmpaudit import Graph, cli, datasets
from bmpaudit.auditing import plots
from bmpaudit.auditing.folder import AuditFolder
from bmpaudit.auditing.steps import Subject
from bmpaudit.plan import Runtime, read_plan
from bmpaudit.samplers import RandomWalk, Snowball, Uniform

# Few models that learn by heart, two definitions with one parameter.
FAST = (
    *("--model", "mlp", "--hidden", 8, "--dropout", 0, "--epochs", 15, "--learning-rate", 0.1),
    *("--train-fraction", 0.4, "--definition", "bmp-r", "--definition", "mp"),
)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def small_graph() -> Graph:
    """Random labels, and features that tell all nodes apart."""
    rng = np.random.default_rng(7)
    pairs = rng.integers(0, 40, size=(60, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return Graph.from_edges(pairs, np.eye(40, dtype=np.float32), np.arange(40) % 3)


@pytest.fixture
def graph_path(tmp_path: Path) -> Path:
    path = tmp_path / "mine.npz"
    small_graph().to_npz(path)
    return path


def summary_of(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return told


def test_audits_says_it_does_nothing_again_and_extends(command: Command, graph_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    printed = command.well("audit", graph_path, *FAST, "--shadows", 40, "--no-pictures", "--out", out)
    told = summary_of(out)
    assert " ".join(printed.split()).startswith(f"{told['title']} {told['verdict']}")
    assert f"page: {out / 'report.html'}" in printed.splitlines()
    for part in ("ε_R", "MP ε", "full_clean_strong", "none_noisy_weak", "null control: leakage found"):
        assert part in printed
    assert not (out / "figures").exists() or not list((out / "figures").iterdir())

    stamp = (out / "report.html").stat().st_mtime_ns
    assert json.loads(command.well("audit", "--out", out, "--no-pictures", "--json")) == told
    assert (out / "report.html").stat().st_mtime_ns == stamp

    extended = json.loads(command.well("audit", "--out", out, "--shadows", 44, "--no-pictures", "--json"))
    assert extended["shadow_models"]["trained"] == 44
    assert extended["plan"]["model"]["hidden"] == 8
    assert extended["graph"]["source"] == str(graph_path)


def test_the_steps_give_what_audit_gives(command: Command, graph_path: Path, tmp_path: Path) -> None:
    whole, steps = tmp_path / "whole", tmp_path / "steps"
    plan = tmp_path / "audit.toml"
    command.well("plan", "init", plan, "--graph", graph_path, *FAST, "--shadows", 20)
    command.well("audit", "--plan", plan, "--no-pictures", "--out", whole)

    sampled = json.loads(command.well("sample", "--plan", plan, "--out", steps, "--json"))
    assert sampled == {"folder": str(steps), "num_samples": 20, "prior_prob": {"min": 0.4, "max": 0.4}}
    assert "20 samples in" in command.well("sample", "--plan", plan, "--out", steps)
    command.well("train", "--out", steps)
    attacked = json.loads(command.well("attack", steps, "--json"))
    assert set(attacked) == set(summary_of(whole)["variants"])
    printed = command.well("attack", steps)
    assert "full_clean_strong: " in printed
    assert "leakage found" in printed
    command.well("estimate", steps)
    assert command.well("report", steps, "--no-pictures").strip() == str(steps / "report.html")
    told, expected = summary_of(steps), summary_of(whole)
    assert told.pop("timings").keys() <= expected.pop("timings").keys()
    assert told == expected


def test_attack_of_models_trained_elsewhere(command: Command, graph_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "own"
    command.well("sample", graph_path, "--train-fraction", 0.4, "--shadows", 30, "--out", out)
    with np.load(out / "memberships.npz") as archive:
        memberships = archive["memberships"]
    margins = np.random.default_rng(0).normal(size=memberships.shape) + 2 * memberships
    np.savez(tmp_path / "runs.npz", memberships=memberships, full_clean=margins)
    told = json.loads(command.well("attack", out, "--runs", tmp_path / "runs.npz", "--json"))
    assert set(told) == {"full_clean_strong", "full_clean_weak"}
    assert told["full_clean_weak"]["auc"] > 0.8
    assert read_plan(out / "plan.toml").plan.num_shadows == 30
    assert "no such file" in command.wrong("attack", out, "--runs", tmp_path / "nowhere.npz")
    assert "has no shadow models yet: bmpaudit train" in command.wrong("attack", out)


def one_picture(_: plots.AuditPlots, folder: Path) -> None:
    """All would take longer than the audit."""
    folder.mkdir(exist_ok=True)
    (folder / "posteriors.pdf").write_text("a picture")


def test_demo(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("bmpaudit.cli.audit"), "DEMO_SHADOWS", 20)
    monkeypatch.setattr(plots.AuditPlots, "save_all", one_picture)
    monkeypatch.setattr(datasets, "load", {"demo": small_graph()}.__getitem__)
    monkeypatch.chdir(tmp_path)
    printed = command.well("demo", "--quiet")
    assert printed.splitlines()[0] == "demo, Snowball 25 %, GCN"
    assert "page: bmpaudit-demo/report.html" in printed.splitlines()
    assert (tmp_path / "bmpaudit-demo" / "figures" / "posteriors.pdf").exists()
    assert json.loads(command.well("demo", "--json"))["shadow_models"]["trained"] == 20


def test_until_width(command: Command, graph_path: Path, tmp_path: Path) -> None:
    settings = ("audit", graph_path, *FAST, "--shadows", 20, "--no-pictures", "--json", "--out", tmp_path / "audit")
    outcome = command(*settings, "--until-width", 99)
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["shadow_models"]["trained"] == 20
    assert outcome.stderr.startswith("bmpaudit: the 90 % interval of bmp-r is ")
    assert command.wrong(*settings, "--until-width", 0) == "until_width must be positive, got until_width=0.0"


# Where plans and graphs come from


def plan_of(folder: Path) -> Any:
    return read_plan(folder / "plan.toml").plan


def test_options_override_the_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(
        'graph = "demo"\nshadows = 30\n[sampler]\nname = "snowball"\nfan_out = 3\n'
        '[model]\nname = "gat"\nheads = 2\n[training]\nepochs = 5\n[attack]\nprior_draws = 100\n'
    )
    settings = ("sample", "--plan", path)
    command.well(*settings, "--shadows", 9, "--epochs", 6, "--fan-out", 4, "--out", tmp_path / "a")
    found = plan_of(tmp_path / "a")
    assert (found.num_shadows, found.training.epochs, found.model.heads) == (9, 6, 2)
    assert found.sampler == Snowball(0.25, fan_out=4)
    # Settings of another sampler or model say nothing about this one.
    command.well(*settings, "--shadows", 9, "--sampler", "uniform", "--model", "gcn", "--out", tmp_path / "b")
    assert plan_of(tmp_path / "b").sampler == Uniform(0.25)
    assert plan_of(tmp_path / "b").model.hidden == 16
    command.well(*settings, "--shadows", 9, "--sampler", "snowball", "--out", tmp_path / "c")
    assert plan_of(tmp_path / "c").sampler == Snowball(0.25, fan_out=3)


def test_the_default_sampler_may_be_named(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text('graph = "demo"\nshadows = 9\n[sampler]\ntrain_fraction = 0.5\n')
    command.well("sample", "--plan", path, "--sampler", "uniform", "--out", tmp_path / "a")
    assert plan_of(tmp_path / "a").sampler == Uniform(0.5)


def test_walks_fit_the_train_fraction(command: Command, tmp_path: Path) -> None:
    walk = ("sample", "demo", "--shadows", 9, "--sampler", "random-walk")
    command.well(*walk, "--train-fraction", 0.3, "--walk-length", 4, "--out", tmp_path / "a")
    assert plan_of(tmp_path / "a").sampler == RandomWalk(num_roots=60, walk_length=4)
    command.well("sample", "--plan", tmp_path / "a" / "plan.toml", "--train-fraction", 0.2, "--out", tmp_path / "b")
    assert plan_of(tmp_path / "b").sampler == RandomWalk(num_roots=40, walk_length=4)
    assert command.wrong(*walk, "--train-fraction", 0.3, "--num-roots", 5, "--out", tmp_path / "c") == (
        "--train-fraction and --num-roots both say how many nodes are sampled; give one"
    )
    assert "train_fraction must be in (0, 1)" in command.wrong(*walk, "--train-fraction", 2, "--out", tmp_path / "c")


def test_a_folder_is_good_from_everywhere(
    command: Command, graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command.well("train", "mine.npz", *FAST[:10], "--shadows", 8, "--out", "audit")
    # Of that name there may be one in the folder of an audit, but this one is the user's.
    graph_path.rename(tmp_path / "graph.npz")
    command.well("train", "graph.npz", *FAST[:10], "--shadows", 8, "--out", "other")
    monkeypatch.chdir("/")
    assert read_plan(tmp_path / "other" / "plan.toml").graph == str(tmp_path / "graph.npz")
    command.well("attack", tmp_path / "other")


def test_a_graph_that_was_an_object_goes_on(command: Command, tmp_path: Path) -> None:
    from bmpaudit.auditing.steps import train_step
    from bmpaudit.plan import AuditPlan
    from bmpaudit.shadow import Training

    plan = AuditPlan(num_shadows=8, training=Training(epochs=2))
    train_step(Subject(small_graph(), "", plan, AuditFolder(tmp_path / "a")), Runtime())
    told = json.loads(command.well("train", "--out", tmp_path / "a", "--shadows", 9, "--json"))
    assert told["num_models"] == 9
    assert read_plan(tmp_path / "a" / "plan.toml").graph == "graph.npz"


def test_graph_of_a_function_in_the_current_folder(
    command: Command, graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cli_graphs.py").write_text(
        f"from bmpaudit import datasets\n\ndef mine():\n    return datasets.load({str(graph_path)!r})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "cli_graphs", raising=False)
    command.well("sample", "cli_graphs:mine", "--shadows", 9, "--out", "a")
    assert read_plan(tmp_path / "a" / "plan.toml").graph == "cli_graphs:mine"
    told = command.wrong("sample", "cli_graphs:other", "--shadows", 9, "--out", "b")
    assert told == "cli_graphs:other: AttributeError: module 'cli_graphs' has no attribute 'other'"


# Wrong use


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("audit",), "Missing option '--out'."),
        (("audit", "--out", "new"), "GRAPH is missing: give it, or a --plan that names one, or --out of an audit"),
        (("audit", "nowhere", "--out", "new"), "no data set, archive or folder 'nowhere'; at hand: "),
        (("audit", "nowhere.npz", "--out", "new"), "nowhere.npz"),
        (
            ("audit", "demo", "--plan", "nowhere.toml", "--out", "new"),
            "nowhere.toml: no such file; `bmpaudit plan init`",
        ),
        (("audit", "demo", "--plan", "wrong.toml", "--out", "new"), "wrong.toml: unknown key shadow; allowed here: "),
        (("audit", "demo", "--shadows", 5, "--out", "new"), "shadows must be at least 8, got shadows=5"),
        (("audit", "demo", "--heads", 5, "--out", "new"), "--heads is for --model gat, got --model gcn"),
        (
            ("audit", "demo", "--fan-out", 5, "--out", "new"),
            "--fan-out is for --sampler snowball, got --sampler uniform",
        ),
        (("audit", "demo", "--threads", 0, "--out", "new"), "--threads must be at least 1, got 0"),
        (("audit", "demo", "--out", "foreign"), "foreign holds files that are not an audit's; use a new folder"),
        (("attack", "foreign"), "foreign is no folder of an audit: it has no plan.toml"),
        (("attack", "nowhere"), "nowhere is no folder of an audit: it has no plan.toml"),
        (("report", "nowhere"), "nowhere is no folder of an audit: it has no plan.toml"),
        (("nodes", "nowhere"), "nowhere has no nodes.parquet yet: bmpaudit estimate"),
        (("demo", "--out", "foreign"), "foreign holds files that are not an audit's; use a new folder"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text("shadow = 3\n")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter.txt").write_text("dear")
    assert command.wrong(*arguments).startswith(told)
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["letter.txt"]


def test_another_plan_is_refused(command: Command, graph_path: Path, tmp_path: Path) -> None:
    settings = ("train", graph_path, *FAST[:10], "--shadows", 8, "--out", tmp_path / "audit")
    command.well(*settings)
    before = (tmp_path / "audit" / "plan.toml").read_text()
    told = command.wrong(*settings, "--seed", 3)
    assert told.endswith("holds shadow models of another plan: seed is 0 there and 3 here")
    assert (tmp_path / "audit" / "plan.toml").read_text() == before


def test_debug_shows_where_an_error_came_from(command: Command, tmp_path: Path) -> None:
    outcome = command("--debug", "attack", tmp_path)
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("Traceback (most recent call last):\n")
    assert outcome.stderr.endswith(f"bmpaudit: {tmp_path} is no folder of an audit: it has no plan.toml\n")
    assert "Traceback" not in command("attack", tmp_path).stderr


def test_what_failed_has_exit_code_1(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bmpaudit.auditing.steps.draw_memberships", full)
    told = command.wrong("sample", "demo", "--shadows", 9, "--out", tmp_path / "a", exit_code=1)
    assert told == "[Errno 28] No space left on device"


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    for name, child in group.commands.items():
        found += every_command(child, (*path, name)) if isinstance(child, click.Group) else [(*path, name)]
    return found


@pytest.mark.parametrize(
    "path", [path for path in every_command(cli.cli) if path[:1] not in (("data",), ("reproduce",))], ids=" ".join
)
def test_help_has_an_example(command: Command, path: tuple[str, ...]) -> None:
    printed = command.well(*path, "-h")
    usage, _, rest = printed.partition("\n")
    assert usage.startswith("Usage: ")
    assert f"  {' '.join(('bmpaudit', *path))}" in rest


def test_datasets_are_not_taken_for_paths(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    command.well("sample", "demo", "--shadows", 9, "--out", "a")
    assert read_plan(tmp_path / "a" / "plan.toml").graph == "demo"
    assert datasets.load("demo").num_nodes == 1000
