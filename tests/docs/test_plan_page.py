"""docs/plan.md has every field of the plan, every part and every setting of it."""

import dataclasses
import runpy
from pathlib import Path
from typing import Any

from bmpaudit import registry
from bmpaudit.models import Training
from bmpaudit.plan import AuditPlan, Gate

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "plan.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    script: dict[str, Any] = runpy.run_path(str(DOCS / "make_plan_reference.py"))
    assert script["plan_reference"]() == PAGE, "stale: python docs/make_plan_reference.py"


def rows() -> dict[str, list[str]]:
    cells = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row for row in cells}


def test_every_field_has_a_row() -> None:
    sections = {"sampler", "model", "attack", "training", "gate"}  # tables of their own
    for name in {*AuditPlan.model_fields} - sections | {*Gate.model_fields}:
        assert name in rows(), name
    for name in sections:
        assert f"\n## `[{name}]`\n" in PAGE


def test_every_part_and_setting_has_a_row_that_explains_it() -> None:
    for kind, entries in registry.ENTRIES.items():
        for name, entry in entries.items():
            assert f"| `{name}` | {entry.help} |" in PAGE
            part = registry.load(kind, name)
            fields = dataclasses.fields(part) if dataclasses.is_dataclass(part) else ()
            for field in fields:
                assert not field.init or rows()[field.name][-1], f"{name}: {field.name}"
    for field in dataclasses.fields(Training):
        assert rows()[field.name][-1], field.name
