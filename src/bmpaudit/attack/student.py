"""All queries of a release and the neighbours, in a multivariate Student t distribution with a learnt prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from bmpaudit import _native
from bmpaudit.attack.evidence import Evidence, NotAuditable, Scores, folds
from bmpaudit.util.errors import InputError
from bmpaudit.util.matrices import columns, evenly_spaced
from bmpaudit.util.values import Flags, Floats, Floats32, Ints, as_bytes

MAX_FEATURES = 16  # that the kernel takes
MIN_OWN_VARIANCE = 1e-6  # share of a feature's variance that the features before it must leave unexplained
MAX_LOOKED_AT = 256  # nodes that tell whether features depend, and that the degrees of freedom are learnt from
OTHER_SHARES = np.array([0.0, 0.5, 1.0])  # of the other side's covariance in a node's prior scale that are tried
FREEDOM = np.geomspace(0.25, 400.0, 25)  # degrees of freedom beyond V + 1 that are tried
ALL_NODES_WEIGHT = 2.0  # of the mean over nodes in a node's covariance, as a number of models
BORROWED_FREEDOM = 10.0  # that a side's mean covariance borrows from both sides together
FLOOR = 1e-6  # share of the variance within a node that is added within a side, for the scale to be definite
LEAST_VARIANCE = 1e-90  # below the square of the smallest float32
NUM_IN_CENTER = 9  # models whose median is the center: an answer far off must not cost the others their digits
MIN_WEIGHT, MAX_WEIGHT = 1e-3, 1e3
FAR, NUM_IN_QUARTILES = 10.0, 64


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
    moments), `dof` and s maximise the marginal likelihood; see `learn_priors`. So a node needs no models on a side:
    what is known of it then rests on its other side and on the other nodes. Nodes cannot be scored only if no fitting
    model has a member, or none has a non-member, or no node has two models on a side.

    Features far from all usual ones of a node are moved towards them first (`without_outliers`).

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
        if models.num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
        return self._scores(models, None, num_threads)

    def _scores(self, fitting: Evidence, challenged: Evidence | None, num_threads: int) -> Scores:
        """Scores nodes with neighbours and those without, which have fewer features, one after the other."""
        asked = fitting if challenged is None else challenged
        llr = np.zeros((asked.num_models, asked.num_targets))
        reasons: list[NotAuditable] = []
        has_neighbours = self._have_neighbours(fitting, asked.nodes)
        for with_neighbours in (True, False):
            group = np.flatnonzero(has_neighbours == with_neighbours)
            if not len(group):
                continue
            nodes = asked.nodes[group]
            scores = self._score_group(with_neighbours, nodes, fitting, challenged, num_threads)
            if scores is None:
                reason = f"{fitting.num_models:,} models leave nothing to learn the prior of the Student attack from"
                reasons += [asked.not_auditable(node, reason) for node in nodes]
            elif len(group) == llr.shape[1]:
                llr = scores
            else:
                llr[:, group] = scores
        return Scores(llr, tuple(reasons))

    def _have_neighbours(self, models: Evidence, nodes: Ints) -> Flags:
        """Which of some nodes have neighbours, if these are looked at at all, shape (K,)."""
        if not self.neighbours or models.graph is None:
            return np.zeros(len(nodes), dtype=np.bool_)
        starts = models.graph.indptr
        return starts[nodes + 1] > starts[nodes]

    def _score_group(
        self, with_neighbours: bool, nodes: Ints, fitting: Evidence, challenged: Evidence | None, num_threads: int
    ) -> Floats | None:
        """Scores of nodes that have the same features; None if there is nothing to learn a prior from."""
        key, num_models = (self, with_neighbours), fitting.num_models
        basis = fitting.kept("models", key, partial(self._basis, with_neighbours, fitting, num_threads))
        num_features = int(basis.is_kept.sum())
        scores = np.zeros((num_models if challenged is None else challenged.num_models, len(nodes)))
        if num_features == 0:  # no statistic varies between models: they all look alike
            return scores if num_models > 1 else None
        if num_features > MAX_FEATURES:
            raise InputError(f"the Student attack takes at most {MAX_FEATURES} features, got {num_features}")
        parts = folds(num_models) if challenged is None else [slice(None)]

        def learn() -> StudentPriors | None:
            learnt_from = basis
            if learnt_from.features is None:
                learnt_from = self._basis(with_neighbours, fitting, num_threads)
            assert learnt_from.features is not None  # noqa: S101 - they were just made, if need be
            members = fitting.memberships[:, learnt_from.nodes]
            return learn_priors(learnt_from.features, members, parts, num_threads)

        priors = fitting.kept("samples", (*key, len(parts)), learn)
        if priors is None:
            return None

        def features_of(models: Evidence) -> Floats32:
            return node_features(models, nodes, with_neighbours, num_threads, basis.is_kept)

        if challenged is None:
            features, asked = fitting.kept("targets", key, lambda: without_outliers(features_of(fitting))), None
        else:
            features, asked = features_of(fitting), features_of(challenged)
            without_outliers(features, asked)
        _native.student_scores(
            features,
            as_bytes(fitting.memberships[:, nodes]),
            asked,
            _part_of(parts, len(scores)),
            *priors,
            priors.log_gamma(num_models),
            num_threads=num_threads,
            scores=scores,
        )
        return scores

    def _basis(self, with_neighbours: bool, fitting: Evidence, num_threads: int) -> _Basis:
        every_node = np.arange(fitting.num_nodes)
        group = every_node[self._have_neighbours(fitting, every_node) == with_neighbours]
        some = _spread(group, fitting.num_models)
        features = without_outliers(node_features(fitting, some, with_neighbours, num_threads))
        is_kept = independent_features(features)
        if not with_neighbours and len(group) < fitting.num_nodes:  # all nodes have statistics of their own
            some = _spread(every_node, fitting.num_models)
            features = without_outliers(node_features(fitting, some, with_neighbours, num_threads))
        return _Basis(some, features[is_kept], is_kept)


@dataclass(frozen=True, eq=False)
class _Basis:
    """What the prior of a group is learnt from, whatever the memberships."""

    nodes: Ints  # ids of M nodes
    features: Floats32 | None  # shape (V, J, M); None on a worker, which is sent the priors that were learnt instead
    is_kept: Flags  # which of all features these are

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "features": None}


def _spread(nodes: Ints, num_models: int) -> Ints:
    return evenly_spaced(nodes, num_learnt_from(len(nodes), num_models))


def num_learnt_from(num_nodes: int, num_models: int) -> int:
    """How many nodes a prior is learnt from: so many that the work stays bounded."""
    return min(num_nodes, max(2**19 // num_models, 256), 2**12)


def _part_of(parts: Sequence[slice], num_models: int) -> Ints:
    """Number of the part that each model belongs to."""
    part_of = np.zeros(num_models, dtype=np.int64)
    for number, rows in enumerate(parts):
        part_of[rows] = number
    return part_of


# Features.


def node_features(
    models: Evidence, nodes: Ints, with_neighbours: bool, num_threads: int, is_kept: Flags | None = None
) -> Floats32:
    """Features of K nodes: the statistic under each query, then the mean over the node's neighbours under each.

    Those of all V features that are kept, all if None: shape (number of features kept, J, K).
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


