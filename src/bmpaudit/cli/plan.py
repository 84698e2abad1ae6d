"""One option for every key of a plan, from the plan itself and the registry; from options to one plan; its commands."""

import dataclasses
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from bmpaudit import datasets, models, registry
from bmpaudit.auditing import Subject, Workspace
from bmpaudit.auditing.finished import OWN_GRAPH, stored_graph
from bmpaudit.cli import options
from bmpaudit.cli.options import FILE, SectionedCommand, answer, asked, make_runtime, option, print_json, shared
from bmpaudit.cli.root import cli, echo, tell
from bmpaudit.cli.show import print_rows
from bmpaudit.io.readers import parse_toml, read_toml
from bmpaudit.pipeline.pipeline import source_name
from bmpaudit.plan import AuditPlan, parse_plan, plan_keys, plan_table, plan_template, read_plan
from bmpaudit.registry import ENTRIES, SAMPLER
from bmpaudit.util import files, words
from bmpaudit.util.errors import InputError

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


@dataclasses.dataclass(frozen=True)
class PlanOption:
    """An option of the command line, its section and key in a plan file, and the parts that it is a setting of."""

    name: str
    place: tuple[str, ...]
    click_option: Decorator
    is_list: bool = False
    owners: tuple[str, ...] = ()


@cache
def plan_option_table() -> dict[str, PlanOption]:
    """Every option that makes a plan, in the order of the plan file."""
    table: list[PlanOption] = []
    for name, key in plan_keys().items():
        if name == "gate":
            continue  # the command check has options for it
        if name == "training":
            table += _part_settings("training", {"": models.Training})
            continue
        info, entries = AuditPlan.model_fields[name], ENTRIES.get(key.kind, {})
        place = (key.section, "name") if key.section == name else tuple(filter(None, (key.section, name)))
        annotation, text = info.annotation, f"{key.about}."
        if key.kind:
            repeated = "; can be repeated" if key.is_list else ""
            annotation, text = str, f"{key.about} ({', '.join(entries)}, or module:Name{repeated})."
        # A field that takes several parts is given by repeating the option for one.
        table.append(_plan_option(key.kind or name, place, annotation, text, _shown(info.default), key.is_list))
        if key.kind and (key.section == name or key.is_list):
            table += _part_settings(name, {part: registry.load(key.kind, part) for part in entries})
    return {each.name: each for each in table}


def _part_settings(section: str, classes: Mapping[str, Any]) -> list[PlanOption]:
    """An option for each field of the built-in parts of one kind; parts that share a field share the option."""
    defaults: dict[str, dict[str, Any]] = {}  # by field, then by part
    for part, cls in classes.items():
        for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
            defaults.setdefault(field.name, {})[part] = field.default
    settings = []
    for name, by_part in defaults.items():
        owners = tuple(by_part)
        first = classes[owners[0]]
        annotation, text = get_type_hints(first)[name], registry.field_help(first).get(name, "")
        # A field that holds several values, or may hold them.
        is_list = tuple in (get_origin(each) for each in (annotation, *get_args(annotation)))
        notes = [", ".join(owners)] if len(owners) < len(classes) else []
        notes += ["can be repeated"] if is_list else []
        text += f" ({'; '.join(notes)})." if notes else "."
        default = _common_default(by_part)
        settings.append(_plan_option(name, (section, name), annotation, text, default, is_list, owners))
    return settings


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
    name: str, place: tuple[str, ...], annotation: Any, text: str, default: str, is_list: bool, owners: Any = ()
) -> PlanOption:
    flag, base = name.replace("_", "-"), _base_type(annotation)
    section = options.HEADINGS.get(place[0], options.FIRST_OPTIONS)
    described: dict[str, Any] = {"section": section, "default_text": default, "help": text}
    if base is bool:
        add = option(f"--{flag}/--no-{flag}", name, default=None, **described)
    else:
        metavar = "NAME" if name in ENTRIES else None
        add = option(f"--{flag}", name, type=base, multiple=is_list, metavar=metavar, **described)
    return PlanOption(name, place, add, is_list, owners)


