"""Nothing is lost: kills, damage, full disks, two processes at once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from own_parts import Rounded, Thirds, first_class

from bmpaudit import DataError, Graph, InputError, datasets, registry
from bmpaudit.errors import UntrustedCodeError
from bmpaudit.files import folder_lock
from bmpaudit.registry import UntrustedPart
from bmpaudit.samplers import Snowball, Uniform, draw_memberships
from bmpaudit.shadow import (
    GAT,
    GCN,
    Clean,
    FullEdges,
    NoisyLastLayer,
    ShadowPlan,
    ShadowRuns,
    ShadowStore,
    Training,
    train_shadows,
)
from bmpaudit.shadow.batch import ShadowBatch

PLAN = ShadowPlan(Snowball(0.25), GCN(), Training(epochs=40), seed=6)
NUM_MODELS = 300

TRAIN = """
import sys
from bmpaudit import datasets
from bmpaudit.samplers import Snowball
from bmpaudit.shadow import GCN, ShadowPlan, Training, train_shadows

plan = ShadowPlan(Snowball(0.25), GCN(), Training(epochs={epochs}), seed=6)
train_shadows(datasets.load("demo"), plan, {num_models}, sys.argv[1], progress=lambda k: print(k, flush=True))
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


def swap(first: Path, second: Path) -> None:
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


@pytest.fixture(scope="module")
def whole(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was filled without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    train_shadows(graph, PLAN, NUM_MODELS, folder)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def arrays(folder: Path) -> dict[str, bytes]:
    group = zarr.open_group(folder / "shadows", mode="r")
    return {name: np.asarray(array[:]).tobytes() for name, array in group.arrays()}


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


def test_models_are_where_they_belong(graph: Graph, whole: Path) -> None:
    runs = train_shadows(graph, PLAN, NUM_MODELS, whole)
    assert runs.num_models == NUM_MODELS
    assert np.array_equal(runs.memberships, draw_memberships(graph, PLAN.sampler, NUM_MODELS, PLAN.seed))
    assert list(runs.statistics) == ["full_clean", "full_noisy", "none_clean", "none_noisy"]
    assert all(np.isfinite(margins).all() for margins in runs.statistics.values())
    assert runs.train_accuracy.mean() > runs.held_out_accuracy.mean() > 0.5


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


def test_raising_the_number_keeps_what_is_there(graph: Graph, whole: Path, tmp_path: Path) -> None:
    first = train_shadows(graph, PLAN, 45, tmp_path)
    counts: list[int] = []
    runs = train_shadows(graph, PLAN, NUM_MODELS, tmp_path, progress=counts.append)
    assert counts[0] == 45
    assert arrays(tmp_path) == arrays(whole)
    assert runs.statistics["full_clean"][:45].tobytes() == first.statistics["full_clean"].tobytes()
    assert train_shadows(graph, PLAN, 10, tmp_path).num_models == 10, "fewer may be asked for"
    assert arrays(tmp_path) == arrays(whole)


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


def test_a_folder_has_room_for_so_many_models(graph: Graph, copy: Path) -> None:
    with pytest.raises(InputError, match=r"at most 1,048,576 shadow models, got 2,147,483,647"):
        ShadowStore(copy, graph, PLAN).extend(2**31 - 1)


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


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (replace(PLAN, seed=7), "holds shadow models with seed 6; this plan has seed 7"),
        (replace(PLAN, model=GAT()), r"holds shadow models with model gcn \(hidden=16, .*; this plan has model gat"),
        (replace(PLAN, model=GCN(8)), "holds shadow models with model gcn, hidden=16; this plan has hidden=8"),
        (
            replace(PLAN, sampler=Uniform(0.25)),
            r"with sampler snowball \(train_fraction=0.25, .*\); this plan has sampler uniform \(train_fraction=0.25\)",
        ),
        (
            replace(PLAN, releases=(Clean(), NoisyLastLayer(0.5))),
            r"with releases clean, noisy \(noise_std=0.25\); this plan has releases clean, noisy \(noise_std=0.5\)",
        ),
        (replace(PLAN, training=Training(epochs=7)), "with training epochs=40; this plan has epochs=7"),
        (replace(PLAN, engine="torch"), "with engine native; this plan has engine torch"),
    ],
)
def test_a_folder_of_another_plan_is_refused(plan: ShadowPlan, message: str, graph: Graph, whole: Path) -> None:
    with pytest.raises(InputError, match=message):
        train_shadows(graph, plan, NUM_MODELS, whole)


