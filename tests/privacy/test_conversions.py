import math

import mpmath  # type: ignore[import-untyped]  # mpmath has no stubs
import numpy as np
import pytest
from hypothesis import given
from strategies import many_examples, mechanisms

from bmpaudit.privacy import (
    FiniteMechanism,
    Region,
    bmp_to_mp,
    bmp_to_positive_pmp,
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


def responses(prior: list[float], epsilons: list[float]) -> FiniteMechanism:
    """Independent nodes, each with a randomised response of its own; all answers are released."""
    table = membership_table(len(prior))
    honest = 1 / (1 + np.exp(-np.asarray(epsilons)))
    likelihood = [
        [np.prod(np.where(answer == membership, honest, 1 - honest)) for answer in table] for membership in table
    ]
    return FiniteMechanism(independent_memberships(prior), likelihood)


class TestProposition1:
    @many_examples
    @given(mechanisms())
    def test_no_mechanism_goes_below_the_floor(self, mechanism: FiniteMechanism) -> None:
        floor, levels = prior_floor(mechanism.prior_odds), privacy_levels(mechanism)
        assert levels.bmp.left >= floor.left - ROUNDING
        assert levels.bmp.right >= floor.right - ROUNDING

    @many_examples
    @given(mechanisms(table_kinds=("constant",)))
    def test_a_mechanism_that_says_nothing_attains_it(self, mechanism: FiniteMechanism) -> None:
        floor, levels = prior_floor(mechanism.prior_odds), privacy_levels(mechanism)
        assert levels.bmp.left == pytest.approx(floor.left, abs=1e-12)
        assert levels.bmp.right == pytest.approx(floor.right, abs=1e-12)

    def test_by_hand_and_at_the_ends(self) -> None:
        assert prior_floor([0.5, 4.0]).left == pytest.approx(math.log(2))
        assert prior_floor([0.5, 4.0]).right == pytest.approx(math.log(4))
        assert (prior_floor(0.0).left, prior_floor(0.0).right) == (INF, -INF)
        assert (prior_floor([0.0, INF]).left, prior_floor([0.0, INF]).right) == (INF, INF)
        assert prior_floor([1e-300, 1e300]).left == pytest.approx(300 * math.log(10), rel=1e-15)


class TestProposition3:
    @many_examples
    @given(mechanisms())
    def test_mp_implies_bmp(self, mechanism: FiniteMechanism) -> None:
        levels = privacy_levels(mechanism)
        implied = mp_to_bmp(levels.mp, mechanism.prior_odds)
        assert levels.bmp.left <= implied.left + ROUNDING
        assert levels.bmp.right <= implied.right + ROUNDING

    @many_examples
    @given(mechanisms())
    def test_bmp_implies_mp(self, mechanism: FiniteMechanism) -> None:
        levels = privacy_levels(mechanism)
        assert levels.mp <= bmp_to_mp(levels.bmp.left, levels.bmp.right, mechanism.prior_odds) + ROUNDING

    @many_examples
    @given(mechanisms(law_kinds=("fixed_size", "all_or_none")))
    def test_bmp_to_mp_is_exact_for_equal_priors(self, mechanism: FiniteMechanism) -> None:
        levels, odds = privacy_levels(mechanism), mechanism.prior_odds
        if np.isfinite(np.log(odds, where=odds > 0, out=np.full(len(odds), -INF))).all():
            implied = bmp_to_mp(levels.bmp.left, levels.bmp.right, odds)
            assert levels.mp == pytest.approx(implied, abs=ROUNDING)

    @pytest.mark.parametrize("epsilon", [0.3, 2.0])
    @pytest.mark.parametrize("prior", [0.5, 0.1])
    def test_mp_to_bmp_is_attained_on_both_sides_for_equal_priors(self, epsilon: float, prior: float) -> None:
        levels = privacy_levels(responses([prior, prior], [epsilon, epsilon]))
        implied = mp_to_bmp(levels.mp, prior / (1 - prior))
        assert [levels.mp, levels.bmp.left, levels.bmp.right] == pytest.approx([epsilon, implied.left, implied.right])

    def test_both_are_attained_for_unequal_priors_by_some_mechanism(self) -> None:
        prior = [0.2, 0.6]
        odds = [0.25, 1.5]
        # The same LR for both nodes: each side of BMP is met at the node with the extreme prior.
        levels = privacy_levels(responses(prior, [1.0, 1.0]))
        implied = mp_to_bmp(1.0, odds)
        assert [levels.bmp.left, levels.bmp.right] == pytest.approx([implied.left, implied.right])
        # Only the rarer node leaks, and more about being in than about being out.
        alpha, beta = Region(0.25, 1.5, 2.0).vertices[1]
        levels = privacy_levels(
            FiniteMechanism(independent_memberships(prior), [[1 - alpha, alpha], [beta, 1 - beta]] * 2)
        )
        assert [levels.bmp.left, levels.bmp.right] == pytest.approx([1.5, 2.0])
        assert levels.mp == pytest.approx(bmp_to_mp(1.5, 2.0, odds)) == pytest.approx(2.0 - math.log(0.25))

    def test_there_and_back_costs_the_spread_of_the_priors(self) -> None:
        there = mp_to_bmp(1.0, [0.25, 1.5])
        assert bmp_to_mp(there.left, there.right, [0.25, 1.5]) == pytest.approx(1.0 + math.log(6))

    def test_certain_nodes_and_infinite_parameters(self) -> None:
        one_never_in = mp_to_bmp(1.0, [0.0, 1.0])
        assert (one_never_in.left, one_never_in.right) == (INF, 1.0)
        all_never_in = mp_to_bmp(INF, [0.0])
        assert (all_never_in.left, all_never_in.right) == (INF, -INF)
        assert mp_to_bmp(INF, 1.0).right == INF
        assert bmp_to_mp(INF, 1.0, 1.0) == INF
        assert bmp_to_mp(1.0, INF, [0.0, 1.0]) == INF
        assert bmp_to_mp(-INF, 1.0, 0.5) == pytest.approx(1 + math.log(2))
        assert bmp_to_mp(INF, -INF, 0.0) == INF

    @pytest.mark.parametrize("epsilon", [1e-12, 1.0, 800.0])
    def test_extreme_priors(self, epsilon: float) -> None:
        implied = mp_to_bmp(epsilon, [1e-300, 1e300])
        with mpmath.workdps(50):
            expected = float(mpmath.mpf(epsilon) + mpmath.log(mpmath.mpf(1e300)))
        assert implied.left == pytest.approx(expected, rel=1e-15)
        assert implied.right == pytest.approx(expected, rel=1e-15)
        assert bmp_to_mp(epsilon, epsilon, [1e-300, 1e300]) == pytest.approx(expected, rel=1e-15)


class TestMdpToMp:
    @many_examples
    @given(mechanisms(max_nodes=3, table_kinds=("plain", "nearly_deterministic", "constant")))
    def test_holds_with_the_distance_of_the_law(self, mechanism: FiniteMechanism) -> None:
        levels = privacy_levels(mechanism)
        assert levels.mp <= mdp_to_mp(levels.mdp, membership_distance(mechanism.law)) + ROUNDING

    @many_examples
    @given(mechanisms(law_kinds=("independent",)))
    def test_mdp_implies_mp_for_independent_memberships(self, mechanism: FiniteMechanism) -> None:
        levels = privacy_levels(mechanism)
        assert levels.mp <= mdp_to_mp(levels.mdp) + ROUNDING

    @many_examples
    @given(mechanisms(law_kinds=("independent",)))
    def test_mdp_implies_bmdp_for_independent_memberships(self, mechanism: FiniteMechanism) -> None:
        """The other memberships tell nothing, so every conditional prior is the prior."""
        levels = privacy_levels(mechanism)
        implied = mp_to_bmp(levels.mdp, mechanism.prior_odds)
        assert levels.bmdp.left <= implied.left + ROUNDING
        assert levels.bmdp.right <= implied.right + ROUNDING

    @staticmethod
    def count_members(law: np.ndarray, epsilon: float) -> FiniteMechanism:
        """Output 1 with probability proportional to e^{ε·(members other than node 0) - ε·(member 0)}."""
        table = membership_table(len(law).bit_length() - 1).astype(float)
        rare = 1e-3 * np.exp(epsilon * (table[:, 0] - table[:, 1:].sum(axis=1)))
        return FiniteMechanism(law, np.stack([1 - rare, rare], axis=1))

    @pytest.mark.parametrize("epsilon", [0.1, 1.0])
    def test_mdp_does_not_imply_mp_and_the_factor_2_is_attained_for_fixed_size_samples(self, epsilon: float) -> None:
        """The text below Definition 2 calls MDP the stronger; drawing one of two nodes, MP is twice MDP."""
        levels = privacy_levels(self.count_members(fixed_size_memberships(2, 1), epsilon))
        assert levels.mdp == pytest.approx(epsilon, rel=1e-12)
        assert levels.mp == pytest.approx(2 * epsilon, rel=1e-12)

    @pytest.mark.parametrize("num_nodes", [2, 3, 4])
    def test_factor_n_is_attained_if_all_nodes_go_together(self, num_nodes: int) -> None:
        law = np.zeros(2**num_nodes)
        law[[0, -1]] = 0.5
        rare = 1e-3 * np.exp(0.5 * membership_table(num_nodes).sum(axis=1))
        levels = privacy_levels(FiniteMechanism(law, np.stack([1 - rare, rare], axis=1)))
        assert levels.mdp == pytest.approx(0.5, rel=1e-12)
        assert levels.mp == pytest.approx(mdp_to_mp(0.5, membership_distance(law)), rel=1e-12)
        assert membership_distance(law) == num_nodes

    def test_mp_does_not_imply_mdp(self) -> None:
        """The direction the paper does have: the parity of two fair memberships is 0-MP and not MDP."""
        levels = privacy_levels(FiniteMechanism(independent_memberships([0.5, 0.5]), [[1, 0], [0, 1], [0, 1], [1, 0]]))
        assert (levels.mp, levels.mdp) == (0, INF)


class TestPositivePmp:
    @pytest.mark.parametrize("odds", [1e-300, 0.01, 1.0, 30.0, 1e300])
    @pytest.mark.parametrize("gain", [0.0, 1e-9, 1.0, 20.0, 800.0])
    def test_against_high_precision(self, odds: float, gain: float) -> None:
        epsilon = math.log(odds) + gain
        with mpmath.workdps(800):
            gamma = mpmath.mpf(odds) / (1 + mpmath.mpf(odds))
            highest = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
            factor = max(highest / gamma, (1 - gamma) / (1 - highest), 1)
            expected = float(factor) if factor < mpmath.mpf("1e308") else INF
        # log η has an absolute rounding error of 1e-13 at η = 1e±300; the factor is e to that power.
        assert float(bmp_to_positive_pmp(epsilon, odds)) == pytest.approx(expected, rel=1e-12)

    def test_certain_nodes_and_infinite_epsilon(self) -> None:
        assert bmp_to_positive_pmp(1.0, [0.0, INF]).tolist() == [1, 1]
        assert float(bmp_to_positive_pmp(INF, 1.0)) == INF
        assert float(bmp_to_positive_pmp(-5.0, 1.0)) == 1

    def test_is_strictly_increasing_above_the_floor(self) -> None:
        factors = bmp_to_positive_pmp(np.linspace(math.log(0.3), 5, 100), 0.3)
        assert (np.diff(factors) > 0).all()


class TestBadInput:
    def test_is_refused_with_name_bound_and_value(self) -> None:
        with pytest.raises(ValueError, match=r"prior_odds must be in \[0, ∞\], got prior_odds=-2.0"):
            prior_floor([1.0, -2.0])
        with pytest.raises(ValueError, match=r"epsilon must be a number or infinite, got epsilon=nan"):
            mp_to_bmp(math.nan, 1.0)
        with pytest.raises(ValueError, match=r"epsilon_right must be a number or infinite, got epsilon_right=nan"):
            bmp_to_mp(1.0, math.nan, 1.0)
        with pytest.raises(ValueError, match=r"epsilon must be ≥ 0 and distance ≥ 1, got epsilon=-1.0, distance=1"):
            mdp_to_mp(-1.0)
        with pytest.raises(ValueError, match=r"epsilon must be ≥ 0 and distance ≥ 1, got epsilon=1.0, distance=0"):
            mdp_to_mp(1.0, 0)
        with pytest.raises(ValueError, match=r"epsilon_right must be a number or infinite, got epsilon_right=nan"):
            bmp_to_positive_pmp(math.nan, 1.0)
