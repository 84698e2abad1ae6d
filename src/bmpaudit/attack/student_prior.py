"""The prior of the Student attack: what the nodes of a graph have in common, by empirical Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bmpaudit.arrays import Flags, Floats, Floats32

OTHER_SIDE = 0.5
"""Share of the other side's covariance in a node's prior scale."""

OTHER_SIDE_WEIGHT = 2.0
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


@dataclass(frozen=True, eq=False)
class StudentPrior:
    """Normal-inverse-Wishart priors of V features; side 0 is "non-member" and side 1 is "member".

    Attributes:
        level: Mean over nodes of each side's mean, shape (2, V).
        shift: Mean over nodes of the difference between the means, member minus non-member, shape (V,).
        level_weight: How much alike the levels of nodes are, as a number of models.
        shift_weight: How much alike the shifts of nodes are, as a number of models.
        dof: Degrees of freedom of each side's covariance, shape (2,); above V + 1.
        scale: Mean over nodes of each side's covariance, shape (2, V, V); positive definite.
    """

    level: Floats
    shift: Floats
    level_weight: float
    shift_weight: float
    dof: Floats
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
    whitening = np.linalg.inv(np.linalg.cholesky(scale.mean(axis=0)))
    shift, shift_weight = _shift(moments, level, whitening)
    dof = np.array([_degrees_of_freedom(moments, scale, side) for side in (0, 1)])
    known = np.isfinite(dof)
    dof = np.where(known, dof, dof[known][0] if known.any() else len(shift) + 1 + FREEDOM[0])
    return StudentPrior(level, shift, _level_weight(moments, level, whitening), shift_weight, dof, scale)


def _mean_covariances(moments: Moments, freedom: Floats) -> Floats:
    total = moments.scatter.sum(axis=1)
    pooled = total.sum(axis=0) / freedom.sum()
    # Few degrees of freedom give no correlations.
    trust = freedom.sum() / (freedom.sum() + len(pooled))
    pooled = trust * pooled + (1 - trust) * np.diag(np.diag(pooled))
    scale: Floats = (total + BORROWED_FREEDOM * pooled) / (freedom + BORROWED_FREEDOM)[:, None, None]
    return scale + np.diag(FLOOR * moments.spread + LEAST_VARIANCE)


def _level_weight(moments: Moments, level: Floats, whitening: Floats) -> float:
    """Variance within a node over variance between the means of nodes."""
    has_models = moments.num_models > 0
    squares = np.square((moments.mean - level[:, None]) @ whitening.T).mean(axis=-1)
    few_nodes = has_models.sum(axis=1) / np.maximum(has_models.sum(axis=1) - 1, 1)
    excess = (squares * few_nodes[:, None] - 1 / np.maximum(moments.num_models, 1))[has_models]
    return _weight(float(excess.mean()))


def _shift(moments: Moments, level: Floats, whitening: Floats) -> tuple[Floats, float]:
    """The mean shift, and the variance within a node over the variance of shifts; nodes count by their precision."""
    has_both = (moments.num_models > 0).all(axis=0)
    if not has_both.any():
        return level[1] - level[0], 1.0
    (out_count, in_count), (out_mean, in_mean) = moments.num_models[:, has_both], moments.mean[:, has_both]
    noise = 1 / out_count + 1 / in_count
    shifts, precision = in_mean - out_mean, 1 / noise
    shift = np.average(shifts, axis=0, weights=precision)
    squares = np.square((shifts - shift) @ whitening.T).mean(axis=-1)
    return shift, _weight(float(np.average(squares - noise, weights=precision)))


def _weight(variance: float) -> float:
    return 1 / min(max(variance, 1 / MAX_WEIGHT), 1 / MIN_WEIGHT)


def _degrees_of_freedom(moments: Moments, scale: Floats, side: int) -> float:
    """The most likely of `FREEDOM`, from the scatter of all nodes with at least two models; NaN if there are none.

    With S of n models Wishart given Σ, and Σ inverse Wishart with mean C and V + 1 + f degrees of freedom, the
    likelihood of f has a closed form in the eigenvalues of C⁻¹S.
    """
    num_features = scale.shape[-1]
    is_used = moments.num_models[side] >= 2
    if not is_used.any():
        return np.nan
    other = 1 - side
    ratio = np.sqrt(np.diagonal(scale[side]) / np.diagonal(scale[other]))
    theirs = OTHER_SIDE_WEIGHT * scale[other] + moments.scatter[other, is_used]
    theirs /= (OTHER_SIDE_WEIGHT + moments.num_models[other, is_used])[:, None, None]
    expected = (1 - OTHER_SIDE) * scale[side] + OTHER_SIDE * ratio[:, None] * ratio * theirs
    lower = np.linalg.cholesky(expected)
    half = np.linalg.solve(lower, moments.scatter[side, is_used])
    eigenvalues = np.linalg.eigvalsh(np.linalg.solve(lower, half.transpose(0, 2, 1)))
    eigenvalues = np.maximum(eigenvalues, 0.0)
    counts, which = np.unique(moments.num_models[side, is_used] - 1, return_inverse=True)
    num_nodes = np.bincount(which)
    dof = num_features + 1 + FREEDOM
    steps = np.arange(num_features) / 2
    gammas = gammaln((dof[:, None] + counts)[..., None] / 2 - steps) - gammaln(dof[:, None, None] / 2 - steps)
    logs = np.array([np.log(freedom + eigenvalues).sum(axis=1) for freedom in FREEDOM])
    likelihood = gammas.sum(axis=2) @ num_nodes + len(which) * num_features * dof / 2 * np.log(FREEDOM)
    likelihood -= ((dof[:, None] + counts[which]) / 2 * logs).sum(axis=1)
    return float(dof[likelihood.argmax()])
