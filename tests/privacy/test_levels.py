import math

import numpy as np
import pytest
from hypothesis import given
from slow_definitions import ExactMechanism, slow_bmdp, slow_bmp, slow_mdp, slow_mp
from strategies import exact_mechanisms, many_examples, mechanisms

from bmpaudit.privacy import (
    FiniteMechanism,
    fixed_size_memberships,
    independent_memberships,
    privacy_levels,
)

INF = math.inf


@many_examples
@given(exact_mechanisms())
def test_definitions_1_to_5_against_loops_in_exact_arithmetic(exact: ExactMechanism) -> None:
    levels = privacy_levels(exact.in_floats())
    assert levels.mp == pytest.approx(slow_mp(exact), abs=1e-10)
    assert levels.mdp == pytest.approx(slow_mdp(exact), abs=1e-10)
    assert (levels.bmp.left, levels.bmp.right) == pytest.approx(slow_bmp(exact), abs=1e-10)
    assert (levels.bmdp.left, levels.bmdp.right) == pytest.approx(slow_bmdp(exact), abs=1e-10)


@many_examples
@given(mechanisms())
def test_bmp_right_bounds_the_posterior_of_membership_and_bmp_left_that_of_non_membership(
    mechanism: FiniteMechanism,
) -> None:
    """Definition 4, in words: the largest posterior probability is 1/(1 + e^{-ε_R}), the smallest 1/(1 + e^{ε_L})."""
    posterior = mechanism.posterior_prob[:, mechanism.output_prob > 0]
    levels = privacy_levels(mechanism)
    assert posterior.max() == pytest.approx(1 / (1 + np.exp(-levels.bmp.right)), rel=1e-9)
    assert posterior.min() == pytest.approx(1 / (1 + np.exp(levels.bmp.left)), rel=1e-9)


@many_examples
@given(mechanisms())
def test_bmdp_implies_bmp(mechanism: FiniteMechanism) -> None:
    levels = privacy_levels(mechanism)
    assert levels.bmp.left <= levels.bmdp.left + 1e-9
    assert levels.bmp.right <= levels.bmdp.right + 1e-9


def test_randomised_response_by_hand() -> None:
    levels = privacy_levels(FiniteMechanism(independent_memberships([0.2]), [[0.75, 0.25], [0.25, 0.75]]))
    assert [levels.mp, levels.mdp] == pytest.approx([math.log(3)] * 2)
    assert [levels.bmp.right, levels.bmdp.right] == pytest.approx([math.log(3 / 4)] * 2)
    assert [levels.bmp.left, levels.bmdp.left] == pytest.approx([math.log(12)] * 2)


class TestConventions:
    def test_outputs_that_never_come_do_not_count(self) -> None:
        """Output 1 tells the two rows apart, but comes only with a vector of probability 0."""
        law = independent_memberships([0.0, 0.5])
        table = [[1, 0], [0, 1], [1, 0], [0, 1]]
        levels = privacy_levels(FiniteMechanism(law, table))
        assert levels.mp == 0

    def test_mdp_ranges_over_vectors_of_probability_0_and_bmdp_does_not(self) -> None:
        law = independent_memberships([0.5, 0.0])
        table = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
        levels = privacy_levels(FiniteMechanism(law, table))
        assert levels.mdp == INF
        assert (levels.mp, levels.bmdp.right) == (0, 0)

    def test_certain_nodes(self) -> None:
        never = privacy_levels(FiniteMechanism([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]]))
        assert (never.mp, never.bmp.left, never.bmp.right) == (-INF, INF, -INF)
        always = privacy_levels(FiniteMechanism([0.0, 1.0], [[0.5, 0.5], [0.5, 0.5]]))
        assert (always.mp, always.bmp.left, always.bmp.right) == (-INF, -INF, INF)

    def test_a_zero_over_a_positive_likelihood_is_infinite(self) -> None:
        levels = privacy_levels(FiniteMechanism([0.5, 0.5], [[0.5, 0.5], [1.0, 0.0]]))
        assert (levels.mp, levels.mdp, levels.bmp.left) == (INF, INF, INF)
        assert levels.bmp.right == pytest.approx(math.log(2))

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_bmdp_is_infinite_for_fixed_size_samples_whatever_the_mechanism(self, size: int) -> None:
        """The other memberships tell the last one before anything is released."""
        says_nothing = FiniteMechanism(fixed_size_memberships(4, size), np.full((16, 2), 0.5))
        levels = privacy_levels(says_nothing)
        assert (levels.bmdp.left, levels.bmdp.right) == (INF, INF)
        assert levels.bmp.right == pytest.approx(math.log(size / (4 - size)), abs=1e-12)

    def test_mdp_as_printed_is_not_closed_under_post_processing(self) -> None:
        """Definition 2 skips outputs with f_0(w) = 0, but not vectors of probability 0; merging brings them in."""
        possible, impossible = [0.1, 0.9, 0.0], [0.08, 0.72, 0.2]
        mechanism = FiniteMechanism(fixed_size_memberships(2, 1), [impossible, possible, possible, impossible])
        merged = mechanism.post_process([[1, 0], [0, 1], [1, 0]])
        assert privacy_levels(mechanism).mdp == pytest.approx(math.log(1.25))
        assert privacy_levels(merged).mdp == pytest.approx(math.log(2.8))
