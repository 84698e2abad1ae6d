"""From an audit to what people read: the page, the tables, the pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from itertools import count
from pathlib import Path

from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.page_data import PARTS, page_data
from bmpaudit.auditing.tables import latex_table, markdown_table
from bmpaudit.checks import thread_count
from bmpaudit.interfaces import Progress
from bmpaudit.report.drawing import Drawing
from bmpaudit.report.page import render_page

NUM_PAGE_PARTS = len(PARTS) + 2  # the data, the page itself, the tables


def num_parts(audit: Audit, formats: Collection[str]) -> int:
    """How many parts a report has, by which its progress is counted."""
    return NUM_PAGE_PARTS + (len(audit.plot.names()) if formats else 0)


def report_files(
    audit: Audit, formats: Collection[str], *, num_threads: int | None = None, progress: Progress = lambda _: None
) -> dict[str, Callable[[Path], None]]:
    """What writes `report.html`, `tables.md`, `tables.tex` and the pictures.

    Args:
        audit: What is reported.
        formats: Of the pictures; none are drawn if it is empty.
        num_threads: How many processes may draw pictures, this one included; as many as there are cores if None.
        progress: Called with the number of parts done.
    """
    num_done = count(1)

    def advance() -> None:
        progress(next(num_done))

    pictures = audit.plot.pictures() if formats else {}
    with Drawing(pictures, formats, thread_count(num_threads) - 1, advance) as drawing:
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
