"""What `make quick` leaves out is there, and what it runs can neither start a process nor import torch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONGEST, SLOW, TESTS

ROOT = TESTS.parent
QUICK_TESTS = """
import multiprocessing
import os
import subprocess
import sys

import pytest


def start():
    subprocess.run([sys.executable, "-c", ""])


def fork():
    os.fork()


def spawn():
    multiprocessing.get_context("spawn").Process(target=print).start()


def import_torch():
    import torch


@pytest.mark.parametrize("forbidden", [start, fork, spawn, import_torch])
def test_forbidden(forbidden):
    with pytest.raises(RuntimeError, match="a quick test must not (start a process|import torch)"):
        forbidden()


def test_allowed():
    import json
"""


@pytest.mark.parametrize("name", [*SLOW, *LONGEST])
def test_what_is_slow_exists(name: str) -> None:
    place, _, test = name.partition("::")
    assert (TESTS / place).exists()
    if test:
        assert f"def {test}(" in (TESTS / place).read_text()


def test_slow_places_are_named_once_and_in_order() -> None:
    assert sorted(set(SLOW)) == list(SLOW)
    assert not [name for name in SLOW if "/" in name and name.partition("/")[0] in SLOW]


@pytest.mark.parametrize("processes", [0, 1])
def test_a_quick_test_starts_no_process_and_imports_no_torch(tmp_path: Path, processes: int) -> None:
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_these.py").write_text(QUICK_TESTS)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "test_slow.py").write_text("raise AssertionError('is not imported')")
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *settings, "-m", "quick", "-n", str(processes), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
