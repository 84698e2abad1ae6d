"""What the page shows of the attack's variants and their posteriors (docs/report-page.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import Parameter

CURVE_POINTS = 201
JOINT_DRAWS = 1_000


def estimates_part(audit: Audit) -> dict[str, Any]:
    """Variants of the attack, their posteriors, and draws from joint ones."""
    return {
        "variants": [_variant(audit, variant.name, variant.label) for variant in audit.attacks.variants],
        "posteriors": [
            _curve(audit, variant, definition, posterior, parameter)
            for variant, row in audit.estimates.posteriors.items()
            for definition, posterior in row.items()
            for parameter in posterior.definition.parameters
        ],
        "joint": _joint(audit),
    }


def _variant(audit: Audit, name: str, label: str) -> dict[str, Any]:
    figures = audit.attacks.performance[name]
    return {
        "id": name,
        "label": label,
        "auc": figures.auc,
        "accuracy": figures.accuracy,
        "tpr_at_fpr": {f"{rate:g}": value for rate, value in figures.tpr_at_fpr.items()},
        "roc": {"fpr": figures.roc.false_positive_rate, "tpr": figures.roc.true_positive_rate},
    }


def _curve(audit: Audit, variant: str, definition: str, posterior: Posterior, of: Parameter) -> dict[str, Any]:
    parameter = of.name
    summarised = audit.summary["variants"][variant]["posteriors"][definition][parameter]
    low, high = posterior.quantile([0.0005, 0.9995], parameter)
    x = np.linspace(max(low - 0.05 * (high - low), posterior.support_low(parameter)), high, CURVE_POINTS)
    return {
        "variant": variant,
        "definition": definition,
        "parameter": parameter,
        "symbol": f"{of.symbol} ({definition})",
        **{name: summarised[name] for name in ("p5", "p50", "p95", "mean")},
        "x": np.round(x, 5),
        "density": np.round(posterior.marginal(parameter).pdf(x), 6),
        "prior_density": np.round(np.exp(posterior.prior(x)), 6),
        "status": posterior.status,
    }


def _joint(audit: Audit) -> list[dict[str, Any]]:
    rows = []
    for variant, posteriors in audit.estimates.posteriors.items():
        if "bmp" in posteriors:
            draws = posteriors["bmp"].sample(JOINT_DRAWS, seed=audit.plan.seed)
            left, right = (np.round(draws[name], 4) for name in ("epsilon_left", "epsilon_right"))
            rows.append({"variant": variant, "left": left, "right": right})
    return rows
