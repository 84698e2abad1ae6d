import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_definitions import ExactMechanism, decision_rules, slow_errors, slow_smallest_cost
from strategies import exact_mechanisms, later_release, many_examples, mechanisms, random_channel, seeds, table_kinds

from bmpaudit.privacy import FiniteMechanism, independent_memberships, privacy_levels

ROUNDING = 1e-9

RESPONSE = FiniteMechanism(independent_memberships([0.25]), [[0.75, 0.25], [0.25, 0.75]])


@many_examples
@given(exact_mechanisms())
def test_probabilities_follow_the_definitions(exact: ExactMechanism) -> None:
    mechanism = exact.in_floats()
    seen = exact.seen_outputs()
    assert np.flatnonzero(mechanism.output_prob).tolist() == seen
    for i in range(exact.num_nodes):
        assert mechanism.prior_prob[i] == pytest.approx(float(exact.prior(i, 1)), rel=1e-12)
        odds = exact.prior(i, 1) / exact.prior(i, 0) if exact.prior(i, 0) else math.inf
        assert mechanism.prior_odds[i] == pytest.approx(float(odds), rel=1e-12)
        for w in seen:
            posterior = exact.joint(i, 1, w) / (exact.joint(i, 0, w) + exact.joint(i, 1, w))
            assert mechanism.posterior_prob[i, w] == pytest.approx(float(posterior), rel=1e-12)
            assert np.exp(mechanism.posterior_log_odds[i, w]) == pytest.approx(
                float(posterior / (1 - posterior)) if posterior != 1 else math.inf, rel=1e-9
            )
    for i in exact.uncertain_nodes():
        for membership in (0, 1):
            expected = [float(exact.conditional(i, membership, w)) for w in range(exact.num_outputs)]
            joint = (mechanism.joint_in if membership else mechanism.joint_out)[i]
            assert joint / joint.sum() == pytest.approx(expected, rel=1e-12)


def test_what_cannot_be_is_nan() -> None:
    mechanism = FiniteMechanism([1.0, 0.0], [[1, 0], [0, 1]])
    assert np.isnan(mechanism.posterior_prob[0, 1])
    assert np.isnan(mechanism.posterior_log_odds[0, 1])
    assert math.isnan(mechanism.error_pair(0, [0, 1]).beta)


@many_examples
@given(exact_mechanisms(max_nodes=3))
def test_errors_and_costs_over_all_decision_rules(exact: ExactMechanism) -> None:
    mechanism = exact.in_floats()
    for i in exact.uncertain_nodes():
        for rule in decision_rules(exact.num_outputs):
            alpha, beta = slow_errors(exact, i, rule)
            errors = mechanism.error_pair(i, rule)
            assert [errors.alpha, errors.beta] == pytest.approx([float(alpha), float(beta)], abs=1e-14)
    for i in range(exact.num_nodes):
        for costs in ((1, 1), (Fraction(1, 3), 5), (7, Fraction(1, 2))):
            expected = slow_smallest_cost(exact, i, Fraction(costs[0]), Fraction(costs[1]))
            assert mechanism.smallest_cost(i, float(costs[0]), float(costs[1])) == pytest.approx(
                float(expected), abs=1e-14
            )


def test_a_randomised_rule_mixes_the_errors_of_its_rules() -> None:
    mixed = RESPONSE.error_pair(0, [0.2, 0.9])
    assert mixed.alpha == pytest.approx(0.75 * 0.2 + 0.25 * 0.9)
    assert mixed.beta == pytest.approx(0.25 * 0.8 + 0.75 * 0.1)


