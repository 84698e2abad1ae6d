"""Exposure: how many nodes of one released model an adversary can name, how surely, and which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.special

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.errors import InputError
from bmpaudit.plain import plain
from bmpaudit.proof.bounds import check_level

PRECISIONS = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999)
AT_RISK = 0.99
MIN_MODELS = 32
MAX_SPREAD = 0.25
ONE_NODE = 1.0


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


@dataclass(frozen=True, eq=False)
class NodeExposure:
    """How often each node is named, among the models for which that is right.

    Attributes:
        node: Node ids, shape (K,).
        num_models: Number of models that the node is in (or, for non-members, not in), shape (K,).
        num_named: Number of these that name it, shape (K,).
        level: Confidence level of `low` and `high`, for each node by itself.
    """

    node: Ints
    num_models: Ints
    num_named: Ints
    level: float

    @property
    def share(self) -> Floats:
        """Share of these models that name the node, shape (K,); NaN without such models."""
        with np.errstate(invalid="ignore"):
            return self.num_named / self.num_models

    @property
    def low(self) -> Floats:
        """Lower Clopper-Pearson limits of the share, shape (K,)."""
        limit = scipy.special.betaincinv(
            np.maximum(self.num_named, 1), self.num_models - self.num_named + 1.0, (1 - self.level) / 2
        )
        return np.where(self.num_named == 0, 0.0, limit)

    @property
    def high(self) -> Floats:
        """Upper Clopper-Pearson limits of the share, shape (K,)."""
        rest = self.num_models - self.num_named
        limit = scipy.special.betainccinv(self.num_named + 1.0, np.maximum(rest, 1), (1 - self.level) / 2)
        return np.where(rest == 0, 1.0, limit)

    def ranked(self) -> Ints:
        """Positions of the nodes from the most to the least exposed, by the lower limit, then by the share."""
        return np.lexsort((self.node, -np.nan_to_num(self.share), -self.low))


@dataclass(frozen=True, eq=False)
class ExposureCurve:
    """How many nodes of one model are named against how sure the adversary wants to be, for one side.

    The units are models: their nodes depend on each other, and count as one observation. Limits are Student's t over
    models: in simulations of skewed, mixed and over-dispersed numbers of named nodes they hold about as often as the
    studentised bootstrap's, 93 to 95 % from 64 models on at a nominal 95 %, and need no random numbers. The empirical
    Bernstein bound holds always, and is 20 times as wide. Where only a few per cent of models name anyone, no method
    holds with fewer than some 200 models. Limits are about models like these, attacked with as many fitting models as
    here: with more an adversary names more.

    Attributes:
        precision: Posterior probabilities from which on a node is named, ascending, shape (P,).
        named: Number of nodes named per model.
        correct: Number of nodes named correctly per model.
        share_correct: Share of the named nodes that are right; NaN if none is named.
        total: Mean number of nodes per model that could be named correctly.
        num_models: Number of models.
        level: Confidence level of each limit.
        still_to_come: How many more nodes would be named correctly with any number of fitting models, shape (P,); 0
            where it is not known.
    """

    precision: Floats
    named: Band
    correct: Band
    share_correct: Band
    total: float
    num_models: int
    level: float
    still_to_come: Floats

    @cached_property
    def models_needed(self) -> Ints:
        """Number of models that would do at each precision, shape (P,); at most the number there is if it does.

        Enough are 32, and as many as narrow the limits of `correct` to ±25 % of its mean, or ±1 node if that is more,
        and bring what is still to come below that, given that it falls as the number of models rises; and as many as
        would do at every lower precision: that nobody is named at 99 % means little while more and more are at 95 %.
        """
        wanted = np.maximum(MAX_SPREAD * self.correct.mean, ONE_NODE)
        for_limits = self.num_models * (self.correct.half_width / wanted) ** 2
        for_attack = self.num_models * self.still_to_come / wanted
        needed = np.ceil(np.maximum(np.maximum(for_limits, for_attack), MIN_MODELS)).astype(np.int64)
        return np.maximum.accumulate(needed)

    @property
    def is_settled(self) -> Flags:
        """Whether there are enough models to say, at each precision, shape (P,)."""
        return self.models_needed <= self.num_models

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
            "still_to_come": self.still_to_come,
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
        """What to say of the members in a sentence: how many can be named at `at_risk`, or that it cannot be said."""
        curve = self.members
        k = curve.at(self.at_risk)
        if not curve.is_settled[k]:
            return (
                f"{curve.num_models:,} models are too few to say how many members can be named with "
                f"{100 * self.at_risk:g} % certainty; about {curve.models_needed[k]:,} would do"
            )
        named = f"{curve.named.mean[k]:.3g} ({max(curve.named.low[k], 0):.3g} to {curve.named.high[k]:.3g})"
        if not curve.named.mean[k]:
            return f"no member can be named with {100 * self.at_risk:g} % certainty"
        return (
            f"from one released model an adversary can name about {named} of its {curve.total:,.0f} training nodes, "
            f"{100 * curve.share_correct.mean[k]:.3g} % of them correctly"
        )

    def __str__(self) -> str:
        lines = [
            f"exposure over {self.members.num_models:,} models",
            "  certainty   members named            right   non-members named        right",
        ]
        for k, precision in enumerate(self.members.precision):
            cells = []
            for curve in (self.members, self.non_members):
                limits = f"({curve.named.low[k]:.1f} to {curve.named.high[k]:.1f})"
                share = curve.share_correct.mean[k]
                cells.append(
                    f"{curve.named.mean[k]:8.1f} {limits:<16}{'  –  ' if math.isnan(share) else f'{share:.3f}'}"
                )
            lines.append(f"  {100 * precision:7.1f} %  {cells[0]}   {cells[1]}")
        return "\n".join(lines)


def exposure(
    log_odds: Floats,
    memberships: Flags,
    *,
    nodes: Ints | None = None,
    log_odds_half: Floats | None = None,
    precision: tuple[float, ...] = PRECISIONS,
    at_risk: float = AT_RISK,
    level: float = 0.95,
) -> Exposure:
    """Counts what can be named from each of many models.

    A node is named as a member if its posterior probability is at least the wanted precision; so log-odds must be
    calibrated (see `recalibrate`), on other models than these.

    Args:
        log_odds: Calibrated posterior log-odds of challenged models, shape (J, K).
        memberships: The truth, shape (J, K).
        nodes: Ids of the nodes, shape (K,); 0, 1, 2, … if None.
        log_odds_half: The same with half as many models to fit and recalibrate on, shape (J, K). If given, it tells how
            much is still to come with more models: the number of nodes named grows as e - b/n with the number n of
            fitting models, so what is missing at n is what was gained from n/2 to n.
        precision: Posterior probabilities from which on a node is named, in [0.5, 1).
        at_risk: One of them, for the tables of nodes.
        level: Confidence level of limits.

    Raises:
        InputError: if shapes differ, there are fewer than two models, or log-odds are NaN.
    """
    check_level(level)
    values, truth = np.asarray(log_odds, dtype=np.float64), np.asarray(memberships, dtype=np.bool_)
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
    half = None if log_odds_half is None else np.asarray(log_odds_half, dtype=np.float64)
    if half is not None and (half.shape != values.shape or np.isnan(half).any()):
        raise InputError(f"log_odds_half must be numbers of shape {values.shape} as log-odds, got {half.shape}")
    ids = np.arange(values.shape[1]) if nodes is None else np.asarray(nodes, dtype=np.int64)
    threshold = float(scipy.special.logit(at_risk))
    return Exposure(
        members=_curve(values, truth, half, wanted, level),
        non_members=_curve(-values, ~truth, None if half is None else -half, wanted, level),
        member_nodes=_per_node(values, truth, ids, threshold, level),
        non_member_nodes=_per_node(-values, ~truth, ids, threshold, level),
        at_risk=at_risk,
    )


def _curve(values: Floats, truth: Flags, half: Floats | None, precision: Floats, level: float) -> ExposureCurve:
    thresholds = scipy.special.logit(precision)
    is_named = [values >= threshold for threshold in thresholds]
    named = np.stack([each.sum(axis=1) for each in is_named], axis=1).astype(np.float64)
    correct = np.stack([(each & truth).sum(axis=1) for each in is_named], axis=1).astype(np.float64)
    largest = float(values.shape[1])
    mean_named = named.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = correct.mean(axis=0) / mean_named
        # The ratio of two means, linearised.
        residuals = (correct - share * named) / mean_named
    spread = _half_width(residuals, level)
    gain = np.zeros(len(precision))
    if half is not None:
        before = [((half >= threshold) & truth).sum(axis=1).mean() for threshold in thresholds]
        gain = np.maximum(correct.mean(axis=0) - before, 0.0)
    return ExposureCurve(
        precision=precision,
        named=_band(named, level, largest),
        correct=_band(correct, level, largest),
        share_correct=Band(share, np.maximum(share - spread, 0.0), np.minimum(share + spread, 1.0)),
        total=float(truth.sum(axis=1).mean()),
        num_models=len(values),
        level=level,
        still_to_come=gain,
    )


def _band(per_model: Floats, level: float, largest: float) -> Band:
    mean, spread = per_model.mean(axis=0), _half_width(per_model, level)
    return Band(mean, np.maximum(mean - spread, 0.0), np.minimum(mean + spread, largest))


def _half_width(per_model: Floats, level: float) -> Floats:
    """Student's t times the standard error of the mean over models, shape (P,)."""
    num_models = len(per_model)
    factor = float(scipy.special.stdtrit(num_models - 1, (1 + level) / 2))
    width: Floats = factor * per_model.std(axis=0, ddof=1) / math.sqrt(num_models)
    return width


def _per_node(values: Floats, truth: Flags, ids: Ints, threshold: float, level: float) -> NodeExposure:
    num_named = ((values >= threshold) & truth).sum(axis=0, dtype=np.int64)
    return NodeExposure(ids, truth.sum(axis=0, dtype=np.int64), num_named, level)
