"""The report page in a real browser, without network. A missing one is a failure: `scripts/install_browser.sh`."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_browser import Browser
from page_fixture import HOSTILE_CLASS, IMAGE_NAME, PLACEHOLDER_NAME, SCRIPT_NAME, page_data
from scipy.stats import beta
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from bmpaudit.privacy.region import Region
from bmpaudit.report.page import render_page

DATA = page_data()
NODES = DATA["nodes"]
LOWS = [low for low in NODES["right_low"] if low is not None]


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads: Path) -> Iterator[Browser]:
    made = Browser(downloads)
    yield made
    made.driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(DATA), encoding="utf-8")
    return path


def test_page_of_cora_is_small_and_holds_all_it_needs() -> None:
    page = render_page(page_data(num_nodes=2708, num_edges=5278, num_models=1000))
    assert len(page.encode()) < 6e6
    assert re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)=(?!\"data:,\")", page) is None
    assert "default-src 'none'" in page


def test_data_arrive_unchanged() -> None:
    inside = re.findall(r'<script type="application/json" id="data">(.*?)</script>', render_page(DATA), flags=re.DOTALL)
    assert [json.loads(text) for text in inside] == [DATA]
    assert set("<>&\u2028\u2029").isdisjoint(inside[0])


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_are_finite(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_page({**DATA, "leakage_level": number})


def test_opens_without_network_or_complaint(browser: Browser, page: Path) -> None:
    browser.open(page)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {})
    assert len(printed["data"]) > 50_000
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]
    charts = browser.run(
        "return [...document.querySelectorAll('.chart')].map((c) => [c.id, c.querySelectorAll('svg').length])"
    )
    assert len(charts) == 12
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
    assert browser.rows() == [NODES["name"].index(name) for name in sorted((SCRIPT_NAME, IMAGE_NAME), key=_leakage_of)]
    for name in (SCRIPT_NAME, IMAGE_NAME, PLACEHOLDER_NAME):
        position = NODES["name"].index(name)
        browser.run("location.hash = arguments[0]", f"#node={NODES['id'][position]}")
        browser.wait("return bmpaudit.state.selected === arguments[0]", position)
        assert name in browser.text("#node-panel summary")
        assert name in browser.text("#chart-margins .gtitle")
        across, down = browser.place_in_chart("chart-prior", NODES["prior"][position], NODES["right_median"][position])
        browser.pointer(across, down, is_click=False)
        browser.wait(
            "return document.querySelector('#chart-prior .hoverlayer').textContent.includes(arguments[0])", name
        )
    assert HOSTILE_CLASS[:10] in browser.text("#chart-groups .xaxislayer-above")
    assert DATA["title"] == browser.text("h1")
    # The data, the library as text, the application, the library as script; and no element out of a name.
    assert browser.run("return document.scripts.length") == 4
    assert browser.run("return document.querySelectorAll('img, b:not(.never)').length") == 0
    assert browser.console() == []


def _leakage_of(name: str) -> float:
    """Sorts as the table does at first."""
    low = NODES["right_low"][NODES["name"].index(name)]
    return np.inf if low is None else -low


def test_click_in_the_scatter_selects_everywhere(browser: Browser, page: Path) -> None:
    browser.open(page)
    position = int(np.argmin([np.inf if median is None else median for median in NODES["right_median"]]))
    assert position not in (browser.selected(), *browser.rows())
    browser.pointer(*browser.place_in_chart("chart-prior", NODES["prior"][position], NODES["right_median"][position]))
    browser.wait("return bmpaudit.state.selected === arguments[0]", position)
    assert browser.run(
        "return [...document.querySelectorAll('tr[aria-selected=true]')].map((r) => Number(r.dataset.position))"
    ) == [position]
    assert NODES["name"][position] in browser.text("#node-panel summary")
    assert NODES["name"][position] in browser.text("#chart-margins .gtitle")
    assert NODES["name"][position] in browser.text("#region-table")
    assert browser.run("return location.hash") == f"#node={NODES['id'][position]}"
    assert browser.console() == []


def test_click_in_the_strips_and_in_the_graph_selects(browser: Browser, page: Path) -> None:
    browser.open(page)
    points = browser.run(
        "const {x, y, customdata} = document.getElementById('chart-groups').data[0]; return [x, y, customdata]"
    )
    lowest = int(np.argmin(points[1]))
    browser.pointer(*browser.place_in_chart("chart-groups", points[0][lowest], points[1][lowest]))
    assert browser.selected() == points[2][lowest]

    canvas = browser.find("#graph-canvas")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    box = browser.run(
        "const {left, top, width, height} = arguments[0].getBoundingClientRect(); return [left, top, width, height]",
        canvas,
    )
    leftmost = int(np.argmin(NODES["x"]))
    across = box[0] + box[2] / 2 + (NODES["x"][leftmost] - 0.5) * (box[2] - 36)
    browser.pointer(across, box[1] + box[3] / 2 + (NODES["y"][leftmost] - 0.5) * (box[3] - 36))
    assert browser.selected() == leftmost

    browser.find("#graph-search").send_keys("paper 299")
    browser.find("#graph-found button").click()
    assert browser.selected() == NODES["name"].index("paper 299")
    assert browser.console() == []


def test_threshold_counts_lower_ends(browser: Browser, page: Path) -> None:
    browser.open(page)
    slider = browser.find("#threshold")
    seen = set()
    for keys in ([], [Keys.ARROW_LEFT] * 7, [Keys.HOME], [Keys.END], [Keys.PAGE_DOWN] * 3):
        slider.send_keys(*keys)
        threshold = float(slider.get_property("value"))
        above = sum(low > threshold for low in LOWS)
        assert browser.text("#threshold-count").startswith(f"{above} of {len(LOWS)} audited nodes ")
        seen.add(above)
    assert len(seen) == 5
    browser.find("#table-show option[value=above]").click()
    assert browser.text("#table-count").startswith(f"{above} of {len(NODES['id'])} nodes.")
    assert browser.console() == []


def test_table_sorts_filters_and_exports(browser: Browser, page: Path, downloads: Path) -> None:
    browser.open(page, needs_charts=False)
    known = [position for position, low in enumerate(NODES["right_low"]) if low is not None]
    unknown = [position for position, low in enumerate(NODES["right_low"]) if low is None]
    by_low = sorted(known, key=lambda position: (-NODES["right_low"][position], position))
    assert browser.rows() == by_low[:50]

    heading = browser.find("#node-table th:nth-child(6) button")
    heading.click()
    rising = sorted(known, key=lambda position: (NODES["right_low"][position], position))
    assert browser.rows() == rising[:50]
    assert heading.find_element(By.XPATH, "..").get_attribute("aria-sort") == "ascending"
    for _ in range(5):
        browser.find("#table-next").click()
    assert browser.rows() == [*rising, *unknown][250:300]  # what was not audited comes last

    browser.find("#table-class option[value='0']").click()
    members = [
        position for position in [*rising, *unknown] if NODES["class"][position] == sorted(set(NODES["class"]))[0]
    ]
    assert browser.rows() == members[:50]
    browser.find("#table-class option[value='']").click()
    browser.find("#table-search").send_keys("QUOTED")
    assert [NODES["name"][position] for position in browser.rows()] == ['a, "quoted"\nname']
    browser.run(
        "const box = document.getElementById('table-search'); box.value = ''; box.dispatchEvent(new Event('input'))"
    )

    browser.find("#table-export").click()
    exported = downloads / "nodes.csv"
    _until(exported.exists)
    with exported.open(encoding="utf-8", newline="") as lines:
        table = list(csv.DictReader(lines))
    assert [row["name"] for row in table] == [NODES["name"][position] for position in [*rising, *unknown]]
    for row, position in zip(table, [*rising, *unknown], strict=True):
        for key, text in row.items():
            value = NODES[key][position]
            assert (float(text) if isinstance(value, float) else text) == (
                "" if value is None else value if isinstance(value, float) else str(value)
            )
    assert browser.console() == []


def _until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


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


def _without_audited_nodes() -> dict[str, Any]:
    return page_data(num_nodes=40, num_edges=60, audited_share=0.0)


def _bare() -> dict[str, Any]:
    data = page_data(num_nodes=20, num_edges=0, num_classes=1)
    data |= {"joint": [], "posteriors": [], "null_control": None, "cautions": [], "variants": [], "headline": []}
    data["accuracy"] = {"train": [], "held_out": []}
    return data


def _with_certain_priors() -> dict[str, Any]:
    data = page_data(num_nodes=40, num_edges=60)
    data["nodes"]["prior"][:2] = [0.0, 1.0]
    data["nodes"]["floor_right"][:2] = data["nodes"]["floor_left"][:2] = [None, None]
    data["margins"]["low"][:2] = [0.5, None]
    data["margins"]["high"][:2] = [0.5, None]
    data["headline"][0] |= {"p95": 900.0, "proven": None, "floor": None}
    return data


@pytest.mark.parametrize("made", [_without_audited_nodes, _bare, _with_certain_priors])
def test_poor_data_do_not_break_it(browser: Browser, tmp_path: Path, made: Callable[[], dict[str, Any]]) -> None:
    data = made()
    path = tmp_path / "report.html"
    path.write_text(render_page(data), encoding="utf-8")
    browser.open(path)
    for position in range(3):
        browser.run("location.hash = arguments[0]", f"#node={position}")
        browser.wait("return bmpaudit.state.selected === arguments[0]", position)
    for select in ("group-by", "group-measure", "prior-axis", "graph-colour"):
        browser.run(
            """
            const select = document.getElementById(arguments[0]);
            for (const option of select.options) {
              select.value = option.value;
              select.dispatchEvent(new Event('change'));
            }
        """,
            select,
        )
    browser.run("[...document.querySelectorAll('#node-details button')].find((b) => b.textContent === 'Clear').click()")
    assert browser.selected() is None
    assert browser.console() == []
    assert not re.search(
        r"\b(NaN|undefined|null(?! control)|Infinity)\b",
        browser.run("return document.querySelector('.columns').innerText"),
    )


def test_spread_of_a_rate_is_the_quantile_of_a_beta(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    cases = [
        [prob, a, b]
        for prob in (0.05, 0.5, 0.95)
        for a, b in ((1, 1), (1, 751), (251, 1), (21, 731), (2.5, 0.5), (4000, 6000))
    ]
    found = browser.run("return arguments[0].map((case_) => bmpaudit.betaQuantile(...case_))", cases)
    np.testing.assert_allclose(found, [beta.ppf(*case) for case in cases], rtol=1e-9)


def test_corners_are_those_of_the_region(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    cases = [
        [prior_odds, left, right]
        for prior_odds in (0.3, 1.0, 2.0)
        for left, right in ((2.0, 1.5), (3.0, 6.0), (1.3, 0.8))
    ]
    for case, corners in zip(
        cases, browser.run("return arguments[0].map((case_) => bmpaudit.regionCorners(...case_))", cases), strict=True
    ):
        region = Region(*case)
        x, y = np.asarray(corners).T
        assert abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2 == pytest.approx(region.area)
        middle = np.array([0.5, 0.5])
        for corner in np.asarray(corners):
            inside, outside = (middle + (corner - middle) * scale for scale in (1 - 1e-9, 1 + 1e-6))
            assert region.contains(*inside)
            assert outside.min() < 0 or outside.max() > 1 or not region.contains(*outside)
    assert browser.run("return bmpaudit.regionCorners(2, 1, 0.5)") is None  # ε_R below log η
