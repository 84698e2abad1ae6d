"""The manifest vouches for whole stages only, whatever happens; nothing else is removed, and nothing through a link."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from bmpaudit.auditing.workspace import MANIFEST, Stamp, Workspace
from bmpaudit.util.errors import DataError, InputError

FIRST, SECOND = Stamp("plan 1", "graph", "models"), Stamp("plan 2", "graph", "models")


def writes(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text)

    return write


def fails(_: Path) -> None:
    raise RuntimeError("killed")


ATTACK = {"attack.json": writes("{}"), "counts/a.parquet": writes("a"), "counts/b.parquet": writes("b")}
ESTIMATE = {"summary.json": writes("{}"), "nodes.parquet": writes("nodes")}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "audit")
    with workspace.locked():
        workspace.publish("attack", FIRST, ATTACK)
        workspace.publish("estimate", FIRST, ESTIMATE)
    return workspace


def files(workspace: Workspace) -> set[str]:
    return {
        path.relative_to(workspace.path).as_posix()
        for path in workspace.path.rglob("*")
        if path.is_file() and path.name not in (MANIFEST, ".lock")
    }


def test_what_was_published_is_current_and_can_be_read(workspace: Workspace) -> None:
    assert workspace.is_current("attack", FIRST)
    assert workspace.is_current("estimate", FIRST)
    assert workspace.stamp("attack", "plan 1") == FIRST
    assert workspace.read("counts/a.parquet", Path.read_text) == "a"
    assert set(workspace.files("attack")) == set(ATTACK)


def test_another_plan_graph_model_build_or_code_is_not_current(workspace: Workspace) -> None:
    others = [
        SECOND,
        Stamp("plan 1", "other", "models"),
        Stamp("plan 1", "graph", "other"),
        Stamp("plan 1", "graph", "models", build="other"),
        Stamp("plan 1", "graph", "models", code={"my:Sampler": "hash"}),
    ]
    assert not any(workspace.is_current("attack", other) for other in others)
    # Who may not run the code takes what it made; who may, looks whether it is the same.
    workspace.publish("attack", Stamp("plan 1", "graph", "models", code={"my:Sampler": "hash"}), ATTACK)
    assert workspace.is_current("attack", FIRST)
    assert not workspace.is_current("attack", Stamp("plan 1", "graph", "models", code={}))
    with pytest.raises(DataError, match="made with another plan: run bmpaudit attack again"):
        workspace.stamp("attack", "plan 2")


@pytest.mark.parametrize("name", ["attack.json", "counts/a.parquet", "counts/b.parquet"])
@pytest.mark.parametrize("damage", ["changed", "removed"])
def test_a_file_that_is_not_as_it_was_written_is_noticed(workspace: Workspace, name: str, damage: str) -> None:
    path = workspace.path / name
    path.unlink() if damage == "removed" else path.write_text("other")
    assert not workspace.is_current("attack", FIRST)
    with pytest.raises(DataError, match=f"{name} is missing or damaged: run bmpaudit attack again"):
        workspace.stamp("attack")
    assert workspace.is_current("estimate", FIRST)


@pytest.mark.parametrize("failing", list(ATTACK))
def test_a_kill_while_a_stage_is_replaced_leaves_no_voucher(workspace: Workspace, failing: str) -> None:
    with pytest.raises(RuntimeError, match="killed"):
        workspace.publish("attack", SECOND, {**dict.fromkeys(ATTACK, writes("new")), failing: fails})
    for stage in ("attack", "estimate"):
        assert not workspace.has(stage)
    with pytest.raises(DataError, match="has no estimate step yet"):
        workspace.stamp("estimate")
    workspace.publish("attack", SECOND, {"attack.json": writes("again")})
    assert files(workspace) == {"attack.json"}  # what was left half replaced is gone too


def test_publishing_removes_what_it_replaces_and_later_stages_but_nothing_else(workspace: Workspace) -> None:
    own = workspace.path / "counts" / "my-notes.parquet"
    own.write_text("mine")
    (workspace.path / "thesis.tex").write_text("mine")
    workspace.publish("attack", SECOND, {"attack.json": writes("{}"), "counts/c.parquet": writes("c")})
    assert files(workspace) == {"attack.json", "counts/c.parquet", "counts/my-notes.parquet", "thesis.tex"}
    assert not workspace.has("estimate")


def test_earlier_stages_stay(workspace: Workspace) -> None:
    workspace.publish("estimate", SECOND, ESTIMATE)
    assert workspace.is_current("attack", FIRST)
    assert workspace.is_current("estimate", SECOND)


def test_nothing_is_written_or_removed_through_a_link(workspace: Workspace, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (workspace.path / "counts").rename(elsewhere)
    (elsewhere / "precious.parquet").write_text("mine")
    (workspace.path / "counts").symlink_to(elsewhere)
    with pytest.raises(DataError, match="counts is a link"), workspace.locked():
        pass
    with pytest.raises(DataError, match="counts is a link"):
        workspace.publish("attack", SECOND, {"attack.json": writes("{}")})
    assert sorted(path.name for path in elsewhere.iterdir()) == ["a.parquet", "b.parquet", "precious.parquet"]
    assert (elsewhere / "a.parquet").read_text() == "a"


@pytest.mark.parametrize(
    "name",
    ["../outside.txt", "/etc/passwd", "counts/../../outside.txt", "thesis.tex", "counts/deep/a.parquet", "counts"],
)
def test_a_manifest_that_lists_files_of_others_is_refused(workspace: Workspace, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.txt").write_text("mine")
    (workspace.path / "thesis.tex").write_text("mine")
    manifest = json.loads((workspace.path / MANIFEST).read_text())
    manifest["stages"]["attack"]["files"][name] = "0"
    (workspace.path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="is not a file of an audit's attack step"):
        workspace.publish("attack", SECOND, {"attack.json": writes("{}")})
    assert (tmp_path / "outside.txt").exists()
    assert (workspace.path / "thesis.tex").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', '{"format": 2, "stages": {"attack": 3}}'])
def test_a_damaged_manifest_is_told(workspace: Workspace, content: str) -> None:
    (workspace.path / MANIFEST).write_text(content)
    with pytest.raises(DataError, match=f"{MANIFEST}: damaged"):
        workspace.stamp("attack")


def test_a_manifest_of_another_format_is_told(workspace: Workspace) -> None:
    (workspace.path / MANIFEST).write_text('{"format": 99, "stages": {}}')
    with pytest.raises(DataError, match="format 99; this version of bmpaudit reads 2"):
        workspace.stamp("attack")


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds files that are not an audit's"), Workspace(tmp_path).locked():
        pass
    with pytest.raises(InputError, match="is a file, not a folder"), Workspace(tmp_path / "thesis.tex").locked():
        pass


def hold_lock(path: Path, is_held: multiprocessing.Event, may_go: multiprocessing.Event) -> None:  # type: ignore[valid-type]
    with Workspace(path).locked():
        is_held.set()  # type: ignore[attr-defined]
        may_go.wait(60)  # type: ignore[attr-defined]


def test_two_processes_cannot_write_at_once(workspace: Workspace) -> None:
    context = multiprocessing.get_context("spawn")
    is_held, may_go = context.Event(), context.Event()
    process = context.Process(target=hold_lock, args=(workspace.path, is_held, may_go))
    process.start()
    try:
        assert is_held.wait(60)
        with pytest.raises(InputError, match="in use by another process"), workspace.locked():
            pass
    finally:
        may_go.set()
        process.join(60)
    with workspace.locked():
        pass


def test_what_a_killed_process_left_half_written_is_cleared_away(workspace: Workspace) -> None:
    from bmpaudit.util.files import atomic_write

    context = atomic_write(workspace.path / "counts" / "z.parquet")
    temporary = context.__enter__()  # and never left
    assert temporary.exists()
    with workspace.locked():
        assert not temporary.exists()
    assert workspace.has("attack")
