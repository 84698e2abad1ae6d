"""Dividing shadow models into those that fit and those that are challenged (Algorithm 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowRuns


@dataclass(frozen=True, eq=False)
class SplitRuns:
    """Two disjoint sets of models of one plan.

    Attributes:
        fitting: The first J^(1) models, which the hypotheses are fitted on.
        challenged: All others.
    """

    fitting: ShadowRuns
    challenged: ShadowRuns


def split_runs(runs: ShadowRuns, num_fitting: int | None = None) -> SplitRuns:
    """Divides models by their order: the first `num_fitting` fit, half of them if not given.

    Models of a plan are independent of each other, so any division that does not look at them is as good.

    Raises:
        InputError: if one of the sets would be empty.
    """
    if num_fitting is None:
        num_fitting = runs.num_models // 2
    check_at_least_one(num_fitting=num_fitting)
    if num_fitting >= runs.num_models:
        raise InputError(
            f"num_fitting must be below the number of models, {runs.num_models}, got num_fitting={num_fitting}"
        )
    boundary = int(runs.indices[num_fitting])
    fitting = _part(runs, slice(None, num_fitting), tuple(j for j in runs.failed if j < boundary))
    challenged = _part(runs, slice(num_fitting, None), tuple(j for j in runs.failed if j >= boundary))
    return SplitRuns(fitting, challenged)


def _part(runs: ShadowRuns, models: slice, failed: tuple[int, ...]) -> ShadowRuns:
    return replace(
        runs,
        indices=runs.indices[models],
        memberships=runs.memberships[models],
        statistics={view: values[models] for view, values in runs.statistics.items()},
        train_accuracy=runs.train_accuracy[models],
        held_out_accuracy=runs.held_out_accuracy[models],
        failed=failed,
    )
