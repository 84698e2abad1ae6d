"""Work on other processes and machines: any `concurrent.futures.Executor`, and Dask."""

from __future__ import annotations

import io
import logging
import math
import os
import pickle
import secrets
import signal
import tempfile
import threading
import time
import uuid
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from bmpaudit.util.errors import InputError, one_line

if TYPE_CHECKING:
    from bmpaudit.io.remote_folder import RemoteFolder

SMALLEST_PART = 2**20
"""Bytes of an array that is a part of its own."""


class Packed(NamedTuple):
    """A pickled value, and its large arrays by what they hold.

    Attributes:
        content: The pickle, which names the parts.
        parts: Arrays whose numbers lie together, by the digest of their bytes.
    """

    content: bytes
    parts: dict[str, npt.NDArray[Any]]


def dumps(value: Any, buffer_callback: Callable[[pickle.PickleBuffer], bool] | None = None) -> bytes:
    """As `pickle.dumps`; with cloudpickle also lambdas, and what is defined in a script or notebook."""
    buffer = io.BytesIO()
    _pickler_class()(buffer, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=buffer_callback).dump(value)
    return buffer.getvalue()


def pack(value: Any) -> Packed:
    """Pickles a value without its large arrays; values that share an array, or have equal ones, share that part."""
    buffer = io.BytesIO()
    pickler = _packer_class()(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.parts, pickler.places = {}, {}
    pickler.dump(value)
    return Packed(buffer.getvalue(), pickler.parts)


def unpack(content: bytes, part: Callable[[str], npt.NDArray[np.uint8]]) -> Any:
    """The value; `part` gives the bytes of each part, which the value's arrays then share."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, place: tuple[Any, ...]) -> npt.NDArray[Any]:
            digest, dtype, shape, offset, strides = place
            return np.ndarray(shape, dtype, part(digest).data, offset, strides)

    # From the process that has submitted the task, as the task itself.
    return Unpickler(io.BytesIO(content)).load()


def _pickler_class() -> Any:
    try:
        import cloudpickle
    except ModuleNotFoundError:
        return pickle.Pickler
    return cloudpickle.Pickler


@cache
def _packer_class() -> Any:
    class Packer(_pickler_class()):  # type: ignore[misc]
        parts: dict[str, npt.NDArray[Any]]
        places: dict[int, tuple[Any, ...] | None]

        def persistent_id(self, each: Any) -> tuple[Any, ...] | None:
            if type(each) is not np.ndarray or each.nbytes < SMALLEST_PART:
                return None
            if id(each) not in self.places:
                self.places[id(each)] = self._place(each)
            return self.places[id(each)]

        def _place(self, array: npt.NDArray[Any]) -> tuple[Any, ...] | None:
            whole = _whole(array)
            if whole is None:
                return None
            digest = sha256(whole.reshape(-1, order="A").view(np.uint8).data).hexdigest()
            self.parts[digest] = whole
            return digest, array.dtype, array.shape, _address(array) - _address(whole), array.strides

    return Packer


def _whole(array: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """The array that one is a part of, unless most of it is left out; None if no numbers of either lie together."""
    if array.dtype.hasobject:
        return None
    base = array.base
    if type(base) is np.ndarray and base.nbytes <= 2 * array.nbytes and base.dtype == array.dtype and base.flags.forc:
        return base
    return array if array.flags.forc else None


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


# What runs on a worker: a function of a value that all tasks share, which is loaded once.


MOST_KEPT = 2
"""Values that a worker keeps; older ones are of work that is over."""

_values: dict[str, Any] = {}
_parts: WeakValueDictionary[str, npt.NDArray[np.uint8]] = WeakValueDictionary()  # of the values that are kept
_lock = threading.Lock()


@dataclass(frozen=True)
class Missing:
    """The answer of a worker that does not have the value and cannot read its file."""


def keep_value(key: str, value: Any) -> None:
    """Keeps a value for tasks that run in this process."""
    with _lock:
        _keep(key, value)


def _keep(key: str, value: Any) -> None:
    _values[key] = value
    while len(_values) > MOST_KEPT:
        del _values[next(iter(_values))]


def forget_value(key: str) -> None:
    """Drops a value."""
    with _lock:
        _values.pop(key, None)


def only_load(_: Any) -> None:
    """What a worker is asked to do only so that it has the value."""


def call_with_value(
    function: Callable[..., Any],
    key: str,
    source: tuple[str | bytes, dict[str, str | bytes]],
    arguments: tuple[Any, ...],
) -> Any:
    """Calls `function` with the shared value and the arguments.

    Args:
        function: What to call.
        key: Of the shared value.
        source: The value as `pack` has packed it, and its parts by digest; each as bytes, or the path of a file.
        arguments: All but the first.

    Returns:
        What the function returns, or `Missing` if the value cannot be had from here.
    """
    with _lock:
        if key not in _values:
            try:
                _keep(key, _unpacked(*source))
            except OSError:
                return Missing()
        value = _values[key]
    return function(value, *arguments)


def _unpacked(content: str | bytes, parts: dict[str, str | bytes]) -> Any:
    def part(digest: str) -> npt.NDArray[np.uint8]:
        found = _parts.get(digest)
        if found is None:
            place = parts[digest]
            # Copied: in what has come by a network, numbers need not be aligned.
            found = np.fromfile(place, np.uint8) if isinstance(place, str) else np.frombuffer(place, np.uint8).copy()
            found.flags.writeable = False  # other values have it too
            _parts[digest] = found
        return found

    return unpack(content if isinstance(content, bytes) else Path(content).read_bytes(), part)


# Answers on their way back: a worker that sees the files of the process that asks leaves large arrays there.


ALIGNMENT = 64
"""Arrays start at multiples of so many bytes."""


class Inbox(NamedTuple):
    """A temporary folder that answers are read from.

    Attributes:
        folder: Its name is random, so that a worker of another machine has none of that name.
        reader: Number of the process that reads.
    """

    folder: str
    reader: int


@contextmanager
def new_inbox() -> Iterator[Inbox]:
    """An inbox, which goes with whatever was not read: answers that were lost, or that nobody wants any more."""
    with tempfile.TemporaryDirectory(prefix="bmpaudit-", ignore_cleanup_errors=True) as folder:
        yield Inbox(folder, os.getpid())


@dataclass(frozen=True)
class Filed:
    """An answer whose large arrays are in a file.

    Attributes:
        content: The answer without them, pickled.
        path: The file.
        places: Start and end of each array in it.
    """

    content: bytes
    path: str
    places: tuple[tuple[int, int], ...]

    def read(self) -> Any:
        """The answer; its file is then gone."""
        whole = np.fromfile(self.path, np.uint8)
        Path(self.path).unlink()
        return pickle.loads(self.content, buffers=[whole[slice(*place)].data for place in self.places])  # noqa: S301 - from a worker, as all answers


def call_and_file(value: Any, function: Callable[..., Any], inbox: Inbox, *arguments: Any) -> Any:
    """Calls a function on a worker; the answer, or `Filed` if it is large and this worker sees the inbox."""
    answer = function(value, *arguments)
    if os.getpid() == inbox.reader or not Path(inbox.folder).is_dir():
        return answer
    arrays: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= SMALLEST_PART:
            arrays.append(raw)
        return raw.nbytes < SMALLEST_PART

    content = dumps(answer, is_small)
    if not arrays:
        return answer
    try:
        return _filed(content, arrays, inbox.folder)
    except OSError:  # it is full, or not for this user to write to
        return answer


def _filed(content: bytes, arrays: list[memoryview], folder: str) -> Filed:
    places, end = [], 0
    handle, path = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            for array in arrays:
                start = -(-end // ALIGNMENT) * ALIGNMENT
                end = start + array.nbytes
                places.append((start, end))
                file.seek(start)
                while array:
                    array = array[file.write(array) :]
    except OSError:
        with suppress(OSError):
            Path(path).unlink()
        raise
    return Filed(content, path, tuple(places))


# Workers behind an executor: tasks go out, answers come in as they are ready.


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
        keep_value(key, value)
        try:
            yield key, (content.name, {digest: file.name for digest, file in parts.items()})
        finally:
            forget_value(key)

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
        return self.executor.submit(call_with_value, function, key, source, arguments)

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
                    elif isinstance(answer, Missing):
                        # Tasks wait while a worker that cannot read the file gets the value; it is idle, so it is the
                        # one that the executor picks. If not, the next task that it returns has it sent again.
                        tasks.appendleft(pending.pop(future))
                        loading = loading or self._send(only_load, key, (dumps(value), {}))
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
        return DaskCrew(executor)
    return Crew(executor)


# Workers of a Dask cluster.


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
            return answer_of(self._ask(lambda: self._client.submit(partial(call_with_value, *call), **options)))
        return answer_of(self._ask(lambda: self._client.submit(call_with_value, *call, **options)))

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


@contextmanager
def marked(folder: Path | RemoteFolder) -> Iterator[str]:
    """Puts a file into the store by which workers see that they share it; its name is that of a leftover."""
    mark = f".shared.partial-{secrets.token_hex(4)}"
    (folder / mark).write_text("")
    try:
        yield mark
    finally:
        (folder / mark).unlink(missing_ok=True)
