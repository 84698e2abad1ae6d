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
    str(ROOT / folder) for folder in ("reliability", "examples", "tests", "tests/estimation", "tests/faults")
]

CHECKS = ("posteriors", "false_alarms", "bounds", "named_nodes", "kills", "fuzzing", "memory")
PAGE = ROOT / "docs" / "reliability.md"
OPENING = """# Reliability

What `make reliability` measured: the checks that are too long for the tests, each with its date, seed and time. The
tests hold shorter versions of all of them.
"""


def main() -> int:
    """Runs the checks and writes the page; sections of checks that were not run stay as they are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the repetitions, and nothing is written")
    parser.add_argument("--only", choices=CHECKS, action="append", help="this check only; may be given several times")
    parser.add_argument("--seed", type=int, default=1, help="random seed of all checks")
    options = parser.parse_args()
    sections = _sections(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
    failed = []
    for name in options.only or CHECKS:
        print(f"== {name}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        section = import_module(name).run(0.05 if options.quick else 1.0, options.seed)
        minutes = (time.perf_counter() - start) / 60
        verdict = "passed" if section.passed else "**failed**"
        date = datetime.now(UTC).date().isoformat()
        made = f"{date}, seed {options.seed}, {minutes:.1f} minutes: {verdict}."
        sections[section.title] = f"{section.text.strip()}\n\n{made}\n"
        print(f"{sections[section.title]}", flush=True)
        if not section.passed:
            failed.append(name)
    if not options.quick:
        body = "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())
        PAGE.write_text(OPENING + body, encoding="utf-8")
    return 1 if failed else 0


def _sections(page: str) -> dict[str, str]:
    """The sections of a page by title."""
    parts = [part.partition("\n\n") for part in page.split("\n## ")[1:]]
    return {title: text for title, _, text in parts}


if __name__ == "__main__":
    sys.exit(main())
