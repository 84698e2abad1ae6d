"""What the page says of a whole audit: the answer, the releases, the estimates."""

from __future__ import annotations

import re
from pathlib import Path

import sample_page
from page_browser import Browser
from page_fixture import page_data
from page_fixture_nodes import HOSTILE_CLASS
from sample_page import DATA, text_of

from bmpaudit.report.page import render_page

browser, page = sample_page.browser, sample_page.page


def test_the_answer_comes_first_and_in_order(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    top = text_of(browser, "#summary")
    answer = DATA["answer"]
    texts = ["Strong leak", answer["verdict"], "at least 99 % right", "Nodes proven to leak"]
    texts += [*(answer[name] for name in ("proven", "guaranteed", "exposure", "floor", "estimated"))]
    texts += [*answer["warnings"], "What to do next", DATA["next"][0], "What this does not prove", DATA["is_not"][0]]
    places = [top.find(text.replace("_", "")) for text in texts]
    assert -1 not in places
    assert places == sorted(places)
    sections = browser.run("return [...document.querySelectorAll('section')].map((section) => section.id)")
    assert sections[:6] == ["summary", "exposure", "releases", "reliability", "graph", "nodes"]
    assert browser.find("#estimates").get_property("open")
    assert not browser.find("#no-estimates").is_displayed()


def test_without_leakage_nothing_is_estimated_at_the_top(browser: Browser, tmp_path: Path) -> None:
    data = page_data(num_nodes=20, num_edges=20)
    data["is_leakage_found"] = False
    data["answer"] |= {
        "level": "none",
        "estimated": "",
        "warnings": [],
        "proven": "Nothing.",
        "exposure": "Nobody can be named.",
    }
    data["nodes"]["member_named"] = [0] * 20
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html")
    assert text_of(browser, "#leak-level") == "No leakage found"
    assert "Estimated" not in text_of(browser, "#summary")
    assert not re.search(r"\d+ : \d", text_of(browser, "#summary").replace(data["answer"]["floor"], ""))
    assert browser.selected() is None
    most = data["releases"][0]["exposure"]["members"][4]["correct_high"]
    assert text_of(browser, "#nodes-shown").startswith(
        f"None of these models names anybody as a member with 99 % certainty (per model, it may be up to {most:.1f})"
    )
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


def test_releases_say_what_is_proven_and_how_many_are_named(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    rows: list[list[str]] = browser.run("""
        return [...document.querySelectorAll('#release-table tbody tr')].map((row) =>
          [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()));
    """)
    assert rows[0] == [
        "clean student attack, full and none named by student, full and none",
        "≥ 2.10 8.2 : 1 70 of 72 right by student, full",
        "nothing beyond the sampling",  # 3.1 where the sampling gives 3.9
        "≥ 1.10 ×3 all 72 right: ceiling by student, full",
        "31.2 28.1 to 34.3",
        "23.4 21.1 to 25.7",
        "11.7 10.5 to 12.9",
        "0.900",
        "10.0 %",
        "80.0 % 95.0 % on training nodes",
        "0.0061",
    ]
    assert rows[1][0].startswith(HOSTILE_CLASS)


def test_certified_names_of_every_release_stand_beside_what_the_sampling_tells(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    rows: list[list[str]] = browser.run("""
        return [...document.querySelectorAll('#certified-table tr')].map((row) =>
          [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()));
    """)
    assert rows[0] == ["Share of the names", "clean", HOSTILE_CLASS, "without a model"]
    assert (rows[1], rows[7]) == (["Names of members (78 per model)"], ["Names of non-members (222 per model)"])
    assert rows[2] == ["at least 75 % right", "≥ 40 41.5 named, 99.7 % right", "≥ 16 17.5 named, 99.7 % right", "1"]
    # A lower bound is never rounded up, and what is not certified is a dash.
    assert rows[5] == ["at least 99 % right", "≥ 21 23.4 named, 99.7 % right", "≥ 8 10.3 named, 99.7 % right", "0"]
    assert rows[6] == ["at least 99.9 % right", "–", "–", "0"]
    assert rows[11][1].startswith("≥ 43 ")
    assert len(rows) == 13


def test_without_certificates_the_reason_is_there(browser: Browser, tmp_path: Path) -> None:
    data = page_data(num_nodes=20, num_edges=20)
    for release in data["releases"]:
        release |= {"certified": None, "proof": None, "not_proven": "there must be at least 4 models"}
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html", needs_charts=False)
    assert text_of(browser, "#certified-nothing") == "Nothing is certified: there must be at least 4 models."
    assert text_of(browser, "#certified-table") == ""


def cells_of_headline(browser: Browser) -> list[list[str]]:
    cells: list[list[str]] = browser.run("""
        return [...document.querySelectorAll('#headline tbody tr')].map((row) =>
          [...row.querySelectorAll('td')].map((cell) => cell.innerText.replace(/\\s+/g, ' ').trim()));
    """)
    return cells


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
    test = DATA["permutation_test"]
    ends = f"{min(test['null_statistics']):.2f} to {max(test['null_statistics']):.2f}"
    assert sentence.startswith(
        f"The largest T of any node is 9.21 with the real memberships, and {ends} after shuffling"
    )
    assert "(199 times). With the sums over all nodes this gives p = 0.005: leakage is found." in sentence
    assert sentence.endswith(f"Of 300 nodes, {test['num_leaking']} are proven to leak.")
    assert text_of(browser, "#missed") == DATA["missed"]
    counted, shuffled = browser.run("""
        const place = document.getElementById('chart-permutation');
        return [place.calcdata[0].reduce((sum, bar) => sum + (bar.s ?? 0), 0), place.data[0].x.length];
    """)
    assert counted == shuffled == 199
    data = page_data(num_nodes=20, num_edges=20)
    data["permutation_test"] |= {"is_leakage_found": False, "p_value": 1.0, "statistic": 0.4, "num_leaking": 1}
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    browser.open(tmp_path / "report.html")
    sentence = text_of(browser, "#permutation-sentence")
    assert sentence.endswith("p = 1: no leakage is found. Of 20 nodes, 1 is proven to leak.")
