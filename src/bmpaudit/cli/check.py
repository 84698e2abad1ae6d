"""Whether a finished audit passes a gate, for people, scripts and CI servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bmpaudit.cli.options import RUN_OPTIONS, SectionedCommand, SectionOption, folder_argument, json_option
from bmpaudit.cli.root import cli, echo
from bmpaudit.plan import Gate
from bmpaudit.registry import field_help
from bmpaudit.util.errors import DataError
from bmpaudit.util.files import write_text
from bmpaudit.util.values import to_json

if TYPE_CHECKING:
    pass


EXPOSURES = ("max_exposure", "max_exposure_non_members")

Command = Callable[..., Any]


class Unusable(click.ClickException):
    """A file or folder cannot be read or written."""

    exit_code = 4


def _gate_options(command: Command) -> Command:
    """An option for each field of a gate."""
    about = field_help(Gate)
    for name in reversed(Gate.model_fields):
        settings: dict[str, Any] = {"cls": SectionOption, "help": f"{about[name]}."}
        if name in EXPOSURES:
            settings |= {
                "metavar": "N@P",
                "multiple": True,
                "help": f"{about[name].partition(';')[0]}; can be repeated.",
            }
        elif name == "release":
            settings |= {"metavar": "NAME", "help": "Release that is checked.", "default_text": "the plan's first"}
        else:
            settings |= {"metavar": "FLOAT", "type": float}
        command = click.option(f"--{name.replace('_', '-')}", **settings)(command)
    return command


@cli.command(cls=SectionedCommand)
@folder_argument
@_gate_options
@json_option
@click.option(
    "--markdown", is_flag=True, cls=SectionOption, section=RUN_OPTIONS, help="Print a few lines for a model card."
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    cls=SectionOption,
    section=RUN_OPTIONS,
    help="Also write JUnit XML to FILE, one test case for each threshold.",
)
def check(folder: Path, as_json: bool, markdown: bool, junit: Path | None, **thresholds: Any) -> None:
    """Hold a finished audit against thresholds, and exit accordingly.

    Options override the section [gate] of the audit's plan, which is used where they say nothing. Exit code 0: all
    passed; 1: a threshold is exceeded; 2: wrong use; 3: not exceeded, but these shadow models cannot decide it; 4: a
    file or folder cannot be read or written.

    \b
    bmpaudit check cora-audit --max-proven-right 3 --max-exposure 10@0.99
    """
    from bmpaudit.gate import check as check_audit
    from bmpaudit.gate import to_junit, to_markdown

    if as_json and markdown:
        raise click.UsageError("check prints JSON or Markdown, got --json and --markdown")
    given = {name: value for name, value in thresholds.items() if value not in (None, ())}
    try:
        result = check_audit(folder, **given)
        if junit is not None:
            write_text(junit, f'<?xml version="1.0" encoding="UTF-8"?>\n{to_junit(result)}\n')
        if as_json:
            echo(to_json(result.to_plain()))
        else:
            echo(to_markdown(result) if markdown else result)
    except DataError as failure:
        raise Unusable(str(failure)) from failure
    except OSError as failure:
        place = "" if failure.filename is None else f"{failure.filename}: "
        raise Unusable(f"{place}{failure.strerror or failure}") from failure
    click.get_current_context().exit(result.exit_code)
