"""Each reader on files that are damaged, or not what their name says."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from bmpaudit.io.readers import (
    FLAGS,
    KNOWN_NUMBERS,
    NUMBERS,
    TEXT,
    archive_names,
    checked,
    parse_json,
    parse_toml,
    read_archive,
    read_array,
    read_json,
    read_table,
    read_text,
    read_toml,
)
from bmpaudit.util.errors import DataError


def refusal(read: Any, path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as refused:
        read(path, **options)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


# Archives


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def with_member(path: Path, content: bytes, **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("a.npy", content)
    return path


def header(text: str, version: bytes = b"\1\0") -> bytes:
    length = len(text).to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + length + text.encode()


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", a=np.arange(3), b=np.array(["x"]), c=np.array([None], dtype=object))
    assert archive_names(path) == ["a", "b", "c"]
    assert list(read_archive(path, ["b", "z"])) == ["b"]
    assert list(read_archive(path, ["b"], required=["a"])) == ["a", "b"]
    assert "key 'd' is missing; the archive has a, b, c" in refusal(read_archive, path, required=["d"])
    assert refusal(read_archive, path, names=["a"], required=["b"], only=True) == "unknown array 'c'; there may be b, a"
    assert refusal(read_archive, path).endswith("it holds pickled objects, which are never loaded")


def test_a_text_file_holds_no_pickle(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_text("node,label\n")
    assert refusal(read_archive, path) == "damaged or not an .npz archive: File is not a zip file"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "EOF"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n") + bytes(8), "a of shape (3,) and type"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }\n") + bytes(8), "a of shape (-3,)"),
        (header("{'descr': '|V0', 'fortran_order': False, 'shape': (3,), }\n"), "must hold flags, numbers or text"),
        (header("{'descr': '<U0', 'fortran_order': False, 'shape': (3,), }\n"), "a of shape (3,) and type <U0 cannot"),
        (header("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }\n") + bytes(8), "flags, numbers or text"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n") + bytes(8), "pickled objects"),
        (header("(" * 9000), ""),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }\n"), ""),
        (header("{'descr': '<f8'", b"\2\0"), ""),
        (header("{}", b"\3\0"), "a has a header of version (3, 0), must be (1, 0) or (2, 0)"),
        (header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }\n") + b"\0\xd8\0\0", "got 0xd800, which is"),
        (
            header("{'descr': '>U1', 'fortran_order': False, 'shape': (1,), }\n") + b"\0\0\xdf\xff",
            "got 0xdfff, which is",
        ),
        (
            header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }\n") + b"\0\0\x11\0",
            "got 0x110000, which is",
        ),
    ],
)
def test_headers_that_do_not_hold(content: bytes, message: str, tmp_path: Path) -> None:
    text = refusal(read_archive, with_member(tmp_path / "a.npz", content))
    assert text.startswith("damaged or not an .npz archive: ")
    assert message in text
    (tmp_path / "a.npy").write_bytes(content)
    assert refusal(read_array, tmp_path / "a.npy").startswith("damaged or not an .npy array: ")


def test_other_ways_of_packing_are_refused(tmp_path: Path) -> None:
    path = with_member(tmp_path / "a.npz", b"", compression=zipfile.ZIP_LZMA)
    assert refusal(read_archive, path).endswith("a is compressed by method 14, must be stored or deflated")
    path = npz(tmp_path / "b.npz", a=np.arange(3))
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a.npy", b"")
    assert refusal(read_archive, path).endswith("a is there twice")


def test_numbers_come_in_the_machines_own_order(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", a=np.arange(3, dtype=">i4"), b=np.asfortranarray(np.eye(2, 3)))
    arrays = read_archive(path)
    assert arrays["a"].dtype == np.int32
    assert arrays["a"].tolist() == [0, 1, 2]
    assert np.array_equal(arrays["b"], np.eye(2, 3))


def test_arrays_are_what_they_are_said_to_be() -> None:
    arrays = {"a": np.eye(2, 3)}
    assert checked(arrays, "a", "f", 2, None) is arrays["a"]
    for kinds, shape in (("iu", (2, 3)), ("f", (2, 2)), ("f", (2,)), ("f", (2, 3, 1))):
        with pytest.raises(ValueError, match=r"a must be .* of shape \(.*\), got float64 of shape \(2, 3\)"):
            checked(arrays, "a", kinds, *shape)
    with pytest.raises(ValueError, match="array b is missing"):
        checked(arrays, "b", "f")
    with pytest.raises(ValueError, match="a must not be NaN"):
        checked({"a": np.array([np.nan])}, "a", "f", None)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    readers = (read_archive, read_array, read_json, read_toml, read_text)
    for read in readers:
        assert refusal(read, tmp_path / "a.npz") == "not a regular file"
        assert refusal(read, tmp_path / "nowhere") == "no such file"
        assert refusal(read, tmp_path) == "Is a directory"


# Tables


def parquet(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("values", "kind"),
    [([[1, 2]], "list<element: int64>"), ([{"x": 1}], "struct"), ([b"x"], "binary"), ([np.datetime64(1, "s")], "time")],
)
def test_columns_of_other_kinds_are_refused(values: list[Any], kind: str, tmp_path: Path) -> None:
    message = refusal(read_table, parquet(tmp_path / "a.parquet", a=values))
    assert message.startswith(f"column 'a' must hold numbers, flags or text, got {kind}")


def test_columns_hold_what_they_must(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "a.parquet", number=[1, 2], some=[1, None], text=["x", "y"], gap=["x", None], flag=[True, False]
    )
    kinds = {"number": NUMBERS, "some": KNOWN_NUMBERS, "text": TEXT, "flag": FLAGS}
    table = read_table(path, required=kinds, only=True)
    assert list(table.columns) == ["number", "some", "text", "flag"]
    assert [str(dtype) for dtype in table.dtypes[:2]] == ["int64", "Int64"]
    assert refusal(read_table, path, required={"some": NUMBERS}) == "column 'some' must hold numbers, got none in row 1"
    assert refusal(read_table, path, required={"gap": TEXT}) == "column 'gap' must hold text, got none in row 1"
    assert refusal(read_table, path, required={"number": TEXT}) == "column 'number' must hold text, got int64"
    assert refusal(read_table, path, required={"text": NUMBERS}).startswith("column 'text' must hold numbers, got ")
    assert refusal(read_table, path, required={"flag": NUMBERS}) == "column 'flag' must hold numbers, got bool"
    assert refusal(read_table, path, required={"number": FLAGS}) == "column 'number' must hold flags, got int64"
    message = "column 'other' is missing; the first columns are number, some, text, gap, flag"
    assert refusal(read_table, path, required=["other"]) == message


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert refusal(read_table, tmp_path / "a.parquet").endswith("two columns have one name")


def test_repeated_texts_are_read_as_they_are(tmp_path: Path) -> None:
    values = ["x", "y", None, "x"]
    plain = read_table(parquet(tmp_path / "a.parquet", a=values))
    coded = read_table(parquet(tmp_path / "b.parquet", a=pa.array(values).dictionary_encode()))
    assert [None if value != value else value for value in plain["a"]] == values
    assert plain.equals(coded)


# Text


@pytest.mark.parametrize("depth", [65, 5_000, 100_000])
def test_deep_nesting_is_refused(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        path.write_text(text)
        assert "nested" in refusal(read_json, path)
    if depth < 10_000:
        for text in ("a = " + "[" * depth + "]" * depth, ".".join("a" * (depth + 1)) + " = 1"):
            path.write_text(text)
            assert "nested" in refusal(read_toml, path) or "dots" in refusal(read_toml, path)


def test_moderate_nesting_is_read() -> None:
    text = "[" * 64 + "]" * 64
    assert parse_json(text) == json.loads(text)
    assert parse_toml(".".join("a" * 60) + " = 1")["a"]["a"]["a"]


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(r'{"name": "\ud83d"}')
    assert "surrogates not allowed" in refusal(read_json, path)
    path.write_text(r'{"name": "\ud83d\udc4d"}')
    assert read_json(path) == {"name": "👍"}


@pytest.mark.parametrize("content", [b"", b"\xff", b"{", b"[1,]", b"1" * 5000, b"nul"])
def test_what_is_not_json(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert refusal(read_json, tmp_path / "a.json").startswith("damaged or not a JSON file: ")


@pytest.mark.parametrize("content", [b"a", b"\xff", b"a = 1\na = 2", b"a = " + b"1" * 5000, b"[a", b"a = 2024-99-99"])
def test_what_is_not_toml(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    assert refusal(read_toml, tmp_path / "a.toml").startswith("damaged or not a TOML file: ")


def test_text_that_is_none_is_noticed_when_a_parquet_table_is_read(tmp_path: Path) -> None:
    texts = pa.array([b"good", b"\xff\xfe"]).cast(pa.binary())
    as_text = pa.Array.from_buffers(pa.string(), 2, texts.buffers())
    path = tmp_path / "names.parquet"
    pyarrow.parquet.write_table(pa.table({"name": as_text}), path)
    assert "Invalid UTF8 sequence" in refusal(read_table, path)
