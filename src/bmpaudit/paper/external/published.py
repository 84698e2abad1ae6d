"""The published figures, with their spread over target models and the file they come from."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

KEY = ("dataset", "model", "num_shadows", "attack", "measure")
"""The columns that name a figure."""


def published_figures() -> pd.DataFrame:
    """A row per figure: the columns of `KEY`, `published`, `spread` (a standard deviation) and `file`.

    >>> sorted(set(published_figures()["num_shadows"]))
    [8, 128]
    """
    import pandas as pd

    with (files("bmpaudit.paper.external") / "published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False)
