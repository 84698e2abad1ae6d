"""The page asks nothing of the network, and runs nothing but its own scripts, whatever names are in it."""

from __future__ import annotations

from pathlib import Path

import sample_page
from page_browser import Browser
from page_fixture_nodes import HOSTILE_CLASS, IMAGE_NAME, PLACEHOLDER_NAME, SCRIPT_NAME
from sample_page import DATA, NODES

from bmpaudit.util.text import visible

browser, page = sample_page.browser, sample_page.page


def test_opens_without_network_or_complaint(browser: Browser, page: Path) -> None:
    browser.open(page)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {})
    assert len(printed["data"]) > 50_000
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]
    charts = browser.run(
        "return [...document.querySelectorAll('.chart')].map((c) => [c.id, c.querySelectorAll('svg').length])"
    )
    assert len(charts) == 13
    assert [name for name, drawn in charts if not drawn] == []


def test_policy_stops_foreign_scripts_and_requests(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    browser.run("""
        const script = document.createElement('script');
        script.textContent = 'window.wasRun = true';
        document.body.append(script);
        const image = document.createElement('img');
        image.src = 'https://example.org/x.png';
        image.setAttribute('onerror', 'window.wasRun = true');
        document.body.append(image);
        fetch('https://example.org/').catch(() => { window.isDone = true; });
    """)
    browser.wait("return window.isDone")
    assert browser.run("return window.wasRun") is None
    assert len([message for message in browser.console() if "Content Security Policy" in message]) >= 3


def test_names_are_shown_and_not_run(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.find("#table-search").send_keys("alert(")
    assert browser.rows() == [NODES["name"].index(name) for name in sorted((SCRIPT_NAME, IMAGE_NAME), key=_rank_of)]
    for name in (SCRIPT_NAME, IMAGE_NAME, PLACEHOLDER_NAME):
        position = NODES["name"].index(name)
        browser.run("location.hash = arguments[0]", f"#node={NODES['id'][position]}")
        browser.wait_until_selected(position)
        shown = visible(name)
        assert shown in browser.text("#node-panel summary")
        assert shown in browser.text("#chart-margins .gtitle")
        across, down = browser.place_in_chart(
            "chart-prior", NODES["prior_prob"][position], NODES["right_median"][position]
        )
        browser.pointer(across, down, is_click=False)
        browser.wait(
            "return document.querySelector('#chart-prior .hoverlayer').textContent.includes(arguments[0])", shown
        )
    assert HOSTILE_CLASS[:10] in browser.text("#chart-groups .xaxislayer-above")
    assert DATA["title"] == browser.text("h1")
    # The data, the library as text, the application, the library as script; and no element out of a name.
    assert browser.run("return document.scripts.length") == 4
    assert browser.run("return document.querySelectorAll('img, b:not(.never)').length") == 0
    assert browser.console() == []


def _rank_of(name: str) -> int:
    """Sorts as the table does at first."""
    return int(NODES["rank"][NODES["name"].index(name)])
