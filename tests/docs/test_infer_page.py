"""docs/infer.md tells the truth: its code runs, and its table of keys is complete."""

import re
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "infer.md").read_text(encoding="utf-8")


def test_code_runs_and_every_key_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "infer.md", "exec"), names)
    assert capsys.readouterr().out.startswith("From this model an adversary can name ")
    content = names["result"].to_plain(top=1)
    section = TEXT.split("\n## JSON\n")[1]
    first_column = [
        name for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    ]
    assert set(first_column) == set(content)
    for part in (content["check"], content["score"], content["nodes"][0]):
        assert all(f"`{name}`" in section for name in part)