def test_error_rates_of_a_decision_that_never_varies_are_exact() -> None:
    """α = 1 - 1e-16 with β = 0 would imply an infinite ε, and α = 1 + 1e-16 would be refused."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        mechanism = FiniteMechanism(rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(4), size=8))
        for says_member in (0, 1):
            errors = mechanism.error_pair(0, np.full(4, says_member))
            assert (errors.alpha, errors.beta) == (says_member, 1 - says_member)


class TestPostProcessing:
    @many_examples
    @given(mechanisms(), seeds, st.integers(1, 4), st.booleans())
    def test_never_weakens_any_definition(
        self, mechanism: FiniteMechanism, seed: int, num_new: int, is_random: bool
    ) -> None:
        """Prop. 2, for functions of the output as printed, and for randomised ones; BMDP and MP likewise."""
        channel = random_channel(seed, mechanism.table.shape[1], num_new, is_random=is_random)
        before, after = privacy_levels(mechanism), privacy_levels(mechanism.post_process(channel))
        assert after.bmp.left <= before.bmp.left + ROUNDING
        assert after.bmp.right <= before.bmp.right + ROUNDING
        assert after.bmdp.left <= before.bmdp.left + ROUNDING
        assert after.bmdp.right <= before.bmdp.right + ROUNDING
        assert after.mp <= before.mp + ROUNDING

    @many_examples
    @given(mechanisms())
    def test_renaming_the_outputs_changes_nothing(self, mechanism: FiniteMechanism) -> None:
        num_outputs = mechanism.table.shape[1]
        renamed = mechanism.post_process(np.eye(num_outputs)[::-1])
        np.testing.assert_allclose(renamed.table, mechanism.table[:, ::-1], rtol=1e-15)

    def test_forgetting_the_output_leaves_the_prior(self) -> None:
        levels = privacy_levels(RESPONSE.post_process([[1.0], [1.0]]))
        assert (levels.mp, levels.mdp) == (0, 0)
        assert levels.bmp.right == pytest.approx(math.log(1 / 3), abs=1e-14)

    def test_is_the_sum_over_outputs(self) -> None:
        channel = [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]]
        processed = RESPONSE.post_process(channel)
        for m in range(2):
            expected = [sum(RESPONSE.table[m, w] * channel[w][z] for w in range(2)) for z in range(3)]
            assert processed.table[m] == pytest.approx(expected, rel=1e-15)


class TestThen:
    @many_examples
    @given(mechanisms(), seeds, table_kinds)
    def test_releases_are_independent_given_the_whole_vector(
        self, first: FiniteMechanism, seed: int, kind: str
    ) -> None:
        second = later_release(seed, first, kind)
        both = first.then(second)
        num_new = second.shape[2]
        for m in range(len(first.law)):
            for w in range(first.table.shape[1]):
                for w_new in range(num_new):
                    expected = first.table[m, w] * second[m, w, w_new]
                    assert both.table[m, w * num_new + w_new] == pytest.approx(expected, rel=1e-12)

    def test_a_release_that_ignores_the_past_may_be_given_as_a_matrix(self) -> None:
        second = np.array([[0.5, 0.5], [0.1, 0.9]])
        adaptive = np.repeat(second[:, None, :], 2, axis=1)
        np.testing.assert_array_equal(RESPONSE.then(second).table, RESPONSE.then(adaptive).table)

    @many_examples
    @given(mechanisms(), seeds, table_kinds)
    def test_the_law_after_one_output_is_what_the_next_release_meets(
        self, first: FiniteMechanism, seed: int, kind: str
    ) -> None:
        """Bayes in one step and in two: Pr(m | w, w') from the pair, and from the law that w leaves."""
        second = later_release(seed, first, kind)
        both = first.then(second)
        num_new = second.shape[2]
        for w in np.flatnonzero(first.output_prob):
            next_step = FiniteMechanism(first.given_output(int(w)), second[:, w, :])
            for w_new in np.flatnonzero(next_step.output_prob):
                in_two_steps = next_step.given_output(int(w_new))
                np.testing.assert_allclose(both.given_output(int(w * num_new + w_new)), in_two_steps, rtol=1e-9)


class TestInAnyOf:
    @pytest.mark.parametrize("num_nodes", [1, 2, 3])
    def test_is_the_union_of_the_samples(self, num_nodes: int) -> None:
        rng = np.random.default_rng(num_nodes)
        size = 2**num_nodes
        parts = [
            FiniteMechanism(rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(width), size=size))
            for width in (2, 3, 2)
        ]
        union = FiniteMechanism.in_any_of(*parts)
        joint = np.zeros((size, 2, 3, 2))
        for m_0 in range(size):
            for m_1 in range(size):
                for m_2 in range(size):
                    joint[m_0 | m_1 | m_2] += np.einsum(
                        "i,j,k->ijk", parts[0].joint[m_0], parts[1].joint[m_1], parts[2].joint[m_2]
                    )
        np.testing.assert_allclose(union.joint, joint.reshape(size, -1), atol=1e-15)

    def test_vectors_that_no_samples_give_have_probability_0_and_some_likelihood(self) -> None:
        always_in = FiniteMechanism([0.0, 1.0], [[0.5, 0.5], [0.5, 0.5]])
        union = FiniteMechanism.in_any_of(always_in, RESPONSE)
        assert union.law.tolist() == [0, 1]
        assert union.table[0] == pytest.approx(union.output_prob)

    def test_of_one_is_itself(self) -> None:
        assert FiniteMechanism.in_any_of(RESPONSE) is RESPONSE


