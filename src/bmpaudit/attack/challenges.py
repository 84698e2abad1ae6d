"""Every model is challenged about every node: the one way from an attack to its errors (Algorithms 1 and 4).

No model is in its own fit. Scores are worked through in blocks of nodes, in this process or on workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack import evidence
from bmpaudit.attack.counts import COLUMNS, ErrorCounts
from bmpaudit.attack.evidence import Evidence, NotAuditable, Scores, can_be_attacked
from bmpaudit.attack.gaussian import Gaussian
from bmpaudit.attack.rules import DEFAULT_SETTINGS, DecisionSettings, RuleErrors, Strong, Weak, as_rule, log_prior_odds
from bmpaudit.interfaces import Attack, DecisionRule, LeaveOneOutAttack, Progress
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError, one_line, thread_count
from bmpaudit.util.matrices import LazyMatrix, columns, node_blocks, take_rows
from bmpaudit.util.values import Flags, Floats, Ints, as_bytes
from bmpaudit.workers import crew_of, marked

Answer = TypeVar("Answer")
DEFAULT_ATTACK = Gaussian()
SMALLEST_SENT = 1.25  # times `matrices.MAX_BLOCK`: challenges that are worth sending to workers


def check_attack(attack: Attack, queries: Sequence[str] | None = None) -> None:
    """Raises `InputError` if something is no attack, or cannot use several queries at once."""
    if not isinstance(attack, Attack):
        raise InputError(f"attack must have fuses_queries and score(...), got {attack!r}")
    if queries is not None and not attack.fuses_queries and len(queries) != 1:
        name = type(attack).__name__
        raise InputError(f"attack {name} does not fuse queries and takes one at a time, got {', '.join(queries)}")


# How every model gets scored without being in its own fit.


class Round(NamedTuple):
    """Models to score, and others to fit on; without these, the attack leaves each model out of its own fit."""

    rows: slice
    challenged: Evidence
    fitting: Evidence | None

    def scores(self, attack: Attack, num_threads: int, is_asked: Flags | None = None) -> Scores:
        """What an attack says, checked: float64, -∞ for nodes that it could not score or was not asked about."""
        name, nodes = type(attack).__name__, self.challenged.nodes
        shape = (self.challenged.num_models, len(nodes))
        try:
            returned: Any  # whatever its annotation says
            if self.fitting is not None:
                returned = attack.score(self.fitting, self.challenged, num_threads=num_threads)
            else:
                returned = cast(LeaveOneOutAttack, attack).score_left_out(self.challenged, num_threads=num_threads)
        except InputError:
            raise
        except Exception as failure:
            raise InputError(f"attack {name} failed: {one_line(failure)}") from failure
        if not isinstance(returned, Scores):
            got = "None" if returned is None else type(returned).__name__
            raise InputError(f"attack {name} must return Scores, got {got}")
        try:
            values = np.ascontiguousarray(returned.log_likelihood_ratio, dtype=np.float64)
        except (TypeError, ValueError) as failure:
            raise InputError(f"attack {name} must return numbers as scores: {one_line(failure)}") from failure
        if values.shape != shape:
            raise InputError(f"attack {name} must return scores of shape {shape}, got {values.shape}")
        is_scored = can_be_attacked(nodes, returned.not_auditable)
        if is_asked is not None:
            is_scored &= is_asked
        if not is_scored.all():
            values = np.where(is_scored, values, -np.inf)
        is_nan = np.isnan(values)
        if is_nan.any():
            row, column = np.unravel_index(int(is_nan.argmax()), shape)
            model, node = self.challenged.indices[row], self.challenged.label(int(nodes[column]))
            raise InputError(f"attack {name} must not return NaN, got one for model {model}, {node}")
        return Scores(values, returned.not_auditable)


def rounds(attack: Attack, models: Evidence, fitting: Evidence | None) -> Iterator[Round]:
    """How every model gets scored: by other models (Algorithm 4), else by leaving it out (Algorithm 1).

    If the attack cannot do that, each of 10 contiguous parts of the models is scored with a fit on the others.
    """
    if fitting is not None:
        yield Round(slice(None), models.without_memberships(), fitting)
    elif isinstance(attack, LeaveOneOutAttack):
        yield Round(slice(None), models, None)
    elif models.num_models < 2:
        raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
    else:
        for rows in evidence.folds(models.num_models):
            others = np.delete(np.arange(models.num_models), rows)
            yield Round(rows, models.take(rows).without_memberships(), models.take(others))


# Work on scores in blocks of nodes: in this process, or on the workers of an executor.


@dataclass(frozen=True, eq=False)
class BlockJob(ABC, Generic[Answer]):
    """What is done with each block of `models.nodes`, by other models to fit on if any; sent to each worker once."""

    attack: Attack
    models: Evidence
    fitting: Evidence | None

    @abstractmethod
    def run(self, block: slice, num_threads: int, progress: Progress) -> Answer:
        """Does one block of the nodes to score, telling how many are done; the answer is the same by any threads."""

    def within(self, block: slice, each: Round) -> Round:
        """The same round, with the nodes of a block to score."""
        if block == slice(0, self.models.num_targets):
            return each
        nodes = self.models.nodes_in(block)
        fitting = None if each.fitting is None else each.fitting.about(nodes)
        return Round(each.rows, each.challenged.about(nodes), fitting)

    def scores(
        self, block: slice, num_threads: int, progress: Progress, is_asked: Flags | None = None
    ) -> Iterator[tuple[slice, Scores]]:
        """Rows of models, and their scores about a block, no model being in its own fit."""
        num_models = self.models.num_models
        is_lazy = isinstance(next(iter(self.models.statistics.values())), LazyMatrix)
        for each in self._rounds if is_lazy else rounds(self.attack, self.models, self.fitting):
            yield each.rows, self.within(block, each).scores(self.attack, num_threads, is_asked)
            progress((block.stop - block.start) * each.rows.indices(num_models)[1] // num_models)

    @cached_property
    def _rounds(self) -> list[Round]:
        """Kept for all blocks, with what an attack works out about them; parts of arrays would be copies of them."""
        return list(rounds(self.attack, self.models, self.fitting))


def map_blocks(
    job: BlockJob[Answer], *, num_threads: int, executor: Executor | None, progress: Progress
) -> Iterator[tuple[slice, Answer]]:
    """Blocks and their answers in the order of the nodes, done here or on workers of one thread each.

    With an executor, the first block is done here all the same. What an attack works out about the whole graph, such as
    the means over neighbours, is then there to be sent to the workers. And what takes a few seconds stays here.
    """
    num_models = job.models.num_models + (0 if job.fitting is None else job.fitting.num_models)
    blocks = list(node_blocks(job.models.num_targets, num_models))
    is_large = blocks[-1].stop * num_models > SMALLEST_SENT * matrices.MAX_BLOCK
    num_here = 1 if executor is not None and is_large else len(blocks)
    for block in blocks[:num_here]:
        yield block, job.run(block, num_threads, lambda done, before=block.start: progress(before + done))  # type: ignore[misc]
        progress(block.stop)
    if executor is not None and blocks[num_here:]:
        for block, answer in run_on_workers(executor, job, blocks[num_here:], num_threads):
            yield block, answer
            progress(block.stop)


AHEAD = 3
"""Blocks per worker that may be done before the first that is not: their answers wait in memory."""


def _run_block(sent: tuple[BlockJob[Any], Sequence[Path]], block: slice) -> Any:
    """None if this worker cannot read the models: it must see some files."""
    job, marks = sent
    return job.run(block, 1, lambda _: None) if all(mark.exists() for mark in marks) else None


def run_on_workers(
    executor: Executor, job: BlockJob[Answer], blocks: Sequence[slice], num_threads: int
) -> Iterator[tuple[slice, Answer]]:
    """Does blocks on workers of one thread each, and yields the answers in the order of the blocks.

    Models that are held in memory are sent to each worker once; others are read from the store, whose folders are
    marked, and a block of a worker that does not see the marks is done here.
    """
    crew = crew_of(executor)
    to_yield, to_send = deque(blocks), deque(blocks)
    tasks: deque[slice] = deque()
    answers: dict[int, Answer | None] = {}

    def send() -> None:
        while to_send and len(to_yield) - len(to_send) < AHEAD * crew.width:
            tasks.append(to_send.popleft())

    fitting = None if job.fitting is None else job.fitting.without_targets()
    sent = replace(job, models=job.models.without_targets(), fitting=fitting)
    read = [sent.models] if fitting is None else [sent.models, fitting]
    for each in read:
        each.share_neighbour_means()
    folders = {folder.resolve() for each in read for folder in each.folders}
    with ExitStack() as stack:
        marks = [folder / stack.enter_context(marked(folder)) for folder in sorted(folders)]
        send()
        for done, answer in crew.run(_run_block, (sent, marks), tasks):
            answers[done.start] = answer
            while to_yield and to_yield[0].start in answers:
                block = to_yield.popleft()
                made = answers.pop(block.start)
                yield block, job.run(block, num_threads, lambda _: None) if made is None else made
            send()


# Errors of any attack under any rules.


class ScoredBlock(NamedTuple):
    """What came of the scores about a block of nodes; meaningless for nodes that some round could not score."""

    errors: dict[str, Ints]  # by rule, false positives and false negatives, shape (2, number of nodes)
    not_auditable: list[NotAuditable]  # nodes that could not be scored in at least one round
    kept: Floats  # scores that were to be kept, shape (J, number of them)


@dataclass(frozen=True, eq=False)
class CountErrors(BlockJob[ScoredBlock]):
    """Counts the errors of each rule.

    The Gaussian attack under the built-in rules is counted in one native pass, anything else from scores.
    """

    rules: Mapping[str, DecisionRule]
    log_prior_odds: Floats  # of the K targets, shape (K,), finite
    threshold: float  # decision scores above it mean "member"
    keep: Ints  # positions of the targets whose scores are returned, ascending, 8 bytes per challenge

    def kept_of(self, block: slice) -> slice:
        """Which of the scores that are to be kept are those of a block."""
        return slice(*np.searchsorted(self.keep, (block.start, block.stop)).tolist())

    def run(self, block: slice, num_threads: int, progress: Progress) -> ScoredBlock:
        """Errors about the nodes of a block."""
        keep = self.keep[self.kept_of(block)] - block.start
        if type(self.attack) is Gaussian and all(type(rule) in (Strong, Weak) for rule in self.rules.values()):
            return self._count_natively(block, keep, num_threads)
        nodes, log_odds = self.models.nodes_in(block), self.log_prior_odds[block]
        errors = {name: np.zeros((2, len(nodes)), dtype=np.int64) for name in self.rules}
        kept, reasons = np.empty((self.models.num_models, len(keep))), list[NotAuditable]()
        for rows, scores in self.scores(block, num_threads, progress):
            llr, members = scores.log_likelihood_ratio, columns(take_rows(self.models.memberships, rows), nodes)
            reasons += scores.not_auditable
            kept[rows] = columns(llr, keep)
            for name, rule in self.rules.items():
                if type(rule) in (Strong, Weak):
                    added = log_odds if type(rule) is Strong else np.zeros_like(log_odds)
                    made = np.empty((2, len(nodes)), dtype=np.int64)
                    _native.count_decisions(llr, as_bytes(members), added, self.threshold, num_threads, made)
                    errors[name] += made
                else:
                    says_member = rule.decision_score(llr, log_odds) > self.threshold
                    wrong = (says_member & ~members, ~says_member & members)
                    errors[name] += np.array([np.count_nonzero(side, axis=0) for side in wrong])
        return ScoredBlock(errors, reasons, kept)

    def _count_natively(self, block: slice, keep: Ints, num_threads: int) -> ScoredBlock:
        part = self.within(block, Round(slice(None), self.models, self.fitting))
        scores = np.empty((self.models.num_models, block.stop - block.start)) if len(self.keep) else None
        weak, strong, reasons = cast(Gaussian, self.attack).count_errors(
            part.challenged,
            as_bytes(part.challenged.at_targets(self.models.memberships)),
            part.fitting,
            self.log_prior_odds[block],
            self.threshold,
            num_threads=num_threads,
            scores=scores,
        )
        errors = {name: strong if type(rule) is Strong else weak for name, rule in self.rules.items()}
        kept = np.empty((self.models.num_models, 0)) if scores is None else columns(scores, keep)
        return ScoredBlock(errors, list(reasons), kept)


@dataclass(frozen=True, eq=False)
class ChallengeScores:
    """Scores of all challenges (model, node), with the truth."""

    node: Ints  # ids of the K nodes, shape (K,)
    log_likelihood_ratio: Floats  # the attack's scores, shape (J, K); -∞ for nodes that it could not score
    memberships: Flags  # the truth, shape (J, K)
    prior_prob: Floats  # γ(1), shape (K,)
    is_scored: Flags  # whether a node could be attacked, shape (K,); others are only here if they were to be kept
    threshold: float  # log(c_0/c_1): a decision score above it means "member"

    def of(self, rule: str | DecisionRule) -> Floats:
        """Decision scores of a rule, shape (J, K); -∞ for nodes that could not be attacked."""
        # A node that was kept may have a prior of 0 or 1; it is never decided to be a member.
        log_odds = np.where(self.is_scored, log_prior_odds(self.prior_prob), 0.0)
        values = as_rule(rule).decision_score(self.log_likelihood_ratio, log_odds)
        return values if self.is_scored.all() else np.where(self.is_scored, values, -np.inf)


@dataclass(frozen=True, eq=False)
class Challenges:
    """Outcome of all challenges (model, node) of one attack."""

    node: Ints  # ids of the K target nodes, shape (K,)
    num_out: Ints  # n_0, number of challenged models without each of them, shape (K,)
    num_in: Ints  # n_1, number of challenged models with each of them, shape (K,)
    errors: Mapping[str, RuleErrors]  # by rule, the errors on each target
    prior_prob: Floats  # γ(1), shape (K,)
    is_counted: Flags  # which of the targets go into the counts, shape (K,)
    not_auditable: tuple[NotAuditable, ...]  # the targets that could not be attacked, and why
    scores: ChallengeScores | None = None  # scores of the counted targets, if they were asked for

    def error_counts(self, rule: str) -> ErrorCounts:
        """Errors of one rule, by its name; `InputError` if there is no such rule, or no node could be attacked."""
        if rule not in self.errors:
            raise InputError(f"rule must be one of {', '.join(self.errors)}, got rule={rule!r}")
        values: list[Any] = [self.node, self.num_out, self.num_in, *self.errors[rule], self.prior_prob]
        columns = dict(zip(COLUMNS, (each[self.is_counted] for each in values), strict=True))
        return ErrorCounts(**columns, not_auditable=self.not_auditable)


def challenge(
    attack: Attack,
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    rules: Mapping[str, DecisionRule],
    *,
    fitting: Evidence | None = None,
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    with_scores: bool = False,
    most_scores: int | None = None,
    num_threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda _: None,
) -> Challenges:
    """Challenges each model about each target node, and counts the errors of each rule.

    No model is in its own fit. With `fitting`, all models are challenged with a fit on those (Algorithm 4). Without,
    each model is challenged with a fit on all others (Algorithm 1) if the attack can leave models out, else with a fit
    on the nine tenths of the models that it is not part of. Nodes are taken in blocks, so that memory stays bounded.

    `prior_prob` may be "shadow-frequency": how often each node is in the samples of the models that are fitted on. The
    targets are node ids, or flags for all nodes; those of `models` if None. Scores, if they are kept, take 8 bytes per
    challenge; of more than `most_scores` challenges only those about evenly spaced nodes are kept. The result depends
    neither on the number of threads nor on the executor, whose workers do blocks of nodes; `progress` is called with
    the number of target nodes done so far.

    Raises:
        InputError: if the inputs do not fit together, or scores are asked for and no node can be attacked.
    """
    check_attack(attack, models.queries)
    if not rules:
        raise InputError("there must be at least one decision rule, got none")
    for name, rule in rules.items():
        if not isinstance(rule, DecisionRule):
            raise InputError(f"rule {name} must have decision_score(...), got {rule!r}")
    if targets is not None:
        models = models.about(targets)
    if fitting is not None:
        evidence.check_fitting_models(fitting, models)
        fitting = fitting.about(models.targets)
    nodes, num_in = models.nodes, models.num_in
    prior = evidence.prior_probs(prior_prob, models if fitting is None else fitting)[nodes]
    log_odds = log_prior_odds(prior)
    is_certain = np.isinf(log_odds)
    keep = np.arange(len(nodes) if with_scores else 0)
    if most_scores is not None and len(keep) > (most := max(1, most_scores // models.num_models)):
        keep = np.linspace(0, len(keep) - 1, most).astype(np.int64)
    job = CountErrors(attack, models, fitting, rules, np.where(is_certain, 0.0, log_odds), settings.threshold, keep)
    kept = np.empty((models.num_models, len(keep)))
    errors = {name: RuleErrors(*np.empty((2, len(nodes)), dtype=np.int64)) for name in rules}
    reasons: dict[int, NotAuditable] = {}
    for block, made in map_blocks(job, num_threads=thread_count(num_threads), executor=executor, progress=progress):
        kept[:, job.kept_of(block)] = made.kept
        for each in made.not_auditable:
            reasons.setdefault(each.node, each)
        for name, counts in made.errors.items():
            errors[name].false_positives[block], errors[name].false_negatives[block] = counts
    for node, prob in zip(nodes[is_certain].tolist(), prior[is_certain], strict=True):
        reasons.setdefault(node, models.not_auditable(node, f"its prior probability is {prob:g}"))
    not_auditable = tuple(reasons[node] for node in nodes.tolist() if node in reasons)
    is_scored = can_be_attacked(nodes, not_auditable)
    for wrong in errors.values():  # every decision about a node that could not be attacked is "non-member"
        wrong.false_positives[~is_scored], wrong.false_negatives[~is_scored] = 0, num_in[~is_scored]
    is_counted = is_scored | (settings.unfittable == "non-member")
    challenges = Challenges(nodes, models.num_models - num_in, num_in, errors, prior, is_counted, not_auditable)
    if not with_scores:
        return challenges
    if not is_counted.any():
        challenges.error_counts(next(iter(rules)))  # raises, and says why
    kept[:, ~is_scored[keep]] = -np.inf
    if not is_counted[keep].all():
        kept, keep = kept[:, is_counted[keep]], keep[is_counted[keep]]
    memberships = columns(models.memberships, nodes[keep])
    scores = ChallengeScores(nodes[keep], kept, memberships, prior[keep], is_scored[keep], settings.threshold)
    return replace(challenges, scores=scores)


def node_mia(
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    *,
    fitting: Evidence | None = None,
    attack: Attack = DEFAULT_ATTACK,
    rule: str | DecisionRule = "strong",
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> ErrorCounts:
    """Node-MIA: each model is challenged with hypotheses fitted on other models, of the same set or of another one.

    In the same set (Algorithm 1), challenges share the models they are fitted on, and the counts of a node vary more
    than binomial counts would. With `fitting` models (Algorithm 4) the challenges of a node are independent given the
    hypotheses, and its counts binomial; `split_models` divides one set. All else is as in `challenge`, which counts the
    errors of several rules at once; the rule is given by its name or itself.

    Raises:
        InputError: if the inputs do not fit together, or no node can be attacked.
    """
    options: dict[str, Any] = {"settings": settings, "targets": targets, "num_threads": num_threads}
    made = challenge(attack, models, prior_prob, {"rule": as_rule(rule)}, fitting=fitting, **options)
    return made.error_counts("rule")
