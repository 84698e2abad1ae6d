"""Functions of the page's scripts against independent ones in Python."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_scripts import call
from scipy.stats import beta

from bmpaudit.privacy.region import Region
from bmpaudit.util import words

RNG = np.random.default_rng(4)
EPSILONS = [0.0, -1e-4, 1e-4, 2.3, -2.3, 4.7875, 13.8, 13.9, -13.9, 800.0, -800.0, *RNG.normal(0, 6, 200).tolist()]


def test_quantiles_of_a_beta_distribution(tmp_path: Path) -> None:
    cases = [
        [prob, a, b]
        for prob in (0.05, 0.5, 0.95)
        for a, b in ((1, 1), (1, 751), (251, 1), (21, 731), (2.5, 0.5), (4000, 6000))
    ]
    found = call(tmp_path, "statistics.js", "betaQuantile", cases)
    np.testing.assert_allclose(found, [beta.ppf(*case) for case in cases], rtol=1e-9)


def test_corners_are_those_of_the_region(tmp_path: Path) -> None:
    cases = [
        [prior_odds, left, right]
        for prior_odds in (0.3, 1.0, 2.0)
        for left, right in ((2.0, 1.5), (3.0, 6.0), (1.3, 0.8))
    ]
    below_floor = [2, 1, 0.5]  # ε_R below log η
    *found, empty = call(tmp_path, "statistics.js", "regionCorners", [*cases, below_floor])
    assert empty is None
    for case, corners in zip(cases, found, strict=True):
        region = Region(*case)
        x, y = np.asarray(corners).T
        assert abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2 == pytest.approx(region.area)
        middle = np.array([0.5, 0.5])
        for corner in np.asarray(corners):
            inside, outside = (middle + (corner - middle) * scale for scale in (1 - 1e-9, 1 + 1e-6))
            assert region.contains(*inside)
            assert outside.min() < 0 or outside.max() > 1 or not region.contains(*outside)


@pytest.mark.parametrize(
    ("function", "write"),
    [("formatFixed", words.number), ("formatOdds", words.odds), ("formatFactor", words.factor)],
)
def test_numbers_read_as_in_python(tmp_path: Path, function: str, write: Any) -> None:
    assert call(tmp_path, "format.js", function, [[value] for value in EPSILONS]) == [write(v) for v in EPSILONS]
    assert call(tmp_path, "format.js", function, [[None]]) == [words.MISSING]


def test_counts_and_shares_read_as_in_python(tmp_path: Path) -> None:
    counts = [0, 1, 2, 999, 1000, 1234567]
    assert call(tmp_path, "format.js", "formatCounted", [[each, "node"] for each in counts]) == [
        words.count(each, "node") for each in counts
    ]
    assert call(tmp_path, "format.js", "formatCounted", [[2, "class", "classes"]]) == ["2 classes"]
    shares = [0.0, 0.051, 0.9, 0.99, 1.0]
    assert call(tmp_path, "format.js", "formatPercent", [[each] for each in shares]) == list(map(words.percent, shares))


def test_odds_are_told_up_to_a_million() -> None:
    assert words.odds(math.log(999_999)) == "999,999 : 1"
    assert words.odds(-40.0) == "below 1 : 1,000,000"
    assert words.factor(-1e-9) == "×1"
