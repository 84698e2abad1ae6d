"""The outcome of an attack: how often it erred about each node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.counts_check import COLUMNS, find_wrong_row
from bmpaudit.attack.not_auditable import NotAuditable
from bmpaudit.errors import InputError


@dataclass(frozen=True, eq=False)
class ErrorCounts:
    """Errors of the attack on K nodes, as Algorithms 1 and 4 return them.

    Validated when created; the arrays are read-only, all of shape (K,).

    Attributes:
        node: Node ids, or names; distinct.
        num_out: n_0, number of challenged models that were trained without the node.
        num_in: n_1, number of challenged models that were trained with it.
        false_positives: A, number of `num_out` that were taken for models with the node.
        false_negatives: B, number of `num_in` that were taken for models without it.
        prior_prob: γ(1), the prior probability of membership.
        not_auditable: Nodes that could not be attacked, with the reasons. They are not among the rows, unless they were
            kept on request as never decided to be members (`is_kept`). A table written by `to_table` does not hold this
            list, and counts read by `from_table` have an empty one.

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

    node: npt.NDArray[Any]
    num_out: Ints
    num_in: Ints
    false_positives: Ints
    false_negatives: Ints
    prior_prob: Floats
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
            raise InputError(f"{wrong.problem}, for node {columns['node'][wrong.row]}")
        for name, values in columns.items():
            if name == "node":
                dtype = np.dtype(np.int64 if values.dtype.kind in "iu" else np.str_)
            else:
                dtype = np.dtype(np.float64 if name == "prior_prob" else np.int64)
            array = values.astype(dtype)
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
        false_positives, false_negatives = int(self.false_positives.sum()), int(self.false_negatives.sum())
        num_out, num_in, num_constant = int(self.num_out.sum()), int(self.num_in.sum()), int(self.is_constant.sum())
        challenges = num_out + num_in
        rows = [
            ("false positives", f"{false_positives:,} of {num_out:,}", _share(false_positives, num_out)),
            ("false negatives", f"{false_negatives:,} of {num_in:,}", _share(false_negatives, num_in)),
            (
                "right decisions",
                f"{challenges - false_positives - false_negatives:,} of {challenges:,}",
                _share(challenges - false_positives - false_negatives, challenges),
            ),
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

        Raises:
            DataError: naming the file, and the line or row where there is one.
        """
        from bmpaudit.attack.counts_table import read_counts

        return read_counts(Path(path))

    def to_table(self, path: str | Path) -> None:
        """Writes `node,num_out,num_in,false_positives,false_negatives,prior_prob`, CSV or Parquet by the suffix."""
        from bmpaudit.attack.counts_table import write_counts

        write_counts(self, Path(path))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:5.1f} %" if whole else ""


def _nodes(number: int) -> str:
    return f"{number:,} node{'' if number == 1 else 's'}"
