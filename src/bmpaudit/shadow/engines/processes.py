"""Engines that train models of the user's own: in this process and in others beside it, seeded for each model."""

from __future__ import annotations

import copy
import ctypes
import os
import random
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from bmpaudit.interfaces import Progress
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError, one_line
from bmpaudit.util.values import Floats32
from bmpaudit.workers import Crew, Processes, Shared

SECONDS_ALONE = 1.0
"""How long to train before other processes are started: they take seconds to start, which a short run does not."""


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


# Of glibc's malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, MMAP_MAX = -1, -2, -3, -4
MEBIBYTE = 1 << 20


@contextmanager
def reused_memory() -> Iterator[None]:
    """Within the block, freed memory stays with the process; after it, what is free is given back.

    Each operation on a graph makes tensors of megabytes and frees them. glibc maps such memory anew every time, and the
    kernel fills it with zeros page by page, which takes up to two thirds of a training step. Without glibc, this does
    nothing. Other processes are started with such settings (`workers.ENVIRONMENT`).
    """
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        yield
        return
    for name, value in {MMAP_MAX: 0, TRIM_THRESHOLD: -1, TOP_PAD: 64 * MEBIBYTE}.items():
        library.mallopt(name, value)
    # glibc's own defaults, with the thresholds as high as it would raise them in time.
    defaults = {MMAP_MAX: 65_536, MMAP_THRESHOLD: 32 * MEBIBYTE, TRIM_THRESHOLD: 64 * MEBIBYTE, TOP_PAD: 131_072}
    try:
        yield
    finally:
        for name, value in defaults.items():
            library.mallopt(name, value)
        library.malloc_trim(0)


class Trainer(Protocol):
    """Trains models one by one in the process it is in; can be pickled."""

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


@dataclass(frozen=True, eq=False)
class OneModel:
    """A model to train: a batch of one, and see `Trainer.fill`."""

    batch: ShadowBatch
    initial: Floats32 | None

    def train(self, trainer: Trainer) -> ShadowBatch:
        """Fills the batch.

        Raises:
            InputError: if the user's code raises something, which is the cause.
        """
        try:
            trainer.fill(self.batch, self.initial)
        except Exception as failure:
            reason = str(failure) if isinstance(failure, InputError) else one_line(failure)
            if isinstance(failure, ImportError):
                reason = f"its training needs what is not installed ({reason})"
            raise InputError(f"shadow model {self.batch.indices[0]}: {reason}") from failure
        return self.batch

    def keep(self, filled: ShadowBatch) -> None:
        """Copies the answers of another process."""
        for ours, theirs in zip(vars(self.batch).values(), vars(filled).values(), strict=True):
            if ours is not None and ours is not theirs:
                ours[...] = theirs


@dataclass(frozen=True, eq=False)
class Lesson:
    """What another process needs to train models, sent to it once.

    A process takes part when it has trained the trial model to the same bytes as the first one has. So whatever
    processes might not have in common (a module edited since it was imported, a setting changed at run time, a
    generator that is not seeded) can change no result.

    Attributes:
        trainer: What trains them.
        prepare: Gives the process the settings of the first one; it trains and nothing else.
        trial: A model to try with `Trainer.for_trial`.
        expected: What it is in the first process.
    """

    trainer: Trainer
    prepare: Callable[[], None]
    trial: OneModel
    expected: list[bytes]

    @cached_property
    def objection(self) -> str:
        """Why this process cannot train models; empty if it can."""
        warnings.simplefilter("ignore")  # the first process has trained models already
        self.prepare()
        try:
            trial = self.trial.train(self.trainer.for_trial())
        except InputError as failure:
            return f"another process cannot train them ({failure})"
        if contents(trial) == self.expected:
            return ""
        return (
            "a model came out differently in another process (has its module changed since it was imported, "
            "or does it draw from a generator of its own?)"
        )


def join_in(lesson: Lesson) -> tuple[int, str]:
    """The number of a process, and why it cannot train models."""
    return os.getpid(), lesson.objection


def train_one(lesson: Lesson, model: OneModel) -> ShadowBatch | str:
    """The model as another process has trained it, or why it cannot."""
    return lesson.objection or model.train(lesson.trainer)


def contents(batch: ShadowBatch) -> list[bytes]:
    """What is in a batch."""
    return [array.tobytes() for array in vars(batch).values() if array is not None]


