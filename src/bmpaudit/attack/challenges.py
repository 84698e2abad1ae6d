"""Every model is challenged about every node: the one way from an attack to its errors (Algorithms 1 and 4).

No model is in its own fit. Scores are worked through in blocks of nodes, in this process or on workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.evidence import (
    SHADOW_FREQUENCY,
    ChallengeScores,
    Evidence,
    NotAuditable,
    Scores,
    can_be_attacked,
    check_fitting_models,
    prior_probs,
    with_certain_priors,
)
from bmpaudit.attack.gaussian import NATIVE_RULES, Gaussian
from bmpaudit.attack.rules import (
    DEFAULT_SETTINGS,
    DecisionSettings,
    RuleErrors,
    Strong,
    as_rule,
    errors_at,
    log_prior_odds,
)
from bmpaudit.interfaces import Attack, DecisionRule, LeaveOneOutAttack, Progress
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError, one_line, thread_count
from bmpaudit.util.matrices import LazyMatrix, columns, node_blocks, take_rows
from bmpaudit.util.values import Flags, Floats, Ints, as_bytes
from bmpaudit.workers import crew_of, marked

NUM_FOLDS = 10


class Round(NamedTuple):
    """Models to score, and others to fit on; without these, the attack leaves each model out of its own fit."""

    rows: slice
    challenged: Evidence
    fitting: Evidence | None

    def about(self, nodes: Ints) -> Round:
        """The same models, with fewer nodes to score."""
        fitting = None if self.fitting is None else self.fitting.about(nodes)
        return Round(self.rows, self.challenged.about(nodes), fitting)


def rounds(attack: Attack, models: Evidence, fitting: Evidence | None) -> Iterator[Round]:
    """How every model gets scored without being in its own fit.

    With `fitting`, once (Algorithm 4). Else by the attack's own leave-one-out (Algorithm 1), or if it has none, by
    folds: each of 10 contiguous parts of the models is scored with a fit on the others. Models of a plan are
    independent, so any division that does not look at them will do.

    Raises:
        InputError: if there is a single model and nothing to fit on.
    """
    if fitting is not None:
        yield Round(slice(None), models.without_memberships(), fitting)
    elif isinstance(attack, LeaveOneOutAttack):
        yield Round(slice(None), models, None)
    else:
        num_models = models.num_models
        if num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {num_models}")
        num_folds = min(NUM_FOLDS, num_models)
        for first, last in pairwise(num_models * fold // num_folds for fold in range(num_folds + 1)):
            others = np.concatenate([np.arange(first), np.arange(last, num_models)])
            rows = slice(first, last)
            yield Round(rows, models.take(rows).without_memberships(), models.take(others))


def score_round(attack: Attack, each: Round, *, num_threads: int, is_asked: Flags | None = None) -> Scores:
    """What an attack says in one round, checked: float64, -∞ for nodes that it could not score or was not asked about.

    Args:
        attack: Any attack.
        each: The round.
        num_threads: Passed on to the attack.
        is_asked: Which of the round's nodes to look at, shape (K,); all if None.

    Raises:
        InputError: if the attack fails, or returns something else than scores of the right shape without NaN.
    """
    name, nodes = type(attack).__name__, each.challenged.nodes
    shape = (each.challenged.num_models, len(nodes))
    try:
        if each.fitting is not None:
            scores = attack.score(each.fitting, each.challenged, num_threads=num_threads)
        else:
            scores = cast(LeaveOneOutAttack, attack).score_left_out(each.challenged, num_threads=num_threads)
    except InputError:
        raise
    except Exception as failure:
        raise InputError(f"attack {name} failed: {one_line(failure)}") from failure
    returned: object = scores  # whatever its annotation says
    if not isinstance(returned, Scores):
        raise InputError(f"attack {name} must return Scores, got {_named(returned)}")
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
        model, node = each.challenged.indices[row], each.challenged.label(int(nodes[column]))
        raise InputError(f"attack {name} must not return NaN, got one for model {model}, {node}")
    return Scores(values, returned.not_auditable)


def _named(value: object) -> str:
    return "None" if value is None else type(value).__name__


# Work on scores in blocks of nodes: in this process, or on the workers of an executor.


Answer = TypeVar("Answer")

SMALLEST_SENT = 1.25
"""Challenges that are worth sending to workers, as a multiple of `matrices.MAX_BLOCK`."""


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
        return isinstance(next(iter(self.models.statistics.values())), LazyMatrix)

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
    is_large = blocks[-1].stop * job.num_models > SMALLEST_SENT * matrices.MAX_BLOCK
    num_here = 1 if executor is not None and is_large else len(blocks)
    for block in blocks[:num_here]:
        yield block, job.run(block, num_threads, lambda done, before=block.start: progress(before + done))  # type: ignore[misc]
        progress(block.stop)
    if executor is not None and blocks[num_here:]:
        for block, answer in run_on_workers(executor, job, blocks[num_here:], num_threads):
            yield block, answer
            progress(block.stop)


# Blocks of nodes on the workers of an executor.


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


# Errors of any attack under any rules, counted in blocks of nodes.


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


# Every model is challenged about every node: the one way from an attack to its errors.


@dataclass(frozen=True, eq=False)
class Challenges:
    """Outcome of all challenges (model, node) of one attack.

    Attributes:
        node: Ids of the K target nodes, shape (K,).
        num_out: n_0, number of challenged models without each of them, shape (K,).
        num_in: n_1, number of challenged models with each of them, shape (K,).
        errors: By rule, the errors on each target.
        prior_prob: γ(1), shape (K,).
        is_counted: Which of the targets go into the counts, shape (K,).
        not_auditable: The targets that could not be attacked, and why.
        scores: Scores of the counted targets, if they were asked for.
    """

    node: Ints
    num_out: Ints
    num_in: Ints
    errors: Mapping[str, RuleErrors]
    prior_prob: Floats
    is_counted: Flags
    not_auditable: tuple[NotAuditable, ...]
    scores: ChallengeScores | None = None

    def error_counts(self, rule: str) -> ErrorCounts:
        """Errors of one rule, by its name.

        Raises:
            InputError: if there is no such rule, or no node could be attacked.
        """
        if rule not in self.errors:
            raise InputError(f"rule must be one of {', '.join(self.errors)}, got rule={rule!r}")
        counted, errors = self.is_counted, self.errors[rule]
        return ErrorCounts(
            node=self.node[counted],
            num_out=self.num_out[counted],
            num_in=self.num_in[counted],
            false_positives=errors.false_positives[counted],
            false_negatives=errors.false_negatives[counted],
            prior_prob=self.prior_prob[counted],
            not_auditable=self.not_auditable,
        )


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
    on the nine tenths of the models that it is not part of.

    Nodes are taken in blocks, so that memory stays bounded. The Gaussian attack with the built-in rules takes one
    native pass that keeps no scores; both ways give the same counts.

    Args:
        attack: Any attack; one that does not fuse queries takes evidence of a single query.
        models: Models to challenge.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency": how often each node is in the samples of the
            models that are fitted on.
        rules: Decision rules by name.
        fitting: Other models to fit on.
        settings: Costs of errors, and what to do about nodes that cannot be attacked.
        targets: The target set 𝒯 as node ids, or flags for all nodes; those of `models` if None.
        with_scores: Whether to keep the scores, 8 bytes per challenge.
        most_scores: If there are more challenges, the scores of evenly spaced nodes are kept, so many that there are no
            more than that.
        num_threads: Number of threads; the result does not depend on it.
        executor: Workers that count the errors in blocks of nodes, if there is more than one block; the result does not
            depend on it.
        progress: Called with the number of target nodes done so far.

    Raises:
        InputError: if the inputs do not fit together, or scores are asked for and no node can be attacked.
    """
    _check(attack, models, rules)
    if targets is not None:
        models = models.about(targets)
    if fitting is not None:
        check_fitting_models(fitting, models)
        fitting = fitting.about(models.targets)
    nodes = models.nodes
    prior = prior_probs(prior_prob, models if fitting is None else fitting)[nodes]
    log_odds = log_prior_odds(prior)
    log_odds[np.isinf(log_odds)] = 0.0  # nothing to decide there, see below
    keep = np.zeros(0, dtype=np.int64)
    if with_scores:
        keep = thinned(len(nodes), models.num_models, most_scores)
    job = CountErrors(attack, models, fitting, rules, log_odds, settings.threshold, keep)
    scored = count_errors(job, num_threads=thread_count(num_threads), executor=executor, progress=progress)
    reasons = with_certain_priors(scored.not_auditable, nodes, prior, models.node_names)
    is_scored = can_be_attacked(nodes, reasons)
    is_counted = is_scored | (settings.unfittable == "non-member")
    challenges = Challenges(
        node=nodes,
        num_out=models.num_models - models.num_in,
        num_in=models.num_in,
        errors={name: _where_scored(errors, is_scored, models.num_in) for name, errors in scored.errors.items()},
        prior_prob=prior,
        is_counted=is_counted,
        not_auditable=reasons,
    )
    if not with_scores:
        return challenges
    if not is_counted.any():
        challenges.error_counts(next(iter(rules)))  # raises, and says why
    return replace(challenges, scores=_scores(challenges, models, keep, is_scored, scored, settings.threshold))


