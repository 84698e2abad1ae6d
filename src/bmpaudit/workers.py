"""Work in other processes and on other machines: one way to run tasks on any `concurrent.futures.Executor`.

`Processes` is the executor of this machine, `executor_at` connects to a Dask cluster, and any other executor is the
user's own. `crew_of(executor).run(function, value, tasks)` is what all steps call: it sends large values to each worker
once, takes in answers as they are ready, and tells in one line what has become of a worker that is lost.
"""

import io
import logging
import multiprocessing
import os
import pickle
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures import ProcessPoolExecutor as Pool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

import cloudpickle
import numpy as np
import numpy.typing as npt

from bmpaudit.io.remote_folder import RemoteFolder
from bmpaudit.util.errors import InputError, one_line

Task = TypeVar("Task")

SMALLEST_PART = 2**20  # bytes of an array that is sent, or filed, by itself
KEPT = "what is finished is kept, and the next run goes on from there"


# Values without their large arrays.


def pack(value: Any, keep: Callable[[npt.NDArray[Any]], str | None]) -> bytes:
    """Pickles a value, also one of a script or notebook, without its large arrays; values can share an array.

    `keep` is called once with each large array whose numbers lie together: its name, or None if it is to be pickled.
    """
    buffer = io.BytesIO()
    _Packer(buffer, keep).dump(value)
    return buffer.getvalue()


def unpack(content: bytes, part: Callable[[str], npt.NDArray[np.uint8]]) -> Any:
    """The value; `part` gives the bytes of an array by its name, which arrays of the value then share."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, place: tuple[Any, ...]) -> npt.NDArray[Any]:
            name, dtype, shape, offset, strides = place
            return np.ndarray(shape, dtype, part(name).data, offset, strides)

    # From the process that has submitted the task, as the task itself, or from the worker that has done it.
    return Unpickler(io.BytesIO(content)).load()


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, keep: Callable[[npt.NDArray[Any]], str | None]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._keep = keep
        self._kept: dict[int, tuple[npt.NDArray[Any], str | None]] = {}

    def persistent_id(self, each: Any) -> tuple[Any, ...] | None:
        if type(each) is not np.ndarray or each.nbytes < SMALLEST_PART or each.dtype.hasobject:
            return None
        # The array that this one is a part of, unless most of it is left out.
        whole: npt.NDArray[Any] = each
        base = each.base
        if type(base) is np.ndarray and base.nbytes <= 2 * each.nbytes and base.dtype == each.dtype and base.flags.forc:
            whole = base
        if not whole.flags.forc:
            return None
        if id(whole) not in self._kept:
            self._kept[id(whole)] = whole, self._keep(whole)
        name, offset = self._kept[id(whole)][1], each.ctypes.data - whole.ctypes.data
        return None if name is None else (name, each.dtype, each.shape, offset, each.strides)


def _flat(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of an array whose numbers lie together, as they lie."""
    return array.reshape(-1, order="A").view(np.uint8)


# What runs on a worker: a function of a value that all tasks share, which is loaded once.

MOST_KEPT = 2  # values that a worker keeps; older ones are of work that is over
_values: dict[str, Any] = {}
_parts: WeakValueDictionary[str, npt.NDArray[np.uint8]] = WeakValueDictionary()  # of the values that are kept
_lock = threading.Lock()


class Missing:
    """The answer of a worker that does not have the value and cannot read its file."""


@dataclass(frozen=True)
class Answer:
    """An answer as `pack` has packed it; arrays are named by their files, which go when it is read."""

    content: bytes

    def read(self) -> Any:
        """The answer."""

        @cache
        def take(path: str) -> npt.NDArray[np.uint8]:
            array = np.fromfile(path, np.uint8)
            Path(path).unlink()
            return array

        return unpack(self.content, take)


