"""What goes wrong because of what was given, told in one line."""


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
