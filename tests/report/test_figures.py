import math
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import image
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.text import Text
from scipy.special import logit

from bmpaudit.attack import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation import NormalPrior, Posterior, estimate
from bmpaudit.privacy import Region
from bmpaudit.proof import ExposureCurve, Reliability
from bmpaudit.proof.bands import Band
from bmpaudit.report import figures
from bmpaudit.report.figures import style

INCHES = {"one": 3.35, "two": 6.9}
WIDTHS: list[figures.Width] = ["one", "two"]
PANELS = {
    "(a)": Region(1.0, 0.5, 0.5),
    "(b)": Region(4.0, 0.5, 2.0),
    "(c)": Region(0.25, 2.0, math.inf),
    "(d)": Region(4.0, math.inf, 2.0),
}
K = 200
RNG = np.random.default_rng(5)
PRIOR = RNG.uniform(0.02, 0.8, K)
LOW = np.log(PRIOR / (1 - PRIOR)) + RNG.gamma(1.0, 1.0, K)
MEDIAN = LOW + RNG.gamma(2.0, 0.5, K)
HIGH = MEDIAN + RNG.gamma(2.0, 0.5, K)
FLAGGED = np.arange(K) % 7 == 0
CLASSES = RNG.integers(0, 4, K)
DEGREES = RNG.geometric(0.3, K) - 1
CLOUDS = {"random": RNG.normal([2, 3], 0.2, (300, 2)), "snowball": RNG.normal([5, 4], 0.4, (300, 2))}
SHARE = RNG.beta(0.4, 3.0, K)
ROC = {"weak": ([0, 0.001, 0.1, 1], [0, 0.02, 0.4, 1]), "strong": ([0, 0.001, 0.1, 1], [0, 0.05, 0.5, 1])}


@cache
def make_posterior(prior_prob: float = 0.5, definition: Any = "bmp-r", false_positives: int = 10) -> Posterior:
    counts = ErrorCounts.from_arrays(
        num_out=[100] * 3,
        num_in=100,
        false_positives=[false_positives, 20, 15],
        false_negatives=[30, 25, 40],
        prior_prob=prior_prob,
    )
    return estimate(counts, definition)


@cache
def make_exposure(strength: float = 1.0) -> ExposureCurve:
    mean = 100 * strength * np.array([1.0, 0.6, 0.2, 0.02, 0.0])
    band = Band(mean, 0.8 * mean, 1.2 * mean)
    return ExposureCurve(
        precision=np.array([0.5, 0.9, 0.95, 0.99, 0.999]),
        named=band,
        correct=band,
        interval=Band(mean, 0.8 * mean, 1.2 * mean + strength * np.array([0.0, 0.0, 0.0, 0.0, 40.0])),
        share_correct=Band(np.full(5, 0.99), np.full(5, 0.98), np.full(5, 1.0)),
        total=250.0,
        num_models=64,
        level=0.95,
        still_to_come=strength * np.array([0.0, 0.0, 0.0, 0.0, 40.0]),
        by_prior=np.zeros(5),
    )


@cache
def make_reliability(scale: float = 1.0) -> Reliability:
    return Reliability(
        edges=np.array([0.0, 0.01, 0.5, 0.99, 0.999, 1.0]),
        num_challenges=np.array([9000, 100, 50, 0, 9]),
        stated=np.array([0.004, 0.3, 0.8, math.nan, 0.9995]),
        observed=np.array([0.005 * scale, 0.31 * scale, 0.8 * scale, math.nan, 1.0]),
    )


