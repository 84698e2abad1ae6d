"""Real Dask workers that are killed, come late, or lose their scheduler: the models are those of one machine."""

from __future__ import annotations

import operator
import os
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from cluster_fixture import GRAPH, dask_processes, kill, meanwhile, plan, stored, wait_until

from bmpaudit.shadow import ShadowStore, train_shadows
from bmpaudit.shadow import train as coordinator
from bmpaudit.util.errors import InputError
from bmpaudit.workers import ENVIRONMENT, SMALLEST_PART, answer_of, crew_of, executor_at

NUM_MODELS = 640
PLAN = plan(epochs=400)  # a few milliseconds a model, so that there is a middle in which to disturb


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    train_shadows(GRAPH, PLAN, NUM_MODELS, folder, num_threads=1)
    return folder


def num_done(folder: Path) -> int:
    return int(ShadowStore(folder, GRAPH, PLAN, read_only=True).is_done.sum())


def test_a_local_cluster(whole: Path, tmp_path: Path) -> None:
    with executor_at("local:2") as executor:
        train_shadows(GRAPH, PLAN, NUM_MODELS, tmp_path, executor=executor)
    assert stored(tmp_path) == stored(whole)


def test_a_worker_that_is_killed_and_one_that_comes_late(whole: Path, tmp_path: Path) -> None:
    """The one that comes late gets the graph though the one that had it is dead."""
    with dask_processes(1) as cluster, executor_at(cluster.address) as executor:

        def disturb() -> None:
            wait_until(lambda: (tmp_path / "shadows" / "done" / "c").exists())
            kill(cluster.workers[0])
            assert num_done(tmp_path) < NUM_MODELS
            cluster.add_worker()

        counts: list[int] = []
        with meanwhile(disturb):
            train_shadows(GRAPH, PLAN, NUM_MODELS, tmp_path, executor=executor, progress=counts.append)
        assert cluster.workers[0].poll() is not None
        assert cluster.workers[1].poll() is None
    assert counts[-1] == NUM_MODELS
    assert stored(tmp_path) == stored(whole)


def test_one_of_two_workers_is_killed(whole: Path, tmp_path: Path) -> None:
    with dask_processes(2) as cluster, executor_at(cluster.address) as executor:

        def disturb() -> None:
            wait_until(lambda: (tmp_path / "shadows" / "done" / "c").exists())
            kill(cluster.workers[0])
            assert num_done(tmp_path) < NUM_MODELS

        with meanwhile(disturb):
            train_shadows(GRAPH, PLAN, NUM_MODELS, tmp_path, executor=executor)
    assert stored(tmp_path) == stored(whole)


def test_the_scheduler_is_gone_and_the_next_run_goes_on(whole: Path, tmp_path: Path) -> None:
    with dask_processes(1) as cluster, executor_at(cluster.address) as executor:

        def disturb() -> None:
            wait_until(lambda: (tmp_path / "shadows" / "done" / "c").exists())
            kill(cluster.scheduler)

        message = rf"the Dask scheduler {cluster.address} is gone; what is finished is kept"
        with meanwhile(disturb), pytest.raises(ConnectionError, match=message) as raised:
            train_shadows(GRAPH, PLAN, NUM_MODELS, tmp_path, executor=executor)
        assert "\n" not in str(raised.value)
    kept = num_done(tmp_path)
    assert 0 < kept < NUM_MODELS
    counts: list[int] = []
    with dask_processes(1) as cluster, executor_at(cluster.address) as executor:
        train_shadows(GRAPH, PLAN, NUM_MODELS, tmp_path, executor=executor, progress=counts.append)
    assert counts[0] == kept
    assert stored(tmp_path) == stored(whole)


