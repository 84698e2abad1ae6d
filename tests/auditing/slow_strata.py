"""Recalibration by strength of nodes, written out one node and one challenge at a time."""

from __future__ import annotations

import math

import numpy as np

from bmpaudit.proof.calibration import RawBins, Recalibration, recalibrate_bins


def slow_stratum(log_odds: np.ndarray, truth: np.ndarray, prior: float) -> int:
    """0, 1 or 2, by how much less surprising the truth about a node is than with its prior alone, per model."""
    saved = 0.0
    for value, is_in in zip(np.clip(log_odds.astype(float), -6, 6).tolist(), truth.tolist(), strict=True):
        prob = 1 / (1 + math.exp(-value))
        saved += math.log(prob if is_in else 1 - prob) - math.log(prior if is_in else 1 - prior)
    entropy = -prior * math.log(prior) - (1 - prior) * math.log(1 - prior)
    share = saved / len(truth) / entropy
    return int(share >= 0.1) + int(share >= 0.5)


class SlowStrata:
    """What log-odds of models left out of their fits, shape (J, K), teach: by stratum, a map and what lies beyond."""

    def __init__(self, log_odds: np.ndarray, memberships: np.ndarray, prior: np.ndarray) -> None:
        middle, num_nodes = len(log_odds) // 2, log_odds.shape[1]
        halves = [slice(0, middle), slice(middle, len(log_odds))]
        nodes = range(num_nodes)
        of_half = [[slow_stratum(log_odds[half, i], memberships[half, i], prior[i]) for i in nodes] for half in halves]
        self.maps: dict[int, Recalibration] = {}
        self.lowest_member: dict[int, float] = {}
        self.highest_non_member: dict[int, float] = {}
        for stratum in sorted(set(of_half[0] + of_half[1])):
            # The other half tells whether a node belongs here.
            parts = [(half, np.array(other) == stratum) for half, other in zip(halves, of_half[::-1], strict=True)]
            models = [(log_odds[half][:, is_in], memberships[half][:, is_in]) for half, is_in in parts]
            bins = RawBins.of(models)
            assert bins is not None
            self.maps[stratum] = recalibrate_bins(bins).recalibration
            members = np.concatenate([values[flags] for values, flags in models])
            others = np.concatenate([values[~flags] for values, flags in models])
            self.lowest_member[stratum] = members.min()
            self.highest_non_member[stratum] = others.max()
        self.stratum = [slow_stratum(log_odds[:, i], memberships[:, i], prior[i]) for i in nodes]
        for i in nodes:
            while self.stratum[i] not in self.maps:
                self.stratum[i] -= 1

    def calibrated(self, log_odds: np.ndarray) -> np.ndarray:
        """Log-odds about one model that can be believed, shape (K,)."""
        return np.array([self.maps[s](np.array([v]))[0] for s, v in zip(self.stratum, log_odds, strict=True)])

    def beyond(self, log_odds: np.ndarray) -> list[str]:
        """`non-member`, `member` or nothing for each node: all of which its log-odds are beyond."""
        found = []
        for stratum, value in zip(self.stratum, log_odds.astype(np.float32), strict=True):
            is_above, is_below = value > self.highest_non_member[stratum], value < self.lowest_member[stratum]
            found.append("non-member" if is_above else "member" if is_below else "")
        return found
