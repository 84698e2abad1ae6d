"""From an audit to what people read: the page, the tables, the pictures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.page_data import page_data
from bmpaudit.auditing.tables import latex_table, markdown_table
from bmpaudit.report.page import render_page


def report_files(audit: Audit, *, pictures: bool) -> dict[str, Callable[[Path], None]]:
    """What writes `report.html`, `tables.md`, `tables.tex` and the pictures."""
    texts = {
        "report.html": render_page(page_data(audit)),
        "tables.md": markdown_table(audit),
        "tables.tex": latex_table(audit),
    }
    files: dict[str, Callable[[Path], None]] = {name: partial(_write, text) for name, text in texts.items()}
    if pictures:
        files |= {f"figures/{name}": write for name, write in audit.plot.files().items()}
    return files


def _write(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
