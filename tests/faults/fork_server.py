"""Runs commands in processes of their own, one after another, and lets something happen to them.

A request is one line of JSON on stdin: `arguments` of the command, `folder` it writes to, `log` for what it prints, and
what happens: a signal (`number`) to the process just before its change number `at` of the folder; or an error (`errno`)
of every change from then on; or files that cannot grow beyond `largest` bytes; or a `clock` that goes backwards. The
answer is one line on stdout: the exit code, how many changes there were, and the file that the last one was about.
Forked processes share what was imported, so each takes a fraction of a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
import warnings
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

IMPORTED = ("bmpaudit.pipeline.pipeline", "bmpaudit.cli.audit", "bmpaudit.report.figures", "pyarrow.parquet")
CHANGES = {"os.rename": 1, "os.remove": 0, "os.mkdir": 0, "os.chmod": 0, "os.truncate": 0}  # which argument is the file


def changed_file(event: str, args: tuple[Any, ...]) -> str | None:
    """The file that an event is about to change, if any."""
    if event == "open":
        path, _, flags = args
        return path if isinstance(path, str) and flags & (os.O_WRONLY | os.O_RDWR) else None
    return os.fspath(args[CHANGES[event]]) if event in CHANGES else None


def watch(request: dict[str, Any], answer: Path) -> None:
    """Counts the changes of the folder, notes each, and strikes when the time has come."""
    folder, numbers, at = request["folder"] + os.sep, count(1), request.get("at", 0)

    def note(number: int, name: str) -> None:
        os.pwrite(noted, json.dumps([number, name]).ljust(500).encode(), 0)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" and event not in CHANGES:
            return
        path = changed_file(event, args)
        if path is None or not path.startswith(folder) or path.endswith(".lock"):
            return
        number = next(numbers)  # in one step, whichever thread it is
        note(number, path.removeprefix(folder))
        if "errno" in request:
            if number >= at and event != "os.remove":
                raise OSError(request["errno"], os.strerror(request["errno"]), path)
        elif number == at:
            os.kill(os.getpid(), request["number"])
            # A signal is heard by the main thread; whoever is not that goes on.

    noted = os.open(answer, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    note(0, "")
    sys.addaudithook(hook)


def run(request: dict[str, Any], answer: Path) -> None:
    """The command, in a process that ends with it."""
    from bmpaudit.cli import main

    # What a shell starts in the background ignores Ctrl-C, and would hand that down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(request["log"]).open("w") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        watch(request, answer)
        if "largest" in request:
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"],) * 2)
        if request.get("clock") == "backwards":
            minutes = count(int(time.time() / 60), -1)
            time.time = lambda: 60.0 * next(minutes)
        sys.argv = ["bmpaudit", *request["arguments"]]
        try:
            main()
        except SystemExit as end:
            code = end.code
        log.flush()
    os._exit(int(code or 0))


def serve() -> None:
    """Until stdin is closed."""
    for name in IMPORTED:
        import_module(name)
    os.fsync = lambda _: None  # type: ignore[assignment]  # processes are killed here, not the machine

    warnings.simplefilter("error")
    for line in sys.stdin:
        request = json.loads(line)
        answer = Path(request["log"]).with_suffix(".count")
        child = os.fork()
        if child == 0:
            try:
                run(request, answer)
            finally:
                os._exit(70)  # whatever happens, this process does not go on as a second server
        _, status = os.waitpid(child, 0)
        changes, name = json.loads(answer.read_text())
        print(json.dumps([os.waitstatus_to_exitcode(status), changes, name]), flush=True)


if __name__ == "__main__":
    serve()
