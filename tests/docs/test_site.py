"""The docs site is built without a warning, asks no other host for anything, and describes every public name."""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def made_pages() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "site_pages.py"))


def documented(site: Path) -> set[str]:
    """Every name that the site describes, from the index that it offers to other sites."""
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}


def test_every_public_name_is_described(site: Path, made_pages: dict[str, Any]) -> None:
    names = documented(site)
    paths = {
        made_pages["documented_path"](package, name)
        for package in made_pages["packages"]().values()
        for name in made_pages["public_names"](package)
    }
    assert len(paths) > 150
    assert paths <= names, sorted(paths - names)


def test_every_public_package_has_a_page_in_the_navigation(made_pages: dict[str, Any]) -> None:
    import bmpaudit

    modules = {name for name in bmpaudit.__all__ if inspect.ismodule(getattr(bmpaudit, name))}
    of_modules_only = {"comparison", "inference", "pipeline", "report"}
    assert set(made_pages["packages"]()) == modules - of_modules_only | {"bmpaudit"}
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for name in made_pages["packages"]():
        assert f"api/{name}.md\n" in navigation


def test_nothing_comes_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>", text) == [], (
            page
        )
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_pages_can_be_searched_without_a_server(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.js").read_text(encoding="utf-8").removeprefix("var __index = "))
    places = {entry["location"] for entry in index["docs"]}
    assert {"getting-started.html", "threat-model.html", "changelog.html", "examples.html"} <= places
    assert 'src="javascripts/iframe-worker.js"' in (site / "index.html").read_text(encoding="utf-8")


def test_statements_of_the_theory_lead_to_code_and_test(site: Path) -> None:
    page = (site / "theory.html").read_text(encoding="utf-8")
    assert 'href="source/tests/privacy/test_conversions.html#TestProposition3-test_mp_implies_bmp"' in page
    assert 'href="api/privacy.html#bmpaudit.privacy.conversions.mp_to_bmp"' in page


def test_examples_in_docstrings_are_shown_as_code(site: Path) -> None:
    page = (site / "api" / "bmpaudit.html").read_text(encoding="utf-8")
    assert "&gt;&gt;&gt; " in page
    assert not re.search(r"<blockquote>\s*<blockquote>", page)


def test_pictures_are_small() -> None:
    pictures = list((DOCS / "pictures").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 150_000, picture
