"""Exposure: how many nodes of one released model an adversary can name, how surely, and which."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.attack.challenges import BlockJob, check_attack, map_blocks
from bmpaudit.attack.evidence import Evidence, can_be_attacked, check_samples, folds, prior_probs
from bmpaudit.attack.performance import roc_within_models
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.interfaces import Attack, LeaveOneOutAttack, Progress
from bmpaudit.proof import calibration
from bmpaudit.proof.bounds import check_level, check_log_odds
from bmpaudit.proof.calibration import NodeRecalibration, RawBins, Recalibration, Reliability, ReliabilityCounter
from bmpaudit.samplers.priors import clopper_pearson
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import AnyFloats, Flags, Floats, Floats32, Ints, as_bytes

PRECISIONS = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999)
AT_RISK = 0.99
LOGITS: Floats = scipy.special.logit(np.array(PRECISIONS))
FALSE_POSITIVE_RATE = 0.01
# An exposure is settled by at least so many models, if half of its interval is at most this share of its middle; from
# these names on, only together with less certain names.
MIN_MODELS, MAX_SPREAD, SURE_NAMES = 32, 0.25, 0.9
HARDLY_ANY = 0.5  # nodes per model
LEVEL_OF_GATES = 0.99  # of two limits
SLOWEST_RATE = 0.5  # what an attack misses falls as n^-r with n fitting models: the smallest r allowed for
MIN_HALF = 4  # models that a half has at least
FEW_TO_LEARN_FROM = 4  # models that hold a node
VARIANCE_OF_NODES = 3.0  # of the share of models that name a node, in units of the binomial variance
MIN_STEP = 0.25  # in log-odds, over which it is counted how many more nodes a lower threshold would name


@dataclass(frozen=True, eq=False)
class Band:
    """Means over models with confidence limits."""

    mean: Floats  # shape (P,)
    low: Floats  # lower limits, shape (P,)
    high: Floats  # upper limits, shape (P,)


def band(per_model: Floats, level: float) -> Band:
    """Limits of the mean of independent models by Student's t after Hall's transformation, which undoes the skewness.

    With T = √J (mean - μ)/s and a = skewness/√J, the law of T + a T²/3 + a² T³/27 + a/6 is that of Student's t up to
    terms in 1/J, where that of T itself is only up to 1/√J (Hall 1992, On the removal of skewness by transformation).
    The cubic rises with T, so limits are found by inverting it. Each side is missed about equally often. `per_model`
    has the values of at least two models, shape (J, P).
    """
    num_models = len(per_model)
    mean, deviation = per_model.mean(axis=0), per_model.std(axis=0, ddof=1)
    error = deviation / math.sqrt(num_models)
    # Where models are all alike there is no spread, and so no skewness.
    standard = (per_model - mean) / np.where(deviation > 0, deviation, 1.0)
    skewness = (standard**3).mean(axis=0) / math.sqrt(num_models)
    quantile = float(scipy.special.stdtrit(num_models - 1, (1 + level) / 2))
    return Band(mean, *(mean - error * untransformed(value, skewness) for value in (quantile, -quantile)))


def untransformed(value: float, skewness: Floats) -> Floats:
    """T for which T + a T²/3 + a² T³/27 + a/6 is the value, where a is the skewness."""
    is_skewed = np.abs(skewness) > 1e-6
    a = np.where(is_skewed, skewness, 1.0)
    result: Floats = np.where(is_skewed, 3 / a * (np.cbrt(1 + a * (value - a / 6)) - 1), value)
    return result


@dataclass(frozen=True, eq=False)
class NodeExposure:
    """How often each node is named, among the models for which that is right."""

    node: Ints  # node ids, shape (K,)
    num_models: Ints  # number of models that the node is in (or, for non-members, not in), shape (K,)
    num_named: Ints  # number of these that name it, shape (K,)
    num_wrong: Ints  # number of all other models that name it, wrongly, shape (K,)
    num_possible: Ints  # number of the former that name it, or of which the data do not rule that out, shape (K,)
    level: float  # confidence level of `low` and `high`, for each node by itself

    @property
    def share(self) -> Floats:
        """Share of these models that name the node, shape (K,); NaN without such models."""
        with np.errstate(invalid="ignore"):
            return self.num_named / self.num_models

    @property
    def share_correct(self) -> Floats:
        """Share of the models naming the node that are right, shape (K,); NaN if it is never named."""
        with np.errstate(invalid="ignore"):
            return self.num_named / (self.num_named + self.num_wrong)

    @property
    def low(self) -> Floats:
        """Lower Clopper-Pearson limits of the share, shape (K,)."""
        return clopper_pearson(self.num_named, self.num_models, (1 - self.level) / 2)[0]

    @property
    def high(self) -> Floats:
        """Upper limits of the share of models that might name the node, shape (K,): Clopper-Pearson, or farther.

        How a node answers was learnt from no more models than it is counted in, and an error of that moves it across
        the threshold in all of them: the variance is up to three times that of the count, by simulation. 1 for a node
        in the samples of fewer than four models: no attack could learn from them how it answers.
        """
        high = clopper_pearson(self.num_possible, self.num_models, (1 - self.level) / 2)[1]
        with np.errstate(invalid="ignore"):
            share = self.num_possible / self.num_models
            error = np.sqrt(VARIANCE_OF_NODES * share * (1 - share) / self.num_models)
        farther = np.fmin(share + scipy.special.ndtri((1 + self.level) / 2) * error, 1.0)
        return np.where(self.num_models < FEW_TO_LEARN_FROM, 1.0, np.fmax(high, farther))

    def ranked(self) -> Ints:
        """Positions of the nodes from the most to the least exposed.

        By the lower limit of the share times the share that is correct, then by the share: a node that is named whether
        that is right or not is not exposed, and one that is only named wrongly comes last, with those never named.
        """
        risk = self.low * np.nan_to_num(self.share_correct)
        return np.lexsort((self.node, -np.nan_to_num(self.share), -risk))

    def joined(self, other: NodeExposure) -> NodeExposure:
        """For each node of either what more of the same models name; a node that one of them lacks is the other's."""
        node = np.union1d(self.node, other.node)
        num_models, num_named, num_wrong, num_possible = np.zeros((4, 2, len(node)), dtype=np.int64)
        for k, each in enumerate((self, other)):
            place = np.searchsorted(node, each.node)
            num_models[k, place], num_named[k, place] = each.num_models, each.num_named
            num_wrong[k, place], num_possible[k, place] = each.num_wrong, each.num_possible
        is_other = num_named[1] > num_named[0]
        return NodeExposure(
            node=node,
            num_models=num_models.max(axis=0),
            num_named=np.where(is_other, num_named[1], num_named[0]),
            num_wrong=np.where(is_other, num_wrong[1], num_wrong[0]),
            num_possible=num_possible.max(axis=0),
            level=self.level,
        )


