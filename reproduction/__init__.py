"""The paper's experiments as audit plans, and the comparison with its tables."""

from reproduction.experiments import CELLS, CONFIGURATIONS, VARIANTS, Cell, Configuration, published_table
from reproduction.records import judge

__all__ = [
    "CELLS",
    "CONFIGURATIONS",
    "VARIANTS",
    "Cell",
    "Configuration",
    "judge",
    "published_table",
]
