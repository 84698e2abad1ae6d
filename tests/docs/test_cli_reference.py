import runpy
from pathlib import Path
from typing import Any

import click

from bmpaudit.cli import cli

DOCS = Path(__file__).parents[2] / "docs"


def _command_paths(command: click.Command, path: str) -> list[str]:
    children = command.commands.items() if isinstance(command, click.Group) else ()
    return [path, *(found for name, child in children for found in _command_paths(child, f"{path} {name}"))]


def test_the_page_is_up_to_date() -> None:
    script: dict[str, Any] = runpy.run_path(str(DOCS / "make_cli_reference.py"))
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert page == script["cli_reference"](), "stale: python docs/make_cli_reference.py"


def test_every_command_is_documented() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8").splitlines()
    paths = _command_paths(cli, "bmpaudit")
    assert "bmpaudit data get" in paths
    for path in paths:
        assert f"## {path}" in page


def test_every_command_and_option_says_what_it_is_for() -> None:
    def undocumented(command: click.Command, path: str) -> list[str]:
        silent = [] if command.help else [path]
        silent += [
            f"{path} {parameter.opts[0]}"
            for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.help
        ]
        for name, child in command.commands.items() if isinstance(command, click.Group) else ():
            silent += undocumented(child, f"{path} {name}")
        return silent

    assert undocumented(cli, "bmpaudit") == []
