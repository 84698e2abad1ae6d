import numpy as np
import pytest

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.lower_bound import error_floor
from bmpaudit.privacy import FiniteMechanism, expected_cost_bound, independent_memberships, privacy_levels
from bmpaudit.util.errors import InputError


def with_priors(*priors: float) -> ErrorCounts:
    return ErrorCounts.from_arrays(1, 1, 0, 0, prior_prob=list(priors))


def test_no_attack_on_a_known_mechanism_errs_less() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        priors = rng.uniform(0.1, 0.9, 3)
        mechanism = FiniteMechanism(independent_memberships(priors), rng.dirichlet(np.ones(4), size=8))
        level = privacy_levels(mechanism).bmp
        floor = error_floor(with_priors(*priors), level.left, level.right)
        assert floor.node.tolist() == [0, 1, 2]
        assert all(mechanism.smallest_cost(k) >= floor.error_prob[k] - 1e-12 for k in range(3))


def test_it_is_at_least_theorem_7_and_at_most_the_guess() -> None:
    priors = np.linspace(0.05, 0.95, 19)
    floor = error_floor(with_priors(*priors), 3.0, 3.0)
    odds = priors / (1 - priors)
    assert (floor.error_prob >= expected_cost_bound(odds, 3.0, 3.0) - 1e-12).all()
    assert (floor.error_prob <= floor.guess_error_prob + 1e-12).all()


def test_a_randomised_response_attains_it() -> None:
    mechanism = FiniteMechanism(independent_memberships([0.5]), [[0.8, 0.2], [0.2, 0.8]])
    floor = error_floor(with_priors(0.5), np.log(4), np.log(4))
    assert floor.error_prob[0] == pytest.approx(0.2)
    assert mechanism.smallest_cost(0) == pytest.approx(0.2)


def test_nodes_whose_prior_excludes_the_premise_are_listed() -> None:
    floor = error_floor(with_priors(0.01, 0.5, 0.99), 1.0, 1.0)
    assert floor.node.tolist() == [1]
    assert floor.excluded.tolist() == [0, 2]
    assert "2 of the priors rule this out" in str(floor)


@pytest.mark.parametrize("left", [-1.0, 0.0, 2.0, 800.0, np.inf, -np.inf])
@pytest.mark.parametrize("right", [-1.0, 0.0, 2.0, 800.0, np.inf, -np.inf])
def test_never_nan(left: float, right: float) -> None:
    floor = error_floor(with_priors(0.0, 1e-12, 0.2, 0.5, 1 - 1e-12, 1.0), left, right)
    assert len(floor.node) + len(floor.excluded) == 6
    assert ((floor.error_prob >= 0) & (floor.error_prob <= 0.5)).all()
    assert str(floor)


def test_without_any_bound_nothing_is_promised() -> None:
    np.testing.assert_array_equal(error_floor(with_priors(0.2, 0.5)).error_prob, 0)


def test_nan_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon_right must be a number"):
        error_floor(with_priors(0.5), epsilon_right=np.nan)
