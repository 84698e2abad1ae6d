import math

import mpmath  # type: ignore[import-untyped]  # mpmath has no stubs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_definitions import ExactMechanism
from strategies import Floats, exact_mechanisms, later_release, many_examples, mechanisms, seeds, table_kinds

from bmpaudit.privacy import (
    EpsilonPair,
    FiniteMechanism,
    compose_bmdp_with_mdp,
    compose_bmp_with_conditional_mp,
    compose_independent_samples,
    compose_mdp,
    fixed_size_memberships,
    independent_memberships,
    mdp_to_mp,
    membership_distance,
    mp_to_bmp,
    prior_floor,
    privacy_levels,
)
from bmpaudit.privacy.membership_law import membership_table

INF = math.inf
ROUNDING = 1e-9


def parity(nodes: list[int], num_nodes: int) -> Floats:
    """The release of one bit: whether an odd number of these nodes is in."""
    is_odd = membership_table(num_nodes)[:, nodes].sum(axis=1) % 2
    return np.stack([1.0 - is_odd, is_odd], axis=1)


def mp_given_the_past(first: FiniteMechanism, second: Floats) -> float:
    """MP of f(w' | w, m) under the law that w leaves, for the worst w that can come."""
    seen = np.flatnonzero(first.output_prob)
    return max(0.0, *(privacy_levels(FiniteMechanism(first.given_output(int(w)), second[:, w, :])).mp for w in seen))


def mdp_whatever_came_before(first: FiniteMechanism, second: Floats) -> float:
    law = np.full(len(first.law), 1 / len(first.law))  # so that no output counts as unseen
    return max(privacy_levels(FiniteMechanism(law, second[:, w, :])).mdp for w in range(second.shape[1]))


def assert_within(levels: EpsilonPair[float], bound: EpsilonPair[float]) -> None:
    assert levels.left <= bound.left + ROUNDING
    assert levels.right <= bound.right + ROUNDING


