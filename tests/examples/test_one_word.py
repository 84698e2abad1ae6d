"""The example that names training nodes by linear algebra on what models say of single words."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_word.py"


def test_an_open_api_names_training_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    numbers = [float(number) for number in re.findall(r"[\d.]+", shown)]
    members, excluded, wrong, named, share = numbers
    assert (members, wrong) == (677, 0)
    assert excluded > 400
    assert named > 150
    assert share > 99
