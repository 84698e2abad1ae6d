import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from slow_definitions import ExactMechanism, decision_rules, flipped, is_in, log_of_ratio
from strategies import TABLE_KINDS, exact_mechanisms, many_examples, mechanisms, random_table, seeds

from bmpaudit.privacy import (
    FiniteMechanism,
    attained_cost_bound,
    bmp_to_positive_pmp,
    expected_cost_bound,
    fixed_size_memberships,
    independent_memberships,
    privacy_levels,
)
from bmpaudit.privacy.related import (
    bayesian_dp_delta,
    bayesian_dp_epsilon,
    differential_identifiability,
    negative_pmp_factor,
    pac_membership_success,
    positive_pmp_factor,
)

INF = math.inf
ROUNDING = 1e-9

EQUAL_PRIOR_LAWS = ("fixed_size", "all_or_none")


class TestPosteriorMembershipPrivacy:
    @many_examples
    @given(exact_mechanisms())
    def test_factors_against_the_definition(self, exact: ExactMechanism) -> None:
        """Li et al. 2013: Pr(in | w) ≤ c·Pr(in) and Pr(out | w) ≥ Pr(out)/c; negative PMP exchanges in and out."""
        for membership, factor in ((1, positive_pmp_factor), (0, negative_pmp_factor)):
            needed: list[Fraction | float] = [Fraction(1)]
            for i in range(exact.num_nodes):
                for w in exact.seen_outputs():
                    total = exact.joint(i, 0, w) + exact.joint(i, 1, w)
                    if exact.prior(i, membership):
                        needed.append(exact.joint(i, membership, w) / total / exact.prior(i, membership))
                    if exact.joint(i, 1 - membership, w):
                        needed.append(exact.prior(i, 1 - membership) * total / exact.joint(i, 1 - membership, w))
                    elif exact.prior(i, 1 - membership):
                        needed.append(INF)
            assert factor(exact.in_floats()) == pytest.approx(float(max(needed)), rel=1e-9)

    @many_examples
    @given(mechanisms())
    def test_bmp_right_implies_positive_pmp(self, mechanism: FiniteMechanism) -> None:
        guaranteed = bmp_to_positive_pmp(privacy_levels(mechanism).bmp.right, mechanism.prior_odds)
        assert positive_pmp_factor(mechanism) <= guaranteed.max() * (1 + ROUNDING)

    @many_examples
    @given(mechanisms(law_kinds=EQUAL_PRIOR_LAWS))
    def test_one_to_one_for_equal_priors(self, mechanism: FiniteMechanism) -> None:
        """BMP-R is positive PMP, and by exchange of in and out BMP-L is negative PMP."""
        bmp, odds = privacy_levels(mechanism).bmp, float(mechanism.prior_odds[0])
        inverse_odds = 1 / odds if odds > 0 else INF
        assert positive_pmp_factor(mechanism) == pytest.approx(float(bmp_to_positive_pmp(bmp.right, odds)), rel=1e-9)
        assert negative_pmp_factor(mechanism) == pytest.approx(
            float(bmp_to_positive_pmp(bmp.left, inverse_odds)), rel=1e-9
        )

    def test_not_one_to_one_for_unequal_priors(self) -> None:
        """A leak about the frequent node, or the same about the rare one: equal ε_R, different PMP."""
        law = independent_memberships([0.5, 0.1])
        posterior_odds = 9.0
        about_frequent = self.leak_about(0, law, posterior_odds / 1.0)
        about_rare = self.leak_about(1, law, posterior_odds * 9.0)
        assert privacy_levels(about_frequent).bmp.right == pytest.approx(math.log(posterior_odds))
        assert privacy_levels(about_rare).bmp.right == pytest.approx(math.log(posterior_odds))
        assert positive_pmp_factor(about_frequent) == pytest.approx(5)
        assert positive_pmp_factor(about_rare) == pytest.approx(9)

    @staticmethod
    def leak_about(node: int, law: np.ndarray, likelihood_ratio: float) -> FiniteMechanism:
        rare = [0.01 * (likelihood_ratio if is_in(m, node) else 1) for m in range(4)]
        return FiniteMechanism(law, [[1 - p, p] for p in rare])


