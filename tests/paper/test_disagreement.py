"""Which reason a disagreeing cell is given, by what was found."""

from typing import Any

import pytest

from bmpaudit.paper.disagreement import reason

CELL = {"published_p50": 3.0, "median": 2.0, "lowest": 1.9, "highest": 2.1, "exact_p50": 2.0, "bulk_ess": 4.0}
CELL |= {"p50": 2.0, "miss": -0.4}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            {"mhaar_p50": 2.8, "r_hat": 1.6},
            "chains that have not converged: Algorithm 3 with the paper's settings gives",
        ),
        ({"mhaar_p50": 2.3, "r_hat": 1.6}, "in part chains that have not converged"),
        ({"mhaar_p50": 2.8, "r_hat": 1.001, "bulk_ess": 4.0}, "chains that have not converged"),
        ({"mhaar_p50": 2.8, "r_hat": 1.001, "bulk_ess": 900.0}, "not explained"),  # converged chains explain nothing
        ({"p50_without_1": 2.1, "p50_without_10": 2.1, "miss": 0.01}, "on the edge of the rule, missed by 0.010"),
        ({"p50_without_1": 2.6, "p50_without_10": 2.6, "p50": 2.5}, "not explained"),  # it hardly moves
        ({"mhaar_p50": 2.0, "r_hat": 1.6, "p50_without_1": 2.9, "p50_without_10": 2.7}, "hangs on one node"),
        ({"mhaar_p50": 2.0, "r_hat": 1.6, "p50_without_1": 2.0, "p50_without_10": 2.7}, "hangs on ten nodes"),
        ({"p50_without_1": 2.0, "p50_without_10": 2.0}, "not explained by the estimator nor by single nodes"),
        ({"p50_without_1": 2.0, "p50_without_10": 2.0}, "our seeds span 0.2 about 2.0"),
        ({"mhaar_p50": float("nan"), "r_hat": float("nan")}, "not looked into yet"),
        ({}, "not looked into yet"),
    ],
)
def test_reason(found: dict[str, Any], told: str) -> None:
    assert told in reason(CELL | found)
