"""Pictures of posteriors, regions and leakage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from figure_values import (
    DRAWS,
    FLAGGED,
    HIGH,
    LOW,
    MEDIAN,
    PANELS,
    PRIOR,
    K,
    assert_inside,
    make_posterior,
    points,
    scatters,
)
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import Polygon

from bmpaudit.attack import ErrorCounts
from bmpaudit.estimation import NormalPrior, Posterior
from bmpaudit.privacy import Region
from bmpaudit.report import figures
from bmpaudit.util.errors import InputError


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return make_posterior()


@pytest.fixture(scope="module")
def other() -> Posterior:
    return make_posterior(0.3, false_positives=3)


def test_regions_have_their_corners_and_titles() -> None:
    figure = figures.regions(PANELS)
    assert len(figure.axes) == 4
    for axes, region in zip(figure.axes, PANELS.values(), strict=True):
        (drawn,) = (patch for patch in axes.patches if isinstance(patch, Polygon))
        np.testing.assert_allclose(drawn.get_xy()[:5], region.boundary)
        assert axes.get_xlim() == axes.get_ylim() == (0, 1)
    assert figure.axes[1].get_title() == "(b)  $\\mathcal{R}_{4}(0.5,\\,2)$\narea 0.424"
    assert figure.axes[2].get_title().startswith("(c)  $\\mathcal{R}_{1/4}(2,\\,\\infty)$")


def test_observed_error_rates_are_marked_with_their_spread() -> None:
    counts = ErrorCounts.from_arrays(
        num_out=[99, 0], num_in=[9, 4], false_positives=[0, 0], false_negatives=[9, 1], prior_prob=0.5
    )
    figure = figures.regions(dict.fromkeys("ab", Region(1.0, 1.0, 1.0)), observed=counts)
    marked = []
    for axes in figure.axes:
        ((point, _, (across, up)),) = axes.containers
        alpha, beta = point.get_xdata()[0], point.get_ydata()[0]
        marked.append(((alpha, *across.get_segments()[0][:, 0]), (beta, *up.get_segments()[0][:, 1])))
    assert marked[0][0][2] == pytest.approx(1 - 0.05 ** (1 / 100))  # Beta(1, 100)
    assert marked[0][1][1] == pytest.approx(0.05 ** (1 / 10))  # Beta(10, 1)
    assert marked[1][0] == pytest.approx((0.5, 0.05, 0.95))  # no trials
    with pytest.raises(InputError, match="observed must have 1 nodes as there are regions, got 2"):
        figures.regions({"a": Region(1.0, 1.0, 1.0)}, observed=counts)


def test_an_empty_region_says_so() -> None:
    (axes,) = figures.regions({"a": Region(4.0, math.inf, 1.0)}).axes
    assert [text.get_text() for text in axes.texts] == ["empty"]
    assert not axes.patches


def test_posterior_line_is_the_density_and_the_shade_its_interval(posterior: Posterior) -> None:
    (axes,) = figures.posteriors({"BMP-R": posterior}, floor=0.0, lower_bound=0.7).axes
    density, prior, floor, bound = axes.lines
    x = np.asarray(density.get_xdata())
    np.testing.assert_array_equal(density.get_ydata(), posterior.marginals["epsilon_right"].pdf(x))
    low, high = axes.get_xlim()
    assert low < 0 < posterior.quantile(0.999) < high
    assert axes.get_ylim()[1] >= np.max(density.get_ydata())
    assert axes.get_xlabel() == r"$\varepsilon_R$ [nats]"
    assert axes.get_ylabel() == "posterior density [1/nat]"
    assert list(np.unique(floor.get_xdata())) == [0.0]
    assert list(np.unique(bound.get_xdata())) == [0.7]
    shade = axes.collections[0].get_paths()[0].vertices
    interval = posterior.interval(0.9)
    assert (np.min(shade[:, 0]), np.max(shade[:, 0])) == pytest.approx((interval.low, interval.high))  # type: ignore[index]
    # N(0, 10) restricted to ε > 0, the floor at even odds.
    expected = 2 * np.exp(NormalPrior()(x))
    np.testing.assert_allclose(np.asarray(prior.get_ydata()), np.where(x >= 0, expected, 0), rtol=1e-6)
    texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    middle = float(posterior.quantile(0.5))
    assert texts[0] == f"BMP-R: {middle:.2f} ({interval.low:.2f} to {interval.high:.2f})"
    assert texts[1:] == ["prior", "sampling alone: 0.00", "proven lower bound: 0.70"]


def test_each_posterior_has_a_panel_with_its_prior(posterior: Posterior, other: Posterior) -> None:
    figure = figures.posteriors({"a": posterior, "b": other})
    assert [sum(line.get_gid() == "prior" for line in axes.lines) for axes in figure.axes] == [1, 1]
    assert [text.get_text()[:6] for text in figure.legends[0].get_texts()] == ["a: 3.2", "b: 3.5", "prior"]


def test_either_parameter_of_a_joint_posterior() -> None:
    joint = make_posterior(definition="bmp")
    (axes,) = figures.posteriors({"BMP": joint}, "epsilon_left").axes
    line = axes.lines[0]
    np.testing.assert_array_equal(line.get_ydata(), joint.marginals["epsilon_left"].pdf(np.asarray(line.get_xdata())))
    with pytest.raises(InputError, match="parameter must be one of epsilon_left, epsilon_right, got none for 'BMP'"):
        figures.posteriors({"BMP": joint})


def test_joint_samples_have_their_density_and_marginals() -> None:
    draws = DRAWS
    figure = figures.joint_samples(draws, "random")
    top, main, side = figure.axes
    assert (main.get_xlabel(), main.get_ylabel()) == (r"$\varepsilon_R$ [nats]", r"$\varepsilon_L$ [nats]")
    assert_inside(main, draws[:, 1], draws[:, 0])
    (hexagons,) = (item for item in main.collections if isinstance(item, PolyCollection))
    assert np.asarray(hexagons.get_array()).sum() == len(draws)
    assert sum(bar.get_height() for bar in top.patches) == len(draws)  # type: ignore[attr-defined]
    assert sum(bar.get_width() for bar in side.patches) == len(draws)  # type: ignore[attr-defined]
    assert hexagons.get_cmap().name == "cividis"


def test_prior_against_epsilon_shows_every_node_and_the_floor() -> None:
    (axes,) = figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED).axes
    nodes, flagged = scatters(axes)
    np.testing.assert_array_equal(points(nodes), np.column_stack([PRIOR, MEDIAN])[~FLAGGED])
    np.testing.assert_array_equal(points(flagged), np.column_stack([PRIOR, MEDIAN])[FLAGGED])
    assert_inside(axes, PRIOR, LOW)
    assert_inside(axes, PRIOR, HIGH)
    bars = [item for item in axes.collections if isinstance(item, LineCollection)]
    assert [len(bar.get_segments()) for bar in bars] == [np.sum(~FLAGGED), np.sum(FLAGGED)]
    np.testing.assert_array_equal(bars[0].get_segments()[0][:, 1], [LOW[~FLAGGED][0], HIGH[~FLAGGED][0]])
    (floor,) = (line for line in axes.lines if line.get_gid() == "floor")
    x = np.asarray(floor.get_xdata())
    np.testing.assert_allclose(np.asarray(floor.get_ydata()), np.log(x / (1 - x)))
    assert "[nats]" in axes.get_ylabel()


def test_prior_against_epsilon_without_flagged_nodes() -> None:
    both = figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED, also_without_flagged=True)
    assert [len(scatters(axes)) for axes in both.axes] == [2, 1]
    assert len(points(scatters(both.axes[1])[0])) == np.sum(~FLAGGED)
    assert both.axes[0].get_ylim() == both.axes[1].get_ylim()


def test_nodes_without_a_finite_value_are_counted() -> None:
    low, high = LOW.copy(), HIGH.copy()
    low[3], high[4] = -np.inf, np.inf
    (axes,) = figures.prior_against_epsilon(PRIOR, MEDIAN, low, high).axes
    assert len(points(scatters(axes)[0])) == K - 2
    assert [text.get_text() for text in axes.texts] == ["not shown: 2 nodes without a finite value"]
    (axes,) = figures.exposure_by(low, PRIOR, group_label="prior").axes
    assert [text.get_text() for text in axes.texts] == ["not shown: 1 node without a finite value"]


def test_equal_priors_are_drawn_apart_above_a_level_floor() -> None:
    same = np.full(K, 0.25)
    (axes,) = figures.prior_against_epsilon(same, MEDIAN, LOW, HIGH).axes
    assert len(np.unique(points(scatters(axes)[0])[:, 0])) == K
    (floor,) = (line for line in axes.lines if line.get_gid() == "floor")
    assert np.asarray(floor.get_ydata()) == pytest.approx(-math.log(3))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.25"]
    assert "all priors are 0.25" in axes.texts[0].get_text()
