"""What the page's charts show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sample_page
from page_browser import Browser
from sample_page import COUNTED, DATA, NODES, text_of
from scipy.special import logit

browser, page = sample_page.browser, sample_page.page


def test_exposure_curve_of_either_side(browser: Browser, page: Path) -> None:
    browser.open(page)
    lines = """
        return document.getElementById('chart-exposure').data.filter((trace) => trace.showlegend !== false)
          .map((trace) => [trace.name, trace.y]);
    """
    (first, members), _, (reference, priors) = browser.run(lines)
    curve = DATA["releases"][0]["exposure"]["members"]
    assert (first, reference) == ("clean", "sampling alone, no model")
    assert members == [row["correct"] for row in curve]
    assert priors == [row["by_prior"] for row in curve]
    assert browser.find("#exposure-scale").get_property("value") == "linear"
    browser.find("#exposure-scale option[value=log]").click()
    (_, members), *_ = browser.run(lines)
    assert members == [*(row["correct"] for row in curve[:-1]), None]  # a logarithmic axis has no place for 0
    browser.find("#exposure-side option[value=non_members]").click()
    (_, others), *_ = browser.run(lines)
    assert others == [row["correct"] for row in DATA["releases"][0]["exposure"]["non_members"]]
    assert browser.console() == []


def test_reliability_is_in_log_odds(browser: Browser, page: Path) -> None:
    browser.open(page)
    stated, observed, colours = browser.run("""
        const [trace] = document.getElementById('chart-reliability').data;
        return [trace.x, trace.y, trace.marker.color];
    """)
    diagram = DATA["releases"][0]["exposure"]["reliability"]
    filled = {name: [value for value in diagram[name] if value is not None] for name in ("stated", "observed")}
    np.testing.assert_allclose(stated, logit(filled["stated"]))
    np.testing.assert_allclose(observed[:-1], logit(filled["observed"][:-1]))
    # All 40 of the surest were members: an open point at 40.5/41.
    assert observed[-1] == pytest.approx(logit(40.5 / 41))
    assert [colour == "#fff" for colour in colours] == [False] * 5 + [True]


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


def test_a_chart_that_was_folded_away_is_not_out_of_date(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.find("#estimates > summary").click()
    position = NODES["name"].index("paper 42")
    browser.run("location.hash = arguments[0]", f"#node={NODES['id'][position]}")
    browser.wait_until_selected(position)
    browser.find("#estimates > summary").click()
    browser.wait("return document.querySelector('#chart-regions .legend').textContent.includes('paper 42')")


def test_the_graph_is_coloured_by_exposure(browser: Browser, page: Path) -> None:
    browser.open(page, needs_charts=False)
    assert browser.find("#graph-colour").get_property("value") == "member_exposure"
    shares = [NODES["member_named"][k] / NODES["member_models"][k] for k in COUNTED]
    assert text_of(browser, "#graph-legend") == f"0 % {100 * max(shares):.0f} % never named not known"
