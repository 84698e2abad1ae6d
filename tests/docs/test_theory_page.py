"""docs/theory.md names functions, tests and numbers: they exist, and its snippets print what it shows."""

import ast
import doctest
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from bmpaudit import privacy
from bmpaudit.privacy import related

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text()

TABLE_ROW = re.compile(r"^\| (?!---|Statement)(.+?) \| (.*?) \| (.*?)\|$", flags=re.MULTILINE)
STATEMENT_SECTION = PAGE.partition("## Statement by statement")[2].partition("\n## ")[0]
ROWS: list[tuple[str, str, str]] = TABLE_ROW.findall(STATEMENT_SECTION)

NUMBERED = ["Assumption 1", "Examples 1 and 2"]
NUMBERED += [f"Definition {number}" for number in range(1, 7)]
NUMBERED += [f"Prop. {number}" for number in range(1, 6)] + ["Theorem 6", "Theorem 7"]


def node_ids(path: Path) -> set[str]:
    """Node ids of the tests in a file, without its folder."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(f"{path.name}::{node.name}")
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{path.name}::{node.name}::{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)
            }
    return found


ALL_TESTS = set().union(*(node_ids(path) for path in (ROOT / "tests" / "privacy").glob("test_*.py")))


@pytest.mark.parametrize("statement", NUMBERED)
def test_every_numbered_statement_has_a_row(statement: str) -> None:
    assert any(statement in row[0] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_every_row_names_functions_and_tests_that_exist(row: tuple[str, str, str]) -> None:
    statement, functions, tests = row
    if functions.startswith("none"):
        return
    names = re.findall(r"`([\w.]+)`", functions)
    assert names, statement
    for name in names:
        owner, _, attribute = name.partition(".")
        place = privacy if hasattr(privacy, owner) else related
        assert hasattr(place, owner), name
        assert not attribute or hasattr(getattr(place, owner), attribute), name
    assert re.findall(r"`([^`]+)`", tests), statement


def test_every_test_and_file_on_the_page_exists() -> None:
    named = set(re.findall(r"`(test_\w+\.py::[\w:]+)`", PAGE))
    assert named
    assert named <= ALL_TESTS, named - ALL_TESTS
    for path in re.findall(r"(?:examples|tests)/[\w./]+\w", PAGE):
        assert (ROOT / path).exists(), path


def test_every_function_of_the_package_is_on_the_page() -> None:
    laws = {"fixed_size_memberships", "independent_memberships"}
    for name in set(privacy.__all__) - laws:
        assert f"`{name}" in PAGE, name


def test_snippets_print_what_the_page_shows() -> None:
    snippets = re.findall(r"^```pycon\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(snippets), {}, "docs/theory.md", None, 0)
    assert len(test.examples) >= 5
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0


def test_the_table_of_the_search_has_its_statements() -> None:
    spec = importlib.util.spec_from_file_location("theory_slack_of_the_page", ROOT / "examples" / "theory_slack.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    assert all(f"\n{name} " in PAGE for name in module.STATEMENTS)
