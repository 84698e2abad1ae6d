"""The page of a table speaks of rows, in its fixed text and in what its scripts write; names stay as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import sample_page
from page_browser import Browser
from page_fixture import page_data
from sklearn.tree import DecisionTreeClassifier

from bmpaudit.auditing.context import Runtime
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.report.page import render_page
from bmpaudit.report.page_data import page_data as data_of_audit
from bmpaudit.util.words import TABLE_WORDS

# Neither commands nor files.
NODE = re.compile(r"(?<!bmpaudit )\b[Nn]odes?\b(?!\.csv|\.parquet)")
browser = sample_page.browser
# All that can be read, also where it is folded away, and what is read aloud.
ALL_TEXT = """
document.querySelectorAll('script, style').forEach((each) => each.remove());
const labels = [...document.querySelectorAll('[aria-label]')].map((each) => each.getAttribute('aria-label'));
return [document.body.textContent, ...labels].join('\\n');
"""


def test_nodes_are_rows(browser: Browser, tmp_path: Path) -> None:
    data = page_data(num_nodes=30, num_edges=0)
    data["nodes"]["class"] = ["a graph"] * 30
    # Sentences about the audit are put into these words where they are made.
    data |= {"next": [], "is_not": [], "cautions": [], "provenance": [], "diagnostics": [], "headline": []}
    data |= {"missed": "", "title": "", "plan_toml": "", "citation": "", "words": TABLE_WORDS}
    data["answer"] = {name: [] if name == "warnings" else "" for name in data["answer"]} | {"level": "none"}
    path = tmp_path / "report.html"
    path.write_text(render_page(data), encoding="utf-8")
    browser.open(path)
    text = browser.run(ALL_TEXT)
    assert not [text[max(0, found.start() - 60) : found.end() + 40] for found in NODE.finditer(text)]
    assert "30 rows" in text
    assert "a graph" in text


def test_sentences_about_the_audit_of_a_table_too() -> None:
    rng = np.random.default_rng(0)
    table = (rng.normal(size=(40, 3)), rng.integers(2, size=40))
    done = audit(table, model=DecisionTreeClassifier(), shadows=16, definitions="mp", runtime=Runtime(quiet=True))
    data = data_of_audit(done)
    for part in ("answer", "next", "headline", "is_not", "diagnostics"):
        assert not NODE.search(json.dumps(data[part], ensure_ascii=False))
    assert "rows audited" in dict(data["diagnostics"])
