"""The outcome of an attack: how often it erred about each node, and the table that holds it (docs/attack.md)."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.evidence import NotAuditable
from bmpaudit.io.readers import CSV, SUFFIXES, read_table
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write
from bmpaudit.util.values import Flags, Floats, Ints

COUNT_COLUMNS = ("num_out", "num_in", "false_positives", "false_negatives")
COLUMNS = ("node", *COUNT_COLUMNS, "prior_prob")

MAX_COUNT = 2**53  # beyond it, a float (which a table may hold) cannot tell whole numbers apart
_NODE_NUMBER = re.compile(r"0|[1-9]\d{0,17}")  # "007" and "-1" are names


def find_wrong_row(columns: Mapping[str, npt.NDArray[Any]]) -> tuple[int, str] | None:
    """The first impossible row of error counts in columns of one length, and what is wrong with it."""
    for name in (*COUNT_COLUMNS, "prior_prob"):
        values = columns[name]
        if values.dtype.kind not in "iuf":
            return 0, f"{name} must be numbers, got {values.dtype}"
        if name == "prior_prob":
            fits, bound = (values >= 0) & (values <= 1), "in [0, 1]"
        else:
            fits = (values >= 0) & (values <= MAX_COUNT) & (values == np.floor(values))
            bound = "a whole number of at least 0"
        if not fits.all():
            row = int(fits.argmin())
            return row, f"{name} must be {bound}, got {name}={_shown(values[row])}"
    for errors, total in (("false_positives", "num_out"), ("false_negatives", "num_in")):
        fits = columns[errors] <= columns[total]
        if not fits.all():
            row = int(fits.argmin())
            got = f"{errors}={_shown(columns[errors][row])}, {total}={_shown(columns[total][row])}"
            return row, f"{errors} must be at most {total}, got {got}"
    nodes = columns["node"]
    if nodes.dtype.kind not in "iuUO":
        return 0, f"node must be whole numbers or names, got {nodes.dtype}"
    repeated = np.setdiff1d(np.arange(len(nodes)), np.unique(nodes, return_index=True)[1])
    return (int(repeated[0]), f"node must be distinct, got {nodes[repeated[0]]} again") if len(repeated) else None


def _shown(number: float) -> str:
    """Whole numbers without a decimal point, even from a column of floats."""
    return str(number).removesuffix(".0")


@dataclass(frozen=True, eq=False)
class ErrorCounts:
    """Errors of the attack on K nodes, as Algorithms 1 and 4 return them.

    Validated when created; the arrays are read-only, all of shape (K,).

    Raises:
        InputError: if a value is impossible; the message names it and the node.

    >>> counts = ErrorCounts.from_arrays(num_out=[75, 80], num_in=[25, 20], false_positives=[5, 0],
    ...                                  false_negatives=[10, 20], prior_prob=0.25)
    >>> counts.is_constant
    array([False,  True])
    >>> print(counts)
    2 nodes, 200 challenges
      false positives       5 of 155    3.2 %
      false negatives       30 of 45   66.7 %
      right decisions     165 of 200   82.5 %
      constant decision       1 node  the attack learns nothing there
    """

    node: npt.NDArray[Any]  # node ids, or names; distinct
    num_out: Ints  # n_0, number of challenged models that were trained without the node
    num_in: Ints  # n_1, number of challenged models that were trained with it
    false_positives: Ints  # A, number of `num_out` that were taken for models with the node
    false_negatives: Ints  # B, number of `num_in` that were taken for models without it
    prior_prob: Floats  # γ(1), the prior probability of membership
    # Nodes that could not be attacked, with the reasons. They are not among the rows, unless they were kept on request
    # as never decided to be members (`is_kept`). A table written by `to_table` does not hold this list, and counts read
    # by `from_table` have an empty one.
    not_auditable: tuple[NotAuditable, ...] = ()

    def __post_init__(self) -> None:
        columns = {column: np.asarray(getattr(self, column)) for column in COLUMNS}
        num_nodes = columns["node"].size
        for name, values in columns.items():
            if values.ndim != 1 or len(values) != num_nodes:
                raise InputError(f"{name} must have shape ({num_nodes},) as node has, got {values.shape}")
        if not num_nodes:
            left_out = self.not_auditable
            why = f"; {len(left_out)} cannot be, such as {left_out[0]}" if left_out else ""
            raise InputError(f"no node is left to audit{why}")
        wrong = find_wrong_row(columns)
        if wrong is not None:
            raise InputError(f"{wrong[1]}, for node {columns['node'][wrong[0]]}")
        node_type = np.int64 if columns["node"].dtype.kind in "iu" else np.str_
        types: dict[str, Any] = {"node": node_type, "prior_prob": np.float64}
        for name, values in columns.items():
            array = values.astype(types.get(name, np.int64))
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def from_arrays(
        cls,
        num_out: npt.ArrayLike,
        num_in: npt.ArrayLike,
        false_positives: npt.ArrayLike,
        false_negatives: npt.ArrayLike,
        prior_prob: npt.ArrayLike,
        node: npt.ArrayLike | None = None,
    ) -> ErrorCounts:
        """Counts from anywhere: a single number stands for all nodes, and nodes are numbered unless they are named."""
        arrays = [np.asarray(values) for values in (num_out, num_in, false_positives, false_negatives, prior_prob)]
        nodes = np.arange(max(array.size for array in arrays)) if node is None else np.asarray(node)
        out, inside, positives, negatives, prior = (
            np.full(nodes.size, array) if array.ndim == 0 else array for array in arrays
        )
        return cls(nodes, out, inside, positives, negatives, prior)

    def take(self, rows: npt.ArrayLike) -> ErrorCounts:
        """Some of the nodes, in the order given: row numbers, or flags for all rows."""
        return replace(self, **{name: getattr(self, name)[np.asarray(rows)] for name in COLUMNS})

    @property
    def num_nodes(self) -> int:
        """K, the number of nodes that were attacked."""
        return len(self.node)

    @property
    def prior_odds(self) -> Floats:
        """η = γ(1)/γ(0); infinite where γ(1) is 1."""
        with np.errstate(divide="ignore"):
            return self.prior_prob / (1.0 - self.prior_prob)

    @property
    def accuracy(self) -> Floats:
        """Share of right decisions about each node; NaN where there was no challenge."""
        with np.errstate(invalid="ignore"):
            return 1.0 - (self.false_positives + self.false_negatives) / (self.num_out + self.num_in)

    @property
    def is_constant(self) -> Flags:
        """Whether the decision about a node was the same for every model.

        Such an attack learns nothing from the model, whatever the counts look like: with unequal numbers of models on
        the two sides, always deciding "non-member" is an unlikely outcome unless ε is large.
        """
        always_out = (self.false_positives == 0) & (self.false_negatives == self.num_in)
        always_in = (self.false_positives == self.num_out) & (self.false_negatives == 0)
        return always_out | always_in

    @property
    def is_kept(self) -> Flags:
        """Whether a node could not be attacked and was kept as never decided to be a member."""
        if not self.not_auditable:
            return np.zeros(self.num_nodes, dtype=np.bool_)
        return np.isin(self.node, [left.node for left in self.not_auditable])

    def __str__(self) -> str:
        wrong_out, wrong_in = int(self.false_positives.sum()), int(self.false_negatives.sum())
        num_out, num_in, num_constant = int(self.num_out.sum()), int(self.num_in.sum()), int(self.is_constant.sum())
        challenges = num_out + num_in
        parts = {
            "false positives": (wrong_out, num_out),
            "false negatives": (wrong_in, num_in),
            "right decisions": (challenges - wrong_out - wrong_in, challenges),
        }
        rows = [
            (name, f"{part:,} of {whole:,}", f"{100 * part / whole:5.1f} %" if whole else "")
            for name, (part, whole) in parts.items()
        ]
        if num_constant:
            rows.append(("constant decision", _nodes(num_constant), "the attack learns nothing there"))
        if self.not_auditable:
            fate = "kept as never a member" if self.is_kept.any() else "left out"
            reason = f"{fate}, such as {self.not_auditable[0]}"
            rows.append(("not auditable", _nodes(len(self.not_auditable)), reason))
        width = max(len(value) for _, value, _ in rows)
        lines = [f"  {name:<17}  {value:>{width}}  {rest}".rstrip() for name, value, rest in rows]
        return "\n".join([f"{_nodes(self.num_nodes)}, {challenges:,} challenges", *lines])

    @classmethod
    def from_table(cls, path: str | Path) -> ErrorCounts:
        """Reads a table, CSV or Parquet by its suffix, with the columns that `to_table` writes, in any order.

        A `DataError` names the file, and the line or row where there is one.
        """
        path = _table_path(path)
        is_csv = path.suffix == CSV

        def place(row: int) -> str:
            """Where to look: editors count lines from 1, and the first is the header; Parquet only has rows."""
            return f"{path}: line {row + 2}" if is_csv else f"{path}: row {row}"

        # All of a CSV table as text: what is not a number can then be shown as it is, and no digit is lost.
        table = read_table(path, text=None, required=COLUMNS)
        for name in map(str, table.columns):
            if name not in COLUMNS:
                raise DataError(f"{path}: unknown column {name!r}; the columns are {', '.join(COLUMNS)}")
        if table.empty:
            raise DataError(f"{path}: no node is left to audit, the table has no row")
        columns: dict[str, npt.NDArray[Any]] = {}
        for name in COLUMNS:
            column = table[name]
            missing = column.isna().to_numpy()
            if missing.any():
                what = "missing" if is_csv else "missing or NaN"
                raise DataError(f"{place(int(missing.argmax()))}: {name} is {what}")
            if column.dtype.kind in "iufb":  # numbers that are not whole are refused with the other checks
                columns[name] = column.to_numpy()
            elif name == "node":
                names = column.to_numpy(dtype=np.str_)
                is_numbered = is_csv and all(_NODE_NUMBER.fullmatch(each) for each in names)
                columns[name] = names.astype(np.int64) if is_numbered else names
            else:
                columns[name] = np.empty(len(column), dtype=np.float64)
                for row, text in enumerate(column):
                    try:
                        columns[name][row] = float(text)
                    except (TypeError, ValueError):
                        raise DataError(f"{place(row)}: {name} must be a number, got {text!r}") from None
        wrong = find_wrong_row(columns)
        if wrong is not None:
            raise DataError(f"{place(wrong[0])}: {wrong[1]}")
        return cls.from_arrays(**columns)

    def to_table(self, path: str | Path) -> None:
        """Writes `node,num_out,num_in,false_positives,false_negatives,prior_prob`, CSV or Parquet by the suffix."""
        path = _table_path(path)
        import pandas as pd

        table = pd.DataFrame({name: getattr(self, name) for name in COLUMNS})
        with atomic_write(path) as temporary:
            if path.suffix == CSV:
                # Names in quotes: a bare carriage return within one would end the line.
                is_named = self.node.dtype.kind == "U"
                table.to_csv(temporary, index=False, quoting=csv.QUOTE_NONNUMERIC if is_named else csv.QUOTE_MINIMAL)
            else:
                table.to_parquet(temporary, index=False)


def _nodes(number: int) -> str:
    return f"{number:,} node{'' if number == 1 else 's'}"


def _table_path(path: str | Path) -> Path:
    if Path(path).suffix not in SUFFIXES:
        raise InputError(f"{path}: the name of a table must end in {' or '.join(SUFFIXES)}")
    return Path(path)
