"""Any executor trains the models that one machine trains, to the byte."""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_fixture import GRAPH, NUM_MODELS, plan, small_graph, stored

from bmpaudit import workers as pickling
from bmpaudit import workers as worker
from bmpaudit.models import GCN, TorchModel
from bmpaudit.shadow import ShadowStore, train_shadows
from bmpaudit.shadow import train as piece_module
from bmpaudit.shadow.train import Job, Piece, train_piece
from bmpaudit.util import build
from bmpaudit.util.errors import InputError
from bmpaudit.workers import Crew, Processes, crew_of, executor_at


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    train_shadows(GRAPH, plan(), NUM_MODELS, folder, num_threads=1)
    return folder


class Elsewhere(Executor):
    """Workers on a machine that shares neither files nor memory with this one, here played by this very process."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        message = pickle.dumps((function, arguments, options))
        self.sent.append(len(message))
        future: Future[Any] = Future()
        here, worker._values = worker._values, _elsewhere
        try:
            called, given, named = pickle.loads(message)
            content, parts = given[2]
            given = (*given[:2], ("/nowhere" if isinstance(content, str) else content, parts), *given[3:])
            future.set_result(pickle.loads(pickle.dumps(called(*given, **named))))
        except Exception as failure:
            future.set_exception(failure)
        finally:
            worker._values = here
        return future


_elsewhere: dict[str, Any] = {}


@pytest.mark.parametrize("kind", ["processes", "threads", "elsewhere", "local"])
def test_any_executor_gives_the_same_bytes(
    kind: str, processes: Executor, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(3) as threads, executor_at("local:2") as local:
        executor = {"processes": processes, "threads": threads, "elsewhere": Elsewhere(), "local": local}[kind]
        if kind == "elsewhere":
            monkeypatch.setattr(Job, "shares_store", False)
        counts: list[int] = []
        runs = train_shadows(GRAPH, plan(), NUM_MODELS, tmp_path, executor=executor, progress=counts.append)
    assert stored(tmp_path) == stored(whole)
    assert runs.num_models == NUM_MODELS
    assert runs.notes == ()
    assert counts == sorted(counts)
    assert counts[-1] == NUM_MODELS


def test_what_all_tasks_share_is_sent_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executor = Elsewhere()
    graph = small_graph(600)
    monkeypatch.setattr(Job, "shares_store", False)
    train_shadows(graph, plan(epochs=1), 64, tmp_path, executor=executor)
    size = len(pickle.dumps(graph))
    assert sum(length > size for length in executor.sent) == 1
    assert len(executor.sent) > 8  # tasks, those that came back, and the one with the graph


def contents(value: dict[str, Any], _: int) -> dict[str, Any]:
    return {name: (part.tobytes(), part.strides, part.flags.writeable) for name, part in value.items()}


def test_large_arrays_come_as_they_were_and_are_sent_once(processes: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    large = np.random.default_rng(0).random((500, 700))
    value = {
        "whole": large,
        "rows": large[100:400],
        "columns": large[:, ::2],
        "backwards": large[::-1],
        "by columns": np.asfortranarray(large),
        "as bits": (large < 0.5).view(np.uint8),
        "broadcast": np.broadcast_to(large[:1], (500, 700)),
        "small": large[0],
        "few of many": large[:100, :300],
    }
    shared: list[int] = []
    put = Crew.put

    def noticed(crew: Crew, content: Any) -> Any:
        if isinstance(content, memoryview):
            shared.append(content.nbytes)
        return put(crew, content)

    monkeypatch.setattr(Crew, "put", noticed)
    monkeypatch.setattr(pickling, "SMALLEST_PART", 100_000)
    for _ in range(2):
        for _, answer in crew_of(processes).run(contents, value, deque(range(4))):
            for name, part in value.items():
                content, strides, _ = answer[name]
                assert content == part.tobytes(), name
                assert name in ("few of many", "broadcast") or strides == part.strides, name
            assert not answer["whole"][2]  # the next value has it too
    assert shared == [large.nbytes, large.nbytes, large.size]  # in two orders of memory, and as bits
    files = [file.path for file in crew_of(processes).parts.values()]
    assert len(files) == 3
    del large, part, value
    assert not any(Path(file).exists() for file in files)
    assert not crew_of(processes).parts


def test_an_array_that_was_changed_is_sent_anew(processes: Executor) -> None:
    value = {"large": np.zeros(200_000)}
    for number in range(3):
        value["large"][7] = number
        answers = list(crew_of(processes).run(contents, value, deque(range(2))))
        assert [answer["large"][0] for _, answer in answers] == [value["large"].tobytes()] * 2


def test_workers_that_share_the_store_write_whole_chunks(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that whatever a worker writes late, or twice, is what is there already."""
    written: list[tuple[int, int]] = []
    write = ShadowStore.write_data

    def noticed(store: ShadowStore, batch: Any, **options: Any) -> None:
        if threading_name().startswith("pool"):
            written.append((len(batch.indices), int(batch.indices[0])))
        write(store, batch, **options)

    monkeypatch.setattr(ShadowStore, "write_data", noticed)
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as threads:
        train_shadows(GRAPH, plan(), NUM_MODELS, tmp_path, executor=threads)
    assert sorted(written) == [(8, 192), *((32, 32 * k) for k in range(6))]
    assert stored(tmp_path) == stored(whole)


