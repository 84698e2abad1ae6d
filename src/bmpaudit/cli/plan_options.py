"""The options that make a plan, generated from the plan itself and from the registry of parts."""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bmpaudit import datasets, registry
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.plan import AuditPlan, PlanKey, plan_keys
from bmpaudit.auditing.plan_file import parse_plan, read_plan, read_table
from bmpaudit.auditing.run import source_name
from bmpaudit.auditing.stored import OWN_GRAPH, stored_graph
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import InputError
from bmpaudit.registry import ENTRIES
from bmpaudit.shadow import Training

Command = Callable[..., Any]

# A field of the plan that takes several parts is given by repeating the option for one.
SINGULAR = {"releases": "release", "queries": "query", "rules": "rule", "definitions": "definition"}


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
    if key.kind:
        about = f"{info.description}: {', '.join(ENTRIES[key.kind])}, or module:Name"
        default = " ".join(info.default) if key.is_list else info.default
        text = f"{about}{'; can be repeated' if key.is_list else ''}"
        return PlanOption(
            option, place, _option(option, str, f"{text} [{default}].", multiple=key.is_list), key.is_list
        )
    text = f"{info.description} [{info.default}]."
    return PlanOption(option, place, _option(option, info.annotation, text))


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
    for name, (annotation, about) in fields.items():
        names = tuple(owners[name])
        prefix = "" if len(names) == len(classes) else f"{', '.join(names)}: "
        text = f"{prefix}{about} [{_default_text(defaults[name])}]."
        is_list = typing.get_origin(annotation) is tuple
        options.append(
            PlanOption(name, (section, name), _option(name, annotation, text, multiple=is_list), is_list, names)
        )
    return options


def _default_text(defaults: Mapping[str, Any]) -> str:
    shown = {
        part: " ".join(map(str, value)) if isinstance(value, tuple) else str(value) for part, value in defaults.items()
    }
    common = max(shown.values(), key=list(shown.values()).count)
    others = [f"{part} {value}" for part, value in shown.items() if value != common]
    return "; ".join([{"None": "automatic", "False": "off"}.get(common, common), *others])


def _option(name: str, annotation: Any, text: str, *, multiple: bool = False) -> Callable[[Command], Command]:
    flag = f"--{name.replace('_', '-')}"
    base = _base_type(annotation)
    if base is bool:
        return click.option(f"{flag}/--no-{name.replace('_', '-')}", name, default=None, help=text)
    return click.option(flag, name, type=base, multiple=multiple, help=text)


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
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read settings from a plan file (bmpaudit plan init); command-line options override the file.",
)
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set any key of the plan, such as --set sampler.hubs=3 for a sampler of your own; can be repeated.",
)
trust_option = click.option(
    "--trust-code",
    is_flag=True,
    help="Import parts that a plan file or an audit folder names module:Name. Their code runs: trust its author.",
)


def plan_options(*, without: Iterable[str] = ()) -> Callable[[Command], Command]:
    """Adds every option that makes a plan, but those of some sections."""
    left_out = set(without)

    def decorate(command: Command) -> Command:
        chosen = [option for option in plan_option_table().values() if option.place[0] not in left_out]
        decorators = [plan_path_option, *(option.click_option for option in chosen), set_option, trust_option]
        for add in reversed(decorators):
            command = add(command)
        return command

    return decorate


def setting_options(section: str) -> Callable[[Command], Command]:
    """Adds the options for the settings of one kind of part, such as those of all samplers."""

    def decorate(command: Command) -> Command:
        for option in reversed(
            [each for each in plan_option_table().values() if each.place[0] == section and each.owners]
        ):
            command = option.click_option(command)
        return command

    return decorate