class TestDifferentialIdentifiability:
    @many_examples
    @given(exact_mechanisms(max_nodes=3))
    def test_against_the_definition(self, exact: ExactMechanism) -> None:
        largest = Fraction(0)
        for known in exact.vectors:
            last = [i for i in range(exact.num_nodes) if not is_in(known, i)]
            for w in range(exact.num_outputs):
                weights = [exact.law[flipped(known, i)] * exact.table[flipped(known, i)][w] for i in last]
                if sum(weights) > 0:
                    largest = max(largest, max(weights) / sum(weights))
        assert differential_identifiability(exact.in_floats()) == pytest.approx(float(largest), rel=1e-12)

    @pytest.mark.parametrize(("num_nodes", "size"), [(2, 1), (4, 1), (4, 2), (5, 3)])
    def test_is_not_bmdp_right(self, num_nodes: int, size: int) -> None:
        """The paper says they correspond. For a release of nothing the one is its best value, the other its worst."""
        says_nothing = FiniteMechanism(fixed_size_memberships(num_nodes, size), np.ones((2**num_nodes, 1)))
        num_candidates = num_nodes - size + 1
        assert differential_identifiability(says_nothing) == pytest.approx(1 / num_candidates)
        assert privacy_levels(says_nothing).bmdp.right == INF

    @many_examples
    @given(seeds, st.integers(2, 4), st.sampled_from(TABLE_KINDS))
    def test_bmdp_right_is_infinite_for_every_mechanism_on_fixed_size_samples(
        self, seed: int, num_nodes: int, kind: str
    ) -> None:
        rng = np.random.default_rng(seed)
        table = np.array(random_table(rng, num_nodes, 3, kind), dtype=float)
        for size in range(1, num_nodes):
            mechanism = FiniteMechanism(fixed_size_memberships(num_nodes, size), table)
            assert privacy_levels(mechanism).bmdp.right == INF
            assert 1 / (num_nodes - size + 1) - ROUNDING <= differential_identifiability(mechanism) <= 1

    @many_examples
    @given(exact_mechanisms(max_nodes=3))
    def test_is_bmp_right_given_all_members_but_one(self, exact: ExactMechanism) -> None:
        """What does correspond: the largest posterior 1/(1 + e^{-ε_R}) of BMP under the law that is left."""
        mechanism = exact.in_floats()
        largest = 0.0
        for known in exact.vectors:
            is_candidate = np.array(
                [m != known and m & known == known and (m ^ known).bit_count() == 1 for m in exact.vectors]
            )
            law = np.where(is_candidate, mechanism.law, 0)
            if law.sum() > 0:
                rest = FiniteMechanism(law / law.sum(), mechanism.table)
                last = [i for i in range(exact.num_nodes) if not is_in(known, i)]
                odds = rest.posterior_log_odds[last][:, rest.output_prob > 0]
                largest = max(largest, float(expit(odds.max())))
        assert differential_identifiability(mechanism) == pytest.approx(largest, rel=1e-9)


class TestBayesianDpOfYang:
    @many_examples
    @given(exact_mechanisms(max_nodes=3))
    def test_against_the_definition(self, exact: ExactMechanism) -> None:
        """Every way to know some of the others: for each node None (unknown), 0 or 1."""
        largest = 0.0
        for i in range(exact.num_nodes):
            for known in product((None, 0, 1), repeat=exact.num_nodes):
                if known[i] is not None:
                    continue
                fits = [
                    m for m in exact.vectors if all(x is None or is_in(m, node) == x for node, x in enumerate(known))
                ]
                prior = [sum(exact.law[m] for m in fits if is_in(m, i) == value) for value in (0, 1)]
                if 0 in prior:
                    continue
                for w in range(exact.num_outputs):
                    out, member = (
                        sum((exact.law[m] * exact.table[m][w] for m in fits if is_in(m, i) == value), Fraction(0))
                        / prior[value]
                        for value in (0, 1)
                    )
                    ratio = log_of_ratio(member, out)
                    largest = max(largest, abs(ratio) if ratio is not None else 0.0)
        assert bayesian_dp_epsilon(exact.in_floats()) == pytest.approx(largest, abs=1e-10)

    @many_examples
    @given(mechanisms(max_nodes=3))
    def test_is_at_least_mp(self, mechanism: FiniteMechanism) -> None:
        """The adversary who knows no membership gives MP; the definition takes the worst adversary."""
        assert bayesian_dp_epsilon(mechanism) >= privacy_levels(mechanism).mp - ROUNDING

    def test_is_mp_for_one_node_and_can_be_larger_for_two(self) -> None:
        response = FiniteMechanism([0.3, 0.7], [[0.75, 0.25], [0.25, 0.75]])
        assert bayesian_dp_epsilon(response) == pytest.approx(privacy_levels(response).mp)
        parity = FiniteMechanism(independent_memberships([0.5, 0.5]), [[1, 0], [0, 1], [0, 1], [1, 0]])
        assert privacy_levels(parity).mp == 0
        assert bayesian_dp_epsilon(parity) == INF

    @many_examples
    @given(mechanisms(max_nodes=3, law_kinds=("independent",)))
    def test_is_mdp_for_independent_memberships(self, mechanism: FiniteMechanism) -> None:
        assert bayesian_dp_epsilon(mechanism) == pytest.approx(privacy_levels(mechanism).mdp, abs=ROUNDING)

    @many_examples
    @given(mechanisms(max_nodes=3, law_kinds=("correlated",)))
    def test_is_at_least_mdp_if_every_vector_is_possible(self, mechanism: FiniteMechanism) -> None:
        assert bayesian_dp_epsilon(mechanism) >= privacy_levels(mechanism).mdp - ROUNDING


