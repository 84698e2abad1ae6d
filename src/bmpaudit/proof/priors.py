"""Prior odds as a proof may use them: exact, or estimates with limits that hold together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.errors import InputError
from bmpaudit.samplers.floor import clopper_pearson

SHARE_FOR_PRIORS = 0.1
"""Part of the failure probability of a bound on MP that is spent on estimated priors."""
WHOLE = 0.01  # of a draw: a frequency may be rounded by so much


@dataclass(frozen=True, eq=False)
class PriorOdds:
    """Log-odds of the prior memberships of N nodes.

    Formal guarantee: log η_i is in [`low`, `high`] for all nodes together, except with probability
    `SHARE_FOR_PRIORS` times 1 - level: Clopper-Pearson limits with Bonferroni's correction over nodes and sides. Exact
    priors are their own limits.

    Attributes:
        log_odds: log η, shape (N,); infinite where a prior is 0 or 1.
        low: Lower limits, shape (N,).
        high: Upper limits, shape (N,).
        num_draws: Number of draws behind each prior; 0 if they are exact.
    """

    log_odds: Floats
    low: Floats
    high: Floats
    num_draws: int

    @classmethod
    def of(cls, prior_prob: npt.ArrayLike, num_nodes: int, prior_draws: int, failure_prob: float) -> PriorOdds:
        """Checks priors and finds their limits.

        Args:
            prior_prob: γ(1), shape (N,).
            num_nodes: N.
            prior_draws: Number of draws that each prior is a frequency over; 0 if they are exact.
            failure_prob: 1 - level of the bound on MP.

        Raises:
            InputError: if they are no probabilities, all of them are 0 or 1, or they are no such frequencies.
        """
        prob = np.asarray(prior_prob, dtype=np.float64)
        if prob.shape != (num_nodes,):
            raise InputError(f"prior_prob must have shape ({num_nodes},), one for each node, got {prob.shape}")
        is_prob = (prob >= 0) & (prob <= 1)
        if not is_prob.all():
            node = int(is_prob.argmin())
            raise InputError(f"prior_prob must be in [0, 1], got prior_prob={prob[node]} for node {node}")
        if not ((prob > 0) & (prob < 1)).any():
            raise InputError("prior_prob must be in (0, 1) for at least one node, got only 0 and 1")
        if not isinstance(prior_draws, (int, np.integer)) or isinstance(prior_draws, bool) or prior_draws < 0:
            raise InputError(f"prior_draws must be a whole number of at least 0, got prior_draws={prior_draws}")
        log_odds = log_prior_odds(prob)
        if prior_draws == 0:
            return cls(log_odds, log_odds, log_odds, 0)
        counts = np.rint(prob * prior_draws)
        is_rounded = np.abs(prob * prior_draws - counts) > WHOLE
        if is_rounded.any():
            node = int(is_rounded.argmax())
            raise InputError(
                f"prior_prob must be a frequency over prior_draws={prior_draws} draws, got {prob[node]} for node {node}"
            )
        failure = SHARE_FOR_PRIORS * failure_prob / (2 * num_nodes)
        low, high = clopper_pearson(counts.astype(np.int64), int(prior_draws), failure)
        return cls(log_odds, log_prior_odds(low), log_prior_odds(high), int(prior_draws))

    @property
    def is_uncertain(self) -> Flags:
        """Which nodes are neither surely in nor surely out, as far as is known, shape (N,)."""
        return np.isfinite(self.log_odds)

    def at_level(self, level: float) -> PriorOdds:
        """The same priors with limits for a bound on MP at another level."""
        if self.num_draws == 0:
            return self
        prob = scipy.special.expit(self.log_odds)
        return PriorOdds.of(prob, len(prob), self.num_draws, 1 - level)

    @property
    def floor_right(self) -> tuple[float, float]:
        """What the sampler alone gives away of members (Prop. 1): a lower and an upper limit."""
        return float(self.low.max()) + 0.0, float(self.high.max()) + 0.0

    @property
    def floor_left(self) -> tuple[float, float]:
        """What the sampler alone gives away of non-members (Prop. 1): a lower and an upper limit."""
        return float((-self.high).max()) + 0.0, float((-self.low).max()) + 0.0

    def mp_level(self, level: float) -> float:
        """Level at which the guesses have to hold so that guesses and priors together hold at `level`."""
        return level if self.num_draws == 0 else 1 - (1 - SHARE_FOR_PRIORS) * (1 - level)

    def check_memberships(self, num_in: Ints, num_models: int, models: str) -> None:
        """Raises `InputError` if there is no member or no non-member, or a node contradicts its exact prior.

        Args:
            num_in: Number of models that hold each node, shape (N,).
            num_models: Number of models.
            models: Which models, for messages.
        """
        for counts, name in ((num_in, "member"), (num_models - num_in, "non-member")):
            if not counts[self.is_uncertain].any():
                raise InputError(f"memberships of the {models} models must hold both sides, got no {name}")
        if self.num_draws == 0:
            surely = np.where(self.log_odds > 0, 1, 0)
            is_wrong = ~self.is_uncertain & (num_in != surely * num_models)
            if is_wrong.any():
                node = int(is_wrong.argmax())
                raise InputError(f"prior_prob is {surely[node]} for node {node}, but memberships say otherwise")
