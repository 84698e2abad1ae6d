"""Output of the command line: results go to stdout, messages to stderr, whatever characters the terminal can print."""

from __future__ import annotations

import codecs
import io
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from bmpaudit.characters import visible

if TYPE_CHECKING:
    from rich.console import Console

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


def console(width: int | None = None) -> Console:
    """Where tables and paragraphs are printed, as wide as the terminal is now unless told otherwise."""
    from bmpaudit.cli.console import VisibleConsole

    return VisibleConsole(highlight=False, width=width)
