"""The command line, in this process and as the installed script, and something small to audit with it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from bmpaudit import cli

# What the installed script does: -P keeps the current folder from being searched for modules.
SCRIPT = (sys.executable, "-P", "-c", "from bmpaudit.cli import main; main()")

# Few models that learn by heart, two definitions with one parameter.
TRAINING = (
    "--model",
    "mlp",
    "--hidden",
    8,
    "--dropout",
    0,
    "--epochs",
    15,
    "--learning-rate",
    0.1,
    "--release-as",
    "scores",
)
FAST = (*TRAINING, *("--train-fraction", 0.4, "--definition", "bmp-r", "--definition", "mp"))


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    stdout: str
    stderr: str


def run_here(*arguments: object) -> Outcome:
    """Runs the command line in this process, which is quicker."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["bmpaudit", *map(str, arguments)]),
        patch.object(warnings, "showwarning"),  # which main() replaces
        redirect_stdout(stdout),
        redirect_stderr(stderr),
        pytest.raises(SystemExit) as exit_,
    ):
        cli.main()
    return Outcome(int(exit_.value.code or 0), stdout.getvalue(), stderr.getvalue())


def run_well(*arguments: object) -> str:
    """What a command prints that succeeds without a message."""
    outcome = run_here(*arguments)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    return outcome.stdout


def run_wrong(*arguments: object, exit_code: int = 2) -> str:
    """The one line that a command prints which fails."""
    outcome = run_here(*arguments)
    assert (outcome.exit_code, outcome.stdout) == (exit_code, "")
    return one_line(outcome)


def run_script(*arguments: object, **settings: Any) -> Outcome:
    """Runs the command line in a process of its own."""
    done = subprocess.run([*SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False, **settings)
    return Outcome(done.returncode, done.stdout, done.stderr)


def start_script(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
    """Starts the command line in a process of its own."""
    command = [*SCRIPT, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)


def one_line(outcome: Outcome) -> str:
    """The only line on stderr, without the name of the program."""
    assert outcome.stderr.startswith("bmpaudit: ")
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr.removeprefix("bmpaudit: ").rstrip("\n")


def contents(folder: Path) -> dict[str, bytes]:
    """What is in each file of a folder, but for its lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def environment(**variables: str) -> dict[str, str]:
    """The environment of this process with other variables."""
    return {**os.environ, **variables}
