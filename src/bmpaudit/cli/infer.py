"""Who was in the training sample of one released model, in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bmpaudit.cli.options import (
    SectionedCommand,
    SectionOption,
    folder_argument,
    json_option,
    make_runtime,
    quiet_option,
    threads_option,
    trust_option,
)
from bmpaudit.cli.root import cli, echo
from bmpaudit.cli.show import console
from bmpaudit.util.values import to_json

if TYPE_CHECKING:
    from bmpaudit.inference.infer import Inference

TOP = 20
TOP_OF_PAGE = 1_000
LONGEST_NAME = 32


@cli.command(cls=SectionedCommand)
@folder_argument
@click.option(
    "--model",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    cls=SectionOption,
    help="Released model: weights of a built-in model (.npz, .safetensors), or outputs by query (.npz; .npy or "
    ".parquet if there is one query).",
)
@click.option(
    "--release",
    metavar="NAME",
    cls=SectionOption,
    default_text="the plan's first",
    help="Release that the model was given out under, such as clean or noisy.",
)
@click.option(
    "--prior",
    metavar="FILE|FLOAT",
    cls=SectionOption,
    default_text="the sampler's",
    help="Prior probability of membership: one number, or a file with one for each node (.npy, .csv, .parquet).",
)
@click.option(
    "--truth",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    cls=SectionOption,
    help="Who was in, to score the answer: members or flags (.npy, .npz, .csv, .parquet, .txt).",
)
@click.option(
    "--top",
    metavar="INTEGER",
    type=click.IntRange(min=0),
    cls=SectionOption,
    default_text=f"{TOP}; {TOP_OF_PAGE:,} on the page, all with --json",
    help="Number of nodes to show, the most likely members first.",
)
@click.option(
    "--out",
    metavar="FILE.html",
    type=click.Path(dir_okay=False, path_type=Path),
    cls=SectionOption,
    help="Page with the answer.",
)
@trust_option
@threads_option
@quiet_option
@json_option
def infer(
    folder: Path,
    model: Path,
    release: str | None,
    prior: str | None,
    truth: Path | None,
    top: int | None,
    out: Path | None,
    trust_code: bool,
    threads: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Infer who was in the training sample of one released model.

    DIR is an audit folder with shadow models. For every node: calibrated odds of membership, and whether it is named
    with 95 and 99 % certainty; and a check whether the model was trained as the plan says.

    \b
    bmpaudit infer cora-gcn --model released.safetensors
    bmpaudit infer cora-gcn --model logits.npz --truth members.txt --out released.html
    """
    from bmpaudit.inference.infer import infer as infer_members

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"--out must be a page, FILE.html, got {out}")
    result = infer_members(
        folder,
        model,
        release=release,
        prior=prior,
        truth=truth,
        trust_code=trust_code,
        num_threads=threads,
        runtime=make_runtime(threads, quiet),
    )
    if out is not None:
        from bmpaudit.inference.infer import render_inference_page
        from bmpaudit.util.files import write_text

        write_text(out, render_inference_page(result, TOP_OF_PAGE if top is None else top))
    if as_json:
        echo(to_json(result.to_plain(top)))
        return
    _show(result, TOP if top is None else top)
    if out is not None:
        from rich.text import Text

        console().print(Text(f"page: {out}"), soft_wrap=True)


def _show(result: Inference, top: int) -> None:
    from rich.text import Text

    from bmpaudit.cli.show import print_table, simple_table
    from bmpaudit.inference.infer import node_cells

    for warning in result.warnings:
        console().print(Text(f"! {warning}"))
    console().print(Text(result.verdict, style="bold"))
    console().print(Text(result.setting))
    head, rows = result.named_cells()
    named = simple_table(*head)
    for row in rows:
        named.add_row(*row)
    print_table(named)
    for line in result.findings():
        console().print(Text(line))
    if not top:
        return
    head, rows = node_cells(result, top)
    table = simple_table(*head, num_left=2)
    for position in range(len(head)):
        if head[position] in ("named", "was in", ""):
            table.columns[position].justify = "left"
    for row in rows:
        cells = [Text(" ".join(cell.split())) for cell in row]
        for cell in cells[:2]:
            cell.truncate(LONGEST_NAME, overflow="ellipsis")
        table.add_row(*cells)
    print_table(table)
    console().print(f"{len(rows):,} of {len(result.table):,} nodes, the most likely members first")
