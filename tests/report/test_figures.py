"""What all pictures have in common: sizes, labels, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from figure_values import (
    CLASSES,
    DEGREES,
    DRAWS,
    FLAGGED,
    HIGH,
    INCHES,
    LOW,
    MEDIAN,
    PANELS,
    PRIOR,
    ROC,
    SHARE,
    WIDTHS,
    make_exposure,
    make_posterior,
    make_reliability,
)
from matplotlib.figure import Figure

from bmpaudit.privacy import ApproximateMP, Region
from bmpaudit.report import figures
from bmpaudit.util.errors import InputError

NAMES = np.array(["Theory", "Neural_Networks", "A class whose name nobody would cut short", "$x$"])
ALL: dict[str, Callable[[figures.Width], Figure]] = {
    "regions": lambda width: figures.regions(PANELS, width=width),
    "regions, one left over": lambda width: figures.regions({**PANELS, "(e)": Region(1.0, 1.0, 1.0)}, width=width),
    "region": lambda width: figures.regions({"a name that is really long": Region(0.123, 12.3, 4.567)}, width=width),
    "regions, with a guarantee": lambda width: figures.regions(PANELS, guarantee=ApproximateMP(2.0, 0.01), width=width),
    "posteriors": lambda width: figures.posteriors(
        {"BMP-R": make_posterior(), "with a name of some length": make_posterior(0.3)},
        floor=0.0,
        lower_bound=0.5,
        width=width,
    ),
    "posterior": lambda width: figures.posteriors({"MP": make_posterior(definition="mp")}, width=width),
    "joint": lambda width: figures.joint_samples(DRAWS, "random", width=width),
    "prior": lambda width: figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED, width=width),
    "prior, both": lambda width: figures.prior_against_epsilon(
        PRIOR, MEDIAN, LOW, HIGH, FLAGGED, also_without_flagged=True, width=width
    ),
    "by class": lambda width: figures.exposure_by(SHARE, NAMES[CLASSES], group_label="class", width=width),
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


def test_texts_of_the_user_are_no_formulas() -> None:
    names = ["$x^2$", r"\frac{", "<script>", "a_b"]
    (axes,) = figures.exposure_by(MEDIAN, np.array(names)[CLASSES], group_label="class").axes
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert any(label.startswith(r"\$x^2\$ (") for label in shown)  # drawn as $x^2$
    assert all(not mpl.cbook.is_math_text(label) for label in shown)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.regions(PANELS, width="three"), "width must be one or two, got width='three'"),  # type: ignore[arg-type]
        (lambda: figures.regions({}), "regions must be at least one"),
        (lambda: figures.regions({"a": Region([1.0, 2.0], 1.0, 1.0)}), "each region must be a single one"),
        (lambda: figures.posteriors({}), "posteriors must be at least one"),
        (lambda: figures.posteriors({"a": make_posterior()}, floor=-math.inf), "floor must be finite"),
        (lambda: figures.posteriors({"a": make_posterior()}, "epsilon"), "must be one of epsilon_right for 'a'"),
        (lambda: figures.prior_against_epsilon([2.0], [1], [1], [1]), r"prior_prob must be in \[0, 1\]"),
        (lambda: figures.prior_against_epsilon([0.2], [1, 2], [1], [1]), r"median must have shape \(1,\), got \(2,\)"),
        (lambda: figures.prior_against_epsilon([0.2], [math.inf], [1], [1]), "at least one finite value"),
        (lambda: figures.save_figure(Figure(), "figure.pdf"), "must not end in .pdf or .png"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw()


@pytest.mark.parametrize("guarantee", [ApproximateMP(2.0, 0.0), ApproximateMP(0.5, 0.02)])
def test_a_guarantee_is_outlined_in_every_region(guarantee: ApproximateMP) -> None:
    figure = figures.regions(PANELS, guarantee=guarantee)
    for axes in figure.axes:
        outline = axes.get_lines()[-1].get_xydata()
        np.testing.assert_array_equal(outline, [*guarantee.corners, guarantee.corners[0]])
    (legend,) = figure.legends
    (text,) = legend.get_texts()
    assert text.get_text().startswith("guaranteed: MP")
    assert ("delta" in text.get_text()) == (guarantee.delta > 0)
