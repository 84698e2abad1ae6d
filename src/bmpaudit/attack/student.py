"""All queries of a release and the neighbours, in a multivariate Student t distribution with a learnt prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from bmpaudit import _native
from bmpaudit.attack.evidence import Evidence, NotAuditable, Scores
from bmpaudit.util.errors import InputError
from bmpaudit.util.matrices import columns, evenly_spaced
from bmpaudit.util.values import Flags, Floats, Floats32, Ints, as_bytes

MIN_OWN_VARIANCE = 1e-6
"""Share of a feature's variance that the features before it must leave unexplained."""

MAX_LOOKED_AT = 256  # nodes that tell whether features depend on each other


def have_neighbours(models: Evidence, nodes: Ints, with_neighbours: bool) -> Flags:
    """Which of some nodes have neighbours, if these are looked at at all, shape (K,)."""
    if not with_neighbours or models.graph is None:
        return np.zeros(len(nodes), dtype=np.bool_)
    starts = models.graph.indptr
    return starts[nodes + 1] > starts[nodes]


def node_features(
    models: Evidence, nodes: Ints, with_neighbours: bool, num_threads: int, is_kept: Flags | None = None
) -> Floats32:
    """Features of some nodes: the statistic under each query, then the mean over the node's neighbours under each.

    Args:
        models: The models.
        nodes: Ids of K nodes; all with neighbours if these are looked at.
        with_neighbours: Whether the mean over neighbours is one of the features.
        num_threads: Number of threads.
        is_kept: Which features are wanted, shape (V,); all if None.

    Returns:
        Shape (number of features wanted, J, K).
    """
    queries = models.queries
    num_features = 2 * len(queries) if with_neighbours else len(queries)
    wanted = np.arange(num_features) if is_kept is None else np.flatnonzero(is_kept)
    features = np.empty((len(wanted), models.num_models, len(nodes)), dtype=np.float32)
    for into, feature in zip(features, wanted.tolist(), strict=True):
        if feature < len(queries):
            table = models.statistics[queries[feature]]
        else:
            table = models.neighbour_means(queries[feature - len(queries)], num_threads)
        into[:] = columns(table, nodes)
    return features


def independent_features(features: Floats32) -> Flags:
    """Which features vary and are not a linear function of those before them, shape (V,).

    A model that ignores edges answers alike to every query; a node without neighbours is answered alike with all edges
    and with none. Such a feature says nothing new. Memberships are not looked at.

    Args:
        features: Shape (V, J, K).
    """
    num_features = len(features)
    nodes = evenly_spaced(np.arange(features.shape[2]), MAX_LOOKED_AT)
    values = features[:, :, nodes].transpose(2, 0, 1).astype(np.float64)
    values -= values.mean(axis=2, keepdims=True)
    lengths = np.linalg.norm(values, axis=2, keepdims=True)
    values /= np.where(lengths > 0, lengths, 1.0)  # so that every node counts alike
    correlation: Floats = (values @ values.transpose(0, 2, 1)).sum(axis=0)
    is_kept = np.zeros(num_features, dtype=np.bool_)
    for feature in range(num_features):
        variance = correlation[feature, feature]
        if variance > 0 and _unexplained(correlation, is_kept, feature) > MIN_OWN_VARIANCE * variance:
            is_kept[feature] = True
    return is_kept


def _unexplained(correlation: Floats, is_kept: Flags, feature: int) -> float:
    kept = np.flatnonzero(is_kept)
    if not len(kept):
        return float(correlation[feature, feature])
    theirs = correlation[np.ix_(kept, kept)]
    with_it = correlation[kept, feature]
    return float(correlation[feature, feature] - with_it @ np.linalg.solve(theirs, with_it))


# The prior of the Student attack: what the nodes of a graph have in common, by empirical Bayes.


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


# All queries of a release and the neighbours, in a multivariate Student t distribution.


