"""Pages of audits in which something is missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample_page
from page_browser import Browser
from page_fixture import page_data
from page_fixture_nodes import SCRIPT_NAME

from bmpaudit.report.page import render_page

browser, page = sample_page.browser, sample_page.page


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
        release |= {"proof": None, "not_proven": f"there must be at least 4 models {SCRIPT_NAME}"}
        for side in ("members", "non_members"):
            for row in release["exposure"][side]:
                row |= dict.fromkeys(("correct", "correct_low", "correct_high", "by_prior"), 0.0)
                row["share_correct"] = None
        release["exposure"]["reliability"] |= {"num_challenges": [3], "stated": [0.0], "observed": [0.0]}
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
