"""Marginal effects: how much ε changes with one factor, averaged over all others (Figure 2)."""

from __future__ import annotations

import pandas as pd

from bmpaudit.paper.experiments import FRACTIONS, MODELS, QUERIES, RELEASES, RULES, SAMPLERS

FACTORS: dict[str, tuple[object, object]] = {
    "train_fraction": FRACTIONS,
    "release": RELEASES,
    "sampler": SAMPLERS,
    "model": MODELS,
    "query": QUERIES,
    "rule": RULES,
}
"""The two levels of each factor."""


def marginal_effects(cells: pd.DataFrame, value: str) -> pd.Series[float]:
    """Mean of `value` at the second level of each factor minus the mean at the first.

    >>> cells = pd.DataFrame({"release": ["clean", "noisy"], "x": [5.0, 3.0]})
    >>> marginal_effects(cells, "x")["release"]
    np.float64(-2.0)
    """
    effects = {
        factor: cells.loc[cells[factor] == second, value].mean() - cells.loc[cells[factor] == first, value].mean()
        for factor, (first, second) in FACTORS.items()
        if factor in cells
    }
    return pd.Series(effects, dtype=float)
