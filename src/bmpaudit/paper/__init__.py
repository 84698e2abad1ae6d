"""The paper's experiments as audit plans, and the comparison with its tables."""

from bmpaudit.paper.experiments import CELLS, CONFIGURATIONS, VARIANTS, Cell, Configuration
from bmpaudit.paper.published import published_table
from bmpaudit.paper.verdict import judge

__all__ = [
    "CELLS",
    "CONFIGURATIONS",
    "VARIANTS",
    "Cell",
    "Configuration",
    "judge",
    "published_table",
]
