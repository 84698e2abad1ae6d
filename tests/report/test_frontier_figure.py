"""The picture of a sweep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

from bmpaudit.report.figures.comparisons import frontier
from bmpaudit.util.errors import InputError


def point(
    number: int, release: str, accuracy: float, exposed: float, proven: float | None, **flags: bool
) -> dict[str, Any]:
    return {
        "point": number,
        "release": release,
        "accuracy": accuracy,
        "accuracy_low": accuracy - 0.01,
        "accuracy_high": accuracy + 0.02,
        "named_90": exposed,
        "named_90_low": exposed - 1,
        "named_90_high": exposed + 2,
        "proven_right": proven,
        **({"on_front": False, "is_ceiling_right": False} | flags),
    }


def test_points_bars_and_fronts() -> None:
    points = [
        point(1, "clean", 0.9, 20, 3.0, on_front=True),
        point(2, "clean", 0.8, 30, 4.0, is_ceiling_right=True),
        point(3, "a $b$", 0.7, 5, None, on_front=True),
    ]
    figure = frontier(pd.DataFrame(points))
    left, right = figure.axes
    bars = [each for each in left.containers if isinstance(each, ErrorbarContainer)]
    assert [np.asarray(bar.lines[0].get_xdata()).tolist() for bar in bars] == [[20, 30], [5]]
    across, up = (bars[0].lines[2][place].get_segments()[0].tolist() for place in (0, 1))
    assert np.allclose(across, [[19, 90], [22, 90]])
    assert np.allclose(up, [[20, 89], [20, 92]])
    (line,) = [each for each in left.lines if each.get_linestyle() == "-"]
    assert np.allclose(line.get_xydata(), [[5, 70], [20, 90]])
    assert [text.get_text() for text in left.texts] == ["3", "1"]
    assert not right.texts  # bounds are not ranked
    shown = [each.lines[0] for each in right.containers if isinstance(each, ErrorbarContainer)]
    hollow = [line for line in shown if line.get_markerfacecolor() == "white" and np.size(line.get_xdata())]
    assert [np.asarray(line.get_xdata()).tolist() for line in hollow] == [[4.0]]
    assert right.get_xticklabels()[0].get_text() == "nothing"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "clean",
        r"a \$b\$",
        "not beaten by any other",
        "every guess right",
    ]


def test_no_points() -> None:
    with pytest.raises(InputError, match="points must be at least one"):
        frontier(pd.DataFrame([point(1, "clean", math.nan, 20, None)]))
