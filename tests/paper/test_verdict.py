"""The rule by which a cell agrees, on cells made by hand."""

import pandas as pd
import pytest

from bmpaudit.paper import CELLS, judge
from bmpaudit.paper.experiments import KEY


def verdict(published: float, ours: list[float]) -> "pd.Series[float]":
    key = dict(zip(KEY, CELLS[0].key, strict=True))
    theirs = pd.DataFrame([{**key, "p5": published - 1, "p50": published, "p95": published + 1}])
    rows = [{**key, "p5": p50 - 1, "p50": p50, "p95": p50 + 1, "seed": seed} for seed, p50 in enumerate(ours)]
    table = judge(theirs, pd.DataFrame(rows))
    assert len(table) == 1
    return table.iloc[0]


@pytest.mark.parametrize(
    ("published", "ours", "miss"),
    [
        (5.0, [4.0, 6.0, 5.5], 0.0),  # within the spread
        (1.0, [1.3, 1.4, 1.5], 0.0),  # 0.3 is more than 15 % of 1: just reached
        (1.0, [1.31, 1.4, 1.5], 0.01),
        (1.0, [0.5, 0.6, 0.69], -0.01),
        (10.0, [11.5, 12.0, 13.0], 0.0),  # 15 % of 10 is 1.5: just reached
        (10.0, [11.7, 12.0, 13.0], 0.2),
        (10.0, [6.0, 7.0, 8.0], -0.5),
        (2.0, [2.3], 0.0),  # 0.3 and 15 % are the same
    ],
)
def test_rule(published: float, ours: list[float], miss: float) -> None:
    found = verdict(published, ours)
    assert found["miss"] == pytest.approx(miss)
    assert found["agrees"] == (miss == 0)
    assert (found["lowest"], found["highest"], found["num_seeds"]) == (min(ours), max(ours), len(ours))


def test_middle_of_the_seeds_is_told_and_cells_that_were_not_run_are_not() -> None:
    found = verdict(5.0, [4.0, 6.0, 5.5])
    assert (found["p5"], found["median"], found["p95"]) == (4.5, 5.5, 6.5)
    key = dict(zip(KEY, CELLS[0].key, strict=True))
    other = dict(zip(KEY, CELLS[1].key, strict=True))
    values = {"p5": 1.0, "p50": 2.0, "p95": 3.0}
    table = judge(pd.DataFrame([{**key, **values}, {**other, **values}]), pd.DataFrame([{**key, **values, "seed": 0}]))
    assert len(table) == 1