def given_settings(section: str, name: str, settings: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    """The settings on the command line that a part takes; with `strict`, others are refused."""
    values = _given(settings).get(section, {})
    if strict:
        _refuse_misfits(section, name, values)
    return {key: value for key, value in values.items() if name in plan_option_table()[key].owners}


def make_subject(
    graph: str | None, plan_path: Path | None, settings: Mapping[str, Any], folder: Path | None = None
) -> Subject:
    """The graph and the plan: options override the plan file, which overrides the defaults.

    Without GRAPH and --plan, the plan of the folder is taken up again.
    """
    trust_code = bool(settings.get("trust_code"))
    base = plan_path
    if base is None and graph is None and folder is not None and (folder / "plan.toml").exists():
        base = folder / "plan.toml"
    table = merge_settings(graph, base, settings)
    source = str(table.get("graph") or "")
    if not source:
        raise click.UsageError("GRAPH is missing: give it, or a --plan that names one, or --out of an audit")
    is_from_file = graph is None
    plan = parse_plan({**table, "graph": source}, trust_code=True).plan
    if is_from_file and base is not None and (base.parent / OWN_GRAPH).exists() and base.name == "plan.toml":
        home = Workspace(base.parent)
        loaded = stored_graph(home, source, trust_code=trust_code)
        is_own = folder is not None and base.parent.resolve() == folder.resolve()
        return Subject(
            loaded, source if is_own or source != OWN_GRAPH else str((base.parent / OWN_GRAPH).resolve()), plan
        )
    return Subject(datasets.load(source, trust_code=trust_code or not is_from_file), source_name(source), plan)


def merge_settings(graph: str | None, base: Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The nested values of a plan: GRAPH and options of the command line over those of the file `base`.

    Raises:
        UntrustedCodeError: if the file names code, and `--trust-code` was not given.
    """
    given = _given(settings)
    table: dict[str, Any] = {}
    if base is not None:
        read_plan(base, trust_code=bool(settings.get("trust_code")))  # so that messages name the file
        table = read_table(base)
        _refuse_code(table, given, bool(settings.get("trust_code")))
    for section, key in plan_keys().items():
        if not key.kind or key.section != section:
            continue
        default = AuditPlan.model_fields[section].default
        there = table.get(section, {}).get("name", default)
        name = given.get(section, {}).get("name", there)
        if name != there:
            table.pop(section, None)  # settings of another part say nothing about this one
        _refuse_misfits(section, name, given.get(section, {}))
    for section, values in given.items():
        table[section] = {**table.get(section, {}), **values} if isinstance(values, dict) else values
    if graph is not None:
        table["graph"] = graph
    return table


def _refuse_code(table: Mapping[str, Any], given: Mapping[str, Any], trust_code: bool) -> None:
    """Code that a file names is not run unasked, whatever kind of part it is; what the command line names is."""
    if trust_code:
        return
    for name, key in plan_keys().items():
        if not key.kind:
            continue
        section = table.get(key.section, {}) if key.section else table
        value = section.get("name") if key.section == name else section.get(name)
        chosen = given.get(key.section, {}) if key.section else given
        if ("name" if key.section == name else name) in chosen:
            continue
        for part in value if isinstance(value, list) else (value,):
            target = part.get("name") if isinstance(part, Mapping) else part
            if isinstance(target, str) and target not in ENTRIES[key.kind] and registry.is_code(target):
                raise registry.untrusted(key.kind, target)


def _refuse_misfits(section: str, name: str, given: Mapping[str, Any]) -> None:
    """Refuses options of other parts than the one that is used."""
    if name not in ENTRIES[section]:
        return
    for key in given:
        option = plan_option_table().get(key)
        if option is not None and option.owners and option.place[0] == section and name not in option.owners:
            fitting = " or ".join(option.owners)
            raise click.UsageError(f"--{key.replace('_', '-')} is for --{section} {fitting}, got --{section} {name}")


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options given on the command line, as sections of a plan."""
    context = click.get_current_context()
    sections: dict[str, Any] = {}
    for name, option in plan_option_table().items():
        if name not in settings or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = list(settings[name]) if option.is_list else settings[name]
        _put(sections, option.place, value)
    for assignment in settings.get("assignments", ()):
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--set takes KEY=VALUE, got {assignment!r}")
        _put(sections, tuple(key.strip().split(".")), _toml_value(text))
    _settings_of_lists(sections)
    return sections


def _put(sections: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for section in place[:-1]:
        sections = sections.setdefault(section, {})
    sections[place[-1]] = value


def _toml_value(text: str) -> Any:
    """A value as TOML reads it; what TOML cannot read is text.

    >>> _toml_value("3"), _toml_value("[1, 2]"), _toml_value("hubs")
    (3, [1, 2], 'hubs')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _settings_of_lists(sections: dict[str, Any]) -> None:
    """Settings of parts that a plan lists, such as --noise-std of releases, go to every listed part that has them."""
    for name, key in plan_keys().items():
        if not key.is_list or name not in sections:
            continue
        values = sections.pop(name)
        listed = sections.setdefault(key.section, {})
        parts = listed.get(name, list(AuditPlan.model_fields[name].default))
        built = []
        for part in parts:
            table = dict(part) if isinstance(part, Mapping) else {"name": part}
            cls = registry.load(key.kind, table["name"])
            known = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
            built.append({**table, **{setting: value for setting, value in values.items() if setting in known}})
        if all(len(table) == 1 for table in built):
            raise InputError(f"none of the {name} {', '.join(map(str, parts))} takes {', '.join(values)}")
        listed[name] = built
