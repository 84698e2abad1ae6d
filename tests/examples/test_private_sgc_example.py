"""The example prints what it says."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "private_sgc.py"


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *arguments])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_a_mechanism_without_noise_is_caught(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(monkeypatch, capsys, "broken", "--nodes", "4", "--models", "120", "--share", "1", "0")
    assert [line.rpartition("; ")[2] for line in lines] == ["not caught", "caught"]
    assert lines[1].startswith("4 nodes, 120 models, 0 of the noise: proven ε_R, ε_L, MP ε ")


def test_accuracy_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    head, row = printed(monkeypatch, capsys, "accuracy", "--data", "demo", "--models", "1")
    assert head.startswith("held-out accuracy | ε = 0.5 | ")
    name, *cells, largest = row.split(" | ")
    assert name == "demo"
    assert len(cells) == 6
    assert float(cells[-1]) > float(largest), "without noise it has learnt something"
