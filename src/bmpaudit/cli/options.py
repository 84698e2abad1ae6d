"""Options that several commands share, under headings in help texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.decorators import FC
from click.types import OptionHelpExtra

from bmpaudit.cli.root import echo, tell
from bmpaudit.report.drawing import DEFAULT_PICTURES, NO_PICTURES, PICTURE_FORMATS, picture_formats

if TYPE_CHECKING:
    from bmpaudit.auditing.context import Runtime


FIRST_OPTIONS, RUN_OPTIONS = "Options", "Run"
HEADINGS = {  # of an option, by the section or key of the plan file that it sets
    "sampler": "Sampler",
    **dict.fromkeys(("model", "training", "engine"), "Model and training"),
    **dict.fromkeys(("views", "releases", "queries"), "Views (what is released, and how it is queried)"),
    **dict.fromkeys(("attack", "decision", "rules", "permutations"), "Attack and decision"),
    **dict.fromkeys(("estimation", "definitions"), "Estimation"),
}
SECTIONS = tuple(dict.fromkeys([FIRST_OPTIONS, *HEADINGS.values(), RUN_OPTIONS]))


class SectionOption(click.Option):
    """An option under one of `SECTIONS`, whose default may be described in words if it is no value of the option."""

    def __init__(self, *args: Any, section: str = FIRST_OPTIONS, default_text: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section, self.default_text = section, default_text

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """The default and whether it is required; bounds are for the error message."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        if self.default_text:
            extra["default"] = self.default_text
        elif "default" in extra and type(self.default) is int:
            extra["default"] = f"{self.default:,}"
        return extra


class SectionedCommand(click.Command):
    """A command whose help lists the options under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options, one list for each section."""
        rows: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                rows[getattr(parameter, "section", RUN_OPTIONS)].append(record)
        for section, records in rows.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


def all_of(options: Sequence[Callable[[FC], FC]]) -> Callable[[FC], FC]:
    """Adds several options, the first one first in help texts."""

    def decorate(command: FC) -> FC:
        for add in reversed(options):
            command = add(command)
        return command

    return decorate


FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


def option(*names: str, metavar: str | None = None, **settings: Any) -> Callable[[FC], FC]:
    """`click.option` of a `SectionOption`, whose default is shown if it has one; DIR, FILE and FILE.csv are paths."""
    kind = {"DIR": FOLDER, "FILE": FILE}.get((metavar or "").partition(".")[0])
    settings = {"type": kind, "metavar": metavar, "show_default": settings.get("default") is not None, **settings}
    return click.option(*names, cls=SectionOption, **settings)


def run_option(*names: str, **settings: Any) -> Callable[[FC], FC]:
    """An option that changes no answer, under the last heading."""
    return option(*names, section=RUN_OPTIONS, **settings)


def _checked_pictures(context: click.Context, parameter: click.Parameter, value: str) -> str:  # noqa: ARG001
    """Refuses unknown formats at once, not after the audit."""
    picture_formats(value)
    return value


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keeps what says how to run for `asked`, so that commands do not pass it on."""
    context.meta[f"bmpaudit.{parameter.name}"] = value


REMEMBERED: dict[str, Any] = {"expose_value": False, "callback": _remember}
SHARED = {
    "folder": click.argument("folder", metavar="DIR", type=FOLDER),
    "graph": click.argument("graph", metavar="[GRAPH]", required=False),
    "out": option("--out", metavar="DIR", required=True, help="Audit folder: a new one, or one to resume or extend."),
    "pictures": run_option(
        "--pictures",
        metavar="FORMATS",
        default=DEFAULT_PICTURES,
        callback=_checked_pictures,
        help=f"Formats of the pictures: {', '.join(PICTURE_FORMATS)}, several separated by commas, or {NO_PICTURES}.",
    ),
    "store": run_option(
        "--store",
        metavar="ADDRESS",
        help="Where the shadow models of a new audit folder are kept, such as s3://bucket/audit.",
        default_text="the audit folder",
    ),
    "trust-code": run_option(
        "--trust-code",
        is_flag=True,
        help="Import code that a plan file or an audit folder names module:Name. It runs: use this only if you trust "
        "its author.",
    ),
    "threads": run_option(
        "--threads",
        metavar="INTEGER",
        type=click.IntRange(min=1),
        default_text="all cores",
        help="Number of threads.",
        **REMEMBERED,
    ),
    "dask": run_option(
        "--dask",
        metavar="ADDRESS",
        help="Work on a Dask cluster: the address of its scheduler, such as tcp://scheduler:8786, or local:N for N "
        "processes on this machine.",
        **REMEMBERED,
    ),
    "quiet": run_option("--quiet", is_flag=True, help="Hide progress bars.", **REMEMBERED),
    "json": run_option("--json", is_flag=True, help="Print the result as JSON.", **REMEMBERED),
}
"""The arguments and options that several commands share, by name."""


def shared(*names: str) -> Callable[[FC], FC]:
    """Adds arguments and options of `SHARED`."""
    return all_of([SHARED[name] for name in names])


def asked(name: str) -> Any:
    """What the command line says for one of the remembered options, such as `json`."""
    return click.get_current_context().meta.get(f"bmpaudit.{name}")


def answer(values: Any, text: object) -> None:
    """Prints a result, with `--json` its values."""
    if asked("json"):
        print_json(values)
    else:
        echo(text)


def print_json(values: Any) -> None:
    """Prints values as JSON."""
    from bmpaudit.util.values import to_json

    echo(to_json(values))


def make_runtime() -> Runtime:
    """How to run, by `--threads`, `--quiet` and `--dask`; a Dask cluster is left when the command ends."""
    from bmpaudit.auditing.context import Runtime

    executor = None
    if asked("dask") is not None:
        from bmpaudit.workers import executor_at

        executor = click.get_current_context().with_resource(executor_at(asked("dask")))
    return Runtime(asked("threads"), asked("quiet"), tell, executor)
