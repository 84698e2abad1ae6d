"""What is too long for the tests: every check with thousands of repetitions, written to docs/reliability.md.

make reliability        or        python reliability [--quick] [--only NAME] [--seed N]

Each check is one file here, whose `run` prints progress and returns a `Section`. What it measures is written down as it
came out, also if it failed; the command then ends with exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [
    str(ROOT / folder)
    for folder in ("reliability", "examples", "tests", "tests/estimation", "tests/faults", "tests/proof")
]

CHECKS = {
    "posteriors": "Posteriors: simulation-based calibration",
    "false_alarms": "Permutation test: false alarms",
    "bounds": "Proven bounds: validity",
    "named_nodes": "Exposure: calibration",
    "exposure_coverage": "Exposure: coverage",
    "gates": "Gates: recipes that exceed them",
    "kills": "Stops at random moments",
    "fuzzing": "Damaged and hostile input",
    "memory": "Memory of a long run",
}
"""Files here, and the headings of their sections in the order of the page."""

PAGE = ROOT / "docs" / "reliability.md"
OPENING = """# Reliability

What `make reliability` measured: the checks that are too long for the tests, each with its date, seed and time. The
tests hold shorter versions of all of them.
"""


def main() -> int:
    """Runs the checks and writes the page; sections of checks that were not run stay as they are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the repetitions, and nothing is written")
    parser.add_argument(
        "--only", choices=list(CHECKS), action="append", help="this check only; may be given several times"
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed of all checks")
    options = parser.parse_args()
    failed = False
    for name in options.only or CHECKS:
        print(f"== {name}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        section = import_module(name).run(0.05 if options.quick else 1.0, options.seed)
        minutes = (time.perf_counter() - start) / 60
        verdict = "passed" if section.passed else "**failed**"
        made = f"{datetime.now(UTC).date().isoformat()}, seed {options.seed}, {minutes:.1f} minutes: {verdict}."
        text = f"{section.text.strip()}\n\n{made}\n"
        print(text, flush=True)
        failed |= not section.passed
        if not options.quick:
            _write(CHECKS[name], text)
    return int(failed)


def _write(title: str, text: str) -> None:
    """Puts a section onto the page as soon as there is one: the next check may take long, or be stopped."""
    sections = _sections(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "") | {title: text}
    ordered = [f"\n## {each}\n\n{sections[each]}" for each in CHECKS.values() if each in sections]
    PAGE.write_text(OPENING + "".join(ordered), encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    """The sections of a page by title."""
    parts = [part.partition("\n\n") for part in page.split("\n## ")[1:]]
    return {title: text.rstrip("\n") + "\n" for title, _, text in parts}


if __name__ == "__main__":
    sys.exit(main())
