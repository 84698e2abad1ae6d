"""PyTorch models in several processes: the same bytes, and nothing lost when one of them fails."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import own_parts
import pytest
import zarr
from helpers import fill, random_graph
from own_parts import Linear, Sage, noting_margin, train_by_hand, train_until_killed, train_with_failures
from torch import nn

from bmpaudit import registry
from bmpaudit.interfaces import Progress
from bmpaudit.models import DPGCN, GCN, TorchModel, Training
from bmpaudit.registry import MODEL
from bmpaudit.releases import Clean, FullEdges
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan, ShadowStore, train_shadows
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.processes import FewerProcessesWarning
from bmpaudit.shadow.engines.torch import TorchEngine
from bmpaudit.util.errors import InputError

GRAPH = random_graph()
PLAN = ShadowPlan(
    Uniform(0.5),
    TorchModel(Linear, train_by_hand),
    releases=(Clean(),),
    queries=(FullEdges(),),
    statistic=noting_margin,
    engine="torch",
)
PATIENCE = 120.0  # seconds for another process to start, on a busy machine


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each process notes its number with every view of a model that it has finished."""
    path = tmp_path / "notes"
    path.touch()
    monkeypatch.setenv("NOTES", str(path))
    monkeypatch.setenv("FIRST_PROCESS", str(os.getpid()))
    monkeypatch.setattr("bmpaudit.shadow.engines.processes.SECONDS_ALONE", 0.0)
    return path


def trained_elsewhere(notes: Path, plan: ShadowPlan = PLAN) -> int:
    """Number of models that other processes have trained, without the trial; -1 if they have not even done that."""
    elsewhere = [process for process in notes.read_text().split() if process != str(os.getpid())]
    return len(elsewhere) // len(plan.views) - 1


def waiting(is_over: Callable[[], bool]) -> Progress:
    """A progress that stops this process until something has happened elsewhere."""

    def wait(_: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_over():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    return wait


def joining(engine: TorchEngine, notes: Path, models: int = 1) -> Progress:
    """A progress that stops this process until another one has joined in, and later has trained so many models."""
    before = trained_elsewhere(notes, engine.plan)

    def progress(num_done: int) -> None:
        waiting(lambda: bool(engine.processes))(num_done)
        if num_done > 2:
            waiting(lambda: trained_elsewhere(notes, engine.plan) >= max(before, 0) + models)(num_done)

    return progress


def fill_together(engine: TorchEngine, plan: ShadowPlan, indices: list[int], progress: Progress) -> ShadowBatch:
    memberships = draw_memberships(GRAPH, plan.sampler, 100, plan.seed)[indices]
    batch = ShadowBatch.empty(GRAPH, plan, np.array(indices), memberships, keep_logits=True)
    engine.fill(batch, 2, progress)
    return batch


def contents(batch: ShadowBatch) -> list[bytes]:
    return [array.tobytes() for array in vars(batch).values() if array is not None]


@pytest.fixture
def engines() -> Iterator[Callable[[ShadowPlan], TorchEngine]]:
    made: list[TorchEngine] = []

    def make(plan: ShadowPlan) -> TorchEngine:
        made.append(TorchEngine(GRAPH, plan))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, model=TorchModel(Sage), training=Training(epochs=5), releases=ShadowPlan(Uniform(0.5)).releases),
        replace(PLAN, model=GCN(), training=Training(epochs=5), statistic=noting_margin),
        replace(PLAN, model=DPGCN(noise_multiplier=0.5, steps=4, sampling_rate=0.4, hidden=3, max_degree=2)),
    ],
    ids=["own", "built-in", "private"],
)
def test_two_processes_give_the_same_bytes_as_one_however_models_are_split(
    plan: ShadowPlan, notes: Path, engines: Callable[[ShadowPlan], TorchEngine]
) -> None:
    engine = engines(plan)
    first = fill_together(engine, plan, [0, 1, 2, 7], joining(engine, notes))
    second = fill_together(engine, plan, [8, 9, 40], joining(engine, notes))
    assert len(set(notes.read_text().split())) == 2, "the other process was kept"
    assert contents(first) == contents(fill(engine, GRAPH, plan, [0, 1, 2, 7], keep_logits=True))
    assert contents(second) == contents(fill(engine, GRAPH, plan, [8, 9, 40], keep_logits=True))