def make_table() -> pd.DataFrame:
    rows = [
        {"dataset": dataset, "fraction": fraction, "sampling": sampling, "epsilon_right": 2 + 4 * fraction + extra}
        for dataset in ("cora", "citeseer")
        for fraction in (0.5, 0.25)
        for sampling, extra in (("random", 0.0), ("snowball", 3.0 if dataset == "cora" else -0.5))
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return make_posterior()


@pytest.fixture(scope="module")
def other() -> Posterior:
    return make_posterior(0.3, false_positives=3)


ALL: dict[str, Callable[[figures.Width], Figure]] = {
    "regions": lambda width: figures.regions(PANELS, width=width),
    "regions, one left over": lambda width: figures.regions([*PANELS.values(), Region(1.0, 1.0, 1.0)], width=width),
    "region": lambda width: figures.regions({"a name that is really long": Region(0.123, 12.3, 4.567)}, width=width),
    "posteriors": lambda width: figures.posteriors(
        {"BMP-R": make_posterior(), "with a name of some length": make_posterior(0.3)},
        floor=0.0,
        lower_bound=0.5,
        width=width,
    ),
    "posterior panels": lambda width: figures.posteriors(
        {"BMP-R": make_posterior(), "MP": make_posterior(definition="mp")}, panels=True, width=width
    ),
    "shuffled posteriors": lambda width: figures.shuffled_posteriors(
        make_posterior(), [make_posterior(0.4)], width=width
    ),
    "joint": lambda width: figures.joint_samples(CLOUDS, width=width),
    "joint, one": lambda width: figures.joint_samples({"random": CLOUDS["random"]}, width=width),
    "joint panels": lambda width: figures.joint_sample_panels(
        {"full edges, weak": CLOUDS, "no edges, weak": CLOUDS, "full edges, strong": CLOUDS}, width=width
    ),
    "prior": lambda width: figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED, width=width),
    "prior, both": lambda width: figures.prior_against_epsilon(
        PRIOR, MEDIAN, LOW, HIGH, FLAGGED, flagged="both", width=width
    ),
    "effects": lambda width: figures.marginal_effects(
        make_table(), ["fraction", "sampling"], by="dataset", width=width
    ),
    "by class": lambda width: figures.exposure_by(
        SHARE,
        CLASSES,
        categorical=True,
        names=["Theory", "Neural_Networks", "A class whose name nobody would cut short", "$x$"],
        group_label="class",
        width=width,
    ),
    "by degree": lambda width: figures.exposure_by(SHARE, DEGREES, group_label="degree", log_axis=True, width=width),
    "roc": lambda width: figures.roc(ROC, width=width),
    "exposure": lambda width: figures.exposure(
        {"clean": make_exposure(), "noisy, with a name of some length": make_exposure(0.1)},
        without_model={0.5: 30.0, 0.99: 1.5},
        width=width,
    ),
    "exposure, nobody": lambda width: figures.exposure({"clean": make_exposure(0.0)}, width=width),
    "reliability": lambda width: figures.reliability(
        {"clean": make_reliability(), "noisy, with a name of some length": make_reliability(0.9)}, width=width
    ),
    "permutation test": lambda width: figures.permutation_test(0.5, np.linspace(0.1, 0.2, 19), width=width),
}


@cache
def drawn(name: str, width: figures.Width) -> Figure:
    return ALL[name](width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ALL)
def test_is_as_wide_as_asked_and_nothing_leaves_it(name: str, width: figures.Width) -> None:
    figure = drawn(name, width)
    across, up = figure.get_size_inches()
    assert across == INCHES[width]
    assert up < 9
    for _ in range(2):  # drawing it again, in anybody's settings, moves nothing out
        box = figure.get_tightbbox()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= across
        assert box.y1 <= up
        figure.draw_without_rendering()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ALL)
def test_axes_have_labels_and_tick_labels_do_not_overlap(name: str, width: figures.Width) -> None:
    figure = drawn(name, width)
    assert any(axes.get_xlabel() for axes in figure.axes) or figure.get_supxlabel()
    for axes in figure.axes:
        for axis, horizontal in ((axes.xaxis, True), (axes.yaxis, False)):
            low, high = sorted(axis.get_view_interval())
            shown = [
                tick.label1.get_window_extent()
                for tick in axis.get_major_ticks()
                if tick.label1.get_visible() and tick.label1.get_text() and low <= tick.get_loc() <= high
            ]
            ends = sorted((box.x0, box.x1) if horizontal else (box.y0, box.y1) for box in shown)
            assert all(first[1] <= second[0] + 1 for first, second in pairwise(ends))


