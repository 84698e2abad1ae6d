"""What a table of error counts may hold."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

COUNT_COLUMNS = ("num_out", "num_in", "false_positives", "false_negatives")
COLUMNS = ("node", *COUNT_COLUMNS, "prior_prob")

# Beyond this, a float (which a table may hold) cannot tell whole numbers apart.
MAX_COUNT = 2**53


class WrongRow(NamedTuple):
    """The first impossible row, and what is wrong with it."""

    row: int
    problem: str


def find_wrong_row(columns: Mapping[str, npt.NDArray[Any]]) -> WrongRow | None:
    """Checks the columns of error counts, all of one length."""
    for name in (*COUNT_COLUMNS, "prior_prob"):
        values = columns[name]
        if values.dtype.kind not in "iuf":
            return WrongRow(0, f"{name} must be numbers, got {values.dtype}")
        if name == "prior_prob":
            fits, bound = (values >= 0) & (values <= 1), "in [0, 1]"
        else:
            fits = (values >= 0) & (values <= MAX_COUNT) & (values == np.floor(values))
            bound = "a whole number of at least 0"
        if not fits.all():
            row = int(fits.argmin())
            return WrongRow(row, f"{name} must be {bound}, got {name}={_shown(values[row])}")
    for errors, total in (("false_positives", "num_out"), ("false_negatives", "num_in")):
        fits = columns[errors] <= columns[total]
        if not fits.all():
            row = int(fits.argmin())
            got = f"{errors}={_shown(columns[errors][row])}, {total}={_shown(columns[total][row])}"
            return WrongRow(row, f"{errors} must be at most {total}, got {got}")
    return _find_wrong_node(columns["node"])


def _find_wrong_node(nodes: npt.NDArray[Any]) -> WrongRow | None:
    if nodes.dtype.kind not in "iuUO":
        return WrongRow(0, f"node must be whole numbers or names, got {nodes.dtype}")
    _, first = np.unique(nodes, return_index=True)
    if len(first) == len(nodes):
        return None
    is_repeated = np.ones(len(nodes), dtype=np.bool_)
    is_repeated[first] = False
    row = int(is_repeated.argmax())
    return WrongRow(row, f"node must be distinct, got {nodes[row]} again")


def _shown(number: float) -> str:
    """Whole numbers without a decimal point, even from a column of floats."""
    return str(number).removesuffix(".0")