def _base_type(annotation: Any) -> Any:
    """The Click type of a field: the first alternative of a union, the items of a tuple, a choice for literals."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType, tuple):
        return _base_type(get_args(annotation)[0])
    choices = registry.choices(annotation)
    return click.Choice(choices) if choices else annotation


plan_path_option = option(
    "--plan",
    "plan_path",
    metavar="FILE",
    help="Plan file with settings (see bmpaudit plan init); command-line options override the file.",
)
set_option = option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of the plan, such as sampler.hubs=3 for a sampler of your own; can be repeated.",
)


def plan_options(*, without: Collection[str] = ()) -> Decorator:
    """Adds every option that makes a plan, except those of some sections."""
    chosen = [each.click_option for each in plan_option_table().values() if each.place[0] not in without]
    return options.all_of([plan_path_option, *chosen, set_option, shared("trust-code")])


def setting_options(section: str) -> Decorator:
    """Adds the options for the settings of one kind of part, such as those of all samplers."""
    chosen = [each.click_option for each in plan_option_table().values() if each.place[0] == section and each.owners]
    return options.all_of([*chosen, set_option])


def make_subject(graph: str | None, settings: Mapping[str, Any], folder: Path, *, trains: bool = True) -> Subject:
    """The graph and the plan: options override the plan file, which overrides the defaults.

    Without GRAPH and --plan, the plan of the folder is used. How many shadow models there are, and whether their
    weights are kept, is the folder's in any case unless it is given. If the command trains, models that are said to be
    trained elsewhere are refused unless they were imported.
    """
    trust_code = bool(settings.get("trust_code"))
    base: Path | None = settings["plan_path"]
    if base is None and graph is None and (folder / "plan.toml").exists():
        base = folder / "plan.toml"
    table = merge_settings(graph, base, settings)
    source = str(table.get("graph") or "")
    if not source:
        raise click.UsageError("GRAPH is missing: name one, or a --plan that has one, or the --out of an audit")
    with suppress(InputError):  # whoever uses the folder says what is wrong
        stored = read_plan(folder / "plan.toml").plan
        table = {"shadows": stored.shadows, "keep_weights": stored.keep_weights} | table
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
        is_copy = source == OWN_GRAPH and base.parent.resolve() != folder.resolve()
        subject = Subject(loaded, str((base.parent / OWN_GRAPH).resolve()) if is_copy else source, plan)
    else:
        loaded = datasets.load(source, trust_code=trust_code or not is_from_file)
        subject = Subject(loaded, source_name(source), plan)
    if trains and plan.shadow_plan.is_trained_elsewhere and not (folder / "shadows.json").exists():
        raise click.UsageError(
            "models trained elsewhere have to be imported: run bmpaudit sample, train on these samples, then run "
            "bmpaudit attack --runs"
        )
    return subject


def merge_settings(graph: str | None, base: Path | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The nested values of a plan: GRAPH and options of the command line over those of the file `base`.

    Code that the file names is refused without `--trust-code`.
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
        kept = {name: value for name, value in table.items() if isinstance(value, Mapping) or name not in given}
        for section, values in given.items():
            if section in kept:
                kept[section] = {key: value for key, value in kept[section].items() if key not in values}
        if graph is not None or _has_copy_of_graph(base):
            kept.pop("graph", None)
        for kind, target in code_in_plan(kept):
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
    """The settings on the command line that each of several samplers takes; one that none takes is refused."""
    given = _given(settings)
    values = given.pop("sampler", {})
    if given:
        raise click.UsageError(f"--set takes sampler.KEY=VALUE here, got {next(iter(given))}")
    fitting = {name: _settings_of(registry.load(SAMPLER, name), values) for name in names}
    for key in values:
        if not any(key in taken for taken in fitting.values()):
            raise _misfit("sampler", key, names)
    return fitting


def code_in_plan(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The kind and `module:Name` of all code in the nested values of a plan file."""
    source = table.get("graph")
    is_code = isinstance(source, str) and source not in datasets.NAMED_DATASETS and registry.is_code(source)
    if is_code and not Path(str(source)).is_dir():  # `datasets.load` would run it
        yield "graph", str(source)
    for name, key in plan_keys().items():
        if key.kind:
            values = table.get(key.section, {}) if key.section else table
            texts = _texts_in(values if key.section == name else values.get(name))
            yield from ((key.kind, each) for each in texts if each not in ENTRIES[key.kind] and registry.is_code(each))


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


