"""Nothing is lost: kills, damage, full disks, two processes at once."""

import gc
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import stored_models
import zarr
from stored_models import NUM_MODELS, PLAN, arrays

from bmpaudit.graph.graph import Graph
from bmpaudit.models import Training
from bmpaudit.shadow import ShadowStore, train_shadows
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import folder_lock

graph, whole, copy = stored_models.graph, stored_models.whole, stored_models.copy

TRAIN = """
import sys
from bmpaudit import datasets
from bmpaudit.samplers import Snowball
from bmpaudit.models import GCN
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.models import Training

plan = ShadowPlan(Snowball(0.25), GCN(), Training(epochs={epochs}), seed=6)
train_shadows(datasets.load("demo"), plan, {num_models}, sys.argv[1], progress=lambda k: print(k, flush=True))
"""


def swap(first: Path, second: Path) -> None:
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def start_training(folder: Path, num_models: int = NUM_MODELS, epochs: int = 40) -> "subprocess.Popen[str]":
    code = TRAIN.format(num_models=num_models, epochs=epochs)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(process: "subprocess.Popen[str]", done: int) -> None:
    """Waits until the process says that so many models are done."""
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= done:
            return
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize("after", [1, 40, 200])
def test_training_resumes_after_kill_9_at_any_moment(after: int, graph: Graph, whole: Path, tmp_path: Path) -> None:
    for _ in range(2):  # twice, so that a folder that was resumed is killed too
        with start_training(tmp_path) as process:
            wait_for(process, after)
            process.kill()
    already = int(ShadowStore(tmp_path, graph, PLAN, read_only=True).is_done.sum())
    assert already < NUM_MODELS
    counts: list[int] = []
    train_shadows(graph, PLAN, NUM_MODELS, tmp_path, progress=counts.append)
    assert counts[0] == already
    assert counts[-1] == NUM_MODELS
    assert arrays(tmp_path) == arrays(whole)


def test_control_c_is_heard_within_a_second_and_keeps_what_is_finished(graph: Graph, tmp_path: Path) -> None:
    with start_training(tmp_path, num_models=100_000, epochs=2_000) as process:  # about 30 models a second
        wait_for(process, 3)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        assert time.monotonic() - asked < 5  # the promise is a second; a loaded machine gets more
        assert "KeyboardInterrupt" in process.communicate()[1]
    done = ShadowStore(tmp_path, graph, replace(PLAN, training=Training(epochs=2_000)), read_only=True).is_done
    assert 3 <= done.sum() < 1_000


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("statistic_full_noisy/c/3/0", flip_a_byte),
        ("statistic_full_noisy/c/3/0", lambda path: path.write_bytes(path.read_bytes()[:100])),
        ("statistic_none_clean/c/3/0", Path.unlink),
        ("memberships/c/3/0", flip_a_byte),
        ("memberships/c/3/0", Path.unlink),
        ("train_accuracy/c/3", flip_a_byte),
        ("train_accuracy/c/3", Path.unlink),
        ("held_out_accuracy/c/3", Path.unlink),
        ("digest/c/3", Path.unlink),
        ("statistic_full_clean/c/3/0", lambda path: swap(path, path.parents[3] / "statistic_none_clean" / "c/3/0")),
        ("train_accuracy/c/3", lambda path: swap(path, path.parents[2] / "held_out_accuracy" / "c/3")),
    ],
)
def test_damage_is_found_reported_and_mended(
    name: str, damage: Callable[[Path], object], graph: Graph, whole: Path, copy: Path
) -> None:
    damage(copy / "shadows" / name)
    reports: list[str] = []
    train_shadows(graph, PLAN, NUM_MODELS, copy, report=reports.append)
    assert len(reports) == 1
    assert reports[0].startswith("models 96 to 127: ")
    assert arrays(copy) == arrays(whole)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("statistic_full_clean/c/0/0", "statistic_none_clean/c/0/0"),
        ("statistic_full_clean/c/0/0", "statistic_full_clean/c/1/0"),
        ("memberships/c/0/0", "memberships/c/1/0"),
        ("train_accuracy/c/0", "held_out_accuracy/c/0"),
        ("held_out_accuracy/c/0", "held_out_accuracy/c/1"),
        ("memberships/c/0/0", "statistic_full_clean/c/0/0"),
        ("digest/c/0", "digest/c/1"),
        ("memberships/zarr.json", "statistic_full_clean/zarr.json"),
        ("zarr.json", "done/zarr.json"),
        ("train_accuracy/zarr.json", "done/zarr.json"),
    ],
)
def test_swapped_files_are_noticed_when_reading(first: str, second: str, graph: Graph, copy: Path) -> None:
    swap(copy / "shadows" / first, copy / "shadows" / second)
    with pytest.raises(DataError, match=r"shadows|damaged"):
        ShadowStore(copy, graph, PLAN, read_only=True).read(NUM_MODELS)


