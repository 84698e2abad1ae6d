"""The page by keyboard, on a phone, and under a finger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sample_page
from page_browser import Browser
from sample_page import NODES, box_of
from selenium.webdriver.common.keys import Keys

browser, page = sample_page.browser, sample_page.page


def test_keyboard_is_enough(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    browser.find("body").send_keys(Keys.TAB)
    assert browser.run("return document.activeElement.className") == "skip"
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "summary"

    rows = browser.rows()
    browser.find("#node-table tbody tr[tabindex='0']").send_keys(Keys.ARROW_DOWN)
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    expected = rows[rows.index(browser.run("return Number(document.activeElement.dataset.position)"))]
    assert browser.selected() == expected == rows[2]
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    unlabelled = browser.run("""
        return [...document.querySelectorAll('input, select, button')].filter((control) =>
          !(control.labels && control.labels.length) && !control.getAttribute('aria-label') &&
          !control.textContent.trim()).map((control) => control.id);
    """)
    assert unlabelled == []


def test_fits_a_phone(browser: Browser, page: Path) -> None:
    browser.open(page, fragment="#node=42", width=390)
    assert browser.selected() == NODES["id"].index(42)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    assert browser.run("window.scrollTo(500, 0); return window.scrollX") == 0
    browser.find("#node-panel summary").click()
    assert browser.find("#node-details").is_displayed()
    assert browser.console() == []


def test_a_finger_moves_the_graph_once_zoomed_in(browser: Browser, page: Path) -> None:
    browser.open(page, width=390)
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        canvas = browser.find("#graph-canvas")
        assert browser.run("return getComputedStyle(arguments[0]).touchAction", canvas) == "pan-x pan-y"
        browser.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
        browser.find("#graph-in").click()
        assert browser.run("return getComputedStyle(arguments[0]).touchAction", canvas) == "none"
        browser.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
        left, top, width, height = box_of(browser, canvas)
        centre, zoom, moved = (left + width / 2, top + height / 2), 1.6, (60, 40)
        places = np.column_stack([NODES["x"], NODES["y"]]) - 0.5
        on_screen = np.array(centre) + places * zoom * (np.array([width, height]) - 36)
        # A node that is inside the picture after the drag, and alone there.
        after = on_screen + moved
        inside = (np.abs(after - centre) < np.array([width, height]) / 2 - 40).all(axis=1)
        apart = np.sort(np.linalg.norm(after[:, None] - after[None], axis=-1), axis=1)[:, 1]
        chosen = int(np.argmax(np.where(inside, apart, 0)))
        _drag_finger(browser, centre, (centre[0] + moved[0], centre[1] + moved[1]))
        scrolled = browser.run("return window.scrollY")
        browser.pointer(*after[chosen].tolist())
        browser.wait_until_selected(chosen)
        assert browser.run("return window.scrollY") == scrolled
        assert browser.console() == []
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def _drag_finger(browser: Browser, start: tuple[float, float], end: tuple[float, float]) -> None:
    places = [
        {"x": start[0] + (end[0] - start[0]) * k / 10, "y": start[1] + (end[1] - start[1]) * k / 10} for k in range(11)
    ]
    kinds = ["touchStart", *["touchMove"] * 10]
    for kind, place in zip(kinds, places, strict=True):
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [place]})
    browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
