"""Data sets by name, and where their files are."""

from bmpaudit.datasets.catalog import NAMED_DATASETS, NamedDataset, at_hand, get, load, search_path, user_cache

__all__ = ["NAMED_DATASETS", "NamedDataset", "at_hand", "get", "load", "search_path", "user_cache"]
