"""The command `python -m reproduction`: what it passes on, and what it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from reproduction import external, workflow
from reproduction.__main__ import reproduce
from reproduction.external import ExternalSummary
from reproduction.findings import Finding
from reproduction.workflow import Summary

from bmpaudit.util.errors import InputError


class Recorder:
    """Records the call instead of running anything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Path, list[str], dict[str, Any]]] = []
        monkeypatch.setattr(workflow, "run_everything", self)

    def __call__(self, out: Path, configurations: Any, **options: Any) -> Summary:
        self.calls.append((out, [configuration.name for configuration in configurations], options))
        findings = (Finding("Noise helps", True, "by 2"), Finding("All is well", False, "no"))
        return Summary(256, 230, 217, findings, out / "a.md")


def run(*arguments: object) -> Any:
    return CliRunner().invoke(reproduce, [*map(str, arguments)])


def test_all_configurations_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder = Recorder(monkeypatch)
    done = run("--out", tmp_path)
    assert done.exit_code == 0, done.output
    out, names, options = recorder.calls[0]
    assert (out, len(names), options["num_seeds"], options["quick"]) == (tmp_path, 16, 3, False)
    assert not any(options[name] for name in ("beyond", "study", "growth", "page_only", "keep_shadows"))
    first, *others = done.output.splitlines()
    assert first.startswith("230 of 256 cells agree with the published tables (89.8%)")
    assert first.endswith("as printed, 217 (84.8%)")
    assert others[:2] == ["  yes  Noise helps", "  no   All is well"]


def test_choice_of_configurations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder = Recorder(monkeypatch)
    chosen = ("--only", "cora", "--fraction", 0.25, "--model", "gat", "--sampler", "snowball")
    run("--out", tmp_path, *chosen, "--quick", "--seeds", 1, "--threads", 1, "--study", "--beyond")
    _, names, options = recorder.calls[0]
    assert names == ["cora-25-snowball-gat"]
    assert (options["quick"], options["num_seeds"], options["runtime"].num_threads) == (True, 1, 1)
    assert options["study"]
    assert options["beyond"]


def test_experiments_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = []

    def record(out: Path, _runtime: Any, **options: Any) -> ExternalSummary:
        calls.append((out, options))
        return ExternalSummary(87, 80, out / "external.md")

    monkeypatch.setattr(external, "run_external", record)
    done = run("--out", tmp_path, "--external", "--quick")
    assert done.output.splitlines()[0] == "80 of 87 published figures agree with ours"
    assert calls == [(tmp_path, {"quick": True, "page_only": False, "keep_shadows": False})]
    assert json.loads(run("--out", tmp_path, "--external", "--json").stdout)["num_agreeing"] == 80


def test_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Recorder(monkeypatch)
    summary = json.loads(run("--out", tmp_path, "--json", "--quiet").stdout)
    agreement = ("num_cells", "num_agreeing", "num_agreeing_as_printed")
    assert tuple(summary[name] for name in agreement) == (256, 230, 217)
    assert summary["page"] == str(tmp_path / "a.md")
    assert summary["findings"][0] == {"statement": "Noise helps", "holds": True, "evidence": "by 2"}


def test_wrong_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder = Recorder(monkeypatch)
    wrong = run("--out", tmp_path, "--fraction", 0.3)
    assert isinstance(wrong.exception, InputError)
    assert str(wrong.exception) == "fraction must be 0.25 or 0.5, got fraction=0.3"
    assert run("--out", tmp_path, "--seeds", 0).exit_code == 2
    assert run("--out", tmp_path, "--only", "pubmed").exit_code == 2
    assert run("--out", tmp_path, "--sampler", "random").exit_code == 2
    assert recorder.calls == []