def threading_name() -> str:
    import threading

    return threading.current_thread().name


def test_slow_models_are_sent_back_in_parts(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_module, "SECONDS_PER_PIECE", 0.0)
    monkeypatch.setattr(piece_module, "SECONDS_PER_CHUNK", 0.0)
    monkeypatch.setattr(piece_module, "SECONDS_AT_ONCE", 0.0)
    with ThreadPoolExecutor(1) as threads:
        counts: list[int] = []
        train_shadows(GRAPH, plan(), 40, tmp_path, executor=threads, progress=counts.append)
    assert counts == list(range(41))
    alone = ShadowStore(whole, GRAPH, plan(), read_only=True).read(40)
    runs = ShadowStore(tmp_path, GRAPH, plan(), read_only=True).read()
    assert {view: table.tobytes() for view, table in runs.statistics.items()} == {
        view: table.tobytes() for view, table in alone.statistics.items()
    }


def test_training_goes_on_from_what_one_machine_has_done(processes: Executor, whole: Path, tmp_path: Path) -> None:
    train_shadows(GRAPH, plan(), 40, tmp_path, num_threads=1)
    train_shadows(GRAPH, plan(), 150, tmp_path, executor=processes)
    train_shadows(GRAPH, plan(), NUM_MODELS, tmp_path, num_threads=1)
    assert stored(tmp_path) == stored(whole)


def test_a_chunk_that_is_finished_twice_has_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    """As by a worker that was given up for lost, and comes late."""
    train_shadows(GRAPH, plan(), NUM_MODELS, tmp_path, num_threads=1)
    (tmp_path / "mark").touch()
    job = Job(GRAPH, plan(), False, 0, str(tmp_path), "mark")
    assert train_piece(job, Piece(np.arange(32, 64), completes_chunk=True)).batch is None
    (tmp_path / "mark").unlink()
    assert stored(tmp_path) == stored(whole)
    assert train_piece(job, Piece(np.arange(32, 64), completes_chunk=True)).batch is not None  # nobody waits for it


def test_logits_are_kept(processes: Executor, tmp_path: Path) -> None:
    train_shadows(GRAPH, plan(), 40, tmp_path / "one", keep_logits=True, keep_weights=True, num_threads=1)
    train_shadows(GRAPH, plan(), 40, tmp_path / "two", keep_logits=True, keep_weights=True, executor=processes)
    assert stored(tmp_path / "one") == stored(tmp_path / "two")


def test_torch_models(processes: Executor, tmp_path: Path) -> None:
    torch_plan = replace(plan(epochs=3), model=GCN(hidden=4), engine="torch")
    train_shadows(GRAPH, torch_plan, 36, tmp_path / "one", num_threads=1)
    train_shadows(GRAPH, torch_plan, 36, tmp_path / "two", executor=processes)
    assert stored(tmp_path / "one") == stored(tmp_path / "two")
    with ThreadPoolExecutor(3) as threads:  # PyTorch's generator is one for all of them
        train_shadows(GRAPH, torch_plan, 36, tmp_path / "three", executor=threads)
    assert stored(tmp_path / "one") == stored(tmp_path / "three")


