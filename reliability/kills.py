"""Kills at random moments: does every audit end with the same bytes?"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from faulty_audit import Commands
from section import Section, table
from small_graph import small_graph

from bmpaudit.progress import progress_bar

NUM_KILLS = 600
SIGNALS = {"kill -9": signal.SIGKILL, "Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}


def run(scale: float, seed: int) -> Section:
    """Audits that are stopped again and again until they come to their end."""
    script, pipe = Path(__file__).parents[1] / "tests" / "faults" / "fork_server.py", subprocess.PIPE
    rows, passed = [], True
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
        for name, number in SIGNALS.items():
            rng, stops, audits, same = np.random.default_rng([seed, number]), 0, 0, 0
            wanted = int(NUM_KILLS * scale) // len(SIGNALS)
            with progress_bar(name, wanted) as progress:
                while stops < wanted:
                    commands, audits = undisturbed.elsewhere(place / f"{number}-{audits}"), audits + 1
                    # Often soon, sometimes late: until it comes to its end.
                    while commands.audit(
                        "--pictures", "none", number=number, at=int(np.exp(rng.uniform(0, np.log(total))))
                    ).code:
                        stops += 1
                        progress(min(stops, wanted))
                    same += commands.answer() == expected and not commands.leftovers()
            passed &= same == audits
            rows.append([name, f"{stops:,}", audits, same])
        assert server.stdin is not None  # noqa: S101
        server.stdin.close()
    head = ["stopped by", "stops", "audits", "same bytes as undisturbed, nothing half written"]
    text = f"""An audit of 100 models changes its folder {total:,} times. It is stopped just before one of these, chosen
at random, and started again, until it comes to its end.

{table(head, rows)}"""
    return Section("Stops at random moments", text, passed)
