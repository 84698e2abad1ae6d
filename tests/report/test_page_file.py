"""What the page holds: all of the data and no more than its own scripts, whatever names are in it."""

from __future__ import annotations

import json
import re
import string
from importlib.resources import files
from pathlib import Path

import pytest
from page_fixture import page_data
from sample_page import DATA

from bmpaudit.report.page import data_of_page, library_version, render_page
from bmpaudit.util.errors import DataError


def test_page_of_cora_is_small_and_holds_all_it_needs() -> None:
    page = render_page(page_data(num_nodes=2708, num_edges=5278, num_models=1000))
    assert len(page.encode()) < 2e6
    assert re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)=(?!\"data:,\")", page) is None
    assert "default-src 'none'" in page


def test_data_arrive_unchanged() -> None:
    page = render_page(DATA)
    (inside,) = re.findall(r'<script type="text/plain" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert set(inside) <= set(string.ascii_letters + string.digits + "+/=")
    assert data_of_page(page) == DATA
    with pytest.raises(DataError, match="not the page of an audit"):
        data_of_page("<html></html>")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_are_finite(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_page({**DATA, "leakage_level": number})


def test_the_library_is_the_one_that_is_pinned() -> None:
    package = json.loads((Path(__file__).parents[2] / "package.json").read_text(encoding="utf-8"))
    assert library_version() == package["devDependencies"]["plotly.js-cartesian-dist-min"]
    licence = (files("bmpaudit.report") / "plotly" / "LICENSE").read_text(encoding="utf-8")
    assert "MIT License" in licence