@dataclass(frozen=True, eq=False)
class ExposureCurve:
    """How many nodes of one model are named against how sure the adversary wants to be, for one side.

    A node is named where its calibrated posterior probability is at least the wanted precision. The units are models:
    their nodes depend on each other, and count as one observation.

    The lower limit is about an adversary with as many models to fit and recalibrate on as here, the upper one about an
    adversary with any number of them. Both allow for the models being a sample, and, if it is known, for the effect of
    each model on the recalibration (`band`). The upper limit is the highest of three:

    - that of the number named correctly;
    - that of the number that might be: with few models nobody can tell whether "right in 16 of 16 models" means 99 %.
      So all members count of which an attack was surer than of any non-member of equal strength in the other models;
    - that with what is still to come: if the number grows as e - b n^-r with the number n of models to fit on, going
      from n/2 to n has gained g = b n^-r (2^r - 1), and g/(2^r - 1) is missing at n: 2.4 g at the slowest rate that is
      allowed for, 1/2. Without scores from half the models nothing is known of g.

    Whoever is named at one precision is named at every lower one, so a limit at one precision is one at others too:
    lower limits are raised to those at higher precisions, upper limits lowered to those at lower ones.
    """

    precision: Floats  # posterior probabilities from which on a node is named, ascending, shape (P,)
    correct: Band  # number of nodes named correctly per model
    at_most: Floats  # the upper limits once more, each with 99.5 % confidence by itself, shape (P,): what gates rely on
    named: Floats  # number of nodes named per model, rightly or wrongly, shape (P,)
    # How many nodes the priors alone name correctly, on average, without any model, shape (P,); 0 where priors are not
    # known.
    by_prior: Floats
    total: float  # mean number of nodes per model that could be named correctly
    num_models: int
    level: float  # confidence level of each pair of limits

    @property
    def share_correct(self) -> Floats:
        """Share of the named nodes that are right, shape (P,); NaN if none is named."""
        with np.errstate(invalid="ignore"):
            return self.correct.mean / self.named

    @property
    def is_settled(self) -> Flags:
        """Whether there are enough models to say, at each precision, shape (P,).

        There are at least 32, and the limits lie within 25 % of their middle, or below half a node. From 90 % on, the
        same has to hold at every lower precision: that nobody is named at 99 % means little while more and more are at
        90 %.
        """
        half_width = (self.correct.high - self.correct.low) / 2
        is_narrow = half_width <= MAX_SPREAD * (self.correct.low + self.correct.high) / 2
        each = (is_narrow | (self.correct.high < HARDLY_ANY)) & (self.num_models >= MIN_MODELS)
        is_sure = self.precision >= SURE_NAMES
        return np.concatenate([each[~is_sure], np.logical_and.accumulate(each[is_sure])])

    def at(self, precision: float) -> int:
        """Position of a precision; `InputError` if it is not among those of the curve."""
        (found,) = np.nonzero(np.isclose(self.precision, precision, rtol=0, atol=1e-12))
        if not found.size:
            listed = ", ".join(f"{value:g}" for value in self.precision)
            raise InputError(f"precision must be one of {listed}, got {precision}")
        return int(found[0])

    def joined(self, other: ExposureCurve) -> ExposureCurve:
        """At each precision what names more of the same models, with the higher one of each limit."""
        mine, theirs = self.correct, other.correct
        correct = Band(
            mean=np.maximum(mine.mean, theirs.mean),
            low=np.maximum(mine.low, theirs.low),
            high=np.maximum(mine.high, theirs.high),
        )
        named = np.where(theirs.mean > mine.mean, other.named, self.named)
        return replace(self, correct=correct, at_most=np.maximum(self.at_most, other.at_most), named=named)

    def cells(self, k: int) -> tuple[str, str]:
        """How many are named correctly at the k-th precision, with limits, and the share of the names that is right."""
        share, correct = self.share_correct[k], self.correct
        limits = f"({correct.low[k]:.1f} to {correct.high[k]:.1f})"
        return f"{correct.mean[k]:8.1f} {limits}", "–" if math.isnan(share) else f"{share:.3f}"


