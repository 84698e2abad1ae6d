"""One option for every key of a plan, from the plan itself and the registry; and back from options to one plan."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bmpaudit import datasets, registry
from bmpaudit.auditing.context import Subject
from bmpaudit.auditing.finished import OWN_GRAPH, stored_graph
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.cli.options import FILE, FIRST_OPTIONS, HEADINGS, option, trust_option
from bmpaudit.io.readers import parse_toml, read_toml
from bmpaudit.models import Training
from bmpaudit.pipeline.pipeline import source_name
from bmpaudit.plan import AuditPlan, PlanKey, parse_plan, plan_keys, read_plan
from bmpaudit.registry import ENTRIES, SAMPLER
from bmpaudit.util.errors import InputError

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

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
    click_option: Decorator
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
    return {each.name: each for each in options}


def _plan_setting(name: str, key: PlanKey) -> PlanOption:
    info = AuditPlan.model_fields[name]
    singular = SINGULAR.get(name, name)
    place = (key.section, "name") if key.section == name else tuple(part for part in (key.section, name) if part)
    if not key.kind:
        return _plan_option(singular, place, info.annotation, f"{info.description}.", info.default)
    repeated = "; can be repeated" if key.is_list else ""
    text = f"{info.description} ({', '.join(ENTRIES[key.kind])}, or module:Name{repeated})."
    return _plan_option(singular, place, str, text, info.default, is_list=key.is_list, metavar="NAME")


def _part_settings(section: str, classes: Mapping[str, Any]) -> list[PlanOption]:
    """An option for each field of the built-in parts of one kind; parts that share a field share the option."""
    found: dict[str, list[tuple[str, Any, str, Any]]] = {}  # by field: part, type, help and default
    for part, cls in classes.items():
        if dataclasses.is_dataclass(cls):
            hints, about = typing.get_type_hints(cls), registry.field_help(cls)  # type: ignore[arg-type]
            for field in dataclasses.fields(cls):
                row = (part, hints[field.name], about.get(field.name, ""), field.default)
                found.setdefault(field.name, []).append(row)
    options = []
    for name, rows in found.items():
        owners = tuple(part for part, *_ in rows)
        _, annotation, text, _ = rows[0]
        # A field that holds several values, or may hold them.
        is_list = tuple in (typing.get_origin(each) for each in (annotation, *typing.get_args(annotation)))
        notes = [", ".join(owners)] if len(owners) < len(classes) else []
        notes += ["can be repeated"] if is_list else []
        text += f" ({'; '.join(notes)})." if notes else "."
        default = _common_default({part: default for part, _, _, default in rows})
        place = (section, name)
        options.append(_plan_option(name, place, annotation, text, default, is_list=is_list, owners=owners))
    return options


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


def _plan_option(
    name: str,
    place: tuple[str, ...],
    annotation: Any,
    text: str,
    default: Any,
    *,
    is_list: bool = False,
    metavar: str | None = None,
    owners: tuple[str, ...] = (),
) -> PlanOption:
    flag, base = name.replace("_", "-"), _base_type(annotation)
    described = {"section": HEADINGS.get(place[0], FIRST_OPTIONS), "default_text": _shown(default), "help": text}
    if base is bool:
        add = option(f"--{flag}/--no-{flag}", name, default=None, **described)
    else:
        add = option(f"--{flag}", name, type=base, multiple=is_list, metavar=metavar, **described)
    return PlanOption(name, place, add, is_list, owners)


def _base_type(annotation: Any) -> Any:
    """The Click type of a field: the first alternative of a union, the items of a tuple, a choice for literals."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, tuple):
        return _base_type(typing.get_args(annotation)[0])
    choices = registry.choices(annotation)
    return click.Choice(choices) if choices else annotation


plan_path_option = option(
    "--plan",
    "plan_path",
    metavar="FILE",
    type=FILE,
    help="Plan file with settings (see bmpaudit plan init); command-line options override the file.",
)
set_option = option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of the plan, such as sampler.hubs=3 for a sampler of your own; can be repeated.",
)


def _all_of(options: Sequence[Decorator]) -> Decorator:
    def decorate(command: Command) -> Command:
        for add in reversed(options):
            command = add(command)
        return command

    return decorate


def plan_options(*, without: Collection[str] = ()) -> Decorator:
    """Adds every option that makes a plan, except those of some sections."""
    chosen = [each.click_option for each in plan_option_table().values() if each.place[0] not in without]
    return _all_of([plan_path_option, *chosen, set_option, trust_option])


