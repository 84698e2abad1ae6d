"""One option for every key of a plan, from the plan itself and the registry; and back from options to one plan."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bmpaudit import datasets, registry
from bmpaudit.auditing.context import Subject
from bmpaudit.auditing.finished import OWN_GRAPH, stored_graph
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.cli.options import (
    ATTACK_OPTIONS,
    ESTIMATION_OPTIONS,
    FIRST_OPTIONS,
    MODEL_OPTIONS,
    SAMPLER_OPTIONS,
    VIEWS_OPTIONS,
    SectionOption,
    trust_option,
)
from bmpaudit.io.readers import parse_toml, read_toml
from bmpaudit.models import Training
from bmpaudit.pipeline.pipeline import source_name
from bmpaudit.plan import AuditPlan, PlanKey, parse_plan, plan_keys, read_plan
from bmpaudit.registry import ENTRIES, SAMPLER
from bmpaudit.util.errors import InputError

# The options that make a plan, generated from the plan itself and from the registry of parts.


Command = Callable[..., Any]

# A field of the plan that takes several parts is given by repeating the option for one.
SINGULAR = {"releases": "release", "queries": "query", "rules": "rule", "definitions": "definition"}

# The heading of an option, by the section or key of the plan file that it sets.
HEADINGS = {
    "sampler": SAMPLER_OPTIONS,
    "model": MODEL_OPTIONS,
    "training": MODEL_OPTIONS,
    "engine": MODEL_OPTIONS,
    "views": VIEWS_OPTIONS,
    "releases": VIEWS_OPTIONS,
    "queries": VIEWS_OPTIONS,
    "attack": ATTACK_OPTIONS,
    "decision": ATTACK_OPTIONS,
    "rules": ATTACK_OPTIONS,
    "permutations": ATTACK_OPTIONS,
    "estimation": ESTIMATION_OPTIONS,
    "definitions": ESTIMATION_OPTIONS,
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
        "section": HEADINGS.get(place[0], FIRST_OPTIONS),
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


# From options, a plan file and an audit folder to one plan. Code that a file names is not run unless it is trusted.


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
    for section in _single_parts():
        default = AuditPlan.model_fields[section].default
        there = table.get(section, {}).get("name", default)
        name = given.get(section, {}).get("name", there)
        if name != there:
            table.pop(section, None)  # settings of another part do not apply to this one
        _refuse_misfits(section, name, given.get(section, {}))
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


def _single_parts() -> Iterator[str]:
    """The sections of a plan file that are one part each: sampler, model, attack."""
    yield from (name for name, key in plan_keys().items() if key.kind and key.section == name)


def code_in_plan(table: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Iterator[tuple[str, str]]:
    """The kind and `module:Name` of all code in the nested values of a plan file, except what options override."""
    source, given = table.get("graph"), given or {}
    if "graph" not in given and isinstance(source, str) and _is_code_of_graph(source):
        yield "graph", source
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
            yield from ((key.kind, target) for target in _code_in_part(part, key, options if is_section else {}))


def _code_in_part(part: Any, key: PlanKey, options: Mapping[str, Any]) -> Iterator[str]:
    settings: Iterable[tuple[str, Any]] = part.items() if isinstance(part, Mapping) else (("name", part),)
    for setting, value in settings:
        for text in _texts_in(value) if setting not in options else ():
            if text not in ENTRIES[key.kind] and registry.is_code(text):
                yield text


def _texts_in(value: Any) -> Iterator[str]:
    """All text in nested values: a classifier may have others within it, each with its class."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for each in value.values() for text in _texts_in(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in _texts_in(each))


def _is_code_of_graph(source: str) -> bool:
    """Whether `datasets.load` would run it."""
    return source not in datasets.NAMED_DATASETS and not Path(source).is_dir() and registry.is_code(source)


def _refuse_misfits(section: str, name: str, given: Mapping[str, Any]) -> None:
    """Refuses options of parts other than the one that is used."""
    if name not in ENTRIES[section]:
        return
    for key in given:
        option = plan_option_table().get(key)
        if option is not None and option.owners and option.place[0] == section and name not in option.owners:
            raise _misfit(section, key, [name])


def _misfit(section: str, key: str, names: Sequence[str]) -> click.UsageError:
    option = plan_option_table().get(key)
    if option is None or not option.owners:
        return click.UsageError(f"{section} {' and '.join(names)} has no setting {key}")
    fitting, used = " or ".join(option.owners), " ".join(f"--{section} {name}" for name in names)
    return click.UsageError(f"--{key.replace('_', '-')} is for --{section} {fitting}, got {used}")


def _fields(cls: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options on the command line, as sections of a plan."""
    context = click.get_current_context()
    sections: dict[str, Any] = {}
    for name, option in plan_option_table().items():
        if name not in settings or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        _put(sections, option.place, list(settings[name]) if option.is_list else settings[name])
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
