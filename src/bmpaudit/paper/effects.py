"""Marginal effects: how much ε moves with one factor, all others taken together (Figure 2)."""

from __future__ import annotations

import pandas as pd

FACTORS: dict[str, tuple[object, object]] = {
    "train_fraction": (0.25, 0.5),
    "output": ("clean", "noisy"),
    "sampling": ("random", "snowball"),
    "model": ("gcn", "gat"),
    "edges": ("full", "none"),
    "decision": ("weak", "strong"),
}
"""Each factor's two choices."""


def marginal_effects(cells: pd.DataFrame, value: str) -> pd.Series[float]:
    """Mean of `value` with the second choice of each factor minus the mean with the first.

    >>> cells = pd.DataFrame({"output": ["clean", "noisy"], "x": [5.0, 3.0]})
    >>> marginal_effects(cells, "x")["output"]
    np.float64(-2.0)
    """
    effects = {
        factor: cells.loc[cells[factor] == second, value].mean() - cells.loc[cells[factor] == first, value].mean()
        for factor, (first, second) in FACTORS.items()
        if factor in cells
    }
    return pd.Series(effects, dtype=float)
