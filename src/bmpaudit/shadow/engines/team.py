"""Processes that train models beside this one."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmpaudit.errors import InputError, one_line
from bmpaudit.executors.pickling import dumps
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.trainer import AnyTrainer, Recipe
from bmpaudit.shadow.engines.worker import Reply, Setup, Task

START = """\
import sys
sys.path[:] = {path}
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has started this one
from pathlib import Path
from bmpaudit.shadow.engines.worker import main
main(Path({folder}))
"""


class TrainingTraceback(Exception):  # noqa: N818 - a cause, never raised by itself
    """Where the user's code has raised something in another process."""


@dataclass(frozen=True, eq=False)
class Finished:
    """A task and its batch as another process has filled it."""

    task: Task
    filled: ShadowBatch

    def keep(self) -> None:
        """Copies the answers into the task's own batch."""
        for ours, theirs in zip(vars(self.task.batch).values(), vars(self.filled).values(), strict=True):
            if ours is not None:
                ours[...] = theirs


class TeamError(Exception):
    """Why no other process can train these models."""


class Team:
    """Processes of one thread each, started once, which take jobs from a common queue.

    A process joins in when it has trained the trial model to the same bytes as this one has; until then, and if it
    cannot, the jobs are left to the others. So whatever the processes might not have in common (a module edited since
    it was imported, a setting changed at run time, a generator that is not seeded) can change no result.

    Args:
        trainer: What trains models in this process.
        recipe: How another process makes it.
        trial: A model to try.

    Raises:
        TeamError: if the plan cannot be sent to another process.
    """

    def __init__(self, trainer: AnyTrainer, recipe: Recipe[AnyTrainer], trial: Task) -> None:
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.ready: list[int] = []  # process ids
        self._answers: queue.SimpleQueue[Finished | Exception] = queue.SimpleQueue()
        self._members: list[tuple[subprocess.Popen[bytes], threading.Thread]] = []
        self._expected: Future[list[bytes]] = Future()
        try:
            self._setup = dumps(Setup(recipe, trial))
        except Exception as failure:
            raise TeamError(f"{trainer.plan.model} cannot be pickled ({one_line(failure)})") from failure
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="bmpaudit-")
            recipe.save(trainer, Path(self._folder.name))
        except OSError as failure:
            raise TeamError(f"the graph cannot be shared ({failure})") from failure

    def grow(self, size: int) -> None:
        """Starts processes until there are `size` of them; this takes seconds, for which nobody waits.

        Raises:
            TeamError: if one cannot be started.
        """
        start = START.format(path=sys.path, folder=repr(self._folder.name))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        while len(self._members) < size:
            try:
                member = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-u", "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
                )
            except OSError as failure:
                raise TeamError(f"no process can be started ({failure})") from failure
            thread = threading.Thread(target=self._serve, args=(member,), daemon=True)
            thread.start()
            self._members.append((member, thread))

    def expect(self, trial: ShadowBatch) -> None:
        """Says what the trial model is in this process."""
        self._expected.set_result(_contents(trial))

    def next_task(self) -> Task | None:
        """A task that no process has taken; None if there is none."""
        try:
            return self.tasks.get_nowait()
        except queue.Empty:
            return None

    def answers(self, *, wait: bool) -> Iterator[Finished | Exception]:
        """What has come in: models, and what was raised.

        Args:
            wait: Whether to wait for the first one.
        """
        try:
            yield self._answers.get(block=wait)
            while True:
                yield self._answers.get_nowait()
        except queue.Empty:
            return

    def close(self) -> None:
        """Ends all processes at once, whatever they are doing."""
        self._expected.cancel()
        for member, _ in self._members:
            member.kill()
            self.tasks.put(None)
        for member, thread in self._members:
            thread.join()
            with suppress(BrokenPipeError):  # what it has not read
                member.communicate()
        self._folder.cleanup()

    def _serve(self, member: subprocess.Popen[bytes]) -> None:
        """Sends tasks to one process and passes on the answers."""
        try:
            self._wait_until_ready(member)
            self.ready.append(member.pid)
            while (task := self.tasks.get()) is not None:
                self._answers.put(_train(member, task))
        except Exception as failure:
            member.kill()
            self._answers.put(failure)

    def _wait_until_ready(self, member: subprocess.Popen[bytes]) -> None:
        try:
            trial = _ask(member, self._setup)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise TeamError(f"another process {_ending(member)} before it was ready") from None
        if trial.batch is None:
            raise TeamError(f"another process cannot train them ({trial.error})")
        if _contents(trial.batch) != self._expected.result():
            raise TeamError(
                "a model came out differently in another process (has its module changed since it was imported, "
                "or does it draw from a generator of its own?)"
            )


def training_error(task: Task, error: str) -> InputError:
    """What is raised if the user's code has raised something."""
    return InputError(f"shadow model {task.batch.indices[0]}: {error}")


def _train(member: subprocess.Popen[bytes], task: Task) -> Finished:
    try:
        reply = _ask(member, task)
    except (EOFError, OSError, pickle.UnpicklingError):
        raise ChildProcessError(
            f"shadow model {task.batch.indices[0]}: the process that trained it {_ending(member)}; "
            "finished models are kept, and the next run goes on from there"
        ) from None
    if reply.batch is None:
        raise training_error(task, reply.error) from TrainingTraceback(f"\n{reply.trace}")
    return Finished(task, reply.batch)


def _ask(member: subprocess.Popen[bytes], message: Any) -> Reply:
    assert member.stdin is not None  # noqa: S101 - for mypy
    assert member.stdout is not None  # noqa: S101
    pickle.dump(message, member.stdin, protocol=pickle.HIGHEST_PROTOCOL)
    member.stdin.flush()
    reply: Reply = pickle.load(member.stdout)  # noqa: S301 - from a process of our own
    return reply


def _contents(batch: ShadowBatch) -> list[bytes]:
    return [array.tobytes() for array in vars(batch).values() if array is not None]


def _ending(member: subprocess.Popen[bytes]) -> str:
    code = member.wait()
    if code >= 0:
        return f"has ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was ended by {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")
