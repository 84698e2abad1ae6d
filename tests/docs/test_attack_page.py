"""docs/attack.md tells the truth: its example runs, its tables are complete."""

import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit.attack import DecisionSettings, Evidence, Gaussian, Scores, node_mia
from bmpaudit.attack.counts import COLUMNS

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
    assert re.search(r"199 shuffles of memberships\): [\d,]+ of 1,000 nodes are proven to leak", printed)
    assert " at FPR 0.001" in printed


def test_the_attack_of_ones_own_works() -> None:
    (code,) = re.findall(r"^    class MeanDifference:\n(?:(?:     .*)?\n)+", TEXT, flags=re.MULTILINE)
    names = {"Scores": Scores}
    exec(compile(textwrap.dedent(code), "attack.md", "exec"), names)
    rng = np.random.default_rng(0)
    members = rng.random((60, 30)) < 0.5
    statistics = (rng.normal(size=members.shape) + 3 * members).astype(np.float32)
    models = Evidence({"full": statistics}, members, np.arange(60))
    attack: Any = names["MeanDifference"]
    assert node_mia(models, np.full(30, 0.5), attack=attack(), rule="weak").accuracy.mean() > 0.85


def test_every_option_is_explained() -> None:
    options = set(inspect.signature(node_mia).parameters) - {"models", "num_threads"}
    options |= {each.name for kind in (Gaussian, DecisionSettings) for each in dataclasses.fields(kind)}
    assert set(first_column("Options")) == options


def test_columns_are_those_of_the_table() -> None:
    assert tuple(first_column("The table")) == COLUMNS