def thinned(num_nodes: int, num_models: int, most_challenges: int | None) -> Ints:
    """Positions of evenly spaced nodes, so many that there are no more challenges than that; of all nodes if None."""
    most = num_nodes if most_challenges is None else max(1, most_challenges // num_models)
    return np.arange(num_nodes) if num_nodes <= most else np.linspace(0, num_nodes - 1, most).astype(np.int64)


def _scores(
    made: Challenges, models: Evidence, keep: Ints, is_scored: Flags, scored: Scored, threshold: float
) -> ChallengeScores:
    """Scores of those of the kept targets that are counted."""
    values, is_counted, nodes = scored.log_likelihood_ratio, made.is_counted[keep], made.node[keep]
    values[:, ~is_scored[keep]] = -np.inf
    if not is_counted.all():
        values, keep, nodes = values[:, is_counted], keep[is_counted], nodes[is_counted]
    memberships = columns(models.memberships, nodes)
    return ChallengeScores(nodes, values, memberships, made.prior_prob[keep], is_scored[keep], threshold)


def _check(attack: Attack, models: Evidence, rules: Mapping[str, DecisionRule]) -> None:
    if not isinstance(attack, Attack):
        raise InputError(f"attack must have fuses_queries and score(...), got {attack!r}")
    if not attack.fuses_queries and len(models.queries) != 1:
        name = type(attack).__name__
        raise InputError(
            f"attack {name} does not fuse queries and takes one at a time, got {', '.join(models.queries)}"
        )
    if not rules:
        raise InputError("there must be at least one decision rule, got none")
    for name, rule in rules.items():
        if not isinstance(rule, DecisionRule):
            raise InputError(f"rule {name} must have decision_score(...), got {rule!r}")


def _where_scored(errors: RuleErrors, is_scored: Flags, num_in: Ints) -> RuleErrors:
    """Every decision about a node that could not be attacked is "non-member"."""
    return RuleErrors(
        np.where(is_scored, errors.false_positives, 0), np.where(is_scored, errors.false_negatives, num_in)
    )


# Algorithms 1 and 4: how often a membership inference attack errs about each node.


DEFAULT_ATTACK = Gaussian()


def node_mia(
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    *,
    attack: Attack = DEFAULT_ATTACK,
    rule: str | DecisionRule = "strong",
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> ErrorCounts:
    """Algorithm 1 (Node-MIA): each model is challenged with hypotheses fitted on other models of the same set.

    As challenges share the models they are fitted on, the counts of a node vary more than binomial counts would;
    `split_mia` gives binomial ones. `challenge` counts the errors of several rules at once.

    Args:
        models: Models to challenge, as `Evidence.of_runs` makes them from shadow models.
        prior_prob: γ(1) of all nodes of the graph, as `prior_probabilities(graph, sampler).prob` gives it; or
            "shadow-frequency" as in the paper: how often each node is in the samples of `models`.
        attack: Attack that scores the challenges.
        rule: Decision rule, by name or itself: `strong` weighs the likelihood ratio with the prior odds, `weak` does
            not.
        settings: Costs of errors, and what to do about nodes that cannot be attacked.
        targets: The target set 𝒯 as node ids, or flags for all nodes; all nodes if None.
        num_threads: Number of threads; the result does not depend on it.

    Raises:
        InputError: if the inputs do not fit together, or no node can be attacked.
    """
    return _mia(models, None, prior_prob, attack, rule, settings, targets, num_threads)


def split_mia(
    fitting: Evidence,
    challenged: Evidence,
    prior_prob: npt.ArrayLike | str = SHADOW_FREQUENCY,
    *,
    attack: Attack = DEFAULT_ATTACK,
    rule: str | DecisionRule = "strong",
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    num_threads: int | None = None,
) -> ErrorCounts:
    """Algorithm 4: the models that are challenged are not those that the hypotheses are fitted on.

    Given the fitted hypotheses, the challenges of a node are independent and its counts binomial. `split_models`
    divides one set of models.

    Args:
        fitting: Models to fit on.
        challenged: Models to challenge; none of them may be among `fitting`.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency" as in the paper: over the fitting models.
        attack: See `node_mia`.
        rule: See `node_mia`.
        settings: See `node_mia`.
        targets: See `node_mia`.
        num_threads: See `node_mia`.

    Raises:
        InputError: if the inputs do not fit together, or no node can be attacked.
    """
    return _mia(challenged, fitting, prior_prob, attack, rule, settings, targets, num_threads)


def _mia(
    models: Evidence,
    fitting: Evidence | None,
    prior_prob: npt.ArrayLike | str,
    attack: Attack,
    rule: str | DecisionRule,
    settings: DecisionSettings,
    targets: npt.ArrayLike | None,
    num_threads: int | None,
) -> ErrorCounts:
    rules = {"rule": as_rule(rule)}
    options = {"fitting": fitting, "settings": settings, "targets": targets, "num_threads": num_threads}
    return challenge(attack, models, prior_prob, rules, **options).error_counts("rule")  # type: ignore[arg-type]
