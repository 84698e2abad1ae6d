"""Damaged and hostile files of every kind, for minutes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from section import Section

MINUTES = 5


def run(scale: float, seed: int) -> Section:
    """What `scripts/fuzz.py` prints."""
    script = Path(__file__).parents[1] / "scripts" / "fuzz.py"
    command = [sys.executable, str(script), "--minutes", str(MINUTES * scale), "--seed", str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    lines = "\n".join(f"    {line}" for line in done.stdout.splitlines())
    text = f"""`python scripts/fuzz.py` damages whole files and folders at random, in bytes and in structure, and lets
everything read them that can. Anything but a result or an error of one line is a failure: a traceback, more than 20
seconds, more than 8 GB.

{lines}"""
    return Section(text, done.returncode == 0)
