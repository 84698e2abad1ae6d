"""Engines that train models of the user's own: in this process and in others beside it, seeded for each model."""

from __future__ import annotations

import copy
import ctypes
import os
import random
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from bmpaudit.interfaces import Progress
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError, one_line
from bmpaudit.workers import Crew, Processes, Shared

SECONDS_ALONE = 1.0
"""How long to train before other processes are started: they take seconds to start, which a short run does not."""


@contextmanager
def seeded_generators(seed: int) -> Iterator[None]:
    """Within the block `random` and `numpy.random` start from a seed; afterwards they are as they were."""
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
    kernel fills it with zeros page by page, which takes up to two thirds of a training step. Other processes are
    started with such settings (`workers.ENVIRONMENT`).
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

    def for_trial(self) -> Self:
        """The same or a shorter training, enough to tell whether processes compute alike."""

    def fill(self, batch: ShadowBatch) -> None:
        """Trains and scores the only model of a batch; global random generators are left as they were."""


def train(trainer: Trainer, model: ShadowBatch) -> ShadowBatch:
    """Fills the batch of a model; what the user's code raises is the cause of an `InputError`."""
    try:
        trainer.fill(model)
    except Exception as failure:
        reason = str(failure) if isinstance(failure, InputError) else one_line(failure)
        if isinstance(failure, ImportError):
            reason = f"its training needs what is not installed ({reason})"
        raise InputError(f"shadow model {model.indices[0]}: {reason}") from failure
    return model


@dataclass(frozen=True, eq=False)
class Lesson:
    """What another process needs to train models, sent to it once.

    A process takes part when it has trained the trial model to the same bytes as the first one has. So nothing that
    processes do not have in common, such as a module edited since it was imported, can change a result.
    """

    trainer: Trainer
    prepare: Callable[[], None] | None  # gives the process the settings of the first one; it trains and nothing else
    trial: ShadowBatch  # to try with `Trainer.for_trial`
    expected: list[bytes]  # what it is in the first process

    @cached_property
    def objection(self) -> str:
        """Why this process cannot train models; empty if it can."""
        warnings.simplefilter("ignore")  # the first process has trained models already
        if self.prepare is not None:
            self.prepare()
        try:
            trial = train(self.trainer.for_trial(), self.trial)
        except InputError as failure:
            return f"another process cannot train them ({failure})"
        if contents(trial) == self.expected:
            return ""
        reasons = "has its module changed since it was imported, or does it draw from a generator of its own?"
        return f"a model came out differently in another process ({reasons})"


def join_in(lesson: Lesson) -> tuple[int, str]:
    """The number of a process, and why it cannot train models."""
    return os.getpid(), lesson.objection


def train_one(lesson: Lesson, model: ShadowBatch) -> ShadowBatch | str:
    """The model as another process has trained it, or why it cannot."""
    return lesson.objection or train(lesson.trainer, model)


def contents(batch: ShadowBatch) -> list[bytes]:
    """What is in a batch."""
    return [array.tobytes() for array in vars(batch).values() if array is not None]


class Others(NamedTuple):
    """Other processes."""

    processes: Processes
    crew: Crew
    lesson: Shared
    joining: list[Future[Any]]  # by which each tells that it has joined in


class FewerProcessesWarning(UserWarning):
    """Other processes cannot train these models, which are trained one after another in this one."""


class ProcessEngine:
    """Trains in this process and, after a second, in others beside it, each on one thread.

    Model j depends on (graph, plan, j) only: same bytes in any process, on any number of them.
    """

    starts_processes: ClassVar[bool] = True

    def __init__(
        self,
        plan: ShadowPlan,
        trainer: Trainer,
        one_thread: Callable[[], AbstractContextManager[object]],
        *,
        trains_in_parallel: bool = True,
    ) -> None:
        self.plan = plan
        self.trains_in_parallel = trains_in_parallel
        self._trainer = trainer
        self._one_thread = one_thread  # a block in which the library that trains uses one, as in other processes
        self._others: Others | None = None
        self._seconds = 0.0  # of training in this process

    def _preparation(self) -> Callable[[], None] | None:
        """See `Lesson.prepare`."""
        return None

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `interfaces.Engine`; `num_threads` is the number of processes, this one included.

        The others stay until `close`, or until something is raised: an `InputError` by the user's code, which is the
        cause, or a `ChildProcessError` if a process was killed. `FewerProcessesWarning` says that none can help.
        """
        models = deque(batch.part(slice(row, row + 1)) for row in range(len(batch.indices)))
        num_done = 0
        try:
            with self._one_thread(), reused_memory():
                while models:
                    for model, filled in self._train_some(models, num_threads):
                        if isinstance(filled, str):
                            self._warn(filled)
                            filled = self._train(model)
                        for ours, theirs in zip(vars(model).values(), vars(filled).values(), strict=True):
                            if ours is not None and ours is not theirs:  # the answers of another process
                                ours[...] = theirs
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

    def _train_some(
        self, models: deque[ShadowBatch], num_threads: int
    ) -> Iterator[tuple[ShadowBatch, ShadowBatch | str]]:
        """One model after the other as long as nobody helps, then all that are left."""
        size = min(num_threads, len(models)) - 1
        if self.trains_in_parallel and size > 0 and self._seconds >= SECONDS_ALONE:
            tried = None if self._others is not None else self._start(models, num_threads - 1)
            has_help = self._others is not None and self._has_help(self._others, size)
            if tried is not None:
                yield tried, tried
            if self._others is not None and has_help:
                yield from self._others.crew.run(train_one, self._others.lesson, models, here=self._train)
        if models:
            model = models.popleft()
            yield model, self._train(model)

    def _start(self, models: deque[ShadowBatch], number: int) -> ShadowBatch | None:
        """Prepares other processes; the first of the models, if the trial was a whole one."""
        trainer, trial = self._trainer.for_trial(), copy.deepcopy(models[0])
        is_whole = trainer is self._trainer
        tried = models.popleft() if is_whole else copy.deepcopy(trial)
        expected = contents(train(trainer, tried))
        processes = Processes(number)
        crew = Crew(processes)
        try:
            lesson = Lesson(self._trainer, self._preparation(), trial, expected)
            self._others = Others(processes, crew, crew.share(lesson), [])
        except OSError as failure:
            self._go_on_alone(f"the graph cannot be shared ({failure})")
        except Exception as failure:
            remedy = "what cannot be sent, such as a lock or an open file, has to be made within its own code"
            self._go_on_alone(f"{self.plan.model} cannot be pickled ({one_line(failure)}): {remedy}")
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

    def _train(self, model: ShadowBatch) -> ShadowBatch:
        """Trains a model in this process."""
        start = time.monotonic()
        filled = train(self._trainer, model)
        self._seconds += time.monotonic() - start
        return filled

    def _warn(self, reason: str) -> None:
        if self.trains_in_parallel:
            self.trains_in_parallel = False
            message = f"fewer processes than asked for train these models: {reason}"
            warnings.warn(message, FewerProcessesWarning, stacklevel=2)