def setting_options(section: str) -> Decorator:
    """Adds the options for the settings of one kind of part, such as those of all samplers."""
    table = plan_option_table().values()
    return _all_of([each.click_option for each in table if each.place[0] == section and each.owners])


def make_subject(
    graph: str | None, plan_path: Path | None, settings: Mapping[str, Any], folder: Path | None = None
) -> Subject:
    """The graph and the plan: options override the plan file, which overrides the defaults.

    Without GRAPH and --plan, the plan of the folder is used. How many shadow models there are, and whether their
    weights are kept, is the folder's in any case unless it is given.

    Raises:
        UntrustedCodeError: if the file names code, and `--trust-code` was not given.
    """
    trust_code = bool(settings.get("trust_code"))
    base = plan_path
    if base is None and graph is None and folder is not None and (folder / "plan.toml").exists():
        base = folder / "plan.toml"
    table = merge_settings(graph, base, settings)
    source = str(table.get("graph") or "")
    if not source:
        raise click.UsageError("GRAPH is missing: name one, or a --plan that has one, or the --out of an audit")
    if folder is not None:
        table = _stored_settings(folder) | table
    plan = parse_plan(table).plan  # code that is left in it stands on the command line, or is trusted
    given = _given(settings)
    if plan.shadow_plan.training is None and given.get("training"):
        key = next(iter(given["training"]))
        raise click.UsageError(
            f"the model {registry.title(plan.model)} is not trained by the plan: {key} does not apply"
        )
    is_from_file = graph is None and "graph" not in given
    if is_from_file and base is not None and _has_copy_of_graph(base):
        loaded = stored_graph(Workspace(base.parent), source, trust_code=trust_code)
        is_own = folder is not None and base.parent.resolve() == folder.resolve()
        is_copy = source == OWN_GRAPH and not is_own
        return Subject(loaded, str((base.parent / OWN_GRAPH).resolve()) if is_copy else source, plan)
    return Subject(datasets.load(source, trust_code=trust_code or not is_from_file), source_name(source), plan)


def _stored_settings(folder: Path) -> dict[str, Any]:
    """What the plan of an audit folder says of its models; nothing if there is no plan that can be read."""
    try:
        plan = read_plan(folder / "plan.toml").plan
    except InputError:  # whoever uses the folder says what is wrong
        return {}
    return {"shadows": plan.shadows, "keep_weights": plan.keep_weights}


def check_trainable(subject: Subject, folder: Path) -> None:
    """Refuses to train models that are said to be trained elsewhere; those that were imported are there already.

    Raises:
        UsageError: saying how to import them.
    """
    if subject.plan.shadow_plan.is_trained_elsewhere and not (folder / "shadows.json").exists():
        raise click.UsageError(
            "models trained elsewhere have to be imported: run bmpaudit sample, train on these samples, then run "
            "bmpaudit attack --runs"
        )


