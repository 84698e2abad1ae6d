"""The command line: parse, call one function, print. One file per command, imported when the command runs."""

from bmpaudit.cli.root import cli, main

__all__ = ["cli", "main"]
