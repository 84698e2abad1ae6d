"""Opening somebody's plan or audit folder runs none of their code unless it is trusted on the command line."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from command_line import FAST, one_line, run_here, run_script, run_well, run_wrong
from small_graph import small_graph

from bmpaudit.models import MLP, Training
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.registry import KINDS

# Writes a file when it is imported, and has a part of every kind.
PAYLOAD = """\
from dataclasses import dataclass
from pathlib import Path

from bmpaudit import datasets
from bmpaudit.attack.gaussian import Gaussian
from bmpaudit.attack.rules import Weak
from bmpaudit.estimation.definitions import BMPRight
from bmpaudit.samplers import Uniform
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.releases import label_margin
from bmpaudit.models import MLP
from bmpaudit.releases import FullEdges
from bmpaudit.releases import Clean

Path({marker!r}).write_text("the payload ran")


def graph():
    return datasets.load({graph!r})


class Sampler(Uniform): pass
class Model(MLP): pass
class Engine(NativeEngine): pass
class Release(Clean): pass
class Query(FullEdges): pass
def statistic(outputs, labels): return label_margin(outputs, labels)
class Attack(Gaussian): pass
class Rule(Weak): pass
class Definition(BMPRight): pass
"""
NAMES = {kind: f"payload:{kind.capitalize()}" for kind in KINDS} | {"statistic": "payload:statistic"}
# Where a part of each kind stands in a plan file.
PLACES: dict[str, tuple[str, ...]] = {
    "graph": ("graph",),
    "sampler": ("sampler", "name"),
    "model": ("model", "name"),
    "engine": ("engine",),
    "release": ("views", "releases"),
    "query": ("views", "queries"),
    "statistic": ("views", "statistic"),
    "attack": ("attack", "name"),
    "rule": ("decision", "rules"),
    "definition": ("estimation", "definitions"),
}
LISTS = ("release", "query", "rule", "definition")


class Payload:
    """A module in the current folder that leaves a trace when it is imported."""

    def __init__(self, folder: Path) -> None:
        self.marker = folder / "ran.txt"
        small_graph().to_npz(folder / "payload.npz")
        source = PAYLOAD.format(marker=str(self.marker), graph=str(folder / "payload.npz"))
        (folder / "payload.py").write_text(source)

    def has_run(self) -> bool:
        """Whether it was imported since this was last asked."""
        has_run = self.marker.exists()
        self.marker.unlink(missing_ok=True)
        sys.modules.pop("payload", None)
        return has_run


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Payload:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sys.modules.pop("payload", None)
    return Payload(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished audit of built-in parts."""
    folder = tmp_path_factory.mktemp("finished") / "audit"
    audit(
        small_graph(),
        folder=folder,
        pictures="none",
        model=MLP(hidden=4, dropout=0.0),
        training=Training(epochs=3),
        shadows=16,
        definitions=("bmp-r",),
    )
    return folder


def put(table: dict[str, Any], kind: str) -> dict[str, Any]:
    """A plan in which one part is the payload's."""
    *sections, key = PLACES[kind]
    inner = table
    for section in sections:
        inner = inner.setdefault(section, {})
    name = "payload:graph" if kind == "graph" else NAMES[kind]
    inner[key] = [name] if kind in LISTS else name
    return table


def received_plan(kind: str, path: Path) -> Path:
    table: dict[str, Any] = {"graph": "demo", "shadows": 8, "model": {"name": "mlp"}, "training": {"epochs": 1}}
    path.write_text(tomli_w.dumps(put(table, kind)))
    return path


def received_folder(kind: str, finished: Path, path: Path) -> Path:
    """Somebody's audit folder, whose plan names the payload."""
    shutil.copytree(finished, path)
    (path / ".lock").unlink(missing_ok=True)
    table = put(tomllib.loads((path / "plan.toml").read_text()), kind)
    if kind == "graph":  # without the copy of the graph, it would have to be made
        (path / "graph.npz").unlink()
        manifest = json.loads((path / "manifest.json").read_text())
        del manifest["stages"]["graph"]
        (path / "manifest.json").write_text(json.dumps(manifest))
    (path / "plan.toml").write_text(tomli_w.dumps(table))
    return path


ON_A_PLAN = [
    ("audit", "--plan", "PLAN", "--out", "new"),
    ("train", "--plan", "PLAN", "--out", "new"),
    ("train", "--cost", "--plan", "PLAN", "--out", "new"),
    ("sample", "--plan", "PLAN", "--out", "new"),
    ("plan", "init", "new", "--plan", "PLAN"),
    ("plan", "check", "PLAN"),
    ("plan", "cost", "PLAN"),
]
ON_A_FOLDER = [
    ("audit", "--out", "DIR"),
    ("train", "--out", "DIR"),
    ("sample", "--out", "DIR"),
    ("attack", "DIR"),
    ("estimate", "DIR"),
    ("report", "DIR", "--pictures=none"),
    ("nodes", "DIR"),
    ("compare", "DIR", "OTHER"),
    ("audit", "--plan", "DIR/plan.toml", "--out", "new"),
    ("audit", "GRAPH", *FAST, "--shadows", 8, "--out", "DIR"),
    ("demo", "--out", "DIR"),
]


def arguments(template: tuple[object, ...], **values: object) -> list[str]:
    words = []
    for word in map(str, template):
        for name, value in values.items():
            word = word.replace(name, str(value))
        words.append(word)
    return words


