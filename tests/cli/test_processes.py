"""Commands that are stopped, killed or run at the same time: the folder stays consistent, and nothing is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import TRAINING, contents, run_here, run_script, run_well, start_script
from small_graph import small_graph

# Enough work to be stopped in the middle, on however fast a machine; and so little that it is finished in seconds.
SLOW = ("--model", "mlp", "--epochs", 400, "--shadows", 1200, "--threads", 1, "--quiet")
DEFINITION = ("--definition", "bmp-r")


@pytest.fixture
def graph_path(tmp_path: Path) -> Path:
    path = tmp_path / "mine.npz"
    small_graph().to_npz(path)
    return path


def start_training(graph: Path, out: Path) -> subprocess.Popen[str]:
    """Starts training, and returns when the first models are stored."""
    job = start_script("train", graph, *SLOW, "--out", out)
    deadline = time.monotonic() + 300
    while not (out / "shadows" / "zarr.json").exists():
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return job


def statistics(folder: Path) -> dict[str, bytes]:
    """The shadow models on disk."""
    return {name: data for name, data in contents(folder).items() if name.startswith("shadows/")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What training leaves when nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    small_graph().to_npz(folder / "mine.npz")
    run_well("train", folder / "mine.npz", *SLOW, "--out", folder / "audit")
    return statistics(folder / "audit")


@pytest.mark.parametrize(
    ("number", "exit_code", "message"),
    [
        (signal.SIGKILL, -signal.SIGKILL, ""),
        (signal.SIGINT, 130, "bmpaudit: stopped"),
        (signal.SIGTERM, 143, "bmpaudit: stopped"),
    ],
)
def test_a_stopped_training_resumes_to_identical_statistics(
    number: signal.Signals,
    exit_code: int,
    message: str,
    graph_path: Path,
    tmp_path: Path,
    undisturbed: dict[str, bytes],
) -> None:
    out = tmp_path / "audit"
    with start_training(graph_path, out) as job:
        job.send_signal(number)
        stdout, stderr = job.communicate(timeout=60)
    assert (job.returncode, stdout, stderr.strip()) == (exit_code, "", message)
    summary = json.loads(run_well("train", "--out", out, "--json", "--quiet"))
    assert summary["num_models"] == 1200
    assert statistics(out) == undisturbed
    assert not [path for path in out.rglob("*") if "partial" in path.name]


def test_a_second_process_is_refused_and_both_leave_a_consistent_folder(
    graph_path: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    out = tmp_path / "audit"
    with start_training(graph_path, out) as first:
        for arguments in (("audit", "--out", out), ("attack", out), ("sample", "--out", out), ("train", "--out", out)):
            second = run_script(*arguments)
            if first.poll() is not None:
                break
            assert (second.exit_code, second.stdout) == (2, "")
            assert second.stderr == f"bmpaudit: {out} is in use by another process\n"
        _, stderr = first.communicate(timeout=300)
    assert (first.returncode, stderr) == (0, "")
    assert statistics(out) == undisturbed
    run_well("attack", out)


def test_processes_that_start_together_leave_one_audit(graph_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    settings = ("audit", graph_path, *TRAINING, *DEFINITION, "--shadows=16", "--pictures=none", "--quiet", "--out", out)
    jobs = [start_script(*settings) for _ in range(2)]
    outcomes = []
    for job in jobs:
        with job:
            _, stderr = job.communicate(timeout=300)
            outcomes.append((job.returncode, stderr))
    assert (0, "") in outcomes
    for exit_code, stderr in outcomes:
        assert exit_code == 0 or stderr == f"bmpaudit: {out} is in use by another process\n"
    expected = json.loads(run_well(*settings, "--json"))
    alone = json.loads(run_well(*settings[:-1], tmp_path / "alone", "--json"))
    for summary in (expected, alone):
        del summary["timings"]
    assert expected == alone


def test_a_stopped_attack_or_estimate_leaves_no_half_of_an_answer(
    graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "audit"
    settings = ("audit", graph_path, *TRAINING, *DEFINITION, "--shadows", 16, "--pictures=none", "--out", out)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for step in ("auditing.stages.run_attacks", "auditing.stages.run_estimates", "pipeline.pipeline.report_files"):
        with monkeypatch.context() as patch:
            patch.setattr(f"bmpaudit.{step}", stop)
            outcome = run_here(*settings)
        assert (outcome.exit_code, outcome.stdout, outcome.stderr.strip()) == (130, "", "bmpaudit: stopped")
        assert run_here("nodes", out).exit_code == (0 if step.endswith("report_files") else 2)
    run_well(*settings)
    run_well("nodes", out)