def test_workers_that_do_not_share_the_store_send_models_back(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here they look for a mark that is not there."""
    monkeypatch.setattr(coordinator, "marked", lambda _: nullcontext("no mark"))
    with executor_at("local:1") as executor:
        train_shadows(GRAPH, PLAN, NUM_MODELS, tmp_path, executor=executor)
    assert stored(tmp_path) == stored(whole)


def test_a_worker_of_another_instruction_set(tmp_path: Path) -> None:
    said: list[str] = []
    with dask_processes(0) as cluster:
        cluster.add_worker(environment={"BMPAUDIT_INSTRUCTION_SET": "baseline"})
        with executor_at(cluster.address) as executor:
            runs = train_shadows(GRAPH, plan(), 64, tmp_path, executor=executor, report=said.append)
    if os.environ.get("BMPAUDIT_INSTRUCTION_SET") != "baseline":
        assert ["instruction set baseline in place of" in line for line in said] == [True]
        assert len(runs.notes) == 1


@pytest.mark.parametrize("address", ["local:0", "local:many", "local:"])
def test_impossible_clusters_are_refused(address: str) -> None:
    with pytest.raises(InputError, match=r"local:N with N at least 1"), executor_at(address):
        pass


def test_without_workers_the_work_waits_for_one_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent to the worker before, and has gone with it, is sent again."""
    monkeypatch.setattr("bmpaudit.workers.SECONDS_ALONE", 0.0)
    numbers = np.arange(SMALLEST_PART, dtype=np.float64)

    def third() -> list[tuple[int, float]]:
        return list(crew_of(executor).run(operator.getitem, numbers, deque([3])))

    with dask_processes(1) as cluster, executor_at(cluster.address) as executor:
        assert third() == [(3, 3.0)]
        kill(cluster.workers[0])
        messages: list[str] = []
        monkeypatch.setattr(warnings, "warn", lambda message, **_: messages.append(str(message)))

        def help_out() -> None:
            wait_until(lambda: bool(messages))
            cluster.add_worker()

        with meanwhile(help_out):
            assert third() == [(3, 3.0)]
    assert [f"The Dask cluster {cluster.address} has no workers" in message for message in messages] == [True]


def test_a_worker_that_is_lost_while_a_value_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with dask_processes(1) as cluster, executor_at(cluster.address) as executor:
        client = executor._client  # type: ignore[attr-defined]
        scatter, failures = client.scatter, [OSError("connection reset"), TimeoutError("no workers")]

        def failing(*arguments: object, **options: object) -> object:
            if failures:
                raise failures.pop()
            return scatter(*arguments, **options)

        monkeypatch.setattr(client, "scatter", failing)
        assert list(crew_of(executor).run(operator.getitem, [5, 6], deque([1]))) == [(1, 6)]
        failures.extend([OSError("connection reset")] * 9)
        with pytest.raises(ChildProcessError, match="workers of the Dask cluster were lost 9 times"):
            list(crew_of(executor).run(operator.getitem, [5, 6], deque([1])))


def environment(_: None, __: int) -> dict[str, str]:
    print("not to be mistaken for a result")
    return dict(os.environ)


def test_processes_of_this_machine_have_one_thread_keep_their_memory_and_print_to_stderr(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = dict(os.environ)
    with executor_at("local:1") as executor:
        ((_, found),) = crew_of(executor).run(environment, None, deque([0]))
    assert {name: found[name] for name in ENVIRONMENT} == ENVIRONMENT
    assert dict(os.environ) == before
    assert capfd.readouterr() == ("", "not to be mistaken for a result\n")


def test_processes_of_this_machine_read_values_from_files() -> None:
    numbers = np.arange(SMALLEST_PART, dtype=np.float64)
    with executor_at("local:1") as executor:
        assert list(crew_of(executor).run(operator.getitem, numbers, deque([3, 4]))) == [(3, 3.0), (4, 4.0)]
        (file,) = crew_of(executor).parts.values()
        assert Path(file.path).stat().st_size == numbers.nbytes
    assert not Path(file.path).parent.exists()


def test_an_answer_that_is_lost_before_it_is_fetched() -> None:
    """The worker has ended with it, and the task cannot be run again: what it depends on is lost too."""

    class Lost:
        def add_done_callback(self, callback: Callable[[Lost], None]) -> None:
            callback(self)

        def cancelled(self) -> bool:
            return True

        def result(self) -> None:
            raise RuntimeError("cancelled for reason: unknown")

    with pytest.raises(CancelledError):
        answer_of(Lost()).result(timeout=0)


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmpaudit.workers.CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        with pytest.raises(ConnectionError, match=f"no Dask scheduler answers at {address}"), executor_at(address):
            pass
