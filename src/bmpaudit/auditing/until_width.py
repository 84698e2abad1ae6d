"""More and more shadow models, until ε is known well enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.attack import SHADOW_FREQUENCY, ErrorCounts, Evidence, node_mia
from bmpaudit.auditing.attack_step import check_enough_models
from bmpaudit.auditing.audit import find_priors
from bmpaudit.auditing.estimate_step import control_definition
from bmpaudit.auditing.steps import Subject, run_audit, train_step
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.estimation import estimate
from bmpaudit.plan import AuditPlan, Runtime

LEVEL = 0.9
ENDLESS = 10_000  # as many times the present models: their errors then hardly vary
GROWTH = 1.5


@dataclass(frozen=True, eq=False)
class WidthReached:
    """How it ended.

    Attributes:
        is_reached: Whether the interval is narrow enough.
        width: Of the 90 % interval of ε with the models there are.
        endless_width: What it would be with endless models at the present error rates.
        num_shadows: Models there are.
        message: All this in words.
        summary: Of the audit.
    """

    is_reached: bool
    width: float
    endless_width: float
    num_shadows: int
    message: str
    summary: dict[str, Any]


def run_until_width(
    subject: Subject, width: float, max_shadows: int, runtime: Runtime, *, pictures: bool = True
) -> WidthReached:
    """Adds models until the 90 % interval of the first one-parameter definition is narrower than `width`.

    Stops at once where endless models would not be enough: at the present error rates the width that is left comes from
    the prior, as it does with nodes that are told apart without any error.

    Raises:
        InputError: if the width is not positive.
    """
    if not 0 < width < np.inf:
        raise InputError(f"until_width must be positive, got until_width={width}")
    check_at_least_one(max_shadows=max_shadows)
    definition = control_definition(subject.plan)
    prior: npt.NDArray[np.float64] | str = SHADOW_FREQUENCY
    if subject.plan.prior_source != SHADOW_FREQUENCY:
        prior = find_priors(subject.graph, subject.plan, runtime).prob
    while True:
        found, endless = _widths(subject, definition, prior, runtime)
        plan = subject.plan
        if found < width:
            told = f"the 90 % interval of {definition} is {found:.2f} wide with {plan.num_shadows:,} models"
            break
        if endless >= width:
            told = (
                f"stopped: at the present error rates the 90 % interval of {definition} would be {endless:.2f} wide "
                f"even with endless models (now {found:.2f}), not {width:g}: what is left is the prior's"
            )
            break
        if plan.num_shadows >= max_shadows:
            told = (
                f"stopped at the limit of {max_shadows:,} models: with {plan.num_shadows:,} the 90 % interval of "
                f"{definition} is {found:.2f} wide, not {width:g}"
            )
            break
        more = min(max_shadows, int(np.ceil(plan.num_shadows * GROWTH)))
        subject = replace(subject, plan=replace(plan, num_shadows=more))
    summary = run_audit(subject, runtime, pictures=pictures)
    return WidthReached(found < width, found, endless, subject.plan.num_shadows, told, summary)


def _widths(
    subject: Subject, definition: str, prior: npt.NDArray[np.float64] | str, runtime: Runtime
) -> tuple[float, float]:
    plan = subject.plan
    runs = train_step(subject, runtime)
    check_enough_models(runs)
    variant = plan.main_variant
    counts = node_mia(
        Evidence.of_runs(runs, variant.view.output, [variant.view.edges], subject.graph),
        prior,
        attack=plan.attack.attack,
        rule=variant.decision,
        settings=plan.attack.decision,
        num_threads=runtime.num_threads,
    )
    return _width(plan, counts, definition), _width(plan, _scaled(counts), definition)


def _width(plan: AuditPlan, counts: ErrorCounts, definition: Any) -> float:
    posterior = estimate(counts, definition, prior=plan.epsilon_prior, strength=plan.strength)
    return posterior.interval(LEVEL).width


def _scaled(counts: ErrorCounts) -> ErrorCounts:
    """The same error rates with many times the trials.

    Where one kind of error was never made the rate may just be small: it is taken as (A + 1/2)/(n0 + 1). Nodes that are
    told apart without any error, of either kind, stay so.
    """
    is_separated = (counts.false_positives == 0) & (counts.false_negatives == 0)
    is_separated |= (counts.false_positives == counts.num_out) & (counts.false_negatives == counts.num_in)
    errors = {}
    for wrong, all_of in (("false_positives", "num_out"), ("false_negatives", "num_in")):
        number, trials = getattr(counts, wrong), getattr(counts, all_of)
        rate = np.where(is_separated, number / np.maximum(trials, 1), (number + 0.5) / (trials + 1))
        errors[wrong] = np.rint(rate * trials * ENDLESS).astype(np.int64)
    return ErrorCounts.from_arrays(
        num_out=counts.num_out * ENDLESS,
        num_in=counts.num_in * ENDLESS,
        prior_prob=counts.prior_prob,
        node=counts.node,
        **errors,
    )
