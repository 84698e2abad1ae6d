"""Ranges of models that several processes train into one folder, in any order, also twice."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cluster_fixture import GRAPH, NUM_MODELS, plan, stored, wait_until

from bmpaudit.shadow import ShadowStore, train_range, train_shadows
from bmpaudit.util.errors import InputError
from bmpaudit.util.files import folder_lock, shared_folder_lock

TRAIN = """
import sys
from cluster_fixture import GRAPH, NUM_MODELS, plan
from bmpaudit.util.files import shared_folder_lock
from bmpaudit.shadow import ShadowStore, train_range
from pathlib import Path

folder, start, stop, epochs = Path(sys.argv[1]), *map(int, sys.argv[2:])
with shared_folder_lock(folder, lambda: ShadowStore(folder, GRAPH, plan(epochs)).extend(NUM_MODELS)):
    print("in", flush=True)
    train_range(GRAPH, plan(epochs), NUM_MODELS, folder, start, stop, num_threads=1)
"""


def start_range(folder: Path, start: int, stop: int, epochs: int = 15) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(folder), str(start), str(stop), str(epochs)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def prepared(folder: Path) -> None:
    ShadowStore(folder, GRAPH, plan()).extend(NUM_MODELS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    train_shadows(GRAPH, plan(), NUM_MODELS, folder, num_threads=1)
    return folder


def test_processes_at_once_whose_ranges_overlap(whole: Path, tmp_path: Path) -> None:
    jobs = [start_range(tmp_path, *where) for where in ((96, 256), (0, 128), (64, 160), (0, NUM_MODELS))]
    for job in jobs:
        _, said = job.communicate(timeout=120)
        assert (job.returncode, said) == (0, "")
    assert stored(tmp_path) == stored(whole)


def test_the_rest_is_trained_afterwards(whole: Path, tmp_path: Path) -> None:
    prepared(tmp_path)
    for start, stop in ((128, 160), (32, 64), (32, 96)):
        done = train_range(GRAPH, plan(), NUM_MODELS, tmp_path, start, stop)
    assert np.flatnonzero(done).tolist() == [*range(32, 96), *range(128, 160)]
    counts: list[int] = []
    train_shadows(GRAPH, plan(), NUM_MODELS, tmp_path, num_threads=1, progress=counts.append)
    assert counts[0] == 96
    assert stored(tmp_path) == stored(whole)


def test_a_process_that_is_killed_and_started_again(tmp_path: Path) -> None:
    slow = plan(3_000)
    train_shadows(GRAPH, slow, NUM_MODELS, tmp_path / "whole")
    folder = tmp_path / "folder"
    job = start_range(folder, 0, NUM_MODELS, 3_000)
    wait_until(lambda: (folder / "shadows" / "done" / "c" / "0").exists())
    job.kill()
    job.communicate()
    done = ShadowStore(folder, GRAPH, slow, read_only=True).is_done
    assert 0 < done.sum() < NUM_MODELS
    job = start_range(folder, 0, NUM_MODELS, 3_000)
    assert job.communicate(timeout=120)[1] == ""
    assert stored(folder) == stored(tmp_path / "whole")


def test_a_chunk_that_is_damaged_or_half_done_is_made_whole(whole: Path, tmp_path: Path) -> None:
    train_shadows(GRAPH, plan(), 40, tmp_path, num_threads=1)
    prepared(tmp_path)
    (tmp_path / "shadows" / "statistic_full_clean" / "c" / "0" / "0").write_bytes(b"nonsense")
    said: list[str] = []
    counts: list[int] = []
    train_range(GRAPH, plan(), NUM_MODELS, tmp_path, 0, 64, report=said.append, progress=counts.append)
    assert [line.startswith("models 0 to 31: damaged") for line in said] == [True]
    assert counts[-1] == 64
    train_range(GRAPH, plan(), NUM_MODELS, tmp_path, 64, 320)
    assert stored(tmp_path) == stored(whole)


def test_ranges_and_a_whole_training_keep_out_of_each_other(tmp_path: Path) -> None:
    with shared_folder_lock(tmp_path, lambda: prepared(tmp_path)):
        with shared_folder_lock(tmp_path, lambda: pytest.fail("others are at work")):
            pass
        with pytest.raises(InputError, match="is in use by another process"):
            train_shadows(GRAPH, plan(), NUM_MODELS, tmp_path)
        with pytest.raises(InputError, match=r"has room for 200 models, .* 232 can be trained when they have ended"):
            train_range(GRAPH, plan(), 232, tmp_path, 0, 32)
        with pytest.raises(InputError, match="without logits"):
            train_range(GRAPH, plan(), NUM_MODELS, tmp_path, 0, 32, keep_logits=True)
    waiting = shared_folder_lock(tmp_path, lambda: None, seconds=0.2)
    job = start_range(tmp_path, 0, 32, 200_000)  # of another plan: refused as soon as it has the lock
    with folder_lock(tmp_path):
        start = time.monotonic()
        with pytest.raises(InputError, match="is in use by another process"):
            waiting.__enter__()
        assert time.monotonic() - start >= 0.2
    assert "InputError" in job.communicate(timeout=60)[1]


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        (0, 100, "range must start and end at a multiple of 32, .*, got 0:100; 0:128 does"),
        (10, 64, "range must start and end at a multiple of 32, .*, got 10:64; 0:64 does"),
        (64, 64, "range must be START:STOP with 0 ≤ START < STOP, START < 200, got 64:64"),
        (224, 256, "range must be START:STOP with 0 ≤ START < STOP, START < 200, got 224:256"),
    ],
)
def test_ranges_of_parts_of_chunks_are_refused(start: int, stop: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        train_range(GRAPH, plan(), NUM_MODELS, tmp_path, start, stop)
    assert list(tmp_path.iterdir()) == []
