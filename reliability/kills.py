"""Stops at random moments: does every audit end with the same bytes?"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from faulty_audit import Commands
from section import Section, table
from small_graph import small_graph

from bmpaudit.util.progress import progress_bar

FEWEST_OF_ONE = 50  # kills of a single audit
SOON, LATER = 8.0, 1.15  # changes within which the first of these come, and how that grows
NUM_STOPS = 300  # of several audits, by all signals
SIGNALS = {"kill -9": signal.SIGKILL, "Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}
PHASES = {
    "graph, plan and manifest": ("graph", "plan", "manifest"),
    "training": ("shadows",),
    "priors and attack": ("priors", "counts", "attack"),
    "proof and exposure": ("proof",),
    "estimation": ("posteriors",),
    "report": ("nodes", "summary", "report", "tables"),
}
"""By the first word of the file that was about to be written."""


def run(scale: float, seed: int) -> Section:
    """One audit that is killed at least 50 times, and others that are stopped until they come to their end."""
    script, pipe = Path(__file__).parents[1] / "tests" / "faults" / "fork_server.py", subprocess.PIPE
    command = [sys.executable, str(script)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server,  # noqa: S603
    ):
        place = Path(folder)
        small_graph().to_npz(place / "mine.npz")
        undisturbed = Commands(server, place / "undisturbed", place / "mine.npz")
        total = undisturbed.audit("--pictures", "none").changes
        expected = undisturbed.answer()
        kills, is_same = _kill_one(undisturbed.elsewhere(place / "one"), expected, seed)
        rows, passed = [], is_same and kills.total() >= FEWEST_OF_ONE and all(kills[phase] for phase in PHASES)
        for name, number in SIGNALS.items():
            wanted = int(NUM_STOPS * scale) // len(SIGNALS)
            stops, audits, same = _stop_several(undisturbed, place, number, wanted, total, expected, seed)
            passed &= same == audits
            rows.append([name, f"{stops:,}", audits, same])
        assert server.stdin is not None  # noqa: S101
        server.stdin.close()
    of_one = table(
        ["kill -9 of one audit", *PHASES, "all"], [["times", *(kills[phase] for phase in PHASES), kills.total()]]
    )
    head = ["stopped by", "stops", "audits", "same bytes as undisturbed, nothing half written"]
    text = f"""An audit of 100 models changes its folder {total:,} times. It is stopped just before one of these, chosen
at random, and started again, until it comes to its end. One audit is killed in every phase, at least {FEWEST_OF_ONE}
times in all, and {"ends with the same bytes as undisturbed" if is_same else "**does not end with the same bytes**"}:

{of_one}

Several others, each stopped by one kind of signal:

{table(head, rows)}"""
    return Section(text, passed)


def _kill_one(commands: Commands, expected: dict[str, bytes], seed: int) -> tuple[Counter[str], bool]:
    """How often an audit was killed in each phase before it came to its end, and whether that has the same bytes."""
    rng, kills, latest = np.random.default_rng([seed, FEWEST_OF_ONE]), Counter[str](), SOON
    with progress_bar("kills of one audit", FEWEST_OF_ONE) as progress:
        # Soon after each start, and later and later until the next phase is reached.
        while (
            end := commands.audit("--pictures", "none", number=signal.SIGKILL, at=int(rng.integers(1, int(latest))))
        ).code:
            phase = _phase(end.last)
            latest = latest * LATER if phase in kills else SOON
            kills[phase] += 1
            progress(min(kills.total(), FEWEST_OF_ONE))
    return kills, commands.answer() == expected and not commands.leftovers()


def _phase(path: str) -> str:
    """The phase that a file is of."""
    words = re.findall(r"[a-z]+", path)
    return next(name for name, files in PHASES.items() if words[0] in files)


def _stop_several(
    undisturbed: Commands,
    place: Path,
    number: signal.Signals,
    wanted: int,
    total: int,
    expected: dict[str, bytes],
    seed: int,
) -> tuple[int, int, int]:
    """Stops, audits, and how many of these ended as they have to."""
    rng, stops, audits, same = np.random.default_rng([seed, number]), 0, 0, 0
    with progress_bar(number.name, wanted) as progress:
        while stops < wanted:
            commands, audits = undisturbed.elsewhere(place / f"{number}-{audits}"), audits + 1
            # Often soon, sometimes late: until it comes to its end.
            while commands.audit(
                "--pictures", "none", number=number, at=int(np.exp(rng.uniform(0, np.log(total))))
            ).code:
                stops += 1
                progress(min(stops, wanted))
            same += commands.answer() == expected and not commands.leftovers()
    return stops, audits, same
