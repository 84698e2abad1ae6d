"""An audit on disk that was damaged, or is not one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_audit import (
    QUIET,
    contents,
    leaky_graph,
    run_audit,
    run_step,
    small_plan,
    summary_of,
    times,
    tiny_plan,
    without_timings,
)

from bmpaudit.auditing.context import Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.util.errors import DataError, InputError


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("attack.json", "estimate"),
        ("priors.parquet", "estimate"),
        ("counts/full_clean_strong.parquet", "estimate"),
        ("counts/half.parquet", "estimate"),
        ("proof/clean.npz", "estimate"),
        ("summary.json", "report"),
        ("posteriors/full_clean_weak_mp.npz", "report"),
        ("graph.npz", "report"),
        ("plan.toml", "report"),
        ("nodes.parquet", "report"),
        ("manifest.json", "report"),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"{}", b"nonsense"])
def test_damage_is_reported_in_one_line(
    finished: Path, tmp_path: Path, name: str, step: str, content: bytes | None
) -> None:
    path = tmp_path / "copied"
    shutil.copytree(finished, path, ignore=shutil.ignore_patterns("figures", "report.html"))
    if content is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content)
    if (name, content) == ("plan.toml", b""):  # which would be the default plan
        (path / name).write_bytes(b"shadows = 0")
    readers: list[Callable[[], Any]] = [lambda: run_step(path, step), lambda: Audit.load(path)]
    if name == "graph.npz":
        readers[1] = lambda: Audit.load(path).graph
    for read in readers:
        with pytest.raises(InputError) as wrong:
            read()
        assert str(path) in str(wrong.value)
        assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("damage", ["removed", "changed"])
@pytest.mark.parametrize(
    "name",
    [
        *("graph.npz", "priors.parquet", "attack.json", "counts/none_clean_weak.parquet", "summary.json"),
        *(
            "counts/half.parquet",
            "proof/clean.npz",
            "nodes.parquet",
            "posteriors/full_clean_weak_mp.npz",
            "report.html",
        ),
        *("tables.tex", "figures/roc.pdf", "figures/posteriors.png"),
    ],
)
def test_the_next_run_restores_what_was_lost(copied: Path, finished: Path, name: str, damage: str) -> None:
    path, expected = copied / name, contents(finished)
    path.unlink() if damage == "removed" else path.write_bytes(b"nonsense")
    result = run_audit(copied, pictures=name.startswith("figures"))
    assert without_timings(result.summary) == without_timings(summary_of(finished))
    after = contents(copied)
    with_dates = ("summary.json", "report.html", "graph.npz", "figures/")
    if name.startswith(with_dates):
        assert path.stat().st_size > 1000
    else:
        assert after[name] == expected[name]
    assert Audit.load(copied).graph.content_hash == leaky_graph().content_hash


def test_a_folder_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"format": 1}')
    (tmp_path / "plan.toml").write_text("")
    with pytest.raises(DataError, match="was made by an earlier version of bmpaudit: use a new folder"):
        Audit.load(tmp_path)
    assert summary_of(tmp_path) == {"format": 1}


def test_without_its_manifest_everything_but_the_models_is_made_again(copied: Path, finished: Path) -> None:
    (copied / "manifest.json").unlink()
    with pytest.raises(DataError, match="has no estimate step yet"):
        Audit.load(copied)
    result = run_audit(copied)
    assert without_timings(result.summary) == without_timings(summary_of(finished))


def test_a_lock_alone_is_no_foreign_file(tmp_path: Path) -> None:
    """A process that was killed before it wrote anything leaves the lock, and perhaps a half-written file."""
    for name in (".lock", ".manifest.partial-abcd1234.json"):
        (tmp_path / name).touch()
    run_audit(tmp_path, tiny_plan())
    assert Audit.load(tmp_path).plan == tiny_plan()
    assert not (tmp_path / ".manifest.partial-abcd1234.json").exists()


def test_sampling_again_leaves_a_finished_audit_alone(tmp_path: Path) -> None:
    subject, workspace = Subject(leaky_graph(), "", small_plan()), Workspace(tmp_path)
    first = Pipeline(subject, workspace, QUIET)
    with first.prepared():
        first.sample()
        first.report(pictures="none")
    before = times(tmp_path)
    again = Pipeline(subject, workspace, QUIET)
    with again.prepared():
        again.sample()
    assert times(tmp_path) == before