@pytest.mark.parametrize("kind", PLACES)
def test_a_plan_file_runs_no_code_unasked(kind: str, payload: Payload, tmp_path: Path) -> None:
    plan = received_plan(kind, tmp_path / "theirs.toml")
    for template in ON_A_PLAN:
        outcome = run_here(*arguments(template, PLAN=plan))
        assert not payload.has_run(), template
        assert outcome.exit_code == (0 if template[:2] == ("plan", "check") else 2), template
        assert one_line(outcome).startswith(f"the {kind} 'payload:")
        assert "--trust-code runs the module 'payload'" in outcome.stderr, template
        assert not (tmp_path / "new").exists(), template


@pytest.mark.parametrize("kind", PLACES)
def test_an_audit_folder_runs_no_code_unasked(kind: str, payload: Payload, finished: Path, tmp_path: Path) -> None:
    for number, template in enumerate(ON_A_FOLDER):
        folder = received_folder(kind, finished, tmp_path / str(number))
        outcome = run_here(*arguments(template, DIR=folder, OTHER=finished, GRAPH=tmp_path / "payload.npz"))
        assert not payload.has_run(), template
        assert outcome.exit_code in (0, 2)
        if outcome.exit_code == 2:
            one_line(outcome)


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("template", [("audit", "--out", "DIR"), ("train", "--out", "DIR"), ("sample", "--out", "DIR")])
def test_a_folder_s_code_is_named_in_the_message(
    template: tuple[str, ...], kind: str, payload: Payload, finished: Path, tmp_path: Path
) -> None:
    folder = received_folder(kind, finished, tmp_path / "theirs")
    message = run_wrong(*arguments(template, DIR=folder))
    assert message.startswith(f"the {kind} 'payload:")
    assert "--trust-code runs the module 'payload'" in message
    assert not payload.has_run()


@pytest.mark.parametrize(
    "template", [("attack", "DIR"), ("estimate", "DIR"), ("report", "DIR"), ("plan", "cost", "DIR/plan.toml")]
)
def test_a_graph_of_code_is_named_in_the_message(
    template: tuple[str, ...], payload: Payload, finished: Path, tmp_path: Path
) -> None:
    folder = received_folder("graph", finished, tmp_path / "theirs")
    message = run_wrong(*arguments(template, DIR=folder))
    assert message.startswith("the graph 'payload:graph' is code that a file names: --trust-code runs the module")
    assert not payload.has_run()


@pytest.mark.parametrize("kind", PLACES)
def test_trusted_code_of_a_plan_runs(kind: str, payload: Payload, tmp_path: Path) -> None:
    plan = received_plan(kind, tmp_path / "theirs.toml")
    small: tuple[object, ...] = ("--shadows", 8, "--prior-draws", 100, "--pictures=none")
    if kind != "definition":
        small = (*small, "--definition", "bmp-r")
    if kind != "graph":
        small = (tmp_path / "payload.npz", *small)
    run_well("audit", *small, "--plan", plan, "--trust-code", "--out", "new", "--quiet")
    assert payload.has_run()
    # What was made with it can be read without it, and made again with it.
    run_well("nodes", "new")
    run_well("compare", "new", "new", "--definition", "definition" if kind == "definition" else "bmp-r")
    run_well("report", "new", "--pictures=none")
    assert not payload.has_run()
    for step in (("attack", "new"), ("estimate", "new"), ("report", "new"), ("audit", "--out", "new")):
        pictures = ("--pictures=none",) if step[0] in ("report", "audit") else ()
        run_well(*step, *pictures, "--trust-code")


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "graph"])
def test_code_on_the_command_line_needs_no_flag(kind: str, payload: Payload) -> None:
    small = ("--shadows", 8, "--model", "mlp", "--epochs", 1, "--definition", "bmp-r")
    run_well("audit", "payload:graph", *small, f"--{kind}", NAMES[kind], "--pictures=none", "--out", "new", "--quiet")
    assert payload.has_run()
    # The folder is a file like any other.
    assert run_here("audit", "--out", "new", "--shadows", 9).exit_code == 2
    assert not payload.has_run()


def test_priors_runs_only_what_the_command_line_names(payload: Payload) -> None:
    run_well("priors", "payload.npz", "--sampler", "payload:Sampler", "--draws", 50)
    assert payload.has_run()
    run_well("priors", "payload:graph", "--sampler", "uniform")
    assert payload.has_run()


def test_an_option_takes_the_place_of_a_file_s_code(payload: Payload, tmp_path: Path) -> None:
    plan = received_plan("sampler", tmp_path / "theirs.toml")
    run_well("sample", "--plan", plan, "--sampler", "uniform", "--out", "new")
    assert not payload.has_run()


def test_naming_a_model_does_not_trust_the_file_s_training_of_it(payload: Payload, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def net(num_features, num_classes):\n    raise SystemExit\n")
    plan = tmp_path / "theirs.toml"
    plan.write_text('graph = "demo"\nengine = "torch"\n[model]\nname = "mine:net"\ntrain = "payload:graph"\n')
    message = run_wrong("train", "--plan", plan, "--model", "mine:net", "--out", "new")
    assert "--trust-code runs the module 'payload'" in message
    assert not payload.has_run()


def test_files_that_are_named_like_libraries_are_not_run(payload: Payload, tmp_path: Path) -> None:
    for name in ("torch", "torch_geometric", "zarr", "scipy", "bmpaudit"):
        (tmp_path / f"{name}.py").write_text((tmp_path / "payload.py").read_text())
    small = ("--epochs", 1, "--shadows", 8, "--out", "new")
    outcome = run_script("train", "payload.npz", "--engine", "torch", *small, cwd=tmp_path)
    assert outcome.exit_code == 0, outcome.stderr
    assert not payload.has_run()
