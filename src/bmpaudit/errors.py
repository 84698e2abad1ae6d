"""What goes wrong because of what was given, told in one line."""

from __future__ import annotations

from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message names the thing, the bound and the value."""


class DataError(InputError):
    """A data file is missing, damaged, refused or not what its name says."""


class DownloadError(DataError):
    """A download that was asked for did not succeed; not the user's mistake."""


class UntrustedCodeError(InputError):
    """A file names code to run, and nobody said that it may be."""


def one_line(failure: Exception) -> str:
    r"""What code of others has raised, in one line.

    >>> one_line(KeyError("a")), one_line(RuntimeError()), one_line(ValueError("one\ntwo"))
    ("KeyError: 'a'", 'RuntimeError', 'ValueError: one two')
    """
    return " ".join(f"{type(failure).__name__}: {failure}".split()).removesuffix(":")


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known ones that it resembles, or nothing.

    >>> did_you_mean("DPMLP", ["gcn", "dp-mlp"]), did_you_mean("tree", ["gcn", "dp-mlp"])
    ('; did you mean dp-mlp?', '')
    """
    import difflib  # only needed once something is wrong

    by_letters = {_letters(name): name for name in names}
    similar = difflib.get_close_matches(_letters(given), by_letters)
    return f"; did you mean {' or '.join(by_letters[each] for each in similar)}?" if similar else ""


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
