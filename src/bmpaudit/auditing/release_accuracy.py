"""How accurate each release is: what a defence costs."""

from __future__ import annotations

import numpy as np

from bmpaudit.arrays import Floats32
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.runs import ViewAccuracy


def release_accuracy(plan: AuditPlan, runs: ShadowRuns, release: str) -> ViewAccuracy:
    """Accuracy of what a release gives out of each model, asked with the plan's first query; NaN where unknown."""
    view = f"{plan.views[0].query_name}_{release}"
    unknown = np.full(runs.num_models, np.nan, dtype=np.float32)
    return runs.view_accuracy.get(view, ViewAccuracy(unknown, unknown))


def known_mean(values: Floats32) -> float | None:
    """Mean of the numbers that are known; None if none is."""
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None
