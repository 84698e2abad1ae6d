"""A plan small enough to train in a second, what one machine makes of it, and workers to disturb."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.graph.graph import Graph
from bmpaudit.models import MLP, Training
from bmpaudit.releases import Clean
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan

NUM_MODELS = 200  # six chunks and a quarter


def small_graph(num_nodes: int = 60) -> Graph:
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, num_nodes, size=(2 * num_nodes, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return Graph.from_edges(pairs, np.eye(num_nodes, dtype=np.float32), rng.integers(0, 3, num_nodes))


GRAPH = small_graph()


def plan(epochs: int = 15, **settings: Any) -> ShadowPlan:
    usual: dict[str, Any] = {"releases": (Clean(),), "seed": 4}
    return ShadowPlan(Uniform(0.4), MLP(hidden=8), Training(epochs=epochs), **(usual | settings))


def stored(folder: Path) -> dict[str, bytes]:
    """Every file of the shadow models."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class DaskProcesses:
    """A scheduler and workers, each a process of its own without a nanny, to be killed."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self._start("scheduler", "--port", self.port, "--host", "127.0.0.1", "--no-dashboard")
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self, *, environment: dict[str, str] | None = None, folder: Path | None = None) -> Any:
        options = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--death-timeout", 60)
        worker = self._start("worker", self.address, *options, environment=environment, folder=folder)
        self.workers.append(worker)
        return worker

    def _start(
        self, what: str, *options: object, environment: dict[str, str] | None = None, folder: Path | None = None
    ) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + what, *map(str, options)]
        return subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        )

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait()


@contextmanager
def dask_processes(num_workers: int) -> Iterator[DaskProcesses]:
    cluster = DaskProcesses()
    try:
        for _ in range(num_workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Something that happens in another thread; what it raises is raised here."""
    failures: list[BaseException] = []

    def act() -> None:
        try:
            action()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    for failure in failures:
        raise failure


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
