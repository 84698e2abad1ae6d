"""The posteriors of an audit: independent of each other, so each can be computed by another worker."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from bmpaudit.attack import ErrorCounts
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.errors import InputError, UntrustedCodeError
from bmpaudit.estimation import Posterior, estimate
from bmpaudit.estimation.steps import PARTS
from bmpaudit.estimation.support import likelihood_of
from bmpaudit.executors import crew_of, dumps
from bmpaudit.interfaces import Progress

JOINT_COST = 10.0  # of a posterior of two parameters, against one
KNOWN_HERE = ("definition", "counts", "likelihood")
"""Fields of a posterior that a worker does not send back."""


class Task(NamedTuple):
    """One posterior: of a definition, from the errors of a variant."""

    variant: str
    definition: str


Answers: TypeAlias = Iterator[tuple[Task, Posterior | str]]
Report: TypeAlias = Callable[[Task, int], None]
"""Is called with how many of `PARTS` of a task are done."""


@dataclass(frozen=True, eq=False)
class PosteriorJob:
    """What all tasks have in common; sent to each worker once.

    Attributes:
        plan: Its definitions and what is assumed.
        counts: Errors by the variant's name.
    """

    plan: AuditPlan
    counts: Mapping[str, ErrorCounts]

    def cost(self, task: Task) -> float:
        """How long a task takes, against a posterior of one parameter."""
        return float(JOINT_COST ** (len(self.plan.definitions_by_name[task.definition].parameters) - 1))

    def run(self, task: Task, runtime: Runtime, progress: Progress) -> Posterior | str:
        """The posterior, or why it cannot be computed."""
        definition = self.plan.definitions_by_name[task.definition]
        try:
            return estimate_one(self.plan, self.counts[task.variant], definition, runtime, progress)
        except UntrustedCodeError:
            raise
        except InputError as reason:
            return str(reason)

    def received(self, task: Task, answer: bytes, num_threads: int | None) -> Posterior:
        """A posterior that a worker has computed."""
        definition, counts = self.plan.definitions_by_name[task.definition], self.counts[task.variant]
        made: dict[str, Any] = pickle.loads(answer)  # noqa: S301 - from a worker, as all answers
        likelihood = likelihood_of(counts, definition, made["is_used"], num_threads=num_threads)
        return Posterior(definition=definition, counts=counts, likelihood=likelihood, **made)


def estimate_one(
    plan: AuditPlan, counts: ErrorCounts, definition: Any, runtime: Runtime, progress: Progress = lambda _: None
) -> Posterior:
    """The posterior of one definition from the errors of one variant."""
    return estimate(
        counts,
        definition,
        prior=plan.epsilon_prior,
        strength=plan.strength,
        num_threads=runtime.num_threads,
        progress=progress,
    )


def run_posteriors(
    job: PosteriorJob, tasks: Sequence[Task], runtime: Runtime, progress: Progress
) -> dict[Task, Posterior | str]:
    """Every posterior, or why it cannot be computed: here one after the other, or on workers of one thread each.

    `progress` is called with how many of `PARTS` are done, by how long tasks take.
    """
    total, done = sum(map(job.cost, tasks)), 0.0
    made = {}

    def report(task: Task, part: int) -> None:
        progress(int((PARTS * done + part * job.cost(task)) / total))

    # The longest first, so that nobody waits for one at the end.
    ordered = deque(sorted(tasks, key=job.cost, reverse=True))
    for task, posterior in (_here if runtime.executor is None else _on_workers)(job, ordered, runtime, report):
        made[task] = posterior
        report(task, PARTS)
        done += job.cost(task)
    return {task: made[task] for task in tasks}


def _here(job: PosteriorJob, tasks: deque[Task], runtime: Runtime, report: Report) -> Answers:
    for task in tasks:
        yield task, job.run(task, runtime, partial(report, task))


def _on_workers(job: PosteriorJob, tasks: deque[Task], runtime: Runtime, _: Report) -> Answers:
    assert runtime.executor is not None  # noqa: S101 - or it would be done here
    for task, answer in crew_of(runtime.executor).run(_run_task, job, tasks):
        yield task, answer if isinstance(answer, str) else job.received(task, answer, runtime.num_threads)


def _run_task(job: PosteriorJob, task: Task) -> bytes | str:
    """What a worker does: it sends back what is not known where the task comes from."""
    made = job.run(task, Runtime(num_threads=1, quiet=True), lambda _: None)
    if isinstance(made, str):
        return made
    return dumps({field.name: getattr(made, field.name) for field in fields(made) if field.name not in KNOWN_HERE})
