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
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

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


def cells_of_headline(browser: Browser) -> list[list[str]]:
    cells: list[list[str]] = browser.run("""
        return [...document.querySelectorAll('#headline tbody tr')].map((row) =>
          [...row.querySelectorAll('td')].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()));
    """)
    return cells


def test_headline_says_what_is_proven_and_how_sure_the_floor_is(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    right, left, factor = cells_of_headline(browser)
    assert right[:2] == ["≥ 2.10 8.2 : 1 95 % confidence", "≥ 0.94 2.6 : 1 99 % confidence"]
    assert right[2:] == ["4.80 122 : 1", "4.10 to 6.30 60 : 1 to 545 : 1", "80 %"]
    assert left[:2] == ["nothing proven", "−1.40 1 : 4.1"]
    # MP's ε multiplies the odds: it is not odds itself.
    assert factor == ["≥ 1.10 ×3 95 % confidence", "0.00 ×1", "4.56 ×96", "3.20 to 15.10 ×25 to over ×1,000,000", "–"]
    assert browser.run("return document.getElementById('no-leakage').hidden")
    assert browser.run("return document.querySelectorAll('.is-doubtful').length") == 0


def test_a_floor_without_a_level_is_called_approximate(browser: Browser, tmp_path: Path) -> None:
    data = page_data(num_nodes=20, num_edges=20)
    data["headline"][0] |= {"floor_level": None}
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html", needs_charts=False)
    assert cells_of_headline(browser)[0][1] == "≈ 0.94 2.6 : 1"


def test_permutation_test_in_words(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page)
    sentence = browser.text("#permutation-sentence")
    assert "so the attack found leakage. p = 0.05." in sentence
    assert "(19 times)" in sentence
    data = page_data(num_nodes=20, num_edges=20)
    data["permutation_test"] |= {"is_leakage_found": False, "p_value": 0.4, "statistic": 0.05}
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html")
    assert "the attack found no leakage. p = 0.40." in browser.text("#permutation-sentence")
    # Without leakage the estimates do not lead: they are faded, and a notice says why.
    assert browser.find("#no-leakage").is_displayed()
    assert browser.run("return document.querySelectorAll('#headline td.is-doubtful').length") == 9


def test_whiskers_of_groups_are_as_the_caption_says(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert "within 1.5 times the length of the box" in " ".join(browser.text("#groups figcaption").split())
    boxes = browser.run("""
        const {data, calcdata} = document.getElementById('chart-groups');
        return calcdata.slice(1).map(([box], index) => [box.lf, box.q1, box.med, box.q3, box.uf, data[index + 1].x[0]]);
    """)
    points = browser.run("""
        const {x, y} = document.getElementById('chart-groups').data[0];
        return x.map((_, k) => [Math.round(x[k]), y[k]]);
    """)
    has_outlier = False
    for low, lower, median, upper, high, place in boxes:
        values = np.array([y for group, y in points if group == place])
        assert (lower, median, upper) == pytest.approx(tuple(np.percentile(values, [25, 50, 75])))
        reach = 1.5 * (upper - lower)
        within = values[(values >= lower - reach) & (values <= upper + reach)]
        assert (low, high) == (within.min(), within.max())
        has_outlier |= len(within) < len(values)
    assert has_outlier, "no node is beyond a whisker, so this tests nothing"


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
        browser.wait_until_selected(position)
        assert name in browser.text("#node-panel summary")
        assert name in browser.text("#chart-margins .gtitle")
        across, down = browser.place_in_chart(
            "chart-prior", NODES["prior_prob"][position], NODES["right_median"][position]
        )
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
    lowest = int(np.argmin(points[1]))
    browser.pointer(*browser.place_in_chart("chart-groups", points[0][lowest], points[1][lowest]))
    assert browser.selected() == points[2][lowest]

    canvas = browser.find("#graph-canvas")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    box = _box_of(browser, canvas)
    leftmost = int(np.argmin(NODES["x"]))
    across = box[0] + box[2] / 2 + (NODES["x"][leftmost] - 0.5) * (box[2] - 36)
    browser.pointer(across, box[1] + box[3] / 2 + (NODES["y"][leftmost] - 0.5) * (box[3] - 36))
    assert browser.selected() == leftmost

    browser.find("#graph-search").send_keys("paper 299")
    browser.find("#graph-found button").click()
    assert browser.selected() == NODES["name"].index("paper 299")
    assert browser.console() == []


def _box_of(browser: Browser, place: Any) -> list[float]:
    box: list[float] = browser.run(
        "const {left, top, width, height} = arguments[0].getBoundingClientRect(); return [left, top, width, height];",
        place,
    )
    return box


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
        left, top, width, height = _box_of(browser, canvas)
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


def _without_audited_nodes() -> dict[str, Any]:
    return page_data(num_nodes=40, num_edges=60, audited_share=0.0)


def _bare() -> dict[str, Any]:
    data = page_data(num_nodes=20, num_edges=0, num_classes=1)
    data |= {"joint": [], "posteriors": [], "permutation_test": None, "cautions": [], "variants": [], "headline": []}
    data["accuracy"] = {"train": [], "held_out": []}
    return data


def _with_certain_priors() -> dict[str, Any]:
    data = page_data(num_nodes=40, num_edges=60)
    data["nodes"]["prior_prob"][:2] = [0.0, 1.0]
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
        browser.wait_until_selected(position)
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
        r"\b(NaN|undefined|null|Infinity)\b",
        browser.run("return document.querySelector('.columns').innerText"),
    )
