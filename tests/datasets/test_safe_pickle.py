import collections
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from planetoid_files import files_at_hand, python2_pickle

from bmpaudit.datasets.safe_pickle import load_arrays_pickle
from bmpaudit.util.errors import DataError


def _load(content: bytes, folder: Path) -> Any:
    path = folder / "some.pickle"
    path.write_bytes(content)
    return load_arrays_pickle(path)


# What is admitted.


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8])
def test_arrays(dtype: type, tmp_path: Path) -> None:
    array: np.ndarray = np.arange(6, dtype=dtype).reshape(2, 3)
    result = _load(python2_pickle(array), tmp_path)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, array)


def test_compressed_rows(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(np.array([[0, 0.1], [2, 0], [0, 0]], dtype=np.float32))
    result = _load(python2_pickle(matrix), tmp_path)
    np.testing.assert_array_equal(result.toarray(), matrix.toarray())


def test_a_dictionary_of_lists(tmp_path: Path) -> None:
    neighbors = collections.defaultdict(list, {0: [1, 2], 5: []})
    assert _load(python2_pickle(neighbors), tmp_path) == neighbors


@pytest.mark.parametrize("name", ["citeseer", "pubmed"])
@pytest.mark.parametrize("part", ["x", "tx", "allx", "y", "ty", "ally", "graph"])
def test_the_published_files_load(name: str, part: str) -> None:
    value = load_arrays_pickle(files_at_hand(name)[0] / f"ind.{name}.{part}")
    assert isinstance(value, collections.defaultdict if part == "graph" else (np.ndarray, scipy.sparse.csr_array))


# What is refused. Every bomb leaves evidence when it goes off.


def _call(module: str, name: str, argument: str) -> bytes:
    """GLOBAL, MARK, STRING, TUPLE, REDUCE: the call module.name(argument)."""
    return f"c{module}\n{name}\n(V{argument}\ntR.".encode()


def _stack_global(module: str, name: str, argument: str) -> bytes:
    """The same with protocol 4, whose names may have dots in them."""
    texts = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80\x04" + texts + b"\x93(V" + argument.encode() + b"\ntR."


def _instance(module: str, name: str, argument: str) -> bytes:
    """The INST opcode of protocol 0."""
    return f"(V{argument}\ni{module}\n{name}\n.".encode()


def _object(module: str, name: str, argument: str) -> bytes:
    """The OBJ opcode."""
    return f"(c{module}\n{name}\nV{argument}\no.".encode()


def _within_an_array(module: str, name: str, argument: str) -> bytes:
    class Bomb:
        def __reduce__(self) -> Any:
            return __import__(module).__dict__[name], (argument,)

    # With every name of the array itself on the list of admitted ones.
    return python2_pickle(np.array([Bomb()], dtype=object))


def _touch(evidence: Path) -> str:
    return f"__import__('pathlib').Path({str(evidence)!r}).touch()"


BOMBS: dict[str, Callable[[Path], bytes]] = {
    "os.system": lambda evidence: _call("os", "system", f"touch '{evidence}'"),
    "posix.system": lambda evidence: _call("posix", "system", f"touch '{evidence}'"),
    "os.system by INST": lambda evidence: _instance("os", "system", f"touch '{evidence}'"),
    "os.system by OBJ": lambda evidence: _object("os", "system", f"touch '{evidence}'"),
    "eval": lambda evidence: _call("builtins", "eval", _touch(evidence)),
    "Python 2's eval": lambda evidence: _call("__builtin__", "eval", _touch(evidence)),
    "exec": lambda evidence: _call("builtins", "exec", _touch(evidence)),
    "os.system by a dotted name": lambda evidence: _stack_global("os", "path.os.system", f"touch '{evidence}'"),
    "eval within an array of objects": lambda evidence: _within_an_array("builtins", "eval", _touch(evidence)),
    "os.system within an array of objects": lambda evidence: _within_an_array("posix", "system", f"touch '{evidence}'"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_and_does_not_go_off(name: str, tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    content = BOMBS[name](evidence)
    with pytest.raises(
        DataError,
        match=r"some\.pickle: refused: the pickle asks for .*, (which no Planetoid file needs|and only numbers are)",
    ):
        _load(content, tmp_path)
    assert not evidence.exists()


@pytest.mark.parametrize("name", BOMBS)
def test_the_bombs_are_real(name: str, tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    pickle.loads(BOMBS[name](evidence))
    assert evidence.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy", "load"),
        ("numpy", "fromfile"),
        ("numpy", "memmap"),
        ("numpy", "ndarray.tofile"),
        ("numpy", "ndarray.__class__"),
        ("numpy", "dtype.__class__"),
        ("numpy.core.multiarray", "fromfile"),
        ("numpy.core.multiarray", "_reconstruct.__self__"),
        ("scipy.sparse.csr", "csr_matrix.__init__.__globals__"),
        ("scipy.sparse.csr", "np"),
        ("scipy.sparse", "load_npz"),
        ("collections", "defaultdict.__init__"),
        ("collections", "namedtuple"),
        ("collections", "_sys"),
        ("builtins", "getattr"),
        ("builtins", "list.__class__"),
        ("builtins", "list.__subclasshook__"),
        ("__builtin__", "getattr"),
        ("__builtin__", "type"),
        ("copyreg", "_reconstructor"),
        ("copy_reg", "__newobj__"),
        ("_codecs", "encode"),
        ("functools", "partial"),
        ("operator", "attrgetter"),
        ("bmpaudit.datasets.safe_pickle", "pickle.loads"),
        ("builtinsbuiltins", "list"),
    ],
)
@pytest.mark.parametrize("form", [_call, _stack_global, _instance])
def test_anything_off_the_list_is_refused(
    form: Callable[[str, str, str], bytes], module: str, name: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="refused: the pickle asks for"):
        _load(form(module, name, "argument"), tmp_path)


def test_nothing_can_be_set_on_what_is_admitted(tmp_path: Path) -> None:
    for module, name in (
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("collections", "defaultdict"),
        ("builtins", "list"),
    ):
        build = f"c{module}\n{name}\n(dVappend\nI1\nsb.".encode()  # BUILD: name.__dict__["append"] = 1
        with pytest.raises(DataError, match="truncated or damaged"):
            _load(build, tmp_path)
    on_the_stand_in = b"cscipy.sparse.csr\ncsr_matrix\n(dVmatrix\nI1\nsb."
    with pytest.raises(DataError, match="truncated or damaged"):
        _load(on_the_stand_in, tmp_path)
    np.testing.assert_array_equal(_load(python2_pickle(scipy.sparse.csr_matrix([[1.0]])), tmp_path).toarray(), [[1.0]])


@pytest.mark.parametrize(
    "parts",
    [
        {"indices": np.array([7], dtype=np.int32)},
        {"indices": np.array([-1], dtype=np.int32)},
        {"indptr": np.array([0, 9, 1], dtype=np.int32)},
        {"indptr": np.array([0, 1], dtype=np.int32)},
        {"_shape": (2, 0)},
        {"_shape": "wide"},
        {"data": None},
    ],
)
def test_rows_that_point_outside_their_matrix(parts: dict[str, Any], tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(np.array([[0, 1], [0, 0]], dtype=np.float32))
    vars(matrix).update(parts)
    with pytest.raises(DataError, match=r"some\.pickle: truncated or damaged"):
        _load(python2_pickle(matrix), tmp_path)


def test_a_truncated_file(tmp_path: Path) -> None:
    content = python2_pickle(np.arange(100))
    for length in range(0, len(content), 11):
        with pytest.raises(DataError, match=r"some\.pickle: truncated or damaged") as refusal:
            _load(content[:length], tmp_path)
        assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such file$"):
        load_arrays_pickle(tmp_path / "nowhere")


def test_numbers_do_not_pass_for_objects(tmp_path: Path) -> None:
    """A dtype whose state says that it holds Python objects: NumPy would follow numbers of the file as addresses."""
    content = python2_pickle(np.arange(6, dtype=np.float32))
    flags = bytes([pickle.BININT1[0], 0])  # of the dtype, the last number of its state
    assert content.count(flags) >= 1
    for place in range(len(content) - 1):
        if content[place : place + 2] == flags:
            harmful = content[: place + 1] + b"\x3f" + content[place + 2 :]
            try:
                result = _load(harmful, tmp_path)
            except DataError:
                continue
            assert not result.dtype.hasobject


@pytest.mark.parametrize("dtype", ["O", "S4", "V8", "M8[s]"])
def test_arrays_of_anything_but_numbers_are_refused(dtype: str, tmp_path: Path) -> None:
    array = np.zeros(2, dtype=dtype) if dtype != "O" else np.array([None, None])
    with pytest.raises(DataError, match=r"refused|damaged"):
        _load(python2_pickle(array), tmp_path)


@pytest.mark.parametrize("value", [{0: [1, "2"]}, {"a": [1]}, {0: (1, 2)}, [1, 2], 3])
def test_what_no_planetoid_file_holds_is_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must hold an array, a CSR matrix or a dictionary of lists of integers"):
        _load(python2_pickle(value), tmp_path)