class TestBayesianDpOfTriastcynAndFaltings:
    @many_examples
    @given(exact_mechanisms(max_nodes=3), st.floats(0, 4))
    def test_against_the_definition(self, exact: ExactMechanism, epsilon: float) -> None:
        worst = Fraction(0)
        for i in range(exact.num_nodes):
            for m in exact.vectors:
                total = exact.law[m] + exact.law[flipped(m, i)]
                if total == 0:
                    continue
                chance = Fraction(0)
                for value in (m, flipped(m, i)):
                    for w in range(exact.num_outputs):
                        loss = log_of_ratio(exact.table[value][w], exact.table[flipped(value, i)][w])
                        if loss is not None and loss > epsilon:
                            chance += exact.law[value] / total * exact.table[value][w]
                worst = max(worst, chance)
        assert bayesian_dp_delta(exact.in_floats(), epsilon) == pytest.approx(float(worst), abs=1e-12)

    @many_examples
    @given(mechanisms())
    def test_mdp_gives_delta_0(self, mechanism: FiniteMechanism) -> None:
        assert bayesian_dp_delta(mechanism, privacy_levels(mechanism).mdp + ROUNDING) == 0

    @many_examples
    @given(mechanisms(law_kinds=("correlated",)))
    def test_delta_is_positive_below_mdp_if_every_vector_is_possible(self, mechanism: FiniteMechanism) -> None:
        mdp = privacy_levels(mechanism).mdp
        if mdp > ROUNDING:
            assert bayesian_dp_delta(mechanism, 50.0 if mdp == INF else mdp - ROUNDING) > 0

    def test_does_not_bound_bmp(self) -> None:
        """δ = 0.002 at ε = 0.1, and one output proves membership."""
        rare_leak = FiniteMechanism([0.5, 0.5], [[1.0, 0.0], [0.998, 0.002]])
        assert bayesian_dp_delta(rare_leak, 0.1) == pytest.approx(0.001)
        assert privacy_levels(rare_leak).bmp.right == INF


class TestPacMembershipPrivacy:
    @many_examples
    @given(exact_mechanisms(max_nodes=3))
    def test_is_the_success_of_the_best_rule(self, exact: ExactMechanism) -> None:
        best = max(
            sum((exact.joint(i, rule[w], w) for w in range(exact.num_outputs)), Fraction(0))
            for i in range(exact.num_nodes)
            for rule in decision_rules(exact.num_outputs)
        )
        assert pac_membership_success(exact.in_floats()) == pytest.approx(float(best), abs=1e-12)

    @many_examples
    @given(mechanisms())
    def test_theorem_7_bounds_it(self, mechanism: FiniteMechanism) -> None:
        bmp = privacy_levels(mechanism).bmp
        success = pac_membership_success(mechanism)
        assert success <= 1 - expected_cost_bound(mechanism.prior_odds, bmp.left, bmp.right).min() + ROUNDING
        wider = (bmp.left + ROUNDING, bmp.right + ROUNDING)
        assert success <= 1 - attained_cost_bound(mechanism.prior_odds, *wider).min() + ROUNDING

    def test_a_lopsided_prior_hides_a_leak_that_bmp_shows(self) -> None:
        """Always saying "non-member" of a node with prior 0.01 is right in 99 %, and hardly worse than knowing all."""
        law = independent_memberships([0.01])
        says_nothing, tells_all = FiniteMechanism(law, [[1.0], [1.0]]), FiniteMechanism(law, [[1, 0], [0, 1]])
        assert pac_membership_success(says_nothing) == pytest.approx(0.99)
        assert pac_membership_success(tells_all) == 1
        assert privacy_levels(says_nothing).bmp.right == pytest.approx(-math.log(99))
        assert privacy_levels(tells_all).bmp.right == INF
