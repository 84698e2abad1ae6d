"""Pictures of what is exposed, and of how well the attack does."""

from __future__ import annotations

import numpy as np
import pytest
from figure_values import (
    CLASSES,
    DEGREES,
    MEDIAN,
    PRIOR,
    ROC,
    K,
    assert_inside,
    make_exposure,
    make_reliability,
    points,
    scatters,
)
from matplotlib.collections import PathCollection
from scipy.special import logit

from bmpaudit.report import figures


def test_exposure_by_class_has_quartiles_means_and_every_node() -> None:
    (axes,) = figures.exposure_by(MEDIAN, np.array(list("abcd"))[CLASSES], group_label="class").axes
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
    (axes,) = figures.exposure_by(np.array([0.0, most]), np.array(["a", "b"]), group_label="class").axes
    assert axes.get_xlim() == pytest.approx(ends)


def test_whiskers_reach_one_and_a_half_boxes() -> None:
    # Quartiles 2 and 4: whiskers stay within [-1, 7].
    values = np.array([-1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 7.1])
    (axes,) = figures.exposure_by(values, np.array(["a"] * 7), group_label="class").axes
    (ends,) = (item.get_segments() for item in axes.collections if item.get_gid() == "whiskers")  # type: ignore[attr-defined]
    assert [end[0, 0] for end in ends] == [-1.0, 4.0]
    np.testing.assert_array_equal(np.sort(points(scatters(axes)[0])[:, 0]), values)  # the outlier is a point


def test_exposure_by_number_has_binned_means() -> None:
    (axes,) = figures.exposure_by(MEDIAN, PRIOR, group_label="prior").axes
    (line,) = axes.lines
    order = np.argsort(PRIOR).reshape(10, -1)
    np.testing.assert_allclose(np.asarray(line.get_xdata()), np.median(PRIOR[order], axis=1))
    np.testing.assert_allclose(np.asarray(line.get_ydata()), np.mean(MEDIAN[order], axis=1))
    assert len(points(scatters(axes)[0])) == K
    assert_inside(axes, PRIOR, MEDIAN)


def test_bins_never_part_equal_numbers() -> None:
    (axes,) = figures.exposure_by(MEDIAN, CLASSES, group_label="number").axes
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2, 3])
    np.testing.assert_allclose(np.asarray(line.get_ydata()), [MEDIAN[each == CLASSES].mean() for each in range(4)])
    (band,) = (item for item in axes.collections if not isinstance(item, PathCollection))
    ends = np.percentile(MEDIAN[CLASSES == 2], [25, 75])
    vertices = np.asarray(band.get_paths()[0].vertices)
    np.testing.assert_allclose(np.unique(vertices[vertices[:, 0] == 2, 1]), ends)


@pytest.mark.parametrize("shift", [0, 1])
def test_a_logarithmic_axis_shows_all_degrees(shift: int) -> None:
    degrees = DEGREES - DEGREES.min() + shift
    (axes,) = figures.exposure_by(MEDIAN, degrees, group_label="degree", log_axis=True).axes
    assert_inside(axes, degrees, MEDIAN)
    assert axes.get_xscale() == ("log" if shift else "symlog")
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[: 2 if shift else 3] == (["1", "2"] if shift else ["0", "1", "2"])


def test_roc_curves_on_both_kinds_of_axes() -> None:
    figure = figures.roc({**ROC, "part": (np.array([0.0, 0.1]), np.array([0.0, 0.3]))})
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


@pytest.mark.parametrize(("real", "verdict"), [(5.5, "above all"), (4.0, "reached by 1"), (0.0, "reached by 21")])
def test_permutation_test_is_a_histogram_with_the_real_statistic(real: float, verdict: str) -> None:
    shuffled = np.repeat(np.linspace(2.0, 4.0, 19), [1, 3, *[1] * 16, 1])
    figure = figures.permutation_test(real, shuffled)
    (axes,) = figure.axes
    bars = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in axes.patches]  # type: ignore[attr-defined]
    assert sum(height for *_, height in bars) == len(shuffled) == 21
    assert (bars[0][0], bars[-1][1]) == pytest.approx((2.0, 4.0))
    assert [height for *_, height in bars] == np.histogram(shuffled, 12)[0].tolist()
    assert_inside(axes, [*shuffled, real], [0, 3])
    assert list(np.unique(axes.lines[0].get_xdata())) == [real]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["shuffled memberships (21 times)", f"real memberships: {verdict}"]


def test_equal_statistics_are_one_bar() -> None:
    (axes,) = figures.permutation_test(3.0, np.full(3, 3.0)).axes
    assert [bar.get_height() for bar in axes.patches if bar.get_height()] == [3]  # type: ignore[attr-defined]
