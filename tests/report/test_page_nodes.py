"""Nodes on the page: selected, counted, sorted, exported."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sample_page
from page_browser import Browser
from sample_page import BY_RANK, COUNTED, NODES, box_of, text_of
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

browser, page = sample_page.browser, sample_page.page


def test_a_node_says_in_how_many_models_it_is_named(browser: Browser, page: Path) -> None:
    browser.open(page, fragment=f"#node={BY_RANK[0]}")
    named, models = (NODES[f"member_{key}"][BY_RANK[0]] for key in ("named", "models"))
    assert text_of(browser, "#node-details .named") == f"Named in {named} of the {models} models it was in."
    low, high = (100 * NODES[f"member_exposure_{end}"][BY_RANK[0]] for end in ("low", "high"))
    assert f"({low:.0f} % to {high:.0f} %)" in text_of(browser, "#node-details")
    browser.open(page, fragment="#node=96")
    assert NODES["member_models"][96] == 0
    assert text_of(browser, "#node-details .named") == "In no model that was attacked."


def test_click_in_the_scatter_selects_everywhere(browser: Browser, page: Path) -> None:
    browser.open(page)
    medians = [
        np.inf if median is None or k in BY_RANK[:50] else median for k, median in enumerate(NODES["right_median"])
    ]
    position = int(np.argmin(medians))
    assert position not in (browser.selected(), *browser.rows())
    browser.pointer(
        *browser.place_in_chart("chart-prior", NODES["prior_prob"][position], NODES["right_median"][position])
    )
    browser.wait_until_selected(position)
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
    highest = int(np.argmax(points[1]))
    browser.find("#node-details .buttons button:last-child").click()
    browser.pointer(*browser.place_in_chart("chart-groups", points[0][highest], points[1][highest]))
    assert browser.selected() == points[2][highest]

    canvas = browser.find("#graph-canvas")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    box = box_of(browser, canvas)
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
    lows = [NODES["member_exposure_low"][position] for position in COUNTED]
    for keys in ([], [Keys.ARROW_LEFT] * 7, [Keys.HOME], [Keys.END], [Keys.PAGE_DOWN] * 3):
        slider.send_keys(*keys)
        threshold = float(slider.get_property("value"))
        above = sum(low > threshold for low in lows)
        assert browser.text("#threshold-count").startswith(f"{above} of {len(COUNTED)} nodes ")
        seen.add(above)
    assert len(seen) >= 4
    browser.find("#table-show option[value=above]").click()
    assert browser.text("#table-count").startswith(f"{above} of {len(NODES['id'])} nodes.")
    assert browser.console() == []


def test_table_sorts_filters_and_exports(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    unknown = [position for position, low in enumerate(NODES["right_low"]) if low is None]
    known = [position for position in range(300) if position not in unknown]
    assert browser.rows() == BY_RANK[:50]

    heading = browser.find("#node-table th:nth-child(15) button")
    heading.click()
    falling = sorted(known, key=lambda position: (-NODES["right_low"][position], position))
    assert browser.rows() == falling[:50]
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
    exported = browser.downloads / "nodes.csv"
    _until(exported.exists)
    with exported.open(encoding="utf-8", newline="") as lines:
        table = list(csv.DictReader(lines))
    assert [row["name"] for row in table] == [NODES["name"][position] for position in [*rising, *unknown]]
    for row, position in zip(table, [*rising, *unknown], strict=True):
        for key, text in row.items():
            value = NODES[key][position]
            assert (float(text) if isinstance(value, float) else text) == (
                "" if value is None else value if isinstance(value, float) else shown(value)
            )
    assert browser.console() == []


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_nodes_proven_to_leak_are_listed_and_filtered(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    leaking = [position for position in BY_RANK if NODES["is_leaking"][position]]
    assert 12 < len(leaking) < 50
    assert text_of(browser, "#leaking-count") == f"{len(leaking)} of 300 nodes."
    listed = browser.run("return [...document.querySelectorAll('#leaking-nodes button')].map((each) => each.innerText)")
    assert listed[0] == NODES["name"][leaking[0]]
    assert listed[12:] == [f"and {len(leaking) - 12} more, in the table"]
    browser.find("#leaking-nodes li:last-child button").click()
    assert browser.rows() == leaking
    assert browser.run("return document.activeElement.id") == "nodes"
    browser.run("document.getElementById('leaking-nodes').scrollIntoView({block: 'center', behavior: 'instant'})")
    browser.find("#leaking-nodes button").click()
    assert browser.selected() == leaking[0]
    assert "Leaks proven p-value 0.005" in text_of(browser, "#node-details")
    browser.open(page, fragment=f"#node={NODES['is_leaking'].index(False)}", needs_charts=False)
    assert "Leaks not proven p-value 0.31" in text_of(browser, "#node-details")


def _until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
