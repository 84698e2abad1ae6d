"""docs/proof.md tells the truth: its example runs, and it names every function."""

import re
from pathlib import Path

import pytest

from bmpaudit import proof

TEXT = (Path(__file__).parents[2] / "docs" / "proof.md").read_text(encoding="utf-8")


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    exec(compile(code, "proof.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "proven with 95 % confidence each, one guess per model, fitted on 48 models, 48 challenged" in printed
    assert "proven with 95 % confidence each, prequential" in printed
    assert "expected calibration error" in printed
    assert "exposure over 96 models" in printed


def test_every_function_is_named() -> None:
    functions = {name for name in proof.__all__ if name[0].islower()}
    assert {name for name in functions if name not in TEXT} == set()
