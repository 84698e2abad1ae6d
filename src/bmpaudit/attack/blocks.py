"""Work on scores in blocks of nodes: in this process, or on the workers of an executor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from bmpaudit import tables
from bmpaudit.arrays import Flags
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.scores import Scores
from bmpaudit.attack.scoring import Round, rounds, score_round
from bmpaudit.tables import LazyTable, node_blocks

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, Progress

Answer = TypeVar("Answer")

SMALLEST_SENT = 1.25
"""Challenges that are worth sending to workers, as a multiple of `tables.MAX_BLOCK`."""


class BlockScores(NamedTuple):
    """What some of the models score about the nodes of a block."""

    rows: slice
    scores: Scores


@dataclass(frozen=True, eq=False)
class BlockJob(ABC, Generic[Answer]):
    """What is done with each block of nodes; sent to each worker once.

    Attributes:
        attack: Any attack.
        models: Models to score about the nodes of `models.nodes`.
        fitting: Other models to fit on, if any.
    """

    attack: Attack
    models: Evidence
    fitting: Evidence | None

    @abstractmethod
    def run(self, block: slice, num_threads: int, progress: Progress) -> Answer:
        """Does one block.

        Args:
            block: Positions among the nodes to score.
            num_threads: Number of threads; the answer must not depend on it.
            progress: Called with the number of nodes of the block that are done, as a mean over models.
        """

    @property
    def num_models(self) -> int:
        """Models to score or to fit on."""
        return self.models.num_models + (0 if self.fitting is None else self.fitting.num_models)

    def blocks(self) -> Iterator[slice]:
        """The nodes to score, in blocks that fit into memory."""
        return node_blocks(self.models.num_targets, self.num_models)

    def parts(self, block: slice) -> Iterator[Round]:
        """How every model gets scored about a block; see `rounds`."""
        for each in self._rounds if self._is_lazy else rounds(self.attack, self.models, self.fitting):
            yield self.within(block, each)

    def within(self, block: slice, each: Round) -> Round:
        """The same round, with the nodes of a block to score."""
        is_whole = block == slice(0, self.models.num_targets)
        return each if is_whole else each.about(self.models.nodes_in(block))

    def scores(
        self, block: slice, num_threads: int, progress: Progress, is_asked: Flags | None = None
    ) -> Iterator[BlockScores]:
        """Scores all models about a block, no model being in its own fit; see `score_round`."""
        num_models = self.models.num_models
        for each in self.parts(block):
            yield BlockScores(each.rows, score_round(self.attack, each, num_threads=num_threads, is_asked=is_asked))
            progress((block.stop - block.start) * each.rows.indices(num_models)[1] // num_models)

    @property
    def _is_lazy(self) -> bool:
        return isinstance(next(iter(self.models.statistics.values())), LazyTable)

    @cached_property
    def _rounds(self) -> list[Round]:
        """Kept for all blocks, with what an attack works out about them; parts of arrays would be copies of them."""
        return list(rounds(self.attack, self.models, self.fitting))


def map_blocks(
    job: BlockJob[Answer], *, num_threads: int, executor: Executor | None, progress: Progress
) -> Iterator[tuple[slice, Answer]]:
    """Does every block: here one after the other, or on workers of one thread each. The answers are the same.

    With an executor, the first block is done here all the same. What an attack works out about the whole graph, such as
    the means over neighbours, is then there to be sent to the workers. And what takes a few seconds stays here.

    Args:
        job: What to do.
        num_threads: Number of threads in this process.
        executor: Workers, if any.
        progress: Called with the number of nodes done so far.

    Yields:
        A block and its answer, in the order of the nodes.
    """
    blocks = list(job.blocks())
    is_large = blocks[-1].stop * job.num_models > SMALLEST_SENT * tables.MAX_BLOCK
    num_here = 1 if executor is not None and is_large else len(blocks)
    for block in blocks[:num_here]:
        yield block, job.run(block, num_threads, lambda done, before=block.start: progress(before + done))  # type: ignore[misc]
        progress(block.stop)
    if executor is not None and blocks[num_here:]:
        from bmpaudit.attack.on_workers import run_on_workers  # which needs Zarr

        for block, answer in run_on_workers(executor, job, blocks[num_here:], num_threads):
            yield block, answer
            progress(block.stop)
