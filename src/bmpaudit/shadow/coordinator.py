"""Training on the workers of an executor."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bmpaudit.arrays import Flags
from bmpaudit.executors import crew_of
from bmpaudit.interfaces import Progress
from bmpaudit.shadow.piece import Job, Piece, Trained, train_piece, worker_build
from bmpaudit.shadow.remote_folder import RemoteFolder
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.shadow.writer import Writer
from bmpaudit.tables import MODELS_PER_CHUNK

PIECES_PER_WORKER = 4
"""At least, so that no worker is idle for long while others train their last piece."""

MOST_BYTES = 2**31  # of the results of one piece


def train_on(
    executor: Executor, store: ShadowStore, done: Flags, *, progress: Progress, report: Callable[[str], None]
) -> None:
    """Trains the models that are missing on the workers of an executor, each piece on one thread.

    A worker that finishes a whole chunk writes it straight to the store, if it shares it, and this process vouches for
    it; other models are sent back and written here. So only one process ever writes `done`, and the order of writes is
    that of one machine.

    Args:
        executor: Any executor; it is not shut down.
        store: Where the models go, with room for them.
        done: Which models are there, shape (J,).
        progress: Called with the number of models done.
        report: Called with a message about workers of another build.

    Raises:
        OSError: if workers, or the connection to them, are lost.
    """
    crew = crew_of(executor)
    num_done = int(done.sum())
    with marked(store.folder) as mark, Writer() as writer:
        folder = store.folder if isinstance(store.folder, RemoteFolder) else store.folder.resolve()
        job = Job(store.graph, store.plan, store.keep_logits, store.num_weights, str(folder), mark)
        pieces = _pieces(store, done, crew.width)
        for piece, trained in crew.run(train_piece, job, pieces):
            _check_build(store, trained, report)
            if trained.batch is None:
                writer.submit(store.vouch, trained.indices)
            else:
                writer.submit(store.write, trained.batch)
                left = np.setdiff1d(piece.indices, trained.indices)
                if len(left):
                    pieces.appendleft(Piece(left, completes_chunk=False))
            num_done += len(trained.indices)
            progress(num_done)


def _pieces(store: ShadowStore, done: Flags, width: int) -> deque[Piece]:
    """Whole chunks, or parts of them where chunks are too few for the workers or too large for their memory."""
    chunks = []
    for start in range(0, len(done), MODELS_PER_CHUNK):
        todo = np.flatnonzero(~done[start : start + MODELS_PER_CHUNK]) + start
        if len(todo):
            chunks.append(todo)
    wanted = PIECES_PER_WORKER * width
    size = MODELS_PER_CHUNK
    if len(chunks) < wanted:
        size = -(-sum(map(len, chunks)) // wanted)
    numbers = store.graph.num_nodes * len(store.plan.views) * (1 + store.graph.num_classes * store.keep_logits)
    numbers += store.plan.num_repeats * store.num_weights
    size = min(size, max(1, MOST_BYTES // (4 * numbers)))
    pieces: deque[Piece] = deque()
    for todo in chunks:
        parts = np.array_split(todo, -(-len(todo) // size))
        pieces.extend(Piece(part, completes_chunk=len(parts) == 1) for part in parts)
    return pieces


def _check_build(store: ShadowStore, trained: Trained, report: Callable[[str], None]) -> None:
    """Says so, and writes it down with the models, if a worker's statistics may differ in their last digits."""
    ours = worker_build(store.plan)
    if trained.build != ours:
        note = (
            f"Some models were trained by workers of another build ({ours.differences(trained.build)}): their samples "
            "are the same, their statistics agree to the rounding of single precision."
        )
        if note not in store.arrays.notes:
            store.arrays.add_note(note)
            report(f"{note} The first one was {trained.worker}.")


@contextmanager
def marked(folder: Path | RemoteFolder) -> Iterator[str]:
    """Puts a file into the store by which workers see that they share it; its name is that of a leftover."""
    mark = f".shared.partial-{secrets.token_hex(4)}"
    (folder / mark).write_text("")
    try:
        yield mark
    finally:
        (folder / mark).unlink(missing_ok=True)
