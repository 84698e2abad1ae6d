"""BASE, an approximately Bayes-optimal attack: the loss against its average over reference models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bmpaudit.attack.confidence import log_confidence, log_mean, log_mean_of_others
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.scores import Scores
from bmpaudit.errors import InputError


@dataclass(frozen=True)
class Base:
    """Compares the confidence in a node's label with its mean over reference models (Lassila et al. 2025).

    With p(x|θ) the probability that model θ gives the true label of node x, the score is

        log p(x|θ) - log (1/J) Σ_j p(x|θ_j)

    over all J models of the fit, with the node or without it (the online form). If a model is drawn in proportion to
    e^-loss, this is the log-likelihood ratio of membership. No memberships are used, so every node can be scored.
    Published figures use the query without edges. Meant for margins; any other statistic is read as one.

    Reference: Practical Bayes-Optimal Membership Inference Attacks, https://arxiv.org/abs/2505.24089.
    """

    fuses_queries: ClassVar[bool] = False

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores models against the mean of others."""
        reference = log_mean(log_confidence(fitting.at_targets(fitting.only_statistic)))
        return Scores(log_confidence(challenged.at_targets(challenged.only_statistic)) - reference)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores each model against the mean of all others."""
        if models.num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {models.num_models}")
        confidence = log_confidence(models.at_targets(models.only_statistic))
        return Scores(confidence - log_mean_of_others(confidence))
