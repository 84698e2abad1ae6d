"""Commands about graphs and data sets."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bmpaudit import datasets
from bmpaudit.cli.root import cli
from bmpaudit.datasets import NAMED_DATASETS


@cli.group()
def data() -> None:
    """List and download data sets."""


@data.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def data_list(as_json: bool) -> None:
    """Show which data sets are at hand, and where data is looked for.

    \b
    bmpaudit data list
    """
    here = datasets.at_hand()
    folders = [str(folder) for folder in datasets.search_path()]
    if as_json:
        click.echo(json.dumps({"at_hand": here, "named": list(NAMED_DATASETS), "search_path": folders}, indent=2))
        return
    for name in [*NAMED_DATASETS, *(archive for archive in here if archive not in NAMED_DATASETS)]:
        click.echo(f"{name:<16}{'at hand' if name in here else f'to download it: bmpaudit data get {name}'}")
    click.echo(f"looked for in {', '.join(folders)}", err=True)


@data.command("get")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--to", "destination", type=click.Path(file_okay=False, path_type=Path), help="Folder [user cache].")
def data_get(names: tuple[str, ...], destination: Path | None) -> None:
    """Download data sets (cora, citeseer, pubmed), each file checked by its SHA-256.

    \b
    bmpaudit data get cora citeseer
    """
    for name in names:
        click.echo(datasets.get(name, destination, report=lambda told: click.echo(told, err=True)))


@cli.command("graph")
@click.argument("graph", metavar="GRAPH")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_graph(graph: str, as_json: bool) -> None:
    """Show the size of a graph: a data set's name, an .npz archive, a folder of tables, or module:function.

    \b
    bmpaudit graph cora
    """
    loaded = datasets.load(graph)
    if as_json:
        sizes = {name: getattr(loaded, name) for name in ("num_nodes", "num_edges", "num_features", "num_classes")}
        click.echo(json.dumps({**sizes, "content_hash": loaded.content_hash}, indent=2))
    else:
        click.echo(loaded)