def run_task(
    function: Callable[..., Any],
    key: str,
    source: tuple[str | bytes, dict[str, str | bytes]],
    inbox: str,
    reader: int,
    arguments: tuple[Any, ...],
) -> Any:
    """Calls `function` with the shared value of this key and the arguments; `Missing` if the value cannot be had.

    `source` is the value as `pack` has packed it, and its arrays by name; each as bytes, or the path of a file. The
    answer is packed unless this process is the `reader`; its large arrays are left in the folder `inbox`, if this
    worker can. That has a random name, so that a worker of another machine has none of that name.
    """
    with _lock:
        if key not in _values:
            try:
                _keep(key, _load(*source))
            except OSError:
                return Missing()
        value = _values[key]
    answer = function(value, *arguments)
    if os.getpid() == reader:
        return answer

    def leave(array: npt.NDArray[Any]) -> str | None:
        path = f"{inbox}/{secrets.token_hex(16)}"
        try:
            _flat(array).tofile(path)
        except OSError:  # it is elsewhere, full, or not for this user to write to
            return None
        return path

    return Answer(pack(answer, leave))


def _keep(key: str, value: Any) -> None:
    _values[key] = value
    while len(_values) > MOST_KEPT:
        del _values[next(iter(_values))]


def _load(content: str | bytes, parts: dict[str, str | bytes]) -> Any:
    def part(name: str) -> npt.NDArray[np.uint8]:
        found = _parts.get(name)
        if found is None:
            place = parts[name]
            # Processes of one machine share a file. In what has come by a network, numbers need not be aligned.
            found = np.memmap(place, np.uint8, "c") if isinstance(place, str) else np.frombuffer(place, np.uint8).copy()
            found.flags.writeable = False  # other values have it too
            _parts[name] = found
        return found

    return unpack(content if isinstance(content, bytes) else Path(content).read_bytes(), part)


# Processes of this machine.

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Memory that is freed is used again. The C library would map it anew for every array, and the kernel fill it with
    # zeros page by page.
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**29),
    "MALLOC_TOP_PAD_": str(2**26),
}
"""What processes are started with: each works on one thread, and keeps up to half a gigabyte."""

_starting_lock = threading.Lock()


class Processes(Executor):
    """Python processes of one thread each on this machine, which are started as they are needed.

    They import nothing but what a task names: a script needs no `if __name__ == "__main__":`, and what it defines is
    sent as a whole by cloudpickle. What a task prints goes to stderr. Ctrl-C is left to this process; the others end
    with it, however it ends. After one has died, all of them are started anew, up to `restarts` times.
    """

    def __init__(self, number: int, *, restarts: int = 0) -> None:
        self._max_workers = number
        self._restarts = restarts
        self._pool: Pool | None = None
        self._children: list[multiprocessing.process.BaseProcess] = []
        self._calls: WeakKeyDictionary[Future[Any], Path] = WeakKeyDictionary()
        self.folder = Place(tempfile.mkdtemp(prefix="bmpaudit-"))

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """See `concurrent.futures.Executor`; what cannot be pickled is refused here."""
        # By way of a file: with long messages on their way, `Pool` can wait forever for a worker that has died
        # (https://github.com/python/cpython/issues/94777).
        call = Path(self.folder.path, secrets.token_hex(16))
        call.write_bytes(cloudpickle.dumps((function, arguments, options)))
        if len(self._children) == self._max_workers and self._pool is not None:
            future = self._pool.submit(_run_call, call)
        else:
            with _starting_lock, _starting_processes():
                if self._pool is None:
                    context = multiprocessing.get_context("spawn")
                    self._pool = Pool(self._max_workers, context, _begin, (str(Path.cwd()), self.folder.path))
                before = multiprocessing.active_children()
                future = self._pool.submit(_run_call, call)
                self._children += [child for child in multiprocessing.active_children() if child not in before]
        self._calls[future] = call
        return future

    def withdraw(self, future: Future[Any]) -> bool:
        """Takes back a task that no process has begun; whether that was so.

        `Future.cancel` cannot take back what `Pool` has in its queue, and after it `Pool` fails if a process dies.
        """
        with suppress(FileNotFoundError):
            self._calls[future].unlink()
            return True
        return False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - as others have it
        """Ends all processes at once, whatever they are doing."""
        self._end()
        _remove(self.folder.path, os.getpid())

    def _end(self) -> None:
        for child in self._children:
            child.kill()
        if self._pool is not None:
            self._pool.shutdown()
        self._pool, self._children = None, []

    def restart(self) -> str | None:
        """After a process has died, has the next task start new ones; if that was too often, how the process ended."""
        if self._pool is not None:
            self._pool.shutdown()
        codes = [child.exitcode for child in self._children]
        self._end()
        self._restarts -= 1
        if self._restarts >= 0:
            return None
        for code in codes:
            if code is not None and code < 0 and code != -signal.SIGTERM:  # by which the others were ended
                name = signal.Signals(-code).name
                return f"was ended by {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")
        return f"has ended with exit code {max((code or 0 for code in codes), default=0)}"


