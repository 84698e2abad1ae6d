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
from command_line import FAST, TRAINING, contents, one_line, run_here, run_well, run_wrong
from small_graph import small_graph

from bmpaudit import cli, datasets
from bmpaudit.auditing.result import LEVELS
from bmpaudit.models import Training
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan, read_plan
from bmpaudit.samplers import RandomWalk, Snowball, Uniform
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.util.words import confidence


@pytest.fixture
def graph_path(tmp_path: Path) -> Path:
    path = tmp_path / "mine.npz"
    small_graph().to_npz(path)
    return path


def summary_of(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


def test_audits_leaves_a_finished_audit_alone_and_extends_it(graph_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    printed = run_well("audit", graph_path, *FAST, "--shadows", 40, "--pictures=none", "--out", out)
    summary = summary_of(out)
    answer = summary["answer"]
    head = f"{summary['title']} {LEVELS[answer['level']].upper()} {answer['verdict']}"
    assert " ".join(printed.split()).startswith(head)
    assert f"page: {out / 'report.html'}" in printed.splitlines()
    for part in ("ε_R", "MP ε", "proven ", "exposure ", "floor ", "noisy", "permutation test: p = 0.005"):
        assert part in printed
    assert not (out / "figures").exists()

    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != ".lock"}
    assert json.loads(run_well("audit", "--out", out, "--pictures=none", "--json")) == summary
    assert json.loads(run_well("audit", graph_path, *FAST, "--out", out, "--pictures=none", "--json")) == summary
    assert {path: path.stat().st_mtime_ns for path in before} == before

    outcome = run_here("audit", "--out", out, "--shadows", 44, "--pictures=none", "--json")
    assert one_line(outcome).startswith("models were added after there was a result: what one guess per model proves")
    extended = json.loads(outcome.stdout)
    assert extended["shadow_models"]["trained"] == 44
    assert extended["plan"]["model"]["hidden"] == 8
    assert extended["graph"]["source"] == str(graph_path)
    fewer = run_wrong("audit", "--out", out, "--shadows", 40, "--pictures=none")
    assert "holds results of 44 shadow models" in fewer


def test_a_release_is_added_to_kept_weights_without_training(
    graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, added = tmp_path / "whole", tmp_path / "added"
    command = ("audit", graph_path, *FAST, "--shadows", 16, "--pictures=none", "--json", "--release", "clean")
    more = ("--release", "rounded", "--release", "label-only")
    from_the_start = run_well(*command, *more, "--keep-weights", "--out", whole)
    run_well(*command, "--keep-weights", "--out", added)

    ask = NativeEngine._train_and_ask

    def ask_trained(self: NativeEngine, batch: Any, repeat: int, *others: Any, **arrays: Any) -> None:
        assert not np.isnan(batch.weights[repeat]).any()
        ask(self, batch, repeat, *others, **arrays)

    monkeypatch.setattr(NativeEngine, "_train_and_ask", ask_trained)
    summaries = [json.loads(printed) for printed in (from_the_start, run_well(*command, *more, "--out", added))]
    for summary in summaries:
        del summary["timings"]
    assert summaries[0] == summaries[1]
    for part in ("shadows", "counts", "posteriors"):
        assert contents(whole / part) == contents(added / part)
        assert contents(whole / part)


def test_damaged_results_are_made_again(graph_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    settings = ("audit", graph_path, *FAST, "--shadows", 16, "--pictures=none", "--out", out)
    run_well(*settings)
    before = contents(out)
    (out / "nodes.parquet").unlink()
    (out / "counts" / "full+none_clean_weak.parquet").write_bytes(b"nonsense")
    assert "is missing or damaged: run bmpaudit estimate again" in run_wrong("nodes", out)
    run_well(*settings)
    after = contents(out)
    assert after.keys() == before.keys()
    for name in ("nodes.parquet", "counts/full+none_clean_weak.parquet"):
        assert after[name] == before[name]


def test_the_steps_give_what_audit_gives(graph_path: Path, tmp_path: Path) -> None:
    whole, steps = tmp_path / "whole", tmp_path / "steps"
    plan = tmp_path / "audit.toml"
    run_well("plan", "init", plan, "--graph", graph_path, *FAST, "--shadows", 20)
    run_well("audit", "--plan", plan, "--pictures=none", "--out", whole)

    sampled = json.loads(run_well("sample", "--plan", plan, "--out", steps, "--json"))
    assert sampled == {"folder": str(steps), "num_samples": 20, "prior_prob": {"min": 0.4, "max": 0.4}}
    assert "20 samples in" in run_well("sample", "--plan", plan, "--out", steps)
    run_well("train", "--out", steps)
    assert "run bmpaudit attack" in run_wrong("estimate", steps)
    attacked = json.loads(run_well("attack", steps, "--json"))
    assert set(attacked) == set(summary_of(whole)["variants"])
    printed = run_well("attack", steps)
    assert "full+none_clean_strong: " in printed
    assert "leakage found" in printed
    level = summary_of(whole)["releases"]["clean"]["proof"]["epsilon_right"]["level"]
    assert f"clean release: proven with {confidence(level)} confidence each, one guess per model" in printed
    assert "run bmpaudit estimate" in run_wrong("report", steps)
    run_well("estimate", steps)
    assert run_well("report", steps, "--pictures=none").strip() == str(steps / "report.html")
    summary, expected = summary_of(steps), summary_of(whole)
    assert summary.pop("timings").keys() <= expected.pop("timings").keys()
    assert summary == expected


def own_runs(graph: Path, out: Path) -> Path:
    """Models trained elsewhere, on the samples of an audit folder."""
    run_well("sample", graph, *FAST[10:], "--shadows", 30, "--out", out)
    with np.load(out / "memberships.npz") as archive:
        memberships = archive["memberships"]
    margins = np.random.default_rng(0).normal(size=memberships.shape) + 2 * memberships
    path = out.parent / "runs.npz"
    np.savez(path, memberships=memberships, full_clean=margins)
    return path


def test_models_trained_elsewhere(graph_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "own"
    runs = own_runs(graph_path, out)
    assert "no such file" in run_wrong("attack", out, "--runs", tmp_path / "nowhere.npz")
    assert "has no shadow models yet: run bmpaudit train" in run_wrong("attack", out)
    rows = json.loads(run_well("attack", out, "--runs", runs, "--json"))
    assert set(rows) == {"full_clean_strong", "full_clean_weak"}
    assert rows["full_clean_weak"]["auc"] > 0.8
    plan = plan_of(out)
    assert (plan.shadows, str(plan.model)) == (30, "trained elsewhere")
    # They are in the folder now: later steps find them there, and nothing is trained in their place.
    runs.unlink()
    assert "trained elsewhere" in run_well("estimate", out)
    run_well("report", out, "--pictures=none")
    finished = summary_of(out)
    assert json.loads(run_well("audit", "--out", out, "--pictures=none", "--json")) == finished
    assert "trained elsewhere" in run_wrong("audit", graph_path, *FAST, "--out", out)
    assert "bmpaudit cannot train more of them" in run_wrong("audit", "--out", out, "--shadows", 40)
    assert summary_of(out) == finished


def test_memberships_that_do_not_fit_the_sampler_are_refused(graph_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "own"
    own_runs(graph_path, out)
    before = contents(out)
    memberships = np.random.default_rng(1).random((30, 40)) < 0.8
    np.savez(tmp_path / "misfit.npz", memberships=memberships, full_clean=memberships * 2.0)
    message = run_wrong("attack", out, "--runs", tmp_path / "misfit.npz")
    assert message.startswith("the memberships do not fit the sampler")
    assert "--allow-misfit" in message
    assert contents(out).keys() - {"priors.parquet"} == before.keys() - {"priors.parquet"}
    run_well("attack", out, "--runs", tmp_path / "misfit.npz", "--allow-misfit")
    assert "The memberships do not fit the sampler" in " ".join(run_well("estimate", out).split())


def test_an_audit_of_models_trained_elsewhere_needs_them_first(tmp_path: Path) -> None:
    for name in ("audit", "train"):
        message = run_wrong(name, "demo", "--model", "elsewhere", "--out", tmp_path / "new")
        assert message == (
            "models trained elsewhere have to be imported: run bmpaudit sample, train on these samples, then run "
            "bmpaudit attack --runs"
        )
        assert not (tmp_path / "new").exists()


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("bmpaudit.cli.audit"), "DEMO_SHADOWS", 20)
    # All pictures would take longer than the audit.
    monkeypatch.setattr("bmpaudit.report.plots.AuditPlots.names", lambda _: ["posteriors"])
    monkeypatch.setattr(datasets, "load", {"demo": small_graph()}.__getitem__)
    monkeypatch.chdir(tmp_path)
    printed = run_well("demo", "--quiet")
    assert printed.splitlines()[0] == "demo, Snowball 25 %, GCN"
    assert "page: bmpaudit-demo/report.html" in printed.splitlines()
    assert (tmp_path / "bmpaudit-demo" / "figures" / "posteriors.pdf").exists()
    assert json.loads(run_well("demo", "--json"))["shadow_models"]["trained"] == 20


def test_until_width(graph_path: Path, tmp_path: Path) -> None:
    settings = ("audit", graph_path, *FAST, "--shadows", 20, "--pictures=none", "--json", "--out", tmp_path / "audit")
    outcome = run_here(*settings, "--until-width", 99)
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["shadow_models"]["trained"] == 20
    assert outcome.stderr.startswith("bmpaudit: the 90 % interval of bmp-r is ")
    assert run_wrong(*settings, "--until-width", 0) == "until_width must be positive, got until_width=0.0"


# Where plans and graphs come from


def plan_of(folder: Path) -> Any:
    return read_plan(folder / "plan.toml").plan


def test_options_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(
        'graph = "demo"\nshadows = 30\n[sampler]\nname = "snowball"\nfan_out = 3\n'
        '[model]\nname = "gat"\nheads = 2\n[training]\nepochs = 5\n[decision]\nprior_draws = 100\n'
    )
    settings = ("sample", "--plan", path)
    run_well(*settings, "--shadows", 9, "--epochs", 6, "--fan-out", 4, "--out", tmp_path / "a")
    plan = plan_of(tmp_path / "a")
    assert (plan.shadows, plan.training.epochs, plan.model.heads) == (9, 6, 2)
    assert plan.sampler == Snowball(0.25, fan_out=4)
    # Settings of another sampler or model say nothing about this one.
    run_well(*settings, "--shadows", 9, "--sampler", "uniform", "--model", "gcn", "--out", tmp_path / "b")
    assert plan_of(tmp_path / "b").sampler == Uniform(0.25)
    assert plan_of(tmp_path / "b").model.hidden == 16
    run_well(*settings, "--shadows", 9, "--sampler", "snowball", "--out", tmp_path / "c")
    assert plan_of(tmp_path / "c").sampler == Snowball(0.25, fan_out=3)


def test_the_default_sampler_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text('graph = "demo"\nshadows = 9\n[sampler]\ntrain_fraction = 0.5\n')
    run_well("sample", "--plan", path, "--sampler", "uniform", "--out", tmp_path / "a")
    assert plan_of(tmp_path / "a").sampler == Uniform(0.5)


def test_settings_of_listed_parts(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text('graph = "demo"\nshadows = 9\n[views]\nreleases = ["noisy"]\n')
    run_well("sample", "--plan", path, "--noise-std", 0.5, "--out", tmp_path / "a")
    assert [release.noise_std for release in plan_of(tmp_path / "a").releases] == [0.5]
    run_well("sample", "demo", "--shadows", 9, "--noise-std", 0.5, "--out", tmp_path / "b")
    assert [type(release).__name__ for release in plan_of(tmp_path / "b").releases] == ["Clean", "NoisyLastLayer"]
    message = run_wrong("sample", "demo", "--release", "clean", "--noise-std", 0.5, "--out", tmp_path / "c")
    assert message == "none of the releases (clean) takes noise_std"


def test_any_key_can_be_set(tmp_path: Path) -> None:
    settings = ("--set", "shadows=9", "--set", "sampler.fan_out = 3", "--set", "views.releases=['clean']")
    run_well("sample", "demo", "--sampler", "snowball", "--prior-draws", 100, *settings, "--out", tmp_path / "a")
    plan = plan_of(tmp_path / "a")
    assert (plan.shadows, plan.sampler.fan_out, len(plan.releases)) == (9, 3, 1)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("shadows", "--set takes KEY=VALUE, got 'shadows'"),
        ("=3", "--set takes KEY=VALUE, got '=3'"),
        ("shadow=3", "unknown key shadow; allowed here: graph, shadows, "),
        ("sampler.size=3", "unknown key sampler.size; allowed in [sampler]: name, train_fraction"),
        ("sampler=uniform", "--set sampler: it is a section of the plan, set one of its keys"),
        ("shadows.number=9", "--set shadows.number: shadows is a value, not a section"),
        ("shadows=many", "shadows must be an integer, got 'many'"),
    ],
)
def test_what_cannot_be_set(tmp_path: Path, assignment: str, message: str) -> None:
    arguments = ("sample", "demo", "--shadows", 9, "--set", assignment, "--out", tmp_path / "new")
    assert run_wrong(*arguments).startswith(message)
    assert not (tmp_path / "new").exists()


def test_random_walks_follow_from_the_train_fraction(tmp_path: Path) -> None:
    walk = ("sample", "demo", "--shadows", 9, "--prior-draws", 100, "--sampler", "random-walk")
    run_well(*walk, "--train-fraction", 0.3, "--walk-length", 4, "--out", tmp_path / "a")
    assert plan_of(tmp_path / "a").sampler == RandomWalk(0.3, walk_length=4)
    run_well("sample", "--plan", tmp_path / "a" / "plan.toml", "--train-fraction", 0.2, "--out", tmp_path / "b")
    assert plan_of(tmp_path / "b").sampler == RandomWalk(0.2, walk_length=4)
    assert "train_fraction must be in (0, 1)" in run_wrong(*walk, "--train-fraction", 2, "--out", tmp_path / "c")


def test_a_folder_is_good_from_everywhere(graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_well("train", "mine.npz", *TRAINING, "--shadows", 8, "--out", "audit")
    # Of that name there may be one in the folder of an audit, but this one is the user's.
    graph_path.rename(tmp_path / "graph.npz")
    run_well("train", "graph.npz", *TRAINING, "--shadows", 8, "--out", "other")
    monkeypatch.chdir("/")
    assert read_plan(tmp_path / "other" / "plan.toml").graph == str(tmp_path / "graph.npz")
    run_well("attack", tmp_path / "other")


def test_an_audit_of_a_graph_from_python_can_be_extended(tmp_path: Path) -> None:
    plan = AuditPlan(shadows=8, training=Training(epochs=2), definitions="bmp-r")
    audit(small_graph(), plan, folder=tmp_path / "a", pictures="none")
    summary = json.loads(run_well("train", "--out", tmp_path / "a", "--shadows", 9, "--json"))
    assert summary["num_models"] == 9
    assert read_plan(tmp_path / "a" / "plan.toml").graph == "graph.npz"


def test_graph_of_a_function_in_the_current_folder(
    graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cli_graphs.py").write_text(
        f"from bmpaudit import datasets\n\ndef mine():\n    return datasets.load({str(graph_path)!r})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "cli_graphs", raising=False)
    run_well("sample", "cli_graphs:mine", "--shadows", 9, "--out", "a")
    assert read_plan(tmp_path / "a" / "plan.toml").graph == "cli_graphs:mine"
    message = run_wrong("sample", "cli_graphs:other", "--shadows", 9, "--out", "b")
    assert message == "cli_graphs:other: AttributeError: module 'cli_graphs' has no attribute 'other'"


# Wrong use


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit",), "Missing option '--out'."),
        (("audit", "--out", "new"), "GRAPH is missing: name one, or a --plan that has one, or the --out of an audit"),
        (("audit", "nowhere", "--out", "new"), "no data set, archive or folder 'nowhere'"),
        (("audit", "nowhere.npz", "--out", "new"), "nowhere.npz"),
        (
            ("audit", "demo", "--plan", "nowhere.toml", "--out", "new"),
            "nowhere.toml: no such file; `bmpaudit plan init` writes one",
        ),
        (("audit", "demo", "--plan", "wrong.toml", "--out", "new"), "wrong.toml: unknown key shadow; allowed here: "),
        (("audit", "demo", "--plan", "broken.toml", "--out", "new"), "broken.toml: damaged or not a TOML file: "),
        (("audit", "demo", "--plan", "binary.toml", "--out", "new"), "binary.toml: damaged or not a TOML file: "),
        (("audit", "demo", "--shadows", 5, "--out", "new"), "shadows must be greater than or equal to 8, got 5"),
        (("audit", "demo", "--heads", 5, "--out", "new"), "--heads is for --model gat, got --model gcn"),
        (
            ("audit", "demo", "--fan-out", 5, "--out", "new"),
            "--fan-out is for --sampler snowball, got --sampler uniform",
        ),
        (("audit", "demo", "--sampler", "snowbal", "--out", "new"), "sampler must be one of uniform, snowball, "),
        (("audit", "demo", "--definition", "dp", "--out", "new"), "definition must be one of bmp, bmp-r, "),
        (
            ("audit", "demo", "--engine", "jax", "--out", "new"),
            "engine must be one of native, torch, sklearn, or module:Name",
        ),
        (
            ("audit", "demo", "--threads", 0, "--out", "new"),
            "Invalid value for '--threads': 0 is not in the range",
        ),
        (("audit", "demo", "--out", "foreign"), "foreign holds files that are not an audit's; use a new folder"),
        (("audit", "demo", "--out", "wrong.toml"), "Invalid value for '--out': Directory 'wrong.toml' is a file."),
        (("attack", "foreign"), "foreign is not an audit folder: it has no plan.toml"),
        (("attack", "nowhere"), "nowhere is not an audit folder: it has no plan.toml"),
        (("report", "nowhere"), "nowhere is not an audit folder: it has no plan.toml"),
        (("nodes", "nowhere"), "nowhere is not an audit folder: it has no plan.toml"),
        (("estimate", "foreign"), "foreign is not an audit folder: it has no plan.toml"),
        (("demo", "--out", "foreign"), "foreign holds files that are not an audit's; use a new folder"),
    ],
)
def test_wrong_use_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text("shadow = 3\n")
    (tmp_path / "broken.toml").write_text("shadows 3\n")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter.txt").write_text("dear")
    assert run_wrong(*arguments).startswith(message)
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["letter.txt"]


def test_another_plan_is_refused(graph_path: Path, tmp_path: Path) -> None:
    settings = ("train", graph_path, *TRAINING, "--shadows", 8, "--out", tmp_path / "audit")
    run_well(*settings)
    before = contents(tmp_path / "audit")
    assert run_wrong(*settings, "--seed", 3).endswith("holds shadow models with seed 0; this plan has seed 3")
    assert contents(tmp_path / "audit") == before


def test_debug_shows_where_an_error_came_from(tmp_path: Path) -> None:
    outcome = run_here("--debug", "attack", tmp_path)
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("Traceback (most recent call last):\n")
    assert outcome.stderr.endswith(f"bmpaudit: {tmp_path} is not an audit folder: it has no plan.toml\n")
    assert "Traceback" not in run_here("attack", tmp_path).stderr


def test_failures_have_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bmpaudit.pipeline.pipeline.draw_memberships", fill)
    message = run_wrong("sample", "demo", "--shadows", 9, "--out", tmp_path / "a", exit_code=1)
    assert message.endswith(
        "memberships.npz: No space left on device: make room and run the same command again, which goes on from here"
    )


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = run_wrong("sample", "demo", "--shadows", 9, "--out", tmp_path / "file" / "a", exit_code=1)
    assert message == f"{tmp_path / 'file' / 'a'}: Not a directory"


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    paths = [path]
    context = click.Context(group)
    for name in group.list_commands(context):
        child = group.get_command(context, name)
        paths += every_command(child, (*path, name)) if isinstance(child, click.Group) else [(*path, name)]
    return paths


@pytest.mark.parametrize("path", [path for path in every_command(cli.cli) if path[:1] != ("reproduce",)], ids=" ".join)
def test_help_has_an_example(path: tuple[str, ...]) -> None:
    printed = run_well(*path, "-h")
    usage, _, rest = printed.partition("\n")
    assert usage.startswith("Usage: ")
    assert f"  {' '.join(('bmpaudit', *path))}" in rest


def test_datasets_are_not_taken_for_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    run_well("sample", "demo", "--shadows", 9, "--out", "a")
    assert read_plan(tmp_path / "a" / "plan.toml").graph == "demo"
    assert datasets.load("demo").num_nodes == 1000
