import math

import mpmath  # type: ignore[import-untyped]  # mpmath has no stubs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_definitions import decision_rules
from strategies import many_examples, mechanisms

from bmpaudit.privacy import (
    FiniteMechanism,
    Region,
    attained_cost_bound,
    bayes_decision,
    expected_cost_bound,
    independent_memberships,
    privacy_levels,
)

INF = math.inf
ROUNDING = 1e-12

costs = st.sampled_from([0.01, 0.5, 1.0, 3.0, 200.0])
margins = st.floats(0, 6)
log_odds_values = st.floats(-5, 5)


def theorem_7_as_printed(gamma: float, left: float, right: float, c0: float, c1: float) -> float:
    """The first display of Theorem 7."""
    return max(
        min(c0 / (1 + math.exp(right)), c1 / (1 + math.exp(left))),
        (1 - gamma) * min(c1 / math.exp(left), c0),
        gamma * min(c0 / math.exp(right), c1),
    )


def wrong_decision_bound_as_printed(gamma: float, left: float, right: float) -> float:
    """The second display of Theorem 7, without the inner minima."""
    return max(1 / (1 + math.exp(max(left, right))), (1 - gamma) / math.exp(left), gamma / math.exp(right))


def attained_in_high_precision(odds: float, left: float, right: float, c0: float, c1: float) -> float:
    """λh(p_hi) + (1-λ)h(p_lo), from the formulas as they stand."""
    with mpmath.workdps(2000):
        gamma = mpmath.mpf(odds) / (1 + mpmath.mpf(odds))
        low = 1 / (1 + mpmath.exp(mpmath.mpf(left)))
        high = 1 / (1 + mpmath.exp(-mpmath.mpf(right)))

        def least_cost(p: mpmath.mpf) -> mpmath.mpf:
            return min(c0 * (1 - p), c1 * p)

        weight = (gamma - low) / (high - low)
        return float(weight * least_cost(high) + (1 - weight) * least_cost(low))


class TestTheorem7:
    @many_examples
    @given(mechanisms(), costs, costs)
    def test_no_attack_costs_less(self, mechanism: FiniteMechanism, c0: float, c1: float) -> None:
        bmp = privacy_levels(mechanism).bmp
        bounds = expected_cost_bound(mechanism.prior_odds, bmp.left, bmp.right, c0, c1)
        attained = attained_cost_bound(mechanism.prior_odds, bmp.left + ROUNDING, bmp.right + ROUNDING, c0, c1)
        for node in range(mechanism.num_nodes):
            smallest = mechanism.smallest_cost(node, c0, c1)
            assert smallest >= bounds[node] - ROUNDING * max(c0, c1)
            assert smallest >= attained[node] - ROUNDING * max(c0, c1)

    @many_examples
    @given(log_odds_values, margins, margins, costs, costs)
    def test_is_the_formula_as_printed(
        self, log_odds: float, margin_left: float, margin_right: float, c0: float, c1: float
    ) -> None:
        left, right = margin_left - log_odds, margin_right + log_odds
        gamma = 1 / (1 + math.exp(-log_odds))
        expected = theorem_7_as_printed(gamma, left, right, c0, c1)
        assert float(expected_cost_bound(math.exp(log_odds), left, right, c0, c1)) == pytest.approx(expected, rel=1e-12)

    @many_examples
    @given(st.floats(0, 5), st.floats(0, 5), st.floats(0, 1))
    def test_second_display_is_the_first_for_unit_costs_and_epsilons_of_at_least_0(
        self, left: float, right: float, position: float
    ) -> None:
        log_odds = -left + position * (left + right)
        gamma = 1 / (1 + math.exp(-log_odds))
        expected = wrong_decision_bound_as_printed(gamma, left, right)
        assert float(expected_cost_bound(math.exp(log_odds), left, right)) == pytest.approx(expected, rel=1e-12)

    def test_second_display_fails_for_negative_epsilon(self) -> None:
        """Nothing is released of a node with prior 0.1: "non-member" is wrong in 10 %, and the display says 90 %."""
        says_nothing = FiniteMechanism(independent_memberships([0.1]), [[1.0], [1.0]])
        bmp = privacy_levels(says_nothing).bmp
        assert bmp.right == pytest.approx(-math.log(9))
        assert says_nothing.smallest_cost(0) == pytest.approx(0.1)
        assert wrong_decision_bound_as_printed(0.1, bmp.left, bmp.right) == pytest.approx(0.9)
        assert float(expected_cost_bound(says_nothing.prior_odds[0], bmp.left, bmp.right)) == pytest.approx(0.1)


