"""The step from an audit to what people read: the page, the tables, the pictures."""

from __future__ import annotations

from pathlib import Path

from bmpaudit.auditing.audit import Audit
from bmpaudit.auditing.folder import AuditFolder
from bmpaudit.auditing.page_data import page_data
from bmpaudit.auditing.tables import latex_table, markdown_table
from bmpaudit.files import atomic_write
from bmpaudit.plan import Runtime
from bmpaudit.report.page import render_page


def write_report(audit: Audit, folder: AuditFolder, runtime: Runtime, *, pictures: bool = True) -> Path:
    """Writes `report.html`, `tables.md`, `tables.tex` and `figures/`; returns the page's path."""
    from bmpaudit.auditing.plots import remove_pictures

    with runtime.progress("report", 2 + pictures) as progress:
        posteriors = audit.estimates.posteriors
        for name, text in (
            ("tables.md", markdown_table(audit.plan, posteriors)),
            ("tables.tex", latex_table(audit.plan, posteriors)),
        ):
            _write(folder.path / name, text)
        progress(1)
        # Pictures of other data would stand beside the page.
        remove_pictures(folder.path / "figures")
        if pictures:
            audit.plot.save_all(folder.path / "figures")
            progress(2)
        # Last: a page with the audit's fingerprint says that the report is whole.
        _write(folder.report_path, render_page(page_data(audit)))
        progress(2 + pictures)
    return folder.report_path


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
