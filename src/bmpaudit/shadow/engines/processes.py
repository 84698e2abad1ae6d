"""An engine that trains models of the user's own in several processes."""

from __future__ import annotations

import copy
import time
import warnings
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import ClassVar, Generic

from bmpaudit.interfaces import Progress
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.reused_memory import reused_memory
from bmpaudit.shadow.engines.team import Finished, Team, TeamError, training_error
from bmpaudit.shadow.engines.trainer import AnyTrainer, Recipe
from bmpaudit.shadow.engines.worker import Task, in_one_line
from bmpaudit.shadow.plan import ShadowPlan

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