@contextmanager
def _starting_processes() -> Iterator[None]:
    """Processes that are started in the block ignore Ctrl-C, do not run this one's script, and have `ENVIRONMENT`."""
    # If this process is killed, that of `multiprocessing` which then removes its semaphores need not say so.
    filters = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), "ignore:resource_tracker"]))
    settings = {**ENVIRONMENT, "PYTHONWARNINGS": filters}
    script, before = sys.modules["__main__"], {name: os.environ.get(name) for name in settings}
    # Held back, not ignored: this process hears of Ctrl-C after the block, and the others inherit that they do not.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        sys.modules["__main__"] = script
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(current: str, folder: str) -> None:
    """The first thing that a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with suppress(OSError):
        os.dup2(2, 1)  # results are on stdout
    os.chdir(current)
    if current not in sys.path:  # `registry.import_target` looks there too
        sys.path.append(current)

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _run_call(call: Path) -> Any:
    content = call.read_bytes()
    call.unlink()  # whoever does that has the task
    function, arguments, options = pickle.loads(content)  # noqa: S301 - from the process that has started this one
    return function(*arguments, **options)


class Place:
    """A temporary file or folder that goes with this object."""

    def __init__(self, path: str) -> None:
        self.path = path
        finalize(self, _remove, path, os.getpid())


def _remove(path: str, owner: int) -> None:
    if os.getpid() != owner:  # but a fork of it
        return
    if Path(path).is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        Path(path).unlink(missing_ok=True)


# Workers behind an executor: tasks go out, answers come in as they are ready.

SECONDS_BETWEEN_CHECKS = 1.0
_places_of: WeakKeyDictionary[Executor, tuple[Place, dict[str, Any]]] = WeakKeyDictionary()
"""Where an executor's files are, and by what they hold, where its workers find arrays that live here."""


class Shared:
    """A value as workers find it, for as long as this object lives; threads of this process use `value` itself."""

    def __init__(self, value: Any, content: Any, parts: dict[str, Any]) -> None:
        self.value, self.key = value, secrets.token_hex(16)
        self.places = content, parts  # whose files `source` names
        self.source = getattr(content, "path", content), {n: getattr(part, "path", part) for n, part in parts.items()}
        with _lock:
            _keep(self.key, value)
        finalize(self, _values.pop, self.key, None)