MAX_FEATURES = 16
"""Largest number of features that the kernel takes."""

NUM_FOLDS = 10
"""Parts of the models that a prior is learnt without, where each model is left out in turn."""


@dataclass(frozen=True)
class Student:
    """Fuses the queries of a release and the neighbours' statistics in a multivariate Student t predictive.

    The features of a node are its statistic under each query and the mean over its neighbours under each: a member
    changes the answers about its neighbours too. A node without neighbours has its own statistics only, and a feature
    that is a linear function of others is dropped. Of each node and side ("member" or not) the V features are normal,
    with a normal-inverse-Wishart prior whose parameters are learnt from all nodes (empirical Bayes). So the features of
    one more model follow a multivariate Student t distribution on each side, and the score is the log of the ratio of
    the two densities. With many models this becomes the ratio of two normal densities; with few, the prior steadies it.

    The prior of a side of a node, with n' models, mean x̄' and scatter S' on the *other* side:

        mean    (a·level' + n'·x̄')/(a + n') ± shift, worth 1/(1/b + 1/(a + n')) models
        scale   (dof - V - 1)·((1-s)·scale + s·(2·scale' + S')/(2 + n')), the latter brought to the side's variances

    `level`, `shift` and `scale` are means over nodes, the weights a and b follow from the variance between nodes (by
    moments), `dof` and s maximise the marginal likelihood; see `student_prior.py`. So a node needs no models on a side:
    what is known of it then rests on its other side and on the other nodes. Nodes cannot be scored only if no fitting
    model has a member, or none has a non-member, or no node has two models on a side.

    Leaving out each model in turn is exact for the node's own models, by rank-one downdates in O(models · nodes). The
    prior is learnt without the tenth of the models that a model belongs to, so that nothing about its memberships
    enters its score.

    Attributes:
        neighbours: Whether the mean statistic of a node's neighbours is used.
    """

    fuses_queries: ClassVar[bool] = True

    neighbours: bool = True

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
        """Scores models with a fit on others."""
        return self._scores(fitting, challenged, num_threads)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
        """Scores each model with a fit on all others."""
        return self._scores(models, None, num_threads)

    def _scores(self, fitting: Evidence, challenged: Evidence | None, num_threads: int) -> Scores:
        if challenged is None and fitting.num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {fitting.num_models}")
        asked = fitting if challenged is None else challenged
        llr = np.zeros((asked.num_models, len(asked.nodes)))
        reasons: list[NotAuditable] = []
        is_connected = have_neighbours(fitting, asked.nodes, self.neighbours)
        for with_neighbours in (True, False):
            columns = np.flatnonzero(is_connected == with_neighbours)
            if not len(columns):
                continue
            task = _GroupTask(self, with_neighbours, fitting, challenged, num_threads)
            if not task.score(columns, llr):
                reason = f"{fitting.num_models:,} models leave nothing to learn the prior of the Student attack from"
                reasons += [asked.not_auditable(node, reason) for node in asked.nodes[columns]]
        return Scores(llr, tuple(reasons))


@dataclass(frozen=True, eq=False)
class _Basis:
    """What the prior of a group is learnt from, whatever the memberships.

    Attributes:
        nodes: Ids of M nodes.
        features: Their features, shape (V, J, M); None on a worker, which is sent the priors that were learnt instead.
        is_kept: Which of all features these are.
    """

    nodes: Ints
    features: Floats32 | None
    is_kept: Flags

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "features": None}


