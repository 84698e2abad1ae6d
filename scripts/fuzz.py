"""Fuzzes everything that reads files, for some minutes: make fuzz, or python scripts/fuzz.py --minutes 10 --seed 1.

Each input is a whole file or folder (tests/fuzz/targets.py) that is damaged at random, byte by byte or in its structure
(tests/fuzz/mutations.py), and then read by all that reads it. Only bmpaudit's own errors may come out, within seconds.
Where atheris is installed, the parsers are also fuzzed with coverage feedback, each in a process of its own. Prints the
inputs tried and the failures by kind, and exits 1 after a failure; what failed is kept in a folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

SCRIPT = Path(__file__).resolve()
sys.path.insert(0, str(SCRIPT.parents[1] / "tests" / "fuzz"))

MOST_SECONDS = 20
MOST_BYTES = 2**33
GUIDED = ("count tables", "plan files", "graph archives", "posteriors", "released models", "content files")
"""Kinds whose single files a coverage-guided fuzzer can make up."""


class TooSlow(Exception):  # noqa: N818 - it is what happened
    """Reading took longer than an input of a few kilobytes can need."""


def _on_alarm(_: int, __: FrameType | None) -> None:
    raise TooSlow(f"more than {MOST_SECONDS} s")


def fuzz_at_random(minutes: float, seed: int, kinds: list[str], kept: Path) -> tuple[Counter[str], Counter[str]]:
    """Damages and reads files of all kinds in turn.

    Returns:
        Inputs tried and failures, by kind.
    """
    from targets import TARGETS, attempt

    signal.signal(signal.SIGALRM, _on_alarm)
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="bmpaudit-fuzz-") as name:
        folder = Path(name)
        for kind in kinds:
            (folder / kind).mkdir()
            TARGETS[kind].make(folder / kind)
        end = time.monotonic() + 60 * minutes
        number = 0
        while time.monotonic() < end:
            for kind in kinds:
                until = min(end, time.monotonic() + 1)  # a second for each kind in turn
                while time.monotonic() < until:
                    number += 1
                    tried[kind] += 1
                    signal.alarm(MOST_SECONDS)
                    try:
                        attempt(TARGETS[kind], folder / kind, folder / "scratch", random.Random(f"{seed} {number}"))  # noqa: S311
                    except Exception:
                        failed[kind] += 1
                        _keep(kept, kind, folder / "scratch", failed[kind])
                    finally:
                        signal.alarm(0)
    return tried, failed


def _keep(kept: Path, kind: str, scratch: Path, number: int) -> None:
    """Keeps an input that failed, and says where in the code."""
    text = traceback.format_exc()
    print(f"{kind}: {text.splitlines()[-1]}", file=sys.stderr, flush=True)
    if number <= 20:
        target = kept / f"{kind} {number}"
        shutil.copytree(scratch, target, dirs_exist_ok=True)
        (target / "traceback.txt").write_text(text)


def fuzz_guided(kind: str, seconds: int, seed: int) -> int:
    """Fuzzes one kind with coverage feedback, in a process of its own; its exit code says whether it failed."""
    command = [sys.executable, str(SCRIPT), "--guided", kind, "--seed", str(seed), "--minutes", str(seconds / 60)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - this very script
    runs = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("Done ")]
    print(f"  {kind:<20} {int(runs[0]) if runs else 0:>10,} inputs with coverage feedback, exit code {done.returncode}")
    if done.returncode:
        print("\n".join(done.stderr.splitlines()[-40:]), file=sys.stderr)
    return done.returncode


def _run_guided(kind: str, minutes: float, seed: int) -> None:
    """What that process does: atheris writes each input over one file after another, and everything reads them."""
    import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]

    with atheris.instrument_imports(include=["bmpaudit", "zipfile", "tomllib", "json"]):
        from targets import TARGETS

    folder = Path(tempfile.mkdtemp(prefix="bmpaudit-fuzz-"))
    TARGETS[kind].make(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    corpus = Path(tempfile.mkdtemp(prefix="bmpaudit-corpus-"))
    whole = {path: path.read_bytes() for path in files}
    for number, content in enumerate(whole.values()):
        (corpus / str(number)).write_bytes(content)

    def read(content: bytes) -> None:
        for path in files:
            path.write_bytes(content)
            TARGETS[kind].read(folder)
            path.write_bytes(whole[path])

    options = [
        f"-max_total_time={round(60 * minutes)}",
        f"-seed={seed}",
        f"-timeout={MOST_SECONDS}",
        "-rss_limit_mb=4096",
    ]
    atheris.Setup([sys.argv[0], *options, "-max_len=65536", f"-artifact_prefix={corpus}/", str(corpus)], read)
    atheris.Fuzz()


def main() -> int:
    """Runs both fuzzers."""
    from targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="How long, in all.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=list(TARGETS), help="Fuzz only this kind; can be repeated.")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="Folder for inputs that failed.")
    parser.add_argument("--guided", choices=GUIDED, help=argparse.SUPPRESS)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))  # rather an error than a machine without memory
    if options.guided:
        _run_guided(options.guided, options.minutes, options.seed)
        return 0
    kinds = options.kind or list(TARGETS)
    guided = [kind for kind in GUIDED if kind in kinds] if importlib.util.find_spec("atheris") else []
    share = 0.5 if guided else 1.0
    print(f"seed {options.seed}, {options.minutes:g} minutes, {'with' if guided else 'without'} atheris")
    tried, failed = fuzz_at_random(share * options.minutes, options.seed, kinds, options.keep)
    for kind in kinds:
        print(f"  {kind:<20} {tried[kind]:>10,} inputs, {failed[kind]} failures")
    print(f"  {'all':<20} {tried.total():>10,} inputs, {failed.total()} failures")
    seconds = round(60 * (1 - share) * options.minutes / max(len(guided), 1))
    crashed = [kind for kind in guided if fuzz_guided(kind, max(seconds, 1), options.seed)]
    if failed or crashed:
        print(f"failures: see {options.keep}" if failed else f"failures: {', '.join(crashed)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
