"""More and more shadow models, until ε is known well enough or enough is proven.

When to stop depends on what was seen, so what such an audit proves comes from the prequential method, which holds
whenever one stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmpaudit.attack import ErrorCounts
from bmpaudit.auditing.context import Runtime, Subject, variants
from bmpaudit.auditing.finished import Audit, stored_plan
from bmpaudit.auditing.stages import estimate_one, prove_release
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import FEWEST_SHADOWS, AuditPlan
from bmpaudit.proof.guesses import SaysNothingError
from bmpaudit.proof.prove import FIRST_FIT
from bmpaudit.report.drawing import DEFAULT_PICTURES
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.words import number

LEVEL = 0.9
ENDLESS = 10_000  # this many times the present models: their errors then hardly vary
GROWTH = 1.5
PREFERRED_DEFINITION = "bmp-r"

Judge = Callable[[Pipeline], tuple[bool | None, str]]
"""Whether what was wanted is reached (True), can never be (False), or needs more models; and this in words."""


@dataclass(frozen=True, eq=False)
class Stopped:
    """How it ended.

    Attributes:
        is_reached: Whether what was wanted is reached.
        shadows: Number of models.
        message: How it ended, in words.
        audit: The finished audit.
    """

    is_reached: bool
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
    pictures: str = DEFAULT_PICTURES,
) -> Stopped:
    """Adds models until the 90 % interval of the first one-parameter definition is narrower than `width`.

    Stops at once where endless models would not be enough: at the present error rates the remaining width comes from
    the prior, as it does with nodes that are told apart without any error.

    Raises:
        InputError: if the width is not positive.
    """
    if not 0 < width < np.inf:
        raise InputError(f"until_width must be positive, got until_width={width}")
    definition = _first_definition(subject.plan)

    def judge(pipeline: Pipeline) -> tuple[bool | None, str]:
        reached, endless = _widths(pipeline, definition)
        now = f"the 90 % interval of {definition} is {reached:.2f} wide with {pipeline.plan.shadows:,} models"
        if reached < width:
            return True, now
        if endless >= width:
            return False, (
                f"stopped: at the present error rates the 90 % interval of {definition} would be {endless:.2f} wide "
                f"even with endless models (now {reached:.2f}), not {width:g}: what remains is the prior's"
            )
        return None, f"{now}, not {width:g}"

    return _audit_until(judge, subject, workspace, max_shadows, runtime, pictures=pictures)


def audit_until_proven(
    subject: Subject,
    workspace: Workspace,
    epsilon: float,
    max_shadows: int,
    runtime: Runtime,
    *,
    pictures: str = DEFAULT_PICTURES,
) -> Stopped:
    """Adds models until ε_R of the main release is proven to be at least `epsilon`.

    Raises:
        InputError: if ε is not a number.
    """
    if not np.isfinite(epsilon):
        raise InputError(f"until_proven must be a number, got until_proven={epsilon}")

    def judge(pipeline: Pipeline) -> tuple[bool | None, str]:
        shadows = pipeline.plan.shadows
        if pipeline.runs.num_models <= FIRST_FIT:
            return None, f"{shadows:,} models are too few: the prequential method needs more than {FIRST_FIT}"
        release = variants(pipeline.plan)[0].release
        try:
            bound = prove_release(
                pipeline.plan, pipeline.graph, pipeline.runs, pipeline.priors, release, pipeline.runtime
            ).epsilon_right
        except SaysNothingError as reason:
            return None, f"nothing is proven with {shadows:,} models: {reason}"
        proven = "nothing is proven" if bound.proven is None else f"ε_R ≥ {number(bound.proven)} is proven"
        now = f"{proven} with {shadows:,} models, {bound.num_hits:,} of {bound.num_guesses:,} guesses right"
        if bound.proven is not None and bound.proven >= epsilon:
            return True, now
        return None, f"{now}: not ε_R ≥ {epsilon:g}"

    return _audit_until(judge, subject, workspace, max_shadows, runtime, pictures=pictures)


def _audit_until(
    judge: Judge,
    subject: Subject,
    workspace: Workspace,
    max_shadows: int,
    runtime: Runtime,
    *,
    pictures: str,
) -> Stopped:
    check_at_least_one(max_shadows=max_shadows)
    shadows = min(subject.plan.shadows, max(max_shadows, FEWEST_SHADOWS))
    if workspace.plan_path.exists():  # the models that are there count, and none are lost
        shadows = max(shadows, stored_plan(workspace).plan.shadows)
    while True:
        plan = subject.plan.replace(shadows=shadows, proof_method="prequential")
        pipeline = Pipeline(Subject(subject.graph, subject.source, plan), workspace, runtime)
        with pipeline.prepared():
            is_reached, message = judge(pipeline)
            if is_reached is None and shadows >= max_shadows:
                is_reached, message = False, f"stopped at the limit of {max_shadows:,} models: {message}"
            if is_reached is not None:
                pipeline.report(pictures=pictures)
                return Stopped(is_reached, shadows, message, pipeline.audit)
        runtime.notice(message)
        shadows = min(max_shadows, int(np.ceil(shadows * GROWTH)))


def _first_definition(plan: AuditPlan) -> str:
    names = [name for name, definition in plan.definitions_by_name.items() if len(definition.parameters) == 1]
    return names[0] if names else PREFERRED_DEFINITION


def _widths(pipeline: Pipeline, definition: str) -> tuple[float, float]:
    plan, counts = pipeline.plan, pipeline.attacks.main_counts
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
