"""Audits and releases side by side: which leaks more, by how much, at which cost."""

from bmpaudit.comparison.compare import Comparison, compare

__all__ = ["Comparison", "compare"]
