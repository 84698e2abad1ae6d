"""Groups of nodes on the page: of every node of the graph, also where the page shows only some."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from made_up_table import made_up_graph, made_up_nodes

from bmpaudit.auditing.nodes import node_accuracy
from bmpaudit.report.page_data import MEASURES, group_data

NODES = made_up_nodes(made_up_graph(400, 900))


def test_groups_are_of_every_node() -> None:
    shown = np.arange(0, 400, 9)
    accuracy = node_accuracy(NODES)
    everyone = group_data(NODES, accuracy, np.arange(400))
    groups = group_data(NODES, accuracy, shown)
    measures = {name: NODES[name].to_numpy(dtype=float) for name in MEASURES if name != "accuracy"}
    has_outlier = False
    for key, each in groups.items():
        group = np.array(everyone[key]["group"])
        assert each["group"].tolist() == group[shown].tolist()
        assert set(group) <= set(range(len(each["label"])))
        assert sum(box["num_nodes"] for box in each["boxes"]["accuracy"] if box) == 400
        for name, values in {**measures, "accuracy": accuracy}.items():
            for place, box in enumerate(each["boxes"][name]):
                inside = values[(group == place) & ~np.isnan(values)]
                assert (box is None) == (len(inside) == 0)
                if box:
                    has_outlier |= box["low"] > inside.min()
                    _check_box(box, inside)
    assert has_outlier, "no node is beyond a whisker, so this tests nothing"


def _check_box(box: dict[str, Any], values: np.ndarray[Any, Any]) -> None:
    lower, median, upper = np.percentile(values, [25, 50, 75])
    reach = 1.5 * (upper - lower)
    within = [value for value in values if lower - reach <= value <= upper + reach]
    expected = {"num_nodes": len(values), "lower": lower, "median": median, "upper": upper, "mean": values.mean()}
    assert box == pytest.approx(expected | {"low": min(within), "high": max(within)}, rel=1e-12)


def test_labels_of_groups_say_who_is_in_them() -> None:
    groups = group_data(NODES, node_accuracy(NODES), np.arange(400))

    def members(key: str, label: str) -> set[int]:
        return set(np.flatnonzero(groups[key]["group"] == groups[key]["label"].index(label)).tolist())

    degree, homophily = NODES["degree"].to_numpy(), NODES["homophily"].to_numpy()
    assert members("degree", "0") == set(np.flatnonzero(degree == 0))
    assert members("degree", "6–8") == set(np.flatnonzero((degree >= 6) & (degree <= 8)))
    assert members("degree", "≥ 33") == set(np.flatnonzero(degree >= 33))
    assert members("homophily", "0.2 to < 0.4") == set(np.flatnonzero((homophily >= 0.2) & (homophily < 0.4)))
    assert members("homophily", "exactly 1") == set(np.flatnonzero(homophily == 1))
    assert members("homophily", "no neighbours") == set(np.flatnonzero(np.isnan(homophily)))
    labels, sizes = groups["class"]["label"], NODES["class"].value_counts()
    assert len(labels) == 17
    assert labels[-1] == "other classes"
    assert sizes[labels[:-1]].tolist() == sizes.sort_values(ascending=False)[:16].tolist()
    assert members("class", labels[2]) == set(np.flatnonzero(NODES["class"] == labels[2]))
    sixth = np.bincount(groups["prior_prob"]["group"])
    assert len(sixth) == 6
    assert sixth.max() - sixth.min() <= 1
