"""The README tells the truth: its commands run and print what it shows, its code runs, its links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

import bmpaudit
from bmpaudit.gate import EXIT_CODES

ROOT = Path(__file__).parents[2]
# What a make that runs the tests would hand down to the make that a test runs.
MAKES_OWN = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a console block with the output shown below it."""
    pairs = []
    for part in block.split("$ ")[1:]:
        command, _, output = part.partition("\n")
        pairs.append((command, output))
    return pairs


def run(command: str, folder: Path, exit_code: int) -> str:
    """Runs a command in a folder of its own; make runs where its Makefile is, but its demo is new each time.

    With the instruction set that every processor has: the last digits, and so now and then a printed one, depend on it.
    """
    environment = {name: value for name, value in os.environ.items() if name not in MAKES_OWN}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "BMPAUDIT_INSTRUCTION_SET": "baseline",
        "DEMO": str(folder / "bmpaudit-demo"),
    }
    words = shlex.split(command)
    installed = Path(sys.prefix) / "installed"
    if words[0] == "make" and installed.exists():  # the environment that make set up for these tests, as it is
        environment["VENV"] = sys.prefix
        words[1:1] = ["--assume-old", str(installed)]
    done = subprocess.run(
        words,
        cwd=ROOT if words[0] == "make" else folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, done.stderr
    return done.stdout.replace(f"{folder}{os.sep}", "")


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def test_commands_print_what_the_readme_shows(tmp_path: Path) -> None:
    """One after the other, in one folder."""
    every = [pair for block in blocks("console") for pair in commands(block)]
    assert [command.split()[:2] for command, _ in every] == [
        ["make", "demo"],
        ["bmpaudit", "nodes"],
        ["bmpaudit", "check"],
    ]
    for command, shown in every:
        outcome = re.search("^gate: (.*)$", shown, re.MULTILINE)
        exit_code = {str(name): code for name, code in EXIT_CODES.items()}[outcome[1]] if outcome else 0
        assert lines(run(command, tmp_path, exit_code)) == lines(shown), command


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert "proven: ε_R is at least " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("shadow-models.md", "64 shadow models of 1,000 nodes"),
        ("estimation.md", "bmp-r, exact, 3 nodes"),
        ("proof.md", "proven with 95 % confidence each"),
    ],
)
def test_code_of_a_page_runs(page: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / page).read_text()
    code = re.findall(r"^( *)```python\n(.*?)^\1```", text, flags=re.MULTILINE | re.DOTALL)
    assert code
    names: dict[str, object] = {"__name__": "__main__"}  # later blocks go on with what earlier ones defined
    for _, block in code:
        exec(compile(textwrap.dedent(block), page, "exec"), names)
    assert printed in capsys.readouterr().out


def test_citation_names_the_paper_and_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == bmpaudit.__version__
    paper = citation["preferred-citation"]
    assert paper["title"] == "Bayesian Membership Privacy for Graph Neural Networks"
    assert [author["family-names"] for author in paper["authors"]] == ["Yıldırım", "Khosla"]


def test_the_test_command_of_the_readme_is_what_ci_runs() -> None:
    assert "`make test`" in README
    assert "exec make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http", "api/")):  # pages of the API are made with the site, which checks such links
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
