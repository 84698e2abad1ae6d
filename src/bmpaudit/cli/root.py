"""The command itself: the table of commands, what they print, and how they report what went wrong."""

import codecs
import difflib
import gc
import io
import logging
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

from bmpaudit.registry import import_target
from bmpaudit.util.errors import DownloadError, InputError
from bmpaudit.util.text import visible

ERROR_HANDLER = "bmpaudit-spell-out"

# How symbols read on a terminal that cannot print them.
SPELLED_OUT = {
    "β": "beta",
    "γ": "gamma",
    "ε": "eps",
    "η": "eta",
    "≥": ">=",
    "≤": "<=",
    "−": "-",
    "–": "-",
    "±": "+/-",
    "×": "x",
    "→": "->",
    "…": "...",
}


def spell_out(error: UnicodeError) -> tuple[str, int]:
    """Replaces characters that an encoding lacks; a handler for `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(SPELLED_OUT.get(character, "?") for character in text), error.end


def accept_all_symbols() -> None:
    """Makes sure that no symbol ends a command on a terminal that cannot print it."""
    codecs.register_error(ERROR_HANDLER, spell_out)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors=ERROR_HANDLER)


def echo(result: object) -> None:
    """Prints a result at once, so that a reader that has gone away is noticed here and not at exit."""
    print(visible(str(result)), flush=True)


def tell(message: str) -> None:
    """Prints a message on stderr, as one line; if that cannot be written, the exit code still says what happened."""
    with suppress(OSError):
        print(f"bmpaudit: {visible(' '.join(message.split()))}", file=sys.stderr, flush=True)


# A command's module is imported when the command runs, so that `bmpaudit --help` is quick.
COMMANDS = {
    "Audits": {
        "demo": ("audit:demo", "Audit the embedded graph, in under a minute."),
        "audit": ("audit:audit", "Audit a graph: the whole pipeline in one command."),
        "nodes": ("look:nodes", "Show which nodes of an audit can be named most often."),
        "prove": ("audit:prove", "Prove lower bounds on ε."),
        "infer": ("look:infer_members", "Infer who was in the training sample of one released model."),
        "compare": ("look:compare", "Compare finished audits."),
        "sweep": ("look:sweep", "Audit many settings, and find the defences that no other beats."),
        "check": ("audit:check_gate", "Hold a finished audit against thresholds, as in CI."),
    },
    "The pipeline, step by step": {
        "plan": ("plan:plan", "Write a plan, check it, or estimate its cost."),
        "sample": ("audit:sample", "Draw the training samples, for models trained elsewhere."),
        "train": ("audit:train", "Train shadow models, or resume training."),
        "attack": ("audit:attack", "Attack the shadow models and count the errors."),
        "estimate": ("look:estimate", "Estimate ε from the errors of an attack."),
        "report": ("look:report", "Write the page, the tables and the pictures."),
    },
    "Graphs": {
        "data": ("look:data", "List and download data sets."),
        "graph": ("look:show_graph", "Show the size of a graph."),
        "priors": ("audit:priors", "Show what the sampler alone gives away."),
    },
}
"""By heading and name, in the order in which help lists them: where a command is, and what it does in one line."""

TARGETS = {name: target for commands in COMMANDS.values() for name, (target, _) in commands.items()}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - Click's signature
        """The names of all commands, in the order of the table."""
        return list(TARGETS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name, whose module is imported."""
        if cmd_name not in TARGETS:
            return None
        command: click.Command = import_target(f"bmpaudit.cli.{TARGETS[cmd_name]}", is_built_in=True)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command, or says which one may have been meant."""
        name = args[0]
        if name not in TARGETS and not name.startswith("-"):
            similar = difflib.get_close_matches(name, TARGETS)
            hint = f"Did you mean {' or '.join(map(repr, similar))}?" if similar else f"There are {', '.join(TARGETS)}."
            raise click.UsageError(f"No such command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the table of commands, importing none of them."""
        width = max(map(len, TARGETS))
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), about) for name, (_, about) in commands.items()])


GC_THRESHOLDS = (20_000, 20, 20)
"""When Python looks for garbage in cycles: the libraries' many objects, which stay, make that slow."""


class _Terminated(BaseException):
    """The process was asked to end, as a cluster's scheduler does."""


class _Settings:
    """What `--debug` says, for when an error has ended the command."""

    debug = False


def main(command: click.Command | None = None, name: str = "bmpaudit") -> None:
    """Runs a command, by default `bmpaudit`, and exits.

    Exit codes are 2 for wrong use, 1 for a failure, 130 after Ctrl-C and 143 after SIGTERM. Errors are reported in one
    line on stderr.
    """
    warnings.showwarning = _show_warning
    accept_all_symbols()
    gc.set_threshold(*GC_THRESHOLDS)
    with _ending_on_sigterm():
        code = _run(command or cli, name)
    gc.freeze()  # nothing is searched for garbage once more at the end
    sys.exit(code)


def _run(command: click.Command, name: str) -> int:
    """Runs a command; whatever goes wrong is one line, and an exit code as shells have it."""
    try:
        return command(prog_name=name, standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as no_command:
        print(no_command.format_message(), file=sys.stderr)
        return 2
    except (MemoryError, OSError, click.ClickException, InputError) as failure:
        if _Settings.debug:
            traceback.print_exc()
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
    except (KeyboardInterrupt, click.Abort, _Terminated) as stop:
        # A write under way ends with the process; asyncio, through which Zarr writes, would complain about that.
        warnings.simplefilter("ignore")
        logging.getLogger("asyncio").disabled = True
        tell("stopped")
        return 128 + (signal.SIGTERM if isinstance(stop, _Terminated) else signal.SIGINT)


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
