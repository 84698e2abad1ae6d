"""Exposure: how many nodes of one released model an adversary can name, how surely, and which."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.attack.challenges import BlockJob, check_attack, map_blocks
from bmpaudit.attack.evidence import Evidence, can_be_attacked, folds, prior_probs
from bmpaudit.attack.performance import roc_within_models
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.interfaces import Attack, LeaveOneOutAttack, Progress
from bmpaudit.proof.bounds import check_level, check_log_odds
from bmpaudit.proof.calibration import (
    LearntMap,
    RawBins,
    Recalibration,
    Reliability,
    ReliabilityCounter,
    constant_map,
    looked_at,
    recalibrate_bins,
)
from bmpaudit.samplers.priors import clopper_pearson
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import ScratchMatrix, columns, model_blocks, new_matrix, node_blocks, take_rows
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import AnyFloats, Flags, Floats, Floats32, Ints, as_bytes

PRECISIONS = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999)
AT_RISK = 0.99
LOGITS: Floats = scipy.special.logit(np.array(PRECISIONS))
FALSE_POSITIVE_RATE = 0.01
# An exposure is settled by at least so many models, if its interval is as narrow as this share of its middle, or as one
# node; from these names on, only together with less certain names.
MIN_MODELS, MAX_SPREAD, ONE_NODE, SURE_NAMES = 32, 0.25, 1.0, 0.9
HARDLY_ANY = 0.5  # nodes per model
# What an attack misses falls as n^-r with n fitting models: the smallest r allowed for, and the one that was seen.
SLOWEST_RATE, USUAL_RATE = 0.5, 0.7
MIN_HALF = 4  # models that a half has at least
MIN_STEP = 0.25  # in log-odds, over which it is counted how many more nodes a lower threshold would name


@dataclass(frozen=True, eq=False)
class Band:
    """Means over models with confidence limits.

    Attributes:
        mean: Means, shape (P,).
        low: Lower limits, shape (P,).
        high: Upper limits, shape (P,).
    """

    mean: Floats
    low: Floats
    high: Floats

    @property
    def half_width(self) -> Floats:
        """Half of the distance between the limits, shape (P,)."""
        return (self.high - self.low) / 2

    def clipped(self, lowest: float, highest: float, mean: Floats) -> Band:
        """The same with limits held to what is possible, and the mean to what was counted."""
        return Band(mean, np.maximum(self.low, lowest), np.minimum(self.high, highest))


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
    """How often each node is named, among the models for which that is right.

    Attributes:
        node: Node ids, shape (K,).
        num_models: Number of models that the node is in (or, for non-members, not in), shape (K,).
        num_named: Number of these that name it, shape (K,).
        num_wrong: Number of all other models that name it, wrongly, shape (K,).
        level: Confidence level of `low` and `high`, for each node by itself.
    """

    node: Ints
    num_models: Ints
    num_named: Ints
    num_wrong: Ints
    level: float

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
        """Upper Clopper-Pearson limits of the share, shape (K,)."""
        return clopper_pearson(self.num_named, self.num_models, (1 - self.level) / 2)[1]

    def ranked(self) -> Ints:
        """Positions of the nodes from the most to the least exposed.

        By the lower limit of the share times the share that is correct, then by the share: a node that is named whether
        that is right or not is not exposed, and one that is only named wrongly comes last, with those never named.
        """
        risk = self.low * np.nan_to_num(self.share_correct)
        return np.lexsort((self.node, -np.nan_to_num(self.share), -risk))


@dataclass(frozen=True, eq=False)
class ExposureCurve:
    """How many nodes of one model are named against how sure the adversary wants to be, for one side.

    A node is named where its calibrated posterior probability is at least the wanted precision. The units are models:
    their nodes depend on each other, and count as one observation.

    Two kinds of limits, each at `level`:

    - `named`, `correct` and `share_correct` are about an adversary with as many models to fit and recalibrate on as
      here, as a mean over released models. They allow for the models being a sample, and, if it is known, for the
      effect of each model on the recalibration. `band` makes them: from 64 models on they hold in 93 to 96 % of
      simulations of skewed, mixed and over-dispersed numbers at a nominal 95 %. Where only a few per cent of models
      name anyone, no method holds with fewer than some 200 models: all may be among those that were not seen.
    - `interval` is about an adversary with *any* number of models, at least as many as here, so it can be compared
      between audits with different numbers. If the number named grows as e - b n^-r with the number n of models to fit
      on, going from n/2 to n has gained g = b n^-r (2^r - 1), and g/(2^r - 1) is missing at n: 2.4 g at the slowest
      rate that is allowed for, 1/2. The lower end is that of `named` (nothing more may come), the upper end the upper
      limit of the number named plus 2.4 g, or that of `named` if it is higher. Without scores from half the models
      nothing is known of g, and the interval is that of `named`.

    Whoever is named at one precision is named at every lower one, so a limit at one precision is one at others too:
    lower limits are raised to those at higher precisions, upper limits lowered to those at lower ones.

    Attributes:
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        named: Number of nodes named per model.
        correct: Number of nodes named correctly per model.
        share_correct: Share of the named nodes that are right; NaN if none is named.
        interval: Number of nodes named per model with any number of models to fit on; its mean is that of `named`.
        still_to_come: How many more nodes may be named with any number of fitting models, shape (P,): 2.4 times what
            the second half of the models has gained; 0 where that is not known.
        by_prior: How many nodes the priors alone name correctly, on average, without any model, shape (P,); 0 where
            priors are not known.
        total: Mean number of nodes per model that could be named correctly.
        num_models: Number of models.
        level: Confidence level of each pair of limits.
    """

    precision: Floats
    named: Band
    correct: Band
    share_correct: Band
    interval: Band
    still_to_come: Floats
    by_prior: Floats
    total: float
    num_models: int
    level: float

    @cached_property
    def models_needed(self) -> Ints:
        """Number of models that would do at each precision, shape (P,); at most the number there is if it does.

        Enough are 32, and as many as narrow `interval` to ±25 % of its middle, or ±1 node if that is more, given that
        the part due to sampling falls as n^-1/2 and the part due to what is still to come as n^-0.7; and as many as
        would do at every lower precision from 90 % on: that nobody is named at 99 % means little while more and more
        are at 90 %.
        """
        wanted = np.maximum(MAX_SPREAD * (self.interval.low + self.interval.high) / 2, ONE_NODE)
        by_sampling = self.named.half_width
        to_come = self.interval.half_width - by_sampling
        factor = np.geomspace(MIN_MODELS / self.num_models, 1e6, 20_000)[:, None]
        is_enough = by_sampling * factor**-0.5 + to_come * factor**-USUAL_RATE <= wanted
        enough = np.where(is_enough.any(axis=0), factor[is_enough.argmax(axis=0), 0], factor[-1])
        # Rounding must not make too few of models that do.
        does = (self.interval.half_width <= wanted) & (self.num_models >= MIN_MODELS)
        needed = np.where(does, np.minimum(enough, 1.0), enough) * self.num_models
        each = np.maximum(np.ceil(needed - 1e-6), MIN_MODELS).astype(np.int64)
        is_sure = self.precision >= SURE_NAMES
        return np.concatenate([np.maximum.accumulate(each[part]) for part in (~is_sure, is_sure)])

    @property
    def is_settled(self) -> Flags:
        """Whether there are enough models to say, at each precision, shape (P,)."""
        return self.models_needed <= self.num_models

    @property
    def reach(self) -> Band:
        """Nodes named correctly: mean and lower limit now, upper limit for an adversary with any number of models."""
        return replace(self.correct, high=np.maximum(self.correct.high, np.minimum(self.interval.high, self.total)))

    def at(self, precision: float) -> int:
        """Position of a precision.

        Raises:
            InputError: if it is not among those of the curve.
        """
        (found,) = np.nonzero(np.isclose(self.precision, precision, rtol=0, atol=1e-12))
        if not found.size:
            listed = ", ".join(f"{value:g}" for value in self.precision)
            raise InputError(f"precision must be one of {listed}, got {precision}")
        return int(found[0])

    def cells(self, k: int) -> tuple[str, str]:
        """How many are named correctly at the k-th precision, with the limits of `reach`, and the share that is so."""
        share, reach = self.share_correct.mean[k], self.reach
        limits = f"({reach.low[k]:.1f} to {reach.high[k]:.1f})"
        return f"{reach.mean[k]:8.1f} {limits}", "–" if math.isnan(share) else f"{share:.3f}"


@dataclass(frozen=True, eq=False)
class Exposure:
    """What one released model gives away, on average over models.

    Attributes:
        members: Curve of the members named.
        non_members: Curve of the non-members named.
        member_nodes: How often each node is named as a member at `at_risk`, among the models it is in.
        non_member_nodes: How often each node is named as a non-member at `at_risk`, among the models it is not in.
        at_risk: Posterior probability from which on a node counts as named in the two tables of nodes.
    """

    members: ExposureCurve
    non_members: ExposureCurve
    member_nodes: NodeExposure
    non_member_nodes: NodeExposure
    at_risk: float

    def statement(self) -> str:
        """What to say of the members in a sentence: how many can be named at `at_risk`, as precisely as it can be said.

        In parentheses stands `reach`: an adversary may have any number of shadow models.
        """
        curve = self.members
        k = curve.at(self.at_risk)
        certainty = f"with {100 * self.at_risk:g} % certainty"
        limits = f"{_count(curve.reach.low[k])} to {_count(curve.reach.high[k])}"
        by_prior = "" if curve.by_prior[k] < ONE_NODE else f" (the sampling alone tells {_count(curve.by_prior[k])})"
        if not curve.is_settled[k]:
            would_do = f"about {curve.models_needed[k]:,} would do"
            if curve.num_models < MIN_MODELS or curve.reach.high[k] < HARDLY_ANY:
                return f"{curve.num_models:,} models are too few to say how many can be named {certainty}; {would_do}"
            return (
                f"from one released model an adversary can name {limits} of its {curve.total:,.0f} training nodes "
                f"{certainty}{by_prior}; {curve.num_models:,} shadow models are too few to say it more precisely, "
                f"{would_do}"
            )
        if not curve.named.mean[k]:
            return f"no training node can be named {certainty}"
        if curve.reach.high[k] < HARDLY_ANY:
            return f"hardly any training node can be named {certainty}, at most {_count(curve.reach.high[k])} per model"
        return (
            f"from one released model an adversary can name about {_count(curve.correct.mean[k])} ({limits}) of its "
            f"{curve.total:,.0f} training nodes, and {100 * curve.share_correct.mean[k]:.3g} % of the names are right"
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
    """What is found out about each of J models, so that two audits with the same samples can be compared in pairs.

    Attributes:
        index: Number of each model in its plan, shape (J,).
        num_members: Number of its members that could be named, shape (J,).
        auc: Probability that a member's posterior exceeds a non-member's, within the model, shape (J,); NaN if the
            model has no member or no non-member that could be named.
        true_positive_rate: Share of members above all but 1 % of the non-members, within the model, shape (J,); NaN
            as `auc`.
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        members_named: Number of nodes named as members, shape (J, P).
        members_correct: Number of them that are members, shape (J, P).
        members_effect: What each model has done to the mean of `members_correct` through the recalibration, times J,
            shape (J, P); 0 on average.
        non_members_named: Number of nodes named as non-members, shape (J, P).
        non_members_correct: Number of them that are not members, shape (J, P).
        non_members_effect: As `members_effect`, of `non_members_correct`.
    """

    index: Ints
    num_members: Ints
    auc: Floats
    true_positive_rate: Floats
    precision: Floats
    members_named: Ints
    members_correct: Ints
    members_effect: Floats
    non_members_named: Ints
    non_members_correct: Ints
    non_members_effect: Floats


@dataclass(frozen=True, eq=False)
class ReleaseExposure:
    """What one release gives away, by one attack.

    Attributes:
        exposure: How many nodes of one model can be named, and how often each node is.
        recalibration: Map from the attack's posterior log-odds to calibrated ones, learnt on all models, for a model
            that is none of them.
        reliability: Stated against observed probabilities, each model recalibrated on others.
        models: One row for each model.
        num_nodes: Number of nodes that can be named.
        num_left_out: Number of nodes that cannot: their prior is 0 or 1, or the attack cannot score them.
        num_fitting: Number of models that each model's attack was fitted on.
    """

    exposure: Exposure
    recalibration: Recalibration
    reliability: Reliability
    models: ModelTable
    num_nodes: int
    num_left_out: int
    num_fitting: int

    def __str__(self) -> str:
        return f"{self.exposure}\n{self.reliability}"

    def _repr_html_(self) -> str:
        """What is exposed, and how far to believe it, for notebooks."""
        return self.exposure._repr_html_() + paragraphs([str(self.reliability).partition("\n")[0]])


def exposure(
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

    Args:
        log_odds: Calibrated posterior log-odds of challenged models, shape (J, K).
        memberships: The truth, shape (J, K).
        nodes: Ids of the nodes, shape (K,); 0, 1, 2, … if None.
        log_odds_half: The same with half as many models to fit and recalibrate on, shape (J, K). If given, it tells how
            much may still come with more models, see `ExposureCurve`.
        level: Confidence level of limits.

    Raises:
        InputError: if shapes differ, there are fewer than two models, or log-odds are NaN.
    """
    check_level(level)
    values, truth = check_log_odds(log_odds, memberships)
    if len(values) < 2:
        raise InputError(f"there must be at least 2 models to tell how much they differ, got {len(values)}")
    half = None if log_odds_half is None else np.asarray(log_odds_half)
    if half is not None and (half.shape != values.shape or np.isnan(half).any()):
        raise InputError(f"log_odds_half must be numbers of shape {values.shape} as log-odds, got {half.shape}")
    ids = np.arange(values.shape[1]) if nodes is None else np.asarray(nodes, dtype=np.int64)
    counts, counts_half = (
        None if each is None else count_named(each.astype(values.dtype), truth) for each in (values, half)
    )
    assert counts is not None  # noqa: S101 - log-odds were given
    num_members = float(truth.sum(axis=1).mean())
    return exposure_of(counts, counts_half, ids, num_members, values.shape[1] - num_members, level)


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
    proven here.) All is repeated within each half of the models, which tells how much more an adversary with more
    models could name (see `ExposureCurve`).

    Scores take 4 bytes for each model and node, in memory or, if that is too much, in a temporary file; all else is
    worked out in blocks of nodes.

    Args:
        attack: Any attack; one that does not fuse queries takes evidence of a single query.
        models: Models of one release.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency" as in `challenge`.
        level: Confidence level of limits.
        num_threads: Number of threads; the result does not depend on it.
        executor: Workers that score blocks of nodes, if there is more than one block; the result does not depend on it.
        progress: Called with the number of nodes scored so far; there are twice as many to score as nodes.

    Raises:
        InputError: if there are fewer than 2 models, inputs do not fit together, no node can be named, there is no
            member or no non-member, or scores are NaN.
    """
    check_level(level)
    check_attack(attack, models.queries)
    if models.num_models < 2:
        raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
    log_odds = log_prior_odds(prior_probs(prior_prob, models))
    targets, num_models, threads = models.nodes, models.num_models, thread_count(num_threads)
    open_nodes = targets[np.isfinite(log_odds[targets])]
    if not len(open_nodes):
        raise InputError("no node can be named, as all priors are 0 or 1")
    table = new_matrix(num_models, len(open_nodes))
    left_out = LeftOut.score(attack, models.about(open_nodes), log_odds, table, threads, executor, progress)
    nodes = left_out.nodes
    if not len(nodes):
        raise InputError(f"no node can be named: the attack can score none with {num_models} models")
    if (missing := left_out.missing_side()) is not None:
        raise InputError(f"memberships must hold both sides, got no {missing}")
    auc, true_positive_rate, num_nameable = left_out.by_model()
    diagram = ReliabilityCounter(num_models, table.dtype, threads)
    counts, learnt = calibrated(left_out, diagram)
    half = _with_half(attack, left_out, log_odds, lambda done: progress(len(open_nodes) + done))
    num_members, prior = float(models.num_in.sum() / num_models), scipy.special.expit(log_odds[nodes])
    by_side: list[Any] = []
    for side in counts:
        by_side += [side.named.astype(np.int64), side.correct.astype(np.int64), side.correct_effect]
    leaves_one_out = isinstance(attack, LeaveOneOutAttack)
    return ReleaseExposure(
        exposure=exposure_of(counts, half, nodes, num_members, len(targets) - num_members, level, prior),
        recalibration=learnt,
        reliability=diagram.result(),
        models=ModelTable(models.indices, num_nameable, auc, true_positive_rate, np.array(PRECISIONS), *by_side),
        num_nodes=len(nodes),
        num_left_out=len(targets) - len(nodes),
        num_fitting=num_models - (1 if leaves_one_out else -(-num_models // len(folds(num_models)))),
    )


def _with_half(attack: Attack, whole: LeftOut, log_odds: Floats, progress: Progress) -> BothSides | None:
    """What is named with half as many models, overwriting the table; None if there are too few models."""
    num_models, middle = whole.models.num_models, whole.models.num_models // 2
    if middle < MIN_HALF:
        return None
    parts = []
    for rows in (slice(0, middle), slice(middle, num_models)):
        models, table = whole.models.take(rows), take_rows(whole.table, rows)
        num_done = rows.start * len(models.nodes) // num_models
        workers = (whole.num_threads, whole.executor)
        report: Progress = lambda done, before=num_done: progress(before + done // 2)  # type: ignore[misc]  # noqa: E731
        left_out = LeftOut.score(attack, models, log_odds, table, *workers, report)
        # Of a node that half of the models cannot score, nothing is known but the prior.
        left_out = replace(left_out, is_scored=whole.is_scored)
        if left_out.missing_side() is not None:
            return None
        parts.append(calibrated(left_out)[0])

    def joined(first: NamedNodes, second: NamedNodes) -> NamedNodes:  # models of both, one after the other
        by_model: list[Any] = [np.concatenate(arrays) for arrays in zip(first[:4], second[:4], strict=True)]
        return NamedNodes(*by_model, *(one + other for one, other in zip(first[4:], second[4:], strict=True)))

    return BothSides(*(joined(*sides) for sides in zip(*parts, strict=True)))


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
    table: Floats32 | ScratchMatrix  # log-odds, shape (J, K)
    is_scored: Flags  # which of the nodes could be scored, shape (K,)
    num_threads: int
    executor: Executor | None

    @classmethod
    def score(
        cls,
        attack: Attack,
        models: Evidence,
        log_prior_odds: Floats,
        table: Floats32 | ScratchMatrix,
        num_threads: int,
        executor: Executor | None,
        progress: Progress,
    ) -> LeftOut:
        """Fills a table, shape (J, K), with the log-odds of each model by a fit on others."""
        is_scored = np.ones(models.num_targets, dtype=np.bool_)
        job = _PosteriorOdds(attack, models, None, log_prior_odds[models.nodes])
        for block, made in map_blocks(job, num_threads=num_threads, executor=executor, progress=progress):
            table[:, block], is_scored[block] = made
        return cls(models, table, is_scored, num_threads, executor)

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
        for block in node_blocks(*reversed(self.table.shape)):
            is_here, nodes = self.is_scored[block], self.models.nodes_in(block)
            here = self.table[:, block]
            values = np.array(here if is_here.all() else here[:, is_here], order="C")
            truth = columns(self.models.memberships, nodes[is_here])
            yield slice(num_before, num_before + values.shape[1]), values, truth
            num_before += values.shape[1]

    def some(self) -> tuple[Floats32, Flags]:
        """Log-odds and truth of all nodes that could be scored, or of evenly spaced ones if that is too much."""
        places = np.flatnonzero(self.is_scored)
        places = places[looked_at(self.models.num_models, len(places))]
        return columns(self.table, places), columns(self.models.memberships, self.models.nodes[places])

    def by_model(self) -> tuple[Floats, Floats, Ints]:
        """AUC, true positive rate and number of members of each model, over its nodes; each of shape (J,)."""
        parts, places, nodes = [], np.flatnonzero(self.is_scored), self.nodes
        for rows in model_blocks(*self.table.shape):
            values, truth = columns(self.table[rows], places), columns(self.models.memberships[rows], nodes)
            roc = roc_within_models(values, truth, FALSE_POSITIVE_RATE, num_threads=self.num_threads)
            parts.append((*roc, np.count_nonzero(truth, axis=1)))
        auc, rate, num_members = (np.concatenate(each) for each in zip(*parts, strict=True))
        return auc, rate, num_members


def calibrated(left_out: LeftOut, diagram: ReliabilityCounter | None = None) -> tuple[BothSides, Recalibration]:
    """Calibrates the log-odds of each model with a map learnt on others, and counts what they name.

    The calibrated probabilities are compared with the truth in the diagram, if there is one. With what is named comes
    the map learnt on all models.
    """
    num_models, num_threads = left_out.models.num_models, left_out.num_threads
    some, truth = left_out.some()
    parts = folds(num_models)
    pulls = None
    if some.min() == some.max():
        maps = [constant_map(some, truth)] * (len(parts) + 1)
    else:
        bins, every_model = RawBins.of(some, truth, num_threads=num_threads), np.arange(num_models)
        learnt = [recalibrate_bins(bins, np.delete(every_model, rows)) for rows in parts] + [recalibrate_bins(bins)]
        maps, pulls = [each.recalibration for each in learnt], map_pulls(learnt[-1], bins)
    shape = (num_models, int(left_out.is_scored.sum()))
    counter = NamingCounter(shape, pulls, left_out.table.dtype, num_threads)
    map_of = np.repeat(np.arange(len(parts)), [rows.stop - rows.start for rows in parts])
    log_odds = np.stack([each.log_odds for each in maps])
    for places, values, truth in left_out.blocks():
        _native.interpolate_rows(values, maps[0].raw, log_odds, map_of, num_threads)
        counter.add(values, truth, places)
        if diagram is not None:
            diagram.add(values, truth)
    return counter.result(), maps[-1]


# Which nodes of which models are named, and how that moves with the recalibration.


class NamedNodes(NamedTuple):
    """What is named of J models about K nodes, on one side: by model, shape (J, P), and by node, shape (K,).

    An effect is what each model has done to the mean through the recalibration, times J: 0 on average, and everywhere
    if the recalibration is taken as given.
    """

    named: Floats  # number of nodes named in each model at each of the P precisions
    correct: Floats  # number of those that are right
    named_effect: Floats
    correct_effect: Floats
    node_models: Ints  # number of models for which it is right to name the node
    node_named: Ints  # number of these that name it at `AT_RISK`
    node_wrong: Ints  # number of all others that name it at `AT_RISK`


class BothSides(NamedTuple):
    """What is named as members and as non-members."""

    members: NamedNodes
    non_members: NamedNodes


def count_named(log_odds: AnyFloats, memberships: Flags) -> BothSides:
    """Counts what calibrated log-odds name, both of shape (J, K); the map that made them is taken as given."""
    counter = NamingCounter(log_odds.shape, None, log_odds.dtype, thread_count(None))
    counter.add(log_odds, memberships, slice(0, log_odds.shape[1]))
    return counter.result()


class NamingCounter:
    """Counts what log-odds of shape (J, K) name, a block of nodes at a time.

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
        self._nodes = np.zeros((4, num_nodes), dtype=np.int64)
        self._num_in = np.zeros(num_nodes, dtype=np.int64)

    def add(self, log_odds: AnyFloats, memberships: Flags, nodes: slice) -> None:
        """Counts calibrated log-odds and memberships of some nodes, both of shape (J, number of nodes)."""
        values, flags = np.ascontiguousarray(log_odds), as_bytes(memberships)
        counts = (self._reached, self._members, None)
        _native.count_by_threshold(values, flags, self._thresholds, self._num_threads, *counts)
        named = np.zeros((4, values.shape[1]), dtype=np.int64)
        _native.count_named_nodes(values, flags, self._risk, -self._risk, self._num_threads, named)
        self._nodes[:, nodes] = named
        self._num_in[nodes] = np.count_nonzero(memberships, axis=0)

    def result(self) -> BothSides:
        """What is named, after all nodes were added."""
        # Values at place p have reached the first p thresholds.
        reached, members = (
            counts[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64) for counts in (self._reached, self._members)
        )
        others = reached - members
        above, below = (np.searchsorted(self._thresholds, each) + 1 for each in self._from)
        in_named, in_wrong, out_wrong, out_named = self._nodes
        num_out = len(reached) - self._num_in
        named_out, correct_out = (counts[:, :1, None] - counts[:, below] for counts in (reached, others))
        return BothSides(
            self._side(0, reached[:, above], members[:, above], self._num_in, in_named, in_wrong),
            self._side(1, named_out, correct_out, num_out, out_named, out_wrong),
        )

    def _side(self, side: int, named: Floats, correct: Floats, *nodes: Ints) -> NamedNodes:
        """One side, from what is named and correct at lower log-odds, at those wanted and at higher: (J, 3, P)."""
        effects = [
            self._pulls[side] * ((each[:, 0] - each[:, 2]).mean(axis=0) / (2 * self._steps[side]))
            for each in (named, correct)
        ]
        return NamedNodes(named[:, 1], correct[:, 1], *effects, *nodes)


