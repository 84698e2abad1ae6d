"""The plan as a TOML file: unknown keys and impossible values are refused, naming the key and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from bmpaudit import registry
from bmpaudit.auditing.gate import Gate
from bmpaudit.auditing.plan import AuditPlan, PlanKey, plan_keys, trusting_code
from bmpaudit.errors import DataError, InputError
from bmpaudit.reading.text import read_toml
from bmpaudit.registry import ENTRIES, UntrustedPart
from bmpaudit.settings import unknown_key
from bmpaudit.shadow import Training

HEADING = (
    "# The plan of an audit: everything that changes its answer.",
    "# Run it with: bmpaudit audit --plan FILE --out DIR",
    "",
)
GRAPH_HELP = "Name of a data set, .npz archive, folder with nodes and edges tables, or module:function"
COMMENT_COLUMN = 44
GATE_HELP = "Thresholds for bmpaudit check (docs/gate.md); they change no answer"
EXAMPLE_GATE = Gate(max_proven_right=3.0, max_exposure="10@0.99")


@dataclass(frozen=True)
class PlanFile:
    """What a plan file says.

    Attributes:
        graph: Name of a data set, path, or module:function; empty if the file does not say.
        plan: Everything else.
    """

    graph: str
    plan: AuditPlan


def read_plan(path: str | Path, *, trust_code: bool = False) -> PlanFile:
    """Reads a plan file.

    Args:
        path: The file.
        trust_code: Whether to import the parts that it names `module:Name`. If not, such a part is an `UntrustedPart`,
            which cannot be used.

    Raises:
        DataError: if there is no such file or it is not TOML.
        InputError: naming the file, the key and what is allowed, if it says something impossible.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file; `bmpaudit plan init` writes one")
    table = read_toml(path)
    try:
        return parse_plan(table, trust_code=trust_code)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None


def parse_plan(table: Mapping[str, Any], *, trust_code: bool = True) -> PlanFile:
    """From nested values, as TOML has them, to a plan."""
    keys = plan_keys()
    graph = table.get("graph", "")
    if not isinstance(graph, str):
        raise InputError(f"graph must be a string, got {graph!r}")
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "graph":
            continue
        if name == "sweep":
            raise InputError("it has a table [sweep]: run it with bmpaudit sweep")
        if name not in _sections(keys):
            if name not in keys or keys[name].section:
                raise InputError(unknown_key("", name, _top_level(keys)))
            values[name] = value
        elif not isinstance(value, Mapping):
            raise InputError(f"{name} must be a table, as in [{name}], got {value!r}")
        elif name in keys:  # a section that is one part
            values[name] = _with_name(keys[name], name, value)
        else:
            values |= _section_values(name, value, keys)
    with trusting_code(trust_code):
        return PlanFile(graph, AuditPlan(**values))


def _with_name(key: PlanKey, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A part's table; without a name it is the default part with other settings."""
    if not key.kind or "name" in value:
        return dict(value)
    return {"name": AuditPlan.model_fields[name].default, **value}


def _section_values(section: str, table: Mapping[str, Any], keys: Mapping[str, PlanKey]) -> dict[str, Any]:
    allowed = [name for name, key in keys.items() if key.section == section]
    for name in table:
        if name not in allowed:
            raise InputError(unknown_key(section, name, allowed))
    return dict(table)


def _sections(keys: Mapping[str, PlanKey]) -> list[str]:
    return list(dict.fromkeys(key.section for key in keys.values() if key.section))


def _top_level(keys: Mapping[str, PlanKey]) -> list[str]:
    return ["graph", *(name for name, key in keys.items() if not key.section), *_sections(keys)]


def plan_table(plan: AuditPlan, graph: str) -> dict[str, Any]:
    """The nested values of a plan file, from which `parse_plan` makes the same plan again."""
    table: dict[str, Any] = {"graph": graph}
    for name, key in plan_keys().items():
        if name == "training" and plan.shadow_plan.training is None:
            continue  # the model brings its own, or was trained elsewhere: nothing is claimed about how
        if name == "gate" and plan.gate == Gate():
            continue
        value = plain_value(key, getattr(plan, name))
        if key.section in ("", name):
            table[name] = value
        else:
            table.setdefault(key.section, {})[name] = value
    return table


def plain_value(key: PlanKey, value: Any) -> Any:
    """A field of a plan as a file holds it."""
    if isinstance(value, Training):
        return registry.settings_of(value)
    if isinstance(value, Gate):
        return value.to_table()
    if not key.kind or isinstance(value, str):
        return float(value) if isinstance(value, float) else value
    if key.is_list:
        return [_name_or_table(key.kind, part) for part in value]
    return registry.table_of(key.kind, value) if key.section == key.kind else _name_or_table(key.kind, value)


def _name_or_table(kind: str, part: Any) -> Any:
    table = registry.table_of(kind, part)
    return table["name"] if len(table) == 1 else table


def format_plan(plan: AuditPlan, graph: str) -> str:
    """The plan as TOML, from which `read_plan` makes the same plan again."""
    return tomli_w.dumps(plan_table(plan, graph))


def plan_template(plan: AuditPlan, graph: str) -> str:
    """The plan as TOML with a comment on every key."""
    lines = [*HEADING]
    for key, value in plan_table(plan, graph).items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]"]
            lines += [_line(name, part, _comment(plan, key, name)) for name, part in value.items()]
        else:
            lines.append(_line(key, value, GRAPH_HELP if key == "graph" else _comment(plan, "", key)))
    if plan.gate == Gate():
        example = EXAMPLE_GATE.to_table()
        lines += ["", f"# {'[gate]':<{COMMENT_COLUMN}} # {GATE_HELP}"]
        lines += [f"# {_line(name, value, _comment(plan, 'gate', name))}" for name, value in example.items()]
    return "\n".join(lines) + "\n"


def _comment(plan: AuditPlan, section: str, name: str) -> str:
    keys = plan_keys()
    is_part = section in keys  # [sampler], [model], [training], [attack]
    if is_part and name != "name":
        part = getattr(plan, section)
        return "" if isinstance(part, UntrustedPart) else registry.field_help(type(part)).get(name, "")
    about = AuditPlan.model_fields[section if is_part else name].description or ""
    kind = keys[section if is_part else name].kind
    return f"{about}: {', '.join(ENTRIES[kind])}, or module:Name" if kind else about


def _line(key: str, value: Any, comment: str) -> str:
    # Through an inline table: everything stays on one line.
    text = f"{key} = {_inline(value)}"
    return f"{text:<{COMMENT_COLUMN}} # {comment}".rstrip(" #")


def _inline(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_inline(part)}' for name, part in value.items())}}}"
    return tomli_w.dumps({"item": value}).strip().removeprefix("item = ")
