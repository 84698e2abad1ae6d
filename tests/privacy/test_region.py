import math
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]  # mpmath has no stubs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_definitions import ExactMechanism, decision_rules, slow_bmp, slow_errors, slow_mp
from strategies import exact_mechanisms, many_examples

from bmpaudit.privacy import FiniteMechanism, Region, implied_epsilon, independent_memberships, privacy_levels

INF = math.inf

fractions_in_unit = st.builds(lambda k, n: Fraction(min(k, n), n), st.integers(0, 40), st.integers(1, 40))
positive_fractions = st.builds(Fraction, st.integers(1, 40), st.integers(1, 40))
above_one = positive_fractions.map(lambda x: 1 + x)
below_one = positive_fractions.map(lambda x: x / (1 + x))


def paper_inequalities(alpha: Fraction, beta: Fraction, a: Fraction, b: Fraction) -> list[Fraction]:
    """Theorem 6 word for word, with a = ηe^{ε_L}, b = ηe^{-ε_R}: (α, β) is allowed iff none of these is negative."""
    return [alpha + a * beta - 1, a - alpha - a * beta, alpha + b * beta - b, 1 - alpha - b * beta]


def region_of(eta: Fraction, a: Fraction, b: Fraction) -> Region:
    return Region(float(eta), math.log(a / eta), math.log(eta / b))


def grid_area(eta: float, epsilon_left: float, epsilon_right: float, num_cells: int) -> float:
    middles = (np.arange(num_cells) + 0.5) / num_cells
    alpha, beta = middles[:, None], middles[None, :]
    a, b = eta * math.exp(epsilon_left), eta * math.exp(-epsilon_right)
    left = (
        np.ones((num_cells, num_cells), dtype=bool) if a == INF else (alpha + a * beta >= 1) & (alpha + a * beta <= a)
    )
    return float(np.mean(left & (alpha + b * beta >= b) & (alpha + b * beta <= 1)))


def shoelace(corners: np.ndarray) -> float:
    x, y = corners[:, 0], corners[:, 1]
    return 0.5 * abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))))


class TestContains:
    @many_examples
    @given(fractions_in_unit, fractions_in_unit, positive_fractions, positive_fractions, positive_fractions)
    def test_is_theorem_6_literally(
        self, alpha: Fraction, beta: Fraction, eta: Fraction, a: Fraction, b: Fraction
    ) -> None:
        slacks = paper_inequalities(alpha, beta, a, b)
        if 0 not in slacks:  # on the boundary rounding may decide
            assert region_of(eta, a, b).contains(float(alpha), float(beta)) == (min(slacks) > 0)

    @many_examples
    @given(positive_fractions, above_one, below_one)
    def test_the_two_corners_of_trivial_tests_are_always_allowed(self, eta: Fraction, a: Fraction, b: Fraction) -> None:
        assert region_of(eta, a, b).contains([0.0, 1.0], [1.0, 0.0]).all()

    @many_examples
    @given(fractions_in_unit, fractions_in_unit, positive_fractions, above_one, below_one)
    def test_symmetries(self, alpha: Fraction, beta: Fraction, eta: Fraction, a: Fraction, b: Fraction) -> None:
        if 0 in paper_inequalities(alpha, beta, a, b):
            return
        region, x, y = region_of(eta, a, b), float(alpha), float(beta)
        dual = Region(1 / float(eta), region.epsilon_right, region.epsilon_left)
        assert region.contains(x, y) == region.contains(float(1 - alpha), float(1 - beta)) == dual.contains(y, x)

    def test_one_sided_regions_drop_one_pair_of_inequalities(self) -> None:
        rng = np.random.default_rng(0)
        alpha, beta = rng.uniform(size=(2, 1000))
        b = 4 * math.exp(-2)
        right_only = (alpha + b * beta >= b) & (alpha + b * beta <= 1)
        np.testing.assert_array_equal(Region(4.0, INF, 2.0).contains(alpha, beta), right_only)
        a = 0.25 * math.exp(2)
        left_only = (alpha + a * beta >= 1) & (alpha + a * beta <= a)
        np.testing.assert_array_equal(Region(0.25, 2.0, INF).contains(alpha, beta), left_only)

    def test_broadcasts(self) -> None:
        region = Region([[1.0], [4.0]], [0.5, 1.0, INF], 2.0)
        inside = region.contains(np.full((5, 1, 1), 0.3), 0.5)
        assert inside.shape == (5, 2, 3)
        for row, eta in enumerate([1.0, 4.0]):
            for column, epsilon in enumerate([0.5, 1.0, INF]):
                assert inside[0, row, column] == Region(eta, epsilon, 2.0).contains(0.3, 0.5)


