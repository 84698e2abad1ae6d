"""A sweep as a table, a picture, and values for other programs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from matplotlib.figure import Figure

from bmpaudit.auditing.sweep import Sweep
from bmpaudit.files import atomic_write, write_text
from bmpaudit.plain import to_json
from bmpaudit.report.figures.frontier import FrontierPoint, frontier
from bmpaudit.report.figures.render import render
from bmpaudit.report.figures.style import Width


def write_sweep(result: Sweep, folder: Path, formats: Collection[str]) -> None:
    """Writes `sweep.csv`, `sweep.json` and `frontier.png`, or whichever formats are asked for."""
    for name, content in render(draw_frontier(result), formats).items() if formats else ():
        with atomic_write(folder / f"frontier.{name}") as temporary:
            temporary.write_bytes(content)
    write_text(folder / "sweep.csv", result.table.to_csv(index=False))
    write_text(folder / "sweep.json", to_json(result.to_dict()) + "\n")


def draw_frontier(result: Sweep, width: Width = "two") -> Figure:
    """Accuracy against what is exposed and against what is proven, as a matplotlib figure."""
    points = [
        FrontierPoint(
            number=number,
            group=point.release,
            accuracy=(point.accuracy.mean, point.accuracy.low, point.accuracy.high),
            exposed=(point.named_90.mean, point.named_90.low, point.named_90.high),
            proven=point.proven_right,
            on_exposure_front=point.on_exposure_front,
            on_proof_front=point.on_proof_front,
        )
        for number, point in enumerate(result.points, 1)
        if point.accuracy is not None and point.named_90 is not None
    ]
    return frontier(points, width=width)
