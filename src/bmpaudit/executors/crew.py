"""Workers behind an executor: tasks go out, answers come in as they are ready."""

from __future__ import annotations

import os
import tempfile
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt

from bmpaudit.errors import InputError, one_line
from bmpaudit.executors import worker
from bmpaudit.executors.answers import Filed, Inbox, call_and_file, new_inbox
from bmpaudit.executors.pickling import Packed, dumps, pack

Task = TypeVar("Task")

SECONDS_BETWEEN_CHECKS = 1.0
_parts_of: weakref.WeakKeyDictionary[Executor, dict[str, Any]] = weakref.WeakKeyDictionary()
"""By digest, where the workers of an executor find parts of values; each for as long as its array lives here."""

KEPT = "what is finished is kept, and the next run goes on from there"


class Crew:
    """The workers of any executor.

    The value that all tasks share is written to a temporary file, which each worker process reads once; to a worker on
    another machine, which cannot read it, it is sent with a task. Threads of this process use the value itself. Large
    arrays have files of their own, which stay until the array is gone: what one value after another holds is written,
    and read by each worker, once. Large arrays of an answer come in a file too, from a worker that can write it.

    Args:
        executor: Any executor; it is not shut down.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.parts = _parts_of.setdefault(executor, {})

    @property
    def width(self) -> int:
        """How many tasks can run at once, as far as that is known."""
        return int(getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1)

    @contextmanager
    def shared(self, value: Any) -> Iterator[tuple[str, Any]]:
        """The key of a value and where workers find it, for as long as the block lasts."""
        key, packed = uuid.uuid4().hex, pack(value)
        content, parts = _File(packed.content), self.shared_parts(packed)
        worker.keep(key, value)
        try:
            yield key, (content.name, {digest: file.name for digest, file in parts.items()})
        finally:
            worker.forget(key)

    def shared_parts(self, packed: Packed) -> dict[str, Any]:
        """Where workers find the parts of a value; only those that they have not yet are sent."""
        shared = {}
        for digest, array in packed.parts.items():
            if digest not in self.parts:
                self.parts[digest] = self.share_part(array)
                weakref.finalize(array, self.parts.pop, digest, None)
            shared[digest] = self.parts[digest]
        return shared

    def share_part(self, array: npt.NDArray[Any]) -> Any:
        """Puts an array where workers find it, until what is returned is gone."""
        return _File(array.reshape(-1, order="A").data)

    def submit(self, function: Callable[..., Any], key: str, source: Any, arguments: tuple[Any, ...]) -> Future[Any]:
        """Sends out one task."""
        return self.executor.submit(worker.call, function, key, source, arguments)

    def is_loss(self, failure: BaseException) -> bool:
        """Whether workers were lost, and the task itself has not failed."""
        return isinstance(failure, (BrokenExecutor, CancelledError))

    def lost(self, failure: BaseException) -> Exception | None:
        """What to raise after a loss; None if the value is to be shared anew and the task sent out again."""
        if isinstance(failure, CancelledError):
            return ChildProcessError(f"the executor has cancelled a task; {KEPT}")
        return ChildProcessError(f"a worker process has ended, perhaps for lack of memory; {KEPT}")

    def check(self) -> None:
        """Called about once a second; raises an OSError if nobody will answer any more."""

    def run(
        self, function: Callable[..., Any], value: Any, tasks: deque[Task], *, window: int | None = None
    ) -> Iterator[tuple[Task, Any]]:
        """Calls `function(value, task)` on the workers for each task, in no particular order.

        Args:
            function: Of a module that workers can import.
            value: What all tasks share; sent to each worker once.
            tasks: Taken from the left; more can be added while answers come in.
            window: How many tasks are out at once; twice as many as can run if None.

        Yields:
            A task and its answer.

        Raises:
            OSError: if workers or the connection to them are lost.
        """
        pending: dict[Future[Any], Task] = {}
        with new_inbox() as inbox:
            try:
                while tasks or pending:
                    yield from self._run_shared(function, value, tasks, pending, window, inbox)
            finally:
                for future in pending:
                    future.cancel()

    def _run_shared(
        self,
        function: Callable[..., Any],
        value: Any,
        tasks: deque[Task],
        pending: dict[Future[Any], Task],
        window: int | None,
        inbox: Inbox,
    ) -> Iterator[tuple[Task, Any]]:
        """Runs tasks until all are done, or until the value has to be shared anew."""
        loading: Future[Any] | None = None
        with self.shared(value) as (key, source):
            while tasks or pending:
                while tasks and loading is None and len(pending) < (window or 2 * self.width):
                    task = tasks.popleft()
                    pending[self._send(call_and_file, key, source, function, inbox, task)] = task
                ready, _ = wait([*pending, *([loading] if loading else [])], SECONDS_BETWEEN_CHECKS, FIRST_COMPLETED)
                self.check()
                has_lost = False
                for future in sorted(ready, key=_has_failed):  # what is finished is taken in before anything is raised
                    try:
                        answer = self._answer(future)
                    except _LostError:
                        has_lost = True
                        tasks.extendleft([pending.pop(future)] if future in pending else [])
                        continue
                    if future is loading:
                        loading = None
                    elif isinstance(answer, worker.Missing):
                        # Tasks wait while a worker that cannot read the file gets the value; it is idle, so it is the
                        # one that the executor picks. If not, the next task that it returns has it sent again.
                        tasks.appendleft(pending.pop(future))
                        loading = loading or self._send(worker.loaded, key, (dumps(value), {}))
                    else:
                        yield pending.pop(future), answer
                if has_lost:
                    return

    def _send(self, function: Callable[..., Any], key: str, source: Any, *arguments: Any) -> Future[Any]:
        try:
            return self.submit(function, key, source, arguments)
        except BrokenExecutor as failure:
            raise self.lost(failure) or failure from None

    def _answer(self, future: Future[Any]) -> Any:
        """What a task has returned.

        Raises:
            _LostError: if the value has to be shared anew.
        """
        try:
            answer = future.result()
            return answer.read() if isinstance(answer, Filed) else answer
        except (InputError, OSError, MemoryError):
            raise
        except Exception as failure:
            if not self.is_loss(failure):
                raise ChildProcessError(f"a worker has failed: {one_line(failure)}") from failure
            raise self.lost(failure) or _LostError from None


class _File:
    """A temporary file that goes with this object."""

    def __init__(self, content: bytes | memoryview) -> None:
        handle, self.name = tempfile.mkstemp(prefix="bmpaudit-", suffix=".pickle")
        weakref.finalize(self, _remove, Path(self.name), os.getpid())
        with os.fdopen(handle, "wb") as file:
            file.write(content)


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not in a fork of it
        path.unlink(missing_ok=True)


class _LostError(Exception):
    """A task is to be sent out again."""


def _has_failed(future: Future[Any]) -> bool:
    return future.cancelled() or future.exception() is not None


def crew_of(executor: Executor) -> Crew:
    """The workers of an executor."""
    if not callable(getattr(executor, "submit", None)):
        raise InputError(f"executor must have a method submit, as concurrent.futures.Executor has, got {executor!r}")
    if hasattr(getattr(executor, "_client", None), "scatter"):
        from bmpaudit.executors.dask import DaskCrew

        return DaskCrew(executor)
    return Crew(executor)
