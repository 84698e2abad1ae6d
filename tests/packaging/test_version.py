"""The version stands in pyproject.toml; everything else agrees with it."""

import re
import tomllib
from datetime import date
from pathlib import Path

import yaml

import bmpaudit

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_package_says_its_version() -> None:
    assert bmpaudit.__version__ == VERSION


def test_it_is_a_semantic_version() -> None:
    assert re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", VERSION)


def test_the_citation_and_the_newest_entry_of_the_changelog_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["[Unreleased]", f"[{VERSION}] - {citation['date-released']}"]
    assert citation["version"] == VERSION
    assert isinstance(citation["date-released"], date)