def test_no_pyplot_and_settings_of_the_user_stay(tmp_path: Path) -> None:
    program = """
import sys, matplotlib
matplotlib.rcParams["font.size"] = 31.0
from bmpaudit.privacy import Region
from bmpaudit.proof import ExposureCurve, Reliability
from bmpaudit.proof.bands import Band
from bmpaudit.report import figures
figure = figures.regions([Region(1.0, 1.0, 1.0)])
figures.save_figure(figure, sys.argv[1])
print(matplotlib.rcParams["font.size"], figure.axes[0].xaxis.label.get_size(), "matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "figure")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["31.0", "9.0", "False"]


def test_a_notebook_can_display_it_without_pyplot(tmp_path: Path) -> None:
    figure = figures.regions([Region(1.0, 1.0, 1.0)])
    with mpl.rc_context({"font.size": 31.0}):
        picture = figure._repr_png_()  # type: ignore[attr-defined]
    (tmp_path / "figure.png").write_bytes(picture)
    assert image.imread(tmp_path / "figure.png").shape[1] == pytest.approx(6.9 * 150, abs=1)
    assert picture == figure._repr_png_()  # type: ignore[attr-defined]


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
    rates = figures.ErrorRates.from_counts(counts)
    assert rates.alpha_high[0] == pytest.approx(1 - 0.05 ** (1 / 100))  # Beta(1, 100)
    assert rates.beta_low[0] == pytest.approx(0.05 ** (1 / 10))  # Beta(10, 1)
    assert (rates.alpha_low[1], rates.alpha[1], rates.alpha_high[1]) == pytest.approx((0.05, 0.5, 0.95))  # no trials
    figure = figures.regions([Region(1.0, 1.0, 1.0)] * 2, observed=rates)
    for k, axes in enumerate(figure.axes):
        (container,) = axes.containers
        point, _, (across, up) = container
        assert (point.get_xdata()[0], point.get_ydata()[0]) == (rates.alpha[k], rates.beta[k])
        assert across.get_segments()[0][:, 0] == pytest.approx([rates.alpha_low[k], rates.alpha_high[k]])
        assert up.get_segments()[0][:, 1] == pytest.approx([rates.beta_low[k], rates.beta_high[k]])


def test_an_empty_region_says_so() -> None:
    (axes,) = figures.regions([Region(4.0, math.inf, 1.0)]).axes
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


def test_posteriors_share_a_prior_where_it_is_the_same(posterior: Posterior, other: Posterior) -> None:
    def num_priors(figure: Figure) -> int:
        return sum(line.get_gid() == "prior" for axes in figure.axes for line in axes.lines)

    assert num_priors(figures.posteriors({"a": posterior, "b": posterior})) == 1
    assert num_priors(figures.posteriors({"a": posterior, "b": other})) == 2  # another floor
    assert num_priors(figures.posteriors({"a": posterior, "b": other}, show_prior=False)) == 0
    assert num_priors(figures.posteriors({"a": posterior, "b": other}, panels=True)) == 2


def test_different_parameters_share_an_axis_called_epsilon(posterior: Posterior) -> None:
    figure = figures.posteriors({"BMP-R": posterior, "MP": make_posterior(definition="mp")})
    assert figure.axes[0].get_xlabel() == r"$\varepsilon$ [nats]"


def test_either_parameter_of_a_joint_posterior() -> None:
    joint = make_posterior(definition="bmp")
    (axes,) = figures.posteriors({"BMP": joint}, "epsilon_left").axes
    line = axes.lines[0]
    np.testing.assert_array_equal(line.get_ydata(), joint.marginals["epsilon_left"].pdf(np.asarray(line.get_xdata())))
    with pytest.raises(InputError, match="parameter must be one of epsilon_left, epsilon_right, got none for 'BMP'"):
        figures.posteriors({"BMP": joint})


def test_shuffled_posteriors_are_relative_to_their_highest(posterior: Posterior, other: Posterior) -> None:
    (axes,) = figures.shuffled_posteriors(posterior, [other, other]).axes
    assert len(axes.lines) == 3
    assert all(np.max(line.get_ydata()) == 1 for line in axes.lines)


def scatters(axes: Axes) -> list[PathCollection]:
    return [item for item in axes.collections if isinstance(item, PathCollection)]


def points(item: PathCollection) -> np.ndarray[Any, Any]:
    return np.asarray(item.get_offsets())


def test_joint_samples_have_epsilon_right_across() -> None:
    (axes,) = figures.joint_samples(CLOUDS).axes
    assert axes.get_xlabel() == r"$\varepsilon_R$ [nats]"
    assert axes.get_ylabel() == r"$\varepsilon_L$ [nats]"
    for cloud, draws in zip(scatters(axes), CLOUDS.values(), strict=True):
        np.testing.assert_array_equal(points(cloud), draws[:, ::-1])
        assert_inside(axes, draws[:, 1], draws[:, 0])


def test_a_single_joint_sample_has_its_density_and_marginals() -> None:
    draws = CLOUDS["random"]
    figure = figures.joint_samples({"random": draws})
    top, main, side = figure.axes
    (hexagons,) = (item for item in main.collections if isinstance(item, PolyCollection))
    assert np.asarray(hexagons.get_array()).sum() == len(draws)
    assert sum(bar.get_height() for bar in top.patches) == len(draws)  # type: ignore[attr-defined]
    assert sum(bar.get_width() for bar in side.patches) == len(draws)  # type: ignore[attr-defined]
    assert hexagons.get_cmap().name == "cividis"


def test_joint_panels_share_axes_and_colours() -> None:
    figure = figures.joint_sample_panels({"a": CLOUDS, "b": {"snowball": CLOUDS["snowball"]}})
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert (first.get_title(), second.get_title()) == ("a", "b")
    assert np.array_equal(scatters(first)[1].get_facecolor(), scatters(second)[0].get_facecolor())


def test_many_draws_are_one_picture_in_the_file() -> None:
    many = np.random.default_rng(0).normal(size=(style.RASTERIZE_ABOVE + 1, 2))
    (axes,) = figures.joint_samples({"few": CLOUDS["random"], "many": many}).axes
    assert [cloud.get_rasterized() for cloud in scatters(axes)] == [False, True]


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
    left_out = figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED, flagged="left-out")
    assert [len(points(item)) for item in scatters(left_out.axes[0])] == [np.sum(~FLAGGED)]
    both = figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED, flagged="both")
    assert [len(scatters(axes)) for axes in both.axes] == [2, 1]
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


def test_marginal_effects_show_means_and_differences() -> None:
    table = make_table()
    figure = figures.marginal_effects(table, ["fraction", "sampling"], by="dataset")
    cora, citeseer = figure.axes
    assert (cora.get_title(), citeseer.get_title()) == ("cora", "citeseer")
    labels = [label.get_text() for label in cora.get_yticklabels()]
    assert labels == ["fraction", "0.25", "0.5", "sampling", "random", "snowball"]
    means = [points(item)[0] for item in scatters(cora) if item.get_gid() == "mean"]
    # Fractions 0.25 and 0.5 add 1 and 2 to 2, snowball half of the time 3; the same by sampling.
    np.testing.assert_allclose(means, [[4.5, 1], [5.5, 2], [3.5, 4], [6.5, 5]])
    assert [text.get_text() for text in cora.texts] == ["Δ +1.00", "Δ +3.00"]
    assert [text.get_text() for text in citeseer.texts] == ["Δ +1.00", "Δ −0.50"]
    dots = np.concatenate([points(item) for item in scatters(cora) if item.get_gid() != "mean"])
    assert len(dots) == 2 * 4
    assert_inside(cora, dots[:, 0], dots[:, 1])
    assert figure.get_supxlabel() == r"$\varepsilon_R$ [nats]"


def test_levels_of_a_categorical_keep_their_order() -> None:
    table = make_table()
    table["sampling"] = pd.Categorical(table["sampling"], ["snowball", "random", "unused"])
    (axes,) = figures.marginal_effects(table, ["sampling"]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["sampling", "snowball", "random"]


def test_exposure_by_class_has_quartiles_means_and_every_node() -> None:
    (axes,) = figures.exposure_by(MEDIAN, CLASSES, categorical=True, names="abcd", group_label="class").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{name} ({np.sum(number == CLASSES)})" for number, name in enumerate("abcd")
    ]
    for number, (box, cloud) in enumerate(zip(axes.patches, scatters(axes), strict=True)):
        inside = MEDIAN[number == CLASSES]
        np.testing.assert_array_equal(points(cloud)[:, 0], inside)
        left, width = box.get_x(), box.get_width()  # type: ignore[attr-defined]
        assert (left, left + width) == pytest.approx(tuple(np.percentile(inside, [25, 75])))
    medians = [item.get_segments()[0][0, 0] for item in axes.collections if item.get_gid() == "median"]  # type: ignore[attr-defined]
    np.testing.assert_allclose(medians, [np.median(MEDIAN[number == CLASSES]) for number in range(4)])
    means = [np.asarray(line.get_xdata()) for line in axes.lines if line.get_gid() == "mean"]
    np.testing.assert_allclose(np.concatenate(means), [MEDIAN[number == CLASSES].mean() for number in range(4)])
    assert_inside(axes, MEDIAN, CLASSES)


@pytest.mark.parametrize(("most", "ends"), [(0.5, (-0.01, 0.52)), (0.0, (-0.02, 1.0))])
def test_an_axis_of_shares_begins_at_zero(most: float, ends: tuple[float, float]) -> None:
    (axes,) = figures.exposure_by([0.0, most], ["a", "b"], group_label="class").axes
    assert axes.get_xlim() == pytest.approx(ends)


def test_whiskers_reach_one_and_a_half_boxes() -> None:
    # Quartiles 2 and 4: whiskers stay within [-1, 7].
    values = [-1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 7.1]
    (axes,) = figures.exposure_by(values, ["a"] * 7, group_label="class").axes
    (ends,) = (item.get_segments() for item in axes.collections if item.get_gid() == "whiskers")  # type: ignore[attr-defined]
    assert [end[0, 0] for end in ends] == [-1.0, 4.0]
    np.testing.assert_array_equal(np.sort(points(scatters(axes)[0])[:, 0]), values)  # the outlier is a point


def test_texts_of_the_user_are_no_formulas() -> None:
    names = ["$x^2$", r"\frac{", "<script>", "a_b"]
    (axes,) = figures.exposure_by(MEDIAN, np.array(names)[CLASSES], group_label="class").axes
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert any(label.startswith(r"\$x^2\$ (") for label in shown)  # drawn as $x^2$
    assert all(not mpl.cbook.is_math_text(label) for label in shown)


def test_exposure_by_number_has_binned_means() -> None:
    (axes,) = figures.exposure_by(MEDIAN, PRIOR, group_label="prior", num_bins=4).axes
    (line,) = axes.lines
    order = np.argsort(PRIOR).reshape(4, -1)
    np.testing.assert_allclose(np.asarray(line.get_xdata()), np.median(PRIOR[order], axis=1))
    np.testing.assert_allclose(np.asarray(line.get_ydata()), np.mean(MEDIAN[order], axis=1))
    assert len(points(scatters(axes)[0])) == K
    assert_inside(axes, PRIOR, MEDIAN)


def test_bins_never_part_equal_numbers() -> None:
    bins = figures.binned_quartiles(MEDIAN, DEGREES, num_bins=5)
    assert bins.num_nodes.sum() == K
    assert len(bins.x) <= 5
    few = figures.binned_quartiles(MEDIAN, CLASSES, num_bins=10)
    np.testing.assert_array_equal(few.x, [0, 1, 2, 3])
    np.testing.assert_array_equal(few.num_nodes, np.bincount(CLASSES))
    lower, median, upper = np.percentile(MEDIAN[CLASSES == 2], [25, 50, 75])
    assert (few.lower[2], few.median[2], few.upper[2]) == (lower, median, upper)
    assert few.mean[2] == MEDIAN[CLASSES == 2].mean()


@pytest.mark.parametrize("shift", [0, 1])
def test_a_logarithmic_axis_shows_all_degrees(shift: int) -> None:
    degrees = DEGREES - DEGREES.min() + shift
    (axes,) = figures.exposure_by(MEDIAN, degrees, group_label="degree", log_axis=True).axes
    assert_inside(axes, degrees, MEDIAN)
    assert axes.get_xscale() == ("log" if shift else "symlog")
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[: 2 if shift else 3] == (["1", "2"] if shift else ["0", "1", "2"])


def test_roc_curves_on_both_kinds_of_axes() -> None:
    figure = figures.roc({**ROC, "part": ([0.0, 0.1], [0.0, 0.3])})
    linear, logarithmic = figure.axes
    for axes in (linear, logarithmic):
        curves = [line for line in axes.lines if line.get_gid() != "diagonal"]
        for line, (fpr, tpr) in zip(curves, ROC.values(), strict=False):
            np.testing.assert_array_equal(line.get_xdata(), fpr)
            np.testing.assert_array_equal(line.get_ydata(), tpr)
    assert (logarithmic.get_xscale(), logarithmic.get_yscale()) == ("log", "log")
    assert logarithmic.get_xlim() == (1e-3, 1)
    area = 0.001 * 0.01 + 0.099 * 0.21 + 0.9 * 0.7
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[0] == f"weak, AUC {area:.3f}"
    assert texts[2:] == ["part", "guessing"]
    assert linear.get_ylabel() == "true positive rate"
    assert figure.get_supxlabel() == "false positive rate"


def test_exposure_has_a_band_and_says_where_models_are_too_few() -> None:
    figure = figures.exposure({"clean": make_exposure(), "noisy": make_exposure(0.1)}, without_model={0.5: 30.0})
    (axes,) = figure.axes
    line, settled, open_points, *_, reference = axes.lines
    np.testing.assert_allclose(np.asarray(line.get_xdata()), logit(make_exposure().precision))
    np.testing.assert_allclose(np.asarray(line.get_ydata()), make_exposure().correct.mean)
    assert axes.get_yscale() == "log"  # from 100 down to 0.2
    # More models would be needed at 99.9 %, where much is still to come.
    assert len(settled.get_xdata()) == 4  # type: ignore[arg-type]
    assert len(open_points.get_xdata()) == 1  # type: ignore[arg-type]
    assert open_points.get_markerfacecolor() == "white"
    assert list(reference.get_ydata()) == [30.0]  # type: ignore[arg-type]
    band = axes.collections[0].get_paths()[0].vertices
    assert np.max(np.asarray(band)[:, 1]) == 120
    assert [label.get_text() for label in axes.get_xticklabels()] == ["50", "90", "95", "99", "99.9"]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["clean", "noisy", "without a model"]
    assert [text.get_text() for text in axes.texts] == ["64 models, 95 % confidence"]


def test_nobody_named_is_a_line_at_zero() -> None:
    (axes,) = figures.exposure({"clean": make_exposure(0.0)}, without_model={0.5: 0.0}).axes
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim() == (0, 1)
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == ["clean"]


def test_reliability_is_in_log_odds_and_leaves_out_empty_bins() -> None:
    figure = figures.reliability({"clean": make_reliability()})
    (axes,) = figure.axes
    (cloud,) = scatters(axes)
    stated, observed = points(cloud).T
    np.testing.assert_allclose(stated, logit([0.004, 0.3, 0.8, 0.9995]))
    # All nine of the surest were members: drawn open, at 9.5/10.
    np.testing.assert_allclose(observed, logit([0.005, 0.31, 0.8, 9.5 / 10]))
    assert cloud.get_facecolors()[-1, 3] == 0  # type: ignore[attr-defined]
    assert (np.argsort(cloud.get_sizes()) == [3, 2, 1, 0]).all()
    assert axes.get_xlim() == axes.get_ylim()
    assert_inside(axes, stated, observed)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    error = (9000 * 0.001 + 100 * 0.01 + 9 * 0.0005) / 9159
    assert texts == [f"clean: off by {error:.4f} on average", "perfect calibration"]


@pytest.mark.parametrize(("real", "verdict"), [(0.5, "above all"), (0.2, "reached by 1"), (0.0, "reached by 19")])
def test_permutation_test_has_a_dot_for_each_shuffling(real: float, verdict: str) -> None:
    shuffled = np.linspace(0.1, 0.2, 19)
    figure = figures.permutation_test(real, shuffled)
    (axes,) = figure.axes
    dots = points(scatters(axes)[0])
    np.testing.assert_array_equal(dots[:, 0], shuffled)
    assert_inside(axes, dots[:, 0], dots[:, 1])
    assert list(np.unique(axes.lines[0].get_xdata())) == [real]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["shuffled memberships (19 times)", f"real memberships: {verdict}"]


def test_equal_statistics_are_piled() -> None:
    (axes,) = figures.permutation_test(0.3, [0.1, 0.1, 0.1]).axes
    np.testing.assert_array_equal(points(scatters(axes)[0])[:, 1], [0.5, 1.5, 2.5])


def assert_inside(axes: Axes, x: Any, y: Any) -> None:
    for values, ends in ((x, axes.get_xlim()), (y, axes.get_ylim())):
        assert min(ends) <= np.min(values)
        assert np.max(values) <= max(ends)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.regions(PANELS, width="three"), "width must be one or two, got width='three'"),  # type: ignore[arg-type]
        (lambda: figures.regions([]), "regions must be at least one"),
        (lambda: figures.regions([Region([1.0, 2.0], 1.0, 1.0)]), "each region must be a single one"),
        (lambda: figures.posteriors({}), "posteriors must be at least one"),
        (lambda: figures.posteriors({"a": make_posterior()}, floor=-math.inf), "floor must be finite"),
        (lambda: figures.posteriors({"a": make_posterior()}, "epsilon"), "must be one of epsilon_right for 'a'"),
        (lambda: figures.joint_samples({}), "samples must be at least one"),
        (lambda: figures.joint_samples({"a": [1.0, 2.0]}), r"samples must have shape \(n, 2\), got \(2,\) for 'a'"),
        (lambda: figures.joint_samples({"a": [[1.0, math.nan]]}), "samples must be finite"),
        (lambda: figures.prior_against_epsilon([2.0], [1], [1], [1]), r"prior_prob must be in \[0, 1\]"),
        (lambda: figures.prior_against_epsilon([0.2], [1, 2], [1], [1]), r"median must have shape \(1,\), got \(2,\)"),
        (lambda: figures.prior_against_epsilon([0.2], [math.inf], [1], [1]), "at least one finite value"),
        (lambda: figures.marginal_effects(make_table(), ["nothing"]), "table must have columns nothing, epsilon_right"),
        (lambda: figures.exposure_by([1.0], [1, 2], group_label=""), r"groups must have shape \(1,\)"),
        (lambda: figures.exposure_by([1.0], ["a"], group_label="", categorical=False), "groups must be numbers"),
        (lambda: figures.exposure({}), "curves must be at least one"),
        (lambda: figures.reliability({}), "diagrams must be at least one"),
        (lambda: figures.roc({"a": ([0, 1, 0.5], [0, 1, 1])}), "fpr of 'a' must be ascending"),
        (lambda: figures.permutation_test(math.nan, [0.1]), "null_statistics must be finite"),
        (lambda: figures.save_figure(Figure(), "figure.pdf"), "must not end in .pdf or .png"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw()


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    saved = [
        figures.save_figure(figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED), tmp_path / name)
        for name in ("v1.0", "b")
    ]
    assert saved[0].pdf == tmp_path / "v1.0.pdf"
    assert saved[0].pdf.read_bytes() == saved[1].pdf.read_bytes()
    assert saved[0].png.read_bytes() == saved[1].png.read_bytes()
    content = saved[0].pdf.read_bytes()
    assert b"CreationDate" not in content
    assert b"/Type3" not in content
    assert image.imread(saved[0].png).shape[1] == pytest.approx(3.35 * 300, abs=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.pdf", "b.png", "v1.0.pdf", "v1.0.png"]


def test_a_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = figures.permutation_test(0.5, [0.1, 0.2])
    saved = figures.save_figure(figure, tmp_path / "a")
    before = saved.pdf.read_bytes(), saved.png.read_bytes()
    save = figure.savefig

    def fail(path: Path, **options: Any) -> None:
        save(path, **options)
        if path.suffix == ".png":
            raise OSError("disk full")

    figure.axes[0].add_artist(Text(0.3, 0.5, "changed"))
    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        figures.save_figure(figure, tmp_path / "a")
    assert (saved.pdf.read_bytes(), saved.png.read_bytes()) == before
    assert len(list(tmp_path.iterdir())) == 2
