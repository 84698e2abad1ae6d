"""The page of the command line: complete, and what the commands say."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bmpaudit.cli import cli

DOCS = Path(__file__).parents[2] / "docs"


def commands(command: click.Command = cli, path: str = "bmpaudit") -> Iterator[tuple[str, click.Command]]:
    """Every command and group with its path."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, f"{path} {name}")


def test_the_page_is_up_to_date() -> None:
    script: dict[str, Any] = runpy.run_path(str(DOCS / "make_cli_reference.py"))
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert page == script["cli_reference"](), "stale: python docs/make_cli_reference.py"


def test_every_command_is_documented() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8").splitlines()
    paths = [path for path, _ in commands()]
    assert "bmpaudit data get" in paths
    for path in paths:
        assert f"## {path}" in page


def test_every_command_and_option_says_what_it_is_for() -> None:
    silent = [path for path, command in commands() if not command.help]
    silent += [
        f"{path} {parameter.opts[0]}"
        for path, command in commands()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []
