"""The command line: parse, call one function, print. One file a command."""

# They register their commands.
from bmpaudit.cli import audit, compare, data, estimate, nodes, plan, priors, reproduce, train
from bmpaudit.cli.root import cli, main

__all__ = ["audit", "cli", "compare", "data", "estimate", "main", "nodes", "plan", "priors", "reproduce", "train"]