class TestArea:
    @many_examples
    @given(positive_fractions, above_one, below_one)
    def test_is_the_formula_in_exact_arithmetic(self, eta: Fraction, a: Fraction, b: Fraction) -> None:
        exact = (a - 1) * (1 - b) / (a - b)
        assert float(region_of(eta, a, b).area) == pytest.approx(float(exact), rel=1e-12)

    @many_examples
    @given(positive_fractions, above_one, below_one)
    def test_is_the_area_of_the_polygon(self, eta: Fraction, a: Fraction, b: Fraction) -> None:
        region = region_of(eta, a, b)
        assert shoelace(region.vertices) == pytest.approx(float(region.area), abs=1e-14)

    @pytest.mark.parametrize(
        ("eta", "epsilon_left", "epsilon_right"),
        [(1, 0.5, 0.5), (4, 0.5, 2), (0.25, 2, 10), (4, INF, 2), (0.2, 1.7, -0.3), (3, -1, 4), (1, 8, 8)],
    )
    def test_is_what_a_grid_counts(self, eta: float, epsilon_left: float, epsilon_right: float) -> None:
        num_cells = 1000
        counted = grid_area(eta, epsilon_left, epsilon_right, num_cells)
        # The boundary of a convex set meets at most 4·num_cells of the num_cells² cells.
        assert float(Region(eta, epsilon_left, epsilon_right).area) == pytest.approx(counted, abs=4 / num_cells)

    @pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.1, 1.0, 10.0, 40.0, 800.0])
    def test_of_mp_is_tanh(self, epsilon: float) -> None:
        assert float(Region(1.0, epsilon, epsilon).area) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)

    @pytest.mark.parametrize("eta", [1e-300, 1e-3, 1.0, 7.0, 1e300])
    @pytest.mark.parametrize("margin_left", [1e-3, 1.0, 30.0, 800.0])
    @pytest.mark.parametrize("margin_right", [1e-3, 1.0, 30.0, 800.0])
    def test_survives_extreme_values(self, eta: float, margin_left: float, margin_right: float) -> None:
        epsilon_left, epsilon_right = margin_left - math.log(eta), margin_right + math.log(eta)
        with mpmath.workdps(60):
            a = mpmath.mpf(eta) * mpmath.exp(epsilon_left)
            b = mpmath.mpf(eta) * mpmath.exp(-mpmath.mpf(epsilon_right))
            log_area = float(mpmath.log((a - 1) * (1 - b) / (a - b)))
        region = Region(eta, epsilon_left, epsilon_right)
        # log η carries a relative rounding error of 1e-16, so 1e-13 for η = 1e±300, against a margin of 1e-3.
        assert float(region.log_area) == pytest.approx(log_area, abs=1e-9)
        assert float(region.area) == pytest.approx(math.exp(log_area), rel=1e-9)

    def test_log_area_of_tiny_regions(self) -> None:
        epsilon = 1e-200
        assert float(Region(1.0, epsilon, epsilon).log_area) == pytest.approx(math.log(epsilon / 2), rel=1e-14)

    @pytest.mark.parametrize("eta", [0.3, 1.0, 5.0])
    def test_one_sided(self, eta: float) -> None:
        assert float(Region(eta, INF, 2.0).area) == pytest.approx(1 - eta * math.exp(-2), rel=1e-14)
        assert float(Region(eta, 2.0, INF).area) == pytest.approx(1 - math.exp(-2) / eta, rel=1e-14)
        assert float(Region(eta, INF, INF).area) == 1

    def test_grows_with_each_epsilon(self) -> None:
        epsilons = np.linspace(-0.5, 5, 50)
        areas = Region(0.5, epsilons[:, None] + 1.3, epsilons).area
        assert (np.diff(areas, axis=0) >= 0).all()
        assert (np.diff(areas, axis=1) >= 0).all()


