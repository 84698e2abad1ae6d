"""The command line in this process, as the installed script runs it."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import pytest

from bmpaudit import cli


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    stdout: str
    stderr: str


class Command:
    """Runs it, and tells what was printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> Outcome:
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["bmpaudit", *map(str, arguments)])
            patch.setattr(warnings, "showwarning", warnings.showwarning)  # which main() replaces
            with pytest.raises(SystemExit) as exit_:
                cli.main()
        captured = self.capsys.readouterr()
        return Outcome(int(exit_.value.code or 0), captured.out, captured.err)

    def well(self, *arguments: object) -> str:
        outcome = self(*arguments)
        assert (outcome.exit_code, outcome.stderr) == (0, "")
        return outcome.stdout

    def wrong(self, *arguments: object, exit_code: int = 2) -> str:
        """What is told of a wrong use: one line."""
        outcome = self(*arguments)
        assert (outcome.exit_code, outcome.stdout) == (exit_code, "")
        assert outcome.stderr.startswith("bmpaudit: ")
        assert outcome.stderr.count("\n") == 1
        return outcome.stderr.removeprefix("bmpaudit: ").rstrip("\n")
