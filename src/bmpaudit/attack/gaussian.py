"""The paper's attack: one normal distribution per node and hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bmpaudit import _native
from bmpaudit.attack.evidence import Evidence, NotAuditable, Scores, can_be_attacked, too_few_models
from bmpaudit.attack.rules import RuleErrors, Strong, Weak
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.values import Bytes, Floats, Floats32, Ints, as_bytes

NATIVE_RULES = (Strong, Weak)
"""Rules whose errors `Gaussian.count_errors` counts."""


@dataclass(frozen=True)
class Gaussian:
    """Fits N(μ_0, σ_0²) and N(μ_1, σ_1²) to the statistic of each node without and with it (Algorithm 2).

    The score is log N(z; μ_1, σ_1²) - log N(z; μ_0, σ_0²); `decision.py` has the formula in plain Python. Both sides
    are fitted, so nothing is assumed about which of them has the higher statistic. Leaving out each model in turn is
    exact and takes O(models · nodes) for all of them.

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

    def count_errors(
        self,
        models: Evidence,
        fitting: Evidence | None,
        log_prior_odds: Floats,
        threshold: float,
        *,
        num_threads: int,
        scores: Floats | None = None,
    ) -> NativeErrors:
        """Counts the errors of both built-in rules in one pass, without keeping scores unless asked to.

        Args:
            models: Models to challenge.
            fitting: Other models to fit on; if None, each model is left out of its own fit.
            log_prior_odds: log η of the targets, shape (K,), finite.
            threshold: Decision scores above it mean "member".
            num_threads: Number of threads; the result does not depend on it.
            scores: If given, is filled with the log-likelihood ratios, shape (J, K).
        """
        reasons = self._find_not_auditable(models, fitting)
        members = _members(models)
        errors = self._challenge(models, members, fitting, reasons, log_prior_odds, threshold, num_threads, scores)
        # The only place that knows the kernel's order: weak, then strong; false positives, then false negatives.
        weak, strong = errors
        return NativeErrors({Weak: RuleErrors(*weak), Strong: RuleErrors(*strong)}, reasons)

    def _scores(self, models: Evidence, fitting: Evidence | None, num_threads: int) -> Scores:
        reasons = self._find_not_auditable(models, fitting)
        scores = np.empty((models.num_models, len(models.nodes)))
        # With other models to fit on, memberships only serve to count errors, which are not wanted here.
        members = _members(models) if fitting is None else np.zeros(scores.shape, dtype=np.uint8)
        even_odds = np.zeros(scores.shape[1])
        self._challenge(models, members, fitting, reasons, even_odds, 0.0, num_threads, scores)
        return Scores(scores, reasons)

    def _find_not_auditable(self, models: Evidence, fitting: Evidence | None) -> tuple[NotAuditable, ...]:
        needed = self.min_models + (1 if fitting is None else 0)  # one is left out
        fitted = models if fitting is None else fitting
        num_out = fitted.num_models - fitted.num_in
        return too_few_models(models.nodes, num_out, fitted.num_in, needed, models.node_names)

    def _challenge(
        self,
        models: Evidence,
        members: Bytes,
        fitting: Evidence | None,
        reasons: tuple[NotAuditable, ...],
        log_prior_odds: Floats,
        threshold: float,
        num_threads: int,
        scores: Floats | None,
    ) -> Ints:
        errors = np.zeros((2, 2, len(models.nodes)), dtype=np.int64)
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
        return errors


class NativeErrors(NamedTuple):
    """Errors of each built-in rule on K nodes, and the nodes that could not be attacked."""

    errors: Mapping[type, RuleErrors]
    not_auditable: tuple[NotAuditable, ...]


def _statistics(models: Evidence) -> Floats32:
    return np.ascontiguousarray(models.at_targets(models.only_statistic))


def _members(models: Evidence) -> Bytes:
    return as_bytes(models.at_targets(models.memberships))
