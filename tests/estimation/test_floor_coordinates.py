"""Joint posteriors that reach down to the floor, against a plain product rule."""

from pathlib import Path

import numpy as np
import pytest

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import BMP, Posterior, estimate
from bmpaudit.estimation.density import gauss_legendre
from bmpaudit.estimation.joint_density import ConeCoordinates, FloorCoordinates, LogCoordinates, floor_coordinates
from bmpaudit.estimation.likelihood import likelihood_of

POINTS = 8


def table(kind: str, num_nodes: int, num_models: int) -> ErrorCounts:
    rng = np.random.default_rng(3)
    num_in = rng.binomial(num_models, 0.25, num_nodes)
    alpha = rng.beta(8, 8, num_nodes) if kind == "nothing leaks" else np.zeros(num_nodes)
    return ErrorCounts.from_arrays(
        num_out=num_models - num_in,
        num_in=num_in,
        false_positives=rng.binomial(num_models - num_in, alpha),
        false_negatives=rng.binomial(num_in, 1 - alpha),
        prior_prob=0.25,
    )


@pytest.mark.parametrize(
    ("kind", "num_nodes", "num_models", "reach"),
    [
        ("nothing leaks", 40, 200, (2.0, 2.0)),
        ("nothing leaks", 300, 100, (1.0, 1.0)),
        # Two needles, one at each floor, and next to nothing between them.
        ("always non-member", 400, 200, (42.0, 42.0)),
    ],
)
def test_marginals_agree_with_a_plain_product_rule(
    kind: str, num_nodes: int, num_models: int, reach: tuple[float, float], tmp_path: Path
) -> None:
    counts = table(kind, num_nodes, num_models)
    likelihood = likelihood_of(counts, BMP())
    low = -float(likelihood.log_prior_odds.min()), float(likelihood.log_prior_odds.max())
    shares = np.concatenate([np.geomspace(1e-12, 1e-6, 8, endpoint=False), np.geomspace(1e-6, 1, 28)])
    edges = [np.log(far * shares) for far in reach]
    (x, x_weight), (y, y_weight) = (gauss_legendre(ends, POINTS) for ends in edges)
    left, right = low[0] + np.exp(x), low[1] + np.exp(y)
    logs = likelihood.on_grid(left, right) - left[:, None] ** 2 / 20 - right**2 / 20 + x[:, None] + y
    mass = np.exp(logs - logs.max()) * x_weight[:, None] * y_weight
    posterior = estimate(counts, "bmp")
    for axis, name in enumerate(("epsilon_left", "epsilon_right")):
        each = mass.sum(axis=1 - axis).reshape(-1, POINTS).sum(axis=1)
        below = np.concatenate([[0.0], np.cumsum(each)]) / each.sum()
        found = posterior.marginal(name).cdf(low[axis] + np.exp(edges[axis]))
        assert found == pytest.approx(below, abs=5e-6)
    assert posterior.joint is not None
    assert posterior.joint.mass.sum() == pytest.approx(1.0)
    posterior.save(tmp_path / "posterior.npz")
    again = Posterior.load(tmp_path / "posterior.npz")
    for name in posterior.parameter_names:
        assert again.quantile(0.5, name) == posterior.quantile(0.5, name)
    # The picture's grid is coarse, but it is the same density.
    means = [posterior.mean(name) - start for name, start in zip(posterior.parameter_names, low, strict=True)]
    assert posterior.joint.mass.sum(axis=1) @ (posterior.joint.first - low[0]) == pytest.approx(means[0], rel=0.01)
    assert posterior.joint.mass.sum(axis=0) @ (posterior.joint.second - low[1]) == pytest.approx(means[1], rel=0.01)


@pytest.mark.parametrize("coordinates", [ConeCoordinates(), LogCoordinates(is_left_smaller=True)])
def test_coordinates_are_inverted_and_keep_areas(coordinates: FloorCoordinates) -> None:
    x, y = np.array([-3.0, -1.0, 0.5]), np.array([-2.0, 0.3, 1.5])
    log_p, log_q = coordinates.distances(x, y)
    assert np.array(coordinates.of(log_p, log_q)) == pytest.approx(np.array([x, y]))
    step = 1e-6
    columns = []
    for dx, dy in ((step, 0.0), (0.0, step)):
        after, before = coordinates.distances(x + dx, y + dy), coordinates.distances(x - dx, y - dy)
        columns.append([(np.exp(a) - np.exp(b)) / (2 * step) for a, b in zip(after, before, strict=True)])
    determinant = columns[0][0] * columns[1][1] - columns[0][1] * columns[1][0]
    assert np.log(np.abs(determinant)) == pytest.approx(coordinates.log_jacobian(x, y), abs=1e-6)


def test_coordinates_are_only_for_densities_that_reach_the_floor() -> None:
    def hill(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return -0.5 * ((left - 1.1) ** 2 + (right + 0.9) ** 2) / 0.01**2

    def slope(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return -left - right

    assert floor_coordinates(hill, np.array([1.1, -0.9]), (1.0, -1.0)) is None
    assert isinstance(floor_coordinates(slope, np.array([1.1, -0.9]), (1.0, -1.0)), ConeCoordinates)
    assert isinstance(floor_coordinates(slope, np.array([1.001, 4.0]), (1.0, -1.0)), LogCoordinates)
    # Priors that differ: R is thin for the extreme nodes only.
    assert floor_coordinates(slope, np.array([1.1, 1.1]), (1.0, 1.0)) is None
