"""The command line: parse, call one function, print. One file a command."""

from bmpaudit.cli import data, estimate, priors, reproduce, train  # they register their commands
from bmpaudit.cli.root import cli, main

__all__ = ["cli", "data", "estimate", "main", "priors", "reproduce", "train"]