def map_pulls(learnt: LearntMap, bins: RawBins) -> tuple[Floats, Floats]:
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
    half: BothSides | None,
    nodes: Ints,
    num_members: float,
    num_non_members: float,
    level: float,
    prior_prob: Floats | None = None,
) -> Exposure:
    """The exposure from what is named of each model, and with half as many models to fit and recalibrate on.

    `num_members` and `num_non_members` are means per model, with those that cannot be named; priors of the nodes tell
    what the sampling alone names.
    """
    prior = np.zeros(0) if prior_prob is None else prior_prob

    def side(k: int, total: float, probs: Floats) -> tuple[ExposureCurve, NodeExposure]:
        named = counts[k]
        by_prior = np.array([probs[probs >= precision].sum() for precision in PRECISIONS])
        nodes_named = NodeExposure(nodes, named.node_models, named.node_named, named.node_wrong, level)
        return _curve(named, None if half is None else half[k], total, level, by_prior), nodes_named

    members, member_nodes = side(0, num_members, prior)
    non_members, non_member_nodes = side(1, num_non_members, 1 - prior)
    return Exposure(members, non_members, member_nodes, non_member_nodes, AT_RISK)


def _monotone(limits: Band) -> Band:
    """Limits that fall as the precision rises, as the numbers themselves do."""
    low = np.maximum.accumulate(limits.low[::-1])[::-1]
    return Band(limits.mean, low, np.minimum.accumulate(limits.high))


