"""Every part can be one's own: one file outside of the package, named `module:Name`, saved and read back."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit, read_nodes, stored_subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.comparison.compare import compare
from bmpaudit.graph.graph import Graph
from bmpaudit.pipeline.pipeline import Pipeline, audit
from bmpaudit.plan import AuditPlan
from bmpaudit.registry import UntrustedPart
from bmpaudit.report.page import data_of_page
from bmpaudit.util.errors import UntrustedCodeError

FOLDER = Path(__file__).parents[2] / "examples" / "extending"
QUIET = Runtime(quiet=True, num_threads=1)
SMALL: dict[str, Any] = {
    "shadows": 12,
    "model": {"name": "mlp", "hidden": 4, "dropout": 0.0},
    "training": {"epochs": 10, "learning_rate": 0.1},
    "queries": ["full"],
    "releases": ["clean"],
    "rules": ["weak"],
    "definitions": ["bmp-r"],
    "prior_draws": 300,
}


@dataclass(frozen=True)
class Example:
    """An example, and how a plan uses it.

    Attributes:
        file: Its only file.
        field: Field of the plan.
        settings: What the plan says otherwise.
        title: What it is called in titles, or in the summary.
    """

    file: str
    field: str
    settings: dict[str, Any]
    title: str
    steps: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py")


EXAMPLES = [
    Example(
        "ego_sampler.py",
        "sampler",
        {"sampler": {"name": "ego_sampler:EgoNetworks", "num_egos": 8}},
        "EgoNetworks",
        ("train",),
    ),
    Example(
        "sage_model.py", "model", {"model": "sage_model:Sage", "engine": "torch", "shadows": 8}, "Sage", ("train",)
    ),
    Example(
        "capped_release.py", "releases", {"releases": ["clean", "capped_release:Capped"]}, "capped-0.9", ("train",)
    ),
    Example("offline_attack.py", "attack", {"attack": "offline_attack:Offline"}, "offline_attack:Offline", ("attack",)),
    Example(
        "ratio_definition.py",
        "definitions",
        {"definitions": ["ratio_definition:RatioBMP", "bmp-r"]},
        "ratiobmp-2.0",
        ("estimate",),
    ),
]


@pytest.fixture(params=EXAMPLES, ids=lambda example: example.module)
def example(request: pytest.FixtureRequest) -> Example:
    found = request.param
    assert isinstance(found, Example)
    if found.field == "model":
        pytest.importorskip("torch_geometric")
    return found


@pytest.fixture(autouse=True)
def folder_of_examples(monkeypatch: pytest.MonkeyPatch, example: Example) -> Iterator[None]:
    """The examples are found in the current folder, as on the command line."""
    monkeypatch.chdir(FOLDER)
    sys.modules.pop(example.module, None)
    yield
    sys.modules.pop(example.module, None)


def small_graph() -> Graph:
    rng = np.random.default_rng(3)
    pairs = np.unique(np.sort(rng.integers(0, 38, size=(60, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return Graph.from_edges(pairs, np.eye(40, dtype=np.float32), np.arange(40) % 3)


def run(path: Path, plan: AuditPlan) -> Audit:
    return audit(small_graph(), plan, folder=path, pictures="none", runtime=QUIET)


def step(path: Path, name: str, *, trust_code: bool) -> Any:
    workspace = Workspace(path)
    pipeline = Pipeline(stored_subject(workspace, trust_code=trust_code), workspace, QUIET, may_run=(name,))
    with pipeline.prepared():
        if name == "report":
            return pipeline.report(pictures="none")
        return pipeline.findings if name == "attack" else pipeline.audit


def shown_on_page(path: Path) -> str:
    return str(data_of_page((path / "report.html").read_text(encoding="utf-8")))


def test_an_example_is_one_file_outside_of_the_package(example: Example) -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == {each.file for each in EXAMPLES}
    source = (FOLDER / example.file).read_text()
    tops = {
        (node.module or "").partition(".")[0]
        if isinstance(node, ast.ImportFrom)
        else node.names[0].name.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert tops.isdisjoint(each.module for each in EXAMPLES)  # nor of each other
    package = Path(importlib.import_module("bmpaudit").__file__ or "").parent
    mentions = [path for path in package.rglob("*.py") if example.module in path.read_text()]
    assert mentions == []
    assert "bmpaudit audit" in source  # how to use it
    assert len(source.splitlines()) < 50


def test_an_example_is_saved_and_read_back_with_its_code(example: Example, tmp_path: Path) -> None:
    plan = AuditPlan(**SMALL | example.settings)
    result = run(tmp_path / "audit", plan)
    where = f"{example.module}:"
    assert where in (tmp_path / "audit" / "plan.toml").read_text()
    assert where in shown_on_page(tmp_path / "audit")
    shown = f"{result.title} {result.summary['variants']} {result.summary['plan']}"
    assert example.title in shown
    loaded = Audit.load(tmp_path / "audit", trust_code=True)
    assert loaded.plan == plan
    assert (loaded.headline, loaded.summary) == (result.headline, result.summary)
    for name in ("attack", "estimate"):
        (tmp_path / "audit" / {"attack": "attack.json", "estimate": "summary.json"}[name]).unlink()
        step(tmp_path / "audit", name, trust_code=True)
        if name == "attack":
            step(tmp_path / "audit", "estimate", trust_code=True)
    assert step(tmp_path / "audit", "report", trust_code=True) == tmp_path / "audit" / "report.html"
    assert Audit.load(tmp_path / "audit").headline == result.headline
    more = run(tmp_path / "audit", plan.replace(shadows=plan.shadows + 4))
    first = result.runs.statistics["full_clean"]
    assert more.runs.statistics["full_clean"][: len(first)].tobytes() == first.tobytes()


def test_an_example_is_read_back_where_its_code_is_not(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(tmp_path / "audit", AuditPlan(**SMALL | example.settings))
    plain = run(tmp_path / "plain", AuditPlan(**SMALL))
    del sys.modules[example.module]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(example.module)
    loaded = Audit.load(tmp_path / "audit")
    assert (loaded.title, loaded.headline, loaded.summary) == (result.title, result.headline, result.summary)
    value = getattr(loaded.plan, example.field)
    assert any(isinstance(part, UntrustedPart) for part in (value if isinstance(value, tuple) else (value,)))
    np.testing.assert_array_equal(loaded.runs.memberships, result.runs.memberships)
    assert len(read_nodes(Workspace(tmp_path / "audit"))) == 40
    definition = next(iter(loaded.estimates.posteriors[loaded.attacks.main]))
    same = compare([tmp_path / "audit", result], definition)
    assert all(each.change.mean == 0 for each in same.differences[0].models)
    assert compare([tmp_path / "plain", tmp_path / "audit"], "bmp-r").to_dict()
    assert plain.title
    (tmp_path / "audit" / "report.html").unlink()
    step(tmp_path / "audit", "report", trust_code=False)
    assert f"{example.module}:" in shown_on_page(tmp_path / "audit")
    (tmp_path / "audit" / "summary.json").unlink()
    if "estimate" in example.steps:
        with pytest.raises(UntrustedCodeError, match=f"--trust-code runs the module '{example.module}'"):
            step(tmp_path / "audit", "estimate", trust_code=False)
    else:
        assert step(tmp_path / "audit", "estimate", trust_code=False).headline == result.headline
    with pytest.raises(Exception, match=f"No module named '{example.module}'"):
        step(tmp_path / "audit", "estimate", trust_code=True)
