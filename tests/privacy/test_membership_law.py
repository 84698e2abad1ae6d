from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_definitions import is_in
from strategies import LAW_KINDS, many_examples, random_law, seeds

from bmpaudit.privacy import fixed_size_memberships, independent_memberships, membership_distance
from bmpaudit.privacy.membership_law import membership_table


def hamming(m: int, other: int) -> int:
    return (m ^ other).bit_count()


def slow_distance(law: list[Fraction] | tuple[Fraction, ...], node: int) -> int | None:
    """Strassen's theorem: mass can move within distance D iff every set of vectors fits into what it can reach."""
    given_in = _conditional(law, node, 1)
    given_out = _conditional(law, node, 0)
    if given_in is None or given_out is None:
        return None
    subsets = list(chain.from_iterable(combinations(given_in, size) for size in range(len(given_in) + 1)))
    for distance in range(1, len(law)):
        if all(
            sum(given_in[m] for m in subset)
            <= sum(p for other, p in given_out.items() if any(hamming(m, other) <= distance for m in subset))
            for subset in subsets
        ):
            return distance
    raise AssertionError


def _conditional(law: list[Fraction] | tuple[Fraction, ...], node: int, membership: int) -> dict[int, Fraction] | None:
    weights = {m: p for m, p in enumerate(law) if is_in(m, node) == membership and p > 0}
    total = sum(weights.values())
    return {m: p / total for m, p in weights.items()} if total else None


def test_table_lists_every_vector_once_with_node_i_as_bit_i() -> None:
    table = membership_table(3)
    assert table.shape == (8, 3)
    assert [[is_in(m, node) for node in range(3)] for m in range(8)] == table.astype(int).tolist()


def test_independent_memberships_are_products() -> None:
    prior = [0.5, 0.25, 0.9]
    law = independent_memberships(prior)
    for m, membership in enumerate(product((0, 1), repeat=3)):
        in_order = membership[::-1]  # the last factor of `product` runs fastest, as does bit 0
        expected = np.prod([p if is_member else 1 - p for p, is_member in zip(prior, in_order, strict=True)])
        assert law[m] == pytest.approx(expected, rel=1e-15)
    assert law.sum() == pytest.approx(1, abs=1e-15)


def test_certain_memberships() -> None:
    assert independent_memberships([0.0, 1.0]).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(("num_nodes", "size"), [(1, 0), (1, 1), (4, 2), (5, 1)])
def test_fixed_size_memberships_are_uniform_over_the_sets_of_that_size(num_nodes: int, size: int) -> None:
    law = fixed_size_memberships(num_nodes, size)
    sets = [sum(1 << node for node in drawn) for drawn in combinations(range(num_nodes), size)]
    expected = np.zeros(2**num_nodes)
    expected[sets] = 1 / len(sets)
    np.testing.assert_allclose(law, expected, rtol=1e-15)


class TestMembershipDistance:
    @many_examples
    @given(seeds, st.integers(1, 3), st.sampled_from(LAW_KINDS))
    def test_is_the_wasserstein_distance_of_strassen(self, seed: int, num_nodes: int, kind: str) -> None:
        law = random_law(np.random.default_rng(seed), num_nodes, kind)
        by_node = [slow_distance(law, node) for node in range(num_nodes)]
        expected = max((distance for distance in by_node if distance is not None), default=1)
        assert membership_distance([float(p) for p in law]) == expected

    @pytest.mark.parametrize("num_nodes", [1, 2, 3, 5])
    def test_is_1_for_independent_memberships(self, num_nodes: int) -> None:
        rng = np.random.default_rng(num_nodes)
        for prior in (rng.uniform(size=num_nodes), 10.0 ** -rng.uniform(0, 9, size=num_nodes)):
            assert membership_distance(independent_memberships(prior)) == 1

    @pytest.mark.parametrize(("num_nodes", "size"), [(2, 1), (4, 1), (4, 2), (5, 4)])
    def test_is_2_for_fixed_size_samples(self, num_nodes: int, size: int) -> None:
        assert membership_distance(fixed_size_memberships(num_nodes, size)) == 2

    @pytest.mark.parametrize("num_nodes", [1, 2, 4])
    def test_is_n_if_all_nodes_go_together(self, num_nodes: int) -> None:
        law = np.zeros(2**num_nodes)
        law[[0, -1]] = 0.3, 0.7
        assert membership_distance(law) == num_nodes

    def test_of_a_law_without_uncertain_nodes_is_1(self) -> None:
        assert membership_distance([0.0, 0.0, 1.0, 0.0]) == 1

    @pytest.mark.parametrize("dependence", [1e-2, 1e-5, 1e-8])
    def test_sees_a_weak_dependence(self, dependence: float) -> None:
        law = np.array([0.25, 0.25 - dependence, 0.25, 0.25 + dependence])
        assert membership_distance(law) == 2

    def test_is_2_for_fixed_sizes_in_every_class(self) -> None:
        """Stratified sampling: one of two nodes of one class, one of three of the other."""
        law = np.kron(fixed_size_memberships(3, 1), fixed_size_memberships(2, 1))
        assert membership_distance(law) == 2


class TestBadInput:
    @pytest.mark.parametrize(
        ("law", "message"),
        [
            ([0.2, 0.3, 0.5], r"membership_prob must have 2\^N entries for N ≥ 1 nodes, got shape \(3,\)"),
            ([1.0], r"membership_prob must have 2\^N entries for N ≥ 1 nodes, got shape \(1,\)"),
            ([0.2, 0.3], r"membership_prob must sum to 1, got 0.5"),
            ([1.5, -0.5], r"membership_prob must be in \[0, 1\], got membership_prob=1.5"),
        ],
    )
    def test_laws(self, law: list[float], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            membership_distance(law)

    def test_sizes_and_probabilities(self) -> None:
        with pytest.raises(ValueError, match=r"size must be in \[0, 3\], got size=4"):
            fixed_size_memberships(3, 4)
        with pytest.raises(ValueError, match=r"prior_prob must be in \[0, 1\], got prior_prob=-0.1"):
            independent_memberships([0.5, -0.1])
