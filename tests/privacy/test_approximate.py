"""The definitions with δ: against loops over sets of outputs, and every conversion by enumeration."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_definitions import ExactMechanism, decision_rules, flipped
from strategies import exact_mechanisms, many_examples, mechanisms, random_channel, seeds

from bmpaudit.privacy import (
    ApproximateMP,
    FiniteMechanism,
    Region,
    approximate_bmp_to_mp,
    approximate_mdp_to_mp,
    approximate_mp_to_bmp,
    bmp_delta,
    fixed_size_memberships,
    hockey_stick,
    independent_memberships,
    mdp_delta,
    membership_distance,
    mp_delta,
    non_empty_mdp_to_mp,
    privacy_levels,
)
from bmpaudit.privacy.membership_law import membership_table

INF = math.inf
ROUNDING = 1e-9
EPSILONS = (0.0, 0.3, 1.0, 3.0)
epsilons = st.sampled_from(EPSILONS)
signed_epsilons = st.sampled_from((-2.0, -0.5, *EPSILONS))


def slow_excess(first: list[Fraction], second: list[Fraction], epsilon: float) -> float:
    """The largest P(O) - e^ε·Q(O) over all sets of outputs."""
    factor = math.exp(epsilon)
    return max(
        float(sum((p for p, chosen in zip(first, rule, strict=True) if chosen), Fraction(0)))
        - factor * float(sum((q for q, chosen in zip(second, rule, strict=True) if chosen), Fraction(0)))
        for rule in decision_rules(len(first))
    )


def pairs_of_mp(exact: ExactMechanism) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    for i in exact.uncertain_nodes():
        given = [[exact.conditional(i, membership, w) for w in range(exact.num_outputs)] for membership in (0, 1)]
        yield given[0], given[1]
        yield given[1], given[0]


class TestDefinitions:
    @many_examples
    @given(exact_mechanisms(max_nodes=3), epsilons, signed_epsilons, signed_epsilons)
    def test_against_all_sets_of_outputs(
        self, exact: ExactMechanism, epsilon: float, left: float, right: float
    ) -> None:
        mechanism = exact.in_floats()
        mp = max((slow_excess(p, q, epsilon) for p, q in pairs_of_mp(exact)), default=0.0)
        mdp = max(
            slow_excess(list(exact.table[m]), list(exact.table[flipped(m, i)]), epsilon)
            for i in range(exact.num_nodes)
            for m in exact.vectors
        )
        joints = [
            [[exact.joint(i, membership, w) for w in range(exact.num_outputs)] for membership in (0, 1)]
            for i in range(exact.num_nodes)
        ]
        bmp = max(max(slow_excess(one, zero, right), slow_excess(zero, one, left)) for zero, one in joints)
        assert mp_delta(mechanism, epsilon) == pytest.approx(mp, abs=1e-12)
        assert mdp_delta(mechanism, epsilon) == pytest.approx(mdp, abs=1e-12)
        assert bmp_delta(mechanism, left, right) == pytest.approx(bmp, abs=1e-12)

    @many_examples
    @given(mechanisms())
    def test_delta_is_0_exactly_from_the_pure_level_on(self, mechanism: FiniteMechanism) -> None:
        levels = privacy_levels(mechanism)
        if 0 <= levels.mp < INF:
            assert mp_delta(mechanism, levels.mp) <= 1e-12
            if levels.mp > 0.1:
                assert mp_delta(mechanism, levels.mp - 0.1) > 1e-12
        if math.isfinite(levels.bmp.left) and math.isfinite(levels.bmp.right):
            assert bmp_delta(mechanism, levels.bmp.left, levels.bmp.right) <= 1e-12
            assert bmp_delta(mechanism, INF, levels.bmp.right - 0.1) > 0
            assert bmp_delta(mechanism, levels.bmp.left - 0.1, INF) > 0

    def test_at_the_ends(self) -> None:
        tells_all = FiniteMechanism([0.75, 0.25], [[1, 0], [0, 1]])
        assert mp_delta(tells_all, 50.0) == mdp_delta(tells_all, 50.0) == 1
        assert mp_delta(tells_all, INF) == mdp_delta(tells_all, INF) == 0
        assert bmp_delta(tells_all, INF, 50.0) == 0.25
        assert bmp_delta(tells_all, 50.0, INF) == 0.75
        assert mp_delta(FiniteMechanism([1.0, 0.0], [[1, 0], [0, 1]]), 0.0) == 0
        assert float(hockey_stick([0.5, 0.5], [0.0, 1.0], 2000.0)) == 0.5

    @many_examples
    @given(mechanisms(max_nodes=3), signed_epsilons, st.sampled_from((0.1, 1.0, 3.0)))
    def test_delta_bounds_the_chance_of_a_confident_posterior(
        self, mechanism: FiniteMechanism, right: float, excess: float
    ) -> None:
        """A member's posterior odds exceed e^{ε_R + t} with probability at most δ/(1 - e^{-t})."""
        delta = bmp_delta(mechanism, INF, right)
        for i, odds in enumerate(mechanism.posterior_log_odds):
            member = mechanism.joint[membership_table(mechanism.num_nodes)[:, i]].sum(axis=0)
            assert (
                member[np.nan_to_num(odds, nan=-INF) > right + excess].sum() <= delta / -math.expm1(-excess) + ROUNDING
            )