def _settings_of(cls: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some settings that a part takes."""
    known = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    return {name: value for name, value in values.items() if name in known}


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
        fitting = _settings_of(registry.load(key.kind, whole["name"]), values)
        is_used = is_used or bool(fitting)
        changed.append({**whole, **fitting})
    if not is_used:
        names = ", ".join(str(part["name"]) for part in changed)
        raise InputError(f"none of the {name} ({names}) takes {', '.join(values)}")
    listed[name] = changed


# The command plan: write one, check one, or estimate its cost.


plan_argument = click.argument("path", metavar="FILE", type=FILE)


@cli.group()
def plan() -> None:
    """Write a plan, check it, or estimate its cost.

    \b
    bmpaudit plan init audit.toml
    """


@plan.command(cls=SectionedCommand)
@click.argument("path", metavar="[FILE]", type=FILE, default="audit.toml")
@option(
    "--graph",
    metavar="GRAPH",
    default_text="the one of --plan, or cora",
    help="Graph to audit: the name of a data set, an .npz archive, a folder with tables, or module:function.",
)
@option("--force", is_flag=True, help="Overwrite an existing file.")
@plan_options()
def init(path: Path, graph: str | None, force: bool, **settings: Any) -> None:
    """Write a plan with a comment on every key to FILE, or to audit.toml.

    \b
    bmpaudit plan init audit.toml --graph cora --sampler snowball
    """
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; --force overwrites it")
    table = {"graph": "cora"} | merge_settings(graph, settings["plan_path"], settings)
    files.write_text(path, plan_template(parse_plan(table).plan, table["graph"]))
    echo(f"{path}: run it with bmpaudit audit --plan {path} --out DIR")


@plan.command()
@plan_argument
@shared("trust-code", "json")
def check(path: Path, trust_code: bool) -> None:
    """Check a plan for unknown keys and impossible values.

    \b
    bmpaudit plan check audit.toml
    """
    checked = read_plan(path, trust_code=trust_code)
    for kind, target in code_in_plan(read_toml(path)) if not trust_code else ():
        tell(f"{registry.untrusted(kind, target)}. Until then it is not checked.")
    plan, graph = checked.plan, checked.graph
    text = (
        f"{path}: fine. {graph or 'no graph'}, {plan.title}\n"
        f"{plan.shadows:,} shadow models, {len(plan.views)} views, {', '.join(plan.definitions_by_name)}"
    )
    answer(plan_table(plan, graph), text)


@plan.command()
@plan_argument
@shared("trust-code", "threads", "quiet", "json")
def cost(path: Path, trust_code: bool) -> None:
    """Estimate how long each step of a plan will take, and how much disk space it needs.

    A few models are trained, and the later steps are rehearsed on a small part of the graph.

    \b
    bmpaudit plan cost audit.toml
    """
    from bmpaudit.pipeline.cost import audit_cost

    stored = read_plan(path, trust_code=trust_code)
    if not stored.graph:
        raise click.UsageError(f"{path} names no graph")
    graph = datasets.load(stored.graph, trust_code=trust_code)
    price = audit_cost(Subject(graph, stored.graph, stored.plan), make_runtime())
    if asked("json"):
        print_json(vars(price) | {"total": price.total})
        return
    echo(f"{stored.graph}, {stored.plan.title}, {price.num_models:,} models")
    steps = {**price.seconds, "in all": price.total}
    print_rows(("step", "about"), [(step, words.duration(seconds)) for step, seconds in steps.items()])
    megabytes = f"{price.disk_bytes / 1e6:,.0f} MB"
    echo(f"A model takes {price.seconds_per_model * 1e3:,.1f} ms on one thread; all take {megabytes} of disk.")
