"""Pictures of several audits side by side."""

from __future__ import annotations

import numpy as np
from matplotlib.container import ErrorbarContainer

from bmpaudit.attack import ErrorCounts
from bmpaudit.estimation import estimate
from bmpaudit.estimation.posterior import DifferenceMarginal
from bmpaudit.proof import Band
from bmpaudit.report.figures.comparisons import compared_posteriors, comparison
from bmpaudit.report.figures.style import render

CERTAINTY = np.array([0.5, 0.9, 0.999])


def named(*mean: float) -> Band:
    return Band(np.array(mean), np.array(mean) - 1, np.array(mean) + 2)


def test_exposure_curves_and_differences() -> None:
    exposures = {"a $x$": named(9, 5, 1), "b": named(8, 4, 1), "c": named(1, 1, 1)}
    differences = {"b": named(-1, -1, 0), "c": named(-8, -4, 0)}
    figure = comparison(CERTAINTY, exposures, differences, "training nodes")
    left, right = figure.axes
    assert [label.get_text() for label in left.get_xticklabels()] == ["50", "90", "99.9"]
    assert [np.asarray(line.get_ydata()).tolist() for line in left.lines] == [[9, 5, 1], [8, 4, 1], [1, 1, 1]]
    bars = [each for each in right.containers if isinstance(each, ErrorbarContainer)]
    ends = bars[1].lines[2][0].get_segments()
    assert [end[:, 1].tolist() for end in ends] == [[-9, -6], [-5, -2], [-1, 2]]
    assert right.get_ylabel() == r"difference from a \$x\$"
    again = comparison(CERTAINTY, exposures, differences, "training nodes")
    assert render(figure, ["svg"]) == render(again, ["svg"])


def test_posteriors_and_their_difference() -> None:
    first, other = (
        estimate(
            ErrorCounts.from_arrays(
                num_out=300,
                num_in=100,
                false_positives=np.array([errors]),
                false_negatives=np.array([60]),
                prior_prob=0.25,
            ),
            "bmp-r",
        )
        for errors in (100, 50)
    )
    difference = DifferenceMarginal(first.marginal(), other.marginal())
    figure = compared_posteriors({"a": first, "b": other}, {"b": difference}, "epsilon_right")
    assert [axes.get_xlabel() for axes in figure.axes] == [
        r"$\varepsilon_R$ [nats]",
        r"$\varepsilon_R$ minus that of the first [nats]",
    ]
