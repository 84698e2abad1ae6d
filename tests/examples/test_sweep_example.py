"""The example finds points that no other beats, and audits them again."""

import runpy
from pathlib import Path

from small_graph import small_graph

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.py"


def test_the_front_is_confirmed() -> None:
    found = runpy.run_path(str(EXAMPLE))["search"](small_graph(), 8)
    assert len(found.points) == 5 * 3
    assert {point.release for point in found.points} == {"clean", "rounded-1", "label-only"}
    assert found.is_confirmed