class Crew:
    """The workers of any executor, which is not shut down.

    The value that all tasks share is written to a temporary file, which each worker process reads once; to a worker on
    another machine, which cannot read it, it is sent with a task. Threads of this process use the value itself. Large
    arrays have files of their own, which stay until the array is gone: what one value after another holds is written,
    and read by each worker, once. Large arrays of an answer come in a file too, from a worker that can write it.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        if executor not in _places_of:
            own = executor.folder if isinstance(executor, Processes) else None
            _places_of[executor] = own or Place(tempfile.mkdtemp(prefix="bmpaudit-")), {}
        self.folder, self.parts = _places_of[executor]

    @property
    def width(self) -> int:
        """How many tasks can run at once, as far as that is known."""
        return int(getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1)

    def share(self, value: Any) -> Shared:
        """Puts a value where workers find it; only arrays that they have not yet are sent."""
        parts: dict[str, Any] = {}

        def keep(array: npt.NDArray[Any]) -> str:
            content = _flat(array).data
            name = sha256(content).hexdigest()
            if name not in self.parts:
                self.parts[name] = self.put(content)
                finalize(array, self.parts.pop, name, None)
            parts[name] = self.parts[name]
            return name

        return Shared(value, self.put(pack(value, keep)), parts)

    def put(self, content: bytes | memoryview) -> Any:
        """Puts bytes where workers find them, until what is returned is gone."""
        place = Place(f"{self.folder.path}/{secrets.token_hex(16)}")
        Path(place.path).write_bytes(content)
        return place

    def send(
        self, function: Callable[..., Any], shared: Shared, *arguments: Any, source: Any = None, inbox: str = ""
    ) -> Future[Any]:
        """Sends out `function(value, *arguments)`, see `run_task`; `answer` tells what has come of it."""
        return self._submit(run_task, function, shared.key, source or shared.source, inbox, os.getpid(), arguments)

    def _submit(self, *call: Any) -> Future[Any]:
        return self.executor.submit(*call)

    def answer(self, future: Future[Any]) -> Any:
        """What a worker has answered; if it has failed, that is told in one line."""
        try:
            answer = future.result()
            return answer.read() if isinstance(answer, Answer) else answer
        except (InputError, OSError, MemoryError):
            raise
        except Exception as failure:
            raise ChildProcessError(f"a worker has failed: {one_line(failure)}") from failure

    def recover(self, loss: BaseException) -> None:
        """Raises an OSError unless tasks that were lost can be sent out again, with the value shared anew."""
        if isinstance(self.executor, Processes):
            ending = self.executor.restart()
            if ending is None:
                return
        else:
            ending = "has ended, perhaps for lack of memory"
        what = "the executor has cancelled a task" if isinstance(loss, CancelledError) else f"a worker process {ending}"
        raise ChildProcessError(f"{what}; {KEPT}") from None

    def check(self) -> None:
        """Called about once a second; raises an OSError if nobody will answer any more."""

    def run(
        self,
        function: Callable[..., Any],
        value: Any,
        tasks: deque[Task],
        *,
        here: Callable[[Task], Any] | None = None,
    ) -> Iterator[tuple[Task, Any]]:
        """Calls `function(value, task)` on the workers for each task, and yields tasks with their answers in any order.

        The value, which may be `Shared` with other runs, is sent to each worker once. Tasks are taken from the left;
        more can be added while answers come in. `here` is called with some of them, if this process is to work too.
        What is finished is taken in before anything is raised: an `OSError` if workers or the connection are lost.
        """
        shared = value if isinstance(value, Shared) else self.share(value)
        pending: dict[Future[Any], Task] = {}
        is_missing = False  # whether a worker could not read the value, which the next task then brings with it
        inbox = tempfile.mkdtemp(dir=self.folder.path)
        try:
            while tasks or pending:
                lost: BaseException | None = None
                raised: BaseException | None = None
                seconds = SECONDS_BETWEEN_CHECKS
                try:
                    # A worker need not wait for its next task, nor this process for the last one of a worker.
                    while tasks and len(pending) < self.width * (1 if here and len(tasks) <= self.width else 2):
                        source = (cloudpickle.dumps(shared.value), {}) if is_missing else shared.source
                        future = self.send(function, shared, tasks[0], source=source, inbox=inbox)
                        pending[future], is_missing = tasks.popleft(), False
                except BrokenExecutor as broken:
                    lost = broken
                if here is not None and tasks:
                    task, seconds = tasks.popleft(), 0.0
                    try:
                        answer = here(task)
                    except BaseException as failure:
                        raised = failure
                    else:
                        yield task, answer
                wait(pending, seconds, FIRST_COMPLETED)
                self.check()
                ready = [future for future in pending if future.done()]
                for future in sorted(ready, key=lambda each: _failure_of(each) is not None):
                    if (loss := _loss_of(future)) is not None:
                        lost = loss
                    elif isinstance(answer := self.answer(future), Missing):
                        is_missing = True
                        tasks.appendleft(pending.pop(future))
                    else:
                        yield pending.pop(future), answer
                if raised is not None:
                    raise raised
                if lost is not None:
                    self.recover(lost)
                    shared = self.share(shared.value)
                    for future in [each for each in pending if each.done() and _loss_of(each) is not None]:
                        tasks.appendleft(pending.pop(future))
        finally:
            cancel = self.executor.withdraw if isinstance(self.executor, Processes) else Future.cancel
            for future in pending:
                cancel(future)
            # Workers that are still busy find no folder of this name, so nothing is added while it is removed.
            with suppress(OSError):
                shutil.rmtree(Path(inbox).rename(f"{inbox}-closed"))


def _failure_of(future: Future[Any]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _loss_of(future: Future[Any]) -> BaseException | None:
    """Why a task has come to nothing, if workers were lost and it has not failed itself."""
    failure = _failure_of(future)
    is_killed = type(failure).__name__ == "KilledWorker"  # Dask's error
    return failure if is_killed or isinstance(failure, (BrokenExecutor, CancelledError)) else None


def crew_of(executor: Executor) -> Crew:
    """The workers of an executor."""
    if not callable(getattr(executor, "submit", None)):
        raise InputError(f"executor must have a method submit, as concurrent.futures.Executor has, got {executor!r}")
    if hasattr(getattr(executor, "_client", None), "scatter"):
        return DaskCrew(executor)
    return Crew(executor)


# Workers of a Dask cluster.

SECONDS_ALONE = 30.0  # that a cluster may be without workers before that is said
MOST_LOSSES = 8  # how often the workers that hold the shared value may all be lost


class DaskCrew(Crew):
    """The workers behind `Client.get_executor()`.

    The shared value is scattered to the workers that are there, its large arrays once for all values that hold them;
    later workers get both from them. Tasks of a worker that is killed are run by others, and if the value is lost with
    it, it is scattered anew. Without any worker the work waits for one, and says so.
    """

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self._options: dict[str, Any] = {**getattr(executor, "_kwargs", {}), "pure": False}
        self._client: Any = getattr(executor, "_client")  # noqa: B009 - it has no public name
        self._num_threads, self._next_look, self._num_losses = 0, 0.0, 0
        self._alone_since: float | None = None

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
            self._alone_since = float("inf")  # it is said once
            warnings.warn(
                f"The Dask cluster {self._scheduler} has no workers: the work goes on as soon as there is one, and "
                "Ctrl-C keeps what is finished.",
                stacklevel=2,
            )
        return self._num_threads

    def put(self, content: bytes | memoryview) -> Any:
        """Sends bytes to all workers, as soon as there is one; arrays that Dask itself unpacks need not be aligned."""
        while True:
            while not self._look():
                time.sleep(SECONDS_BETWEEN_CHECKS / 4)
            try:
                return self._client.scatter(bytes(content), broadcast=True, hash=False)
            except OSError:  # one of them has gone meanwhile, if it is not the scheduler
                self.recover(CancelledError())

    def _submit(self, *call: Any) -> Future[Any]:
        return answer_of(self._ask(lambda: self._client.submit(*call, **self._options)))

    def recover(self, loss: BaseException) -> None:
        """See `Crew.recover`: a task is cancelled if the scheduler is gone, or every worker that held the value."""
        self.check()
        if not isinstance(loss, CancelledError):
            super().recover(loss)
        self.parts.clear()
        self._num_losses += 1
        if self._num_losses > MOST_LOSSES:
            raise ChildProcessError(f"workers of the Dask cluster were lost {self._num_losses} times; {KEPT}") from None

    def check(self) -> None:
        """Raises ConnectionError if the scheduler is gone."""
        self._look()

    def _ask(self, ask: Callable[[], Any]) -> Any:
        failure: Exception | None = None
        if self._client.status == "running":
            try:
                return ask()
            except Exception as raised:
                failure = raised
        if failure is None or self._client.status != "running" or isinstance(failure, OSError):
            raise ConnectionError(f"the Dask scheduler {self._scheduler} is gone; {KEPT}") from None
        raise failure

    @property
    def _scheduler(self) -> str:
        return str(getattr(self._client.scheduler, "address", ""))


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


LOCAL = "local:"
RESTARTS = 3  # of the processes of `local:N`
CONNECT_SECONDS = 15.0


@contextmanager
def executor_at(address: str) -> Iterator[Executor]:
    """Connects to a Dask cluster at `tcp://scheduler:8786`, or starts 4 processes here for `local:4`, within a block.

    `InputError` if that is no address, or Dask is not installed; `ConnectionError` if the scheduler does not answer.
    """
    if address.startswith(LOCAL):
        number = address.removeprefix(LOCAL)
        if not number.isdecimal() or int(number) < 1:
            raise InputError(f"dask must be the address of a scheduler or local:N with N at least 1, got {address!r}")
        with Processes(int(number), restarts=RESTARTS) as processes:
            yield processes
        return
    try:
        import distributed
    except ModuleNotFoundError as missing:
        raise InputError(f"Dask is needed: pip install 'bmpaudit[dask]' ({missing})") from None
    # A lost connection is an error of ours, in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, ImportError) as failure:
        raise ConnectionError(f"no Dask scheduler answers at {address}: {one_line(failure)}") from None
    try:
        yield client.get_executor()
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
