"""The command line: parse, call one function, print. One file a command."""

from bmpaudit.cli import audit, data, estimate, nodes, plan, priors, reproduce, train  # they register their commands
from bmpaudit.cli.root import cli, main

__all__ = ["audit", "cli", "data", "estimate", "main", "nodes", "plan", "priors", "reproduce", "train"]
