"""Whatever happens to an audit, nothing finished is lost, and going on leads to the very same bytes."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from faulty_audit import TRAINING, Commands, End
from small_graph import small_graph

Undisturbed = tuple[End, dict[str, bytes]]

NUM_KILLS = 50
PHASES = {"shadows", "counts", "posteriors"}  # files of training, attack and estimation


@pytest.fixture(scope="session")
def server() -> Iterator[subprocess.Popen[str]]:
    script, pipe = Path(__file__).with_name("fork_server.py"), subprocess.PIPE
    with subprocess.Popen([sys.executable, str(script)], stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="session")
def graph_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "mine.npz"
    small_graph().to_npz(path)
    return path


@pytest.fixture
def commands(server: subprocess.Popen[str], graph_path: Path, tmp_path: Path) -> Commands:
    return Commands(server, tmp_path / "audit", graph_path)


@pytest.fixture(scope="session")
def undisturbed(
    server: subprocess.Popen[str], graph_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Undisturbed:
    """An audit that nothing happened to: how it ended and what it left."""
    commands = Commands(server, tmp_path_factory.mktemp("undisturbed") / "audit", graph_path)
    end = commands.audit("--pictures", "none")
    assert (end.code, commands.leftovers()) == (0, []), end.printed
    return end, commands.answer()


def finish(commands: Commands, undisturbed: Undisturbed) -> None:
    """Goes on without faults, to the same bytes as if nothing had happened."""
    end = commands.audit("--pictures", "none")
    assert end.code == 0, end.printed
    assert commands.leftovers() == []
    assert commands.answer() == undisturbed[1]


def moments(undisturbed: Undisturbed, count: int) -> list[int]:
    """Changes of the folder, from the first to the last."""
    return [int(at) for at in np.linspace(1, undisturbed[0].changes - 3, count)]


def test_fifty_kills_of_one_audit(commands: Commands, undisturbed: Undisturbed) -> None:
    """Just before some change of the folder, chosen at random: often soon, sometimes late enough to get on."""
    rng = np.random.default_rng(1)
    for kill in range(NUM_KILLS):
        at = int(rng.integers(1, 60 if kill % 3 == 0 else 8))
        end = commands.audit("--pictures", "none", number=signal.SIGKILL, at=at)
        assert end.code == -signal.SIGKILL, (kill, end)
    finish(commands, undisturbed)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_stopped_in_every_phase(number: signal.Signals, commands: Commands, undisturbed: Undisturbed) -> None:
    ends = []
    is_ctrl_c = number == signal.SIGINT
    for at in moments(undisturbed, 14 if is_ctrl_c else 7):
        stopped = commands.elsewhere(commands.folder.with_name(f"audit{at}"))
        ends.append(end := stopped.audit("--pictures", "none", number=number, at=at))
        if number == signal.SIGKILL:
            assert end.code == -number
        else:
            assert (end.code, end.printed.strip()) == (128 + number, "bmpaudit: stopped"), (at, end)
            assert stopped.leftovers() == [], at
        finish(stopped, undisturbed)
    if is_ctrl_c:
        assert {re.match(r"\W*(\w*)", end.last)[1] for end in ends} >= PHASES  # type: ignore[index]


def test_a_stopped_range_leaves_nothing_half_written(commands: Commands, undisturbed: Undisturbed) -> None:
    whole = commands.elsewhere(commands.folder.with_name("whole"))
    arguments = ("train", whole.graph, *TRAINING, "--range", "0:64", "--out", whole.folder)
    unhindered = whole.run(*arguments)
    assert unhindered.code == 0, unhindered.printed
    for at in np.linspace(1, unhindered.changes - 3, 9).astype(int).tolist():
        stopped = commands.elsewhere(commands.folder.with_name(f"range{at}"))
        end = stopped.run(*arguments[:-1], stopped.folder, number=signal.SIGINT, at=at)
        assert (end.code, end.printed.strip()) == (130, "bmpaudit: stopped"), (at, end)
        assert stopped.leftovers() == [], at
    finish(stopped, undisturbed)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_a_folder_that_takes_no_more(error: int, commands: Commands, undisturbed: Undisturbed) -> None:
    for at in moments(undisturbed, 6):
        full = commands.elsewhere(commands.folder.with_name(f"audit{at}"))
        end = full.audit("--pictures", "none", errno=error, at=at)
        advice = ": make room and run the same command again, which goes on from here" if error == errno.ENOSPC else ""
        assert end.code == 1
        assert end.printed.startswith(f"bmpaudit: {full.folder}/")
        assert end.printed.endswith(f": {os.strerror(error)}{advice}\n")
        assert end.printed.count("\n") == 1
        assert full.leftovers() == []
        finish(full, undisturbed)


@pytest.mark.parametrize("largest", [300, 1_000, 3_000, 20_000])
def test_a_disk_that_is_full_in_the_middle_of_a_file(
    largest: int, commands: Commands, undisturbed: Undisturbed
) -> None:
    end = commands.audit("--pictures", "none", largest=largest)
    assert end.code == 1
    assert "partial" not in end.printed
    assert end.printed.startswith(f"bmpaudit: {commands.folder}/")
    assert end.printed.endswith(": File too large: make room and run the same command again, which goes on from here\n")
    assert commands.leftovers() == []
    finish(commands, undisturbed)


def test_a_clock_that_goes_backwards(commands: Commands, undisturbed: Undisturbed) -> None:
    end = commands.audit("--pictures", "none", clock="backwards")
    assert end.code == 0, end.printed
    assert commands.answer() == undisturbed[1]
