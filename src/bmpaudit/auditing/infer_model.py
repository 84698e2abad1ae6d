"""From one released model to who was in its training sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack import Evidence
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.infer_attack import Calibration, Posterior, attack_released, calibrate
from bmpaudit.auditing.infer_check import behaviour
from bmpaudit.auditing.infer_inputs import declared_prior, known_members
from bmpaudit.auditing.infer_score import CERTAINTIES, InferenceScore, LogOdds, count_named, score_inference
from bmpaudit.auditing.inference import Inference, inference_table
from bmpaudit.auditing.pipeline import Pipeline
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.stored import read_priors, read_runs, stored_subject
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.variant import attack_on
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import InputError
from bmpaudit.registry import ATTACK, RELEASE, UntrustedPart
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.released import read_released


def infer(
    folder_or_audit: str | Path | Audit,
    model: Any,
    *,
    release: str | None = None,
    prior: Any = None,
    truth: Any = None,
    trust_code: bool = False,
    num_threads: int | None = None,
    runtime: Runtime | None = None,
) -> Inference:
    """Infers who was in the training sample of one released model, with shadow models as the reference.

    The attack is the plan's, fitted on all shadow models under the release, on those of the plan's queries that are
    answered. Its log-odds are recalibrated on the shadow models, each scored by a fit on the others. Nothing is
    written.

    Args:
        folder_or_audit: An audit folder with shadow models, or a finished audit.
        model: The released model: a file, arrays by name, an `nn.Module` or a fitted classifier (see `read_released`).
        release: Label of the release that the model was given out under; the plan's first if None.
        prior: Declared prior probabilities (see `declared_prior`); the sampler's if None. It shifts the log-odds.
        truth: Who was in, if that is known (see `known_members`).
        trust_code: Whether code that the folder names `module:Name` may run.
        num_threads: Number of threads; all cores if None.
        runtime: Progress and notices.

    Raises:
        DataError: if a file is missing or damaged, or the folder has no shadow models.
        InputError: if the model does not fit the plan or the graph, or an argument is impossible.
    """
    runtime = runtime or Runtime(num_threads)
    subject, runs, priors = _reference(folder_or_audit, runtime, trust_code)
    graph, plan = subject.graph, subject.plan
    if isinstance(plan.attack, UntrustedPart):
        raise registry.untrusted(ATTACK, plan.attack.target)
    release = _chosen_release(plan, release)
    released = read_released(model, graph, plan.shadow_plan, release)
    declared = priors.prob if prior is None else declared_prior(prior, graph)
    members = None if truth is None else known_members(truth, graph)

    shadows = Evidence.of_runs(runs, release, list(released.statistics), graph)
    calibration = calibrate(attack_on(plan, release), shadows, priors.prob, num_threads)
    posterior = attack_released(calibration, shadows, released.statistics, priors.prob, num_threads)
    shift = _prior_shift(declared, priors.prob, posterior)
    log_odds = np.where(posterior.is_attacked, posterior.log_odds.calibrated + shift, log_prior_odds(declared))
    behaves = behaviour(shadows.statistics, released.statistics)
    score = None
    if members is not None:
        score = _score(calibration, posterior, shift, members, behaves.has_learnt_little)
    declared_odds = log_prior_odds(declared)
    return Inference(
        title=f"{Path(subject.source).name.removesuffix('.npz') or 'graph'}, {plan.title}",
        model=str(model) if isinstance(model, (str, Path)) else released.came_as,
        came_as=released.came_as,
        release=release,
        queries=tuple(released.statistics),
        source=calibration.source.name,
        has_declared_prior=prior is not None,
        check=behaves.check,
        named=tuple(count_named(certainty, log_odds, declared_odds, members) for certainty in CERTAINTIES),
        score=score,
        recalibration=calibration.recalibration,
        table=inference_table(graph, declared, log_odds, posterior, members),
    )


def _reference(
    folder_or_audit: str | Path | Audit, runtime: Runtime, trust_code: bool
) -> tuple[Subject, ShadowRuns, Priors]:
    if isinstance(folder_or_audit, Audit):
        audit = folder_or_audit
        return Subject(audit.graph, audit.source, audit.plan), audit.runs, audit.priors
    workspace = Workspace(folder_or_audit)
    with workspace.unchanged():
        subject = stored_subject(workspace, trust_code=trust_code)
        runs = read_runs(workspace, subject.graph, subject.plan)
        if workspace.has("priors"):
            return subject, runs, read_priors(workspace, subject.plan.sampler)
    sampler = subject.plan.sampler
    if isinstance(sampler, UntrustedPart):
        raise registry.untrusted(sampler.kind, sampler.target)
    return subject, runs, Pipeline(subject, None, runtime).priors


def _chosen_release(plan: AuditPlan, release: str | None) -> str:
    labels = [registry.label(RELEASE, each) for each in plan.releases]
    if release is not None and release not in labels:
        raise InputError(f"release must be one of {', '.join(labels)}, got {release!r}")
    return release or labels[0]


def _prior_shift(declared: Floats, prior_prob: Floats, posterior: Posterior) -> Floats:
    """What the declared prior adds to the log-odds: infinite where it is certain, 0 where there was no attack."""
    shift = np.zeros_like(declared)
    attacked = posterior.is_attacked
    shift[attacked] = log_prior_odds(declared[attacked]) - log_prior_odds(prior_prob[attacked])
    return shift


def _score(
    calibration: Calibration, posterior: Posterior, shift: Floats, members: Flags, has_learnt_little: Flags
) -> InferenceScore:
    # Nodes that can be attacked here and in the leave-one-out fits of the shadow models, which have one model less.
    is_common = posterior.is_attacked[calibration.node]
    node = calibration.node[is_common]
    return score_inference(
        LogOdds(posterior.log_odds.score[node], posterior.log_odds.calibrated[node]),
        members[node],
        shift[node],
        LogOdds(calibration.log_odds.score[:, is_common], calibration.log_odds.calibrated[:, is_common]),
        calibration.memberships[:, is_common],
        has_learnt_little,
    )
