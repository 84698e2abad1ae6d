"""docs/reproduction.md is what the command makes of the tables beside it."""

from pathlib import Path

import pandas as pd

from bmpaudit.paper import judge, published_table
from bmpaudit.paper.experiments import KEY
from bmpaudit.paper.output import findings_table, read_tables
from bmpaudit.paper.page import make_page

DOCS = Path(__file__).parents[2] / "docs"
TABLES = read_tables(DOCS / "reproduction")


def test_page_is_made_from_the_tables() -> None:
    figures = [path.stem for path in (DOCS / "reproduction").glob("*.png")]
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == make_page(TABLES, figures)


def test_verdicts_follow_from_the_cells() -> None:
    cells = TABLES["cells"]
    made = judge(published_table(), cells[cells["counting"] == "paper"])
    kept = TABLES["verdicts"]
    assert made[list(KEY)].equals(kept[list(KEY)])
    # The files have four decimals: what lies on the edge may fall to either side.
    assert (made["agrees"] == kept["agrees"]).mean() > 0.99
    assert len(made) == 256
    assert kept["agrees"].mean() >= 0.85
    assert set(kept["num_seeds"]) == {3}


def test_every_finding_is_answered() -> None:
    findings = TABLES["findings"]
    assert len(findings) == 14
    assert set(findings["ours"]) <= {"yes", "no"}
    assert findings["evidence"].str.len().min() > 10


def test_every_disagreement_has_a_reason() -> None:
    wrong = TABLES["disagreements"]
    assert len(wrong) == (~TABLES["verdicts"]["agrees"]).sum()
    assert wrong["reason"].str.len().min() > 10


def test_results_are_small() -> None:
    files = list((DOCS / "reproduction").iterdir())
    assert sum(path.stat().st_size for path in files) < 3_000_000
    assert not {path.suffix for path in files} - {".csv", ".md", ".tex", ".png"}


def test_a_page_of_nothing_is_still_a_page() -> None:
    page = make_page({"cells": pd.DataFrame()}, [])
    assert page.startswith("# The whole paper, reproduced")
    assert "{{" not in page
    assert "## In brief" not in page


def test_findings_tell_what_the_published_tables_say() -> None:
    from bmpaudit.paper.findings import Finding

    table = findings_table([Finding("something else", True, "seen")])
    assert table.iloc[0].to_dict() == {
        "statement": "something else",
        "ours": "yes",
        "published": "",
        "evidence": "seen",
        "published_evidence": "",
    }
