"""The published Tables II to V, and the two columns of Table II that are swapped."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from bmpaudit.paper.experiments import CELLS, KEY

if TYPE_CHECKING:
    import pandas as pd

TABLES = {("cora", 0.25): "II", ("cora", 0.5): "III", ("citeseer", 0.25): "IV", ("citeseer", 0.5): "V"}

# The file keeps the paper's words. Here, and only here, they become ours.
OUR_COLUMNS = {
    "sampling": "sampler",
    "edges": "query",
    "output": "release",
    "decision": "rule",
    "measure": "definition",
}
OUR_SAMPLERS = {"random": "uniform", "snowball": "snowball"}
PAPERS_SAMPLERS = {"uniform": "random (uniform)", "snowball": "snowball"}
"""What the rows of the paper's tables are called where they are shown."""


def published_table(*, as_printed: bool = False) -> pd.DataFrame:
    """The 256 published cells in the order of `CELLS`: the columns of `KEY`, and p5, p50, p95.

    Args:
        as_printed: Table II prints, in its rows "random", the GAT columns "full edge" and "no edges" the wrong way
            round (in every other table and in our runs, no edges leak far more). They are swapped back unless this is
            set.

    >>> len(published_table())
    256
    """
    import pandas as pd

    with (files("bmpaudit.paper") / "published.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file).rename(columns=OUR_COLUMNS)
    table["sampler"] = table["sampler"].map(OUR_SAMPLERS)
    if not as_printed:
        swapped = is_swapped(table)
        table.loc[swapped, "query"] = table.loc[swapped, "query"].map({"full": "none", "none": "full"})
    return pd.DataFrame([cell.key for cell in CELLS]).merge(table, on=list(KEY))


def is_swapped(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows belong to the swapped columns: Cora, 25 %, uniform, GAT."""
    is_table_two = (table["dataset"] == "cora") & (table["train_fraction"] == 0.25)
    return is_table_two & (table["sampler"] == "uniform") & (table["model"] == "gat")
