"""The options that make a plan, generated from the plan itself and from the registry of parts."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click

from bmpaudit import registry
from bmpaudit.auditing.plan import AuditPlan, PlanKey, plan_keys
from bmpaudit.cli import sections
from bmpaudit.cli.options import trust_option
from bmpaudit.cli.sections import SectionOption
from bmpaudit.registry import ENTRIES
from bmpaudit.shadow import Training

Command = Callable[..., Any]

# A field of the plan that takes several parts is given by repeating the option for one.
SINGULAR = {"releases": "release", "queries": "query", "rules": "rule", "definitions": "definition"}

# The heading of an option, by the section or key of the plan file that it sets.
HEADINGS = {
    "sampler": sections.SAMPLER,
    "model": sections.MODEL,
    "training": sections.MODEL,
    "engine": sections.MODEL,
    "views": sections.VIEWS,
    "releases": sections.VIEWS,
    "queries": sections.VIEWS,
    "attack": sections.ATTACK,
    "decision": sections.ATTACK,
    "rules": sections.ATTACK,
    "permutations": sections.ATTACK,
    "estimation": sections.ESTIMATION,
    "definitions": sections.ESTIMATION,
}


@dataclasses.dataclass(frozen=True)
class PlanOption:
    """An option of the command line and its place in a plan file.

    Attributes:
        name: Without dashes, as Click passes it on.
        place: Section and key, or the key alone.
        click_option: What adds it to a command.
        is_list: Whether it can be repeated.
        owners: Names of the parts it is a setting of; empty for settings of the plan itself.
    """

    name: str
    place: tuple[str, ...]
    click_option: Callable[[Command], Command]
    is_list: bool = False
    owners: tuple[str, ...] = ()


@cache
def plan_option_table() -> dict[str, PlanOption]:
    """Every option that makes a plan, in the order of the plan file."""
    options: list[PlanOption] = []
    for name, key in plan_keys().items():
        if name == "gate":
            continue  # the command check has options for it
        if name == "training":
            options += _part_settings("training", {"": Training})
            continue
        options.append(_plan_setting(name, key))
        if key.kind and (key.section == name or key.is_list):
            classes = {part: registry.load(key.kind, part) for part in ENTRIES[key.kind]}
            options += _part_settings(name, classes)
    return {option.name: option for option in options}


def _plan_setting(name: str, key: PlanKey) -> PlanOption:
    info = AuditPlan.model_fields[name]
    option = SINGULAR.get(name, name)
    place = (key.section, "name") if key.section == name else tuple(part for part in (key.section, name) if part)
    if not key.kind:
        return PlanOption(option, place, _option(option, place, info.annotation, f"{info.description}.", info.default))
    repeated = "; can be repeated" if key.is_list else ""
    text = f"{info.description} ({', '.join(ENTRIES[key.kind])}, or module:Name{repeated})."
    click_option = _option(option, place, str, text, info.default, multiple=key.is_list, metavar="NAME")
    return PlanOption(option, place, click_option, key.is_list)


def _part_settings(section: str, classes: Mapping[str, Any]) -> list[PlanOption]:
    """An option for each field of the built-in parts of one kind; parts that share a field share the option."""
    owners: dict[str, list[str]] = {}
    fields: dict[str, tuple[Any, str]] = {}
    defaults: dict[str, dict[str, Any]] = {}
    for part, cls in classes.items():
        if not dataclasses.is_dataclass(cls):
            continue
        hints, about = typing.get_type_hints(cls), registry.field_help(cls)  # type: ignore[arg-type]
        for field in dataclasses.fields(cls):
            owners.setdefault(field.name, []).append(part)
            fields.setdefault(field.name, (hints[field.name], about.get(field.name, "")))
            defaults.setdefault(field.name, {})[part] = field.default
    options = []
    for name, (annotation, text) in fields.items():
        names, place = tuple(owners[name]), (section, name)
        is_list = _is_tuple(annotation)
        notes = ["can be repeated"] if is_list else []
        if len(names) < len(classes):
            notes.insert(0, ", ".join(names))
        text += f" ({'; '.join(notes)})." if notes else "."
        click_option = _option(name, place, annotation, text, _common_default(defaults[name]), multiple=is_list)
        options.append(PlanOption(name, place, click_option, is_list, names))
    return options


def _is_tuple(annotation: Any) -> bool:
    """Whether a field holds several values, or may hold them."""
    return tuple in (typing.get_origin(each) for each in (annotation, *typing.get_args(annotation)))


def _common_default(defaults: Mapping[str, Any]) -> str:
    """The default that most parts share, and those of the others.

    >>> _common_default({"gcn": 16, "gat": 4, "mlp": 16})
    '16; gat: 4'
    """
    shown = {part: _shown(value) for part, value in defaults.items()}
    common = max(shown.values(), key=list(shown.values()).count)
    return "; ".join([common, *(f"{part}: {value}" for part, value in shown.items() if value != common)])


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    if value is None or isinstance(value, bool):
        return {None: "automatic", True: "on", False: "off"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _option(
    name: str,
    place: tuple[str, ...],
    annotation: Any,
    text: str,
    default: Any,
    *,
    multiple: bool = False,
    metavar: str | None = None,
) -> Callable[[Command], Command]:
    flag = f"--{name.replace('_', '-')}"
    base = _base_type(annotation)
    settings: dict[str, Any] = {
        "cls": SectionOption,
        "section": HEADINGS.get(place[0], sections.FIRST),
        "default_text": _shown(default),
        "help": text,
    }
    if base is bool:
        return click.option(f"{flag}/--no-{name.replace('_', '-')}", name, default=None, **settings)
    return click.option(flag, name, type=base, multiple=multiple, metavar=metavar, **settings)


def _base_type(annotation: Any) -> Any:
    """The Click type of a field: the first alternative of a union, the items of a tuple, a choice for literals."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, tuple):
        return _base_type(typing.get_args(annotation)[0])
    choices = registry.choices(annotation)
    return click.Choice(choices) if choices else annotation


plan_path_option = click.option(
    "--plan",
    "plan_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    cls=SectionOption,
    help="Plan file with settings (see bmpaudit plan init); command-line options override the file.",
)
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    cls=SectionOption,
    help="Any key of the plan, such as sampler.hubs=3 for a sampler of your own; can be repeated.",
)


def plan_options(*, without: Iterable[str] = ()) -> Callable[[Command], Command]:
    """Adds every option that makes a plan, except those of some sections."""
    left_out = set(without)

    def decorate(command: Command) -> Command:
        chosen = [option for option in plan_option_table().values() if option.place[0] not in left_out]
        options: list[Callable[[Command], Command]] = [plan_path_option]
        options += [*(option.click_option for option in chosen), set_option, trust_option]
        for add in reversed(options):
            command = add(command)
        return command

    return decorate


def setting_options(section: str) -> Callable[[Command], Command]:
    """Adds the options for the settings of one kind of part, such as those of all samplers."""

    def decorate(command: Command) -> Command:
        for option in reversed(plan_option_table().values()):
            if option.place[0] == section and option.owners:
                command = option.click_option(command)
        return command

    return decorate
