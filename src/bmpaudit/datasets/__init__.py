"""Data sets by name, and where their files are."""

from bmpaudit.datasets.catalog import NAMED_DATASETS, NamedDataset
from bmpaudit.datasets.download import get
from bmpaudit.datasets.load import load
from bmpaudit.datasets.locate import at_hand, search_path, user_cache

__all__ = ["NAMED_DATASETS", "NamedDataset", "at_hand", "get", "load", "search_path", "user_cache"]
