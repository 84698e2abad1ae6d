"""The example prints what it says."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "dp_sgd.py"


def test_training_without_noise_is_caught(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("broken", "--nodes", "4", "--models", "60", "--share", "0", "--clip")
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *arguments])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["BrokenMLP", "BrokenGCN"]
    assert all(line.endswith("; caught") for line in lines)
