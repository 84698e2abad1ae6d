"""The code on the page about own models runs."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "own-models.md"


def test_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}  # later blocks go on with what earlier ones defined
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), names)
    assert "table, Uniform 50 %, RandomForestClassifier" in capsys.readouterr().out
    assert str(names["done"]).startswith("demo, Uniform 25 %, Sage\n")
