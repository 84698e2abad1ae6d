"""docs/defences.md tells the truth: its plan is one, its code runs, its columns are those of the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bmpaudit.sweeps import read_sweep

PAGE = (Path(__file__).parents[2] / "docs" / "defences.md").read_text(encoding="utf-8")


def snippet(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_plan_makes_as_many_audits_and_points_as_the_page_says(tmp_path: Path) -> None:
    path = tmp_path / "defences.toml"
    path.write_text(snippet("toml"))
    graph, audits = read_sweep(path)
    assert graph == "cora"
    points = sum(len(each.plan.releases) for each in audits)
    assert f"{len(audits)} audits and {points} points" in PAGE


def test_the_code_runs_and_the_columns_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(compile(snippet("python"), "defences.md", "exec"), names)
    assert "sgc, clean" in capsys.readouterr().out
    table = names["found"].table  # type: ignore[attr-defined]
    named = PAGE[PAGE.index("The table has a row per point") : PAGE.index("## Cora")]
    for column in re.findall(r"`(\w+)`", named):
        assert column in table or column in ("_low", "_high", "confirmed_"), column
