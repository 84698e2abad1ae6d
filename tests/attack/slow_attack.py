"""Algorithms 1, 2 and 4 as one would first write them: every hypothesis is fitted anew, in float64."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.attack import ChallengeScores, Evidence, Gaussian, Strong, Weak, challenge
from bmpaudit.interfaces import Attack, DecisionRule

QUERY = "full"
GAUSSIAN = Gaussian()
RULES: dict[str, DecisionRule] = {"weak": Weak(), "strong": Strong()}


@dataclass(frozen=True)
class Fit:
    pooled_variance: bool = False
    min_sigma: float = 0.0

    def attack(self, min_models: int = 2) -> Gaussian:
        return Gaussian(self.pooled_variance, self.min_sigma, min_models)


def make_models(memberships: npt.ArrayLike, statistics: npt.ArrayLike) -> Evidence:
    members = np.asarray(memberships, dtype=bool)
    return Evidence({QUERY: np.asarray(statistics)}, members, np.arange(len(members)))


def random_memberships(num_models: int, num_nodes: int, seed: int, prob: float = 0.4) -> np.ndarray:
    """Independent coins, with at least four models on either side of every node."""
    members: np.ndarray = np.random.default_rng(seed).random((num_models, num_nodes)) < prob
    members[:4], members[4:8] = True, False
    return members


def scores_of(
    models: Evidence, prior_prob: npt.ArrayLike | str, attack: Attack = GAUSSIAN, **options: Any
) -> ChallengeScores:
    scores = challenge(attack, models, prior_prob, RULES, with_scores=True, **options).scores
    assert scores is not None
    return scores


def log_density(z: float, mean: float, sigma: float) -> float:
    if sigma == 0:
        return np.inf if z == mean else -np.inf
    return float(-np.log(sigma) - (z - mean) ** 2 / (2 * sigma**2))


def slow_score(z: float, outside: np.ndarray, inside: np.ndarray, fit: Fit) -> float:
    sigmas = [np.std(outside), np.std(inside)]
    if fit.pooled_variance:
        deviations = np.concatenate([outside - np.mean(outside), inside - np.mean(inside)])
        sigmas = [np.sqrt(np.mean(deviations**2))] * 2
    log_out = log_density(z, np.mean(outside), max(sigmas[0], fit.min_sigma))
    log_in = log_density(z, np.mean(inside), max(sigmas[1], fit.min_sigma))
    if np.isinf(log_in) and log_in == log_out:  # 0/0 or ∞/∞
        return 0.0
    return log_in - log_out


def slow_left_out_scores(models: Evidence, fit: Fit) -> np.ndarray:
    """Log-likelihood ratios of all challenges, shape (J, N); the challenged model is literally removed."""
    statistics, members = models.statistics[QUERY].astype(np.float64), models.memberships
    scores = np.empty(members.shape)
    for node in range(members.shape[1]):
        for model in range(len(members)):
            z, m = np.delete(statistics[:, node], model), np.delete(members[:, node], model)
            scores[model, node] = slow_score(statistics[model, node], z[~m], z[m], fit)
    return scores


def slow_split_scores(fitting: Evidence, challenged: Evidence, fit: Fit) -> np.ndarray:
    scores = np.empty_like(challenged.statistics[QUERY], dtype=np.float64)
    for node in range(challenged.num_nodes):
        z, m = fitting.statistics[QUERY][:, node].astype(np.float64), fitting.memberships[:, node]
        for model in range(challenged.num_models):
            scores[model, node] = slow_score(float(challenged.statistics[QUERY][model, node]), z[~m], z[m], fit)
    return scores


def exact_left_out_score(models: Evidence, model: int, node: int) -> float:
    """The log-likelihood ratio from rational means and variances, for sides with some spread."""
    z = Fraction(float(models.statistics[QUERY][model, node]))
    logs = []
    for side in (False, True):
        others = [
            Fraction(float(models.statistics[QUERY][j, node]))
            for j in range(models.num_models)
            if j != model and models.memberships[j, node] == side
        ]
        mean = sum(others) / len(others)
        variance = sum((value - mean) ** 2 for value in others) / len(others)
        logs.append((variance, (z - mean) ** 2 / variance))
    (out_variance, out_distance), (in_variance, in_distance) = logs
    return 0.5 * (log(out_variance / in_variance) + float(out_distance - in_distance))


def slow_counts(scores: np.ndarray, members: np.ndarray, threshold: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """False positives and false negatives of each node."""
    says_member = scores > threshold
    return (says_member & ~members).sum(axis=0), (~says_member & members).sum(axis=0)


def is_clear(scores: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """Nodes on which no challenge is so close to the threshold that rounding could decide it."""
    return np.asarray((np.abs(scores - threshold) > 1e-9).all(axis=0))
