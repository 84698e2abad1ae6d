"""An audit on disk, one step after the other."""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from small_audit import (
    always_the_first,
    contents,
    leaky_graph,
    page_texts,
    pipeline,
    run_audit,
    run_step,
    small_plan,
    start,
    summary_of,
    times,
    without_timings,
)

from bmpaudit.attack import Gaussian
from bmpaudit.auditing.finished import Audit, read_nodes, stored_subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.report import page_data as report_step
from bmpaudit.util.errors import DataError


def test_steps_give_what_the_whole_gives(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "steps"
    start("sample", path, small_plan())
    runs = run_step(path, "train")
    with np.load(path / "memberships.npz") as archive:
        np.testing.assert_array_equal(archive["memberships"], runs.memberships)
    run_step(path, "attack")
    assert not (path / "summary.json").exists()
    run_step(path, "estimate")
    assert run_step(path, "report") == path / "report.html"
    summary, expected = summary_of(path), summary_of(finished)
    # A graph given as an object has no source; once on disk it has.
    assert (expected["graph"].pop("source"), summary["graph"].pop("source")) == ("", "graph.npz")
    assert (expected["plan"].pop("graph"), summary["plan"].pop("graph")) == ("", "graph.npz")
    assert without_timings(summary) == without_timings(expected)
    names = ("counts", "posteriors", "nodes.parquet", "priors.parquet", "tables.md", "tables.tex", "attack.json")
    mine, theirs = contents(path), contents(finished)
    for name in theirs:
        if name.startswith(names):
            assert mine[name] == theirs[name], name


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("module", "function"),
    [("auditing.stages", "run_attacks"), ("auditing.stages", "run_estimates"), ("report.page_data", "render_page")],
)
def test_a_stopped_audit_resumes(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, function: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(import_module(f"bmpaudit.{module}"), function, stop)
        with pytest.raises(KeyboardInterrupt):
            run_audit(tmp_path)
    assert not (tmp_path / "report.html").exists()
    kept = {name: time for name, time in times(tmp_path).items() if name.startswith("shadows")}
    assert without_timings(run_audit(tmp_path).summary) == without_timings(summary_of(finished))
    assert {name: times(tmp_path)[name] for name in kept} == kept
    assert (tmp_path / "report.html").exists()


def test_a_page_of_fewer_models_does_not_stay(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the new summary and before the new page."""
    with monkeypatch.context() as patch:
        patch.setattr(report_step, "render_page", stop)
        with pytest.raises(KeyboardInterrupt):
            run_audit(copied, small_plan(shadows=44))
    assert not (copied / "report.html").exists()
    run_audit(copied, small_plan(shadows=44))
    assert "44, 0 failed" in page_texts(copied)


def test_steps_refuse_what_is_of_other_models(copied: Path) -> None:
    start("train", copied, small_plan(shadows=44))
    for step, message in (("estimate", "attack"), ("report", "attack")):
        with pytest.raises(DataError, match=f"its attack step was made with another plan: run bmpaudit {message}"):
            run_step(copied, step)
    for read in (Audit.load, lambda path: read_nodes(Workspace(path))):
        with pytest.raises(DataError, match="its estimate step was made with another plan: run bmpaudit estimate"):
            read(copied)
    run_step(copied, "attack")
    with pytest.raises(DataError, match="has no estimate step yet: run bmpaudit estimate"):
        run_step(copied, "report")
    run_step(copied, "estimate")
    run_step(copied, "report")


def test_steps_refuse_models_that_were_exchanged(copied: Path, tmp_path: Path) -> None:
    """Whole, of the same plan by every name, but not the models that were attacked."""
    other = tmp_path / "other"
    run_audit(other, small_plan(sampler=always_the_first, prior_draws=50))
    for name in ("shadows", "shadows.json"):
        target = copied / name
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        source = other / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    text = (copied / "shadows.json").read_text()
    described = small_plan().shadow_plan.describe(leaky_graph())
    (copied / "shadows.json").write_text(json.dumps({**json.loads(text), "sampler": described["sampler"]}))
    for step in ("estimate", "report"):
        with pytest.raises(DataError, match="was made from another graph or other shadow models: run bmpaudit attack"):
            run_step(copied, step)
    with pytest.raises(DataError, match="its results are of other shadow models: run bmpaudit attack again"):
        Audit.load(copied).runs  # noqa: B018


def test_steps_that_come_too_early_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not an audit folder: it has no plan.toml"):
        stored_subject(Workspace(tmp_path))
    start("sample", tmp_path, small_plan())
    with pytest.raises(DataError, match="has no shadow models yet: run bmpaudit train"):
        run_step(tmp_path, "attack")
    run_step(tmp_path, "train")
    for step, missing, command in (("estimate", "attack", "attack"), ("report", "attack", "attack")):
        with pytest.raises(DataError, match=f"has no {missing} step yet: run bmpaudit {command}"):
            run_step(tmp_path, step)
    with pytest.raises(DataError, match="has no estimate step yet: run bmpaudit estimate"):
        read_nodes(Workspace(tmp_path))
    steps = pipeline(tmp_path, small_plan(shadows=60), may_run=("attack",))
    with pytest.raises(DataError, match="has 40 of 60 shadow models: run bmpaudit train"), steps.prepared():
        steps.attacks  # noqa: B018


def test_settings_of_the_attack_count(copied: Path) -> None:
    steps = pipeline(copied, small_plan(attack=Gaussian(min_models=4)), may_run=("estimate",))
    with pytest.raises(DataError, match="its attack step was made with another plan"), steps.prepared():
        steps.audit  # noqa: B018
