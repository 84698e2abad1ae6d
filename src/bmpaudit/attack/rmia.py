"""RMIA, the robust attack of few models: a node's confidence ratio against those of all other nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.attack.confidence import log_confidence, log_mean, log_mean_of_others
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.scores import Scores
from bmpaudit.errors import InputError


@dataclass(frozen=True)
class RMIA:
    """Counts the nodes over which a node's confidence has risen more than γ-fold (Zarifzadeh et al. 2024).

    With p(x|θ) the probability that model θ gives the true label of node x, and p(x) its mean over all models of the
    fit, with the node or without it (the online form), the attack's score is the share of other nodes z for which

        (p(x|θ)/p(x)) / (p(z|θ)/p(z)) > γ

    Here the population of nodes z is the rest of the graph. The share s of the N - 1 nodes is given out as log-odds,
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
        reference = log_mean(log_confidence(fitting.only_statistic))
        return self._compare(log_confidence(challenged.only_statistic) - reference, challenged)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores each model with the mean confidences of all others."""
        if models.num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
        confidence = log_confidence(models.only_statistic)
        return self._compare(confidence - log_mean_of_others(confidence), models)

    def _compare(self, log_ratios: Floats, models: Evidence) -> Scores:
        """Scores from the log-ratios of all nodes; a node never counts itself, as γ is at least 1."""
        num_others = models.num_nodes - 1
        if num_others < 1:
            raise InputError(f"RMIA compares a node with others: there must be at least 2 nodes, got {num_others + 1}")
        asked = models.at_targets(log_ratios) - np.log(self.gamma)
        rows = zip(np.sort(log_ratios, axis=1), asked, strict=True)
        below = np.array([np.searchsorted(population, row) for population, row in rows])
        return Scores(np.log(below + 0.5) - np.log(num_others - below + 0.5))
