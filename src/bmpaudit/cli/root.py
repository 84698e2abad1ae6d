"""The command itself, and how it reports what went wrong."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from bmpaudit.cli.commands import LazyGroup
from bmpaudit.cli.terminal import accept_all_symbols, tell
from bmpaudit.errors import DownloadError, InputError

RARELY = (20_000, 20, 20)
"""When Python looks for garbage in cycles: the libraries' many objects, which stay, make that slow."""


class _Terminated(BaseException):
    """The process was asked to end, as a cluster's scheduler does."""


class _Settings:
    """What `--debug` says, for when an error has ended the command."""

    debug = False


def main() -> None:
    """Runs the command line and exits: 2 for wrong use, 1 for a failure, 130 after Ctrl-C, 143 after SIGTERM.

    Errors are reported in one line on stderr.
    """
    warnings.showwarning = _show_warning
    accept_all_symbols()
    gc.set_threshold(*RARELY)
    with _ending_on_sigterm():
        code = _run()
    gc.freeze()  # nothing is searched for garbage once more at the end
    sys.exit(code)


def _run() -> int:
    try:
        return cli(prog_name="bmpaudit", standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as no_command:
        print(no_command.format_message(), file=sys.stderr)
        return 2
    except (MemoryError, OSError, click.ClickException, InputError) as failure:
        if _Settings.debug:
            traceback.print_exc()
        return _explain(failure)
    except (KeyboardInterrupt, click.Abort):
        return _stop(signal.SIGINT)
    except _Terminated:
        return _stop(signal.SIGTERM)


def _stop(number: signal.Signals) -> int:
    """Reports that the command was stopped and returns the exit code, as shells have it."""
    # A write that was under way ends with the process; asyncio, through which Zarr writes, would complain about that.
    warnings.simplefilter("ignore")
    logging.getLogger("asyncio").disabled = True
    tell("stopped")
    return 128 + number


def _explain(failure: Exception) -> int:
    """Reports an error in one line and returns the exit code: 2 for wrong use, 1 for a failure, or a command's own."""
    if isinstance(failure, MemoryError):
        tell("not enough memory for this")
        return 1
    if isinstance(failure, click.ClickException):
        tell(failure.format_message())
        return failure.exit_code
    if isinstance(failure, OSError) and failure.strerror and failure.filename is not None:
        tell(f"{failure.filename}: {failure.strerror}")
    else:
        tell(str(failure))
    return 1 if isinstance(failure, (DownloadError, OSError)) else 2


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Within the block SIGTERM ends the command as Ctrl-C does: files are left whole and locks are released."""

    def end(_: int, __: FrameType | None) -> None:
        raise _Terminated

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="bmpaudit")
@click.option("--debug", is_flag=True, help="Show where in the code an error came from.")
def cli(debug: bool) -> None:
    """How surely can someone who sees a trained graph neural network tell which nodes it was trained on?

    \b
    bmpaudit demo
    bmpaudit audit cora --sampler snowball --out cora-audit
    """
    _Settings.debug = debug


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    from bmpaudit.graph import GraphCleanedWarning

    tell(f"{'' if issubclass(category, GraphCleanedWarning) else f'{category.__name__}: '}{message}")