class Others(NamedTuple):
    """Other processes, what they have in common, and by what each tells that it has joined in."""

    processes: Processes
    crew: Crew
    lesson: Shared
    joining: list[Future[Any]]


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
        self._others: Others | None = None
        self._seconds = 0.0  # of training in this process

    @abstractmethod
    def _one_thread(self) -> AbstractContextManager[object]:
        """A block in which the library that trains uses one thread, as it does in other processes."""

    def _preparation(self) -> Callable[[], None]:
        """See `Lesson.prepare`."""
        return _nothing

    def _model(self, batch: ShadowBatch, row: int) -> OneModel:
        return OneModel(batch.part(slice(row, row + 1)), None)

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `interfaces.Engine`; `num_threads` is the number of processes, this one included.

        The others stay until `close`, or until something is raised.

        Raises:
            InputError: if the user's code raises something, which is the cause.
            ChildProcessError: if a process was killed.

        Warns:
            FewerProcessesWarning: if no other process can train these models.
        """
        models = deque(self._model(batch, row) for row in range(len(batch.indices)))
        num_done = 0
        try:
            with self._one_thread(), reused_memory():
                while models:
                    for model, filled in self._train_some(models, num_threads):
                        if isinstance(filled, str):
                            self._warn(filled)
                            filled = self._train(model)
                        model.keep(filled)
                        num_done += 1
                        progress(num_done)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the other processes; the next `fill` starts new ones."""
        others, self._others = self._others, None
        if others is not None:
            others.processes.shutdown()

    def __del__(self) -> None:
        if hasattr(self, "_others"):  # else it was not made
            self.close()

    @property
    def processes(self) -> list[int]:
        """Numbers of the other processes that have joined in."""
        joining = [] if self._others is None else self._others.joining
        joined = [future.result().read() for future in joining if future.done() and future.exception() is None]
        return sorted({number for number, _ in joined})

    def _train_some(self, models: deque[OneModel], num_threads: int) -> Iterator[tuple[OneModel, ShadowBatch | str]]:
        """One model after the other as long as nobody helps, then all that are left."""
        size = min(num_threads, len(models)) - 1
        if self.trains_in_parallel and size > 0 and self._seconds >= SECONDS_ALONE:
            tried = None if self._others is not None else self._start(models, num_threads - 1)
            has_help = self._others is not None and self._has_help(self._others, size)
            if tried is not None:
                yield tried, tried.batch
            if self._others is not None and has_help:
                yield from self._others.crew.run(train_one, self._others.lesson, models, here=self._train)
        if models:
            model = models.popleft()
            yield model, self._train(model)

    def _start(self, models: deque[OneModel], number: int) -> OneModel | None:
        """Prepares other processes; the first of the models, if the trial was a whole one."""
        trainer, trial = self._trainer.for_trial(), copy.deepcopy(models[0])
        is_whole = trainer is self._trainer
        tried = models.popleft() if is_whole else copy.deepcopy(trial)
        tried.train(trainer)
        processes = Processes(number)
        crew = Crew(processes)
        try:
            lesson = Lesson(self._trainer, self._preparation(), trial, contents(tried.batch))
            self._others = Others(processes, crew, crew.share(lesson), [])
        except OSError as failure:
            self._go_on_alone(f"the graph cannot be shared ({failure})")
        except Exception as failure:
            self._go_on_alone(
                f"{self.plan.model} cannot be pickled ({one_line(failure)}): what cannot be sent, such as a lock or an "
                "open file, has to be made within its own code"
            )
        return tried if is_whole else None

    def _has_help(self, others: Others, size: int) -> bool:
        """Whether one of so many processes has joined in; that takes seconds, for which nobody waits."""
        joined: list[Future[Any]] = []
        try:
            while len(others.joining) < size:
                others.joining.append(others.crew.send(join_in, others.lesson))
            joined = [future for future in others.joining if future.done()]
            objection = next(filter(None, (future.result().read()[1] for future in joined)), None)
        except BrokenExecutor:
            objection = f"another process {others.processes.restart()} before it was ready"
        except Exception as failure:
            objection = f"another process cannot train them ({one_line(failure)})"
        if objection is not None:
            self._go_on_alone(objection)
            return False
        return len(joined) > 0

    def _go_on_alone(self, reason: str) -> None:
        self.close()
        self._warn(reason)

    def _train(self, model: OneModel) -> ShadowBatch:
        """Trains a model in this process."""
        start = time.monotonic()
        filled = model.train(self._trainer)
        self._seconds += time.monotonic() - start
        return filled

    def _warn(self, reason: str) -> None:
        if self.trains_in_parallel:
            self.trains_in_parallel = False
            warnings.warn(
                f"fewer processes than asked for train these models: {reason}", FewerProcessesWarning, stacklevel=2
            )


def _nothing() -> None:
    """There are no settings."""
