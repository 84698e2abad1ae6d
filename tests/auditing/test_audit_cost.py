"""What an audit is said to take, from rehearsals whose times are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_audit import QUIET, leaky_graph, small_plan

from bmpaudit.auditing.context import Subject
from bmpaudit.graph.graph import Graph
from bmpaudit.pipeline import cost
from bmpaudit.pipeline.cost import audit_cost
from bmpaudit.util.values import Ints


def test_a_rehearsed_audit_leaves_nothing_and_prices_every_step() -> None:
    price = audit_cost(Subject(leaky_graph(), "", small_plan()), QUIET)
    assert list(price.seconds) == [
        "training",
        "priors",
        "permutation test",
        "attack",
        "proof and exposure",
        "estimation",
        "report",
    ]
    assert all(seconds > 0 for seconds in price.seconds.values())
    assert price.total == sum(price.seconds.values())


@pytest.mark.parametrize("num_models", [100, 1_000])
def test_steps_grow_with_what_they_look_at(num_models: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With times that are exactly linear, the prices are those of the line."""
    num_nodes = 3_000

    def times(nodes: int, models: int) -> dict[str, float]:
        learnt = min(nodes, 2**19 // models)  # a prior is learnt from so many nodes
        return {
            "permutation test": 0.2 + 1e-6 * nodes * models,
            "attack": 0.1 + 1e-4 * learnt + 2e-6 * nodes * models,
            "proof and exposure": 0.3 + 3e-6 * nodes * models,
            "estimation": 0.4 + 1e-3 * nodes**0.75,
            "report": 2.0,
        }

    def rehearse(_: Any, __: Any, size: tuple[int, int], *___: Any, **____: Any) -> Any:
        nodes, models = min(size[0], num_nodes), min(size[1], num_models)
        return cost._Rehearsal(nodes, models, times(nodes, models))

    monkeypatch.setattr(cost, "_rehearse", rehearse)
    graph = leaky_graph(num_nodes)
    price = audit_cost(Subject(graph, "", small_plan(shadows=num_models)), QUIET)
    later = {step: price.seconds[step] for step in times(1, 1)}
    assert later == pytest.approx(times(num_nodes, num_models))


def test_a_graph_smaller_than_a_rehearsal_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, real = [], cost._induced

    def induced(graph: Graph, nodes: Ints) -> Graph:
        sizes.append(len(nodes))
        return real(graph, nodes)

    monkeypatch.setattr(cost, "_induced", induced)
    audit_cost(Subject(leaky_graph(), "", small_plan()), QUIET)
    assert sizes == [48, 48, 48]


def test_rehearsed_nodes_are_neighbours_of_each_other() -> None:
    star = [(3, node) for node in (0, 5, 8, 9)]
    graph = Graph.from_edges([*star, (9, 7), (1, 2)], np.ones((10, 1), dtype=np.float32), np.arange(10) % 2)
    assert cost._together(graph, 5).tolist() == [0, 3, 5, 8, 9]
    assert cost._together(graph, 6).tolist() == [0, 3, 5, 7, 8, 9]
    assert cost._together(graph, 8).tolist() == [0, 1, 2, 3, 5, 7, 8, 9]
