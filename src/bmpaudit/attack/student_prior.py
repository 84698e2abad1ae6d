"""The prior of the Student attack: what the nodes of a graph have in common, by empirical Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Floats32, Ints, as_bytes
from bmpaudit.tables import evenly_spaced

OTHER_SHARES = (0.0, 0.5, 1.0)
"""Shares of the other side's covariance in a node's prior scale that are tried."""

ALL_NODES_WEIGHT = 2.0
"""Weight of the mean over nodes in that covariance, as a number of models."""

BORROWED_FREEDOM = 10.0
"""Degrees of freedom that a side's mean covariance borrows from both sides together."""

FLOOR = 1e-6
"""Variance within a side, as a share of the variance within a node, that is added for the scale to be definite."""

LEAST_VARIANCE = 1e-90  # below the square of the smallest float32

NUM_IN_CENTER = 9  # models whose median is the center: an answer far off must not cost the others their digits

FREEDOM = np.geomspace(0.25, 400.0, 25)
"""Degrees of freedom beyond V + 1 that are tried."""

MIN_WEIGHT, MAX_WEIGHT = 1e-3, 1e3

MAX_NODES = 256
"""Nodes that the degrees of freedom are learnt from: two numbers need no more."""


@dataclass(frozen=True, eq=False)
class StudentPrior:
    """Normal-inverse-Wishart priors of V features; side 0 is "non-member" and side 1 is "member".

    Attributes:
        level: Mean over nodes of each side's mean, shape (2, V).
        shift: Mean over nodes of the difference between the means, member minus non-member, shape (V,).
        level_weight: How much alike the levels of nodes are, as a number of models.
        shift_weight: How much alike the shifts of nodes are, as a number of models.
        dof: Degrees of freedom of each side's covariance, shape (2,); above V + 1.
        other_share: Share of the other side's covariance in each side's prior scale, shape (2,).
        scale: Mean over nodes of each side's covariance, shape (2, V, V); positive definite.
    """

    level: Floats
    shift: Floats
    level_weight: float
    shift_weight: float
    dof: Floats
    other_share: Floats
    scale: Floats

    def log_gamma(self, max_count: int) -> Floats:
        """Log Γ((dof + n + 1)/2) - log Γ((dof + n + 1 - V)/2) for n from 0 to `max_count`, shape (2, max_count + 1)."""
        half = (self.dof[:, None] + np.arange(max_count + 1) + 1) / 2
        result: Floats = gammaln(half) - gammaln(half - len(self.shift) / 2)
        return result


class Moments(NamedTuple):
    """Models on each side of M nodes, for each of F parts of the models.

    Attributes:
        num_models: Number of models, shape (F, 2, M).
        mean: Mean of the features, shape (F, 2, M, V); 0 without models.
        scatter: Sum of outer products of deviations from the mean, shape (F, 2, M, V, V).
        spread: Variance of each feature within a node, whatever the side, shape (F, V).
    """

    num_models: Floats
    mean: Floats
    scatter: Floats
    spread: Floats


