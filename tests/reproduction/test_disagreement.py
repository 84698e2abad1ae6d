"""Which explanation a disagreeing cell gets."""

from typing import Any

import pytest
from reproduction.records import reason

CELL = {"published_p50": 3.0, "median": 2.0, "lowest": 1.9, "highest": 2.1, "exact_p50": 2.0, "bulk_ess": 4.0}
CELL |= {"p50": 2.0, "miss": -0.4}


@pytest.mark.parametrize(
    ("results", "explanation"),
    [
        (
            {"mhaar_p50": 2.8, "r_hat": 1.6},
            "a chain that has not converged: Algorithm 3 with the paper's settings gives 2.8 (R-hat 1.60, bulk ESS 4)",
        ),
        ({"mhaar_p50": 2.3, "r_hat": 1.6}, "partly a chain that has not converged"),
        ({"mhaar_p50": 2.8, "r_hat": 1.001, "bulk_ess": 4.0}, "a chain that has not converged"),
        (
            {"mhaar_p50": 2.8, "r_hat": 1.001, "bulk_ess": 900.0},
            "explained neither",
        ),  # converged chains explain nothing
        ({"p50_without_1": 2.1, "p50_without_10": 2.1, "miss": 0.01}, "borderline: misses by 0.010"),
        ({"p50_without_1": 2.6, "p50_without_10": 2.6, "p50": 2.5}, "explained neither"),  # it hardly moves
        (
            {"mhaar_p50": 2.0, "r_hat": 1.6, "p50_without_1": 2.9, "p50_without_10": 2.7},
            "depends on one node: without it, p50 is 2.9",
        ),
        (
            {"mhaar_p50": 2.0, "r_hat": 1.6, "p50_without_1": 2.0, "p50_without_10": 2.7},
            "depends on ten nodes: without them, p50 is 2.7",
        ),
        ({"p50_without_1": 2.0, "p50_without_10": 2.0}, "explained neither by the estimator nor by single nodes"),
        ({"p50_without_1": 2.0, "p50_without_10": 2.0}, "our seeds span 0.2 around 2.0"),
        ({"mhaar_p50": float("nan"), "r_hat": float("nan")}, "not examined yet"),
        ({}, "not examined yet"),
    ],
)
def test_reason(results: dict[str, Any], explanation: str) -> None:
    assert explanation in reason(CELL | results)
