"""`make reliability` runs: the two quickest checks with few repetitions, which leave the page as it is."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_checks_run_and_say_how_it_went() -> None:
    page = (ROOT / "docs" / "reliability.md").read_bytes()
    command = [sys.executable, "reliability", "--quick", "--only", "memory", "--only", "bounds"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1,000 tiny GCNs in one process" in done.stdout
    assert "| worst case | epsilon_right, anytime, stopped when highest | 250 |" in done.stdout
    assert done.stdout.count("minutes: passed.") == 2
    assert (ROOT / "docs" / "reliability.md").read_bytes() == page


def test_named_nodes_of_an_audit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "reliability")
    check = import_module("named_nodes")
    monkeypatch.setattr(check, "SETTINGS", (("demo", "uniform"),))
    section = check.run(0.05, 1)
    assert section.passed
    assert "| demo, uniform | noisy | 40 |" in section.text