def test_a_folder_of_another_graph_is_refused_with_the_sizes(graph: Graph, whole: Path) -> None:
    other = Graph.from_edges(graph.edges[1:], graph.features, graph.labels)
    message = f"of a graph with 1,000 nodes and {graph.num_edges:,} edges; this one has 1,000 nodes and "
    with pytest.raises(InputError, match=message):
        train_shadows(other, PLAN, NUM_MODELS, whole)
    relabelled = Graph.from_edges(graph.edges, graph.features, np.roll(graph.labels, 1))
    with pytest.raises(InputError, match="of a graph of the same size with other edges, features or labels"):
        train_shadows(relabelled, PLAN, NUM_MODELS, whole)


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


def test_a_folder_that_keeps_logits_keeps_all(graph: Graph, tmp_path: Path) -> None:
    train_shadows(graph, PLAN, 3, tmp_path, keep_logits=True)
    train_shadows(graph, PLAN, 40, tmp_path)
    logits = zarr.open_group(tmp_path / "shadows", mode="r")["logits_full_clean"]
    assert np.isfinite(np.asarray(logits[:])).all()  # type: ignore[index]


def test_what_cannot_be_sampled_leaves_no_folder(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="less than one node"):
        train_shadows(graph, ShadowPlan(Uniform(0.0001)), 5, tmp_path / "audit")
    assert not (tmp_path / "audit").exists()


def test_a_folder_without_its_plan_is_refused(graph: Graph, copy: Path) -> None:
    (copy / "shadows.json").unlink()
    with pytest.raises(DataError, match=r"has shadow models but no shadows.json"):
        train_shadows(graph, PLAN, NUM_MODELS, copy)


@pytest.mark.parametrize("name", ["zarr.json", "statistic_full_clean/zarr.json"])
def test_damaged_metadata_is_refused_in_one_line(name: str, graph: Graph, copy: Path) -> None:
    (copy / "shadows" / name).write_text("garbage")
    with pytest.raises(DataError, match="damaged metadata"):
        train_shadows(graph, PLAN, NUM_MODELS, copy)


def test_another_sampler_of_the_same_name_is_refused_and_loses_nothing(graph: Graph, tmp_path: Path) -> None:
    def draw(size: int) -> Callable[[Graph, np.random.Generator], np.ndarray]:
        return lambda graph, rng: rng.choice(graph.num_nodes, size, replace=False)

    training = Training(epochs=2)
    train_shadows(graph, ShadowPlan(draw(200), GCN(), training), 5, tmp_path)
    before = arrays(tmp_path)
    with pytest.raises(InputError, match="holds shadow models of other samples"):
        train_shadows(graph, ShadowPlan(draw(300), GCN(), training), 5, tmp_path)
    assert arrays(tmp_path) == before


def test_damage_is_a_warning_where_nobody_asked_for_reports(graph: Graph, copy: Path) -> None:
    flip_a_byte(copy / "shadows" / "statistic_full_clean" / "c" / "0" / "0")
    with pytest.warns(UserWarning, match="models 0 to 31: damaged"):
        train_shadows(graph, PLAN, NUM_MODELS, copy)


