"""In which settings of their plans audits differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bmpaudit.auditing.compared import ComparedAudit

# Settings that leave what is compared as it is, or change nothing but chance.
BESIDE = frozenset(("seed", "permutations", "estimation.definitions", "estimation.level"))


@dataclass(frozen=True)
class DifferingSetting:
    """A key of the plan that is not the same in all audits.

    Attributes:
        key: Such as `sampler.name`.
        values: In the order of the audits; None where a plan has no such key.
        is_beside: Whether it leaves what is compared as it is, but for chance.
    """

    key: str
    values: tuple[Any, ...]
    is_beside: bool

    def __str__(self) -> str:
        return f"{self.key} ({', '.join(map(show_value, self.values))})"


def show_value(value: Any) -> str:
    """A setting as a plan file has it, without quotes.

    >>> show_value(["full", "none"]), show_value(True), show_value(0.25), show_value(None)
    ('full none', 'true', '0.25', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, (list, tuple)):
        return " ".join(map(show_value, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {show_value(part)}" for name, part in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def differing_settings(audits: Sequence[ComparedAudit]) -> tuple[DifferingSetting, ...]:
    """The keys in which plans differ.

    The graph is compared by its content. What only one sampler or model has (`sampler.fan_out`) goes with its name and
    is no difference of its own.
    """
    tables = [{**audit.settings, "graph": audit.graph_hash} for audit in audits]
    differing = []
    for key in dict.fromkeys(key for table in tables for key in table):
        values = tuple(table.get(key) for table in tables)
        if all(value == values[0] for value in values):
            continue
        section = key.split(".")[0]
        have_it = {json.dumps(table.get(f"{section}.name")) for table in tables if key in table}
        lack_it = {json.dumps(table.get(f"{section}.name")) for table in tables if key not in table}
        present = [value for value in values if value is not None]
        if lack_it and not have_it & lack_it and all(value == present[0] for value in present):
            continue
        if key == "graph":
            values = tuple(audit.settings.get("graph") or audit.graph_hash[:8] for audit in audits)
        differing.append(DifferingSetting(key, values, key in BESIDE))
    return tuple(differing)
