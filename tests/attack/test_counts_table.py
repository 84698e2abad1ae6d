"""Error counts as CSV and Parquet: nothing is lost on the way, and what is wrong is named with its place."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bmpaudit.attack import ErrorCounts
from bmpaudit.attack.counts import COLUMNS
from bmpaudit.util.errors import DataError, InputError

HEADER = "node,num_out,num_in,false_positives,false_negatives,prior_prob"
FOUND = "node, num_out, num_in, false_positives, false_negatives, prior"
FORMATS = ("csv", "parquet")


def some_counts() -> ErrorCounts:
    rng = np.random.default_rng(0)
    num_out, num_in = rng.integers(0, 1000, 50), rng.integers(0, 3, 50)
    return ErrorCounts.from_arrays(
        num_out,
        num_in,
        rng.integers(0, num_out + 1),
        rng.integers(0, num_in + 1),
        rng.random(50),
        rng.permutation(99)[:50],
    )


def assert_same(one: ErrorCounts, other: ErrorCounts) -> None:
    for column in COLUMNS:
        mine, theirs = getattr(one, column), getattr(other, column)
        assert mine.dtype.kind == theirs.dtype.kind
        assert mine.tolist() == theirs.tolist()


def write(folder: Path, text: str) -> Path:
    path = folder / "counts.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("table_format", FORMATS)
def test_there_and_back(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "deep" / f"counts.{table_format}"
    some_counts().to_table(path)
    assert_same(ErrorCounts.from_table(path), some_counts())
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("table_format", FORMATS)
def test_names_there_and_back(tmp_path: Path, table_format: str) -> None:
    named = ErrorCounts.from_arrays(5, 5, 1, 1, 0.5, node=["Rex", "007", "a,b", 'say "no"', "NA", "line\rbreak", "-1"])
    named.to_table(tmp_path / f"counts.{table_format}")
    assert_same(ErrorCounts.from_table(str(tmp_path / f"counts.{table_format}")), named)


def test_the_table_is_plain(tmp_path: Path) -> None:
    ErrorCounts.from_arrays([998, 1], [2, 0], [0, 1], [2, 0], [0.1, 1 / 3]).to_table(tmp_path / "counts.csv")
    assert (tmp_path / "counts.csv").read_text() == f"{HEADER}\n0,998,2,0,2,0.1\n1,1,0,1,0,0.3333333333333333\n"
    ErrorCounts.from_arrays(9, 1, 0, 1, 0.1).to_table(tmp_path / "counts.parquet")
    assert list(pd.read_parquet(tmp_path / "counts.parquet").columns) == list(COLUMNS)


def test_columns_in_any_order_whole_floats_and_empty_sides(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "prior_prob,node,num_in,num_out,false_negatives,false_positives\n0.25,3,1,0,1.0,0\n1e-3,9,0,1e3,0,7\n0,10,0,0,0,0\n",
    )
    counts = ErrorCounts.from_table(path)
    assert counts.node.tolist() == [3, 9, 10]
    assert counts.num_out.tolist() == [0, 1000, 0]
    assert counts.false_positives.tolist() == [0, 7, 0]
    assert counts.prior_prob.tolist() == [0.25, 0.001, 0.0]


def test_parquet_that_was_written_with_an_index(tmp_path: Path) -> None:
    table = pd.DataFrame([dict(zip(COLUMNS, (4, 5, 5.0, 1, 1, 1), strict=True))])
    table.set_index("node").to_parquet(tmp_path / "counts.parquet")
    assert ErrorCounts.from_table(tmp_path / "counts.parquet").node.tolist() == [4]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,5,5,6,0,0.5", "line 2: false_positives must be at most num_out, got false_positives=6, num_out=5"),
        ("0,5,5,0,0,0\n1,5,5,0,9,0", "line 3: false_negatives must be at most num_in, got false_negatives=9, num_in=5"),
        ("0,5,5,-1,0,0.5", "line 2: false_positives must be a whole number of at least 0, got false_positives=-1"),
        ("0,5,5,1.5,0,0.5", "line 2: false_positives must be a whole number of at least 0, got false_positives=1.5"),
        ("0,5,5,1,0,1.5", "line 2: prior_prob must be in [0, 1], got prior_prob=1.5"),
        ("0,5,5,1,0,nan", "line 2: prior_prob must be in [0, 1], got prior_prob=nan"),
        ("0,nan,5,1,0,0.5", "line 2: num_out must be a whole number of at least 0, got num_out=nan"),
        ("0,inf,5,1,0,0.5", "line 2: num_out must be a whole number of at least 0, got num_out=inf"),
        ("0,5,5,1,0,0.5\n1,5,,1,0,0.5", "line 3: num_in is missing"),
        ("0,5,5,1,0", "line 2: prior_prob is missing"),
        ("0,5,five,1,0,0.5", "line 2: num_in must be a number, got 'five'"),
        ("0,5,5,1,0,0.5\n0,5,5,1,0,0.5", "line 3: node must be distinct, got 0 again"),
        ("", "no node is left to audit, the table has no row"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, rows: str, message: str) -> None:
    path = write(tmp_path, f"{HEADER}\n{rows}\n")
    with pytest.raises(DataError) as refused:
        ErrorCounts.from_table(path)
    assert str(refused.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("prior_prob", "prior"), f"column 'prior_prob' is missing; the first columns are {FOUND}"),
        (HEADER + ",epsilon", f"unknown column 'epsilon'; the columns are {', '.join(COLUMNS)}"),
        (HEADER + ",node", f"unknown column 'node.1'; the columns are {', '.join(COLUMNS)}"),
    ],
)
def test_columns_are_those_that_are_documented(tmp_path: Path, header: str, message: str) -> None:
    path = write(tmp_path, f"{header}\n{','.join(['1'] * len(header.split(',')))}\n")
    with pytest.raises(DataError) as refused:
        ErrorCounts.from_table(path)
    assert str(refused.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("num_in", [5, None], "row 1: num_in is missing or NaN"),
        ("num_in", [5, 5.5], "row 1: num_in must be a whole number of at least 0, got num_in=5.5"),
        ("num_in", ["5", "five"], "row 1: num_in must be a number, got 'five'"),
        ("num_in", [True, False], "row 0: num_in must be numbers, got bool"),
        ("prior_prob", [0.5, -0.5], "row 1: prior_prob must be in [0, 1], got prior_prob=-0.5"),
        ("node", [0.5, 1.5], "row 0: node must be whole numbers or names, got float64"),
        ("node", ["a", "a"], "row 1: node must be distinct, got a again"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(tmp_path: Path, column: str, values: list[object], message: str) -> None:
    columns: dict[str, list[object]] = {name: [0, 1] if name == "node" else [1, 1] for name in COLUMNS}
    path = tmp_path / "counts.parquet"
    pd.DataFrame(columns | {column: values}).to_parquet(path, index=False)
    with pytest.raises(DataError) as refused:
        ErrorCounts.from_table(path)
    assert str(refused.value) == f"{path}: {message}"


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_that_are_no_tables(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"counts.{suffix}"
    with pytest.raises(DataError, match="no such file"):
        ErrorCounts.from_table(path)
    path.write_bytes(b"\xff\x00\xff" if suffix == "csv" else b"PAR1 no")
    with pytest.raises(DataError, match=f"damaged or not a {suffix} table") as refused:
        ErrorCounts.from_table(path)
    assert "\n" not in str(refused.value)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=f"damaged or not a {suffix} table"):
        ErrorCounts.from_table(path)


def test_a_row_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged or not a csv table"):
        ErrorCounts.from_table(write(tmp_path, f"{HEADER}\n0,5,5,1,0,0.5,7\n"))


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    message = r"counts.xlsx: the name of a table must end in .csv or .parquet$"
    with pytest.raises(InputError, match=message):
        some_counts().to_table(tmp_path / "counts.xlsx")
    with pytest.raises(InputError, match=message):
        ErrorCounts.from_table(tmp_path / "counts.xlsx")


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "counts.csv"
    some_counts().to_table(path)
    before = path.read_bytes()

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full_disk)
    with pytest.raises(OSError, match="No space left"):
        ErrorCounts.from_arrays(5, 5, 1, 1, 0.5).to_table(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
