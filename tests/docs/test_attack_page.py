"""docs/attack.md tells the truth: its example runs, its tables are complete."""

import inspect
import re
from pathlib import Path

import pytest

from bmpaudit.attack import node_mia
from bmpaudit.attack.counts_check import COLUMNS

TEXT = (Path(__file__).parents[2] / "docs" / "attack.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [
        name for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    ]


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    exec(compile(code, "attack.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "\n  false positives " in printed
    assert "leakage found: mean |A/n0 + B/n1 - 1| is " in printed
    assert " at FPR 0.001" in printed


def test_every_option_is_explained() -> None:
    parameters = set(inspect.signature(node_mia).parameters) - {"runs", "view", "num_threads"}
    assert set(first_column("What is decided")) == parameters


def test_columns_are_those_of_the_table() -> None:
    assert tuple(first_column("The table")) == COLUMNS
