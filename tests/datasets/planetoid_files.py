"""Planetoid files: those at hand, and small ones in the same Python 2 pickle form."""

import io
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.datasets import NAMED_DATASETS
from bmpaudit.datasets.catalog import FileSet, find_files, search_path


def files_at_hand(name: str) -> tuple[Path, FileSet]:
    """Where the tool itself finds a data set; that it is not there is a failure."""
    found = find_files(NAMED_DATASETS[name], search_path())
    assert found is not None, f"{name} is not at hand: bmpaudit data get {name}"
    return found


class _Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings."""

    def save_python2_string(self, value: bytes) -> None:
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)  # type: ignore[attr-defined]

    dispatch = {**pickle._Pickler.dispatch, bytes: save_python2_string}  # type: ignore[dict-item]  # noqa: RUF012


def python2_pickle(value: Any) -> bytes:
    """The pickle that the Python 2 of the Planetoid authors would have written."""
    buffer = io.BytesIO()
    _Python2Pickler(buffer, protocol=2).dump(value)
    content = buffer.getvalue()
    for today, then in (
        (b"cscipy.sparse._csr\n", b"cscipy.sparse.csr\n"),
        (b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"),
    ):
        content = content.replace(today, then)
    return content


def write_small_planetoid(folder: Path, **changes: Any) -> None:
    """A data set `tiny`: nodes 0 to 2, then test nodes 3 to 6 in the order 6, 3, 4; 5 is skipped.

    Features are the unit vectors, so that feature i marks the row that belongs to node i.
    """
    unit = np.eye(7, dtype=np.float32)
    one_hot = np.eye(3, dtype=np.int32)
    neighbors: dict[int, list[int]] = {0: [1, 6], 1: [0, 1], 2: [], 3: [4], 4: [3, 3], 5: [], 6: [0]}
    parts: dict[str, Any] = {
        "x": _csr(unit[:2]),
        "y": one_hot[[0, 1]],
        "allx": _csr(unit[:3]),
        "ally": one_hot[[0, 1, 2]],
        "tx": _csr(unit[[6, 3, 4]]),
        "ty": one_hot[[1, 2, 1]],
        "graph": neighbors,
        **changes,
    }
    test_index = parts.pop("test_index", "6\n3\n4\n")
    folder.mkdir(exist_ok=True)
    for part, value in parts.items():
        content = value if isinstance(value, bytes) else python2_pickle(value)
        (folder / f"ind.tiny.{part}").write_bytes(content)
    (folder / "ind.tiny.test.index").write_text(test_index)


def _csr(rows: npt.NDArray[np.float32]) -> Any:
    return scipy.sparse.csr_matrix(rows)