def test_another_build_is_noticed_said_and_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(build.this_build(), instruction_set="mmx", code="0" * 64)
    monkeypatch.setattr(piece_module, "worker_build", lambda _: other)
    said: list[str] = []
    with ThreadPoolExecutor(1) as threads:
        runs = train_shadows(GRAPH, plan(), 40, tmp_path, executor=threads, report=said.append)
    assert len(said) == 1
    assert f"code 00000000 in place of {build.build_id()[:8]}, instruction set mmx in place of" in said[0]
    assert said[0].startswith(runs.notes[0])
    assert "\n" not in said[0]
    assert ShadowStore(tmp_path, GRAPH, plan(), read_only=True).read().notes == runs.notes


def test_another_instruction_set_agrees_to_rounding(whole: Path, tmp_path: Path) -> None:
    before = os.environ.get("BMPAUDIT_INSTRUCTION_SET")
    os.environ["BMPAUDIT_INSTRUCTION_SET"] = "baseline"
    said: list[str] = []
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            runs = train_shadows(GRAPH, plan(), 40, tmp_path, executor=pool, report=said.append)
    finally:
        os.environ.pop("BMPAUDIT_INSTRUCTION_SET")
        if before is not None:
            os.environ["BMPAUDIT_INSTRUCTION_SET"] = before
    alone = ShadowStore(whole, GRAPH, plan(), read_only=True).read(40)
    np.testing.assert_array_equal(runs.memberships, alone.memberships)
    for view, statistics in alone.statistics.items():
        np.testing.assert_allclose(runs.statistics[view], statistics, rtol=1e-3, atol=1e-4)
    assert len(said) == (build.this_build().instruction_set != "baseline")


def failing_module(num_features: int, num_classes: int) -> Any:
    raise ValueError(f"no module of {num_features} features\nand {num_classes} classes")


def test_what_a_worker_raises_is_told_in_one_line(tmp_path: Path) -> None:
    failing = replace(plan(), model=TorchModel(failing_module), engine="torch")
    with ThreadPoolExecutor(2) as threads, pytest.raises(InputError, match=r"shadow model \d+: ValueError: no module"):
        train_shadows(GRAPH, failing, 40, tmp_path, executor=threads)


def unlucky(_: None, task: int) -> int:
    if task == 3:
        raise ZeroDivisionError("three")
    return task


def deadly(_: None, task: int) -> int:
    if task == 3:
        os._exit(1)
    return task


def test_what_is_finished_is_taken_in_before_a_failure_is_told() -> None:
    done = []

    def collect(crew: Crew) -> None:
        for task, _ in crew.run(unlucky, None, deque(range(10))):
            done.append(task)

    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(ChildProcessError, match="a worker has failed: ZeroDivisionError: three"),
    ):
        collect(Crew(threads))
    assert {0, 1, 2} <= set(done)


@pytest.mark.parametrize(
    ("executor", "ending"),
    [
        (partial(ProcessPoolExecutor, mp_context=get_context("spawn")), "has ended, perhaps for lack of memory"),
        (Processes, "has ended with exit code 1"),
    ],
)
def test_a_process_that_dies_is_told_in_one_line(executor: Callable[[int], Executor], ending: str) -> None:
    with executor(1) as pool:
        answers = crew_of(pool).run(deadly, None, deque(range(10)))
        assert [next(answers) for _ in range(3)] == [(0, 0), (1, 1), (2, 2)]
        with pytest.raises(ChildProcessError, match=f"a worker process {ending}; what is finished is kept"):
            next(answers)


def die_once(mark: Path, task: int) -> int:
    if task == 3 and not mark.exists():
        with suppress(FileNotFoundError):
            mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def test_processes_are_started_anew_and_do_what_the_dead_one_had_in_work(tmp_path: Path) -> None:
    with executor_at("local:2") as executor:
        answers = crew_of(executor).run(die_once, tmp_path / "mark", deque(range(20)))
        assert sorted(answers) == [(task, task) for task in range(20)]
        with pytest.raises(ChildProcessError, match=r"a worker process was ended by SIGKILL, perhaps .*; what is"):
            list(crew_of(executor).run(die_once, Path("/no/such/folder") / "mark", deque([3])))


def test_what_is_no_executor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="executor must have a method submit"):
        train_shadows(GRAPH, plan(), 40, tmp_path, executor="dask")  # type: ignore[arg-type]
