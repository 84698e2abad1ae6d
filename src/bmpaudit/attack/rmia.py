"""RMIA, the robust attack of few models: a node's confidence ratio against those of all other nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmpaudit.arrays import Floats, Ints
from bmpaudit.attack.confidence import log_confidence, log_mean, log_mean_of_others
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.scores import Scores
from bmpaudit.errors import InputError
from bmpaudit.tables import columns, evenly_spaced

MAX_POPULATION = 2**24  # numbers, of all models together


@dataclass(frozen=True)
class RMIA:
    """Counts the nodes over which a node's confidence has risen more than γ-fold (Zarifzadeh et al. 2024).

    With p(x|θ) the probability that model θ gives the true label of node x, and p(x) its mean over all models of the
    fit, with the node or without it (the online form), the attack's score is the share of other nodes z for which

        (p(x|θ)/p(x)) / (p(z|θ)/p(z)) > γ

    Here the population of nodes z is the rest of the graph, or evenly spaced nodes of a large one (so many that models
    times nodes stay below 17 million). The share s of the N - 1 nodes is given out as log-odds,
    log (s + ½/(N-1)) - log (1 - s + ½/(N-1)), which keeps the order, so that 0 means "above half of the nodes". It is
    no likelihood ratio: compare it by its ROC curve. No memberships are used, so every node can be scored. Meant for
    margins; any other statistic is read as one.

    Reference: Low-Cost High-Power Membership Inference Attacks, https://arxiv.org/abs/2312.03262.

    Attributes:
        gamma: Factor by which the ratio of a node must exceed that of another.
    """

    fuses_queries: ClassVar[bool] = False

    gamma: float = 2.0

    def __post_init__(self) -> None:
        if not 1 <= self.gamma < np.inf:
            raise InputError(f"gamma must be at least 1 and finite, got gamma={self.gamma}")

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores models with the mean confidences of others."""

        def log_ratios(nodes: Ints) -> Floats:
            reference = log_mean(log_confidence(columns(fitting.only_statistic, nodes)))
            return log_confidence(columns(challenged.only_statistic, nodes)) - reference

        population = _population(challenged.num_nodes, fitting.num_models + challenged.num_models)
        return self._compare(
            log_ratios(challenged.nodes), np.sort(log_ratios(population), axis=1), challenged.num_nodes
        )

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores each model with the mean confidences of all others."""
        if models.num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")

        def log_ratios(nodes: Ints) -> Floats:
            confidence = log_confidence(columns(models.only_statistic, nodes))
            return confidence - log_mean_of_others(confidence)

        population = _population(models.num_nodes, models.num_models)
        theirs = models.kept("models", self, lambda: np.sort(log_ratios(population), axis=1))
        return self._compare(log_ratios(models.nodes), theirs, models.num_nodes)

    def _compare(self, log_ratios: Floats, population: Floats, num_nodes: int) -> Scores:
        """Scores from log-ratios, with those of the population ascending; no node counts itself, as γ is at least 1."""
        asked = log_ratios - np.log(self.gamma)
        below = np.array([np.searchsorted(ascending, row) for ascending, row in zip(population, asked, strict=True)])
        is_all = population.shape[1] == num_nodes
        num_others = num_nodes - 1 if is_all else population.shape[1]
        return Scores(np.log(below + 0.5) - np.log(num_others - below + 0.5))


def _population(num_nodes: int, num_models: int) -> Ints:
    if num_nodes < 2:
        raise InputError(f"RMIA compares a node with others: there must be at least 2 nodes, got {num_nodes}")
    return evenly_spaced(np.arange(num_nodes), max(2, MAX_POPULATION // num_models))
