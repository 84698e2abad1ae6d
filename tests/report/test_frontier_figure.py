"""The picture of a sweep."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from bmpaudit.report.figures.comparisons import FrontierPoint, frontier
from bmpaudit.util.errors import InputError


def point(
    number: int, group: str, accuracy: float, exposed: float, proven: float | None, *fronts: bool
) -> FrontierPoint:
    limits = (accuracy, accuracy - 0.01, accuracy + 0.02)
    return FrontierPoint(number, group, limits, (exposed, exposed - 1, exposed + 2), proven, *fronts)


def test_points_bars_and_fronts() -> None:
    points = [
        point(1, "clean", 0.9, 20, 3.0, True, True),
        point(2, "clean", 0.8, 30, 4.0, False, False),
        point(3, "a $b$", 0.7, 5, None, True, True),
    ]
    figure = frontier(points)
    left, right = figure.axes
    bars = [each for each in left.containers if isinstance(each, ErrorbarContainer)]
    assert [np.asarray(bar.lines[0].get_xdata()).tolist() for bar in bars] == [[20, 30], [5]]
    across, up = (bars[0].lines[2][place].get_segments()[0].tolist() for place in (0, 1))
    assert np.allclose(across, [[19, 90], [22, 90]])
    assert np.allclose(up, [[20, 89], [20, 92]])
    (line,) = [each for each in left.lines if each.get_linestyle() == "-"]
    assert np.allclose(line.get_xydata(), [[5, 70], [20, 90]])
    assert [text.get_text() for text in left.texts] == ["3", "1"]
    assert right.get_xticklabels()[0].get_text() == "nothing"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["clean", r"a \$b\$", "not beaten by any other"]


def test_no_points() -> None:
    with pytest.raises(InputError, match="points must be at least one"):
        frontier([])
