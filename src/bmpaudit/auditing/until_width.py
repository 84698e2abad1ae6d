"""More and more shadow models, until ε is known well enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmpaudit.attack import ErrorCounts, Evidence, challenge
from bmpaudit.auditing.attack_step import attack_prior
from bmpaudit.auditing.estimate_step import control_definition, estimate_one
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.pipeline import Pipeline
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.stored import stored_plan
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.variant import variants
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError

LEVEL = 0.9
ENDLESS = 10_000  # this many times the present models: their errors then hardly vary
GROWTH = 1.5


@dataclass(frozen=True, eq=False)
class WidthReached:
    """How it ended.

    Attributes:
        is_reached: Whether the interval is narrow enough.
        width: Width of the 90 % interval of ε with the models there are.
        endless_width: What it would be with endless models at the present error rates.
        shadows: Number of models.
        message: All this in words.
        audit: The finished audit.
    """

    is_reached: bool
    width: float
    endless_width: float
    shadows: int
    message: str
    audit: Audit


def audit_until_width(
    subject: Subject,
    workspace: Workspace,
    width: float,
    max_shadows: int,
    runtime: Runtime,
    *,
    pictures: bool = True,
) -> WidthReached:
    """Adds models until the 90 % interval of the first one-parameter definition is narrower than `width`.

    Stops at once where endless models would not be enough: at the present error rates the remaining width comes from
    the prior, as it does with nodes that are told apart without any error.

    Raises:
        InputError: if the width is not positive.
    """
    if not 0 < width < np.inf:
        raise InputError(f"until_width must be positive, got until_width={width}")
    check_at_least_one(max_shadows=max_shadows)
    definition = control_definition(subject.plan)
    if workspace.plan_path.exists():  # the models that are there count, and none are lost
        there = stored_plan(workspace).plan.shadows
        subject = _with_shadows(subject, max(subject.plan.shadows, there))
    while True:
        pipeline = Pipeline(subject, workspace, runtime)
        shadows = subject.plan.shadows
        with pipeline.prepared():
            reached, endless = _widths(pipeline, definition)
            message = _message(definition, width, reached, endless, shadows, max_shadows)
            if message is not None:
                pipeline.report(pictures=pictures)
                return WidthReached(reached < width, reached, endless, shadows, message, pipeline.audit)
        more = min(max_shadows, int(np.ceil(shadows * GROWTH)))
        subject = _with_shadows(subject, more)


def _with_shadows(subject: Subject, shadows: int) -> Subject:
    return Subject(subject.graph, subject.source, subject.plan.replace(shadows=shadows))


def _message(
    definition: str, width: float, reached: float, endless: float, shadows: int, max_shadows: int
) -> str | None:
    """Why to stop, or None to go on."""
    if reached < width:
        return f"the 90 % interval of {definition} is {reached:.2f} wide with {shadows:,} models"
    if endless >= width:
        return (
            f"stopped: at the present error rates the 90 % interval of {definition} would be {endless:.2f} wide even "
            f"with endless models (now {reached:.2f}), not {width:g}: what remains is the prior's"
        )
    if shadows >= max_shadows:
        return (
            f"stopped at the limit of {max_shadows:,} models: with {shadows:,} the 90 % interval of {definition} is "
            f"{reached:.2f} wide, not {width:g}"
        )
    return None


def _widths(pipeline: Pipeline, definition: str) -> tuple[float, float]:
    plan, main = pipeline.plan, variants(pipeline.plan)[0]
    evidence = Evidence.of_runs(pipeline.runs, main.release, main.queries, pipeline.graph)
    counts = challenge(
        plan.attack,
        evidence,
        attack_prior(plan, pipeline.priors),
        {main.rule: plan.rules_by_name[main.rule]},
        settings=plan.decision_settings,
        num_threads=pipeline.runtime.num_threads,
    ).error_counts(main.rule)
    part = plan.definitions_by_name.get(definition, definition)

    def width_of(table: ErrorCounts) -> float:
        return estimate_one(plan, table, part, pipeline.runtime).interval(LEVEL).width

    return width_of(counts), width_of(_scaled(counts))


def _scaled(counts: ErrorCounts) -> ErrorCounts:
    """The same error rates with many times the trials.

    Where one kind of error was never made its rate may just be small: it is taken as (A + 1/2)/(n0 + 1). Nodes that are
    told apart without any error, of either kind, stay so.
    """
    is_separated = (counts.false_positives == 0) & (counts.false_negatives == 0)
    is_separated |= (counts.false_positives == counts.num_out) & (counts.false_negatives == counts.num_in)
    errors = {}
    for wrong, trials_name in (("false_positives", "num_out"), ("false_negatives", "num_in")):
        number, trials = getattr(counts, wrong), getattr(counts, trials_name)
        rate = np.where(is_separated, number / np.maximum(trials, 1), (number + 0.5) / (trials + 1))
        errors[wrong] = np.rint(rate * trials * ENDLESS).astype(np.int64)
    return ErrorCounts.from_arrays(
        num_out=counts.num_out * ENDLESS,
        num_in=counts.num_in * ENDLESS,
        prior_prob=counts.prior_prob,
        node=counts.node,
        **errors,
    )