class _GroupTask(NamedTuple):
    """Scores of nodes that have the same features."""

    attack: Student
    with_neighbours: bool
    fitting: Evidence
    challenged: Evidence | None
    num_threads: int

    @property
    def key(self) -> tuple[Student, bool]:
        """What tells these nodes from others."""
        return self.attack, self.with_neighbours

    def score(self, columns: Ints, llr: Floats) -> bool:
        """Fills columns of the scores; False if there is nothing to learn a prior from."""
        fitting, challenged, num_models = self.fitting, self.challenged, self.fitting.num_models
        basis = fitting.kept("models", self.key, self._basis)
        num_features = int(basis.is_kept.sum())
        if num_features == 0:  # no statistic varies between models: they all look alike
            return num_models > 1
        if num_features > MAX_FEATURES:
            raise InputError(f"the Student attack takes at most {MAX_FEATURES} features, got {num_features}")
        folds = _folds(num_models) if challenged is None else [slice(None)]
        learnt = fitting.kept(
            "samples",
            (*self.key, len(folds)),
            lambda: self._learn_priors(basis if basis.features is not None else self._basis(), folds),
        )
        priors = [prior for prior in learnt if prior is not None]
        if len(priors) < len(learnt):
            return False
        set_of = np.zeros(len(llr), dtype=np.int64)
        for number, rows in enumerate(folds):
            set_of[rows] = number
        nodes = (fitting if challenged is None else challenged).nodes[columns]

        def features_of(models: Evidence) -> Floats32:
            return node_features(models, nodes, self.with_neighbours, self.num_threads, basis.is_kept)

        if challenged is None:
            features, asked = fitting.kept("targets", self.key, lambda: features_of(fitting)), None
        else:
            features, asked = features_of(fitting), features_of(challenged)
        scores = llr if len(columns) == llr.shape[1] else np.empty((len(llr), len(columns)))
        members = as_bytes(fitting.memberships[:, nodes])
        _native.student_scores(
            features,
            members,
            asked,
            set_of,
            **_stacked(priors, num_models),
            num_threads=self.num_threads,
            scores=scores,
        )
        if scores is not llr:
            llr[:, columns] = scores
        return True

    def _learn_priors(self, basis: _Basis, folds: Sequence[slice]) -> list[StudentPrior | None]:
        assert basis.features is not None  # noqa: S101 - they were just made, if need be
        return learn_priors(basis.features, self.fitting.memberships[:, basis.nodes], folds, self.num_threads)

    def _basis(self) -> _Basis:
        with_neighbours, fitting = self.with_neighbours, self.fitting
        every_node = np.arange(fitting.num_nodes)
        group = every_node[have_neighbours(fitting, every_node, self.attack.neighbours) == with_neighbours]
        some = _spread(group, fitting.num_models)
        features = node_features(fitting, some, with_neighbours, self.num_threads)
        is_kept = independent_features(features)
        if not with_neighbours and len(group) < fitting.num_nodes:  # all nodes have statistics of their own
            some = _spread(every_node, fitting.num_models)
            features = node_features(fitting, some, with_neighbours, self.num_threads)
        return _Basis(some, features[is_kept], is_kept)


def _stacked(priors: Sequence[StudentPrior], num_models: int) -> dict[str, Floats]:
    return {
        "level": np.stack([prior.level for prior in priors]),
        "shift": np.stack([prior.shift for prior in priors]),
        "weights": np.array([[prior.level_weight, prior.shift_weight] for prior in priors]),
        "dof": np.stack([prior.dof for prior in priors]),
        "other_share": np.stack([prior.other_share for prior in priors]),
        "scale": np.stack([prior.scale for prior in priors]),
        "log_gamma": np.stack([prior.log_gamma(num_models) for prior in priors]),
    }


def _folds(num_models: int) -> list[slice]:
    num_folds = min(NUM_FOLDS, num_models)
    return [slice(*bounds) for bounds in pairwise(num_models * fold // num_folds for fold in range(num_folds + 1))]


def _spread(nodes: Ints, num_models: int) -> Ints:
    """The nodes that a prior is learnt from."""
    return evenly_spaced(nodes, num_learnt_from(len(nodes), num_models))


def num_learnt_from(num_nodes: int, num_models: int) -> int:
    """How many nodes a prior is learnt from: so many that the work stays bounded."""
    return min(num_nodes, max(2**19 // num_models, 256), 2**12)