def test_a_module_of_the_current_folder_is_found_by_the_other_process(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engines: Callable[[ShadowPlan], TorchEngine]
) -> None:
    (tmp_path / "here_only.py").write_text("from own_parts import Linear\n\n\nclass Mine(Linear): ...\n")
    monkeypatch.chdir(tmp_path)
    plan = replace(PLAN, model=registry.build(MODEL, "here_only:Mine"), training=Training(epochs=3))
    engine = engines(plan)
    batch = fill_together(engine, plan, [0, 1, 2], joining(engine, notes))
    assert len(engine.processes) == 1
    assert contents(batch) == contents(fill(engine, GRAPH, plan, [0, 1, 2], keep_logits=True))


def test_a_short_run_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmpaudit.shadow.engines.processes.Processes", None)
    plan = replace(PLAN, statistic=own_parts.first_class)
    assert fill_together(TorchEngine(GRAPH, plan), plan, [0, 1, 2], lambda _: None).is_done.all()


def test_one_thread_is_one_process(notes: Path, tmp_path: Path) -> None:
    train_shadows(GRAPH, PLAN, 5, tmp_path / "models", num_threads=1)
    assert set(notes.read_text().split()) == {str(os.getpid())}


def test_an_error_of_the_users_code_names_the_model_and_where_it_was(
    notes: Path, engines: Callable[[ShadowPlan], TorchEngine]
) -> None:
    plan = replace(PLAN, model=TorchModel(Linear, train_with_failures))
    engine = engines(plan)
    memberships = draw_memberships(GRAPH, plan.sampler, 4, plan.seed)
    batch = ShadowBatch.empty(GRAPH, plan, np.arange(4), memberships)

    def progress(num_done: int) -> None:
        waiting(lambda: bool(engine.processes))(num_done)
        time.sleep(0.5 * (num_done > 1))  # for the failure to arrive

    with pytest.raises(InputError, match=r"^shadow model \d: ZeroDivisionError: of the user's own$") as caught:
        engine.fill(batch, 2, progress)
    assert "in train_with_failures" in str(caught.value.__cause__)
    assert 1 <= batch.is_done.sum() < 4
    assert np.isfinite(batch.statistics[:, batch.is_done]).all()
    assert len(notes.read_text().split()) >= 3


def test_an_error_in_this_process_has_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_PROCESS", "elsewhere")
    monkeypatch.setattr(own_parts, "CALLS", [0])
    plan = replace(PLAN, model=TorchModel(Linear, train_with_failures), statistic=own_parts.first_class)
    with pytest.raises(InputError, match=r"^shadow model 5: ZeroDivisionError: of the user's own$") as caught:
        fill(TorchEngine(GRAPH, plan), GRAPH, plan, [4, 5])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_killed_process_is_named_and_the_next_run_resumes(notes: Path, tmp_path: Path) -> None:
    plan = replace(PLAN, model=TorchModel(Linear, train_until_killed))
    with pytest.raises(ChildProcessError, match=r"^a worker process was ended by SIGKILL, perhaps for lack of "):
        train_shadows(GRAPH, plan, 10_000, tmp_path / "models", num_threads=2)
    kept = int(ShadowStore(tmp_path / "models", GRAPH, plan, read_only=True).is_done.sum())
    assert 0 < kept < 10_000
    counts: list[int] = []
    resumed = train_shadows(GRAPH, plan, kept + 2, tmp_path / "models", num_threads=1, progress=counts.append)
    assert counts[0] >= kept
    whole = train_shadows(GRAPH, plan, kept + 2, tmp_path / "others", num_threads=1)
    assert resumed.statistics["full_clean"].tobytes() == whole.statistics["full_clean"].tobytes()
    assert len(set(notes.read_text().split())) == 2


class WithLock:
    """A factory that cannot be pickled."""

    __qualname__ = "WithLock"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, num_features: int, num_classes: int) -> nn.Module:
        return Linear(num_features, num_classes)


