"""Whichever write is the last before the process dies, nobody reads a wrong answer, and the next run is as if new."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audit import leaky_graph, run_audit, tiny_plan, without_timings

from bmpaudit.auditing.finished import Audit, read_nodes, read_runs
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.comparison.compare import compare
from bmpaudit.plan import AuditPlan
from bmpaudit.util.errors import DataError, InputError

FIRST = tiny_plan()
OTHERS = {
    "fresh": FIRST,
    "other estimates": tiny_plan(definitions=("mp", "bmp-l")),
    "other rule and more models": tiny_plan(rules="strong", shadows=12),
}


class Killed(BaseException):
    """Not even an exception that somebody catches."""


@contextmanager
def dying_at(number: int, patch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The process dies just before a file is replaced for the `number`th time, and cleans nothing up after that."""
    count = [0]
    replace, unlink = os.replace, os.unlink

    def dying_replace(*arguments: Any, **options: Any) -> None:
        count[0] += 1
        if count[0] >= number:
            raise Killed
        replace(*arguments, **options)

    def dying_unlink(*arguments: Any, **options: Any) -> None:
        if count[0] >= number:
            raise Killed
        unlink(*arguments, **options)

    with patch.context() as context:
        context.setattr(os, "replace", dying_replace)
        context.setattr(os, "unlink", dying_unlink)
        yield count


def is_the_answer_of(audit: Audit, expected: Audit) -> bool:
    return without_timings(audit.summary) == without_timings(expected.summary) and audit.headline == expected.headline


def assert_readers_refuse_or_agree(folder: Path, expected: list[Audit]) -> None:
    """Every way to read the folder gives the answer of one plan, or an error in one line."""
    other = {id(each): each for each in expected}
    readers: list[Callable[[], bool]] = [
        lambda: any(is_the_answer_of(Audit.load(folder), each) for each in other.values()),
        lambda: any(read_nodes(Workspace(folder)).equals(each.nodes.astype(read_nodes(Workspace(folder)).dtypes))
                    for each in other.values()),
        lambda: compare([folder, expected[0]], definition=next(iter(Audit.load(folder).plan.definitions_by_name)))
        .audits[0].audit.result.fingerprint in {each.summary["fingerprint"] for each in other.values()},
    ]  # fmt: skip
    for read in readers:
        message = refusal_of(read)
        assert "\n" not in message


def refusal_of(read: Callable[[], bool]) -> str:
    """The error of a reader that refuses; nothing if it reads, and is right."""
    try:
        assert read()
    except InputError as refusal:  # DataError is one too
        return str(refusal)
    return ""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Audit]:
    root = tmp_path_factory.mktemp("undisturbed")
    return {name: run_audit(root / name, plan) for name, plan in OTHERS.items()}


@pytest.mark.parametrize("name", list(OTHERS))
def test_dying_at_any_write(
    name: str, undisturbed: dict[str, Audit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = tmp_path / "finished"
    if name != "fresh":
        run_audit(finished, FIRST)
    plan, answers = OTHERS[name], [undisturbed["fresh"], undisturbed[name]]
    number, has_died = 0, True
    while has_died:
        number += 1
        folder = tmp_path / str(number)
        if finished.exists():
            shutil.copytree(finished, folder)
        with dying_at(number, monkeypatch) as count:
            has_died = run_until_death(folder, plan)
        assert has_died == (count[0] >= number)
        if folder.exists():
            assert_readers_refuse_or_agree(folder, answers)
        again = run_audit(folder, plan)
        assert_as_if_new(folder, again, undisturbed[name])
        shutil.rmtree(folder)
    assert number > 10


def run_until_death(folder: Path, plan: AuditPlan) -> bool:
    try:
        run_audit(folder, plan)
    except Killed:
        return True
    return False


def assert_as_if_new(folder: Path, again: Audit, expected: Audit) -> None:
    assert without_timings(again.summary) == without_timings(expected.summary)
    runs = read_runs(Workspace(folder), leaky_graph(), expected.plan)
    assert runs.memberships.tobytes() == expected.runs.memberships.tobytes()
    for view, statistics in expected.runs.statistics.items():
        assert runs.statistics[view].tobytes() == statistics.tobytes()
    loaded = Audit.load(folder)
    for variant, row in expected.estimates.posteriors.items():
        for definition, posterior in row.items():
            mine = loaded.estimates.posteriors[variant][definition]
            np.testing.assert_allclose(
                mine.quantile([0.05, 0.5, 0.95]), posterior.quantile([0.05, 0.5, 0.95]), atol=1e-9
            )
    leftovers = [path for path in folder.rglob("*") if ".partial" in path.name]
    assert leftovers == []


def test_a_reader_notices_that_the_folder_changes_under_its_hands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process replaces the audit after the checksums were verified and before the files are read."""
    run_audit(tmp_path, FIRST)
    read = Workspace.read

    def replaced_meanwhile(workspace: Workspace, name: str, reader: Any) -> Any:
        if name == "summary.json":
            monkeypatch.setattr(Workspace, "read", read)
            run_audit(tmp_path, OTHERS["other estimates"])
        return read(workspace, name, reader)

    monkeypatch.setattr(Workspace, "read", replaced_meanwhile)
    with pytest.raises(DataError, match="changed while it was read"):
        Audit.load(tmp_path)
    assert Audit.load(tmp_path).plan == OTHERS["other estimates"]
