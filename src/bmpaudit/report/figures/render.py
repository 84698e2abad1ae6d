"""How a picture becomes a file."""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bmpaudit.errors import InputError
from bmpaudit.files import atomic_write
from bmpaudit.report.figures.style import lay_out, look

# Without a date the same figure gives the same bytes.
METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


def render(figure: Figure, formats: Collection[str], *, transparent: bool = False) -> dict[str, bytes]:
    """A picture in each format (`png`, `pdf`, `svg`); the same figure gives the same bytes."""
    files = {}
    with look():
        if figure.stale:  # changed since it was laid out
            lay_out(figure)
        engine = figure.get_layout_engine()
        figure.set_layout_engine(None)  # else every format would be laid out again
        try:
            for name in formats:
                written = io.BytesIO()
                figure.savefig(written, format=name, metadata=METADATA[name], transparent=transparent)
                files[name] = written.getvalue()
        finally:
            figure.set_layout_engine(engine)
            figure.stale = False
    return files


@dataclass(frozen=True)
class SavedFigure:
    """Where a picture was written."""

    pdf: Path
    png: Path


def save_figure(figure: Figure, path_without_suffix: str | Path) -> SavedFigure:
    """Writes `<path>.pdf` and `<path>.png`, both whole or none.

    Raises:
        InputError: if the path has one of these suffixes already.
    """
    base = Path(path_without_suffix)
    if base.suffix in (".pdf", ".png"):
        raise InputError(f"path_without_suffix must not end in .pdf or .png, got {base}")
    saved = SavedFigure(pdf=base.with_name(f"{base.name}.pdf"), png=base.with_name(f"{base.name}.png"))
    files = render(figure, ("pdf", "png"))
    with atomic_write(saved.pdf) as pdf, atomic_write(saved.png) as png:
        pdf.write_bytes(files["pdf"])
        png.write_bytes(files["png"])
    return saved
