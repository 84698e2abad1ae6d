"""Training in several processes: a trainer in each, models as they come, seeded for each model."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from bmpaudit.interfaces import Progress
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError, one_line
from bmpaudit.util.values import Floats32
from bmpaudit.workers import dumps


@contextmanager
def seeded_generators(seed: int) -> Iterator[None]:
    """Within the block `random` and `numpy.random` start from a seed; afterwards they are as they were.

    What a model draws from them then depends on the model alone, in whichever process it is trained.
    """
    before, numpy_before = random.getstate(), np.random.get_state()  # noqa: NPY002 - the state that others use
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)  # noqa: NPY002


# Memory that PyTorch frees is used again, instead of going back to the operating system.


# Of glibc's malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, MMAP_MAX = -1, -2, -3, -4
MEBIBYTE = 1 << 20


@contextmanager
def reused_memory() -> Iterator[None]:
    """Within the block, freed memory stays with the process; after it, what is free is given back.

    Each operation on a graph makes tensors of megabytes and frees them. glibc maps such memory anew every time, and the
    kernel fills it with zeros page by page, which takes up to two thirds of a training step. Without glibc, this does
    nothing.
    """
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        yield
        return
    _set(library, {MMAP_MAX: 0, TRIM_THRESHOLD: -1, TOP_PAD: 64 * MEBIBYTE})
    try:
        yield
    finally:
        # glibc's own defaults, with the thresholds as high as it would raise them in time.
        _set(
            library, {MMAP_MAX: 65_536, MMAP_THRESHOLD: 32 * MEBIBYTE, TRIM_THRESHOLD: 64 * MEBIBYTE, TOP_PAD: 131_072}
        )
        library.malloc_trim(0)


def _set(library: Any, settings: dict[int, int]) -> None:
    for name, value in settings.items():
        library.mallopt(name, value)


# What an engine that trains in several processes is made of.


class Trainer(Protocol):
    """Trains models one by one in the process it is in."""

    @property
    def plan(self) -> ShadowPlan:
        """What to train; its sampler and queries are not used."""

    def for_trial(self) -> Self:
        """The same or a shorter training, enough to tell whether processes compute alike."""

    def fill(self, batch: ShadowBatch, initial: Floats32 | None) -> None:
        """Trains and scores the only model of a batch; global random generators are left as they were.

        Args:
            batch: What to train, and where the answers go.
            initial: Initial parameters in the order of the native engine, for a built-in model.
        """


AnyTrainer = TypeVar("AnyTrainer", bound=Trainer)


class Recipe(Protocol[AnyTrainer]):
    """How another process makes the trainer that this one has; it is pickled."""

    def save(self, trainer: AnyTrainer, folder: Path) -> None:
        """Writes what all processes map into their memory."""

    def load(self, folder: Path) -> AnyTrainer:
        """Makes the trainer in another process, whose settings it may change: the process trains and nothing else."""


# The process that trains models for another one, which sends them through stdin and reads them from stdout.
#
# Both ways go whole pickles: first a `Setup` as bytes, answered by a `Reply` with the trial model, then one `Task`
# after
# another, each answered by a `Reply`. Whoever starts this process has imported all the code that its pickles name.


@dataclass(frozen=True, eq=False)
class Task:
    """A model to train.

    Attributes:
        batch: A batch of one model.
        initial: See `Trainer.fill`.
    """

    batch: ShadowBatch
    initial: Floats32 | None


@dataclass(frozen=True, eq=False)
class Reply:
    """What became of a task.

    Attributes:
        batch: The batch, filled; None if something was raised.
        error: What was raised, in one line.
        trace: Where it was raised.
    """

    batch: ShadowBatch | None
    error: str = ""
    trace: str = ""


@dataclass(frozen=True, eq=False)
class Setup:
    """What a process needs before its first task.

    Attributes:
        recipe: How to make what trains models.
        trial: A model that the other process trains too, with `Trainer.for_trial`.
    """

    recipe: Recipe[Any]
    trial: Task


def _unpickle(payload: bytes) -> Any:
    """Loads what may name modules of the current folder, in which `registry.import_target` looks for them too."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return pickle.loads(payload)  # noqa: S301 - from the process that started this one
    finally:
        sys.path.remove(here)


def in_one_line(failure: Exception) -> str:
    """What the user's code, or bmpaudit's own checks of it, have raised."""
    if isinstance(failure, ImportError):
        return f"its training needs what is not installed ({one_line(failure)})"
    return str(failure) if isinstance(failure, InputError) else one_line(failure)


def _answer(trainer: Trainer, task: Task) -> Reply:
    try:
        trainer.fill(task.batch, task.initial)
    except Exception as failure:
        return _failed(failure)
    return Reply(task.batch)


def _failed(failure: Exception) -> Reply:
    return Reply(None, in_one_line(failure), "".join(traceback.format_exception(failure)))


def _channels() -> tuple[BinaryIO, BinaryIO]:
    """Pipes of this process's own; what the user's code prints goes to stderr, and it has nothing to read."""
    tasks, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return tasks, replies


def _receive_all(tasks: BinaryIO, received: queue.SimpleQueue[Any], folder: Path) -> None:
    """Passes on what comes in, and ends the process as soon as the other one has ended, however that was."""
    while True:
        try:
            received.put(pickle.load(tasks))  # noqa: S301 - from the process that started this one
        except (EOFError, OSError, pickle.UnpicklingError):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)