class TestDegenerateRegions:
    @pytest.mark.parametrize(
        ("eta", "epsilon_left", "epsilon_right"),
        [
            (1.0, 0.0, 0.0),
            (1.0, 0.0, 3.0),
            (1.0, 3.0, 0.0),
            (4.0, -math.log(4), 3.0),
            (4.0, 1.0, math.log(4)),
            (1.0, 0.0, INF),
        ],
    )
    def test_segment(self, eta: float, epsilon_left: float, epsilon_right: float) -> None:
        region = Region(eta, epsilon_left, epsilon_right)
        assert not region.is_empty
        assert region.area == 0
        assert region.log_area == -INF
        assert region.contains([0.0, 0.25, 0.5, 1.0], [1.0, 0.75, 0.5, 0.0]).all()
        assert not region.contains([0.2, 0.3], [0.7, 0.8]).any()
        assert region.vertices.tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]

    @pytest.mark.parametrize(
        ("eta", "epsilon_left", "epsilon_right"),
        [
            (1.0, -1e-12, 1.0),
            (1.0, 1.0, -1e-12),
            (4.0, 1.0, 1.0),
            (0.25, 1.0, 1.0),
            (1.0, 0.5, -0.5),
            (1.0, -0.5, 0.5),
            (1.0, -800.0, 800.0),
            (1.0, 800.0, -800.0),
            (1.0, -INF, 1.0),
            (1.0, 1.0, -INF),
            (0.0, 1.0, 1.0),
            (0.0, 800.0, INF),
            (0.0, -INF, INF),
            (INF, 1.0, 1.0),
            (INF, INF, 800.0),
            (INF, INF, -INF),
        ],
    )
    def test_empty(self, eta: float, epsilon_left: float, epsilon_right: float) -> None:
        region = Region(eta, epsilon_left, epsilon_right)
        assert region.is_empty
        assert region.area == 0
        assert region.log_area == -INF
        grid = np.linspace(0, 1, 21)
        assert not region.contains(grid[:, None], grid).any()
        assert np.isnan(region.vertices).all()

    @pytest.mark.parametrize(
        ("eta", "epsilon_left", "epsilon_right"),
        [
            (0.0, INF, 1.0),
            (0.0, INF, -800.0),
            (0.0, INF, -INF),
            (INF, 1.0, INF),
            (INF, -INF, INF),
            (0.0, INF, INF),
            (INF, INF, INF),
        ],
    )
    def test_an_infinite_epsilon_imposes_nothing_even_where_membership_is_certain(
        self, eta: float, epsilon_left: float, epsilon_right: float
    ) -> None:
        region = Region(eta, epsilon_left, epsilon_right)
        assert region.area == 1
        grid = np.linspace(0, 1, 21)
        assert region.contains(grid[:, None], grid).all()
        assert region.vertices.tolist() == [[0, 1], [0, 0], [1, 0], [1, 1]]

    @pytest.mark.parametrize("epsilon", [1e-12, 800.0])
    def test_tiny_and_huge_epsilon(self, epsilon: float) -> None:
        region = Region(1.0, epsilon, epsilon)
        assert not region.is_empty
        assert bool(region.contains(0.01, 0.01)) == (epsilon > 1)
        assert region.contains(0.5, 0.5)
        assert np.isfinite(region.vertices).all()


