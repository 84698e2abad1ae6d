import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from bmpaudit.graph import EdgeCleaning
from bmpaudit.graph.graph import clean_edges
from bmpaudit.util.errors import InputError


def test_messy_pairs_by_hand() -> None:
    #      both ways       again   loop    one way
    pairs = np.array([(0, 1), (1, 0), (0, 1), (2, 2), (3, 1)])
    clean, cleaning = clean_edges(pairs, 4)
    np.testing.assert_array_equal(clean.indptr, [0, 1, 3, 3, 4])
    np.testing.assert_array_equal(clean.indices, [1, 0, 3, 1])
    assert cleaning == EdgeCleaning(num_pairs=5, num_self_loops=1, num_duplicates=1, num_one_way=1)


def test_each_edge_once_and_each_edge_twice_are_the_same_graph() -> None:
    once = np.array([(0, 1), (2, 1)])
    twice = np.vstack([once, once[:, ::-1]])
    (left, cleaned_once), (right, cleaned_twice) = clean_edges(once, 3), clean_edges(twice, 3)
    np.testing.assert_array_equal(left.indptr, right.indptr)
    np.testing.assert_array_equal(left.indices, right.indices)
    assert (cleaned_once.num_one_way, cleaned_twice.num_one_way) == (2, 0)


def test_no_pairs() -> None:
    clean, _ = clean_edges(np.empty((0, 2), dtype=np.int64), 3)
    np.testing.assert_array_equal(clean.indptr, [0, 0, 0, 0])
    assert len(clean.indices) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_against_sets(pairs: list[tuple[int, int]]) -> None:
    clean, cleaning = clean_edges(np.array(pairs, dtype=np.int32).reshape(-1, 2), 6)
    arcs = [pair for pair in pairs if pair[0] != pair[1]]
    neighbors = [sorted({v for u, v in arcs if u == node} | {u for u, v in arcs if v == node}) for node in range(6)]
    found = [clean.indices[clean.indptr[node] : clean.indptr[node + 1]].tolist() for node in range(6)]
    assert found == neighbors
    assert cleaning == EdgeCleaning(
        num_pairs=len(pairs),
        num_self_loops=len(pairs) - len(arcs),
        num_duplicates=len(arcs) - len(set(arcs)),
        num_one_way=sum((v, u) not in arcs for u, v in set(arcs)),
    )
    assert clean.nnz == 2 * len({frozenset(arc) for arc in arcs})


@pytest.mark.parametrize(
    ("pairs", "both_ways_expected", "changes"),
    [
        ([(0, 1), (1, 2)], False, ""),
        ([(0, 1), (1, 2)], True, "2 one-way edges made two-way"),
        ([(0, 1), (1, 0)], True, ""),
        ([(0, 1), (1, 0), (1, 2)], False, "1 one-way edges made two-way"),
        ([(0, 0), (1, 2)], False, "1 self-loops dropped"),
        ([(1, 2), (1, 2)], False, "1 duplicates dropped"),
        (
            [(0, 0), (1, 2), (1, 2)],
            True,
            "1 self-loops and 1 duplicates dropped, 1 one-way edges made two-way",
        ),
    ],
)
def test_changes_in_words(pairs: list[tuple[int, int]], both_ways_expected: bool, changes: str) -> None:
    clean, cleaning = clean_edges(np.array(pairs), 3)
    assert cleaning.changes(clean.nnz // 2, both_ways_expected=both_ways_expected) == changes


@pytest.mark.parametrize("pair", [(0, 3), (3, 0), (-1, 0), (0, 2**40)])
def test_edge_to_a_node_that_is_not_there(pair: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=rf"^edge 1 joins nodes {pair[0]} and {pair[1]}, .* in \[0, 3\)$"):
        clean_edges(np.array([(0, 1), pair]), 3)


def test_unsigned_ids_are_ids() -> None:
    assert clean_edges(np.array([(0, 1)], dtype=np.uint64), 2)[0].nnz == 2


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (np.zeros((2, 3), dtype=int), r"shape \(num_edges, 2\), got \(2, 3\)"),
        (np.zeros(2, dtype=int), r"got \(2,\)"),
        (np.zeros((2, 2)), "whole numbers, got float64"),
        (np.zeros((2, 2), dtype=bool), "whole numbers, got bool"),
    ],
)
def test_pairs_of_the_wrong_kind(pairs: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        clean_edges(pairs, 5)