def test_what_cannot_be_sent_is_trained_here_with_a_notice(
    notes: Path, engines: Callable[[ShadowPlan], TorchEngine]
) -> None:
    plan = replace(PLAN, model=TorchModel(WithLock(), train_by_hand, version="1"))
    engine = engines(plan)
    with pytest.warns(FewerProcessesWarning, match=r"WithLock cannot be pickled \(TypeError: .*lock"):
        batch = fill_together(engine, plan, [0, 1, 2], lambda _: None)
    assert not engine.trains_in_parallel
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fill_together(engine, plan, [3, 4], lambda _: None)
    assert batch.statistics.tobytes() == fill(TorchEngine(GRAPH, PLAN), GRAPH, PLAN, [0, 1, 2]).statistics.tobytes()
    assert set(notes.read_text().split()) == {str(os.getpid())}


def test_a_process_that_computes_something_else_trains_no_model(
    notes: Path, monkeypatch: pytest.MonkeyPatch, engines: Callable[[ShadowPlan], TorchEngine]
) -> None:
    monkeypatch.setattr(own_parts, "WIDTH", 9)  # which another process does not know
    engine = engines(PLAN)
    is_over = waiting(lambda: bool(engine.processes) or not engine.trains_in_parallel)
    with pytest.warns(FewerProcessesWarning, match="a model came out differently in another process") as caught:
        batch = fill_together(engine, PLAN, list(range(5)), is_over)
    assert len(caught) == 1
    assert trained_elsewhere(notes) == 0
    assert contents(batch) == contents(fill(engine, GRAPH, PLAN, list(range(5)), keep_logits=True))


SCRIPT = """
import sys
import torch
from bmpaudit.graph.graph import Graph
from bmpaudit.registry import MODEL
from bmpaudit.samplers import Uniform
from bmpaudit.releases import Clean, FullEdges
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.models import TorchModel
from bmpaudit.models import Training
from own_parts import noting_margin


class Mine(torch.nn.Module):  # in __main__, and no guard below
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layer = torch.nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.layer(x)


plan = ShadowPlan(Uniform(0.5), TorchModel(Mine), Training(epochs=100), (Clean(),), (FullEdges(),),
                  statistic=noting_margin, engine="torch")
print("started", flush=True)
train_shadows(Graph.from_npz(sys.argv[1]), plan, 100_000, sys.argv[2], num_threads=2)
"""


def start_script(folder: Path) -> "subprocess.Popen[str]":
    graph, script = folder / "graph.npz", folder / "script.py"
    GRAPH.to_npz(graph)
    script.write_text(SCRIPT)
    path = os.pathsep.join([*map(str, sys.path), str(Path(__file__).parent)])
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, str(script), str(graph), str(folder / "models")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder / "tmp")},
    )


def wait_for_two(notes: Path, models: int, process: "subprocess.Popen[str]") -> list[int]:
    """The processes, when the second has finished this many models."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        counts = Counter(map(int, notes.read_text().split()))
        if len(counts) == 2 and min(counts.values()) > models:
            return list(counts)
        time.sleep(0.05)
    raise AssertionError(process.communicate())


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="whether a process is alive is read from /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_script_of_ones_own_is_stopped_with_all_its_processes(
    number: signal.Signals, notes: Path, tmp_path: Path
) -> None:
    with start_script(tmp_path) as script:
        processes = wait_for_two(notes, 3, script)
        asked = time.monotonic()
        script.send_signal(number)
        output, errors = script.communicate(timeout=30)
        assert time.monotonic() - asked < 5  # the promise is a second; a loaded machine gets more
    assert output == "started\n", "the script has run once"
    assert errors.strip().endswith("KeyboardInterrupt" if number == signal.SIGINT else "")
    assert "Warning" not in errors
    deadline = time.monotonic() + 30
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, processes))
    assert not list((tmp_path / "tmp").glob("bmpaudit-*"))
    if number == signal.SIGINT:
        finished = len(notes.read_text().split()) - 2
        done = np.asarray(zarr.open_group(tmp_path / "models" / "shadows", mode="r")["done"]).sum()
        assert finished - 2 <= done <= finished