class TestVertices:
    @many_examples
    @given(positive_fractions, above_one, below_one)
    def test_each_inner_corner_turns_two_inequalities_into_equalities(
        self, eta: Fraction, a: Fraction, b: Fraction
    ) -> None:
        corners = region_of(eta, a, b).vertices
        assert corners[[0, 2]].tolist() == [[0, 1], [1, 0]]
        p_2, p_1 = ((Fraction(corners[row, 0]), Fraction(corners[row, 1])) for row in (1, 3))
        # 1 ≤ α + aβ and b ≤ α + bβ meet where the attack does well, the two others where it does badly.
        well, badly = paper_inequalities(*p_2, a, b), paper_inequalities(*p_1, a, b)
        assert [float(well[0]), float(well[2])] == pytest.approx([0, 0], abs=1e-13)
        assert [float(badly[1]), float(badly[3])] == pytest.approx([0, 0], abs=1e-13)

    def test_vectorised_and_closed(self) -> None:
        region = Region([1.0, 4.0, 1.0], [[0.5], [-2.0]], [0.5, 2.0, 0.0])
        assert region.vertices.shape == (2, 3, 4, 2)
        assert region.boundary.shape == (2, 3, 5, 2)
        np.testing.assert_array_equal(region.boundary[..., 0, :], region.boundary[..., -1, :])
        np.testing.assert_array_equal(region.vertices[0, 1], Region(4.0, 0.5, 2.0).vertices)
        assert np.isnan(region.vertices[1]).all()
        np.testing.assert_array_equal(region.vertices[0, 2], Region(1.0, 0.5, 0.0).vertices)


class TestImpliedEpsilon:
    @many_examples
    @given(fractions_in_unit, fractions_in_unit, positive_fractions)
    def test_is_the_formula(self, alpha: Fraction, beta: Fraction, eta: Fraction) -> None:
        def largest_log(*ratios: tuple[Fraction, Fraction]) -> float:
            logs = [INF if y == 0 else (math.log(x / y) if x else -INF) for x, y in ratios if x or y]
            return max(logs)

        implied = implied_epsilon(float(alpha), float(beta), float(eta))
        right = math.log(eta) + largest_log((1 - beta, alpha), (beta, 1 - alpha))
        left = -math.log(eta) + largest_log((1 - alpha, beta), (alpha, 1 - beta))
        assert float(implied.right) == pytest.approx(right, abs=1e-12)
        assert float(implied.left) == pytest.approx(left, abs=1e-12)

    @many_examples
    @given(
        fractions_in_unit,
        fractions_in_unit,
        st.sampled_from([0.0, 1e-300, 0.1, 1.0, 4.0, 1e300, INF]),
        st.floats(-3, 3),
        st.floats(-3, 3),
        st.sampled_from(["finite", "left", "right", "both"]),
    )
    def test_is_the_smallest_region_that_contains_the_pair(
        self, alpha: Fraction, beta: Fraction, eta: float, margin_left: float, margin_right: float, infinite: str
    ) -> None:
        x, y = float(alpha), float(beta)
        implied = implied_epsilon(x, y, eta)
        left = INF if infinite in ("left", "both") else _finite(implied.left) + margin_left
        right = INF if infinite in ("right", "both") else _finite(implied.right) + margin_right
        # Equal infinities are decided, equal finite numbers are decided by rounding.
        if any(
            np.isfinite(given) and abs(given - needed) < 1e-9
            for given, needed in ((left, implied.left), (right, implied.right))
        ):
            return
        is_allowed = bool(left >= implied.left and right >= implied.right)
        assert bool(Region(eta, left, right).contains(x, y)) == is_allowed

    @pytest.mark.parametrize("infinity", [INF, -INF])
    @pytest.mark.parametrize("eta", [0.0, 0.5, INF])
    def test_agrees_with_the_region_at_infinite_parameters(self, eta: float, infinity: float) -> None:
        for alpha, beta in [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.3, 0.4)]:
            implied = implied_epsilon(alpha, beta, eta)
            for left, right in [
                (infinity, 1.0),
                (1.0, infinity),
                (infinity, infinity),
                (INF, infinity),
                (infinity, INF),
            ]:
                is_allowed = bool(left >= implied.left and right >= implied.right)
                assert bool(Region(eta, left, right).contains(alpha, beta)) == is_allowed, (alpha, beta, left, right)

    def test_trivial_tests_imply_only_the_prior(self) -> None:
        implied = implied_epsilon([0.0, 0.3, 1.0], [1.0, 0.7, 0.0], 4.0)
        np.testing.assert_allclose(implied.right, math.log(4), rtol=1e-14)
        np.testing.assert_allclose(implied.left, -math.log(4), rtol=1e-14)

    @pytest.mark.parametrize("eta", [1e-300, 1e300])
    @pytest.mark.parametrize(("alpha", "beta"), [(1e-300, 0.5), (0.5, 1e-300), (1e-12, 1e-12)])
    def test_extreme_values(self, eta: float, alpha: float, beta: float) -> None:
        with mpmath.workdps(400):
            x, y, log_eta = mpmath.mpf(alpha), mpmath.mpf(beta), mpmath.log(mpmath.mpf(eta))
            right = float(log_eta + mpmath.log(max((1 - y) / x, y / (1 - x))))
            left = float(-log_eta + mpmath.log(max((1 - x) / y, x / (1 - y))))
        implied = implied_epsilon(alpha, beta, eta)
        assert [float(implied.left), float(implied.right)] == pytest.approx([left, right], abs=1e-12)


