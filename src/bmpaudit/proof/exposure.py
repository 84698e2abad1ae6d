"""Exposure: how many nodes of one released model an adversary can name, how surely, and which."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.attack.challenges import NUM_FOLDS
from bmpaudit.attack.evidence import Evidence, prior_probs
from bmpaudit.attack.performance import RocWithinModels
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.interfaces import Attack, LeaveOneOutAttack, Progress
from bmpaudit.proof.bounds import check_level
from bmpaudit.proof.calibration import (
    Recalibration,
    Reliability,
    ReliabilityCounter,
)
from bmpaudit.proof.naming import Band, BothSides, LeftOut, NamedNodes, NodeExposure, band, calibrated, count_named
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import columns, model_blocks, new_matrix, take_rows
from bmpaudit.util.text import html_table, paragraphs
from bmpaudit.util.values import Flags, Floats, Ints, plain

# Exposure: how many nodes of one released model an adversary can name, how surely, and which.


PRECISIONS = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999)
AT_RISK = 0.99
MIN_MODELS = 32
MAX_SPREAD = 0.25
ONE_NODE = 1.0
HARDLY_ANY = 0.5  # nodes per model
SURE_NAMES = 0.9

SLOWEST_RATE = 0.5
"""Smallest exponent r at which what an attack misses is taken to fall, as n^-r with n fitting models."""

USUAL_RATE = 0.7
"""The exponent that was seen (docs/proof.md), to say how many models would do."""


@dataclass(frozen=True, eq=False)
class ExposureCurve:
    """How many nodes of one model are named against how sure the adversary wants to be, for one side.

    A node is named where its calibrated posterior probability is at least the wanted precision. The units are models:
    their nodes depend on each other, and count as one observation.

    Two kinds of limits, each at `level`:

    - `named`, `correct` and `share_correct` are about an adversary with as many models to fit and recalibrate on as
      here, as a mean over released models. They allow for the models being a sample, and, if the effect of each model
      on the recalibration is known, for that too. Limits are Student's t with Hall's correction for skewness: from 64
      models on they hold in 93 to 96 % of simulations of skewed, mixed and over-dispersed numbers at a nominal 95 %,
      where the plain t falls to 91 %. Where only a few per cent of models name anyone, no method holds with fewer than
      some 200 models: all may be among those that were not seen.
    - `interval` is about an adversary with *any* number of models, at least as many as here, so it can be compared
      between audits with different numbers. What such an adversary names more is unknown, but can be bounded: if the
      number named grows as e - b n^-r with the number n of models to fit on, going from n/2 to n has gained
      g = b n^-r (2^r - 1), and g/(2^r - 1) is missing at n. The rate r was seen to be about 0.7 (docs/proof.md); the
      slowest that is allowed for is 1/2, at which 2.4 g is missing. The lower end is that of `named` (nothing more may
      come), the upper end the upper limit of the number named plus 2.4 g, or that of `named` if it is higher. Without
      scores from half the models nothing is known of g, and the interval is that of `named`.

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
        """How many are named at the k-th precision, with limits, and the share that is right."""
        share = self.share_correct.mean[k]
        limits = f"({self.interval.low[k]:.1f} to {self.interval.high[k]:.1f})"
        return f"{self.named.mean[k]:8.1f} {limits}", "–" if math.isnan(share) else f"{share:.3f}"

    def to_plain(self) -> list[dict[str, Any]]:
        """One row for each precision, values as JSON can hold them."""
        columns = {
            "precision": self.precision,
            "named": self.named.mean,
            "named_low": self.named.low,
            "named_high": self.named.high,
            "correct": self.correct.mean,
            "correct_low": self.correct.low,
            "correct_high": self.correct.high,
            "share_correct": self.share_correct.mean,
            "interval_low": self.interval.low,
            "interval_high": self.interval.high,
            "still_to_come": self.still_to_come,
            "by_prior": self.by_prior,
            "is_settled": self.is_settled,
            "models_needed": self.models_needed,
        }
        return [plain({name: column[k] for name, column in columns.items()}) for k in range(len(self.precision))]


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

    def to_plain(self) -> dict[str, Any]:
        """Both curves, values as JSON can hold them."""
        return {
            "num_models": self.members.num_models,
            "level": self.members.level,
            "total_members": float(self.members.total),
            "total_non_members": float(self.non_members.total),
            "members": self.members.to_plain(),
            "non_members": self.non_members.to_plain(),
        }

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