def learn_priors(
    features: Floats32, memberships: Flags, folds: Sequence[slice], num_threads: int
) -> list[StudentPrior | None]:
    """For each fold of models, the prior learnt from the models outside of it; with a single fold, from all.

    Args:
        features: Features of M nodes, shape (V, J, M).
        memberships: Whether each of them was in each model's sample, shape (J, M).
        folds: Parts of the models that cover all.
        num_threads: Number of threads; the result does not depend on it.

    Returns:
        None where the models leave nothing to learn from: no member, no non-member, or one model on each side.
    """
    # Models are summed up fold by fold, so that a prior is a sum over the other folds and nothing of its own remains.
    num_features, num_models, num_nodes = features.shape
    center = np.median(features[:, :: -(-num_models // NUM_IN_CENTER)], axis=1).astype(np.float64, order="C")
    fold_of = np.zeros(num_models, dtype=np.int64)
    for fold, rows in enumerate(folds):
        fold_of[rows] = fold
    sums = np.zeros((len(folds), 2, num_nodes, num_features + 1, num_features + 1))
    flags = as_bytes(memberships)
    _native.student_sums(np.ascontiguousarray(features), flags, center, fold_of, num_threads, sums)
    if len(folds) > 1:
        sums = np.stack([np.delete(sums, fold, axis=0).sum(axis=0) for fold in range(len(folds))])
    moments = _moments(sums, center)
    freedom = np.maximum(moments.num_models - 1, 0).sum(axis=2)
    is_learnt = np.all(np.any(moments.num_models > 0, axis=2), axis=1) & (freedom.sum(axis=1) > 0)
    if not is_learnt.all():
        moments, freedom = Moments(*(values[is_learnt] for values in moments)), freedom[is_learnt]
    learnt = iter(_learn(moments, freedom, num_threads))
    return [next(learnt) if is_so else None for is_so in is_learnt]


def _moments(sums: Floats, center: Floats) -> Moments:
    count, total = sums[..., 0, 0], sums[..., 0, 1:]
    mean = total / np.maximum(count, 1)[..., None]
    scatter = sums[..., 1:, 1:] - mean[..., :, None] * total[..., None, :]
    both = sums.sum(axis=1)
    squares = np.diagonal(both[..., 1:, 1:], axis1=2, axis2=3) - both[..., 0, 1:] ** 2 / np.maximum(both[..., :1, 0], 1)
    spread = np.maximum(squares, 0).sum(axis=1) / np.maximum(both[..., 0, 0] - 1, 1).sum(axis=1)[:, None]
    return Moments(count, np.where(count[..., None] > 0, mean + center.T, 0.0), scatter, spread)


def _learn(moments: Moments, freedom: Floats, num_threads: int) -> list[StudentPrior]:
    """A prior from each part of the models; `freedom` has shape (F, 2)."""
    num_nodes = np.maximum((moments.num_models > 0).sum(axis=2), 1)
    level: Floats = moments.mean.sum(axis=2) / num_nodes[..., None]
    scale = _mean_covariances(moments, freedom)
    precision: Floats = np.linalg.inv(_node_covariances(moments, scale)).astype(np.float64)
    shift, shift_weight = _shift(moments, level, precision)
    level_weight = _level_weight(moments, level, precision)
    dof, other_share = _covariance_priors(moments, scale, num_threads)
    return [
        StudentPrior(
            level[part],
            shift[part],
            float(level_weight[part]),
            float(shift_weight[part]),
            dof[part],
            other_share[part],
            scale[part],
        )
        for part in range(len(level))
    ]


def _mean_covariances(moments: Moments, freedom: Floats) -> Floats:
    """The mean over nodes of each side's covariance, shape (F, 2, V, V)."""
    total = moments.scatter.sum(axis=2)
    both = freedom.sum(axis=1)[:, None, None]
    pooled = total.sum(axis=1) / both
    # Few degrees of freedom give no correlations.
    trust = both / (both + pooled.shape[-1])
    unit = np.eye(pooled.shape[-1])
    pooled = trust * pooled + (1 - trust) * pooled * unit
    scale: Floats = (total + BORROWED_FREEDOM * pooled[:, None]) / (freedom + BORROWED_FREEDOM)[..., None, None]
    return scale + (FLOOR * moments.spread + LEAST_VARIANCE)[:, None, None] * unit


def _node_covariances(moments: Moments, scale: Floats) -> Floats:
    """The covariance of each node within its sides, shape (F, M, V, V), steadied by the mean over nodes."""
    freedom = np.maximum(moments.num_models - 1, 0).sum(axis=1)
    total = ALL_NODES_WEIGHT * scale.mean(axis=1)[:, None] + moments.scatter.sum(axis=1)
    result: Floats = total / (ALL_NODES_WEIGHT + freedom)[..., None, None]
    return result


def _mean_squares(deviations: Floats, precision: Floats) -> Floats:
    """Of each node, the squared distance over V in units of its own spread."""
    result: Floats = np.einsum("...v,...vw,...w->...", deviations, precision, deviations) / deviations.shape[-1]
    return result


def _level_weight(moments: Moments, level: Floats, precision: Floats) -> Floats:
    """Variance within a node over variance between the means of nodes, shape (F,)."""
    has_models = moments.num_models > 0
    squares = _mean_squares(moments.mean - level[:, :, None], precision[:, None])
    num_nodes = has_models.sum(axis=2)
    few_nodes = num_nodes / np.maximum(num_nodes - 1, 1)
    excess = squares * few_nodes[..., None] - 1 / np.maximum(moments.num_models, 1)
    return _weight(np.where(has_models, excess, 0.0).sum(axis=(1, 2)) / num_nodes.sum(axis=1))


def _shift(moments: Moments, level: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """The mean shift, and variance within a node over variance of shifts; nodes count by their numbers of models."""
    has_both: Flags = np.all(moments.num_models > 0, axis=1)
    noise = (1 / np.maximum(moments.num_models, 1)).sum(axis=1)
    weight = np.where(has_both, 1 / noise, 0.0)
    is_known: Flags = np.any(has_both, axis=1)
    total = np.where(is_known, weight.sum(axis=1), 1.0)
    shifts = moments.mean[:, 1] - moments.mean[:, 0]
    shift = (weight[..., None] * shifts).sum(axis=1) / total[:, None]
    squares = _mean_squares(shifts - shift[:, None], precision)
    shift_weight = _weight((weight * (squares - noise)).sum(axis=1) / total)
    return np.where(is_known[:, None], shift, level[:, 1] - level[:, 0]), np.where(is_known, shift_weight, 1.0)


def _weight(variance: Floats) -> Floats:
    return 1 / np.clip(variance, 1 / MAX_WEIGHT, 1 / MIN_WEIGHT)


def _covariance_priors(moments: Moments, scale: Floats, num_threads: int) -> tuple[Floats, Floats]:
    """The most likely degrees of freedom and share of the other side, both of shape (F, 2).

    With S of n models Wishart given Σ, and Σ inverse Wishart with mean C and V + 1 + f degrees of freedom, the
    likelihood has a closed form in the determinants of f·C + S and C. If no node has two models on the side, the
    smallest of all: what is known of the side is little.
    """
    num_features, shares = scale.shape[-1], np.array(OTHER_SHARES)
    log_gamma = _log_gamma(num_features, int(moments.num_models.max(initial=1)))
    problems = [(part, side) for part in range(len(scale)) for side in (0, 1)]
    used = [evenly_spaced(np.flatnonzero(moments.num_models[each] >= 2), MAX_NODES) for each in problems]
    freedom = [moments.num_models[each][nodes] - 1 for each, nodes in zip(problems, used, strict=True)]
    likelihood = np.zeros((len(problems), len(shares), len(FREEDOM)))
    if problems:
        _native.covariance_likelihood(
            np.cumsum([0, *map(len, used)]),
            np.concatenate(freedom),
            np.concatenate([moments.scatter[each][nodes] for each, nodes in zip(problems, used, strict=True)]),
            scale.reshape(-1, num_features, num_features),
            np.concatenate(
                [_other_covariances(moments, scale, each, nodes) for each, nodes in zip(problems, used, strict=True)]
            ),
            shares,
            FREEDOM,
            num_threads,
            likelihood,
        )
    dof, other_share = np.full((2, len(problems)), 0.0)
    for problem, (matrices, numbers) in enumerate(zip(likelihood, freedom, strict=True)):
        constant = log_gamma[:, numbers.astype(np.int64)].sum(axis=1)
        share, best = np.unravel_index(np.argmax(matrices + constant), matrices.shape)
        dof[problem], other_share[problem] = num_features + 1 + FREEDOM[best], shares[share]
    return dof.reshape(-1, 2), other_share.reshape(-1, 2)


@lru_cache(maxsize=8)
def _log_gamma(num_features: int, max_freedom: int) -> Floats:
    """What a node with n degrees of freedom adds to the likelihood whatever its scatter, shape (candidates, n + 1)."""
    half = (num_features + 1 + FREEDOM)[:, None, None] / 2
    steps, numbers = np.arange(num_features) / 2, np.arange(max_freedom + 1)[:, None]
    gammas = (gammaln(half + numbers / 2 - steps) - gammaln(half - steps)).sum(axis=2)
    result: Floats = gammas + num_features * half[..., 0] * np.log(FREEDOM)[:, None]
    return result


def _other_covariances(moments: Moments, scale: Floats, each: tuple[int, int], nodes: Ints) -> Floats:
    """The covariance of the other side of some nodes, brought to the variances of this side, shape (M', V, V)."""
    (part, side), other = each, 1 - each[1]
    ratio = np.sqrt(np.diagonal(scale[part, side]) / np.diagonal(scale[part, other]))
    scatter = ALL_NODES_WEIGHT * scale[part, other] + moments.scatter[part, other, nodes]
    number = ALL_NODES_WEIGHT + moments.num_models[part, other, nodes]
    result: Floats = ratio[:, None] * ratio * scatter / number[:, None, None]
    return result