def without_outliers(features: Floats32, asked: Floats32 | None = None) -> Floats32:
    """Moves what is far from a node's median, by ten times the distance between its quartiles, to that distance.

    In place. One model whose training diverged, or a few answers of heavy tails, would spoil the prior of all nodes.
    Medians and quartiles are those of evenly spaced models of `features`, shape (V, J, K), and memberships are not
    looked at; `asked` are features of other models.
    """
    some = features[:, :: -(-features.shape[1] // NUM_IN_QUARTILES)]
    first, median, third = np.quantile(some, (0.25, 0.5, 0.75), axis=1, keepdims=True, method="nearest")
    reach = np.where(third > first, FAR * (third - first), np.inf)
    for each in (features,) if asked is None else (features, asked):
        np.clip(each, median - reach, median + reach, out=each)
    return features


def independent_features(features: Floats32) -> Flags:
    """Which features vary and are not a linear function of those before them, shape (V,).

    A model that ignores edges answers alike to every query; a node without neighbours is answered alike with all edges
    and with none. Such a feature says nothing new. Memberships are not looked at. Features have shape (V, J, K).
    """
    num_features = len(features)
    nodes = evenly_spaced(np.arange(features.shape[2]), MAX_LOOKED_AT)
    values = features[:, :, nodes].transpose(2, 0, 1).astype(np.float64)
    values -= values.mean(axis=2, keepdims=True)
    lengths = np.linalg.norm(values, axis=2, keepdims=True)
    values /= np.where(lengths > 0, lengths, 1.0)  # so that every node counts alike
    correlation: Floats = (values @ values.transpose(0, 2, 1)).sum(axis=0)
    kept: list[int] = []
    for feature in range(num_features):
        variance, with_it = correlation[feature, feature], correlation[kept, feature]
        unexplained = variance - with_it @ np.linalg.solve(correlation[np.ix_(kept, kept)], with_it)
        if variance > 0 and unexplained > MIN_OWN_VARIANCE * variance:
            kept.append(feature)
    return np.isin(np.arange(num_features), kept)


# The prior: what the nodes of a graph have in common, by empirical Bayes.


class StudentPriors(NamedTuple):
    """Normal-inverse-Wishart priors of V features, one for each of F parts; side 0 is "non-member", 1 is "member"."""

    level: Floats  # mean over nodes of each side's mean, shape (F, 2, V)
    shift: Floats  # mean over nodes of the difference between the means, member minus non-member, shape (F, V)
    weights: Floats  # how much alike the levels, and the shifts, of nodes are, as numbers of models, shape (F, 2)
    dof: Floats  # degrees of freedom of each side's covariance, shape (F, 2); above V + 1
    other_share: Floats  # share of the other side's covariance in each side's prior scale, shape (F, 2)
    scale: Floats  # mean over nodes of each side's covariance, shape (F, 2, V, V); positive definite

    def log_gamma(self, max_count: int) -> Floats:
        """Log Γ((dof + n + 1)/2) - log Γ((dof + n + 1 - V)/2) for n from 0 to `max_count`, shape (F, 2, …)."""
        half = (self.dof[..., None] + np.arange(max_count + 1) + 1) / 2
        return np.asarray(gammaln(half) - gammaln(half - self.shift.shape[1] / 2))


class Moments(NamedTuple):
    """Models on each side of M nodes, for each of F parts of the models."""

    num_models: Floats  # number of models, shape (F, 2, M)
    mean: Floats  # mean of the features, shape (F, 2, M, V); 0 without models
    scatter: Floats  # sum of outer products of deviations from the mean, shape (F, 2, M, V, V)
    spread: Floats  # variance of each feature within a node, whatever the side, shape (F, V)


def learn_priors(
    features: Floats32, memberships: Flags, parts: Sequence[slice], num_threads: int
) -> StudentPriors | None:
    """For each part of the models, the prior learnt from the models outside of it; with a single part, from all.

    Features of M nodes have shape (V, J, M), memberships (J, M). None if the models outside of some part leave nothing
    to learn from: no member, no non-member, or one model on each side.
    """
    # Models are summed up part by part, so that a prior is a sum over the other parts and nothing of its own remains.
    num_features, num_models, num_nodes = features.shape
    center = np.median(features[:, :: -(-num_models // NUM_IN_CENTER)], axis=1).astype(np.float64, order="C")
    sums = np.zeros((len(parts), 2, num_nodes, num_features + 1, num_features + 1))
    part_of = _part_of(parts, num_models)
    _native.student_sums(np.ascontiguousarray(features), as_bytes(memberships), center, part_of, num_threads, sums)
    if len(parts) > 1:
        sums = np.stack([np.delete(sums, part, axis=0).sum(axis=0) for part in range(len(parts))])
    moments = _moments(sums, center)
    freedom = np.maximum(moments.num_models - 1, 0).sum(axis=2)
    if not (np.any(moments.num_models > 0, axis=2).all() and (freedom.sum(axis=1) > 0).all()):
        return None
    num_known = np.maximum((moments.num_models > 0).sum(axis=2), 1)
    level: Floats = moments.mean.sum(axis=2) / num_known[..., None]
    scale = _mean_covariances(moments, freedom)
    precision: Floats = np.linalg.inv(_node_covariances(moments, scale)).astype(np.float64)
    shift, shift_weight = _shift(moments, level, precision)
    weights = np.stack([_level_weight(moments, level, precision), shift_weight], axis=1)
    return StudentPriors(level, shift, weights, *_covariance_priors(moments, scale, num_threads), scale)


def _moments(sums: Floats, center: Floats) -> Moments:
    count, total = sums[..., 0, 0], sums[..., 0, 1:]
    mean = total / np.maximum(count, 1)[..., None]
    scatter = sums[..., 1:, 1:] - mean[..., :, None] * total[..., None, :]
    both = sums.sum(axis=1)
    squares = np.diagonal(both[..., 1:, 1:], axis1=2, axis2=3) - both[..., 0, 1:] ** 2 / np.maximum(both[..., :1, 0], 1)
    spread = np.maximum(squares, 0).sum(axis=1) / np.maximum(both[..., 0, 0] - 1, 1).sum(axis=1)[:, None]
    return Moments(count, np.where(count[..., None] > 0, mean + center.T, 0.0), scatter, spread)


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
    return np.asarray(total / (ALL_NODES_WEIGHT + freedom)[..., None, None])


def _mean_squares(deviations: Floats, precision: Floats) -> Floats:
    """Of each node, the squared distance over V in units of its own spread."""
    return np.asarray(np.einsum("...v,...vw,...w->...", deviations, precision, deviations) / deviations.shape[-1])


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
    num_features, shares = scale.shape[-1], OTHER_SHARES
    log_gamma = _log_gamma(num_features, int(moments.num_models.max(initial=1)))
    problems = [(part, side) for part in range(len(scale)) for side in (0, 1)]
    known = (np.flatnonzero(moments.num_models[each] >= 2) for each in problems)
    used = list(map(partial(evenly_spaced, most=MAX_LOOKED_AT), known))
    freedom = [moments.num_models[each][nodes] - 1 for each, nodes in zip(problems, used, strict=True)]
    likelihood = np.zeros((len(problems), len(shares), len(FREEDOM)))
    if problems:
        _native.covariance_likelihood(
            np.cumsum([0, *map(len, used)]),
            np.concatenate(freedom),
            np.concatenate([moments.scatter[each][nodes] for each, nodes in zip(problems, used, strict=True)]),
            scale.reshape(-1, num_features, num_features),
            np.concatenate(list(map(partial(_other_covariances, moments, scale), problems, used))),
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
    return np.asarray(gammas + num_features * half[..., 0] * np.log(FREEDOM)[:, None])


def _other_covariances(moments: Moments, scale: Floats, each: tuple[int, int], nodes: Ints) -> Floats:
    """The covariance of the other side of some nodes, brought to the variances of this side, shape (M', V, V)."""
    (part, side), other = each, 1 - each[1]
    ratio = np.sqrt(np.diagonal(scale[part, side]) / np.diagonal(scale[part, other]))
    scatter = ALL_NODES_WEIGHT * scale[part, other] + moments.scatter[part, other, nodes]
    number = ALL_NODES_WEIGHT + moments.num_models[part, other, nodes]
    return np.asarray(ratio[:, None] * ratio * scatter / number[:, None, None])
