"""A statement of the paper that a table of results makes true or false."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from bmpaudit.paper.experiments import KEY

BUT_DEFINITION = [name for name in KEY if name != "definition"]


@dataclass(frozen=True)
class Finding:
    """A statement and whether it holds.

    Attributes:
        statement: What is claimed, with what counts as true.
        holds: Whether it holds.
        evidence: The numbers behind the answer.
    """

    statement: str
    holds: bool
    evidence: str


def means_over_seeds(cells: pd.DataFrame, values: list[str]) -> pd.DataFrame:
    """A row per cell, in the order of `cells`, with the means of some columns."""
    return cells.groupby(list(KEY), sort=False)[values].mean().reset_index()


def by_definition(cells: pd.DataFrame, value: str) -> pd.DataFrame:
    """A row per cell without its definition, and a column of values per definition."""
    return cells.pivot_table(index=BUT_DEFINITION, columns="definition", values=value).reset_index()
