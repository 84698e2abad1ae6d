"""The Student attack as one would first write it: every model is challenged with a fit from scratch, in float64."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import multigammaln
from scipy.stats import multivariate_t

from bmpaudit.attack import Evidence
from bmpaudit.attack.student import FREEDOM, StudentPriors
from bmpaudit.util.values import Floats


@dataclass
class SlowPrior:
    level: Any
    shift: Any
    level_weight: float
    shift_weight: float
    dof: Any
    other_share: Any
    scale: Any

    @classmethod
    def of_part(cls, priors: StudentPriors, part: int) -> "SlowPrior":
        """One of the priors of the attack."""
        level, shift, weights, dof, other_share, scale = (values[part] for values in priors)
        return cls(level, shift, weights[0], weights[1], dof, other_share, scale)


@dataclass
class Side:
    """Models on one side of one node, as rows of features."""

    rows: Floats

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def mean(self) -> Floats:
        return self.rows.mean(axis=0) if self.count else np.zeros(self.rows.shape[1])

    @property
    def scatter(self) -> Floats:
        return (self.rows - self.mean).T @ (self.rows - self.mean)


def sides(features: Floats, members: np.ndarray) -> list[list[Side]]:
    """For both sides a list over nodes; features have shape (models, nodes, V)."""
    nodes = range(features.shape[1])
    return [[Side(features[members[:, node] == side, node]) for node in nodes] for side in (False, True)]


def slow_prior(features: Floats, members: np.ndarray) -> SlowPrior:
    both = sides(features, members)
    num_features = features.shape[2]
    freedom = [sum(max(node.count - 1, 0) for node in side) for side in both]
    total = [sum(node.scatter for node in side) for side in both]
    pooled = (total[0] + total[1]) / sum(freedom)
    trust = sum(freedom) / (sum(freedom) + num_features)
    pooled = trust * pooled + (1 - trust) * np.diag(np.diag(pooled))
    deviations = (features - features.mean(axis=0)).reshape(-1, num_features)
    spread = np.square(deviations).sum(axis=0) / (features.shape[1] * (len(features) - 1))
    scale = [(t + 10 * pooled) / (f + 10) + np.diag(1e-6 * spread) for t, f in zip(total, freedom, strict=True)]
    level = [np.mean([node.mean for node in side if node.count], axis=0) for side in both]
    inverses = []
    for out, into in zip(*both, strict=True):
        freedom_here = max(out.count - 1, 0) + max(into.count - 1, 0)
        covariance = (scale[0] + scale[1] + out.scatter + into.scatter) / (2 + freedom_here)
        inverses.append(np.linalg.inv(covariance))

    def square(x: Any, node: int) -> float:
        return float(x @ inverses[node] @ x) / num_features

    excess = []
    for nodes, center in zip(both, level, strict=True):
        known = [i for i, node in enumerate(nodes) if node.count]
        factor = len(known) / max(len(known) - 1, 1)
        excess += [square(nodes[i].mean - center, i) * factor - 1 / nodes[i].count for i in known]
    pairs = [(i, out, into) for i, (out, into) in enumerate(zip(*both, strict=True)) if out.count and into.count]
    precision = [1 / (1 / out.count + 1 / into.count) for _, out, into in pairs]
    shifts = [into.mean - out.mean for _, out, into in pairs]
    shift = np.average(shifts, axis=0, weights=precision)
    squares = [square(each - shift, i) for each, (i, _, _) in zip(shifts, pairs, strict=True)]
    shift_variance = np.average([s - 1 / p for s, p in zip(squares, precision, strict=True)], weights=precision)
    dof, other_share = [], []
    for side in (0, 1):
        facing = [(mine, other) for mine, other in zip(both[side], both[1 - side], strict=True) if mine.count >= 2]
        likelihoods = {
            (num_features + 1 + f, share): sum(
                scatter_likelihood(mine, expected_covariance(scale, side, share, other), num_features + 1 + f)
                for mine, other in facing
            )
            for f in FREEDOM
            for share in (0.0, 0.5, 1.0)
        }
        best = max(likelihoods, key=lambda each: likelihoods[each])
        dof.append(best[0])
        other_share.append(best[1])
    weights = [1 / min(max(float(v), 1e-3), 1e3) for v in (np.mean(excess), shift_variance)]
    return SlowPrior(level, shift, weights[0], weights[1], dof, other_share, scale)


def expected_covariance(scale: Any, side: int, share: float, other: Side) -> Floats:
    ratio = np.diag(np.sqrt(np.diag(scale[side]) / np.diag(scale[1 - side])))
    theirs = (2 * scale[1 - side] + other.scatter) / (2 + other.count)
    result: Floats = (1 - share) * scale[side] + share * ratio @ theirs @ ratio
    return result


def scatter_likelihood(side: Side, expected: Floats, dof: float) -> float:
    """Of the scatter of a side, Wishart given an inverse Wishart covariance, without what does not depend on dof."""
    n, v = side.count - 1, len(expected)
    psi = (dof - v - 1) * expected
    gammas = multigammaln((dof + n) / 2, v) - multigammaln(dof / 2, v)
    logs = dof / 2 * np.linalg.slogdet(psi)[1] - (dof + n) / 2 * np.linalg.slogdet(psi + side.scatter)[1]
    return float(gammas + logs)


def slow_ratio(x: Floats, nodes: tuple[Side, Side], prior: Any) -> float:
    """Log-likelihood ratio of one model about one node."""
    densities = []
    for side in (0, 1):
        mine, other, sign = nodes[side], nodes[1 - side], 2 * side - 1
        weight_of_other = prior.level_weight + other.count
        mean = (prior.level_weight * prior.level[1 - side] + other.count * other.mean) / weight_of_other
        mean = mean + sign * prior.shift
        k, n, v = 1 / (1 / prior.shift_weight + 1 / weight_of_other), mine.count, len(x)
        psi = (prior.dof[side] - v - 1) * expected_covariance(prior.scale, side, prior.other_share[side], other)
        away = mine.mean - mean
        psi = psi + mine.scatter + k * n / (k + n) * np.outer(away, away)
        center, df = (k * mean + n * mine.mean) / (k + n), prior.dof[side] + n - v + 1
        densities.append(multivariate_t.logpdf(x, center, psi * (k + n + 1) / ((k + n) * df), df))
    return float(densities[1] - densities[0])


def features_of(models: Evidence, with_neighbours: bool) -> Floats:
    """Shape (models, nodes, V), rounded as the attack rounds them."""
    own = [values.astype(np.float64) for values in models.statistics.values()]
    if with_neighbours and models.graph is not None:
        adjacency = models.graph.adjacency.toarray()
        own += [values @ adjacency / np.maximum(adjacency.sum(axis=0), 1) for values in own]
    return np.stack(own, axis=-1).astype(np.float32).astype(np.float64)


def slow_split_scores(features: Floats, members: np.ndarray, asked: Floats, prior: Any) -> Floats:
    both = sides(features, members)
    nodes = range(features.shape[1])
    return np.array([[slow_ratio(x[i], (both[0][i], both[1][i]), prior) for i in nodes] for x in asked])


def slow_left_out_scores(features: Floats, members: np.ndarray, priors: list[Any]) -> Floats:
    """With the prior of each model."""
    scores = []
    for model, prior in enumerate(priors):
        others = np.arange(len(features)) != model
        scores.append(slow_split_scores(features[others], members[others], features[[model]], prior)[0])
    return np.array(scores)