class TestPostProcessing:
    @many_examples
    @given(mechanisms(max_nodes=3), seeds, st.booleans(), epsilons, signed_epsilons)
    def test_never_raises_a_delta(
        self, mechanism: FiniteMechanism, seed: int, is_random: bool, epsilon: float, right: float
    ) -> None:
        after = mechanism.post_process(random_channel(seed, mechanism.table.shape[1], 3, is_random=is_random))
        assert mdp_delta(after, epsilon) <= mdp_delta(mechanism, epsilon) + ROUNDING
        assert mp_delta(after, epsilon) <= mp_delta(mechanism, epsilon) + ROUNDING
        assert bmp_delta(after, epsilon, right) <= bmp_delta(mechanism, epsilon, right) + ROUNDING


class TestMdpToMp:
    @many_examples
    @given(mechanisms(law_kinds=("independent",)), epsilons)
    def test_is_unchanged_for_independent_memberships(self, mechanism: FiniteMechanism, epsilon: float) -> None:
        assert mp_delta(mechanism, epsilon) <= mdp_delta(mechanism, epsilon) + ROUNDING

    @many_examples
    @given(mechanisms(max_nodes=3), epsilons)
    def test_holds_with_the_distance_of_the_law(self, mechanism: FiniteMechanism, epsilon: float) -> None:
        implied = approximate_mdp_to_mp(
            epsilon, min(1.0, mdp_delta(mechanism, epsilon)), membership_distance(mechanism.law)
        )
        assert mp_delta(mechanism, implied.epsilon) <= implied.delta + ROUNDING

    @pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
    def test_is_attained_for_fixed_size_samples_where_twice_the_delta_would_fail(self, epsilon: float) -> None:
        """One of two nodes is drawn; an output comes with probability 0, δ and δ·(1 + e^ε) along the way."""
        delta = 0.01
        rare = np.array([delta, delta * (1 + math.exp(epsilon)), 0.0, delta])
        mechanism = FiniteMechanism(fixed_size_memberships(2, 1), np.stack([1 - rare, rare], axis=1))
        assert mdp_delta(mechanism, epsilon) == pytest.approx(delta, rel=1e-12)
        implied = approximate_mdp_to_mp(epsilon, delta, distance=2)
        assert implied.epsilon == 2 * epsilon
        assert mp_delta(mechanism, 2 * epsilon) == pytest.approx(implied.delta, rel=1e-12)
        assert (implied.delta > 2 * delta * (1 + 1e-9)) == (epsilon > 0)

    @pytest.mark.parametrize("num_nodes", [2, 3, 4])
    def test_is_attained_if_all_nodes_go_together(self, num_nodes: int) -> None:
        law = np.zeros(2**num_nodes)
        law[[0, -1]] = 0.5
        delta, epsilon = 1e-3, 0.7
        rare = delta * np.expm1(epsilon * membership_table(num_nodes).sum(axis=1)) / math.expm1(epsilon)
        mechanism = FiniteMechanism(law, np.stack([1 - rare, rare], axis=1))
        assert mdp_delta(mechanism, epsilon) == pytest.approx(delta, rel=1e-9)
        implied = approximate_mdp_to_mp(epsilon, delta, membership_distance(law))
        assert mp_delta(mechanism, implied.epsilon) == pytest.approx(implied.delta, rel=1e-9)

    def test_without_delta_it_is_the_pure_rule_and_delta_never_exceeds_1(self) -> None:
        assert approximate_mdp_to_mp(2.0, 0.0, 3).delta == 0
        assert approximate_mdp_to_mp(2.0, 0.0, 3).epsilon == 6
        assert approximate_mdp_to_mp(500.0, 1e-6, 10).delta == 1
        assert approximate_mdp_to_mp(0.0, 1e-6, 10).delta == pytest.approx(1e-5)