def merge_settings(graph: str | None, base: Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The nested values of a plan: GRAPH and options of the command line over those of the file `base`.

    Raises:
        UntrustedCodeError: if the file names code, and `--trust-code` was not given.
    """
    given = _given(settings)
    of_lists = {name: given.pop(name) for name, key in plan_keys().items() if key.is_list and name in given}
    table: dict[str, Any] = {}
    if base is not None:
        read_plan(base)  # so that messages name the file
        table = read_toml(base)
    for section in (name for name, key in plan_keys().items() if key.kind and key.section == name):
        default = AuditPlan.model_fields[section].default
        there = table.get(section, {}).get("name", default)
        name = given.get(section, {}).get("name", there)
        if name != there:
            table.pop(section, None)  # settings of another part do not apply to this one
        for key in given.get(section, {}) if name in ENTRIES[section] else ():
            known = plan_option_table().get(key)
            if known is not None and known.owners and known.place[0] == section and name not in known.owners:
                raise _misfit(section, key, [name])
    if not settings.get("trust_code"):
        is_graph_safe = {"graph": graph} if graph is not None or _has_copy_of_graph(base) else {}
        for kind, target in code_in_plan(table, given | is_graph_safe):
            raise registry.untrusted(kind, target)
    for section, values in given.items():
        table[section] = {**table.get(section, {}), **values} if isinstance(values, dict) else values
    for name, values in of_lists.items():
        _set_in_list(table, name, values)
    if graph is not None:
        table["graph"] = graph
    return table


def _has_copy_of_graph(base: Path | None) -> bool:
    """Whether a plan is that of an audit folder with a copy of the graph, so that the graph is not made again."""
    return base is not None and base.name == "plan.toml" and (base.parent / OWN_GRAPH).exists()


def settings_by_sampler(names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings on the command line that each of several samplers takes.

    Raises:
        UsageError: if none of them takes a setting.
    """
    given = _given(settings)
    values = given.pop("sampler", {})
    if given:
        raise click.UsageError(f"--set takes sampler.KEY=VALUE here, got {next(iter(given))}")
    fields = {name: _fields(registry.load(SAMPLER, name)) for name in names}
    for key in values:
        if not any(key in known for known in fields.values()):
            raise _misfit("sampler", key, names)
    return {name: {key: value for key, value in values.items() if key in known} for name, known in fields.items()}


def code_in_plan(table: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Iterator[tuple[str, str]]:
    """The kind and `module:Name` of all code in the nested values of a plan file, except what options override."""
    source, given = table.get("graph"), given or {}
    is_code = isinstance(source, str) and source not in datasets.NAMED_DATASETS and registry.is_code(source)
    if "graph" not in given and is_code and not Path(str(source)).is_dir():  # `datasets.load` would run it
        yield "graph", str(source)
    for name, key in plan_keys().items():
        if not key.kind:
            continue
        is_section = key.section == name
        values = table.get(key.section, {}) if key.section else table
        options = given.get(key.section, {}) if key.section else given
        if not is_section and name in options:
            continue
        parts = values if is_section else values.get(name)
        for part in parts if isinstance(parts, list) else (parts,):
            settings = part if isinstance(part, Mapping) else {"name": part}
            for setting, value in settings.items():
                if not (is_section and setting in options):
                    texts = (text for text in _texts_in(value) if text not in ENTRIES[key.kind])
                    yield from ((key.kind, text) for text in texts if registry.is_code(text))


def _texts_in(value: Any) -> Iterator[str]:
    """All text in nested values: a classifier may have others within it, each with its class."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for each in value.values() for text in _texts_in(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in _texts_in(each))


def _misfit(section: str, key: str, names: Sequence[str]) -> click.UsageError:
    known = plan_option_table().get(key)
    if known is None or not known.owners:
        return click.UsageError(f"{section} {' and '.join(names)} has no setting {key}")
    fitting, used = " or ".join(known.owners), " ".join(f"--{section} {name}" for name in names)
    return click.UsageError(f"--{key.replace('_', '-')} is for --{section} {fitting}, got {used}")


def _fields(cls: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options on the command line, as sections of a plan."""
    context = click.get_current_context()
    sections: dict[str, Any] = {}
    for name, known in plan_option_table().items():
        if name in settings and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            _put(sections, known.place, list(settings[name]) if known.is_list else settings[name])
    for assignment in settings.get("assignments", ()):
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--set takes KEY=VALUE, got {assignment!r}")
        _put(sections, tuple(part.strip() for part in key.split(".")), _toml_value(text))
    for key in plan_keys().values():
        if key.section and not isinstance(sections.get(key.section, {}), dict):
            raise click.UsageError(f"--set {key.section}: it is a section of the plan, set one of its keys")
    return sections


def _put(sections: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for section in place[:-1]:
        sections = sections.setdefault(section, {})
        if not isinstance(sections, dict):
            raise click.UsageError(f"--set {'.'.join(place)}: {section} is a value, not a section")
    sections[place[-1]] = value


def _toml_value(text: str) -> Any:
    """A value as TOML reads it; what TOML cannot read is text.

    >>> _toml_value("3"), _toml_value("[1, 2]"), _toml_value("hubs")
    (3, [1, 2], 'hubs')
    """
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text


def _set_in_list(table: dict[str, Any], name: str, values: Mapping[str, Any]) -> None:
    """Gives a setting of listed parts, such as --noise-std of releases, to every listed part that has it."""
    key = plan_keys()[name]
    listed = table.setdefault(key.section, {})
    parts = listed.get(name, list(AuditPlan.model_fields[name].default))
    changed, is_used = [], False
    for part in parts if isinstance(parts, list) else [parts]:
        whole = dict(part) if isinstance(part, Mapping) else {"name": part}
        known = _fields(registry.load(key.kind, whole["name"]))
        fitting = {setting: value for setting, value in values.items() if setting in known}
        is_used = is_used or bool(fitting)
        changed.append({**whole, **fitting})
    if not is_used:
        names = ", ".join(str(part["name"]) for part in changed)
        raise InputError(f"none of the {name} ({names}) takes {', '.join(values)}")
    listed[name] = changed
