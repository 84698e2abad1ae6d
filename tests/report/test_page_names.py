"""Names that want to break a page: other directions of writing, control characters, a million letters."""

from __future__ import annotations

from pathlib import Path

import sample_page
from page_browser import Browser
from test_audit_page import PLAN, hostile_graph

from bmpaudit.comparison.compare import compare
from bmpaudit.comparison.page import write_comparison
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.util.text import visible

OVERRIDE = "\u202egnp.exe"  # what follows would be written from right to left
HEBREW = "שלום עולם"
CONTROL = "bell\x07 and \x1b[31mred"
LONG = "a" * 1_000_000
NAMES = (OVERRIDE, HEBREW, CONTROL, LONG)

browser = sample_page.browser


def test_such_names_change_nothing_around_them(browser: Browser, tmp_path: Path) -> None:
    audit(hostile_graph(NAMES, (OVERRIDE, LONG, CONTROL)), PLAN, folder=tmp_path, pictures="none")
    page = tmp_path / "report.html"
    assert page.stat().st_size < 2_000_000
    browser.open(page)
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    for node, name in enumerate(NAMES):
        browser.run("location.hash = arguments[0]", f"#node={node}")
        browser.wait_until_selected(node)
        shown = browser.text("#node-panel summary")
        assert visible(name[:30]) in shown
        assert len(shown) < 500
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.console() == []


def test_nor_do_they_on_the_page_of_a_comparison(browser: Browser, tmp_path: Path) -> None:
    graph = hostile_graph(NAMES, (OVERRIDE, LONG, CONTROL))
    folders = [tmp_path / "<b>bold<b>", tmp_path / "a" / OVERRIDE]
    for folder, seed in zip(folders, (1, 2), strict=True):
        audit(graph, PLAN.replace(seed=seed, definitions="bmp-r"), folder=folder, pictures="none")
    page = write_comparison(compare(folders), tmp_path / "comparison")
    browser.driver.get(page.as_uri())
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    shown = browser.text("body")
    assert "<b>bold<b>" in shown
    assert OVERRIDE not in shown
    assert visible(OVERRIDE) in shown
