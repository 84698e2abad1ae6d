"""Boxes and means of groups of nodes, over the whole graph, for the page (docs/report-page.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit.arrays import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 16
DEGREES = (0, 1, 2, 3, 4, 5, 6, 9, 17, 33)
HOMOPHILIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
NUM_PRIOR_GROUPS = 6
WHISKER_REACH = 1.5  # lengths of the box
MEASURES = (
    *("member_exposure", "non_member_exposure", "accuracy"),
    *("right_median", "excess_right_median", "left_median"),
)

Groups = tuple[list[str], Ints]
"""Labels, and for each node the place of its label, or -1."""


def group_data(nodes: pd.DataFrame, accuracy: Floats, shown: Ints) -> dict[str, Any]:
    """For each property by which nodes are grouped: labels, the groups of the nodes shown, and boxes by measure.

    Args:
        nodes: The audit's table of nodes.
        accuracy: Of the attack on each node.
        shown: The nodes that the page shows.
    """
    measures = {name: accuracy if name == "accuracy" else _numbers(nodes, name) for name in MEASURES}
    data = {}
    for key, (labels, group) in {
        "class": _by_class(nodes["class"].to_numpy(dtype=object)),
        "degree": _in_ranges(_numbers(nodes, "degree"), DEGREES, _degree_label),
        "homophily": _by_homophily(_numbers(nodes, "homophily")),
        "prior_prob": _by_prior(_numbers(nodes, "prior_prob")),
    }.items():
        boxes = {
            name: [_box(values[(group == place) & np.isfinite(values)]) for place in range(len(labels))]
            for name, values in measures.items()
        }
        data[key] = {"label": labels, "group": group[shown], "boxes": boxes}
    return data


def _numbers(nodes: pd.DataFrame, name: str) -> Floats:
    return nodes[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _box(values: Floats) -> dict[str, float] | None:
    """Tukey's box: quartiles, and whiskers to the furthest values within 1.5 lengths of the box."""
    if not values.size:
        return None
    lower, median, upper = np.percentile(values, [25, 50, 75])
    reach = WHISKER_REACH * (upper - lower)
    inside = values[(values >= lower - reach) & (values <= upper + reach)]
    figures = {"lower": lower, "median": median, "upper": upper, "mean": values.mean()}
    figures |= {"low": inside.min(), "high": inside.max()}
    return {"num_nodes": len(values), **{name: float(figure) for name, figure in figures.items()}}


def _by_class(classes: np.ndarray[Any, np.dtype[np.object_]]) -> Groups:
    """The largest classes, and all others together."""
    names, place, sizes = np.unique(classes.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    labels = [str(names[k]) for k in order[:MOST_CLASSES]]
    if len(names) > MOST_CLASSES:
        labels.append("other classes")
    return labels, np.minimum(rank[place], MOST_CLASSES)


def _in_ranges(values: Floats, edges: Sequence[float], label: Callable[[float, float | None], str]) -> Groups:
    """Ranges from each edge to below the next; the last has no end."""
    group = np.searchsorted(np.asarray(edges), values, side="right") - 1
    ends = [*edges[1:], None]
    labels = [label(low, high) for low, high in zip(edges, ends, strict=True)]
    return labels, np.where(np.isnan(values), -1, group)


def _degree_label(low: float, high: float | None) -> str:
    if high is None:
        return f"≥ {low:g}"
    return f"{low:g}" if high - low == 1 else f"{low:g}–{high - 1:g}"


def _by_homophily(values: Floats) -> Groups:
    labels, group = _in_ranges(
        values, HOMOPHILIES, lambda low, high: "exactly 1" if high is None else f"{low:g} to < {high:g}"
    )
    return [*labels, "no neighbours"], np.where(group < 0, len(labels), group)


def _by_prior(values: Floats) -> Groups:
    """About equally many nodes in each; nodes with the same prior are never parted."""
    cuts = np.unique(np.quantile(values, np.arange(NUM_PRIOR_GROUPS) / NUM_PRIOR_GROUPS))
    return _in_ranges(
        values, cuts.tolist(), lambda low, high: f"≥ {low:.2g}" if high is None else f"{low:.2g} to < {high:.2g}"
    )
