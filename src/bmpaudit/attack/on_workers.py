"""Blocks of nodes on the workers of an executor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bmpaudit.attack.blocks import Answer, BlockJob
from bmpaudit.executors import crew_of
from bmpaudit.shadow.coordinator import marked

AHEAD = 3
"""Blocks per worker that may be done before the first that is not: their answers wait in memory."""


@dataclass(frozen=True, eq=False)
class _Sent:
    """A job, and files that a worker must see to be able to read the models."""

    job: BlockJob[Any]
    marks: tuple[Path, ...]


def _run_block(sent: _Sent, block: slice) -> Any:
    """None if this worker cannot read the models."""
    return sent.job.run(block, 1, lambda _: None) if all(mark.exists() for mark in sent.marks) else None


def run_on_workers(
    executor: Executor, job: BlockJob[Answer], blocks: Sequence[slice], num_threads: int
) -> Iterator[tuple[slice, Answer]]:
    """Does blocks on workers of one thread each, and yields the answers in the order of the blocks.

    Models that are held in memory are sent to each worker once; others are read from the store, and a block of a worker
    that does not share it is done here.
    """
    crew = crew_of(executor)
    to_yield, to_send = deque(blocks), deque(blocks)
    tasks: deque[slice] = deque()
    answers: dict[int, Answer | None] = {}

    def send() -> None:
        while to_send and len(to_yield) - len(to_send) < AHEAD * crew.width:
            tasks.append(to_send.popleft())

    with _sent_to_workers(job) as sent:
        send()
        for done, answer in crew.run(_run_block, sent, tasks):
            answers[done.start] = answer
            while to_yield and to_yield[0].start in answers:
                block = to_yield.popleft()
                made = answers.pop(block.start)
                yield block, job.run(block, num_threads, lambda _: None) if made is None else made
            send()


@contextmanager
def _sent_to_workers(job: BlockJob[Any]) -> Iterator[_Sent]:
    """Marks the folders from which workers have to read."""
    fitting = None if job.fitting is None else job.fitting.without_targets()
    sent = replace(job, models=job.models.without_targets(), fitting=fitting)
    evidence = [sent.models, *([] if fitting is None else [fitting])]
    for each in evidence:
        each.share_neighbour_means()
    folders = {folder.resolve() for each in evidence for folder in each.folders}
    with ExitStack() as stack:
        yield _Sent(sent, tuple(folder / stack.enter_context(marked(folder)) for folder in sorted(folders)))
