"""A graph by name or by path."""

import warnings
from pathlib import Path

from bmpaudit.datasets.catalog import NAMED_DATASETS, NamedDataset
from bmpaudit.datasets.content import read_content
from bmpaudit.datasets.demo import make_demo
from bmpaudit.datasets.from_code import graph_from_function
from bmpaudit.datasets.locate import at_hand, find_archive, find_files, search_path
from bmpaudit.datasets.planetoid import read_planetoid
from bmpaudit.errors import DataError, did_you_mean
from bmpaudit.graph import Graph, GraphCleanedWarning
from bmpaudit.registry import is_code, untrusted

_READERS = {"planetoid": read_planetoid, "content": read_content}


def load(name: str | Path, data_dir: str | Path | None = None, *, trust_code: bool = True) -> Graph:
    """Loads a graph by name or path.

    Args:
        name: `cora`, `citeseer`, `pubmed` or `demo`; the name of an `.npz` archive on the search path; the path of an
            `.npz` archive, of a folder with `nodes` and `edges` tables, or of a CSV or Parquet table of nodes without
            edges; or `module:function`, which is called.
        data_dir: A folder to search before `$BMPAUDIT_DATA` and the user's cache.
        trust_code: Whether `module:function` may be run; pass False for a name that stands in somebody else's file.

    Raises:
        DataError: if there is no such graph (the message says how to get it), or it is damaged, or not of its
            published size.
        UntrustedCodeError: if it is code, and `trust_code` is False.

    >>> print(load("demo"))
    1,000 nodes, 1,977 edges, 600 features, 5 classes
    """
    dataset = NAMED_DATASETS.get(str(name))
    if dataset is not None:
        return _load_named(dataset, data_dir)
    path = Path(name)
    if path.is_dir():
        return Graph.from_folder(path)
    if path.suffix == ".npz":
        return Graph.from_npz(path)
    if path.suffix in (".csv", ".parquet"):
        return Graph.from_nodes_file(path)
    if is_code(str(name)):
        if not trust_code:
            raise untrusted("graph", str(name))
        return graph_from_function(str(name))
    archive = find_archive(str(name), data_dir)
    if archive is None:
        there = at_hand(data_dir)
        similar = did_you_mean(str(name), there)
        raise DataError(f"no data set, archive or folder {str(name)!r}; at hand: {', '.join(there)}{similar}")
    return Graph.from_npz(archive)


def _load_named(dataset: NamedDataset, data_dir: str | Path | None) -> Graph:
    if not dataset.forms:
        graph = make_demo()
    else:
        found = find_files(dataset, data_dir)
        if found is None:
            searched = ", ".join(str(folder) for folder in search_path(data_dir))
            raise DataError(f"{dataset.name} is not in {searched}; to download it: bmpaudit data get {dataset.name}")
        found.verify()
        with warnings.catch_warnings():
            # The published files have duplicates and self-loops; the result is checked below.
            warnings.simplefilter("ignore", GraphCleanedWarning)
            graph = _READERS[found.form.reader](found.folder, dataset.name)
    dataset.check(graph)
    return graph