def _finite(value: np.ndarray) -> float:
    """The value, or some finite number where it is infinite."""
    return float(value) if np.isfinite(value) else 1.0


class TestTheorem6:
    @many_examples
    @given(exact_mechanisms())
    def test_bmp_iff_every_decision_rule_lies_in_the_region(self, exact: ExactMechanism) -> None:
        nodes = exact.uncertain_nodes()
        if not nodes:
            return
        left, right = _bmp_of(exact, nodes)
        errors = {(i, rule): slow_errors(exact, i, rule) for i in nodes for rule in decision_rules(exact.num_outputs)}

        for (i, _), (alpha, beta) in errors.items():
            eta = exact.prior(i, 1) / exact.prior(i, 0)
            # In exact arithmetic the theorem holds without any tolerance.
            if left is not None:
                assert min(paper_inequalities(alpha, beta, eta * left, eta)[:2]) >= 0
            if right is not None:
                assert min(paper_inequalities(alpha, beta, eta, eta / right)[2:]) >= 0

        assert self.all_inside(exact, errors, _log(left) + 1e-9, _log(right) + 1e-9)
        # One step below the tightest parameters, where those are infinite at any finite value, some rule falls out.
        assert not self.all_inside(exact, errors, INF, 50.0 if right is None else _log(right) - 1e-9)
        assert not self.all_inside(exact, errors, 50.0 if left is None else _log(left) - 1e-9, INF)

    @staticmethod
    def all_inside(
        exact: ExactMechanism,
        errors: dict[tuple[int, tuple[int, ...]], tuple[Fraction, Fraction]],
        epsilon_left: float,
        epsilon_right: float,
    ) -> bool:
        alpha, beta = np.array([[float(alpha), float(beta)] for alpha, beta in errors.values()]).T
        eta = [float(exact.prior(i, 1) / exact.prior(i, 0)) for i, _ in errors]
        return bool(Region(eta, epsilon_left, epsilon_right).contains(alpha, beta).all())

    @many_examples
    @given(exact_mechanisms(max_nodes=2))
    def test_mp_iff_every_decision_rule_lies_in_the_region_with_flat_priors(self, exact: ExactMechanism) -> None:
        # The remark of Section IV.
        nodes = exact.uncertain_nodes()
        if not nodes:
            return
        epsilon = slow_mp(exact)
        errors = [slow_errors(exact, i, rule) for i in nodes for rule in decision_rules(exact.num_outputs)]
        alpha, beta = np.array(errors, dtype=float).T
        assert Region(1.0, epsilon + 1e-9, epsilon + 1e-9).contains(alpha, beta).all()
        tighter = 50.0 if epsilon == INF else epsilon - 1e-9
        assert not Region(1.0, tighter, tighter).contains(alpha, beta).all()

    @pytest.mark.parametrize(
        ("eta", "epsilon_left", "epsilon_right"), [(1, 1, 1), (4, 0.5, 2), (0.25, 2, -0.5), (1, 30, 30), (0.1, 3, 0.2)]
    )
    def test_corners_are_attained(self, eta: float, epsilon_left: float, epsilon_right: float) -> None:
        """Two outputs with posterior odds e^{-ε_L} and e^{ε_R} give the four corners as their four tests."""
        corners = Region(eta, epsilon_left, epsilon_right).vertices
        alpha, beta = corners[1]
        mechanism = FiniteMechanism(independent_memberships([eta / (1 + eta)]), [[1 - alpha, alpha], [beta, 1 - beta]])
        levels = privacy_levels(mechanism)
        assert levels.bmp.left == pytest.approx(epsilon_left, abs=1e-9)
        assert levels.bmp.right == pytest.approx(epsilon_right, abs=1e-9)
        for rule, corner in zip([[0, 0], [0, 1], [1, 1], [1, 0]], corners, strict=True):
            errors = mechanism.error_pair(0, rule)
            assert [errors.alpha, errors.beta] == pytest.approx(corner.tolist(), abs=1e-15)

    def test_one_test_in_the_region_proves_nothing(self) -> None:
        """Section IV writes "iff" for one designed test; this one lies in every region, and the release tells all."""
        reveals_all = FiniteMechanism(independent_memberships([0.5]), [[1, 0], [0, 1]])
        never_member = reveals_all.error_pair(0, [0, 0])
        assert Region(1.0, 0.0, 0.0).contains(never_member.alpha, never_member.beta)
        assert privacy_levels(reveals_all).bmp.right == INF