class TestAttainedBound:
    @many_examples
    @given(log_odds_values, margins, margins, costs, costs)
    def test_is_never_below_theorem_7(
        self, log_odds: float, margin_left: float, margin_right: float, c0: float, c1: float
    ) -> None:
        arguments = (math.exp(log_odds), margin_left - log_odds + 1e-9, margin_right + log_odds + 1e-9, c0, c1)
        assert attained_cost_bound(*arguments) >= expected_cost_bound(*arguments) * (1 - 1e-12)

    @many_examples
    @given(log_odds_values, st.floats(0.01, 6), st.floats(0.01, 6), costs, costs)
    def test_is_attained_by_a_mechanism_with_two_outputs(
        self, log_odds: float, margin_left: float, margin_right: float, c0: float, c1: float
    ) -> None:
        odds, left, right = math.exp(log_odds), margin_left - log_odds, margin_right + log_odds
        alpha, beta = Region(odds, left, right).vertices[1]
        mechanism = FiniteMechanism([1 / (1 + odds), odds / (1 + odds)], [[1 - alpha, alpha], [beta, 1 - beta]])
        bmp = privacy_levels(mechanism).bmp
        assert [bmp.left, bmp.right] == pytest.approx([left, right], abs=1e-9)
        smallest = mechanism.smallest_cost(0, c0, c1)
        assert smallest == pytest.approx(float(attained_cost_bound(odds, left, right, c0, c1)), rel=1e-9)

    @many_examples
    @given(log_odds_values, margins, margins, costs, costs)
    def test_is_at_most_twice_theorem_7(
        self, log_odds: float, margin_left: float, margin_right: float, c0: float, c1: float
    ) -> None:
        """Its two summands are at most the second and the third term of Theorem 7."""
        arguments = (math.exp(log_odds), margin_left - log_odds + 1e-9, margin_right + log_odds + 1e-9, c0, c1)
        assert attained_cost_bound(*arguments) <= 2 * expected_cost_bound(*arguments) * (1 + 1e-12)

    def test_theorem_7_is_loose_up_to_that_factor(self) -> None:
        # γ = 0.8: p_lo = 0.2689, p_hi = 0.9, λ = 0.8415, so 0.8415·0.1 + 0.1585·0.2689.
        assert float(expected_cost_bound(4.0, 1.0, math.log(9))) == pytest.approx(0.1)
        assert float(attained_cost_bound(4.0, 1.0, math.log(9))) == pytest.approx(0.126771, abs=1e-6)
        arguments = (math.exp(-20.0), 40.0, 20.0)
        assert float(attained_cost_bound(*arguments)) == pytest.approx(
            2 * float(expected_cost_bound(*arguments)), rel=1e-6
        )

    @pytest.mark.parametrize("odds", [1e-300, 1e-12, 0.3, 1.0, 1e12, 1e300])
    @pytest.mark.parametrize("margin_left", [1e-6, 1.0, 40.0, 800.0])
    @pytest.mark.parametrize("margin_right", [1e-6, 1.0, 40.0, 800.0])
    @pytest.mark.parametrize(("c0", "c1"), [(1.0, 1.0), (1e-3, 50.0)])
    def test_extreme_values(self, odds: float, margin_left: float, margin_right: float, c0: float, c1: float) -> None:
        left, right = margin_left - math.log(odds), margin_right + math.log(odds)
        expected = attained_in_high_precision(odds, left, right, c0, c1)
        # The rounding of log η, 1e-13 at η = 1e±300, enters relative to the smallest margin, 1e-6.
        assert float(attained_cost_bound(odds, left, right, c0, c1)) == pytest.approx(expected, rel=1e-6)
        if min(margin_left, margin_right) >= 1:
            assert float(attained_cost_bound(odds, left, right, c0, c1)) == pytest.approx(expected, rel=1e-11)

    @pytest.mark.parametrize("odds", [0.2, 1.0, 7.0])
    def test_limits(self, odds: float) -> None:
        gamma = odds / (1 + odds)
        nothing_learnt = attained_cost_bound(odds, -math.log(odds), math.log(odds))
        assert float(nothing_learnt) == pytest.approx(min(gamma, 1 - gamma))
        assert float(attained_cost_bound(odds, INF, INF)) == 0
        # One side free: the posterior is 0 or 1/(1+e^{-ε}), and all the cost comes from the latter.
        highest = 1 / (1 + math.exp(-3))
        assert float(attained_cost_bound(odds, INF, 3.0)) == pytest.approx(gamma / highest * (1 - highest))
        assert float(attained_cost_bound(odds, 3.0, INF)) == pytest.approx((1 - gamma) / highest * (1 - highest))

    def test_certain_nodes_cost_nothing(self) -> None:
        assert attained_cost_bound([0.0, INF], INF, INF).tolist() == [0, 0]
        assert float(attained_cost_bound(0.0, INF, -INF)) == 0
        assert expected_cost_bound([0.0, INF], INF, INF).tolist() == [0, 0]

    def test_broadcasts(self) -> None:
        bounds = attained_cost_bound([0.5, 1.0, 2.0], [[1.0], [2.0]], 1.0)
        assert bounds.shape == (2, 3)
        assert bounds[1, 2] == attained_cost_bound(2.0, 2.0, 1.0)


