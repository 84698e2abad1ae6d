"""Many plans from one: every combination of a grid, a list of points, or both, over any keys of the plan."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmpaudit import registry
from bmpaudit.auditing.compare_settings import show_value
from bmpaudit.auditing.plan import AuditPlan, PlanKey, plan_keys, trusting_code
from bmpaudit.auditing.plan_file import parse_plan
from bmpaudit.auditing.stamps import plan_hash
from bmpaudit.errors import DataError, InputError
from bmpaudit.reading.text import read_toml
from bmpaudit.registry import RELEASE, UntrustedPart
from bmpaudit.settings import make, unknown_key

MOST_POINTS = 10_000
HASH_DIGITS = 8
SLUG_LENGTH = 60


@dataclass(frozen=True, eq=False)
class SweptAudit:
    """One audit of a sweep: each of its releases is a point, and all of them share its shadow models.

    Attributes:
        settings: What sets it apart from the other audits: dotted keys of the plan and their values.
        plan: Its plan.
    """

    settings: Mapping[str, Any]
    plan: AuditPlan

    @property
    def label(self) -> str:
        """What sets it apart in a few words, such as `gat, epochs 50`."""
        return ", ".join(_shown(key, value) for key, value in self.settings.items()) or self.plan.title

    @property
    def folder(self) -> str:
        """Name of its folder: its label, and a hash of everything but what can be added to an audit.

        Models can always be added, releases if weights are kept.
        """
        words = re.sub(r"[^a-z0-9.]+", "-", self.label.lower())[:SLUG_LENGTH].strip("-.")
        addable = {"shadows", "releases"} if self.plan.keep_weights else {"shadows"}
        return f"{words}-{plan_hash(self.plan, only=plan_keys().keys() - addable)[:HASH_DIGITS]}"


def read_sweep(path: str | Path, *, trust_code: bool = False) -> tuple[str, list[SweptAudit]]:
    """Reads a plan file with a table `sweep`.

    Args:
        path: The file.
        trust_code: Whether to import the parts that it names `module:Name`.

    Returns:
        The graph's source, and the audits.

    Raises:
        DataError: if there is no such file or it is not TOML.
        InputError: naming the file, the key and what is allowed, if it says something impossible.
        UntrustedCodeError: if it names code, and that is not trusted.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file; `bmpaudit plan init` writes a plan, to which a table [sweep] is added")
    table = read_toml(path)
    sweep = table.pop("sweep", None)
    try:
        if not isinstance(sweep, Mapping):
            raise InputError("a table [sweep] is missing, with [sweep.grid], [[sweep.points]] or both")
        if unknown := sweep.keys() - {"grid", "points"}:
            raise InputError(unknown_key("sweep", min(unknown), ("grid", "points")))
        base = parse_plan(table, trust_code=trust_code)
        if not base.graph:
            raise InputError("graph is missing")
        grid, points = sweep.get("grid", {}), sweep.get("points", [])
        if not isinstance(grid, Mapping) or not isinstance(points, list):
            raise InputError("sweep.grid must be a table, as in [sweep.grid], and sweep.points a list of tables")
        with trusting_code(trust_code):
            audits = swept_audits(base.plan, dict(_flat(grid)), [_point(each) for each in points])
    except InputError as wrong:
        raise type(wrong)(f"{path}: {wrong}") from None
    for audit in audits:
        _refuse_untrusted(audit.plan)
    return base.graph, audits