@pytest.mark.parametrize("name", ["held_out_accuracy/c/1", "train_accuracy/c/1", "digest/c/1", "memberships/c/1/0"])
def test_a_lost_file_is_noticed_when_reading(name: str, graph: Graph, copy: Path) -> None:
    (copy / "shadows" / name).unlink()
    with pytest.raises(DataError, match="damaged: "):
        ShadowStore(copy, graph, PLAN, read_only=True).read(NUM_MODELS)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("statistic_full_clean", [300, 2**40]), ("done", [2**40]), ("memberships", [3, 1000]), ("memberships", [300])],
)
def test_shapes_are_checked_before_anything_is_read(name: str, shape: list[int], graph: Graph, copy: Path) -> None:
    path = copy / "shadows" / name / "zarr.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"shape": shape}))
    with pytest.raises(DataError, match=r"shadows: (memberships|done|statistic_full_clean|damaged)"):
        ShadowStore(copy, graph, PLAN, read_only=True)


def test_damaged_record_of_what_is_done_is_mended(graph: Graph, whole: Path, copy: Path) -> None:
    flip_a_byte(copy / "shadows" / "done" / "c" / "3")
    reports: list[str] = []
    train_shadows(graph, PLAN, NUM_MODELS, copy, report=reports.append)
    assert len(reports) == 1
    assert arrays(copy) == arrays(whole)


def test_reading_damaged_data_says_so(graph: Graph, copy: Path) -> None:
    flip_a_byte(copy / "shadows" / "statistic_full_clean" / "c" / "3" / "0")
    with pytest.raises(DataError, match="damaged"):
        ShadowStore(copy, graph, PLAN, read_only=True).read(NUM_MODELS)