class TestProposition4AsPrinted:
    def test_fails_for_three_fair_independent_nodes(self) -> None:
        """Each parity alone is 0-MP for every node; their sum modulo 2 is M_1."""
        law = independent_memberships([0.5, 0.5, 0.5])
        first, second = FiniteMechanism(law, parity([0, 1, 2], 3)), FiniteMechanism(law, parity([1, 2], 3))
        assert privacy_levels(first).mp == privacy_levels(second).mp == 0
        assert privacy_levels(first).bmp == EpsilonPair(left=0.0, right=0.0)
        both = privacy_levels(first.then(second.table))
        assert (both.bmp.left, both.bmp.right) == (INF, INF)

    def test_fails_for_two_nodes(self) -> None:
        """Parity is 0-MP, a vote that is "yes" with probability (M_1 + M_2)/2 is log 3-MP; together they tell all."""
        law = independent_memberships([0.5, 0.5])
        share = membership_table(2).mean(axis=1)
        first, vote = FiniteMechanism(law, parity([0, 1], 2)), np.stack([1 - share, share], axis=1)
        assert privacy_levels(FiniteMechanism(law, vote)).mp == pytest.approx(math.log(3))
        assert privacy_levels(first.then(vote)).bmp.right == INF

    def test_fails_by_a_finite_amount_too(self) -> None:
        """No zeros are needed: both parities told honestly with probability 0.9."""
        law = independent_memberships([0.5, 0.5, 0.5])
        noise = np.array([[0.9, 0.1], [0.1, 0.9]])
        first, second = FiniteMechanism(law, parity([0, 1, 2], 3) @ noise), parity([1, 2], 3) @ noise
        assert privacy_levels(first).mp == pytest.approx(0, abs=1e-12)
        assert privacy_levels(FiniteMechanism(law, second)).mp == pytest.approx(0, abs=1e-12)
        assert privacy_levels(first.then(second)).bmp.right == pytest.approx(math.log(0.82 / 0.18))

    def test_fails_if_the_later_release_was_private_under_another_sampler(self) -> None:
        """It lets A_t be MP under its own S_t but draws S from S_0: parity is 0-MP under fair coins only."""
        release = parity([0, 1], 2)
        fair, lopsided = independent_memberships([0.5, 0.5]), independent_memberships([0.5, 0.1])
        assert privacy_levels(FiniteMechanism(fair, release)).mp == 0
        says_nothing = FiniteMechanism(lopsided, np.ones((4, 1)))
        printed = compose_bmp_with_conditional_mp(
            privacy_levels(says_nothing).bmp.left, privacy_levels(says_nothing).bmp.right, [0.0]
        )
        actual = privacy_levels(says_nothing.then(release)).bmp
        assert printed.right == pytest.approx(0, abs=1e-12)
        assert actual.right == pytest.approx(math.log(9))

    def test_holds_for_one_node(self) -> None:
        """With one node M_i is the whole vector, and the proof is right."""
        rng = np.random.default_rng(0)
        for _ in range(200):
            law = rng.dirichlet([1, 1])
            first = FiniteMechanism(law, rng.dirichlet([0.5] * 3, size=2))
            second = FiniteMechanism(law, rng.dirichlet([0.5] * 3, size=2))
            bmp, epsilon = privacy_levels(first).bmp, privacy_levels(second).mp
            assert_within(
                privacy_levels(first.then(second.table)).bmp,
                EpsilonPair(left=bmp.left + epsilon, right=bmp.right + epsilon),
            )

    def test_mdp_in_place_of_mp_does_not_mend_it(self) -> None:
        """After the parity M_1 = M_2 is known, so one release of MDP ε moves both: 2ε."""
        epsilon = 0.5
        law = independent_memberships([0.5, 0.5])
        first = FiniteMechanism(law, parity([0, 1], 2))
        rare = 1e-3 * np.exp(epsilon * membership_table(2).sum(axis=1))
        second = np.stack([1 - rare, rare], axis=1)
        assert privacy_levels(FiniteMechanism(law, second)).mdp == pytest.approx(epsilon)
        assert privacy_levels(first).bmp.right == 0
        assert privacy_levels(first.then(second)).bmp.right == pytest.approx(2 * epsilon)


