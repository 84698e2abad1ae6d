"""docs/reproduction.md is what the command makes from the tables beside it."""

from pathlib import Path

import pandas as pd
from reproduction.experiments import KEY
from reproduction.findings import Finding
from reproduction.page import make_page
from reproduction.records import judge_cells
from reproduction.workflow import findings_table, read_tables

DOCS = Path(__file__).parents[2] / "docs"
TABLES = read_tables(DOCS / "reproduction")


def test_page_is_made_from_the_tables() -> None:
    figures = [path.stem for path in (DOCS / "reproduction").glob("*.png")]
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == make_page(TABLES, figures)


def test_verdicts_follow_from_the_cells() -> None:
    cells = TABLES["cells"]
    made = judge_cells(cells)
    kept = TABLES["verdicts"]
    assert made[list(KEY)].equals(kept[list(KEY)])
    # The files have four decimals: what lies on the edge may fall to either side.
    assert (made["agrees"] == kept["agrees"]).mean() > 0.99
    assert len(made) == 256
    for verdicts in (made, kept):
        assert (verdicts["agrees"].sum(), verdicts["agrees_as_printed"].sum()) == (234, 221)
    assert set(kept["num_seeds"]) == {3}


def test_page_gives_the_agreement_with_and_without_swapping_columns_back() -> None:
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert "**234 of 256 cells agree (91.4%)**" in page
    assert "with the tables as printed, **221 of 256 (86.3%)**" in page


def test_results_use_one_vocabulary() -> None:
    for name, table in TABLES.items():
        assert not {"sampling", "measure", "edges", "output", "decision"} & set(table.columns), name
        if "sampler" in table:
            assert set(table["sampler"]) <= {"uniform", "snowball"}, name


def test_every_finding_is_answered() -> None:
    findings = TABLES["findings"]
    assert len(findings) == 14
    assert set(findings["ours"]) <= {"yes", "no"}
    assert findings["evidence"].str.len().min() > 10


def test_every_disagreement_has_an_explanation() -> None:
    wrong = TABLES["disagreements"]
    assert len(wrong) == (~TABLES["verdicts"]["agrees"]).sum()
    assert wrong["reason"].str.len().min() > 10


def test_results_are_small() -> None:
    files = list((DOCS / "reproduction").iterdir())
    assert sum(path.stat().st_size for path in files) < 3_000_000
    # 256 colours are enough for these pictures, and take half the space.
    assert max(path.stat().st_size for path in files if path.suffix == ".png") < 300_000
    assert not {path.suffix for path in files} - {".csv", ".md", ".tex", ".png"}


def test_a_page_of_nothing_is_still_a_page() -> None:
    page = make_page({"cells": pd.DataFrame()}, [])
    assert page.startswith("# Reproduction of the whole paper")
    assert "{{" not in page
    assert "## In brief" not in page


def test_findings_have_the_answers_of_the_published_tables() -> None:
    table = findings_table([Finding("something else", True, "seen")])
    assert table.iloc[0].to_dict() == {
        "statement": "something else",
        "ours": "yes",
        "published": "",
        "evidence": "seen",
        "published_evidence": "",
    }
