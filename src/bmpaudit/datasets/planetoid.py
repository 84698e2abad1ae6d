"""The Planetoid files of Yang, Cohen and Salakhutdinov (2016), in PyTorch Geometric's node order."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.datasets.catalog import PLANETOID_PARTS
from bmpaudit.datasets.safe_pickle import load_arrays_pickle
from bmpaudit.errors import DataError
from bmpaudit.graph import Graph
from bmpaudit.reading.text import read_text


def read_planetoid(folder: Path, name: str) -> Graph:
    """Reads `ind.<name>.*` from a folder.

    Nodes are in the order of `allx`, followed by the test nodes at the places given by `test.index`. Ids skipped there
    (15 in CiteSeer) are nodes without features and, as in PyTorch Geometric, of class 0.

    Raises:
        DataError: if a file is missing, damaged or refused.
    """
    files = {part: folder / f"ind.{name}.{part}" for part in PLANETOID_PARTS}
    pickled: dict[str, Any] = {part: load_arrays_pickle(path) for part, path in files.items() if part != "test.index"}
    try:
        lines = read_text(files["test.index"], encoding="ascii").split()
        test_ids = np.array([int(line) for line in lines], dtype=np.int64)
        first, last = int(test_ids.min()), int(test_ids.max())
        if last - first + 1 > 2 * len(test_ids):
            raise ValueError(f"test ids {first} to {last} must not skip more than there are, got {len(test_ids)}")
        if len(pickled["allx"].indptr) - 1 != first:
            raise ValueError(f"test ids begin at {first}, but allx has {pickled['allx'].shape[0]} rows")
        place = scipy.sparse.csr_array(
            (np.ones(len(test_ids), dtype=np.float32), (test_ids - first, np.arange(len(test_ids)))),
            shape=(last - first + 1, len(test_ids)),
        )
        features = scipy.sparse.vstack([pickled["allx"], place @ pickled["tx"]], format="csr")
        one_hot: npt.NDArray[np.float32] = np.vstack([pickled["ally"], place @ pickled["ty"]], dtype=np.float32)
        neighbors: dict[int, list[int]] = pickled["graph"]
        source = np.repeat(list(neighbors), [len(ends) for ends in neighbors.values()])
        target = np.array([end for ends in neighbors.values() for end in ends])
        return Graph.from_edges(np.column_stack([source, target]), features, one_hot.argmax(axis=1))
    except DataError:
        raise
    except Exception as mismatch:  # the parts may be anything, and anything may come of them
        if isinstance(mismatch, MemoryError):
            raise
        reason = " ".join(str(mismatch).split())
        raise DataError(f"{folder}: the files ind.{name}.* do not fit together: {reason}") from None
