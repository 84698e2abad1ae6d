"""The library can do what the command line can, leaves the same folder, and is reachable from one import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audit import QUIET, contents, leaky_graph, run_audit, run_step, tiny_plan

import bmpaudit
from bmpaudit import cli
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import format_plan
from bmpaudit.report.page import data_of_page
from bmpaudit.util.progress import progress_bar

VARYING = ("manifest.json",)  # checksums of what follows


def test_library_and_command_leave_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, plan = tmp_path / "leaky.npz", tmp_path / "plan.toml"
    leaky_graph().to_npz(graph)
    plan.write_text(format_plan(tiny_plan(), ""))
    audit(graph, tiny_plan(), folder=tmp_path / "library", runtime=QUIET)
    arguments = ["audit", graph, "--plan", plan, "--out", tmp_path / "command", "--threads", 1, "--quiet"]
    monkeypatch.setattr(sys, "argv", ["bmpaudit", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    library, command = contents(tmp_path / "library"), contents(tmp_path / "command")
    assert list(library) == list(command)
    for name, content in library.items():
        if name not in VARYING:
            assert comparable(name, content) == comparable(name, command[name]), name
    manifests = [json.loads(files["manifest.json"])["stages"] for files in (library, command)]
    first, second = ({stage: entry["stamp"] for stage, entry in each.items()} for each in manifests)
    assert first == second
    # And each takes up what the other left.
    before = contents(tmp_path / "command")
    audit(graph, tiny_plan(), folder=tmp_path / "command", runtime=QUIET)
    assert contents(tmp_path / "command") == before


def comparable(name: str, content: bytes) -> Any:
    """Without what says when it was made and how long it took."""
    if name == "summary.json":
        return {key: value for key, value in json.loads(content).items() if key != "timings"}
    if name == "report.html":
        return {
            key: value for key, value in data_of_page(content.decode()).items() if key not in ("created", "timings")
        }
    if name.endswith(".pdf"):
        return re.sub(rb"/CreationDate \([^)]*\)", b"", content)
    if name.endswith((".npz", ".zip")):  # archives carry the time of writing
        from io import BytesIO

        with np.load(BytesIO(content)) as archive:
            return {key: archive[key].tobytes() for key in archive.files}
    return content


def test_steps_are_reachable(tmp_path: Path) -> None:
    """Sample, train, attack, estimate and report, one after the other."""
    subject = bmpaudit.Subject(leaky_graph(), "", tiny_plan())
    pipeline = bmpaudit.Pipeline(subject, Workspace(tmp_path), QUIET)
    with pipeline.prepared():
        assert pipeline.sample().prob.shape == (48,)
        assert pipeline.runs.num_models == 10
        assert pipeline.attacks.main == "full_clean_weak"
        assert pipeline.audit.headline
        assert pipeline.report(pictures="none") == tmp_path / "report.html"
    assert bmpaudit.Pipeline(subject, None, QUIET).audit.headline == Audit.load(tmp_path).headline
    assert run_step(tmp_path, "report") == tmp_path / "report.html"


@pytest.mark.parametrize("name", bmpaudit.__all__)
def test_every_name_is_reachable_after_one_import(name: str) -> None:
    assert getattr(bmpaudit, name) is not None
    assert name in dir(bmpaudit)


def test_names_are_loaded_when_they_are_asked_for() -> None:
    program = (
        "import sys, bmpaudit\n"
        "assert not any(name in sys.modules for name in ('pandas', 'zarr', 'pydantic', 'scipy'))\n"
        "bmpaudit.shadow, bmpaudit.attack, bmpaudit.estimation, bmpaudit.compare, bmpaudit.Audit, bmpaudit.AuditPlan\n"
        "bmpaudit.audit, bmpaudit.samplers, bmpaudit.report, bmpaudit.models, bmpaudit.releases, bmpaudit.privacy\n"
        "assert callable(bmpaudit.audit) and callable(bmpaudit.compare)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="module 'bmpaudit' has no attribute 'audits'"):
        bmpaudit.audits  # noqa: B018


def test_progress_shows_unless_asked_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    def bar(what: str, total: int, **options: Any) -> Any:
        shown.append((what, total))
        return progress_bar(what, total, **options)

    monkeypatch.setattr("bmpaudit.auditing.context.progress_bar", bar)
    audit(leaky_graph(), tiny_plan(), folder=tmp_path, pictures="none")
    assert [what for what, _ in shown] == [
        *("shadow models", "priors", "permutation test", "attack", "proof and exposure", "posteriors, ‰", "report"),
    ]
    shown.clear()
    run_audit(tmp_path / "quiet", tiny_plan())
    assert shown == []
