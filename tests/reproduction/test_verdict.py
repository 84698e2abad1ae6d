"""The rule by which a cell agrees, on made-up cells."""

import pandas as pd
import pytest
from made_up import cell_table
from reproduction import CELLS, judge, published_table
from reproduction.experiments import is_swapped
from reproduction.records import judge_cells


def verdict(published: float, ours: list[float]) -> "pd.Series[float]":
    key = CELLS[0].key
    theirs = pd.DataFrame([{**key, "p5": published - 1, "p50": published, "p95": published + 1}])
    rows = [{**key, "p5": p50 - 1, "p50": p50, "p95": p50 + 1, "seed": seed} for seed, p50 in enumerate(ours)]
    table = judge(theirs, pd.DataFrame(rows))
    assert len(table) == 1
    return table.iloc[0]


@pytest.mark.parametrize(
    ("published", "ours", "miss"),
    [
        (5.0, [4.0, 6.0, 5.5], 0.0),  # within the range
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
    row = verdict(published, ours)
    assert row["miss"] == pytest.approx(miss)
    assert row["agrees"] == (miss == 0)
    assert (row["lowest"], row["highest"], row["num_seeds"]) == (min(ours), max(ours), len(ours))


def test_medians_are_over_seeds_and_cells_that_were_not_run_are_left_out() -> None:
    row = verdict(5.0, [4.0, 6.0, 5.5])
    assert (row["p5"], row["median"], row["p95"]) == (4.5, 5.5, 6.5)
    key = CELLS[0].key
    other = CELLS[1].key
    values = {"p5": 1.0, "p50": 2.0, "p95": 3.0}
    table = judge(pd.DataFrame([{**key, **values}, {**other, **values}]), pd.DataFrame([{**key, **values, "seed": 0}]))
    assert len(table) == 1


def test_cells_of_the_swapped_columns_agree_only_once_they_are_swapped_back() -> None:
    published = published_table()
    p50 = {tuple(row[:8]): row[9] for row in published.itertuples(index=False)}
    verdicts = judge_cells(cell_table(lambda key: p50[tuple(key.values())]))
    assert verdicts["agrees"].all()
    assert verdicts.loc[~is_swapped(verdicts), "agrees_as_printed"].all()
    assert not verdicts.loc[is_swapped(verdicts), "agrees_as_printed"].any()