class TestBayesDecision:
    @many_examples
    @given(mechanisms(max_nodes=3), costs, costs)
    def test_costs_no_more_than_any_other_rule(self, mechanism: FiniteMechanism, c0: float, c1: float) -> None:
        joint_in = mechanism.posterior_prob * mechanism.output_prob
        joint_out = mechanism.output_prob - joint_in
        for node in range(mechanism.num_nodes):
            rule = bayes_decision(mechanism.posterior_log_odds[node], c0, c1)

            def cost(rule: np.ndarray, node: int = node) -> float:
                return float(np.nansum(np.where(rule, c0 * joint_out[node], c1 * joint_in[node])))

            best = min(cost(np.array(other, dtype=bool)) for other in decision_rules(mechanism.table.shape[1]))
            assert cost(rule) <= best + ROUNDING * max(c0, c1)

    def test_threshold_is_the_ratio_of_the_costs(self) -> None:
        odds = np.log([0.4, 0.6, 2.0])
        assert bayes_decision(odds, 1.0, 2.0).tolist() == [False, True, True]
        assert bayes_decision([-INF, INF, math.nan]).tolist() == [False, True, False]


class TestBadInput:
    def test_costs(self) -> None:
        with pytest.raises(
            ValueError, match=r"cost_false_positive must be positive and finite, got cost_false_positive=0"
        ):
            bayes_decision(0.0, cost_false_positive=0)
        with pytest.raises(
            ValueError, match=r"cost_false_negative must be positive and finite, got cost_false_negative=inf"
        ):
            expected_cost_bound(1.0, 1.0, 1.0, 1.0, INF)
        with pytest.raises(
            ValueError, match=r"cost_false_negative must be positive and finite, got cost_false_negative=nan"
        ):
            attained_cost_bound(1.0, 1.0, 1.0, 1.0, math.nan)

    def test_parameters(self) -> None:
        with pytest.raises(ValueError, match=r"epsilon_left must be a number or infinite, got epsilon_left=nan"):
            expected_cost_bound(1.0, math.nan, 1.0)
        with pytest.raises(ValueError, match=r"prior_odds must be in \[0, ∞\], got prior_odds=-1.0"):
            expected_cost_bound(-1.0, 1.0, 1.0)

    def test_priors_that_no_such_mechanism_can_have(self) -> None:
        with pytest.raises(
            ValueError, match=r"unless -ε_L ≤ log η ≤ ε_R \(Prop. 1\), got .*epsilon_right=1.0, prior_odds=4"
        ):
            attained_cost_bound(4.0, 1.0, 1.0)
        with pytest.raises(ValueError, match=r"Prop. 1"):
            attained_cost_bound(0.0, 800.0, 1.0)