def swept_audits(
    base: AuditPlan, grid: Mapping[str, Sequence[Any]], points: Sequence[Mapping[str, Any]]
) -> list[SweptAudit]:
    """The audits of a sweep. Plans that differ in nothing but their releases become one, with the releases of all.

    Args:
        base: What all audits share.
        grid: Alternatives by dotted key, such as `{"training.epochs": [50, 200]}`; every combination is audited.
        points: Further points, each the dotted keys in which it differs from the base.

    Raises:
        InputError: if a key is unknown, a value impossible, or there are too many points.
    """
    for key, alternatives in grid.items():
        if not isinstance(alternatives, (list, tuple)) or not alternatives:
            raise InputError(f"{key} must be a list of alternatives, got {alternatives!r}")
    combinations = itertools.product(*grid.values()) if grid else ()
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.islice(combinations, MOST_POINTS + 1)]
    settings += [dict(point) for point in points]
    if not 0 < len(settings) <= MOST_POINTS:
        raise InputError(f"a sweep must have 1 to {MOST_POINTS:,} points, got {len(settings):,} or more")
    audits: dict[str, SweptAudit] = {}
    for each in settings:
        plan = changed_plan(base, each)
        key = plan_hash(plan, only=plan_keys().keys() - {"releases"})
        apart = {name: value for name, value in each.items() if name.rpartition(".")[2] != "releases"}
        if key in audits:
            there = audits[key]
            labels = {registry.label(RELEASE, part) for part in there.plan.releases}
            added = [part for part in plan.releases if registry.label(RELEASE, part) not in labels]
            apart, plan = dict(there.settings), there.plan.replace(releases=(*there.plan.releases, *added))
        audits[key] = SweptAudit(apart, plan)
    return list(audits.values())


def changed_plan(base: AuditPlan, values: Mapping[str, Any]) -> AuditPlan:
    """The plan with other values of dotted keys, checked again.

    >>> changed_plan(AuditPlan(), {"model.name": "gat", "training.epochs": 50, "shadows": 64}).title
    'Uniform 25 %, GAT'

    Raises:
        InputError: if a key is unknown or a value impossible.
    """
    keys = plan_keys()
    changes: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if _is_part(keys, section):
            parts.setdefault(section, {})[name] = value
        elif name in keys and section in (keys[name].section, ""):
            changes[name] = list(value) if isinstance(value, tuple) else value
        else:
            raise InputError(f"unknown key {key}; a sweep is over keys of a plan, such as training.epochs")
    for section, settings in parts.items():
        part = changes.get(section, getattr(base, section))
        changes[section] = _changed_part(section, keys[section].kind, part, settings)
    return base.replace(**changes)


def _is_part(keys: Mapping[str, PlanKey], section: str) -> bool:
    """Whether a section of the plan file is one part: sampler, model, training, attack."""
    return section in keys and keys[section].section == section and section != "gate"


def _changed_part(section: str, kind: str, part: Any, settings: Mapping[str, Any]) -> Any:
    """A part with other settings; of another name, that part with its defaults otherwise."""
    if isinstance(part, str):
        part = {"name": part}
    if not kind:
        return make(type(part), {**vars(part), **settings}, section, also=())
    table = dict(part) if isinstance(part, Mapping) else registry.table_of(kind, part)
    if settings.get("name", table["name"]) != table["name"]:
        return dict(settings)
    return {**table, **settings}


def _flat(table: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield f"{section}{key}", value


def _point(table: Any) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise InputError(f"sweep.points must be a list of tables, as in [[sweep.points]], got {table!r}")
    return dict(_flat(table))


def _refuse_untrusted(plan: AuditPlan) -> None:
    for name in plan_keys():
        value = getattr(plan, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, UntrustedPart):
                raise registry.untrusted(part.kind, part.target)


def plain_setting(value: Any) -> Any:
    """A value of the plan as JSON can hold it; an object by its title."""
    if isinstance(value, Mapping):
        return {str(name): plain_setting(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_setting(each) for each in value]
    return value if isinstance(value, (str, int, float, bool)) else registry.title(value)


def _shown(key: str, value: Any) -> str:
    """A setting in words: a part by its name, anything else with what it is.

    >>> _shown("model.name", "gat"), _shown("training.weight_decay", 0.01)
    ('gat', 'weight decay 0.01')
    """
    name = key.rpartition(".")[2]
    kind = plan_keys()[name].kind if name in plan_keys() else ""
    if kind and not isinstance(value, (str, Mapping, list, tuple)):
        return registry.label(kind, value)  # with its settings, which tell it from others
    text = show_value(plain_setting(value))
    return text if kind or name == "name" else f"{name.replace('_', ' ')} {text}"
