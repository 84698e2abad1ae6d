"""What the page shows of nodes: each of them, or of many the most exposed and a sample, and figures of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from bmpaudit.arrays import Ints
from bmpaudit.auditing.node_ranking import node_accuracy, ranked_nodes
from bmpaudit.auditing.page_groups import group_data
from bmpaudit.graph import Graph

if TYPE_CHECKING:
    import pandas as pd

# A browser draws some thousands of points and some ten thousands of lines without delay.
MOST_NODES = 5_000
MOST_EXPOSED = 3_000  # of these, where there are more nodes
MOST_EDGES = 40_000

THRESHOLDS = np.arange(101) / 100
COLUMNS = (
    *("prior_prob", "prior_standard_error", "name", "class", "degree", "homophily", "component", "flag"),
    *("member_models", "member_named", "member_exposure_low", "non_member_models", "non_member_named"),
    *("floor_right", "floor_left", "num_out", "num_in", "false_positives", "false_negatives", "excess_right_median"),
    *(f"{side}_{end}" for side in ("right", "left") for end in ("low", "median", "high")),
)


def shown_nodes(nodes: pd.DataFrame) -> Ints:
    """All nodes, or those most at risk and an even sample of the rest, in the graph's order."""
    if len(nodes) <= MOST_NODES:
        return np.arange(len(nodes))
    ranking = ranked_nodes(nodes)["node"].to_numpy()
    top, rest = ranking[:MOST_EXPOSED], ranking[MOST_EXPOSED:]
    evenly = rest[np.linspace(0, len(rest) - 1, MOST_NODES - MOST_EXPOSED).astype(np.int64)]
    return np.sort(np.concatenate([top, evenly]))


def nodes_part(nodes: pd.DataFrame, graph: Graph) -> dict[str, Any]:
    """The nodes shown with the edges between them; groups and thresholds count all nodes.

    Args:
        nodes: The audit's table of nodes (docs/audit-folder.md).
        graph: The graph that was audited.
    """
    from bmpaudit.report.layout import graph_layout  # needs parts of SciPy that take long to import

    shown = shown_nodes(nodes)
    accuracy = node_accuracy(nodes)
    adjacency = graph.adjacency[shown][:, shown]
    source, target = scipy.sparse.triu(adjacency).nonzero()
    num_edges = len(source)
    if num_edges > MOST_EDGES:
        evenly = np.linspace(0, num_edges - 1, MOST_EDGES).astype(np.int64)
        source, target = source[evenly], target[evenly]
    positions = np.round(graph_layout(adjacency), 5)
    rank = np.empty(len(nodes), dtype=np.int64)
    rank[ranked_nodes(nodes)["node"].to_numpy()] = np.arange(1, len(nodes) + 1)
    return {
        "nodes": {
            "id": shown,
            "x": positions[:, 0],
            "y": positions[:, 1],
            "rank": rank[shown],
            "accuracy": np.round(accuracy[shown], 4),
            **{name: _column(nodes[name].iloc[shown]) for name in COLUMNS},
        },
        "num_most_exposed": min(len(shown), MOST_EXPOSED) if len(shown) < len(nodes) else len(shown),
        "edges": {"source": source, "target": target, "num_between": num_edges},
        "groups": group_data(nodes, accuracy, shown),
        "thresholds": _thresholds(nodes),
    }


def _column(column: pd.Series[Any]) -> list[Any]:
    """Values to six digits, as nothing here is certain to more; None where they are unknown."""
    values = column.astype(object).where(column.notna(), None).tolist()
    return [float(f"{value:.6g}") if isinstance(value, float) and np.isfinite(value) else value for value in values]


def _thresholds(nodes: pd.DataFrame) -> dict[str, Any]:
    """How many nodes of the graph have a lower limit of exposure above each threshold."""
    low = nodes["member_exposure_low"].to_numpy(dtype=np.float64, na_value=np.nan)[
        nodes["member_models"].to_numpy(dtype=np.float64, na_value=0.0) > 0
    ]
    ordered = np.sort(low)
    return {
        "threshold": THRESHOLDS,
        "num_above": len(ordered) - np.searchsorted(ordered, THRESHOLDS, side="right"),
        "num_counted": len(ordered),
    }
