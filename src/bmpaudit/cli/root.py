"""The command itself, and how it tells what went wrong."""

from __future__ import annotations

import sys
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
    except MemoryError:
        _tell("not enough memory for this")
        sys.exit(1)
    except (DownloadError, OSError) as failure:
        _tell(str(failure))
        sys.exit(1)
    except (click.ClickException, InputError) as wrong:
        _tell(wrong.format_message() if isinstance(wrong, click.ClickException) else str(wrong))
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        _tell("stopped")
        sys.exit(130)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="bmpaudit")
def cli() -> None:
    """How surely can someone who sees a trained graph neural network tell which nodes it was trained on?"""


def _tell(message: str) -> None:
    click.echo(f"bmpaudit: {' '.join(message.split())}", err=True)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    _tell(f"{'' if issubclass(category, GraphCleanedWarning) else f'{category.__name__}: '}{message}")
