"""What to do next, derived from what an audit found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bmpaudit.auditing.release_accuracy import known_mean, release_accuracy
from bmpaudit.auditing.table_words import in_words_of
from bmpaudit.proof import models_to_prove_more
from bmpaudit.proof.exposure import MIN_MODELS
from bmpaudit.report.words import count, odds, percent
from bmpaudit.shadow.releases.base import gives_labels_only

if TYPE_CHECKING:
    from bmpaudit.auditing.finished_audit import Audit

OVERFITTED = 0.05  # by how much training accuracy may exceed held-out accuracy
HELPS = 0.8  # a release helps if it exposes less than this share of what the main one does
SAMPLING_SHARE = 0.5  # of the proven log-odds
# What names fewer nodes in docs/defences.md; more dropout and fewer epochs do not.
_USUAL_REGULARISATION = "more weight decay or early stopping"
_REGULARISATION = {"sklearn": "a simpler model (shallower trees, larger leaves, more neighbours, a stronger penalty)"}


def advice(audit: Audit) -> tuple[str, ...]:
    """Short instructions, the most useful first."""
    is_found = audit.is_leakage_found
    steps = _defences(audit) if is_found else []
    steps += _more_models(audit)
    if is_found:
        steps.append("See who is at risk: bmpaudit nodes DIR.")
    steps.append("Before you release a model, look at that very model: bmpaudit infer DIR --model FILE.")
    return tuple(in_words_of(audit.graph, step) for step in steps)


def _defences(audit: Audit) -> list[str]:
    steps = []
    train, held_out = (
        float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
        for values in (audit.runs.train_accuracy, audit.runs.held_out_accuracy)
    )
    if train - held_out > OVERFITTED:
        steps.append(
            f"The models fit their training nodes better than others ({percent(train)} against {percent(held_out)} "
            f"accuracy): try {_REGULARISATION.get(audit.plan.shadow_plan.engine_name, _USUAL_REGULARISATION)}, and see "
            "what it hides and what it costs (bmpaudit sweep)."
        )
    steps += _better_release(audit)
    proof, floor = audit.main_findings.proof, audit.priors.floor.right
    proven = None if proof is None else proof.epsilon_right.proven
    if proven is not None and 0 < SAMPLING_SHARE * proven < floor < proven:
        steps.append(
            f"Much of it is the sampling's doing ({odds(floor)} without any model): try another sampler or fraction; "
            "bmpaudit priors shows what each gives away."
        )
    if any(map(gives_labels_only, audit.plan.releases)):
        steps.append("Release nothing where the model is not needed.")
    else:
        steps.append("Release only labels where scores are not needed, and nothing where the model is not needed.")
    return steps


def _better_release(audit: Audit) -> list[str]:
    main, *others = (
        (release, part.exposure.exposure.members.correct.mean[part.exposure.exposure.members.at(0.99)])
        for release, part in audit.findings.items()
    )
    better = [(named, release) for release, named in others if named < HELPS * main[1] and main[1] >= 1]
    if not better:
        return []
    named, release = min(better)
    return [
        f"The {release} release exposes {named:.0f} training nodes with 99 % certainty, the {main[0]} one "
        f"{main[1]:.0f}; {_cost(audit, release)}."
    ]


def _cost(audit: Audit, release: str) -> str:
    """What a release costs in accuracy, beside the main one."""
    here, main = (
        known_mean(release_accuracy(audit.plan, audit.runs, name).held_out)
        for name in (release, audit.attacks.releases[0])
    )
    if here is None or main is None:
        return "weigh that against what it costs in accuracy"
    return f"its accuracy on other nodes is {percent(here, 1)}, against {percent(main, 1)}"


def _more(shadows: int) -> str:
    """How to add models without spoiling what is proven."""
    return f"try --shadows {shadows} --proof-method prequential"


def _more_models(audit: Audit) -> list[str]:
    main = audit.main_findings
    curve, num_models = main.exposure.exposure.members, audit.runs.num_models
    k = curve.at(0.99)
    if not curve.is_settled[k] and (audit.is_leakage_found or curve.num_models < MIN_MODELS):
        needed = int(curve.models_needed[k])
        return [f"{count(num_models, 'shadow model')} are too few to settle the exposure: {_more(needed)}."]
    if not audit.is_leakage_found:
        return [f"More shadow models find smaller leaks: {_more(2 * num_models)}."]
    bound = None if main.proof is None else main.proof.epsilon_right
    if bound is None or bound.proven is None or bound.num_hits < bound.num_challenged:
        return []
    more = math.floor(bound.proven + 1.0)
    needed = models_to_prove_more(more, bound.level, "prequential")
    return [f"Every guess was right, so more models prove more: --until-proven {more} takes about {needed:,} of them."]
