"""Graphs small enough to check by hand, and a way to draw many of them."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt

from bmpaudit.graph.graph import Graph

# 0.1 has no exact binary form: a detour through other precisions or short decimals would change it.
DENSE = np.array([[0.1, 1.0], [1 / 3, -2.5], [1e-30, 3e30], [0.0, 7.0]], dtype=np.float32)


def sparse_rows() -> npt.NDArray[np.float32]:
    features = np.zeros((4, 5), dtype=np.float32)
    features[0, 1], features[2, 4], features[3, 0] = 0.1, -2.5, 1.0
    return features


def kite(features: npt.ArrayLike = DENSE, *, named: bool = False) -> Graph:
    """A triangle 0-1-2 with a tail 2-3."""
    return Graph.from_edges(
        [(0, 1), (0, 2), (1, 2), (2, 3)],
        features,
        [0, 1, 1, 2],
        node_names=["007", "NA", "Łódź, PL", 'the "fourth"'] if named else None,
        class_names=["01", "null", "x y"] if named else None,
    )


def assert_same(result: Graph, expected: Graph, *, names: bool = True) -> None:
    """Equal in every part, not only in the hash."""
    np.testing.assert_array_equal(result.edges, expected.edges)
    np.testing.assert_array_equal(result.labels, expected.labels)
    np.testing.assert_array_equal(result.dense_features, expected.dense_features)
    assert isinstance(result.features, np.ndarray) == isinstance(expected.features, np.ndarray)
    assert result.num_classes == expected.num_classes
    assert result.content_hash == expected.content_hash
    if names:
        assert (result.node_names, result.class_names) == (expected.node_names, expected.class_names)


# Characters that a text file in UTF-8 can hold; a NUL ends a string in NumPy.
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any small graph: sparse or dense features, with or without names, with or without edges."""
    num_nodes = draw(st.integers(2, 7))
    nodes = st.integers(0, num_nodes - 1)
    labels = draw(
        st.lists(st.integers(0, 3), min_size=num_nodes, max_size=num_nodes).filter(lambda found: len(set(found)) > 1)
    )
    edges = draw(st.sets(st.tuples(nodes, nodes).filter(lambda pair: pair[0] < pair[1])))
    shape = (num_nodes, draw(st.integers(1, 5)))
    entries = FLOATS if draw(st.booleans()) else st.sampled_from([0.0] * 9 + [0.1])
    return Graph.from_edges(
        sorted(edges),
        draw(hnp.arrays(np.float32, shape, elements=entries)),
        labels,
        node_names=draw(st.none() | st.lists(NAMES, min_size=num_nodes, max_size=num_nodes, unique=True)),
        class_names=draw(st.none() | st.lists(NAMES, min_size=max(labels) + 1, max_size=max(labels) + 1)),
    )
