"""Counting the errors of an attack on the workers of an executor, a block of nodes each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bmpaudit.arrays import Floats, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.rules import RuleErrors
from bmpaudit.attack.scoring import Scored, count_errors
from bmpaudit.executors import crew_of
from bmpaudit.shadow.coordinator import marked
from bmpaudit.shadow.stored_table import StoredTable
from bmpaudit.tables import node_blocks

if TYPE_CHECKING:
    from bmpaudit.interfaces import Attack, DecisionRule, Progress


@dataclass(frozen=True, eq=False)
class _Job:
    """The arguments of `count_errors`, and files that a worker must see to be able to read the models."""

    attack: Attack
    rules: Mapping[str, DecisionRule]
    models: Evidence
    fitting: Evidence | None
    log_prior_odds: Floats
    threshold: float
    keep: Ints
    marks: tuple[Path, ...]

    def count(self, block: slice, num_threads: int) -> Scored:
        """Counts the errors on some of the targets."""
        nodes = self.models.nodes[block]
        first, last = np.searchsorted(self.keep, (block.start, block.stop))
        return count_errors(
            self.attack,
            self.rules,
            self.models.about(nodes),
            None if self.fitting is None else self.fitting.about(nodes),
            self.log_prior_odds[block],
            self.threshold,
            num_threads=num_threads,
            keep=self.keep[first:last] - block.start,
            progress=lambda _: None,
        )


def _count_block(job: _Job, block: slice) -> Scored | None:
    """None if this worker cannot read the models."""
    return job.count(block, num_threads=1) if all(mark.exists() for mark in job.marks) else None


def count_errors_on(
    executor: Executor,
    attack: Attack,
    rules: Mapping[str, DecisionRule],
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    threshold: float,
    *,
    num_threads: int,
    keep: Ints,
    progress: Progress,
) -> Scored:
    """As `count_errors`, with the same blocks of nodes and so the same result, on workers of one thread each.

    Models that are held in memory are sent to each worker once; others are read from the store, and a block of a worker
    that does not share it is counted here. What fits into a single block is counted here, too.
    """
    num_nodes = len(models.nodes)
    num_models = models.num_models + (0 if fitting is None else fitting.num_models)
    blocks = deque(node_blocks(num_nodes, num_models))
    arguments = (attack, rules, models, fitting, log_prior_odds, threshold)
    if len(blocks) == 1:
        return count_errors(*arguments, num_threads=num_threads, keep=keep, progress=progress)
    kept = np.empty((models.num_models, len(keep)))
    totals = {name: RuleErrors(*np.zeros((2, num_nodes), dtype=np.int64)) for name in rules}
    reasons, num_done = {}, 0
    with _seen_by_workers(models, fitting) as marks:
        job = _Job(
            attack,
            rules,
            models.without_results(),
            None if fitting is None else fitting.without_results(),
            log_prior_odds,
            threshold,
            keep,
            marks,
        )
        for block, answer in crew_of(executor).run(_count_block, job, blocks):
            scored = answer or job.count(block, num_threads)
            first, last = np.searchsorted(keep, (block.start, block.stop))
            kept[:, first:last] = scored.log_likelihood_ratio
            for name, made in scored.errors.items():
                totals[name].false_positives[block] = made.false_positives
                totals[name].false_negatives[block] = made.false_negatives
            reasons[block.start] = scored.not_auditable
            num_done += block.stop - block.start
            progress(num_done)
    return Scored(totals, tuple(reason for start in sorted(reasons) for reason in reasons[start]), kept)


@contextmanager
def _seen_by_workers(models: Evidence, fitting: Evidence | None) -> Iterator[tuple[Path, ...]]:
    """Marks the folders from which workers have to read."""
    tables = [*models.statistics.values(), *(() if fitting is None else fitting.statistics.values())]
    stored = [table.folder for table in tables if isinstance(table, StoredTable)]
    folders = {folder.resolve() for folder in stored if isinstance(folder, Path)}
    with ExitStack() as stack:
        yield tuple(folder / stack.enter_context(marked(folder)) for folder in sorted(folders))
