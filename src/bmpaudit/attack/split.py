"""Dividing models into those that are fitted on and those that are challenged (Algorithm 4)."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit.attack.evidence import Evidence
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError


@dataclass(frozen=True, eq=False)
class SplitModels:
    """Two disjoint sets of models of one plan.

    Attributes:
        fitting: The first J^(1) models, which hypotheses are fitted on.
        challenged: All others.
    """

    fitting: Evidence
    challenged: Evidence


def split_models(models: Evidence, num_fitting: int | None = None) -> SplitModels:
    """Divides models by their order: the first `num_fitting` are fitted on, half of them if None.

    Models of a plan are independent of each other, so any division that does not look at them will do.

    Raises:
        InputError: if one of the sets would be empty.
    """
    if num_fitting is None:
        num_fitting = models.num_models // 2
    check_at_least_one(num_fitting=num_fitting)
    if num_fitting >= models.num_models:
        raise InputError(
            f"num_fitting must be below the number of models, {models.num_models}, got num_fitting={num_fitting}"
        )
    return SplitModels(models.take(slice(num_fitting)), models.take(slice(num_fitting, None)))
