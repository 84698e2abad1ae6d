from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "audit"))
from compare_fixture import SNOWBALL, strong, weak, write_folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("audits")
    return [
        str(write_folder(place / "one", weak(), names=["[bold]x[/bold]", "y", "z"])),
        str(write_folder(place / "two", strong(), plan=SNOWBALL, names=["[bold]x[/bold]", "y", "z"])),
    ]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from bmpaudit.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "compare", *arguments],
        capture_output=True,
        text=True,
        env={"COLUMNS": "120", "PYTHONIOENCODING": "utf-8", "PATH": "/usr/bin:/bin"},
    )


def test_table_and_files(folders: list[str], tmp_path: Path) -> None:
    done = run(*folders, "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "two leaks more than one" in done.stdout
    assert "two − one" in done.stdout
    assert "[bold]x[/bold]" in done.stdout  # a name, not markup
    assert "sampler.name" in done.stdout
    assert done.stdout.splitlines()[-1] == f"page: {tmp_path / 'out' / 'compare.html'}"
    assert (tmp_path / "out" / "compare.pdf").stat().st_size > 0


def test_json(folders: list[str]) -> None:
    done = run(*folders, "--json", "--top", "1")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told["differences"][0]["more_prob"] > 0.95
    assert len(told["nodes"][0]["changed_most"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "at least two folders"),
        (["{one}"], "at least two folders of audits, got 1"),
        (["{one}", "{one}/posteriors"], "is no folder of an audit"),
        (["{one}", "/nowhere/at/all"], "is no folder of an audit"),
        (["{one}", "{two}", "--definition", "mp"], "mp was not estimated"),
        (["{one}", "{two}", "--definition", "dp"], "'dp' is not one of"),
        (["{one}", "{two}", "--side", "left"], "about the other side"),
        (["{one}", "{two}", "--variant", "best"], "has no attack 'best'"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(folders: list[str], arguments: list[str], message: str) -> None:
    done = run(*(each.format(one=folders[0], two=folders[1]) for each in arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