class TestMpAndBmp:
    @many_examples
    @given(mechanisms(), epsilons)
    def test_mp_implies_bmp(self, mechanism: FiniteMechanism, epsilon: float) -> None:
        implied = approximate_mp_to_bmp(epsilon, min(1.0, mp_delta(mechanism, epsilon)), mechanism.prior_odds)
        assert bmp_delta(mechanism, implied.left, implied.right) <= implied.delta + ROUNDING

    @many_examples
    @given(mechanisms(), signed_epsilons, signed_epsilons)
    def test_bmp_implies_mp(self, mechanism: FiniteMechanism, left: float, right: float) -> None:
        delta = min(1.0, bmp_delta(mechanism, left, right))
        implied = approximate_bmp_to_mp(left, right, delta, mechanism.prior_odds)
        if implied.epsilon >= 0:  # else there is no such mechanism, or its δ is not small
            assert mp_delta(mechanism, implied.epsilon) <= implied.delta + ROUNDING

    @pytest.mark.parametrize("prior", [0.5, 0.1, 0.8])
    def test_both_are_attained_by_one_node(self, prior: float) -> None:
        mechanism = FiniteMechanism([1 - prior, prior], [[0.8, 0.2, 0.0], [0.2, 0.7, 0.1]])
        odds = prior / (1 - prior)
        delta = mp_delta(mechanism, 0.5)
        there = approximate_mp_to_bmp(0.5, delta, odds)
        sides = [bmp_delta(mechanism, there.left, INF), bmp_delta(mechanism, INF, there.right)]
        given_each_way = [hockey_stick(p, q, 0.5) for p, q in (mechanism.table, mechanism.table[::-1])]
        assert sides == pytest.approx([given_each_way[0] * (1 - prior), given_each_way[1] * prior])
        back = approximate_bmp_to_mp(INF, there.right, sides[1], odds)
        assert sides[1] / prior == pytest.approx(given_each_way[1])
        assert back.delta >= given_each_way[1] - ROUNDING

    def test_a_delta_of_bmp_may_hide_all_of_a_rare_node(self) -> None:
        """Told outright, a node that is in once in a hundred samples has δ = 0.01 in BMP and 1 in MP."""
        tells_all = FiniteMechanism([0.99, 0.01], [[1, 0], [0, 1]])
        assert bmp_delta(tells_all, INF, 20.0) == pytest.approx(0.01)
        assert mp_delta(tells_all, 20.0) == 1
        assert approximate_bmp_to_mp(20.0, 20.0, 0.01, 0.01 / 0.99).delta == pytest.approx(1)

    def test_certain_nodes(self) -> None:
        implied = approximate_mp_to_bmp(1.0, 1e-3, [0.0, 1.0])
        assert (implied.left, implied.right, implied.delta) == (INF, 1.0, 1e-3)
        assert approximate_bmp_to_mp(1.0, 1.0, 1e-3, [0.0, 1.0]).delta == 1


