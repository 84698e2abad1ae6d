"""`make reliability` runs: the two quickest checks with few repetitions, which leave the page as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
