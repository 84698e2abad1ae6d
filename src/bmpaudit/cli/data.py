"""Commands about graphs and data sets."""

from __future__ import annotations

from pathlib import Path

import click

from bmpaudit import datasets
from bmpaudit.cli.options import FOLDER, json_option, option
from bmpaudit.cli.root import cli, echo, tell
from bmpaudit.datasets import NAMED_DATASETS
from bmpaudit.util.values import to_json


@cli.group()
def data() -> None:
    """List and download data sets.

    \b
    bmpaudit data list
    """


@data.command("list")
@json_option
def data_list(as_json: bool) -> None:
    """Show which data sets are available, and which folders are searched.

    \b
    bmpaudit data list
    """
    here = datasets.at_hand()
    folders = [str(folder) for folder in datasets.search_path()]
    if as_json:
        echo(to_json({"at_hand": here, "named": list(NAMED_DATASETS), "search_path": folders}))
        return
    for name in [*NAMED_DATASETS, *(archive for archive in here if archive not in NAMED_DATASETS)]:
        echo(f"{name:<16}{'available' if name in here else f'to download it: bmpaudit data get {name}'}")
    tell(f"looked in {', '.join(folders)}")


@data.command("get")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@option(
    "--to", "destination", metavar="DIR", type=FOLDER, default_text="the user's cache", help="Folder to download to."
)
def data_get(names: tuple[str, ...], destination: Path | None) -> None:
    """Download data sets (cora, citeseer, pubmed) and check the SHA-256 of every file.

    \b
    bmpaudit data get cora citeseer
    """
    for name in names:
        echo(datasets.get(name, destination, report=tell))


@cli.command("graph")
@click.argument("graph", metavar="GRAPH")
@json_option
def show_graph(graph: str, as_json: bool) -> None:
    """Show the size of a graph: a data set's name, an .npz archive, a folder of tables, or module:function.

    \b
    bmpaudit graph cora
    """
    loaded = datasets.load(graph)
    if as_json:
        sizes = {name: getattr(loaded, name) for name in ("num_nodes", "num_edges", "num_features", "num_classes")}
        echo(to_json({**sizes, "content_hash": loaded.content_hash}))
    else:
        echo(loaded)
