"""Options that several commands share, under headings in help texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.decorators import FC
from click.types import OptionHelpExtra

from bmpaudit.cli.root import tell
from bmpaudit.report.drawing import DEFAULT_PICTURES, NO_PICTURES, PICTURE_FORMATS, picture_formats

if TYPE_CHECKING:
    from bmpaudit.auditing.context import Runtime


FIRST_OPTIONS, RUN_OPTIONS = "Options", "Run"
HEADINGS = {
    "sampler": "Sampler",
    **dict.fromkeys(("model", "training", "engine"), "Model and training"),
    **dict.fromkeys(("views", "releases", "queries"), "Views (what is released, and how it is queried)"),
    **dict.fromkeys(("attack", "decision", "rules", "permutations"), "Attack and decision"),
    **dict.fromkeys(("estimation", "definitions"), "Estimation"),
}
"""The heading of an option, by the section or key of the plan file that it sets."""

SECTIONS = tuple(dict.fromkeys([FIRST_OPTIONS, *HEADINGS.values(), RUN_OPTIONS]))


class SectionOption(click.Option):
    """An option under a section, whose default may be described in words.

    Args:
        section: One of `SECTIONS`.
        default_text: What help says of the default, where the default is no value of the option itself.
    """

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


def option(*names: str, **settings: Any) -> Callable[[FC], FC]:
    """`click.option` of a `SectionOption`, whose default is shown if it has one."""
    return click.option(*names, cls=SectionOption, show_default=settings.get("default") is not None, **settings)


def run_option(*names: str, **settings: Any) -> Callable[[FC], FC]:
    """An option that changes no answer, under the last heading."""
    return option(*names, section=RUN_OPTIONS, **settings)


def _checked_pictures(context: click.Context, parameter: click.Parameter, value: str) -> str:  # noqa: ARG001
    """Refuses unknown formats at once, not after the audit."""
    picture_formats(value)
    return value


FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)

threads_option = run_option(
    "--threads", metavar="INTEGER", type=click.IntRange(min=1), default_text="all cores", help="Number of threads."
)
dask_option = run_option(
    "--dask",
    metavar="ADDRESS",
    help="Work on a Dask cluster: the address of its scheduler, such as tcp://scheduler:8786, or local:N for N "
    "processes on this machine.",
)
store_option = run_option(
    "--store",
    metavar="ADDRESS",
    help="Where the shadow models of a new audit folder are kept, such as s3://bucket/audit.",
    default_text="the audit folder",
)
quiet_option = run_option("--quiet", is_flag=True, help="Hide progress bars.")
json_option = run_option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
folder_argument = click.argument("folder", metavar="DIR", type=FOLDER)
graph_argument = click.argument("graph", metavar="[GRAPH]", required=False)
out_option = option(
    "--out", metavar="DIR", type=FOLDER, required=True, help="Audit folder: a new one, or one to resume or extend."
)
pictures_option = run_option(
    "--pictures",
    metavar="FORMATS",
    default=DEFAULT_PICTURES,
    callback=_checked_pictures,
    help=f"Formats of the pictures: {', '.join(PICTURE_FORMATS)}, several separated by commas, or {NO_PICTURES}.",
)
trust_option = run_option(
    "--trust-code",
    is_flag=True,
    help="Import code that a plan file or an audit folder names module:Name. It runs: use this only if you trust its "
    "author.",
)


def make_runtime(threads: int | None, quiet: bool, dask: str | None = None) -> Runtime:
    """Progress and notices on stderr; the connection to a Dask cluster is closed when the command ends."""
    from bmpaudit.auditing.context import Runtime

    executor = None
    if dask is not None:
        from bmpaudit.workers import executor_at

        executor = click.get_current_context().with_resource(executor_at(dask))
    return Runtime(threads, quiet, tell, executor)
