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
from scipy.special import logit
from scipy.stats import beta
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from bmpaudit.report.page import render_page

DATA = page_data()
NODES = DATA["nodes"]
COUNTED = [position for position, models in enumerate(NODES["member_models"]) if models > 0]
BY_RANK = [int(position) for position in np.argsort(NODES["rank"])]


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
    assert len(charts) == 13
    assert [name for name, drawn in charts if not drawn] == []


def cells_of_headline(browser: Browser) -> list[list[str]]:
    cells: list[list[str]] = browser.run("""
        return [...document.querySelectorAll('#headline tbody tr')].map((row) =>
          [...row.querySelectorAll('td')].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()));
    """)
    return cells


def text_of(browser: Browser, selector: str) -> str:
    """What is read at a place, in one line."""
    return " ".join(str(browser.run("return document.querySelector(arguments[0]).innerText", selector)).split())


def test_the_answer_comes_first_and_in_order(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    top = text_of(browser, "#summary")
    answer = DATA["answer"]
    texts = [DATA["verdict"], *(answer[name] for name in ("proven", "exposure", "floor", "estimated"))]
    texts += [*answer["warnings"], "What to do next", DATA["next"][0], "What this does not prove", DATA["is_not"][0]]
    places = [top.find(text.replace("_", "")) for text in texts]
    assert -1 not in places
    assert places == sorted(places)
    sections = browser.run("return [...document.querySelectorAll('section')].map((section) => section.id)")
    assert sections[:6] == ["summary", "releases", "exposure", "reliability", "graph", "nodes"]
    assert browser.find("#estimates").get_property("open")
    assert not browser.find("#no-estimates").is_displayed()


def test_without_leakage_nothing_is_estimated_at_the_top(browser: Browser, tmp_path: Path) -> None:
    data = page_data(num_nodes=20, num_edges=20)
    data["is_leakage_found"] = False
    data["answer"] |= {"estimated": "", "warnings": [], "proven": "Nothing.", "exposure": "Nobody can be named."}
    data["nodes"]["member_named"] = [0] * 20
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html")
    assert "Estimated" not in text_of(browser, "#summary")
    assert not re.search(r"\d+ : \d", text_of(browser, "#summary").replace(data["answer"]["floor"], ""))
    assert browser.selected() is None
    assert text_of(browser, "#nodes-shown").startswith("Nobody is ever named as a member with 99 % certainty")
    # The estimates are there for who asks, and say what they are worth.
    assert browser.find("#no-estimates").is_displayed()
    assert not browser.find("#chart-posteriors").is_displayed()
    browser.find("#estimates > summary").click()
    browser.wait("return document.querySelectorAll('#chart-posteriors svg').length > 0")
    widths = browser.run(
        "return ['#chart-posteriors svg', '#estimates'].map((s) => document.querySelector(s).clientWidth)"
    )
    assert widths[0] > 0.9 * widths[1]
    assert browser.console() == []


def test_a_chart_that_was_folded_away_is_not_out_of_date(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.find("#estimates > summary").click()
    position = NODES["name"].index("paper 42")
    browser.run("location.hash = arguments[0]", f"#node={NODES['id'][position]}")
    browser.wait_until_selected(position)
    browser.find("#estimates > summary").click()
    browser.wait("return document.querySelector('#chart-regions .legend').textContent.includes('paper 42')")


def test_releases_say_what_is_proven_and_how_many_are_named(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    rows: list[list[str]] = browser.run("""
        return [...document.querySelectorAll('#release-table tbody tr')].map((row) =>
          [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()));
    """)
    assert rows[0] == [
        "clean student attack, full and none",
        "≥ 2.10 8.2 : 1 70 of 72 right",
        "nothing beyond the sampling",  # 3.1 where the sampling gives 3.9
        "≥ 1.10 ×3 70 of 72 right",
        "31.2 28.1 to 34.3",
        "23.4 21.1 to 25.7",
        "11.7 10.5 to 12.9",
        "0.900",
        "10.0 %",
        "0.0061",
    ]
    assert rows[1][0].startswith(HOSTILE_CLASS)


def test_exposure_curve_of_either_side(browser: Browser, page: Path) -> None:
    browser.open(page)
    lines = """
        return document.getElementById('chart-exposure').data.filter((trace) => trace.showlegend !== false)
          .map((trace) => [trace.name, trace.y]);
    """
    (first, members), _, (reference, priors) = browser.run(lines)
    curve = DATA["releases"][0]["exposure"]["members"]
    assert (first, reference) == ("clean", "sampling alone, no model")
    assert members == curve["correct"]
    assert priors == curve["without_model"]
    assert browser.find("#exposure-scale").get_property("value") == "linear"
    browser.find("#exposure-scale option[value=log]").click()
    (_, members), *_ = browser.run(lines)
    assert members == [*curve["correct"][:-1], None]  # a logarithmic axis has no place for 0
    browser.find("#exposure-side option[value=non_members]").click()
    (_, others), *_ = browser.run(lines)
    assert others == DATA["releases"][0]["exposure"]["non_members"]["correct"]
    assert browser.console() == []


def test_reliability_is_in_log_odds(browser: Browser, page: Path) -> None:
    browser.open(page)
    stated, observed, colours = browser.run("""
        const [trace] = document.getElementById('chart-reliability').data;
        return [trace.x, trace.y, trace.marker.color];
    """)
    diagram = DATA["releases"][0]["reliability"]
    np.testing.assert_allclose(stated, logit(diagram["stated"]))
    np.testing.assert_allclose(observed[:-1], logit(diagram["observed"][:-1]))
    # All 40 of the surest were members: an open point at 40.5/41.
    assert observed[-1] == pytest.approx(logit(40.5 / 41))
    assert [colour == "#fff" for colour in colours] == [False] * 5 + [True]


def test_a_node_says_in_how_many_models_it_is_named(browser: Browser, page: Path) -> None:
    browser.open(page, fragment=f"#node={BY_RANK[0]}")
    named, models = (NODES[f"member_{key}"][BY_RANK[0]] for key in ("named", "models"))
    assert text_of(browser, "#node-details .named") == f"Named in {named} of the {models} models it was in."
    low, high = (
        100 * beta.ppf(tail, *shape)
        for tail, shape in zip((0.025, 0.975), ((named, models - named + 1), (named + 1, models - named)), strict=True)
    )
    assert f"({low:.0f} % to {high:.0f} %)" in text_of(browser, "#node-details")
    browser.open(page, fragment="#node=96")
    assert NODES["member_models"][96] == 0
    assert text_of(browser, "#node-details .named") == "In no model that was attacked."


def test_the_graph_is_coloured_by_exposure(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    assert browser.find("#graph-colour").get_property("value") == "member_exposure"
    shares = [NODES["member_named"][k] / NODES["member_models"][k] for k in COUNTED]
    assert text_of(browser, "#graph-legend") == f"0 % {100 * max(shares):.0f} % never named not known"


def test_estimates_say_what_is_proven_and_how_sure_the_floor_is(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    right, left, factor = cells_of_headline(browser)
    assert right[:3] == ["4.80 122 : 1", "4.10 to 6.30 60 : 1 to 545 : 1", "4.40"]
    assert right[3:] == ["≥ 2.10 8.2 : 1 95 % confidence", "≥ 0.94 2.6 : 1 99 % confidence", "80 %"]
    assert left[3:5] == ["nothing proven", "−1.40 1 : 4.1"]
    # MP's ε multiplies the odds: it is not odds itself.
    assert factor[:2] == ["4.56 ×96", "3.20 to 15.10 ×25 to over ×1,000,000"]
    assert factor[3:] == ["≥ 1.10 ×3 95 % confidence", "0.00 ×1", "–"]


def test_a_floor_without_a_level_is_called_approximate(browser: Browser, tmp_path: Path) -> None:
    data = page_data(num_nodes=20, num_edges=20)
    data["headline"][0] |= {"floor_level": None}
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html", needs_charts=False)
    assert cells_of_headline(browser)[0][4] == "≈ 0.94 2.6 : 1"


def test_permutation_test_in_words(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page)
    sentence = text_of(browser, "#permutation-sentence")
    assert sentence.startswith("The attack’s AUC is 0.910 on the real memberships, and 0.4")
    assert sentence.endswith("0 of 19 shuffles reached the real one (p = 0.05): the attack found leakage.")
    data = page_data(num_nodes=20, num_edges=20)
    data["permutation_test"] |= {"is_leakage_found": False, "p_value": 1.0, "statistic": 0.4}
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html")
    sentence = text_of(browser, "#permutation-sentence")
    assert sentence.endswith("19 of 19 shuffles reached the real one (p = 1.00): the attack found no leakage.")


def test_whiskers_of_groups_are_as_the_caption_says(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert "within 1.5 times the length of the box" in " ".join(browser.text("#groups figcaption").split())
    boxes = browser.run("""
        const {data, calcdata} = document.getElementById('chart-groups');
        return calcdata.slice(1, -1).map(([box], index) =>
          [box.lf, box.q1, box.med, box.q3, box.uf, data[index + 1].x[0]]);
    """)
    points = browser.run("""
        const {x, y} = document.getElementById('chart-groups').data[0];
        return x.map((_, k) => [Math.round(x[k]), y[k]]);
    """)
    means = browser.run("return document.getElementById('chart-groups').data.at(-1).y")
    has_outlier = False
    for low, lower, median, upper, high, place in boxes:
        values = np.array([y for group, y in points if group == place])
        assert (lower, median, upper) == pytest.approx(tuple(np.percentile(values, [25, 50, 75])))
        assert means[place] == pytest.approx(values.mean())
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
    assert browser.rows() == [NODES["name"].index(name) for name in sorted((SCRIPT_NAME, IMAGE_NAME), key=_rank_of)]
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


def _rank_of(name: str) -> int:
    """Sorts as the table does at first."""
    return int(NODES["rank"][NODES["name"].index(name)])


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


def test_table_sorts_filters_and_exports(browser: Browser, page: Path, downloads: Path) -> None:
    browser.open(page, needs_charts=False)
    unknown = [position for position, low in enumerate(NODES["right_low"]) if low is None]
    known = [position for position in range(300) if position not in unknown]
    assert browser.rows() == BY_RANK[:50]

    heading = browser.find("#node-table th:nth-child(12) button")
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
    data |= {"releases": [], "next": [], "is_not": []}
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


def _with_nobody_named() -> dict[str, Any]:
    data = page_data(num_nodes=40, num_edges=60)
    data["nodes"]["member_named"] = data["nodes"]["non_member_named"] = [0] * 40
    data["nodes"]["member_exposure_low"] = [0.0] * 40
    for release in data["releases"]:
        release |= {"proof": [], "not_proven": f"there must be at least 4 models {SCRIPT_NAME}"}
        for curve in release["exposure"].values():
            curve |= {name: [0.0] * 7 for name in ("correct", "correct_low", "correct_high", "without_model")}
            curve["share_correct"] = [None] * 7
        release["reliability"] |= {"num_challenges": [3], "stated": [0.0], "observed": [0.0]}
    return data


@pytest.mark.parametrize("made", [_without_audited_nodes, _bare, _with_certain_priors, _with_nobody_named])
def test_poor_data_do_not_break_it(browser: Browser, tmp_path: Path, made: Callable[[], dict[str, Any]]) -> None:
    data = made()
    path = tmp_path / "report.html"
    path.write_text(render_page(data), encoding="utf-8")
    browser.open(path)
    for position in range(3):
        browser.run("location.hash = arguments[0]", f"#node={position}")
        browser.wait_until_selected(position)
    for select in ("group-by", "group-measure", "prior-axis", "graph-colour", "exposure-side", "exposure-scale"):
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
