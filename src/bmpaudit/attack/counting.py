"""Errors of any attack under any rules, counted in blocks of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Floats, Ints, as_bytes
from bmpaudit.attack.blocks import BlockJob, map_blocks
from bmpaudit.attack.gaussian import NATIVE_RULES, Gaussian
from bmpaudit.attack.not_auditable import NotAuditable
from bmpaudit.attack.rules import RuleErrors, Strong, errors_at
from bmpaudit.attack.scores import Scores
from bmpaudit.attack.scoring import Round
from bmpaudit.tables import columns, take_rows

if TYPE_CHECKING:
    from bmpaudit.interfaces import DecisionRule, Progress

_Counted: TypeAlias = Iterator[tuple[slice, Scores, Mapping[str, RuleErrors]]]
"""Models, their scores, and their errors by rule."""


@dataclass(frozen=True, eq=False)
class Scored:
    """What came of the scores about K nodes; meaningless for nodes that some round could not score.

    Attributes:
        errors: By rule.
        not_auditable: Nodes that could not be scored in at least one round.
        log_likelihood_ratio: Scores that were to be kept, shape (J, number of them).
    """

    errors: Mapping[str, RuleErrors]
    not_auditable: tuple[NotAuditable, ...]
    log_likelihood_ratio: Floats


@dataclass(frozen=True, eq=False)
class CountErrors(BlockJob[Scored]):
    """Counts the errors of each rule.

    The Gaussian attack under the built-in rules is counted in one native pass, anything else from scores.

    Attributes:
        rules: Decision rules by name.
        log_prior_odds: log η of the K targets, shape (K,), finite.
        threshold: Decision scores above it mean "member".
        keep: Positions of the targets whose scores are returned, ascending, 8 bytes per challenge.
    """

    rules: Mapping[str, DecisionRule]
    log_prior_odds: Floats
    threshold: float
    keep: Ints

    def run(self, block: slice, num_threads: int, progress: Progress) -> Scored:
        """Errors about the nodes of a block."""
        errors = {name: RuleErrors(*np.zeros((2, block.stop - block.start), dtype=np.int64)) for name in self.rules}
        keep = self.keep[self.kept_of(block)] - block.start
        kept = np.empty((self.models.num_models, len(keep)))
        reasons: list[NotAuditable] = []
        is_native = type(self.attack) is Gaussian and all(type(rule) in NATIVE_RULES for rule in self.rules.values())
        count = self._count_natively if is_native else self._count_from_scores
        for rows, scores, made in count(block, num_threads, progress):
            reasons += scores.not_auditable
            if len(keep):
                kept[rows] = columns(scores.log_likelihood_ratio, keep)
            for name, total in errors.items():
                for side, number in zip(total, made[name], strict=True):
                    side += number
        return Scored(errors, tuple(reasons), kept)

    def kept_of(self, block: slice) -> slice:
        """Which of the scores that are to be kept are those of a block."""
        return slice(*np.searchsorted(self.keep, (block.start, block.stop)).tolist())

    def _count_natively(self, block: slice, num_threads: int, _: Progress) -> _Counted:
        part = self.within(block, Round(slice(None), self.models, self.fitting))
        scores = np.empty((self.models.num_models if len(self.keep) else 0, block.stop - block.start))
        made = cast(Gaussian, self.attack).count_errors(
            part.challenged,
            part.fitting,
            self.log_prior_odds[block],
            self.threshold,
            num_threads=num_threads,
            scores=scores if len(self.keep) else None,
        )
        errors = {name: made.errors[type(rule)] for name, rule in self.rules.items()}
        yield part.rows, Scores(scores, made.not_auditable), errors

    def _count_from_scores(self, block: slice, num_threads: int, progress: Progress) -> _Counted:
        nodes, log_odds = self.models.nodes_in(block), self.log_prior_odds[block]
        for rows, scores in self.scores(block, num_threads, progress):
            members = columns(take_rows(self.models.memberships, rows), nodes)
            llr, errors = scores.log_likelihood_ratio, {}
            for name, rule in self.rules.items():
                if type(rule) in NATIVE_RULES:
                    added = log_odds if type(rule) is Strong else np.zeros_like(log_odds)
                    made = np.empty((2, len(log_odds)), dtype=np.int64)
                    _native.count_decisions(llr, as_bytes(members), added, self.threshold, num_threads, made)
                    errors[name] = RuleErrors(*made)
                else:
                    errors[name] = errors_at(rule.decision_score(llr, log_odds), members, self.threshold)
            yield rows, scores, errors


def count_errors(
    job: CountErrors, *, num_threads: int, executor: Executor | None = None, progress: Progress = lambda _: None
) -> Scored:
    """Scores every model about every target, and counts the errors of each rule; see `map_blocks`."""
    num_models, num_nodes = job.models.num_models, job.models.num_targets
    kept = np.empty((num_models, len(job.keep)))
    totals = {name: RuleErrors(*np.empty((2, num_nodes), dtype=np.int64)) for name in job.rules}
    reasons: list[NotAuditable] = []
    for block, scored in map_blocks(job, num_threads=num_threads, executor=executor, progress=progress):
        reasons += scored.not_auditable
        kept[:, job.kept_of(block)] = scored.log_likelihood_ratio
        for name, made in scored.errors.items():
            totals[name].false_positives[block] = made.false_positives
            totals[name].false_negatives[block] = made.false_negatives
    return Scored(totals, tuple(reasons), kept)
