"""How long it takes until something happens: an import, a help text, the demo with each of its parts.

python benchmarks/start_up.py [--turns 9] [--no-demo]

Each command runs in a new process, in turn with `python -c pass`, whose time is in each of them. Processor time says
what a command costs, the clock how long one waits; medians of all turns.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.cli.audit import DEMO_SHADOWS
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan

PROGRAM = "import sys; sys.argv[0] = 'bmpaudit'; from bmpaudit.cli import main; main()"
COMMANDS = {
    "python -c pass": ["pass"],
    "import bmpaudit": ["import bmpaudit"],
    "bmpaudit --help": [PROGRAM, "--help"],
    "bmpaudit audit --help": [PROGRAM, "audit", "--help"],
}


def spent(arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time, of one process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_start_up(turns: int) -> None:
    """Prints every command beside an empty program."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(turns):
        for name, arguments in COMMANDS.items():
            measured[name].append(spent(arguments))
    empty = statistics.median(processor for _, processor in measured["python -c pass"])
    for name, values in measured.items():
        clock, processor = (statistics.median(each) for each in zip(*values, strict=True))
        print(f"{name:<22} {clock:.3f} s by the clock, {processor:.3f} s of processor time, {processor / empty:.1f}x")


def print_demo() -> None:
    """Prints what `bmpaudit demo` spends its time on, from a new process to the page."""
    with tempfile.TemporaryDirectory() as folder:
        clock, processor = spent([PROGRAM, "demo", "--quiet", "--out", str(Path(folder) / "command")])
        start = time.perf_counter()
        subject = Subject(datasets.load("demo"), "demo", AuditPlan(sampler="snowball", shadows=DEMO_SHADOWS))
        pipeline = Pipeline(subject, Workspace(Path(folder) / "steps"), Runtime(quiet=True))
        with pipeline.prepared():
            pipeline.report()
        steps = time.perf_counter() - start
    parts = pipeline.timings | {"files and the rest": steps - sum(pipeline.timings.values())}
    print(f"bmpaudit demo, {os.cpu_count()} cores: {clock:.1f} s by the clock, {processor:.1f} s of processor time")
    for name, seconds in parts.items():
        print(f"  {name:<20} {seconds:.2f} s")


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--no-demo", action="store_true", help="only imports and help texts")
    arguments = parser.parse_args()
    print_start_up(arguments.turns)
    if not arguments.no_demo:
        print_demo()


if __name__ == "__main__":
    main()
