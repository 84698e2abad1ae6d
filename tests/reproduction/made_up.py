"""Made-up tables of all 256 cells."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from reproduction.experiments import CELLS


def cell_table(value: Callable[[dict[str, Any]], float], *, counting: str = "paper", seed: int = 0) -> pd.DataFrame:
    """Every cell, with p50 and mean as a function of its key."""
    rows = []
    for cell in CELLS:
        key = cell.key
        middle = value(key)
        rows.append(
            {
                **key,
                "p5": middle - 0.5,
                "p50": middle,
                "p95": middle + 0.5,
                "seed": seed,
                "counting": counting,
                "mean": middle,
                "floor": -1.0,
                "accuracy": 0.6,
                "balanced_accuracy": 0.6,
                "num_models": 1000,
                "num_nodes": 2708,
                "num_not_auditable": 30 if key["sampler"] == "snowball" else 0,
                "num_constant": 0,
                "seconds": 1.0,
            }
        )
    return pd.DataFrame(rows)
