"""The command itself, and how it tells what went wrong."""

from __future__ import annotations

import sys
import traceback
import warnings

import click
from rich.console import Console

from bmpaudit.errors import DownloadError, InputError
from bmpaudit.graph import GraphCleanedWarning

stdout = Console(highlight=False)


def main() -> None:
    """Runs the command line; what the user got wrong is told in one line, with exit code 2."""
    warnings.showwarning = _show_warning
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as no_command:
        click.echo(no_command.format_message(), err=True)
        sys.exit(2)
    except (MemoryError, OSError, click.ClickException, InputError) as failure:
        if _Settings.debug:
            traceback.print_exc()
        sys.exit(_explain(failure))
    except (KeyboardInterrupt, click.Abort):
        _tell("stopped")
        sys.exit(130)


class _Settings:
    """What `--debug` says, for when an error has ended the command."""

    debug = False


def _explain(failure: Exception) -> int:
    """Tells it in one line and returns the exit code: 2 for what the user got wrong, 1 for what failed."""
    if isinstance(failure, MemoryError):
        _tell("not enough memory for this")
        return 1
    _tell(failure.format_message() if isinstance(failure, click.ClickException) else str(failure))
    return 1 if isinstance(failure, (DownloadError, OSError)) else 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="bmpaudit")
@click.option("--debug", is_flag=True, help="Show where in the code an error came from.")
def cli(debug: bool) -> None:
    """How surely can someone who sees a trained graph neural network tell which nodes it was trained on?

    \b
    bmpaudit demo
    bmpaudit audit cora --sampler snowball --out cora-audit
    """
    _Settings.debug = debug


def _tell(message: str) -> None:
    click.echo(f"bmpaudit: {' '.join(message.split())}", err=True)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    _tell(f"{'' if issubclass(category, GraphCleanedWarning) else f'{category.__name__}: '}{message}")
