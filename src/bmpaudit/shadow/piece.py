"""What a worker does: it trains some shadow models, and writes them to the store or sends them back."""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from bmpaudit.arrays import Ints
from bmpaudit.build import Build, this_build
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.making import make_engine
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.remote_folder import folder_at
from bmpaudit.shadow.store import ShadowStore

SECONDS_PER_PIECE = 60.0
SECONDS_PER_CHUNK = 600.0
"""After this time a worker sends back what it has, the longer one if it can write the chunk itself once it is whole:
the loss of a worker costs hardly more, and the coordinator has little to write."""

SECONDS_AT_ONCE = 15.0
"""Between two looks at the clock. Engines set up their memory anew for each call, which can take as long as a third of
a model, so there is one call for a piece wherever models are that quick."""

_making = threading.Lock()
_one_at_a_time = threading.Lock()


class Pace:
    """How long a model takes, as far as the last ones tell."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def note(self, num_models: int, seconds: float) -> None:
        """Tells how long some models took."""
        self._seconds = seconds / num_models

    def models_in(self, seconds: float) -> int:
        """How many models to train at once, at least one; one if nothing is known yet."""
        return 1 if self._seconds is None else max(1, int(seconds / max(self._seconds, 1e-9)))


@dataclass(frozen=True, eq=False)
class Job:
    """What all pieces have in common; sent to each worker once.

    Attributes:
        graph: The whole graph.
        plan: What to train.
        keep_logits: Whether to keep what each view gives out.
        num_weights: How many weights of each model to keep.
        folder: Path or address of the store.
        mark: Name of a file that is in the store for as long as the coordinator is at work; who sees it shares the
            store.
    """

    graph: Graph
    plan: ShadowPlan
    keep_logits: bool
    num_weights: int
    folder: str
    mark: str

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def engine(self) -> Engine:
        """The worker's engine."""
        return make_engine(self.graph, self.plan)

    @cached_property
    def store(self) -> ShadowStore:
        """The coordinator's store, to write to."""
        return ShadowStore(self.folder, self.graph, self.plan, joins=True)

    @cached_property
    def pace(self) -> Pace:
        """How fast this process trains."""
        return Pace()

    @property
    def shares_store(self) -> bool:
        """Whether this process sees the coordinator's store, and the coordinator is still at work."""
        try:
            return (folder_at(self.folder) / self.mark).exists()
        except OSError:
            return False


@dataclass(frozen=True, eq=False)
class Piece:
    """Models of one chunk of the store.

    Attributes:
        indices: Numbers of the models, ascending.
        completes_chunk: Whether all other models of the chunk are in the store, and nobody else trains any. Only then
            may a worker write: whatever a worker writes is a whole chunk, so that one which was given up for lost, and
            writes all the same, changes nothing.
    """

    indices: Ints
    completes_chunk: bool


@dataclass(frozen=True, eq=False)
class Trained:
    """What a worker answers.

    Attributes:
        indices: Models that are finished.
        batch: These models; None if they are in the store, where only the coordinator vouches for them.
        build: The worker's build.
        worker: Its machine and process.
    """

    indices: Ints
    batch: ShadowBatch | None
    build: Build
    worker: str


def train_piece(job: Job, piece: Piece) -> Trained:
    """Trains the models of a piece on one thread, or as many of them as there is time for."""
    with _making:
        engine = job.engine
    seconds = SECONDS_PER_CHUNK if piece.completes_chunk and job.shares_store else SECONDS_PER_PIECE
    if getattr(engine, "is_thread_safe", False):
        batch = _train(job, engine, piece.indices, seconds)
    else:
        with _one_at_a_time:
            batch = _train(job, engine, piece.indices, seconds)
    is_whole = piece.completes_chunk and len(batch.indices) == len(piece.indices)
    is_written = is_whole and job.shares_store
    if is_written:
        job.store.write_data(batch)
    return Trained(
        indices=batch.indices,
        batch=None if is_written else batch,
        build=worker_build(job.plan),
        worker=f"{socket.gethostname()}:{os.getpid()}",
    )


def worker_build(plan: ShadowPlan) -> Build:
    """The build of this process, as far as it matters to a plan's models."""
    return this_build(plan.engine_name)


def _train(job: Job, engine: Engine, indices: Ints, most_seconds: float) -> ShadowBatch:
    parts: list[ShadowBatch] = []
    start, done = time.monotonic(), 0
    while done < len(indices) and (not parts or time.monotonic() - start <= most_seconds):
        some = indices[done : done + job.pace.models_in(SECONDS_AT_ONCE)]
        batch = ShadowBatch.drawn(job.graph, job.plan, some, job.keep_logits, job.num_weights, num_threads=1)
        before = time.monotonic()
        engine.fill(batch, 1, lambda _: None)
        job.pace.note(len(some), time.monotonic() - before)
        parts.append(batch)
        done += len(some)
    return parts[0] if len(parts) == 1 else ShadowBatch.joined(parts)
