"""How well stated probabilities of membership agree with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.plain import plain
from bmpaudit.proof.calibration import checked_log_odds
from bmpaudit.proof.score_bins import row_chunks

EDGES = (0.0, 0.001, 0.01, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.99, 0.999, 1.0)


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often challenges of a stated probability are members: the data of a reliability diagram.

    Attributes:
        edges: Edges of the bins of stated probability, shape (B + 1,).
        num_challenges: Number of challenges in each bin, shape (B,).
        stated: Mean stated probability in each bin, shape (B,); NaN in empty bins.
        observed: Share of members in each bin, shape (B,); NaN in empty bins.
    """

    edges: Floats
    num_challenges: Ints
    stated: Floats
    observed: Floats

    @property
    def expected_calibration_error(self) -> float:
        """Mean |stated - observed| over challenges."""
        is_filled = self.num_challenges > 0
        gaps = np.abs(self.stated - self.observed)[is_filled]
        return float(np.average(gaps, weights=self.num_challenges[is_filled]))

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        values: dict[str, Any] = plain(
            {
                "edges": self.edges,
                "num_challenges": self.num_challenges,
                "stated": self.stated,
                "observed": self.observed,
                "expected_calibration_error": self.expected_calibration_error,
            }
        )
        return values

    def __str__(self) -> str:
        lines = ["  stated    observed  challenges"]
        for stated, observed, number in zip(self.stated, self.observed, self.num_challenges, strict=True):
            if number:
                lines.append(f"  {stated:8.4f}  {observed:8.4f}  {number:,}")
        return "\n".join([f"expected calibration error {self.expected_calibration_error:.4f}", *lines])


def reliability(log_odds: npt.NDArray[np.floating[Any]], memberships: Flags) -> Reliability:
    """Compares stated probabilities with the truth, on models that nothing was learnt from.

    Args:
        log_odds: Posterior log-odds, shape (J, K).
        memberships: The truth, shape (J, K).

    Raises:
        InputError: if shapes differ, there is no member or no non-member, or log-odds are NaN.
    """
    values, truth = checked_log_odds(log_odds, memberships)
    edges = np.array(EDGES)
    num_bins = len(edges) - 1
    number, total, members = np.zeros((3, num_bins))
    for rows in row_chunks(*values.shape):
        stated = scipy.special.expit(values[rows].astype(np.float64)).ravel()
        place = np.clip(np.searchsorted(edges, stated, side="right") - 1, 0, num_bins - 1)
        number += np.bincount(place, minlength=num_bins)
        total += np.bincount(place, stated, num_bins)
        members += np.bincount(place, truth[rows].ravel(), num_bins)
    with np.errstate(invalid="ignore"):
        return Reliability(edges, number.astype(np.int64), total / number, members / number)