@pytest.mark.parametrize("killed_after", range(9))
def test_a_kill_while_room_is_made_does_no_harm(
    killed_after: int, graph: Graph, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_shadows(graph, PLAN, 40, tmp_path)
    resize, left = zarr.Array.resize, [killed_after]

    def killed(array: Any, shape: Any) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        resize(array, shape)

    with monkeypatch.context() as patch:
        patch.setattr(zarr.Array, "resize", killed)
        with pytest.raises(KeyboardInterrupt):
            train_shadows(graph, PLAN, NUM_MODELS, tmp_path)
    train_shadows(graph, PLAN, NUM_MODELS, tmp_path)
    assert arrays(tmp_path) == arrays(whole)


def test_a_lost_record_of_what_is_done_is_refused_and_nothing_is_dropped(graph: Graph, copy: Path) -> None:
    shutil.rmtree(copy / "shadows" / "done")
    with pytest.raises(DataError, match="the record of what is done is missing"):
        train_shadows(graph, PLAN, 10, copy)
    assert zarr.open_group(copy / "shadows", mode="r")["memberships"].shape[0] == NUM_MODELS  # type: ignore[union-attr]


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_what_a_crash_left_of_a_chunk_is_written_anew(
    content: bytes, graph: Graph, whole: Path, tmp_path: Path
) -> None:
    train_shadows(graph, PLAN, 64, tmp_path)
    ShadowStore(tmp_path, graph, PLAN).extend(NUM_MODELS)
    (tmp_path / "shadows" / "statistic_full_clean" / "c" / "2").mkdir()
    (tmp_path / "shadows" / "statistic_full_clean" / "c" / "2" / "0").write_bytes(content)
    train_shadows(graph, PLAN, NUM_MODELS, tmp_path)
    assert arrays(tmp_path) == arrays(whole)


def test_a_folder_without_its_plan_is_refused(graph: Graph, copy: Path) -> None:
    (copy / "shadows.json").unlink()
    with pytest.raises(DataError, match=r"has shadow models but no shadows.json"):
        train_shadows(graph, PLAN, NUM_MODELS, copy)


@pytest.mark.parametrize("name", ["zarr.json", "statistic_full_clean/zarr.json"])
def test_damaged_metadata_is_refused_in_one_line(name: str, graph: Graph, copy: Path) -> None:
    (copy / "shadows" / name).write_text("garbage")
    with pytest.raises(DataError, match="damaged metadata"):
        train_shadows(graph, PLAN, NUM_MODELS, copy)


def test_damaged_metadata_of_all_arrays_is_told_once(
    graph: Graph, copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in (copy / "shadows").glob("*/zarr.json"):
        path.write_text('{"zarr_format": 3,')
    with pytest.raises(DataError, match="damaged metadata"):
        ShadowStore(copy, graph, PLAN, read_only=True)
    gc.collect()  # what was not looked at would now be logged
    assert capfd.readouterr() == ("", "")


def test_damage_is_a_warning_where_nobody_asked_for_reports(graph: Graph, copy: Path) -> None:
    flip_a_byte(copy / "shadows" / "statistic_full_clean" / "c" / "0" / "0")
    with pytest.warns(UserWarning, match="models 0 to 31: damaged"):
        train_shadows(graph, PLAN, NUM_MODELS, copy)


def test_a_plan_that_cannot_be_read_is_refused(graph: Graph, copy: Path) -> None:
    (copy / "shadows.json").write_text("{")
    with pytest.raises(DataError, match=r"shadows.json: damaged or not a JSON file"):
        train_shadows(graph, PLAN, NUM_MODELS, copy)


def test_a_second_process_is_refused_at_once(graph: Graph, tmp_path: Path) -> None:
    with start_training(tmp_path, num_models=100_000) as process:
        wait_for(process, 1)
        with pytest.raises(InputError, match="is in use by another process"):
            train_shadows(graph, PLAN, 10, tmp_path)
        process.kill()
    assert train_shadows(graph, PLAN, 3, tmp_path).num_models == 3, "a killed process holds nothing"


FULL_DISK = """
import resource, sys
from bmpaudit import datasets
from bmpaudit.samplers import Snowball
from bmpaudit.models import GCN
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.models import Training

plan = ShadowPlan(Snowball(0.25), GCN(), Training(epochs=40), seed=6)
graph = datasets.load("demo")
train_shadows(graph, plan, 64, sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # a chunk of margins is larger than this
try:
    train_shadows(graph, plan, 128, sys.argv[1])
except OSError as failure:
    print(f"refused: {failure}")
"""


def test_a_write_that_fails_damages_nothing(graph: Graph, whole: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "refused: [Errno 27] File too large" in done.stdout
    reports: list[str] = []
    train_shadows(graph, PLAN, NUM_MODELS, tmp_path, report=reports.append)
    assert reports == []
    assert arrays(tmp_path) == arrays(whole)


def test_a_lost_chunk_is_an_error_when_reading(graph: Graph, copy: Path) -> None:
    (copy / "shadows" / "statistic_none_noisy" / "c" / "2" / "0").unlink()
    with pytest.raises(DataError, match="damaged: statistic_none_noisy of model 64 is missing"):
        ShadowStore(copy, graph, PLAN, read_only=True).read()
    assert ShadowStore(copy, graph, PLAN, read_only=True).read(64).num_models == 64


def test_temporary_files_of_a_kill_are_removed_and_others_are_not(graph: Graph, copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.partial").write_text("mine")
    (copy / "shadows" / "done" / "c" / "link").symlink_to(outside)
    (copy / "notes.partial").write_text("mine")
    left = [copy / "shadows" / "done" / "c" / f"0.{32 * 'a'}.partial", copy / ".shadows.partial-abcd1234.json"]
    for path in left:
        path.write_text("half")
    train_shadows(graph, PLAN, 10, copy)
    assert not any(path.exists() for path in left)
    assert (outside / "mine.partial").exists()
    assert (copy / "notes.partial").exists()


def test_whoever_holds_the_lock_can_train_and_others_cannot(graph: Graph, tmp_path: Path) -> None:
    with folder_lock(tmp_path):
        assert train_shadows(graph, PLAN, 2, tmp_path).num_models == 2
        with start_training(tmp_path, num_models=4) as process:
            assert "is in use by another process" in process.communicate()[1]
