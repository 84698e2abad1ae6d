"""What goes wrong because of what was given, told in one line, and the checks that say so."""

import numbers
import os
from collections.abc import Iterable
from typing import Any

LARGEST = 2**31 - 1  # what compiled code counts with


class InputError(ValueError):
    """Something the user gave cannot be used; the message names the thing, the bound and the value."""


class DataError(InputError):
    """A data file is missing, damaged, refused or not what its name says."""


class DownloadError(DataError):
    """A download that was asked for did not succeed; not the user's mistake."""


class UntrustedCodeError(InputError):
    """A file names code to run, and nobody said that it may be."""


def one_line(failure: BaseException) -> str:
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


def check_at_least_one(**settings: Any) -> None:
    """Raises `InputError` unless each setting is a whole number of at least 1.

    >>> check_at_least_one(fan_out=0)
    Traceback (most recent call last):
    ...
    bmpaudit.util.errors.InputError: fan_out must be a whole number of at least 1, got fan_out=0
    """
    for name, value in settings.items():
        is_whole: bool = issubclass(type(value), numbers.Integral) and type(value) is not bool
        if not is_whole or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {name}={value}")
        if value > LARGEST:
            raise InputError(f"{name} must be at most {LARGEST}, got {name}={value}")


def thread_count(num_threads: int | None) -> int:
    """The number of threads to use: as many as there are processors if `num_threads` is None."""
    if num_threads is None:
        return os.cpu_count() or 1
    check_at_least_one(num_threads=num_threads)
    return int(num_threads)
