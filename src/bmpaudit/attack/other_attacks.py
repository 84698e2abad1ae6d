"""Other attacks, by the same protocol: scores as they are, BASE, RMIA, offline LiRA, and right-or-wrong for labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.attack.evidence import Evidence, Scores
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.matrices import columns, evenly_spaced
from bmpaudit.util.values import AnyFloats, Bytes, Flags, Floats, Ints

MAX_POPULATION = 2**24  # numbers that RMIA compares with, of all models together
MOST_QUERIES = 8
SMOOTHING = 0.5  # Jeffreys' prior of a multinomial distribution
OFFLINE_SHARE = 0.3  # by how much a model's confidence in its members exceeds that in others, for offline RMIA
FEW_WITHOUT = 2  # models that standard deviations are made of


def log_confidence(margins: npt.ArrayLike) -> Floats:
    """Log-probability of the true label, log 1/(1 + e^-z), for margins z = o_y - log Σ_{c≠y} e^{o_c}.

    >>> np.exp(log_confidence([0.0, np.log(3.0)])).round(6).tolist()
    [0.5, 0.75]
    """
    return -np.logaddexp(0.0, -np.asarray(margins, dtype=np.float64))


def log_mean(log_values: Floats, counts: Flags | None = None) -> Floats:
    """Log of the mean over models of e^v, of those that count, from shape (J, N) to (N,); -∞ if none does."""
    if counts is None:
        return np.asarray(np.logaddexp.reduce(log_values, axis=0) - np.log(len(log_values)))
    number = np.maximum(counts.sum(axis=0), 1)
    return np.asarray(np.logaddexp.reduce(np.where(counts, log_values, -np.inf), axis=0) - np.log(number))


def log_mean_of_others(log_values: Floats, counts: Flags | None = None) -> Floats:
    """For each model the log of the mean over all others, or all others that count, shape (J, N).

    Sums from the left and from the right are joined, as a difference of sums would lose the small values.
    """
    if len(log_values) < 2:
        raise InputError(f"there must be at least 2 models to fit on others, got {len(log_values)}")
    if counts is None:
        counts = np.ones(log_values.shape, dtype=np.bool_)
    log_values, number = np.where(counts, log_values, -np.inf), np.maximum(counts.sum(axis=0) - counts, 1)
    nothing = np.full((1, log_values.shape[1]), -np.inf)
    before = np.concatenate([nothing, np.logaddexp.accumulate(log_values[:-1], axis=0)])
    after = np.concatenate([np.logaddexp.accumulate(log_values[:0:-1], axis=0)[::-1], nothing])
    return np.asarray(np.logaddexp(before, after) - np.log(number))


@dataclass(frozen=True)
class Raw:
    """Takes the statistic itself as the score, and learns nothing: for the scores of an attack from elsewhere.

    Those of several attacks may be the statistics of as many queries, for a proof to choose from. Infinite ones enter
    as large numbers, such as 1e30. No model may have been scored by a rule that was fitted on it.
    """

    fuses_queries: ClassVar[bool] = False

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """The statistics."""
        return Scores(challenged.at_targets(challenged.only_statistic).astype(np.float64))

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
        """The statistics."""
        return self.score(models, models, num_threads=num_threads)


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
        confidence = log_confidence(models.at_targets(models.only_statistic))
        return Scores(confidence - log_mean_of_others(confidence))


@dataclass(frozen=True)
class RMIA:
    """Counts the nodes over which a node's confidence has risen more than γ-fold (Zarifzadeh et al. 2024).

    With p(x|θ) the probability that model θ gives the true label of node x, and p(x) its mean over all models of the
    fit, with the node or without it (the online form), the attack's score is the share of other nodes z for which

        (p(x|θ)/p(x)) / (p(z|θ)/p(z)) > γ

    Here the population of nodes z is the rest of the graph, or evenly spaced nodes of a large one (so many that models
    times nodes stay below 17 million). The share s of the N - 1 nodes is given out as log-odds,
    log (s + ½/(N-1)) - log (1 - s + ½/(N-1)), which keeps the order, so that 0 means "above half of the nodes". It is
    no likelihood ratio: compare it by its ROC curve. Meant for margins; any other statistic is read as one.

    The offline form knows models without the node only: p(x) is ((1 + a)·p_out(x) + 1 - a)/2 with the mean p_out over
    these and a = 0.3, and 1 for a node that is in all of them. Only the offline form uses memberships.

    Reference: Low-Cost High-Power Membership Inference Attacks, https://arxiv.org/abs/2312.03262.

    Attributes:
        gamma: Factor by which the ratio of a node must exceed that of another.
        offline: Whether p(x) is made of models without the node.
    """

    fuses_queries: ClassVar[bool] = False

    gamma: float = 2.0
    offline: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.gamma < np.inf:
            raise InputError(f"gamma must be at least 1 and finite, got gamma={self.gamma}")

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores models with the mean confidences of others."""

        def log_ratios(nodes: Ints) -> Floats:
            reference = log_mean(log_confidence(columns(fitting.only_statistic, nodes)), self._counts(fitting, nodes))
            return log_confidence(columns(challenged.only_statistic, nodes)) - self._reference(reference)

        population = _population(challenged.num_nodes, fitting.num_models + challenged.num_models)
        return self._compare(
            log_ratios(challenged.nodes), np.sort(log_ratios(population), axis=1), challenged.num_nodes
        )

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores each model with the mean confidences of all others."""

        def log_ratios(nodes: Ints) -> Floats:
            confidence = log_confidence(columns(models.only_statistic, nodes))
            return confidence - self._reference(log_mean_of_others(confidence, self._counts(models, nodes)))

        population = _population(models.num_nodes, models.num_models)
        theirs = models.kept("models", self, lambda: np.sort(log_ratios(population), axis=1))
        return self._compare(log_ratios(models.nodes), theirs, models.num_nodes)

    def _counts(self, models: Evidence, nodes: Ints) -> Flags | None:
        return ~columns(models.memberships, nodes) if self.offline else None

    def _reference(self, log_mean: Floats) -> Floats:
        if not self.offline:
            return log_mean
        online = np.logaddexp(np.log1p(OFFLINE_SHARE) + log_mean, np.log1p(-OFFLINE_SHARE)) - np.log(2)
        return np.where(np.isfinite(log_mean), online, 0.0)

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


@dataclass(frozen=True)
class OfflineLiRA:
    """Asks how unusual a node's statistic is among models without it (Carlini et al. 2022, offline).

    The score is -log (1 - Φ((z - μ_0)/σ_0)), with mean and standard deviation over models without the node. It is no
    likelihood ratio: compare it by its ROC curve.

    Reference: Membership Inference Attacks From First Principles, https://arxiv.org/abs/2112.03570.

    Attributes:
        min_sigma: Lower bound on standard deviations.
    """

    fuses_queries: ClassVar[bool] = False

    min_sigma: float = 1e-3

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores models against others."""
        values = fitting.at_targets(fitting.only_statistic).astype(np.float64)
        others = ~fitting.at_targets(fitting.memberships)
        sums = [(values**power * others).sum(axis=0) for power in range(3)]
        return self._scored(challenged, challenged.at_targets(challenged.only_statistic), *sums)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores each model against all others."""
        values = models.at_targets(models.only_statistic).astype(np.float64)
        own = [values**power * ~models.at_targets(models.memberships) for power in range(3)]
        return self._scored(models, values, *(each.sum(axis=0) - each for each in own))

    def _scored(self, models: Evidence, values: AnyFloats, number: Floats, total: Floats, squares: Floats) -> Scores:
        few = np.broadcast_to(number < FEW_WITHOUT, values.shape).any(axis=0)
        mean = total / np.maximum(number, 1)
        sigma = np.sqrt(np.maximum(squares / np.maximum(number, 1) - mean**2, self.min_sigma**2))
        reason = f"missing from the samples of fewer than {FEW_WITHOUT} models"
        left = tuple(models.not_auditable(node, reason) for node in models.nodes[few])
        return Scores(-scipy.special.log_ndtr((mean - values) / sigma), left)


@dataclass(frozen=True)
class RightOrWrong:
    """Compares how often models with and without a node answer as the challenged one does.

    An answer is the pattern of right and wrong over all queries; right means that the statistic is positive, as the
    margin of a released label is if it is the true one. With C_m of n_m models of a hypothesis answering alike, and P
    possible patterns, the score is log (C_1 + 1/2)/(n_1 + P/2) - log (C_0 + 1/2)/(n_0 + P/2).

    Attributes:
        min_models: Minimum number of models of each hypothesis, not counting the challenged one.
    """

    fuses_queries: ClassVar[bool] = True

    min_models: int = 2

    def __post_init__(self) -> None:
        check_at_least_one(min_models=self.min_models)

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores models by how often others answer alike."""
        return Scores(_log_ratio(challenged, fitting), fitting.too_few_models(self.min_models))

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        """Scores each model by how often all others answer alike."""
        return Scores(_log_ratio(models, None), models.too_few_models(self.min_models + 1))