def _curve(counts: NamedNodes, half: NamedNodes | None, total: float, level: float, by_prior: Floats) -> ExposureCurve:
    precision, largest = np.array(PRECISIONS), float(len(counts.node_models))
    named, correct = counts.named + counts.named_effect, counts.correct + counts.correct_effect
    mean_named = counts.named.mean(axis=0)
    # That no model names anyone does not show that none ever will (the rule of three).
    least_high = -math.log(1 - level) / len(named)
    # Effects have a mean of 0 but for rounding.
    now = band(named, level).clipped(0.0, largest, mean_named)
    now = replace(now, high=np.maximum(now.high, least_high))
    right = band(correct, level).clipped(0.0, largest, counts.correct.mean(axis=0))
    right = replace(right, high=np.minimum(np.maximum(right.high, least_high), max(total, least_high)))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = counts.correct.sum(axis=0) / counts.named.sum(axis=0)  # of whole numbers: never above 1
        # The ratio of two means, linearised.
        shares = share + (correct - share * named) / mean_named
    now, right = _monotone(now), _monotone(right)
    still_to_come, high = np.zeros(len(precision)), now.high
    if half is not None:
        missing_per_gain = 1 / (2**SLOWEST_RATE - 1)
        to_come = missing_per_gain * (named - half.named - half.named_effect)
        still_to_come = np.maximum(to_come.mean(axis=0), 0.0)
        high = np.maximum(high, np.minimum(band(named + to_come, level).high, np.minimum(largest, total / precision)))
    return ExposureCurve(
        precision=precision,
        named=now,
        correct=right,
        share_correct=band(shares, level).clipped(0.0, 1.0, share),
        interval=_monotone(Band(now.mean, now.low, high)),
        still_to_come=still_to_come,
        by_prior=by_prior,
        total=total,
        num_models=len(named),
        level=level,
    )
