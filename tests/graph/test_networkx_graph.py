from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from small_graphs import DENSE, assert_same, graphs, kite, sparse_rows

from bmpaudit.graph.graph import Graph, GraphCleanedWarning
from bmpaudit.util.errors import InputError


def _add_kite(graph: Any, names: list[Any]) -> Any:
    for name, x, y in zip(names, DENSE, [0, 1, 1, 2], strict=True):
        graph.add_node(name, x=x, y=y)
    graph.add_edges_from((names[u], names[v]) for u, v in [(0, 1), (0, 2), (1, 2), (2, 3)])
    return graph


@given(graphs())
def test_round_trip(graph: Graph) -> None:
    result = Graph.from_networkx(graph.to_networkx())
    assert_same(result, graph, names=False)
    assert result.node_names == graph.node_names


@pytest.mark.parametrize("features", [DENSE, sparse_rows()])
def test_what_networkx_gets(features: np.ndarray) -> None:
    graph = kite(features, named=True).to_networkx()
    assert list(graph) == ["007", "NA", "Łódź, PL", 'the "fourth"']
    assert graph.has_edge("Łódź, PL", "007")
    assert graph.number_of_edges() == 4
    assert graph.nodes["NA"]["y"] == 1
    np.testing.assert_array_equal(graph.nodes["NA"]["x"], features[1])


def test_numbered_nodes_have_no_names() -> None:
    graph = Graph.from_networkx(_add_kite(networkx.Graph(), [0, 1, 2, 3]))
    assert_same(graph, kite())
    assert list(graph.to_networkx()) == [0, 1, 2, 3]


@pytest.mark.parametrize("names", [["a", "b", "c", "d"], [3, 2, 1, 0], [("x", 1), 2.5, "z", None]])
def test_nodes_keep_their_order_and_names(names: list[Any]) -> None:
    # networkx allows any node but None.
    names = ["none" if name is None else name for name in names]
    graph = Graph.from_networkx(_add_kite(networkx.Graph(), names))
    assert_same(graph, kite(), names=False)
    assert graph.node_names == tuple(str(name) for name in names)


def test_a_digraph_is_made_undirected_with_a_warning() -> None:
    with pytest.warns(GraphCleanedWarning, match="^edges: 4 one-way edges made two-way$"):
        assert_same(Graph.from_networkx(_add_kite(networkx.DiGraph(), [0, 1, 2, 3])), kite())


def test_a_digraph_with_some_edges_in_both_directions() -> None:
    directed = _add_kite(networkx.DiGraph(), list("abcd"))
    directed.add_edge("b", "a")
    with pytest.warns(GraphCleanedWarning, match=r"^edges: 3 one-way edges made two-way$"):
        assert_same(Graph.from_networkx(directed), kite(), names=False)


def test_parallel_edges_and_self_loops_are_warned_about() -> None:
    multiple = _add_kite(networkx.MultiGraph(), [0, 1, 2, 3])
    multiple.add_edge(0, 1)
    multiple.add_edge(2, 2)
    with pytest.warns(GraphCleanedWarning, match=r"^edges: 1 self-loops and 1 duplicates dropped$"):
        assert_same(Graph.from_networkx(multiple), kite())


def test_attributes_of_other_names_and_single_numbers() -> None:
    graph = networkx.Graph([(0, 1)])
    for node in graph:
        graph.nodes[node].update(weight=node + 0.5, group=node)
    result = Graph.from_networkx(graph, features="weight", label="group")
    np.testing.assert_array_equal(result.dense_features, [[0.5], [1.5]])


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("x", None, "every node must have an attribute 'x', node 'b' has none"),
        ("y", None, "every node must have an attribute 'y', node 'b' has none"),
        ("x", [1.0], "attribute 'x' must have the same length on every node, got 2 on node 'a' and 1 on node 'b'$"),
        ("x", ["u", "v"], r"attribute 'x' must be numbers, got \['u', 'v'\] on node 'b'$"),
        ("y", "red", "attribute 'y' must be a whole number, got 'red' on node 'b'$"),
    ],
)
def test_bad_attributes(attribute: str, value: Any, message: str) -> None:
    graph = _add_kite(networkx.Graph(), list("abcd"))
    if value is None:
        del graph.nodes["b"][attribute]
    else:
        graph.nodes["b"][attribute] = value
    with pytest.raises(InputError, match=f"^{message}"):
        Graph.from_networkx(graph)


def test_names_that_read_the_same() -> None:
    with pytest.raises(InputError, match=r"^node_names must be distinct, got '1' for nodes 0 and 1$"):
        Graph.from_networkx(_add_kite(networkx.Graph(), [1, "1", 2, 3]))


def test_an_empty_graph() -> None:
    with pytest.raises(InputError, match="at least one node"):
        Graph.from_networkx(networkx.Graph())