class TestWhatHoldsForReleasesOnOneSample:
    @many_examples
    @given(mechanisms(max_nodes=3), seeds, table_kinds)
    def test_bmp_then_mp_given_the_past(self, first: FiniteMechanism, seed: int, kind: str) -> None:
        second = later_release(seed, first, kind)
        bmp = privacy_levels(first).bmp
        bound = compose_bmp_with_conditional_mp(bmp.left, bmp.right, [mp_given_the_past(first, second)])
        assert_within(privacy_levels(first.then(second)).bmp, bound)

    @many_examples
    @given(mechanisms(max_nodes=3, table_kinds=("plain", "nearly_deterministic")), seeds, seeds)
    def test_bmp_then_two_releases_each_mp_given_the_past(
        self, first: FiniteMechanism, seed: int, other_seed: int
    ) -> None:
        second = later_release(seed, first, "plain")
        two = first.then(second)
        third = later_release(other_seed, two, "plain")
        bmp = privacy_levels(first).bmp
        spent = [mp_given_the_past(first, second), mp_given_the_past(two, third)]
        assert_within(privacy_levels(two.then(third)).bmp, compose_bmp_with_conditional_mp(bmp.left, bmp.right, spent))

    @many_examples
    @given(mechanisms(max_nodes=3), seeds, table_kinds)
    def test_bmdp_then_mdp_is_bmdp_and_so_bmp(self, first: FiniteMechanism, seed: int, kind: str) -> None:
        second = later_release(seed, first, kind)
        bmdp = privacy_levels(first).bmdp
        bound = compose_bmdp_with_mdp(bmdp.left, bmdp.right, [mdp_whatever_came_before(first, second)])
        together = privacy_levels(first.then(second))
        assert_within(together.bmdp, bound)
        assert_within(together.bmp, bound)

    @many_examples
    @given(mechanisms(max_nodes=3), seeds, table_kinds)
    def test_mdp_then_mdp(self, first: FiniteMechanism, seed: int, kind: str) -> None:
        second = later_release(seed, first, kind)
        spent = compose_mdp([privacy_levels(first).mdp, mdp_whatever_came_before(first, second)])
        together = privacy_levels(first.then(second))
        assert together.mdp <= spent + ROUNDING

    @many_examples
    @given(mechanisms(max_nodes=3, table_kinds=("plain", "nearly_deterministic")), seeds)
    def test_mdp_releases_bound_bmp_for_every_sampler(self, first: FiniteMechanism, seed: int) -> None:
        """The chain compose_mdp, mdp_to_mp, mp_to_bmp, which also serves samplers without replacement."""
        second = later_release(seed, first, "plain")
        spent = compose_mdp([privacy_levels(first).mdp, mdp_whatever_came_before(first, second)])
        mp = mdp_to_mp(spent, membership_distance(first.law))
        assert_within(privacy_levels(first.then(second)).bmp, mp_to_bmp(mp, first.prior_odds))

    def test_they_are_attained_by_repeating_randomised_response(self) -> None:
        law = independent_memberships([0.2])
        once = FiniteMechanism(law, [[0.75, 0.25], [0.25, 0.75]])
        levels = privacy_levels(once)
        three_times = privacy_levels(once.then(once.table).then(once.table))
        bound = compose_bmdp_with_mdp(levels.bmdp.left, levels.bmdp.right, [levels.mdp] * 2)
        assert [three_times.bmp.left, three_times.bmp.right] == pytest.approx([bound.left, bound.right])
        assert three_times.mdp == pytest.approx(compose_mdp([levels.mdp] * 3))

    def test_bmdp_says_nothing_for_fixed_size_samples_and_mdp_does(self) -> None:
        law = fixed_size_memberships(3, 1)
        rare = 0.1 * np.exp(0.2 * (membership_table(3)[:, 0]))
        step = FiniteMechanism(law, np.stack([1 - rare, rare], axis=1))
        levels = privacy_levels(step)
        assert levels.bmdp.right == INF
        spent = compose_mdp([levels.mdp] * 2)
        bound = mp_to_bmp(mdp_to_mp(spent, distance=2), step.prior_odds)
        assert math.isfinite(bound.right)
        assert_within(privacy_levels(step.then(step.table)).bmp, bound)

    def test_infinite_parameters(self) -> None:
        assert compose_bmdp_with_mdp(INF, 1.0, [0.5]) == EpsilonPair(left=INF, right=1.5)
        assert compose_bmdp_with_mdp(-INF, INF, [INF]) == EpsilonPair(left=-INF, right=INF)
        assert compose_bmdp_with_mdp(1.0, -2.0, []) == EpsilonPair(left=1.0, right=-2.0)
        assert compose_mdp([]) == 0
        assert compose_mdp([1.0, INF]) == INF