def test_slow_models_are_written_a_few_at_a_time(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = ShadowStore.write

    def note_and_write(store: ShadowStore, batch: ShadowBatch) -> None:
        written.append(len(batch.indices))
        write(store, batch)

    monkeypatch.setattr("bmpaudit.shadow.pool.SECONDS_BETWEEN_WRITES", 1e-9)
    monkeypatch.setattr(ShadowStore, "write", note_and_write)
    train_shadows(graph, PLAN, 20, tmp_path, num_threads=2)
    assert written == [4, 2, 2, 2, 2, 2, 2, 2, 2]


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


def test_a_folder_that_cannot_be_made_is_one_clear_error(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        train_shadows(graph, PLAN, 3, tmp_path / "file" / "folder")


FULL_DISK = """
import resource, sys
from bmpaudit import datasets
from bmpaudit.samplers import Snowball
from bmpaudit.shadow import GCN, ShadowPlan, Training, train_shadows

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


def test_opens_in_xarray(whole: Path) -> None:
    with xarray.open_zarr(whole / "shadows", consolidated=False) as data:
        assert data["statistic_full_clean"].dims == ("model", "node")
        assert data["statistic_full_clean"].shape == (NUM_MODELS, 1_000)
        members = data["memberships"].values
        assert float(data["statistic_none_clean"].values[members].mean()) > float(
            data["statistic_none_clean"].values[~members].mean()
        )


def test_arrays_are_compressed_and_checksummed_and_the_plan_is_readable(whole: Path) -> None:
    about = json.loads((whole / "shadows" / "statistic_full_clean" / "zarr.json").read_text())
    assert [codec["name"] for codec in about["codecs"]] == ["bytes", "zstd", "crc32c"]
    assert about["zarr_format"] == 3
    assert about["fill_value"] == "NaN"
    assert json.loads((whole / "shadows.json").read_text())["sampler"]["fan_out"] == 5


def test_failed_models_are_kept_apart_and_not_trained_again(graph: Graph, tmp_path: Path) -> None:
    def sometimes_nobody(graph: Graph, rng: np.random.Generator) -> Any:
        return np.arange(graph.num_nodes // 4) if rng.random() < 0.5 else []

    plan = ShadowPlan(sometimes_nobody, GCN(), Training(epochs=2))
    empty = ~draw_memberships(graph, sometimes_nobody, 20, plan.seed).any(axis=1)
    assert 0 < empty.sum() < 20
    counts: list[int] = []
    for _ in range(2):
        runs = train_shadows(graph, plan, 20, tmp_path, progress=counts.append)
        assert runs.failed == tuple(np.flatnonzero(empty).tolist())
        assert runs.indices.tolist() == np.flatnonzero(~empty).tolist()
        assert f"{len(runs.failed)} failed" in str(runs)
    assert counts[-1] == 20


def test_logits_are_kept_if_asked_for(graph: Graph, tmp_path: Path) -> None:
    train_shadows(graph, PLAN, 5, tmp_path / "with", keep_logits=True)
    group = zarr.open_group(tmp_path / "with" / "shadows", mode="r")
    assert group["logits_none_noisy"].shape == (5, 1_000, 5)  # type: ignore[union-attr]
    train_shadows(graph, PLAN, 5, tmp_path / "without")
    with pytest.raises(InputError, match="holds shadow models without logits_full_clean"):
        train_shadows(graph, PLAN, 5, tmp_path / "without", keep_logits=True)


@pytest.mark.parametrize("num_models", [0, -3, 1.5])
def test_number_of_models_must_be_positive(num_models: int, graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=f"num_models must be a whole number of at least 1, got num_models={num_models}"
    ):
        train_shadows(graph, PLAN, num_models, tmp_path)


def test_more_threads_than_cores_is_allowed_and_none_is_not(graph: Graph, whole: Path, tmp_path: Path) -> None:
    runs = train_shadows(graph, PLAN, 20, tmp_path, num_threads=10 * (os.cpu_count() or 1))
    first: ShadowRuns = train_shadows(graph, PLAN, 20, whole)
    assert runs.statistics["full_noisy"].tobytes() == first.statistics["full_noisy"].tobytes()
    with pytest.raises(InputError, match="num_threads must be a whole number of at least 1, got num_threads=0"):
        train_shadows(graph, PLAN, 20, tmp_path, num_threads=0)


def everything_in(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def test_reading_changes_nothing_and_takes_no_lock(graph: Graph, copy: Path) -> None:
    (copy / ".lock").unlink(missing_ok=True)
    (copy / "shadows" / "done" / "c" / "0.abc.partial").write_bytes(b"half")
    before = everything_in(copy)
    assert ShadowStore(copy, graph, PLAN, read_only=True).read().num_models == NUM_MODELS
    assert everything_in(copy) == before


@pytest.mark.parametrize("make", [lambda _: None, Path.mkdir])
def test_reading_a_folder_without_models_says_so_and_makes_nothing(
    make: Callable[[Path], None], graph: Graph, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    make(folder)
    with pytest.raises(DataError, match="audit has no shadow models"):
        ShadowStore(folder, graph, PLAN, read_only=True)
    assert list(tmp_path.rglob("*")) == ([folder] if folder.exists() else [])


def test_reading_needs_no_code_of_the_plan(graph: Graph, tmp_path: Path) -> None:
    """A folder made with parts of one's own is read with their names alone."""
    plan = ShadowPlan(
        Thirds(offset=1), GCN(), Training(epochs=2), (Clean(), Rounded(digits=1)), (FullEdges(),), statistic=first_class
    )
    trained = train_shadows(graph, plan, 3, tmp_path)
    assert list(trained.statistics) == ["full_clean", "full_rounded-1"]

    def by_name(kind: str, part: Any) -> Any:
        return registry.build(kind, registry.table_of(kind, part), trust_code=False)

    named = replace(
        plan,
        sampler=by_name("sampler", plan.sampler),
        releases=tuple(by_name("release", release) for release in plan.releases),
        statistic=by_name("statistic", plan.statistic),
    )
    assert isinstance(named.sampler, UntrustedPart)
    runs = ShadowStore(tmp_path, graph, named, read_only=True).read()
    for name, statistics in trained.statistics.items():
        assert runs.statistics[name].tobytes() == statistics.tobytes()
    with pytest.raises(UntrustedCodeError, match="the sampler 'own_parts:Thirds' is code that a file names"):
        train_shadows(graph, named, 4, tmp_path)


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
