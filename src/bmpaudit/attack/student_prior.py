"""The prior of the Student attack: what the nodes of a graph have in common, by empirical Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bmpaudit.arrays import Flags, Floats, Floats32
from bmpaudit.attack.student_features import evenly_spaced

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
    """Models on each side of M nodes.

    Attributes:
        num_models: Number of models, shape (2, M).
        mean: Mean of the features, shape (2, M, V); 0 without models.
        scatter: Sum of outer products of deviations from the mean, shape (2, M, V, V).
        spread: Variance of each feature within a node, whatever the side, shape (V,).
    """

    num_models: Floats
    mean: Floats
    scatter: Floats
    spread: Floats


def learn_priors(features: Floats32, memberships: Flags, folds: Sequence[slice]) -> list[StudentPrior | None]:
    """For each fold of models, the prior learnt from the models outside of it; with a single fold, from all.

    Args:
        features: Features of M nodes, shape (V, J, M).
        memberships: Whether each of them was in each model's sample, shape (J, M).
        folds: Parts of the models that cover all.

    Returns:
        None where the models leave nothing to learn from: no member, no non-member, or one model on each side.
    """
    # Models are summed up fold by fold, so that a prior is a sum over the other folds and nothing of its own remains.
    center = np.median(features[:, :: -(-features.shape[1] // NUM_IN_CENTER)], axis=1).astype(np.float64)
    sums = [_sums(features[:, rows], memberships[rows], center) for rows in folds]
    if len(folds) == 1:
        return [_learn(_moments(sums[0], center))]
    return [
        _learn(_moments(np.sum([part for other, part in enumerate(sums) if other != fold], axis=0), center))
        for fold in range(len(folds))
    ]


def _sums(features: Floats32, memberships: Flags, center: Floats) -> Floats:
    """Sums over models of (1, x)(1, x)ᵀ with x about the center, for each side, shape (2, M, V + 1, V + 1)."""
    num_features, num_models, num_nodes = features.shape
    values = np.empty((num_nodes, num_models, num_features + 1))
    values[..., 0] = 1.0
    values[..., 1:] = features.transpose(2, 1, 0) - center.T[:, None]
    across = values.transpose(0, 2, 1)
    is_in = memberships.T[..., None]
    return np.stack([across @ (values * ~is_in), across @ (values * is_in)])


def _moments(sums: Floats, center: Floats) -> Moments:
    count, total = sums[..., 0, 0], sums[..., 0, 1:]
    mean = total / np.maximum(count, 1)[..., None]
    scatter = sums[..., 1:, 1:] - mean[..., :, None] * total[..., None, :]
    both = sums.sum(axis=0)
    squares = np.diagonal(both[:, 1:, 1:], axis1=1, axis2=2) - both[:, 0, 1:] ** 2 / np.maximum(both[:, :1, 0], 1)
    spread = np.maximum(squares, 0).sum(axis=0) / np.maximum(both[:, 0, 0] - 1, 1).sum()
    return Moments(count, np.where(count[..., None] > 0, mean + center.T, 0.0), scatter, spread)


def _learn(moments: Moments) -> StudentPrior | None:
    has_models = moments.num_models > 0
    freedom = np.maximum(moments.num_models - 1, 0).sum(axis=1)
    if not has_models.any(axis=1).all() or not freedom.sum():
        return None
    level = np.stack([mean[has].mean(axis=0) for mean, has in zip(moments.mean, has_models, strict=True)])
    scale = _mean_covariances(moments, freedom)
    precision: Floats = np.linalg.inv(_node_covariances(moments, scale)).astype(np.float64)
    shift, shift_weight = _shift(moments, level, precision)
    level_weight = _level_weight(moments, level, precision)
    dof, other_share = zip(*(_covariance_prior(moments, scale, side) for side in (0, 1)), strict=True)
    return StudentPrior(level, shift, level_weight, shift_weight, np.array(dof), np.array(other_share), scale)


def _mean_covariances(moments: Moments, freedom: Floats) -> Floats:
    total = moments.scatter.sum(axis=1)
    pooled = total.sum(axis=0) / freedom.sum()
    # Few degrees of freedom give no correlations.
    trust = freedom.sum() / (freedom.sum() + len(pooled))
    pooled = trust * pooled + (1 - trust) * np.diag(np.diag(pooled))
    scale: Floats = (total + BORROWED_FREEDOM * pooled) / (freedom + BORROWED_FREEDOM)[:, None, None]
    return scale + np.diag(FLOOR * moments.spread + LEAST_VARIANCE)


def _node_covariances(moments: Moments, scale: Floats) -> Floats:
    """The covariance of each node within its sides, shape (M, V, V), steadied by the mean over nodes."""
    freedom = np.maximum(moments.num_models - 1, 0).sum(axis=0)
    total = ALL_NODES_WEIGHT * scale.mean(axis=0) + moments.scatter.sum(axis=0)
    result: Floats = total / (ALL_NODES_WEIGHT + freedom)[:, None, None]
    return result


def _mean_squares(deviations: Floats, precision: Floats) -> Floats:
    """Of each node, the squared distance over V in units of its own spread."""
    result: Floats = np.einsum("...mv,mvw,...mw->...m", deviations, precision, deviations) / deviations.shape[-1]
    return result


def _level_weight(moments: Moments, level: Floats, precision: Floats) -> float:
    """Variance within a node over variance between the means of nodes."""
    has_models = moments.num_models > 0
    squares = _mean_squares(moments.mean - level[:, None], precision)
    few_nodes = has_models.sum(axis=1) / np.maximum(has_models.sum(axis=1) - 1, 1)
    excess = (squares * few_nodes[:, None] - 1 / np.maximum(moments.num_models, 1))[has_models]
    return _weight(float(excess.mean()))


def _shift(moments: Moments, level: Floats, precision: Floats) -> tuple[Floats, float]:
    """The mean shift, and variance within a node over variance of shifts; nodes count by their numbers of models."""
    has_both = (moments.num_models > 0).all(axis=0)
    if not has_both.any():
        return level[1] - level[0], 1.0
    (num_out, num_in), (out_mean, in_mean) = moments.num_models[:, has_both], moments.mean[:, has_both]
    noise = 1 / num_out + 1 / num_in
    shifts = in_mean - out_mean
    shift = np.average(shifts, axis=0, weights=1 / noise)
    squares = _mean_squares(shifts - shift, precision[has_both])
    return shift, _weight(float(np.average(squares - noise, weights=1 / noise)))


def _weight(variance: float) -> float:
    return 1 / min(max(variance, 1 / MAX_WEIGHT), 1 / MIN_WEIGHT)


def _covariance_prior(moments: Moments, scale: Floats, side: int) -> tuple[float, float]:
    """The most likely degrees of freedom and share of the other side, given the scatter of all nodes.

    With S of n models Wishart given Σ, and Σ inverse Wishart with mean C and V + 1 + f degrees of freedom, the
    likelihood has a closed form in the eigenvalues of C⁻¹S and the determinant of C. If no node has two models on the
    side, the smallest of all: what is known of the side is little.
    """
    num_features = scale.shape[-1]
    dof = num_features + 1 + FREEDOM
    used = evenly_spaced(np.flatnonzero(moments.num_models[side] >= 2), MAX_NODES)
    if not used.size:
        return float(dof[0]), OTHER_SHARES[0]
    counts, which = np.unique(moments.num_models[side, used] - 1, return_inverse=True)
    steps = np.arange(num_features) / 2
    gammas = gammaln((dof[:, None] + counts)[..., None] / 2 - steps) - gammaln(dof[:, None, None] / 2 - steps)
    constant = gammas.sum(axis=2) @ np.bincount(which) + len(which) * num_features * dof / 2 * np.log(FREEDOM)
    exponents = (dof[:, None] + counts[which]) / 2
    theirs = _other_covariances(moments, scale, side)[used]
    likelihood = []
    for share in OTHER_SHARES:
        lower = np.linalg.cholesky((1 - share) * scale[side] + share * theirs)
        half = np.linalg.solve(lower, moments.scatter[side, used])
        eigenvalues = np.linalg.eigvalsh(np.linalg.solve(lower, half.transpose(0, 2, 1)))
        eigenvalues = np.maximum(eigenvalues, 0.0)
        logs = np.array([np.log(freedom + eigenvalues).sum(axis=1) for freedom in FREEDOM])
        half_determinants = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        likelihood.append(constant - (exponents * logs).sum(axis=1) - counts[which] @ half_determinants)
    best, freedom = np.unravel_index(np.argmax(likelihood), (len(OTHER_SHARES), len(FREEDOM)))
    return float(dof[freedom]), OTHER_SHARES[best]


def _other_covariances(moments: Moments, scale: Floats, side: int) -> Floats:
    """The covariance of the other side of each node, brought to the variances of this side, shape (M, V, V)."""
    other = 1 - side
    ratio = np.sqrt(np.diagonal(scale[side]) / np.diagonal(scale[other]))
    scatter = ALL_NODES_WEIGHT * scale[other] + moments.scatter[other]
    result: Floats = ratio[:, None] * ratio * scatter / (ALL_NODES_WEIGHT + moments.num_models[other])[:, None, None]
    return result