class TestProposition5:
    @many_examples
    @given(st.lists(exact_mechanisms(max_nodes=2), min_size=2, max_size=3), st.integers(1, 2))
    def test_independent_samples(self, parts: list[ExactMechanism], num_nodes: int) -> None:
        mechanisms_on_one_graph = [part.in_floats() for part in parts if part.num_nodes == num_nodes]
        if not mechanisms_on_one_graph:
            return
        bmps = [privacy_levels(mechanism).bmp for mechanism in mechanisms_on_one_graph]
        bound = compose_independent_samples([bmp.left for bmp in bmps], [bmp.right for bmp in bmps])
        assert_within(privacy_levels(FiniteMechanism.in_any_of(*mechanisms_on_one_graph)).bmp, bound)

    @many_examples
    @given(mechanisms(max_nodes=2), st.integers(1, 3))
    def test_is_attained_by_the_same_mechanism_every_time(self, mechanism: FiniteMechanism, times: int) -> None:
        bmp = privacy_levels(mechanism).bmp
        bound = compose_independent_samples([bmp.left] * times, [bmp.right] * times)
        union = privacy_levels(FiniteMechanism.in_any_of(*[mechanism] * times)).bmp
        assert [union.left, union.right] == pytest.approx([bound.left, bound.right], abs=ROUNDING)

    @many_examples
    @given(st.lists(st.tuples(st.floats(-4, 4), st.floats(-4, 4)), min_size=1, max_size=5))
    def test_is_the_formula_as_printed(self, epsilons: list[tuple[float, float]]) -> None:
        left, right = zip(*epsilons, strict=True)
        mu = [math.exp(e) / (1 + math.exp(e)) for e in left]
        kappa = [math.exp(e) / (1 + math.exp(e)) for e in right]
        product_mu, product_kappa = math.prod(mu), math.prod(1 - k for k in kappa)
        composed = compose_independent_samples(left, right)
        printed_left = sum(math.log(x) for x in mu) - math.log(1 - product_mu)
        printed_right = math.log(1 - product_kappa) - sum(math.log(1 - k) for k in kappa)
        assert [composed.left, composed.right] == pytest.approx([printed_left, printed_right], abs=1e-10)

    @many_examples
    @given(
        st.lists(
            st.sampled_from([-800.0, -700.0, -40.0, -1e-12, 0.0, 3.0, 38.0, 40.0, 700.0, 800.0]), min_size=1, max_size=4
        )
    )
    def test_extreme_values(self, epsilons: list[float]) -> None:
        with mpmath.workdps(1500):
            survive = mpmath.mpf(1)
            for epsilon in epsilons:
                survive *= 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
            right = float(mpmath.log((1 - survive) / survive))
        composed = compose_independent_samples([-epsilon for epsilon in epsilons], epsilons)
        assert composed.right == pytest.approx(right, rel=1e-14)
        assert composed.left == pytest.approx(-right, rel=1e-14)

    def test_one_mechanism_stays_as_it_is(self) -> None:
        for epsilon in (-INF, -800.0, -1.0, 0.0, 1e-12, 5.0, 800.0, INF):
            composed = compose_independent_samples([epsilon], [epsilon])
            assert [composed.left, composed.right] == pytest.approx([epsilon, epsilon], abs=1e-15)

    def test_a_node_that_may_be_anything_in_one_sample(self) -> None:
        composed = compose_independent_samples([INF, 1.0], [INF, 1.0])
        assert composed.right == INF
        assert composed.left == pytest.approx(1.0)

    def test_the_floor_of_the_union_is_the_composition_of_the_floors(self) -> None:
        floor = prior_floor(1 / 3)
        composed = compose_independent_samples([floor.left] * 2, [floor.right] * 2)
        union_prior = 1 - 0.75**2
        assert composed.right == pytest.approx(math.log(union_prior / (1 - union_prior)))
        assert composed.left == pytest.approx(-composed.right)


class TestBadInput:
    def test_is_refused_with_name_bound_and_value(self) -> None:
        with pytest.raises(ValueError, match=r"the ε of MP and MDP must be ≥ 0, got -0.5"):
            compose_mdp([1.0, -0.5])
        with pytest.raises(ValueError, match=r"epsilons must be a number or infinite, got epsilons="):
            compose_mdp([math.nan])
        with pytest.raises(ValueError, match=r"epsilon_left must be a number or infinite, got epsilon_left=nan"):
            compose_bmdp_with_mdp(math.nan, 1.0, [1.0])
        with pytest.raises(ValueError, match=r"the ε of MP and MDP must be ≥ 0, got -1.0"):
            compose_bmp_with_conditional_mp(1.0, 1.0, [-1.0])
        with pytest.raises(ValueError, match=r"length ≥ 1, got shapes \(2,\), \(1,\)"):
            compose_independent_samples([1.0, 2.0], [1.0])
        with pytest.raises(ValueError, match=r"length ≥ 1, got shapes \(0,\), \(0,\)"):
            compose_independent_samples([], [])
