"""The table of commands. A command's module is imported when the command runs, so that `bmpaudit --help` is quick."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import click

from bmpaudit.registry import import_target


@dataclass(frozen=True)
class CommandEntry:
    """A command: where it is, and what it does in one line."""

    target: str
    help: str


COMMANDS = {
    "Audits": {
        "demo": CommandEntry("audit:demo", "Audit the embedded graph, in under a minute."),
        "audit": CommandEntry("audit:audit", "Audit a graph: the whole pipeline in one command."),
        "nodes": CommandEntry("nodes:nodes", "Show which nodes of an audit can be named most often."),
        "prove": CommandEntry("prove:prove", "Prove lower bounds on ε."),
        "infer": CommandEntry("infer:infer", "Infer who was in the training sample of one released model."),
        "compare": CommandEntry("compare:compare", "Compare finished audits."),
        "sweep": CommandEntry("sweep:sweep", "Audit many settings, and find the defences that no other beats."),
        "check": CommandEntry("check:check", "Hold a finished audit against thresholds, as in CI."),
    },
    "The pipeline, step by step": {
        "plan": CommandEntry("plan:plan", "Write a plan, check it, or estimate its cost."),
        "sample": CommandEntry("sample:sample", "Draw the training samples, for models trained elsewhere."),
        "train": CommandEntry("train:train", "Train shadow models, or resume training."),
        "attack": CommandEntry("attack:attack", "Attack the shadow models and count the errors."),
        "estimate": CommandEntry("estimate:estimate", "Estimate ε from the errors of an attack."),
        "report": CommandEntry("report:report", "Write the page, the tables and the pictures."),
    },
    "Graphs": {
        "data": CommandEntry("data:data", "List and download data sets."),
        "graph": CommandEntry("data:show_graph", "Show the size of a graph."),
        "priors": CommandEntry("priors:priors", "Show what the sampler alone gives away."),
    },
    "The paper": {
        "reproduce": CommandEntry("reproduce:reproduce", "Run the paper's experiments again."),
    },
}
"""By heading, then by name, in the order in which help lists them."""

ENTRIES = {name: entry for commands in COMMANDS.values() for name, entry in commands.items()}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - Click's signature
        """The names of all commands, in the order of the table."""
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name, whose module is imported."""
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = import_target(f"bmpaudit.cli.{entry.target}", is_built_in=True)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command, or says which one may have been meant."""
        name = args[0]
        if name not in ENTRIES and not name.startswith("-"):
            similar = difflib.get_close_matches(name, ENTRIES)
            hint = f"Did you mean {' or '.join(map(repr, similar))}?" if similar else f"There are {', '.join(ENTRIES)}."
            raise click.UsageError(f"No such command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the table of commands, importing none of them."""
        width = max(map(len, ENTRIES))
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), entry.help) for name, entry in commands.items()])
