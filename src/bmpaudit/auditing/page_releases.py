"""What the page shows of each release: proven, exposed, calibrated (docs/report-page.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.release_accuracy import known_mean, release_accuracy
from bmpaudit.auditing.variant import attack_on
from bmpaudit.proof import ExposureCurve, Proof
from bmpaudit.proof.result import SYMBOLS
from bmpaudit.registry import ATTACK


def release_data(audit: Audit, release: str) -> dict[str, Any]:
    """One release, as the page has it."""
    findings, variant = audit.findings[release], audit.attacks.strongest(release)
    figures, exposure = audit.attacks.performance[variant.name], findings.exposure.exposure
    reliability = findings.exposure.reliability
    accuracy = release_accuracy(audit.plan, audit.runs, release)
    is_filled = reliability.num_challenges > 0
    return {
        "name": release,
        "attack": registry.label(ATTACK, attack_on(audit.plan, release)),
        "queries": findings.queries,
        "auc": figures.auc,
        "tpr_at_fpr": {f"{rate:g}": value for rate, value in figures.tpr_at_fpr.items()},
        "train_accuracy": known_mean(accuracy.train),
        "held_out_accuracy": known_mean(accuracy.held_out),
        "proof": _bounds(findings.proof),
        "not_proven": findings.not_proven,
        "num_models": exposure.members.num_models,
        "exposure": {
            "members": _curve(exposure.members),
            "non_members": _curve(exposure.non_members),
        },
        "reliability": {
            "num_challenges": reliability.num_challenges[is_filled],
            "stated": np.round(reliability.stated[is_filled], 7),
            "observed": np.round(reliability.observed[is_filled], 7),
            "expected_calibration_error": reliability.expected_calibration_error,
        },
    }


def _bounds(proof: Proof | None) -> list[dict[str, Any]]:
    if proof is None:
        return []
    return [
        {
            "symbol": SYMBOLS[bound.parameter],
            "proven": bound.proven,
            "is_beyond_floor": bound.is_beyond_floor and proof.is_leakage_proven,
            "floor": bound.floor,
            "level": bound.level,
            "num_hits": bound.num_hits,
            "num_guesses": bound.num_guesses,
        }
        for bound in proof.bounds
    ]


def _curve(curve: ExposureCurve) -> dict[str, Any]:
    named, correct = (
        {
            f"{name}{ending}": np.round(values, 4)
            for ending, values in (("", band.mean), ("_low", band.low), ("_high", band.high))
        }
        for name, band in (("named", curve.named), ("correct", curve.reach))
    )
    return {
        "precision": curve.precision,
        **named,
        **correct,
        "share_correct": np.round(curve.share_correct.mean, 6),
        "without_model": np.round(curve.by_prior, 4),
        "is_settled": curve.is_settled,
        "models_needed": curve.models_needed,
        "total": curve.total,
    }