def exposure(
    log_odds: npt.NDArray[np.floating[Any]],
    memberships: Flags,
    *,
    nodes: Ints | None = None,
    log_odds_half: npt.NDArray[np.floating[Any]] | None = None,
    precision: tuple[float, ...] = PRECISIONS,
    at_risk: float = AT_RISK,
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
        precision: Posterior probabilities from which on a node is named, in [0.5, 1).
        at_risk: One of them, for the tables of nodes.
        level: Confidence level of limits.

    Raises:
        InputError: if shapes differ, there are fewer than two models, or log-odds are NaN.
    """
    check_level(level)
    values, truth = np.asarray(log_odds), np.asarray(memberships, dtype=np.bool_)
    if values.ndim != 2 or values.shape != truth.shape:
        raise InputError(
            f"log-odds and memberships must have one shape (num_models, num_nodes), got {values.shape} and "
            f"{truth.shape}"
        )
    if len(values) < 2:
        raise InputError(f"there must be at least 2 models to tell how much they differ, got {len(values)}")
    if np.isnan(values).any():
        raise InputError("log-odds must not be NaN")
    wanted = np.array(sorted(precision))
    if not wanted.size or not ((wanted >= 0.5) & (wanted < 1)).all():
        raise InputError(f"precision must be in [0.5, 1), got {', '.join(map(str, precision)) or 'none'}")
    if at_risk not in precision:
        raise InputError(f"at_risk must be one of {', '.join(map(str, precision))}, got at_risk={at_risk}")
    half = None if log_odds_half is None else np.asarray(log_odds_half)
    if half is not None and (half.shape != values.shape or np.isnan(half).any()):
        raise InputError(f"log_odds_half must be numbers of shape {values.shape} as log-odds, got {half.shape}")
    if values.dtype != np.float32:
        values = values.astype(np.float64)
    counts = count_named(values, truth, wanted, at_risk)
    counts_half = None if half is None else count_named(half.astype(values.dtype), truth, wanted, at_risk)
    ids = np.arange(values.shape[1]) if nodes is None else np.asarray(nodes, dtype=np.int64)
    num_members = float(truth.sum(axis=1).mean())
    return exposure_of(counts, counts_half, ids, num_members, values.shape[1] - num_members, level)


def exposure_of(
    counts: BothSides,
    half: BothSides | None,
    nodes: Ints,
    num_members: float,
    num_non_members: float,
    level: float,
    prior_prob: Floats | None = None,
) -> Exposure:
    """The exposure from what is named of each model.

    Args:
        counts: What is named.
        half: What is named with half as many models to fit and recalibrate on, if that is known.
        nodes: Ids of the K nodes, shape (K,).
        num_members: Mean number of members per model, with those that cannot be named.
        num_non_members: Mean number of non-members per model, with those that cannot be named.
        level: Confidence level of limits.
        prior_prob: Prior probabilities of the nodes, shape (K,), which tell what the sampling alone names.
    """
    members, others = counts.members, counts.non_members
    prior = np.zeros(0) if prior_prob is None else prior_prob
    by_prior, not_by_prior = (
        np.array([side[side >= precision].sum() for precision in members.precision]) for side in (prior, 1 - prior)
    )
    return Exposure(
        members=_curve(members, None if half is None else half.members, num_members, level, by_prior),
        non_members=_curve(others, None if half is None else half.non_members, num_non_members, level, not_by_prior),
        member_nodes=NodeExposure(nodes, members.node_models, members.node_named, members.node_wrong, level),
        non_member_nodes=NodeExposure(nodes, others.node_models, others.node_named, others.node_wrong, level),
        at_risk=members.at_risk,
    )


def _monotone(limits: Band) -> Band:
    """Limits that fall as the precision rises, as the numbers themselves do."""
    low = np.maximum.accumulate(limits.low[::-1])[::-1]
    return Band(limits.mean, low, np.minimum.accumulate(limits.high))


def _curve(counts: NamedNodes, half: NamedNodes | None, total: float, level: float, by_prior: Floats) -> ExposureCurve:
    precision, largest = counts.precision, float(len(counts.node_models))
    named, correct = counts.named + counts.named_effect, counts.correct + counts.correct_effect
    mean_named = counts.named.mean(axis=0)
    # That no model names anyone does not show that none ever will (the rule of three).
    least_high = -math.log(1 - level) / len(named)
    # Effects have a mean of 0 but for rounding.
    now = replace(band(named, level).clipped(0.0, largest), mean=mean_named)
    now = replace(now, high=np.maximum(now.high, least_high))
    right = replace(band(correct, level).clipped(0.0, largest), mean=counts.correct.mean(axis=0))
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
        share_correct=replace(band(shares, level).clipped(0.0, 1.0), mean=share),
        interval=_monotone(Band(now.mean, now.low, high)),
        still_to_come=still_to_come,
        by_prior=by_prior,
        total=total,
        num_models=len(named),
        level=level,
    )


# All that is known of the exposure of one release.


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

    def to_plain(self) -> dict[str, Any]:
        """Curves and calibration, values as JSON can hold them; not what is about single nodes and models."""
        values: dict[str, Any] = plain(
            {
                **self.exposure.to_plain(),
                "num_nodes": self.num_nodes,
                "num_left_out": self.num_left_out,
                "num_fitting": self.num_fitting,
                "mean_auc": np.nanmean(self.models.auc),
                "expected_calibration_error": self.reliability.expected_calibration_error,
                "reliability": self.reliability.to_plain(),
                "statement": self.exposure.statement(),
            }
        )
        return values

    def __str__(self) -> str:
        return f"{self.exposure}\n{self.reliability}"

    def _repr_html_(self) -> str:
        """What is exposed, and how far to believe it, for notebooks."""
        return self.exposure._repr_html_() + paragraphs([str(self.reliability).partition("\n")[0]])


# From the models of one release to their exposure: scored, recalibrated and counted, no model by what it taught.


FALSE_POSITIVE_RATE = 0.01
MIN_HALF = 4
"""Smallest number of models that a half may have."""


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
    if not isinstance(attack, Attack):
        raise InputError(f"attack must have fuses_queries and score(...), got {attack!r}")
    if not attack.fuses_queries and len(models.queries) != 1:
        raise InputError(
            f"attack {type(attack).__name__} does not fuse queries and takes one at a time, got "
            f"{', '.join(models.queries)}"
        )
    if models.num_models < 2:
        raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
    log_odds = log_prior_odds(prior_probs(prior_prob, models))
    targets = models.nodes
    open_nodes = targets[np.isfinite(log_odds[targets])]
    if not len(open_nodes):
        raise InputError("no node can be named, as all priors are 0 or 1")
    threads, num_models = thread_count(num_threads), models.num_models
    table = new_matrix(num_models, len(open_nodes))
    left_out = LeftOut.score(attack, models.about(open_nodes), log_odds, table, threads, executor, progress)
    nodes = left_out.nodes
    if not len(nodes):
        raise InputError(f"no node can be named: the attack can score none with {num_models} models")
    num_in = models.about(nodes).num_in
    if not num_in.any() or (num_in == num_models).all():
        raise InputError(f"memberships must hold both sides, got no {'non-member' if num_in.any() else 'member'}")
    roc = left_out.roc(FALSE_POSITIVE_RATE)
    diagram = ReliabilityCounter(num_models, table.dtype, threads)
    counts, learnt = calibrated(left_out, np.array(PRECISIONS), AT_RISK, diagram)
    half = _with_half(attack, left_out, log_odds, lambda done: progress(len(open_nodes) + done))
    num_members = float(models.num_in.sum() / num_models)
    return ReleaseExposure(
        exposure=exposure_of(
            counts, half, nodes, num_members, len(targets) - num_members, level, scipy.special.expit(log_odds[nodes])
        ),
        recalibration=learnt,
        reliability=diagram.result(),
        models=_table(left_out, roc, counts),
        num_nodes=len(nodes),
        num_left_out=len(targets) - len(nodes),
        num_fitting=_num_fitting(attack, num_models),
    )


def _with_half(attack: Attack, whole: LeftOut, log_odds: Floats, progress: Progress) -> BothSides | None:
    """What is named with half as many models, overwriting the table; None if there are too few models."""
    num_models, middle = whole.models.num_models, whole.models.num_models // 2
    if middle < MIN_HALF:
        return None
    parts = []
    for rows in (slice(0, middle), slice(middle, num_models)):
        models = whole.models.take(rows)
        num_done = rows.start * len(models.nodes) // num_models
        left_out = LeftOut.score(
            attack,
            models,
            log_odds,
            take_rows(whole.table, rows),
            whole.num_threads,
            whole.executor,
            lambda done, before=num_done: progress(before + done // 2),  # type: ignore[misc]
        )
        # Of a node that half of the models cannot score, nothing is known but the prior.
        left_out = replace(left_out, is_scored=whole.is_scored)
        num_in = models.about(left_out.nodes).num_in
        if not num_in.any() or (num_in == len(models.indices)).all():
            return None
        parts.append(calibrated(left_out, np.array(PRECISIONS), AT_RISK).counts)
    return BothSides(_joined(parts[0].members, parts[1].members), _joined(parts[0].non_members, parts[1].non_members))


def _joined(first: NamedNodes, second: NamedNodes) -> NamedNodes:
    """Models of both, one after the other."""
    return NamedNodes(
        precision=first.precision,
        named=np.concatenate([first.named, second.named]),
        correct=np.concatenate([first.correct, second.correct]),
        named_effect=np.concatenate([first.named_effect, second.named_effect]),
        correct_effect=np.concatenate([first.correct_effect, second.correct_effect]),
        at_risk=first.at_risk,
        node_models=first.node_models + second.node_models,
        node_named=first.node_named + second.node_named,
        node_wrong=first.node_wrong + second.node_wrong,
    )


def _table(left_out: LeftOut, roc: RocWithinModels, counts: BothSides) -> ModelTable:
    def whole(numbers: Floats) -> Ints:
        return numbers.astype(np.int64)

    memberships, nodes = left_out.models.memberships, left_out.nodes
    blocks = model_blocks(*memberships.shape)
    num_members = [np.count_nonzero(columns(memberships[rows], nodes), axis=1) for rows in blocks]
    members, others = counts.members, counts.non_members
    return ModelTable(
        index=left_out.models.indices,
        num_members=np.concatenate(num_members),
        auc=roc.auc,
        true_positive_rate=roc.true_positive_rate,
        precision=members.precision,
        members_named=whole(members.named),
        members_correct=whole(members.correct),
        members_effect=members.correct_effect,
        non_members_named=whole(others.named),
        non_members_correct=whole(others.correct),
        non_members_effect=others.correct_effect,
    )


def _num_fitting(attack: Attack, num_models: int) -> int:
    if isinstance(attack, LeaveOneOutAttack):
        return num_models - 1
    return num_models - -(-num_models // min(NUM_FOLDS, num_models))