def _answers(models: Evidence) -> Bytes:
    """The number of the pattern that each model gives for each node, shape (J, K)."""
    if len(models.queries) > MOST_QUERIES:
        raise InputError(f"right-or-wrong takes at most {MOST_QUERIES} queries, got {len(models.queries)}")
    answers = np.zeros((models.num_models, models.num_targets), dtype=np.uint8)
    for place, values in enumerate(models.statistics.values()):
        answers |= (models.at_targets(values) > 0).astype(np.uint8) << place
    return answers


def _log_ratio(models: Evidence, fitting: Evidence | None) -> Floats:
    """Log Pr(answer | in) - log Pr(answer | out), from how often the fitting models give it, or all other models."""
    known, answers, num_patterns = fitting or models, _answers(models), 2 ** len(models.queries)
    members, others = known.at_targets(known.memberships), _answers(fitting) if fitting else answers
    ratio = np.zeros(answers.shape)
    alike, logs = np.zeros(answers.shape, dtype=np.int32), np.log(np.arange(known.num_models + 1) + SMOOTHING)
    for is_in, sign in ((True, 1.0), (False, -1.0)):
        of_hypothesis, total = members == is_in, np.full(answers.shape[1], SMOOTHING * num_patterns)
        for pattern in range(num_patterns):
            number = (of_hypothesis & (others == pattern)).sum(axis=0)
            np.copyto(alike, number, where=answers == pattern, casting="same_kind")
            total += number
        if fitting is None:
            alike -= of_hypothesis
        ratio += sign * logs[alike]
        others_only = np.log(np.maximum(total - 1, 1))  # of models that hold to this hypothesis themselves
        ratio -= sign * (np.log(total) if fitting else np.where(of_hypothesis, others_only, np.log(total)))
    return ratio
