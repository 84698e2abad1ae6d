"""A page of made-up data, opened in a browser, for several test modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_browser import Browser
from page_fixture import page_data

from bmpaudit.report.page import render_page

DATA = page_data()
NODES = DATA["nodes"]
COUNTED = [position for position, models in enumerate(NODES["member_models"]) if models > 0]
BY_RANK = [int(position) for position in np.argsort(NODES["rank"])]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium; `browser.downloads` is where its downloads go."""
    made = Browser(tmp_path_factory.mktemp("downloads"))
    yield made
    made.driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of `DATA`."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(DATA), encoding="utf-8")
    return path


def text_of(browser: Browser, selector: str) -> str:
    """What is read at a place, in one line."""
    return " ".join(str(browser.run("return document.querySelector(arguments[0]).innerText", selector)).split())


def box_of(browser: Browser, place: Any) -> list[float]:
    box: list[float] = browser.run(
        "const {left, top, width, height} = arguments[0].getBoundingClientRect(); return [left, top, width, height];",
        place,
    )
    return box
