"""The paper's experiments as data, and the comparison with its tables."""

from bmpaudit.paper.experiments import CELLS, CONFIGURATIONS, VARIANTS, Cell, Configuration, Variant
from bmpaudit.paper.published import published_table
from bmpaudit.paper.verdict import judge

__all__ = [
    "CELLS",
    "CONFIGURATIONS",
    "VARIANTS",
    "Cell",
    "Configuration",
    "Variant",
    "judge",
    "published_table",
]