@dataclass(frozen=True, eq=False)
class Exposure:
    """What one released model gives away, on average over models."""

    members: ExposureCurve
    non_members: ExposureCurve
    member_nodes: NodeExposure  # how often each node is named as a member at `at_risk`, among the models it is in
    # How often each node is named as a non-member at `at_risk`, among the models it is not in.
    non_member_nodes: NodeExposure
    at_risk: float  # posterior probability from which on a node counts as named in the two tables of nodes

    def statement(self) -> str:
        """What to say of the members in a sentence: how many can be named at `at_risk`, and how many more may be."""
        curve = self.members
        k = curve.at(self.at_risk)
        certainty = f"with {100 * self.at_risk:g} % certainty"
        low, high = _count(curve.correct.low[k]), _count(curve.correct.high[k])
        by_prior = "" if curve.by_prior[k] < 1 else f" (the sampling alone tells {_count(curve.by_prior[k])})"
        if curve.correct.high[k] < HARDLY_ANY:
            return (
                f"at most {high} training nodes per released model can be named {certainty}, by this attack{by_prior}"
            )
        if not curve.is_settled[k]:
            return (
                f"from one released model an adversary can name {low} to {high} of its {curve.total:,.0f} training "
                f"nodes {certainty}{by_prior}; more shadow models would say it more precisely"
            )
        return (
            f"from one released model an adversary can name about {_count(curve.correct.mean[k])} ({low} to {high}) of "
            f"its {curve.total:,.0f} training nodes, and {100 * curve.share_correct[k]:.3g} % of the names are right"
            f"{by_prior}"
        )

    def __str__(self) -> str:
        lines = [
            f"exposure over {self.members.num_models:,} models",
            "  certainty   members named            right   non-members named        right",
        ]
        for k, precision in enumerate(self.members.precision):
            cells = [f"{named:<25}{right:^5}" for named, right in (self.members.cells(k), self.non_members.cells(k))]
            lines.append(f"  {100 * precision:7.1f} %  {cells[0]}   {cells[1]}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A sentence and a table for notebooks."""
        sides = (self.members, self.non_members)
        rows = [
            [f"{100 * precision:g} %", *(cell for curve in sides for cell in curve.cells(k))]
            for k, precision in enumerate(self.members.precision)
        ]
        statement = self.statement()
        head = ["certainty", "members named", "right", "non-members named", "right"]
        return paragraphs([statement[:1].upper() + statement[1:] + "."]) + html_table(head, rows)


def _count(number: float) -> str:
    """Three digits, or all of a larger number."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


@dataclass(frozen=True, eq=False)
class ModelTable:
    """What is found out about each of J models, so that two audits with the same samples can be compared in pairs."""

    index: Ints  # number of each model in its plan, shape (J,)
    num_members: Ints  # number of its members that could be named, shape (J,)
    # Probability that a member's posterior exceeds a non-member's, within the model, shape (J,); NaN if the model has
    # no member or no non-member that could be named.
    auc: Floats
    # Share of members above all but 1 % of the non-members, within the model, shape (J,); NaN as `auc`.
    true_positive_rate: Floats
    precision: Floats  # posterior probabilities from which on a node is named, ascending, shape (P,)
    members_named: Ints  # number of nodes named as members, shape (J, P)
    members_correct: Ints  # number of them that are members, shape (J, P)
    # What each model has done to the mean of `members_correct` through the recalibration, times J, shape (J, P); 0 on
    # average.
    members_effect: Floats
    non_members_named: Ints  # number of nodes named as non-members, shape (J, P)
    non_members_correct: Ints  # number of them that are not members, shape (J, P)
    non_members_effect: Floats  # as `members_effect`, of `non_members_correct`

    def joined(self, other: ModelTable) -> ModelTable:
        """The same models, at each precision as whatever names more of them."""
        columns = dict[str, Any]()
        for side in ("members", "non_members"):
            mine, theirs = (getattr(each, f"{side}_correct").mean(axis=0) for each in (self, other))
            for name in (f"{side}_named", f"{side}_correct", f"{side}_effect"):
                columns[name] = np.where(theirs > mine, getattr(other, name), getattr(self, name))
        return replace(self, **columns)


@dataclass(frozen=True, eq=False)
class ReleaseExposure:
    """What one release gives away, by one attack."""

    exposure: Exposure  # how many nodes of one model can be named, and how often each node is
    reliability: Reliability  # stated against observed probabilities, each model recalibrated on others
    models: ModelTable  # one row for each model
    num_nodes: int  # number of nodes that can be named
    num_left_out: int  # number of nodes that cannot: their prior is 0 or 1, or the attack cannot score them
    num_fitting: int  # number of models that each model's attack was fitted on

    def joined(self, other: ReleaseExposure) -> ReleaseExposure:
        """What the same models expose if another way to name nodes is open too.

        At each precision, and of each node, that is what names more, with the higher one of each limit.
        """
        mine, theirs = self.exposure, other.exposure
        names = ("members", "non_members", "member_nodes", "non_member_nodes")
        parts: dict[str, Any] = {name: getattr(mine, name).joined(getattr(theirs, name)) for name in names}
        return replace(self, exposure=replace(mine, **parts), models=self.models.joined(other.models))

    def __str__(self) -> str:
        return f"{self.exposure}\n{self.reliability}"

    def _repr_html_(self) -> str:
        """What is exposed, and how far to believe it, for notebooks."""
        return self.exposure._repr_html_() + paragraphs([str(self.reliability).partition("\n")[0]])


def expose_log_odds(
    log_odds: AnyFloats,
    memberships: Flags,
    *,
    nodes: Ints | None = None,
    log_odds_half: AnyFloats | None = None,
    level: float = 0.95,
) -> Exposure:
    """Counts what can be named from each of many models.

    A node is named as a member if its posterior probability is at least the wanted precision; so log-odds must be
    calibrated (see `recalibrate`), on other models than these. Limits do not allow for what chance the recalibration
    was subject to; those of `expose` do.

    `nodes` are the ids of the nodes; 0, 1, 2, … if None. The log-odds of an adversary with half as many models to fit
    and recalibrate on, if given, tell how much may still come with more of them (see `ExposureCurve`).

    Raises:
        InputError: if shapes differ, there are fewer than two models, or log-odds are NaN.
    """
    check_level(level)
    values, truth = check_log_odds(log_odds, memberships)
    if len(values) < 2:
        raise InputError(f"there must be at least 2 models to tell how much they differ, got {len(values)}")
    half_correct = None
    if log_odds_half is not None:
        half = np.asarray(log_odds_half)
        if half.shape != values.shape or np.isnan(half).any():
            raise InputError(f"log_odds_half must be numbers of shape {values.shape} as log-odds, got {half.shape}")
        half_correct = [side.moved for side in _count_named(half.astype(values.dtype), truth)]
    ids = np.arange(values.shape[1]) if nodes is None else np.asarray(nodes, dtype=np.int64)
    num_members, counts = float(truth.sum(axis=1).mean()), _count_named(values, truth)
    return exposure_of(counts, half_correct, ids, num_members, values.shape[1] - num_members, level)


def expose(
    attack: Attack,
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    *,
    level: float = 0.95,
    num_threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda _: None,
) -> ReleaseExposure:
    """Finds out what the models of one release give away: how many nodes can be named, how surely, and which.

    Each model is judged by others. It is scored with a fit on all others (on nine tenths of them, if the attack cannot
    leave models out); its posterior log-odds, score plus log prior odds, are recalibrated with a map learnt on the nine
    tenths of the models that it is not part of. (Their scores rest on fits that contain it, as one of many: nothing is
    proven here.) There are three maps: for nodes about which the other half of the models told little, some, and much
    (`strata`), so that a few nodes that give themselves away are not averaged away among many that do not. All is
    repeated within each half of the models, which tells how much more an adversary with more models could name (see
    `ExposureCurve`).

    Scores take 4 bytes for each model and node, in memory or, if that is too much, in a temporary file; all else is
    worked out in blocks of nodes.

    `prior_prob` may be "shadow-frequency", as in `challenge`. The result depends neither on the number of threads nor
    on the executor, whose workers score blocks of nodes; `progress` is called with the number of nodes scored so far,
    of which there are twice as many as nodes.

    Raises:
        InputError: if there are fewer than 2 models, inputs do not fit together, no node can be named, there is no
            member or no non-member, or scores are NaN.
    """
    check_level(level)
    check_attack(attack, models.queries)
    if models.num_models < 2:
        raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
    check_samples(models)
    log_odds = log_prior_odds(prior_probs(prior_prob, models))
    targets, num_models, threads = models.nodes, models.num_models, thread_count(num_threads)
    open_nodes = targets[np.isfinite(log_odds[targets])]
    if not len(open_nodes):
        raise InputError("no node can be named, as all priors are 0 or 1")
    table = matrices.new_matrix(num_models, len(open_nodes))
    left_out = LeftOut.score(attack, models.about(open_nodes), log_odds, table, threads, executor, progress)
    nodes = left_out.nodes
    if not len(nodes):
        raise InputError(f"no node can be named: the attack can score none with {num_models} models")
    if (missing := left_out.missing_side()) is not None:
        raise InputError(f"memberships must hold both sides, got no {missing}")
    auc, true_positive_rate, num_nameable = left_out.by_model()
    diagram = ReliabilityCounter(num_models, table.dtype, threads)
    counts = calibrated(left_out, diagram)
    half = _with_half(attack, left_out, log_odds, lambda done: progress(len(open_nodes) + done))
    num_members, prior = float(models.num_in.sum() / num_models), scipy.special.expit(log_odds[nodes])
    by_side: list[Any] = []
    for side in counts:
        by_side += [side.named.astype(np.int64), side.correct.astype(np.int64), side.effect]
    leaves_one_out = isinstance(attack, LeaveOneOutAttack)
    return ReleaseExposure(
        exposure=exposure_of(counts, half, nodes, num_members, len(targets) - num_members, level, prior),
        reliability=diagram.result(),
        models=ModelTable(models.indices, num_nameable, auc, true_positive_rate, np.array(PRECISIONS), *by_side),
        num_nodes=len(nodes),
        num_left_out=len(targets) - len(nodes),
        num_fitting=num_models - (1 if leaves_one_out else -(-num_models // len(folds(num_models)))),
    )


def _with_half(attack: Attack, whole: LeftOut, log_odds: Floats, progress: Progress) -> list[Floats] | None:
    """What is named correctly with half as many models, on both sides, overwriting the table; None if too few."""
    num_models, middle = whole.models.num_models, whole.models.num_models // 2
    if middle < MIN_HALF:
        return None
    parts = []
    for rows in (slice(0, middle), slice(middle, num_models)):
        models, table = whole.models.take(rows), matrices.take_rows(whole.table, rows)
        num_done = rows.start * len(models.nodes) // num_models
        workers = (whole.num_threads, whole.executor)
        report: Progress = lambda done, before=num_done: progress(before + done // 2)  # type: ignore[misc]  # noqa: E731
        left_out = LeftOut.score(attack, models, log_odds, table, *workers, report)
        # Of a node that half of the models cannot score, nothing is known but the prior.
        left_out = replace(left_out, is_scored=whole.is_scored)
        if left_out.missing_side() is not None:
            return None
        parts.append(calibrated(left_out))
    return [np.concatenate([side.moved for side in sides]) for sides in zip(*parts, strict=True)]


# Posterior log-odds about models that are not in their own fit, and what they name once they are calibrated.


@dataclass(frozen=True, eq=False)
class _PosteriorOdds(BlockJob[tuple[Floats32, Flags]]):
    """Log-odds of all models about a block, shape (J, number of nodes), and which of its nodes could be scored."""

    log_prior_odds: Floats  # of the nodes to score: the log-odds of what cannot be scored

    def run(self, block: slice, num_threads: int, progress: Progress) -> tuple[Floats32, Flags]:
        nodes, prior = self.models.nodes_in(block), self.log_prior_odds[block]
        log_odds = np.empty((self.models.num_models, len(nodes)), dtype=np.float32)
        is_scored = np.ones(len(nodes), dtype=np.bool_)
        for rows, scores in self.scores(block, num_threads, progress):
            is_here = can_be_attacked(nodes, scores.not_auditable)
            llr = scores.log_likelihood_ratio
            known = llr if is_here.all() else np.where(is_here, llr, 0.0)
            np.add(known, prior, out=log_odds[rows], casting="same_kind")  # no array of doubles in between
            is_scored &= is_here
        return log_odds, is_scored


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Posterior log-odds of J models about the K nodes of `models`, none of them in its own fit."""

    models: Evidence
    log_prior_odds: Floats  # of the nodes, shape (K,)
    table: Floats32 | matrices.ScratchMatrix  # log-odds, shape (J, K)
    is_scored: Flags  # which of the nodes could be scored, shape (K,)
    num_threads: int
    executor: Executor | None

    @classmethod
    def score(
        cls,
        attack: Attack,
        models: Evidence,
        log_prior_odds: Floats,
        table: Floats32 | matrices.ScratchMatrix,
        num_threads: int,
        executor: Executor | None,
        progress: Progress,
        fitting: Evidence | None = None,
    ) -> LeftOut:
        """Fills a table, shape (J, K), with the log-odds of each model by a fit on others, those given or the rest."""
        is_scored = np.ones(models.num_targets, dtype=np.bool_)
        prior = log_prior_odds[models.nodes]
        job = _PosteriorOdds(attack, models, fitting, prior)
        for block, made in map_blocks(job, num_threads=num_threads, executor=executor, progress=progress):
            table[:, block], is_scored[block] = made
        return cls(models, prior, table, is_scored, num_threads, executor)

    def part(self, rows: slice, is_in: Flags) -> LeftOut:
        """Some of the models about those of the scored nodes that are in a part, shape as `nodes`."""
        is_scored = self.is_scored.copy()
        is_scored[self.is_scored] = is_in
        models, table = self.models.take(rows), matrices.take_rows(self.table, rows)
        return replace(self, models=models, table=table, is_scored=is_scored)

    @property
    def nodes(self) -> Ints:
        """Ids of the nodes that could be scored."""
        return self.models.nodes[self.is_scored]

    def missing_side(self) -> str | None:
        """What memberships do not hold: a member, or a non-member; None if they hold both."""
        num_in = self.models.about(self.nodes).num_in
        if not num_in.any():
            return "member"
        return "non-member" if (num_in == self.models.num_models).all() else None

    def blocks(self) -> Iterator[tuple[slice, Floats32, Flags]]:
        """All nodes that could be scored, a block at a time: their places, log-odds (a copy) and truth."""
        num_before = 0
        for block in matrices.node_blocks(*reversed(self.table.shape)):
            is_here, nodes = self.is_scored[block], self.models.nodes_in(block)
            here = self.table[:, block]
            values = np.array(here if is_here.all() else here[:, is_here], order="C")
            truth = matrices.columns(self.models.memberships, nodes[is_here])
            yield slice(num_before, num_before + values.shape[1]), values, truth
            num_before += values.shape[1]

    def some(self, num_parts: int = 1) -> tuple[Floats32, Flags]:
        """Log-odds and truth of all nodes that could be scored, or evenly spaced ones if too many for so many parts."""
        most = calibration.MAX_CHALLENGES // num_parts // self.models.num_models
        places = matrices.evenly_spaced(np.flatnonzero(self.is_scored), max(1, most))
        truth = matrices.columns(self.models.memberships, self.models.nodes[places])
        return matrices.columns(self.table, places), truth

    def whole_models(self) -> Iterator[tuple[Floats32, Flags]]:
        """Log-odds and truth of all nodes that could be scored, some models at a time."""
        places, nodes = np.flatnonzero(self.is_scored), self.nodes
        for rows in matrices.model_blocks(*self.table.shape):
            yield matrices.columns(self.table[rows], places), matrices.columns(self.models.memberships[rows], nodes)

    def by_model(self) -> tuple[Floats, Floats, Ints]:
        """AUC, true positive rate and number of members of each model, over its nodes; each of shape (J,)."""
        parts = []
        for values, truth in self.whole_models():
            roc = roc_within_models(values, truth, FALSE_POSITIVE_RATE, num_threads=self.num_threads)
            parts.append((*roc, np.count_nonzero(truth, axis=1)))
        auc, rate, num_members = (np.concatenate(each) for each in zip(*parts, strict=True))
        return auc, rate, num_members


def calibrated(left_out: LeftOut, diagram: ReliabilityCounter | None = None) -> BothSides:
    """Calibrates the log-odds of each model with a map learnt on others, and counts what they name.

    There is a map for each stratum of nodes; for half of the models, the other half tells which is a node's. The
    calibrated probabilities are compared with the truth in the diagram, if there is one.
    """
    of_halves, _ = _strata(left_out)
    of_strata: list[BothSides] = []
    for number in range(calibration.NUM_STRATA):
        halves = [(rows, stratum == number) for rows, stratum in of_halves]
        if any(is_in.any() for _, is_in in halves):
            of_strata.append(_calibrated_stratum(left_out, halves, diagram))
    return BothSides(
        NamedNodes.summed([counts.members for counts in of_strata]),
        NamedNodes.summed([counts.non_members for counts in of_strata]),
    )


def recalibrate_nodes(left_out: LeftOut) -> NodeRecalibration:
    """Learns a recalibration for each stratum of nodes, for a model that is none of these.

    All models tell which stratum is a node's. What its map is learnt from are nodes that the other half of the models
    puts there: nodes that only chance made strong do not make it too sure.
    """
    of_halves, stratum = _strata(left_out)
    maps, extremes, learnt_about = list[Recalibration](), list[tuple[float, float]](), list[int]()
    for number in range(calibration.NUM_STRATA):
        parts = [(rows, left_out.part(rows, of_half == number)) for rows, of_half in of_halves]
        if not any(len(part.nodes) for _, part in parts):
            continue
        made, beyond = _binned([part for _, part in parts]), Extremes.of(left_out.models.num_models, parts)
        learnt_about.append(number)
        maps.append(made if isinstance(made, Recalibration) else calibration.recalibrate_bins(made).recalibration)
        extremes.append((np.fmin.reduce(beyond.lowest), np.fmax.reduce(beyond.highest)))
    # Two halves may each put a node elsewhere than both together, one of them no higher.
    place = np.maximum(np.searchsorted(learnt_about, stratum, side="right") - 1, 0)
    lowest, highest = np.array(extremes).T
    return NodeRecalibration(place, tuple(maps), lowest, highest, left_out.models.num_models)


def _binned(parts: list[LeftOut]) -> RawBins | Recalibration:
    """Log-odds of models about nodes, and of other models about others, in bins; a map if they are all the same."""
    some = [part.some(len(parts)) for part in parts]
    bins = RawBins.of(some, num_threads=parts[0].num_threads)
    if bins is not None:
        return bins
    log_odds, truth = (np.concatenate([each.ravel() for each in arrays]) for arrays in zip(*some, strict=True))
    return calibration.constant_map(log_odds, truth)


def _strata(left_out: LeftOut) -> tuple[list[tuple[slice, Ints]], Ints]:
    """The stratum of each node that could be scored: for each half of the models by the other half, and by all."""
    num_models, prior = left_out.models.num_models, left_out.log_prior_odds[left_out.is_scored]
    middle = num_models // 2
    if middle < MIN_HALF:
        one = np.zeros(len(prior), dtype=np.int64)
        return [(slice(0, num_models), one)], one
    halves = [slice(0, middle), slice(middle, num_models)]
    gain = np.empty((2, len(prior)))
    for places, values, truth in left_out.blocks():
        for half, rows in enumerate(halves):
            gain[half, places] = calibration.gains(values[rows], truth[rows], prior[places])
    sizes = [rows.stop - rows.start for rows in halves]
    by_other = [(rows, calibration.strata(gain[1 - half], sizes[1 - half], prior)) for half, rows in enumerate(halves)]
    return by_other, calibration.strata(gain.sum(axis=0), num_models, prior)


def _calibrated_stratum(
    left_out: LeftOut, halves: list[tuple[slice, Flags]], diagram: ReliabilityCounter | None
) -> BothSides:
    """What is named in one stratum: of some models these nodes, of others those.

    Each model's log-odds go through the map that was learnt on all folds but its own; a map learnt on all models tells
    how far each of them pulls (`map_pulls`).
    """
    num_models, num_threads = left_out.models.num_models, left_out.num_threads
    parts = [(rows, np.flatnonzero(is_in), left_out.part(rows, is_in)) for rows, is_in in halves]
    bins = _binned([part for _, _, part in parts])
    fold_rows, pulls = folds(num_models), None
    if isinstance(bins, Recalibration):
        maps = [bins] * len(fold_rows)
    else:
        whole = calibration.recalibrate_bins(bins)
        others = [np.delete(np.arange(num_models), rows) for rows in fold_rows]
        maps = [calibration.recalibrate_bins(bins, each, whole.regression).recalibration for each in others]
        pulls = map_pulls(whole, bins)
    lowest, highest = Extremes.of(num_models, [(rows, part) for rows, _, part in parts]).of_others(fold_rows)
    map_of = np.repeat(np.arange(len(maps)), [rows.stop - rows.start for rows in fold_rows])
    log_odds = np.stack([each.log_odds for each in maps])
    counter = NamingCounter((num_models, len(left_out.nodes)), pulls, left_out.table.dtype, num_threads)
    for rows, nodes, part in parts:
        for places, values, truth in part.blocks():
            is_beyond = values < lowest[rows, None], values > highest[rows, None]
            _native.interpolate_rows(values, maps[0].raw, log_odds, map_of[rows], num_threads)
            counter.add(rows, nodes[places], values, truth, *is_beyond)
            if diagram is not None:
                diagram.add(rows, values, truth)
    return counter.result()


class Extremes:
    """The lowest log-odds of any member and the highest of any non-member, of each model; NaN if there is none."""

    def __init__(self, num_models: int) -> None:
        self.lowest, self.highest = np.full((2, num_models), np.nan)

    @classmethod
    def of(cls, num_models: int, parts: Sequence[tuple[slice, LeftOut]]) -> Extremes:
        """Those of some models about some nodes, and of others about others."""
        extremes = cls(num_models)
        for rows, part in parts:
            for _, values, truth in part.blocks():
                extremes.add(rows, values, truth)
        return extremes

    def add(self, rows: slice, log_odds: AnyFloats, memberships: Flags) -> None:
        """Adds some models' log-odds and memberships, one row each."""
        members = np.fmin.reduce(np.where(memberships, log_odds, np.nan), axis=1, initial=np.nan)
        others = np.fmax.reduce(np.where(memberships, np.nan, log_odds), axis=1, initial=np.nan)
        self.lowest[rows] = np.fmin(self.lowest[rows], members)
        self.highest[rows] = np.fmax(self.highest[rows], others)

    def of_others(self, parts: list[slice]) -> tuple[Floats, Floats]:
        """For each model those of all models in other parts, both of shape (J,); infinite if there is none."""
        lowest, highest = np.empty_like(self.lowest), np.empty_like(self.highest)
        for rows in parts:
            lowest[rows] = np.fmin.reduce(np.delete(self.lowest, rows), initial=np.inf)
            highest[rows] = np.fmax.reduce(np.delete(self.highest, rows), initial=-np.inf)
        return lowest, highest


# Which nodes of which models are named, and how that moves with the recalibration.


class NamedNodes(NamedTuple):
    """What is named of J models about K nodes, on one side: by model, shape (J, P), and by node, shape (K,).

    The effects are what each model has done to the mean through the recalibration, times J: 0 on average, and
    everywhere if the recalibration is taken as given. There may be many more names to gain than to lose.
    """

    named: Floats  # number of nodes named in each model at each of the P precisions
    correct: Floats  # number of those that are right
    possible: Floats  # number of those, and of others that might be named rightly
    rises: Floats  # effects on what is named correctly if the map names more than it should
    falls: Floats  # the same if it names less
    node_models: Ints  # number of models for which it is right to name the node
    node_named: Ints  # number of these that name it at `AT_RISK`
    node_wrong: Ints  # number of all others that name it at `AT_RISK`
    node_possible: Ints  # number of the former that name it, or might

    @classmethod
    def summed(cls, parts: Sequence[NamedNodes]) -> NamedNodes:
        """What is named in all of some strata, each of which has counts of all models and all nodes."""
        sums: Any = map(sum, zip(*parts, strict=True))
        return cls(*sums)

    @property
    def effect(self) -> Floats:
        """The mean of both effects, shape (J, P)."""
        return (self.rises + self.falls) / 2

    @property
    def moved(self) -> Floats:
        """What is correct in each model, with what the model has done to the others, shape (J, P)."""
        return self.correct + self.effect


class BothSides(NamedTuple):
    """What is named as members and as non-members."""

    members: NamedNodes
    non_members: NamedNodes


def _count_named(log_odds: AnyFloats, memberships: Flags) -> BothSides:
    """Counts what calibrated log-odds name, both of shape (J, K); the map that made them is taken as given."""
    num_models, num_nodes = log_odds.shape
    rows, beyond = slice(0, num_models), Extremes(num_models)
    beyond.add(rows, log_odds, memberships)
    lowest, highest = beyond.of_others(folds(num_models))
    counter = NamingCounter(log_odds.shape, None, log_odds.dtype, thread_count(None))
    is_beyond = log_odds < lowest[:, None], log_odds > highest[:, None]
    counter.add(rows, np.arange(num_nodes), log_odds, memberships, *is_beyond)
    return counter.result()


class NamingCounter:
    """Counts what log-odds of shape (J, K) name, some models and nodes at a time.

    `pulls` are how each model has moved the map that makes the log-odds (`map_pulls`); None takes the map as given.
    """

    def __init__(
        self, shape: tuple[int, ...], pulls: tuple[Floats, Floats] | None, dtype: np.dtype[Any], num_threads: int
    ) -> None:
        num_models, num_nodes = shape
        nothing = np.zeros((num_models, len(LOGITS)))
        self._pulls, self._num_threads = (nothing, nothing) if pulls is None else pulls, num_threads
        # As far as the map may well be off: where numbers named bend, that is what counts.
        self._steps = [np.maximum(MIN_STEP, 2 * pull.std(axis=0) / math.sqrt(num_models)) for pull in self._pulls]
        # Lower log-odds, those wanted, and higher ones.
        wanted = [(LOGITS + np.stack([-step, 0 * step, step])).astype(dtype) for step in self._steps]
        # A non-member is named up to minus the log-odds wanted: not from the next larger number on.
        self._from = [wanted[0], np.nextafter(-wanted[1], dtype.type(np.inf))]
        self._thresholds = np.unique(np.concatenate(self._from, axis=None))
        self._reached, self._members = np.zeros((2, num_models, len(self._thresholds) + 1), dtype=np.int64)
        self._risk = float(dtype.type(scipy.special.logit(AT_RISK)))
        self._beyond = np.zeros((2, num_models), dtype=np.int64)  # by side
        self._nodes, self._possible = np.zeros((4, num_nodes), dtype=np.int64), np.zeros((2, num_nodes), dtype=np.int64)
        self._num_in, self._num_seen = np.zeros((2, num_nodes), dtype=np.int64)

    def add(
        self, rows: slice, nodes: Ints, log_odds: AnyFloats, memberships: Flags, is_below: Flags, is_above: Flags
    ) -> None:
        """Counts calibrated log-odds and memberships of some models about some nodes, one row a model.

        A log-odds may lie below those of all members, or above those of all non-members, of the other models.
        """
        values, flags = np.ascontiguousarray(log_odds), as_bytes(memberships)
        counts = (self._reached[rows], self._members[rows], None)
        _native.count_by_threshold(values, flags, self._thresholds, self._num_threads, *counts)
        named = np.zeros((4, values.shape[1]), dtype=np.int64)
        _native.count_named_nodes(values, flags, self._risk, -self._risk, self._num_threads, named)
        self._nodes[:, nodes] += named
        self._num_in[nodes] += np.count_nonzero(memberships, axis=0)
        self._num_seen[nodes] += len(values)
        for side, (is_so, is_named, is_right) in enumerate(
            ((is_above, values >= self._risk, memberships), (is_below, values <= -self._risk, ~memberships))
        ):
            self._beyond[side, rows] += np.count_nonzero(is_so & is_right, axis=1)
            self._possible[side, nodes] += np.count_nonzero((is_so | is_named) & is_right, axis=0)

    def result(self) -> BothSides:
        """What is named, after all models and nodes were added."""
        # Values at place p have reached the first p thresholds.
        reached, members = (
            counts[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64) for counts in (self._reached, self._members)
        )
        others = reached - members
        above, below = (np.searchsorted(self._thresholds, each) + 1 for each in self._from)
        in_named, in_wrong, out_wrong, out_named = self._nodes
        num_out = self._num_seen - self._num_in
        named_out, correct_out = (counts[:, :1, None] - counts[:, below] for counts in (reached, others))
        return BothSides(
            self._side(0, reached[:, above], members[:, above], self._num_in, in_named, in_wrong),
            self._side(1, named_out, correct_out, num_out, out_named, out_wrong),
        )

    def _side(self, side: int, named: Floats, correct: Floats, num: Ints, num_named: Ints, wrong: Ints) -> NamedNodes:
        """One side, from what is named and correct at lower log-odds, at those wanted and at higher: (J, 3, P)."""
        more, wanted, less = correct.mean(axis=0)
        rises, falls = (self._pulls[side] * (step / self._steps[side]) for step in (more - wanted, wanted - less))
        # What might be named and what is are both all that is surer than something: one is part of the other.
        possible = np.maximum(correct[:, 1], self._beyond[side][:, None])
        of_nodes = num, num_named, wrong, self._possible[side]
        return NamedNodes(named[:, 1], correct[:, 1], possible, rises, falls, *of_nodes)


def map_pulls(learnt: calibration.LearntMap, bins: RawBins) -> tuple[Floats, Floats]:
    """How far each model in the bins has moved the map learnt on all of them, towards naming more, times J.

    The regression is an M-estimate, so to first order the log-odds that it gives move by the sum over models
    of what the model's residuals pull them by. The mean number named moves by that, times the number of nodes per unit
    of log-odds at the threshold. At the thresholds of members and of non-members, both of shape (J, P), 0 on average.
    """
    prob = scipy.special.expit(learnt.regression(bins.mean_raw))
    residuals = bins.num_members - bins.num_challenges * prob

    def pulls(sign: float) -> Floats:
        thresholds = learnt.regression.inverse(sign * LOGITS)
        moves = sign * residuals @ learnt.regression.sensitivity(thresholds, bins.mean_raw).T
        result: Floats = bins.num_models * (moves - moves.mean(axis=0))
        return result

    return pulls(1.0), pulls(-1.0)


# From counts to curves.


def exposure_of(
    counts: BothSides,
    half: list[Floats] | None,
    nodes: Ints,
    num_members: float,
    num_non_members: float,
    level: float,
    prior_prob: Floats | None = None,
) -> Exposure:
    """The exposure from what is named of each model, and rightly with half as many models to fit and recalibrate on.

    `num_members` and `num_non_members` are means per model, with those that cannot be named; priors of the nodes tell
    what the sampling alone names.
    """
    prior = np.zeros(0) if prior_prob is None else prior_prob

    def side(k: int, total: float, probs: Floats) -> tuple[ExposureCurve, NodeExposure]:
        named = counts[k]
        by_prior = np.array([probs[probs >= precision].sum() for precision in PRECISIONS])
        curve = _curve(named, None if half is None else half[k], total, level, by_prior)
        return curve, NodeExposure(
            nodes, named.node_models, named.node_named, named.node_wrong, named.node_possible, level
        )

    members, member_nodes = side(0, num_members, prior)
    non_members, non_member_nodes = side(1, num_non_members, 1 - prior)
    return Exposure(members, non_members, member_nodes, non_member_nodes, AT_RISK)


def _curve(counts: NamedNodes, half: Floats | None, total: float, level: float, by_prior: Floats) -> ExposureCurve:
    """The curve of one side; `ExposureCurve` says what its limits are and why."""
    num_models = len(counts.named)
    # Of each model what is named, what might be, and what more models to fit on would add.
    candidates = [counts.correct + counts.rises, counts.possible + counts.rises]
    if half is not None:
        candidates.append(counts.moved + (counts.moved - half) / (2**SLOWEST_RATE - 1))

    def highest(confidence: float) -> Floats:
        # That no model names anyone does not show that none ever will (the rule of three).
        least = -math.log(1 - confidence) / num_models
        ends = np.max([band(each, confidence).high for each in candidates], axis=0)
        result: Floats = np.minimum.accumulate(np.maximum(np.minimum(ends, total), least))
        return result

    low = np.maximum(band(counts.correct + counts.falls, level).low, 0.0)
    return ExposureCurve(
        precision=np.array(PRECISIONS),
        correct=Band(counts.correct.mean(axis=0), np.maximum.accumulate(low[::-1])[::-1], highest(level)),
        at_most=highest(LEVEL_OF_GATES),
        named=counts.named.mean(axis=0),
        by_prior=by_prior,
        total=total,
        num_models=num_models,
        level=level,
    )