class TestOneGuessAModel:
    """What an adversary who names one node of their choice can do: the basis of what an audit proves."""

    @many_examples
    @given(mechanisms(max_nodes=3), seeds, signed_epsilons)
    def test_delta_counts_once_for_each_node(self, mechanism: FiniteMechanism, seed: int, right: float) -> None:
        named = np.random.default_rng(seed).integers(0, mechanism.num_nodes, size=mechanism.table.shape[1])
        is_in = membership_table(mechanism.num_nodes)[:, named]
        hits, misses = float((mechanism.joint * is_in).sum()), float((mechanism.joint * ~is_in).sum())
        delta = bmp_delta(mechanism, INF, right)
        assert hits <= math.exp(right) * misses + mechanism.num_nodes * delta + ROUNDING

    def test_is_attained_by_telling_all_of_one_node_drawn_at_random(self) -> None:
        """So one guess a model proves nothing against a δ > 0 of more than 1/N."""
        num_nodes, prior = 3, 0.5
        table = membership_table(num_nodes)
        likelihood = np.zeros((2**num_nodes, 2 * num_nodes))
        for i in range(num_nodes):
            likelihood[np.arange(2**num_nodes), 2 * i + table[:, i]] = 1 / num_nodes
        mechanism = FiniteMechanism(independent_memberships([prior] * num_nodes), likelihood)
        assert bmp_delta(mechanism, INF, 10.0) == pytest.approx(prior / num_nodes)
        # Whenever an output says "in", the node it speaks of is named: never wrong.
        assert mechanism.joint[:, 1::2].sum() == pytest.approx(num_nodes * bmp_delta(mechanism, INF, 10.0))


class TestBadInput:
    def test_is_refused_with_name_bound_and_value(self) -> None:
        mechanism = FiniteMechanism([0.5, 0.5], [[1, 0], [0, 1]])
        with pytest.raises(ValueError, match=r"the ε of MP and MDP must be ≥ 0, got -1.0"):
            mp_delta(mechanism, -1.0)
        with pytest.raises(ValueError, match=r"epsilon must be a number or infinite, got epsilon=nan"):
            mdp_delta(mechanism, math.nan)
        with pytest.raises(ValueError, match=r"delta must be in \[0, 1\], got delta=2.0"):
            approximate_mdp_to_mp(1.0, 2.0)
        with pytest.raises(ValueError, match=r"epsilon must be ≥ 0 and distance ≥ 1, got epsilon=1.0, distance=0"):
            approximate_mdp_to_mp(1.0, 0.1, 0)


class TestErrorRates:
    @pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0, INF])
    def test_without_delta_they_are_the_region_of_any_prior(self, epsilon: float) -> None:
        corners = ApproximateMP(epsilon, 0.0).corners
        for odds in (0.2, 1.0):
            region = Region(odds, epsilon - math.log(odds), epsilon + math.log(odds))
            for corner in region.vertices:
                assert np.abs(corners - corner).max(axis=1).min() < 1e-12

    @many_examples
    @given(mechanisms(max_nodes=2), epsilons)
    def test_every_test_of_every_node_lies_within(self, mechanism: FiniteMechanism, epsilon: float) -> None:
        delta = min(1.0, mp_delta(mechanism, epsilon))
        corners = ApproximateMP(epsilon, delta).corners
        edges = np.roll(corners, -1, axis=0) - corners
        for node in range(mechanism.num_nodes):
            for rule in decision_rules(mechanism.table.shape[1]):
                errors = mechanism.error_pair(node, [float(chosen) for chosen in rule])
                if math.isnan(errors.alpha) or math.isnan(errors.beta):
                    continue
                to_point = np.array([errors.alpha, errors.beta]) - corners
                # Counter-clockwise around it: no edge has the point on its right.
                assert (edges[:, 0] * to_point[:, 1] - edges[:, 1] * to_point[:, 0] >= -ROUNDING).all()


class TestAnAuditWithDelta:
    @many_examples
    @given(mechanisms(max_nodes=3), signed_epsilons)
    def test_what_guesses_gain_from_a_delta(self, mechanism: FiniteMechanism, epsilon: float) -> None:
        """Σ_w Pr(w)·max(π(w) - κ, 0) ≤ N·δ/(1 + e^ε) for the likeliest member after each output."""
        likeliest = np.nan_to_num(mechanism.posterior_prob, nan=0.0).max(axis=0)
        limit = 1 / (1 + math.exp(-epsilon))
        gain = float((mechanism.output_prob * np.maximum(likeliest - limit, 0)).sum())
        delta = bmp_delta(mechanism, INF, epsilon)
        assert gain <= mechanism.num_nodes * delta / (1 + math.exp(epsilon)) + ROUNDING


