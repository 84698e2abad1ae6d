"""Commands and code in the docs: every command exists with its options, and those of the pages for beginners run."""

from __future__ import annotations

import ast
import math
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bmpaudit.cli import cli
from bmpaudit.proof import default_num_fitting, provable

ROOT = Path(__file__).parents[2]
PAGES = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
# What the pages run takes too long for a test; the same with fewer models is what runs here.
DEMO = ["audit", "demo"]
SHORT = ["--shadows", "16", "--epochs", "5", "--pictures", "none", "--definition", "bmp-r", "--quiet"]


def commands_of(text: str) -> list[str]:
    """Every command line that begins with bmpaudit, in blocks and in running text."""
    text = re.sub(r"\\\n\s*", "", text)
    blocks = re.findall(r"^```(?:console|bash)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4}(bmpaudit [a-z].*)$", text, re.MULTILINE)
    lines = re.findall(r"^(?:\$ )?(bmpaudit [a-z].*)$", "\n".join(blocks), re.MULTILINE)
    return lines + indented + re.findall(r"`(bmpaudit [a-z][^`]*)`", text)


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words name, and the words behind its name."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"no command {words[0]}"
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"cli.md"}))
def test_commands_exist_and_have_these_options(page: str) -> None:
    for line in commands_of(PAGES[page]):
        if "|" in line.split("#")[0]:  # a choice, as in `plan init|check|cost`
            continue
        words = shlex.split(line, comments=True)[1:]
        alternatives = re.split(r",\s*", words[0])
        command, rest = find_command([alternatives[0], *words[1:]])
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in rest:
            if re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word):
                assert word.partition("=")[0] in known | {"--help"}, f"{page}: {line}"


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if "```python" in text])
def test_code_of_a_page_imports_what_there_is(page: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    nodes = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    for node in nodes:
        if (node.module or "").partition(".")[0] == "bmpaudit":
            exec(compile(ast.Module([node], []), page, "exec"), {})


@pytest.mark.parametrize("page", ["getting-started.md", "bring-your-own.md", "plan.md"])
@pytest.mark.filterwarnings("ignore::bmpaudit.GraphCleanedWarning")
def test_code_and_commands_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = re.findall(r"^```(python|console)\n(.*?)^```", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for language, block in blocks:
        if language == "python":
            exec(compile(block, page, "exec"), names)
            continue
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            name, *rest = shlex.split(line)[1:]
            if [name, *rest][:2] == ["plan", "cost"]:
                continue  # rehearses every step, which takes long; tests of the command do so
            words = {"demo": [*DEMO, *rest, *SHORT], "audit": [name, *rest, *SHORT]}.get(name, [name, *rest])
            done = CliRunner().invoke(cli, words)
            # So few models cannot decide a gate, which is exit code 3.
            assert done.exit_code in ((0, 3) if name == "check" else (0,)), f"{line}: {done.output}"


def test_what_models_can_prove_is_as_the_page_says() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| ([\d,]+) : 1 \|$", PAGES["choosing.md"], re.MULTILINE)
    assert len(rows) == 5
    for row in rows:
        models, guessed, bound, odds = (float(cell.replace(",", "")) for cell in row)
        assert guessed == models - default_num_fitting(int(models))
        assert bound == round(provable(int(guessed)), 2)
        assert odds == round(math.exp(provable(int(guessed))))


def test_odds_are_those_of_epsilon() -> None:
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) : 1 \| ([\d.]+) % \|$", PAGES["numbers.md"], re.MULTILINE)
    assert len(rows) == 6
    for row in rows:
        epsilon, odds, percent = map(float, row)
        assert odds == float(f"{math.exp(epsilon):.{max(len(row[1].replace('.', '')), 1)}g}")
        digits = len(row[2].partition(".")[2])
        assert percent == round(100 / (1 + math.exp(-epsilon)), digits)
