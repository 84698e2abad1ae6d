"""Workers of a Dask cluster."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy.typing as npt

from bmpaudit.errors import InputError, one_line
from bmpaudit.executors import worker
from bmpaudit.executors.crew import KEPT, SECONDS_BETWEEN_CHECKS, Crew
from bmpaudit.executors.pickling import pack

LOCAL = "local:"
CONNECT_SECONDS = 15.0
OWN_CLUSTER = {
    # Nobody looks at how a cluster is doing that lives as long as a command; looking takes 4 % of a core.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    # It would take scattered arrays from all workers but one whenever none of them has work, and they are sent again.
    "distributed.scheduler.active-memory-manager.start": False,
    # Dask has workers return memory as soon as it is freed, and so does the C library by itself in threads other than
    # the first, where tasks run: they would get it back page by page for the next array.
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 1,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**27,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**29,
}
"""Settings of a cluster on this machine, of which one command makes use."""

SECONDS_ALONE = 30.0
"""How long a cluster may be without workers before that is said."""

MOST_LOSSES = 8
"""How often in a row the workers that hold the shared value may all be lost."""


class DaskCrew(Crew):
    """The workers behind `Client.get_executor()`.

    Workers of a cluster that this process has started read the shared value from files, as those of any executor.
    Otherwise it is scattered to the workers that are there, its large arrays once for all values that hold them; later
    workers get both from them. Tasks of a worker that is killed are run by others, and if the value is lost with it, it
    is scattered anew. Without any worker the work waits for one, and says so.
    """

    def __init__(self, executor: Executor) -> None:
        import distributed

        super().__init__(executor)
        self._executor: Any = executor
        self._client: Any = getattr(executor, "_client")  # noqa: B009 - it has no public name
        self._reads_files = isinstance(self._client.cluster, distributed.LocalCluster)
        self._num_threads, self._next_look = 0, 0.0
        self._alone_since: float | None = None
        self._num_losses = 0

    @property
    def width(self) -> int:
        """Threads of all workers."""
        return max(self._look(), 1)

    def _look(self) -> int:
        """Threads of all workers, asked for about once a second; says so if there are none for long."""
        now = time.monotonic()
        if now < self._next_look:
            return self._num_threads
        self._num_threads = sum(self._ask(self._client.nthreads).values())
        self._next_look = time.monotonic() + SECONDS_BETWEEN_CHECKS
        if self._num_threads:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since > SECONDS_ALONE:
            self._alone_since = math.inf  # it is said once
            warnings.warn(
                f"The Dask cluster {self._scheduler} has no workers: the work goes on as soon as there is one, and "
                "Ctrl-C keeps what is finished.",
                stacklevel=2,
            )
        return self._num_threads

    @contextmanager
    def shared(self, value: Any) -> Iterator[tuple[str, Any]]:
        """Writes a value to files, or scatters it."""
        if self._reads_files:
            with super().shared(value) as written:
                yield written
            return
        packed = pack(value)
        yield uuid.uuid4().hex, (self._scattered(packed.content), self.shared_parts(packed))

    def share_part(self, array: npt.NDArray[Any]) -> Any:
        """Writes an array to a file, or scatters it."""
        return super().share_part(array) if self._reads_files else self._scattered(array.tobytes(order="A"))

    def _scattered(self, content: bytes) -> Any:
        """Sends bytes to all workers, as soon as there is one; arrays that Dask itself unpacks need not be aligned."""
        while True:
            while not self._look():
                time.sleep(SECONDS_BETWEEN_CHECKS / 4)
            try:
                return self._client.scatter(content, broadcast=True, hash=False)
            except OSError:  # one of them has gone meanwhile, if it is not the scheduler
                self.check()
                failure = self._count_loss()
                if failure is not None:
                    raise failure from None

    def submit(self, function: Callable[..., Any], key: str, source: Any, arguments: tuple[Any, ...]) -> Future[Any]:
        """Sends out one task, which depends on the scattered value if there is one."""
        options = {**self._executor._kwargs, "pure": False}
        call = (function, key, source, arguments)
        if self._reads_files:  # Dask need not look through the arguments for values that are still to come
            return answer_of(self._ask(lambda: self._client.submit(partial(worker.call, *call), **options)))
        return answer_of(self._ask(lambda: self._client.submit(worker.call, *call, **options)))

    def lost(self, failure: BaseException) -> Exception | None:
        """See `Crew.lost`: a task is cancelled if the scheduler is gone, or every worker that held the value."""
        self.check()
        if isinstance(failure, CancelledError):
            self.parts.clear()
            return self._count_loss()
        return super().lost(failure)

    def _count_loss(self) -> Exception | None:
        self._num_losses += 1
        if self._num_losses <= MOST_LOSSES:
            return None
        return ChildProcessError(f"workers of the Dask cluster were lost {self._num_losses} times; {KEPT}")

    def is_loss(self, failure: BaseException) -> bool:
        """Whether workers were lost, and the task itself has not failed."""
        return super().is_loss(failure) or type(failure).__name__ == "KilledWorker"

    def check(self) -> None:
        """Raises ConnectionError if the scheduler is gone."""
        if self._client.status != "running":
            raise self._gone()
        self._look()

    def _ask(self, ask: Callable[[], Any]) -> Any:
        if self._client.status != "running":
            raise self._gone()
        try:
            return ask()
        except Exception as failure:
            if self._client.status != "running" or isinstance(failure, OSError):
                raise self._gone() from None
            raise

    @property
    def _scheduler(self) -> str:
        return str(getattr(self._client.scheduler, "address", ""))

    def _gone(self) -> ConnectionError:
        return ConnectionError(f"the Dask scheduler {self._scheduler} is gone; {KEPT}")


def answer_of(sent: Any) -> Future[Any]:
    """The answer to a task that was sent to a Dask cluster.

    The futures of Dask's own executor never end if a worker dies between the end of a task and the fetching of its
    answer, and takes with it what would be needed to run the task again.
    """
    answer: Future[Any] = Future()

    def take(_: Any) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(sent.result())
        except BaseException as failure:
            answer.set_exception(CancelledError() if sent.cancelled() else failure)

    def drop(_: Future[Any]) -> None:
        if answer.cancelled():
            sent.cancel()

    answer.add_done_callback(drop)
    sent.add_done_callback(take)
    return answer


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Connects to a Dask cluster, or starts one of processes on this machine that ends with the block.

    Args:
        address: Of a scheduler, such as `tcp://scheduler:8786`, or `local:4` for 4 processes.

    Raises:
        InputError: if the address is not one, or Dask is not installed.
        ConnectionError: if the scheduler does not answer.
    """
    try:
        import dask.config
        import distributed
    except ModuleNotFoundError as missing:
        raise InputError(f"Dask is needed: pip install 'bmpaudit[dask]' ({missing})") from None
    # A lost connection is an error of ours, in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if not address.startswith(LOCAL):
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, ImportError) as failure:
            raise ConnectionError(f"no Dask scheduler answers at {address}: {one_line(failure)}") from None
        with _closing(client):
            yield client.get_executor()
        return
    number = address.removeprefix(LOCAL)
    if not number.isdecimal() or int(number) < 1:
        raise InputError(f"dask must be the address of a scheduler or local:N with N at least 1, got {address!r}")
    with dask.config.set(OWN_CLUSTER), _workers_ignoring_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=int(number),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    with cluster:
        # Answers come straight from the workers: by way of the scheduler they would be sent twice.
        client = distributed.Client(cluster, set_as_default=False, direct_to_workers=True)
        with _closing(client):
            yield client.get_executor()


@contextmanager
def _workers_ignoring_interrupts() -> Iterator[None]:
    """Processes that are started in the block leave Ctrl-C to this one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _closing(client: Any) -> Iterator[None]:
    try:
        yield
    finally:
        client.close(timeout=2)