class TestBadInput:
    @pytest.mark.parametrize(
        ("law", "table", "message"),
        [
            (
                [0.5, 0.25, 0.25],
                [[1.0]] * 3,
                r"membership_prob must have 2\^N entries for N ≥ 1 nodes, got shape \(3,\)",
            ),
            ([0.5, 0.4], [[1.0]] * 2, r"membership_prob must sum to 1, got 0.9"),
            ([1.5, -0.5], [[1.0]] * 2, r"membership_prob must be in \[0, 1\], got membership_prob=1.5"),
            ([0.5, 0.5], [[1.0]] * 3, r"likelihood must have shape \(2, num_outputs\), got \(3, 1\)"),
            ([0.5, 0.5], [[], []], r"likelihood must have shape \(2, num_outputs\), got \(2, 0\)"),
            ([0.5, 0.5], [[1.0, 0.0], [0.5, 0.4]], r"every row of likelihood must sum to 1, row 1 sums to 0.9"),
            ([0.5, 0.5], [[1.0, 0.0], [-0.5, 1.5]], r"likelihood must be in \[0, 1\], got likelihood=-0.5"),
        ],
    )
    def test_tables(self, law: list[float], table: list[list[float]], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            FiniteMechanism(law, table)

    def test_channels_and_later_releases(self) -> None:
        with pytest.raises(ValueError, match=r"channel must be in \[0, 1\], got channel=2.0"):
            RESPONSE.post_process([[2.0, -1.0], [1.0, 0.0]])
        with pytest.raises(ValueError, match=r"every row of likelihood must sum to 1, row 0 sums to 0.25"):
            RESPONSE.post_process([[0.0, 0.0], [1.0, 0.0]])
        with pytest.raises(ValueError, match=r"every row of likelihood must sum to 1"):
            RESPONSE.then([[0.5, 0.4], [0.5, 0.5]])

    def test_decisions(self) -> None:
        with pytest.raises(ValueError, match=r"decision must be in \[0, 1\], got decision=2.0"):
            RESPONSE.error_pair(0, [0.0, 2.0])

    def test_outputs_that_never_come(self) -> None:
        with pytest.raises(ValueError, match=r"output must have positive probability, got output=1 of probability 0"):
            FiniteMechanism([0.5, 0.5], [[1, 0], [1, 0]]).given_output(1)

    def test_unions_of_different_graphs(self) -> None:
        two_nodes = FiniteMechanism(independent_memberships([0.5, 0.5]), np.full((4, 2), 0.5))
        with pytest.raises(ValueError, match=r"same number of nodes, got \[1, 2\] nodes"):
            FiniteMechanism.in_any_of(RESPONSE, two_nodes)
        with pytest.raises(ValueError, match=r"one or more .* got \[\] nodes"):
            FiniteMechanism.in_any_of()
