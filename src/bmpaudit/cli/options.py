"""Options that several commands share, under headings in help texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.types import OptionHelpExtra

from bmpaudit.cli.root import tell
from bmpaudit.report.drawing import DEFAULT_PICTURES, NO_PICTURES, PICTURE_FORMATS, picture_formats

if TYPE_CHECKING:
    from bmpaudit.auditing.context import Runtime


FIRST_OPTIONS = "Options"
SAMPLER_OPTIONS = "Sampler"
MODEL_OPTIONS = "Model and training"
VIEWS_OPTIONS = "Views (what is released, and how it is queried)"
ATTACK_OPTIONS = "Attack and decision"
ESTIMATION_OPTIONS = "Estimation"
RUN_OPTIONS = "Run"
SECTIONS = (
    FIRST_OPTIONS,
    SAMPLER_OPTIONS,
    MODEL_OPTIONS,
    VIEWS_OPTIONS,
    ATTACK_OPTIONS,
    ESTIMATION_OPTIONS,
    RUN_OPTIONS,
)


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


# Options that several commands share.


def _checked_pictures(context: click.Context, parameter: click.Parameter, value: str) -> str:  # noqa: ARG001
    """Refuses unknown formats at once, not after the audit."""
    picture_formats(value)
    return value


threads_option = click.option(
    "--threads",
    metavar="INTEGER",
    type=click.IntRange(min=1),
    cls=SectionOption,
    section=RUN_OPTIONS,
    default_text="all cores",
    help="Number of threads.",
)
dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    cls=SectionOption,
    section=RUN_OPTIONS,
    help="Work on a Dask cluster: the address of its scheduler, such as tcp://scheduler:8786, or local:N for N "
    "processes on this machine.",
)
store_option = click.option(
    "--store",
    metavar="ADDRESS",
    cls=SectionOption,
    section=RUN_OPTIONS,
    help="Where the shadow models of a new audit folder are kept, such as s3://bucket/audit.",
    default_text="the audit folder",
)
quiet_option = click.option("--quiet", is_flag=True, cls=SectionOption, section=RUN_OPTIONS, help="Hide progress bars.")
json_option = click.option(
    "--json", "as_json", is_flag=True, cls=SectionOption, section=RUN_OPTIONS, help="Print the result as JSON."
)
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
graph_argument = click.argument("graph", metavar="[GRAPH]", required=False)
out_option = click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    cls=SectionOption,
    help="Audit folder: a new one, or one to resume or extend.",
)
pictures_option = click.option(
    "--pictures",
    metavar="FORMATS",
    default=DEFAULT_PICTURES,
    show_default=True,
    callback=_checked_pictures,
    cls=SectionOption,
    section=RUN_OPTIONS,
    help=f"Formats of the pictures: {', '.join(PICTURE_FORMATS)}, several separated by commas, or {NO_PICTURES}.",
)
trust_option = click.option(
    "--trust-code",
    is_flag=True,
    cls=SectionOption,
    section=RUN_OPTIONS,
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