def _bmp_of(exact: ExactMechanism, nodes: list[int]) -> tuple[Fraction | None, Fraction | None]:
    """e^{ε_L} and e^{ε_R} over these nodes, exactly; None for ∞."""
    bounds: list[Fraction | None] = []
    for numerator in (0, 1):
        pairs = [
            (exact.joint(i, numerator, w), exact.joint(i, 1 - numerator, w))
            for i in nodes
            for w in exact.seen_outputs()
        ]
        bounds.append(None if any(y == 0 for _, y in pairs) else max(x / y for x, y in pairs))
    if len(nodes) == exact.num_nodes:
        assert slow_bmp(exact) == (_log(bounds[0]), _log(bounds[1]))
    return bounds[0], bounds[1]


def _log(value: Fraction | None) -> float:
    return INF if value is None else math.log(value)


class TestBadInput:
    def test_is_refused_with_name_bound_and_value(self) -> None:
        with pytest.raises(ValueError, match=r"epsilon_left must be a number or infinite, got epsilon_left=nan"):
            Region(1.0, math.nan, 1.0)
        with pytest.raises(ValueError, match=r"epsilon_right must be a number or infinite, got epsilon_right="):
            Region(1.0, 1.0, [0.0, math.nan])
        with pytest.raises(ValueError, match=r"prior_odds must be in \[0, ∞\], got prior_odds=-1.0"):
            Region([1.0, -1.0], 1.0, 1.0)
        with pytest.raises(ValueError, match=r"alpha must be in \[0, 1\], got alpha=1.5"):
            Region(1.0, 1.0, 1.0).contains([0.5, 1.5], 0.5)
        with pytest.raises(ValueError, match=r"beta must be in \[0, 1\], got beta=nan"):
            implied_epsilon(0.5, math.nan, 1.0)
        with pytest.raises(ValueError, match=r"prior_odds must be in \[0, ∞\], got prior_odds=nan"):
            implied_epsilon(0.5, 0.5, math.nan)
