"""The command `bmpaudit reproduce`: what it hands over, and what it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bmpaudit.cli import cli
from bmpaudit.errors import InputError
from bmpaudit.paper import workflow
from bmpaudit.paper.findings import Finding
from bmpaudit.paper.output import Summary


class Recorder:
    """Takes the place of the work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Path, list[str], dict[str, Any]]] = []
        monkeypatch.setattr(workflow, "run_everything", self)

    def __call__(self, out: Path, configurations: Any, **options: Any) -> Summary:
        self.calls.append((out, [of.name for of in configurations], options))
        return Summary(
            256, 230, (Finding("Noise helps", True, "by 2"), Finding("All is well", False, "no")), out / "a.md"
        )


def run(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["reproduce", *map(str, arguments)])


def test_all_configurations_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder = Recorder(monkeypatch)
    done = run("--out", tmp_path)
    assert done.exit_code == 0, done.output
    out, names, options = recorder.calls[0]
    assert (out, len(names), options["num_seeds"], options["quick"]) == (tmp_path, 16, 3, False)
    assert not any(options[name] for name in ("beyond", "study", "page_only", "keep_shadows"))
    assert (
        "230 of 256 cells agree with the published tables (89.8%)\n  yes  Noise helps\n  no   All is well"
        in done.output
    )


def test_choice_of_configurations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder = Recorder(monkeypatch)
    chosen = ("--only", "cora", "--fraction", 0.25, "--model", "gat", "--sampler", "snowball")
    run("--out", tmp_path, *chosen, "--quick", "--seeds", 1, "--threads", 1, "--study", "--beyond")
    _, names, options = recorder.calls[0]
    assert names == ["cora-25-snowball-gat"]
    assert (options["quick"], options["num_seeds"], options["num_threads"]) == (True, 1, 1)
    assert options["study"]
    assert options["beyond"]


def test_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Recorder(monkeypatch)
    told = json.loads(run("--out", tmp_path, "--json", "--quiet").stdout)
    assert (told["num_cells"], told["num_agreeing"]) == (256, 230)
    assert told["findings"][0] == {"statement": "Noise helps", "holds": True, "evidence": "by 2"}


def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder = Recorder(monkeypatch)
    wrong = run("--out", tmp_path, "--fraction", 0.3)
    assert isinstance(wrong.exception, InputError)
    assert str(wrong.exception) == "fraction must be 0.25 or 0.5, got fraction=0.3"
    assert run("--out", tmp_path, "--seeds", 0).exit_code == 2
    assert run("--out", tmp_path, "--only", "pubmed").exit_code == 2
    assert recorder.calls == []