class TestSamplesWithoutNodes:
    """Memberships are independent, and a sample without nodes gives no output."""

    @staticmethod
    def excess(mechanism: FiniteMechanism, epsilon: float) -> tuple[float, float, float]:
        """The δ at ε of the output with its existence, either way round, and of MP given that there is one."""
        law = np.where(np.arange(len(mechanism.law)) == 0, 0.0, mechanism.law)
        seen = FiniteMechanism(np.minimum(law / law.sum(), 1.0), mechanism.table)
        member = seen.joint_in * law.sum() / mechanism.prior_prob[:, None]  # Pr(O, there is an output | M_i = 1)
        other = seen.joint_out * law.sum() / (1 - mechanism.prior_prob)[:, None]
        up, down = hockey_stick(member, other, epsilon), hockey_stick(other, member, epsilon)
        return float(up.max()), float(down.max()), mp_delta(seen, epsilon)

    @many_examples
    @given(mechanisms(law_kinds=("independent",), table_kinds=("plain", "nearly_deterministic")), epsilons)
    def test_no_mechanism_exceeds_it(self, mechanism: FiniteMechanism, epsilon: float) -> None:
        delta = mdp_delta(mechanism, epsilon)
        found = non_empty_mdp_to_mp(epsilon, delta, mechanism.prior_odds)
        if mechanism.num_nodes > 1:  # or the existence of an output tells all
            up, _, given_one = self.excess(mechanism, found.epsilon)
            assert max(up, given_one) <= found.delta + ROUNDING
        assert self.excess(mechanism, epsilon)[1] <= delta + ROUNDING

    @pytest.mark.parametrize("prob", [0.1, 0.5, 0.8])
    @pytest.mark.parametrize("num_nodes", [2, 3, 5])
    @pytest.mark.parametrize("epsilon", [0.0, 0.05, 1.0, 4.0])
    def test_a_mechanism_attains_it(self, prob: float, num_nodes: int, epsilon: float) -> None:
        """One output, likelier by e^ε with the node and less likely by e^-ε with each other node."""
        table = membership_table(num_nodes)
        rare = 1e-6 * np.exp(epsilon * (table[:, 0] * 1.0 - table[:, 1:].sum(axis=1) - num_nodes))
        law = independent_memberships([prob] * num_nodes)
        mechanism = FiniteMechanism(law, np.stack([rare, 1 - rare], axis=1))
        assert mdp_delta(mechanism, epsilon) < 1e-15
        found = non_empty_mdp_to_mp(epsilon, 0.0, mechanism.prior_odds)
        assert found.delta == 0
        joint = mechanism.joint[1:, 0]
        member, other = joint[table[1:, 0]].sum(), joint[~table[1:, 0]].sum()
        assert np.log(member / other) - np.log(prob / (1 - prob)) == pytest.approx(found.epsilon, abs=1e-9)
        # What the existence of an output alone gives away, which is all there is at ε = 0.
        existence = -np.log1p(-((1 - prob) ** (num_nodes - 1)))
        assert found.epsilon >= epsilon + existence - ROUNDING
        if epsilon == 0:
            assert found.epsilon == pytest.approx(existence)

    def test_extremes(self) -> None:
        """A node that is always in leaves no sample empty; of a single node the existence of a model tells all."""
        assert non_empty_mdp_to_mp(1.0, 1e-6, [0.1, INF, 0.1]) == ApproximateMP(1.0, 1e-6)
        assert non_empty_mdp_to_mp(1.0, 0.0, [0.5]).epsilon == INF
        assert non_empty_mdp_to_mp(1.0, 1e-6, [1 / 3] * 1_000).epsilon == pytest.approx(1.0, abs=1e-12)
        assert non_empty_mdp_to_mp(1e9, 0.0, [1.0] * 3).epsilon == pytest.approx(2e9 - np.log(0.75))
