"""Training by job arrays and on a Dask cluster, from the command line."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from command_line import FAST, TRAINING, contents, run_here, run_well, start_script
from small_graph import small_graph

SHADOWS = 80
TRAINED = (*TRAINING, "--train-fraction", 0.4, "--shadows", SHADOWS, "--quiet")
SETTINGS = (*FAST, "--shadows", SHADOWS, "--quiet")


@pytest.fixture(scope="module")
def graph_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "mine.npz"
    small_graph().to_npz(path)
    return path


@pytest.fixture(scope="module")
def alone(graph_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "audit"
    run_well("audit", graph_path, *SETTINGS, "--pictures", "none", "--out", folder)
    return folder


def models(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(folder).items() if name.startswith("shadows")}


def summary(folder: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / "summary.json").read_text())
    return {name: part for name, part in content.items() if name != "timings"}


def test_a_job_array_and_the_audit_that_goes_on_from_it(graph_path: Path, alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    ranges = ("0:32", "0:64")
    jobs = [start_script("train", graph_path, *TRAINED, "--out", out, "--range", r) for r in ranges]
    for job, (first, last) in zip(jobs, ((0, 31), (0, 63)), strict=True):
        said, wrong = job.communicate(timeout=120)
        assert (job.returncode, wrong) == (0, "")
        assert said.startswith(f"models {first} to {last} are in {out}, which has ")
    answer = json.loads(run_well("train", "--out", out, "--range", "64:96", "--json"))
    assert answer == {"folder": str(out), "range": [64, 80], "done": 80, "shadows": 80}
    assert models(out) == models(alone)
    run_well("audit", graph_path, *SETTINGS, "--pictures", "none", "--out", out)
    assert summary(out) == summary(alone)


def test_an_audit_on_a_local_dask_cluster(graph_path: Path, alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    run_well("audit", graph_path, *SETTINGS, "--pictures", "none", "--out", out, "--dask", "local:2")
    assert models(out) == models(alone)
    assert summary(out) == summary(alone)


def test_control_c_on_a_local_dask_cluster_is_one_line(graph_path: Path, tmp_path: Path) -> None:
    """A terminal sends it to all processes of the command."""
    out = tmp_path / "audit"
    slow = ("--epochs", 3_000, "--shadows", 5_000, "--quiet", "--out", out, "--dask", "local:2")
    job = start_script("train", graph_path, *slow, start_new_session=True)
    while not (out / "shadows" / "done" / "c").exists():
        assert job.poll() is None, job.communicate()
        time.sleep(0.05)
    os.killpg(job.pid, signal.SIGINT)
    _, said = job.communicate(timeout=60)
    assert (job.returncode, said.strip()) == (130, "bmpaudit: stopped")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--range", "0:50"), "range must start and end at a multiple of 32"),
        (("--range", "all"), "must be START:STOP, such as 0:256, got 'all'"),
        (("--range", "0:32", "--dask", "local:2"), "give either --range or --dask"),
        (("--dask", "local:none"), "dask must be the address of a scheduler or local:N with N at least 1"),
    ],
)
def test_what_cannot_be_is_refused(options: tuple[str, ...], message: str, graph_path: Path, tmp_path: Path) -> None:
    outcome = run_here("train", graph_path, "--shadows", SHADOWS, "--out", tmp_path / "audit", *options)
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert not (tmp_path / "audit").exists()
