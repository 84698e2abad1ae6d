"""The command line: parse, call one function, print. A command's module is imported when the command runs."""

from bmpaudit.cli.root import cli, main

__all__ = ["cli", "main"]
