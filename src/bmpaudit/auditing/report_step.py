"""From an audit to what people read: the page, the tables, the pictures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.page_data import PARTS, page_data
from bmpaudit.auditing.tables import latex_table, markdown_table
from bmpaudit.interfaces import Progress
from bmpaudit.report.drawing import Drawing
from bmpaudit.report.page import render_page

NUM_PAGE_PARTS = len(PARTS) + 2  # the data, the page itself, the tables


def num_parts(audit: Audit, drawing: Drawing) -> int:
    """How many parts a report has, by which its progress is counted."""
    return NUM_PAGE_PARTS + (len(audit.plot.names()) if drawing.formats else 0)


def report_files(
    audit: Audit, drawing: Drawing, *, progress: Progress = lambda _: None
) -> dict[str, Callable[[Path], None]]:
    """What writes `report.html`, `tables.md`, `tables.tex` and the pictures.

    Args:
        audit: What is reported.
        drawing: Draws the pictures.
        progress: Called with the number of parts done.
    """
    num_done = count(1)

    def advance() -> None:
        progress(next(num_done))

    drawing.count_with(advance)
    drawing.draw(audit.plot.pictures() if drawing.formats else {})
    page = render_page(page_data(audit, advance))
    advance()
    texts = {"report.html": page, "tables.md": markdown_table(audit), "tables.tex": latex_table(audit)}
    advance()
    figures = drawing.finish()
    contents = {name: text.encode() for name, text in texts.items()}
    contents |= {f"figures/{name}": content for name, content in figures.items()}
    return {name: partial(_write, content) for name, content in contents.items()}


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)
