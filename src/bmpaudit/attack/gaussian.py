"""The paper's attack: one normal distribution per node and hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bmpaudit import _native
from bmpaudit.attack.evidence import Evidence, NotAuditable, Scores, can_be_attacked
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.values import Bytes, Floats, Floats32, Ints, as_bytes


class NativeErrors(NamedTuple):
    """False positives and false negatives of the built-in rules, shape (2, K), and nodes that could not be attacked."""

    weak: Ints
    strong: Ints
    not_auditable: tuple[NotAuditable, ...]


@dataclass(frozen=True)
class Gaussian:
    """Fits N(μ_0, σ_0²) and N(μ_1, σ_1²) to the statistic of each node without and with it (Algorithm 2).

    The score is log N(z; μ_1, σ_1²) - log N(z; μ_0, σ_0²). Both sides are fitted, so nothing is assumed about which of
    them has the higher statistic. Leaving out each model in turn is exact and takes O(models · nodes) for all of them.

    Attributes:
        pooled_variance: Whether both hypotheses share one standard deviation; steadier with few models.
        min_sigma: Lower bound on the fitted standard deviations.
        min_models: Minimum number of models each hypothesis is fitted on, not counting the challenged one.
    """

    fuses_queries: ClassVar[bool] = False

    pooled_variance: bool = False
    min_sigma: float = 0.0
    min_models: int = 2

    def __post_init__(self) -> None:
        check_at_least_one(min_models=self.min_models)
        if not 0 <= self.min_sigma < np.inf:
            raise InputError(f"min_sigma must be at least 0 and finite, got min_sigma={self.min_sigma}")

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
        """Scores models with hypotheses fitted on others (Algorithm 4)."""
        return self._scores(challenged, fitting, num_threads)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
        """Scores each model with hypotheses fitted on all others (Algorithm 1)."""
        return self._scores(models, None, num_threads)

    def _scores(self, models: Evidence, fitting: Evidence | None, num_threads: int) -> Scores:
        shape = models.num_models, models.num_targets
        # Memberships of models to score would only serve to count errors, which are not wanted here.
        members = _members(models) if fitting is None else np.zeros(shape, np.uint8)
        scores, log_odds = np.empty(shape), np.zeros(models.num_targets)
        made = self.count_errors(models, members, fitting, log_odds, 0.0, num_threads=num_threads, scores=scores)
        return Scores(scores, made.not_auditable)

    def count_errors(
        self,
        models: Evidence,
        members: Bytes,
        fitting: Evidence | None,
        log_prior_odds: Floats,
        threshold: float,
        *,
        num_threads: int,
        scores: Floats | None = None,
    ) -> NativeErrors:
        """Counts the errors of both built-in rules in one pass: decision scores above the threshold mean "member".

        Without `fitting`, each model is left out of its own fit. Memberships have shape (J, K), log prior odds of the K
        targets must be finite. Scores are kept only if there is an array of shape (J, K) to fill.
        """
        needed = self.min_models + (1 if fitting is None else 0)  # one is left out
        reasons = (models if fitting is None else fitting).too_few_models(needed)
        errors = np.zeros((2, 2, members.shape[1]), dtype=np.int64)
        _native.challenge_models(
            _statistics(models),
            members,
            None if fitting is None else _statistics(fitting),
            None if fitting is None else _members(fitting),
            log_prior_odds,
            can_be_attacked(models.nodes, reasons).view(np.uint8),
            self.pooled_variance,
            self.min_sigma,
            threshold,
            num_threads,
            errors,
            scores,
        )
        return NativeErrors(errors[0], errors[1], reasons)


def _statistics(models: Evidence) -> Floats32:
    return np.ascontiguousarray(models.at_targets(models.only_statistic))


def _members(models: Evidence) -> Bytes:
    return as_bytes(models.at_targets(models.memberships))
