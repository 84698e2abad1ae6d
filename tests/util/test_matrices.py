"""Matrices that are not in memory read as arrays do, and blocks cover everything once."""

import errno
import gc
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from bmpaudit.shadow.store import StoredMatrix
from bmpaudit.util import matrices
from bmpaudit.util.files import is_ours
from bmpaudit.util.matrices import (
    NODES_PER_CHUNK,
    LazyMatrix,
    PackedFlags,
    ScratchMatrix,
    columns,
    count_in,
    model_blocks,
    new_flags,
    new_matrix,
    node_blocks,
    take_rows,
)

SHAPE = (9, 45)
VALUES = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
FLAGS = VALUES > 0.3


@pytest.fixture(autouse=True, params=[10, NODES_PER_CHUNK])
def _nodes_per_chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "NODES_PER_CHUNK", request.param)


def lazy_matrix(kind: str, folder: Path) -> tuple[LazyMatrix[Any], np.ndarray]:
    if kind == "packed":
        packed = PackedFlags(*SHAPE)
        packed[0:4], packed[4:9] = FLAGS[:4], FLAGS[4:]
        return packed, FLAGS
    if kind == "scratch":
        scratch = ScratchMatrix(*SHAPE)
        for rows in (slice(0, 5), slice(5, 9)):
            for nodes in (slice(0, 20), slice(20, 45)):
                scratch[rows, nodes] = VALUES[rows, nodes]
        return scratch, VALUES
    array = zarr.create_array(folder / "numbers", shape=(20, 45), chunks=(4, 10), dtype="float32", fill_value=np.nan)
    indices = np.array([0, 1, 3, 4, 5, 8, 13, 14, 19])
    everything = np.full((20, 45), np.nan, dtype=np.float32)
    everything[indices] = VALUES
    array[:] = everything
    return StoredMatrix(folder, array, indices), VALUES


KEYS: list[Any] = [
    slice(None),
    3,
    np.array([7, 2, 2]),
    slice(2, 6),
    np.arange(9) % 2 == 0,
    (slice(None), slice(11, 30)),
    (slice(None), slice(None)),
    (slice(1, 8), np.arange(8, 21)),
    (slice(None), np.array([44, 0, 17, 17])),
    (slice(None), np.arange(45) > 30),
    (slice(0, 0), slice(3, 9)),
    (5, np.array([4, 2])),
    (np.arange(9), np.array([4, 2, 44, 0, 7, 8, 9, 16, 33])),
]


@pytest.mark.parametrize("kind", ["packed", "scratch", "stored"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_matrix_that_is_not_in_memory_is_indexed_as_an_array(kind: str, key: Any, tmp_path: Path) -> None:
    matrix, expected = lazy_matrix(kind, tmp_path)
    assert matrix.shape == expected.shape == (len(matrix), 45)
    assert matrix.nbytes == expected.nbytes
    np.testing.assert_array_equal(matrix[key], expected[key])
    assert matrix[key].dtype == expected.dtype


@pytest.mark.parametrize("kind", ["packed", "scratch", "stored"])
def test_rows_are_taken_without_reading(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, expected = lazy_matrix(kind, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(type(matrix), "_read", None)
        shuffled = take_rows(take_rows(matrix, np.array([8, 1, 5, 4])), slice(1, None))
    np.testing.assert_array_equal(shuffled, expected[[1, 5, 4]])
    np.testing.assert_array_equal(columns(shuffled, np.array([3, 4, 5])), expected[[1, 5, 4], 3:6])
    np.testing.assert_array_equal(np.asarray(matrix), expected)


def test_a_temporary_file_goes_with_its_last_matrix() -> None:
    matrix, _ = lazy_matrix("scratch", Path())
    number = matrix._file.opened.fileno()  # type: ignore[attr-defined]
    part = take_rows(matrix, slice(3))
    del matrix
    np.testing.assert_array_equal(part[:], VALUES[:3])
    os.fstat(number)
    del part
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_temporary_file_is_shared_by_its_path(tmp_path: Path) -> None:
    scratch = ScratchMatrix(*SHAPE)
    values = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
    scratch[:, :] = values
    with pytest.raises(TypeError, match="not shared"):
        pickle.dumps(scratch)
    part = scratch.take(slice(1, 3))
    scratch.share(tmp_path)
    (path,) = tmp_path.iterdir()
    assert is_ours(path.name)
    scratch.share(tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    assert part.is_shared
    elsewhere = pickle.loads(pickle.dumps(scratch))
    for matrix in (scratch, elsewhere):
        np.testing.assert_array_equal(matrix[:], values)
    np.testing.assert_array_equal(part[:], values[1:3])
    del elsewhere  # which is not its owner
    assert path.exists()
    path.unlink()  # as whoever takes the folder's lock does with leftovers
    scratch.share(tmp_path)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(scratch))[:], values)
    if not os.fork():
        del scratch, part
        os._exit(0)
    os.wait()
    assert len(list(tmp_path.iterdir())) == 1
    del scratch, part
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room")
def test_a_full_disk_is_noticed_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        ScratchMatrix(*SHAPE)


def test_small_matrices_are_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", 400)
    assert isinstance(new_matrix(10, 10), np.ndarray)
    assert isinstance(new_matrix(10, 11), ScratchMatrix)
    assert isinstance(new_flags(10, 40), np.ndarray)
    assert isinstance(new_flags(10, 41), PackedFlags)


def test_columns_that_follow_each_other_are_not_copied() -> None:
    assert np.shares_memory(columns(VALUES, np.arange(3, 9)), VALUES)
    np.testing.assert_array_equal(columns(VALUES, np.array([9, 3])), VALUES[:, [9, 3]])


def assert_covers(blocks: list[slice], length: int) -> None:
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    assert blocks[-1].stop == length


@pytest.mark.parametrize("num_models", [1, 3, 32, 1_000, 2_000, 3_000, 10_000, 10**8])
@pytest.mark.parametrize("num_nodes", [1, 100, 4_096, 200_000])
def test_blocks_cover_everything_once_and_are_bounded(num_models: int, num_nodes: int) -> None:
    blocks = list(node_blocks(num_nodes, num_models))
    assert_covers(blocks, num_nodes)
    width = blocks[0].stop - blocks[0].start
    assert width * num_models <= matrices.MAX_BLOCK or width == 1
    if len(blocks) > 1:  # no chunk is read for two blocks unless a block is a part of a chunk
        chunk = matrices.NODES_PER_CHUNK
        assert width % chunk == 0 or width < chunk
        # Parts of a chunk are as large as they may be; several chunks are taken together up to a quarter of that.
        assert width <= chunk or 4 * width * num_models <= matrices.MAX_BLOCK
        assert (2 if width < chunk else 8) * width * num_models > matrices.MAX_BLOCK
    if num_models <= 10_000:
        rows = list(model_blocks(num_models, num_nodes))
        assert_covers(rows, num_models)
        assert rows[0].stop * num_nodes <= matrices.MAX_BLOCK or rows[0].stop == 1


@pytest.mark.parametrize("kind", ["array", "packed"])
def test_members_are_counted(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "MAX_BLOCK", 100)
    flags = FLAGS if kind == "array" else lazy_matrix(kind, tmp_path)[0]
    np.testing.assert_array_equal(count_in(flags), FLAGS.sum(axis=0))
