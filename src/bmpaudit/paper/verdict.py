"""Does a cell agree with the published one?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bmpaudit.paper.experiments import KEY
from bmpaudit.paper.published import published_table

if TYPE_CHECKING:
    import pandas as pd

RELATIVE_WIDENING = 0.15
LEAST_WIDENING = 0.3
ROUNDING = 1e-9
"""The published values have two digits: a bound that is met up to rounding of doubles is met."""


def is_within_reach(p50: pd.Series[float], published_p50: pd.Series[float]) -> pd.Series[bool]:
    """Whether each p50 of a single seed differs from the published one by at most the widening."""
    widening = (RELATIVE_WIDENING * published_p50).clip(lower=LEAST_WIDENING)
    return (p50 - published_p50).abs() <= widening + ROUNDING


def judge(published: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """A verdict on each published cell that we have.

    A cell agrees if the published p50 lies within the range of our seeds' p50, widened on both sides by 15 % of the
    published value or 0.3, whichever is larger.

    Args:
        published: A row per cell: the columns of `KEY`, p5, p50 and p95.
        ours: A row per cell and seed, with the same columns and `seed`.

    Returns:
        A row per cell, in the order of `published`: `KEY`; `published_p5`, …; the lowest, median and highest p50 of our
        seeds (`lowest`, `median`, `highest`) and the medians of p5 and p95; `num_seeds`; `agrees`; and `miss`, how far
        the published p50 lies outside the widened range: positive where ours is too high, 0 where it agrees.
    """
    grouped = ours.groupby(list(KEY))
    spread = grouped.agg(
        p5=("p5", "median"),
        median=("p50", "median"),
        p95=("p95", "median"),
        lowest=("p50", "min"),
        highest=("p50", "max"),
        num_seeds=("p50", "size"),
    ).reset_index()
    named = published.rename(columns={name: f"published_{name}" for name in ("p5", "p50", "p95")})
    table: pd.DataFrame = named[[*KEY, "published_p5", "published_p50", "published_p95"]].merge(spread, on=list(KEY))
    widening = (RELATIVE_WIDENING * table["published_p50"]).clip(lower=LEAST_WIDENING)
    too_high = table["lowest"] - widening - table["published_p50"]
    too_low = table["published_p50"] - table["highest"] - widening
    table["miss"] = (too_high.where(too_high > ROUNDING, 0.0) - too_low.where(too_low > ROUNDING, 0.0)).astype(float)
    table["agrees"] = table["miss"] == 0
    return table


def judge_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Verdicts on the cells counted the paper's way, with Table II's swapped columns swapped back.

    The column `agrees_as_printed` says whether a cell agrees with the tables as they were printed.
    """
    ours = cells[cells["counting"] == "paper"]
    printed = judge(published_table(as_printed=True), ours).rename(columns={"agrees": "agrees_as_printed"})
    return judge(published_table(), ours).merge(printed[[*KEY, "agrees_as_printed"]], on=list(KEY))