def main(folder: Path) -> None:
    """Trains until the other process ends."""
    tasks, replies = _channels()
    received: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive_all, args=(tasks, received, folder), daemon=True).start()

    def send(reply: Reply) -> None:
        pickle.dump(reply, replies, protocol=pickle.HIGHEST_PROTOCOL)
        replies.flush()

    try:
        setup: Setup = _unpickle(received.get())
        trainer: Trainer = setup.recipe.load(folder)
    except Exception as failure:
        send(_failed(failure))
        return
    with reused_memory():
        send(_answer(trainer.for_trial(), setup.trial))
        while True:
            send(_answer(trainer, received.get()))


# Processes that train models beside this one.


START = """\
import sys
sys.path[:] = {path}
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has started this one
from pathlib import Path
from bmpaudit.shadow.engines.processes import main
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


# An engine that trains models of the user's own in several processes.


SECONDS_ALONE = 1.0
"""How long to train before other processes are started: they take seconds to start, which a short run does not."""


class FewerProcessesWarning(UserWarning):
    """Other processes cannot train these models, which are trained one after another in this one."""


class ProcessEngine(ABC, Generic[AnyTrainer]):
    """Trains in this process and, after a second, in others beside it, each on one thread.

    Model j depends on (graph, plan, j) only: same bytes in any process, on any number of them.

    Args:
        plan: What to train.
        trainer: What trains it in this process.
        trains_in_parallel: Whether other processes may help.

    Attributes:
        trains_in_parallel: Whether more threads train more models at once.
    """

    starts_processes: ClassVar[bool] = True

    def __init__(self, plan: ShadowPlan, trainer: AnyTrainer, *, trains_in_parallel: bool = True) -> None:
        self.plan = plan
        self.trains_in_parallel = trains_in_parallel
        self._trainer = trainer
        self._team: Team | None = None
        self._has_warned = False
        self._seconds = 0.0  # of training in this process

    @abstractmethod
    def _recipe(self) -> Recipe[AnyTrainer]:
        """How another process makes the trainer."""

    @abstractmethod
    def _one_thread(self) -> AbstractContextManager[object]:
        """A block in which the library that trains uses one thread, as it does in other processes."""

    def _task(self, batch: ShadowBatch, row: int) -> Task:
        return Task(batch.part(slice(row, row + 1)), None)

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `interfaces.Engine`; `num_threads` is the number of processes, this one included.

        The others stay until `close`, or until something is raised.

        Raises:
            InputError: if the user's code raises something, which is the cause.
            ChildProcessError: if a process was killed.

        Warns:
            FewerProcessesWarning: if no other process can train these models.
        """
        tasks = [self._task(batch, row) for row in range(len(batch.indices))]
        try:
            with self._one_thread(), reused_memory():
                for number, task in enumerate(tasks):
                    team = self._team_for(tasks[number:], num_threads)
                    if team is not None:
                        self._train_with(team, tasks, progress)
                        break
                    self._train(self._trainer, task)
                    progress(number + 1)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the other processes; the next `fill` starts new ones."""
        team, self._team = self._team, None
        if team is not None:
            team.close()

    def __del__(self) -> None:
        if hasattr(self, "_team"):  # else it was not made
            self.close()

    @property
    def processes(self) -> list[int]:
        """Ids of the other processes that have joined in."""
        return [] if self._team is None else list(self._team.ready)

    def _team_for(self, tasks: list[Task], num_threads: int) -> Team | None:
        """The processes that help with these tasks, started if they are not there yet; None if there are none.

        The first task serves as the trial.
        """
        size = min(num_threads, len(tasks)) - 1
        if not self.trains_in_parallel or size < 1 or self._seconds < SECONDS_ALONE:
            return None
        try:
            if self._team is None:
                trainer = self._trainer.for_trial()
                trial = tasks[0] if trainer is self._trainer else copy.deepcopy(tasks[0])
                self._team = Team(self._trainer, self._recipe(), trial)
                self._team.grow(size)
                self._train(trainer, trial)
                self._team.expect(trial.batch)
            else:
                self._team.grow(size)
        except TeamError as reason:
            self.close()
            self.trains_in_parallel = False
            self._warn(reason)
        return self._team

    def _train(self, trainer: AnyTrainer, task: Task) -> None:
        """Trains a model in this process."""
        start = time.monotonic()
        try:
            trainer.fill(task.batch, task.initial)
        except Exception as failure:
            raise training_error(task, in_one_line(failure)) from failure
        self._seconds += time.monotonic() - start

    def _train_with(self, team: Team, tasks: list[Task], progress: Progress) -> None:
        todo = [task for task in tasks if not task.batch.is_done.all()]
        for task in todo:
            team.tasks.put(task)
        left = len(todo)
        try:
            while left > 0:
                own = team.next_task()
                if own is not None:
                    self._train(self._trainer, own)
                    left -= 1
                for answer in team.answers(wait=own is None):
                    left -= self._take_in(answer)
                progress(len(tasks) - left)
        except BaseException:
            for answer in team.answers(wait=False):
                if isinstance(answer, Finished):
                    answer.keep()
            raise

    def _take_in(self, answer: Finished | Exception) -> int:
        """Keeps what another process has finished, and returns the number of models."""
        if isinstance(answer, Finished):
            answer.keep()
            return 1
        if isinstance(answer, TeamError):
            self._warn(answer)
            return 0
        raise answer

    def _warn(self, reason: TeamError) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"fewer processes than asked for train these models: {reason}; what is defined in a module can be "
                "sent to other processes, and with cloudpickle (pip install cloudpickle) what is defined in a script "
                "or notebook too",
                FewerProcessesWarning,
                stacklevel=2,
            )
