"""Which nodes are most at risk: by exposure, never by a region that is symmetric under inversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from bmpaudit.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

Side = Literal["member", "non_member"]
"""Whether nodes are named as members or as non-members."""


def ranked_nodes(nodes: pd.DataFrame, side: Side = "member") -> pd.DataFrame:
    """The rows of the table of nodes (docs/audit-folder.md), those most at risk first.

    Nodes are ordered by the lower limit of their exposure times the share of models naming them that are right, then by
    the exposure itself, then by how often the attack is right about them, then by their number. So a node that the
    attack gets wrong every time is never first, and where nobody is named at all the order still means something. Nodes
    of unknown exposure come last.
    """
    share, low, named, wrong = (
        nodes[f"{side}_{name}"].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in ("exposure", "exposure_low", "named", "wrong")
    )
    risk = low * named / np.maximum(named + wrong, 1)
    keys = (nodes["node"].to_numpy(), *(_descending(each) for each in (node_accuracy(nodes), share, risk)))
    return nodes.iloc[np.lexsort((*keys, np.isnan(share)))]


def node_accuracy(nodes: pd.DataFrame) -> Floats:
    """How often the attack's decision about each node is right, members and non-members counting alike, shape (N,).

    1/2 + m/(m + 2) (1/2 - (A/n0 + B/n1)/2) with m = min(n0, n1): guessing and decisions that never vary have 1/2, and
    few challenges on either side stay close to it. NaN for nodes that were not audited.
    """
    false_positives, num_out, false_negatives, num_in = (
        nodes[name].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in ("false_positives", "num_out", "false_negatives", "num_in")
    )
    fewest = np.minimum(num_out, num_in)
    error = (false_positives / np.maximum(num_out, 1) + false_negatives / np.maximum(num_in, 1)) / 2
    accuracy: Floats = 0.5 + fewest / (fewest + 2) * (0.5 - error)
    return accuracy


def _descending(values: Floats) -> Floats:
    return np.where(np.isnan(values), np.inf, -values)
