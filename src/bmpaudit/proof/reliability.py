"""How well stated probabilities of membership agree with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Ints, as_bytes
from bmpaudit.checks import thread_count
from bmpaudit.plain import plain
from bmpaudit.proof.calibration import checked_log_odds

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
    counter = ReliabilityCounter(len(values), values.dtype, thread_count(None))
    counter.add(values, truth)
    return counter.result()


class ReliabilityCounter:
    """Compares stated probabilities with the truth, a block of nodes at a time.

    Args:
        num_models: J.
        dtype: Type of the log-odds.
        num_threads: Number of threads.
    """

    def __init__(self, num_models: int, dtype: np.dtype[Any], num_threads: int) -> None:
        exact = scipy.special.logit(np.array(EDGES[1:-1]))
        rounded = exact.astype(dtype)
        # The smallest number of that type that reaches an edge.
        self._thresholds = np.where(rounded < exact, np.nextafter(rounded, dtype.type(np.inf)), rounded)
        self._num_threads = num_threads
        self._number, self._members = np.zeros((2, num_models, len(exact) + 1), dtype=np.int64)
        self._total = np.zeros((num_models, len(exact) + 1))

    def add(self, log_odds: npt.NDArray[np.floating[Any]], memberships: Flags) -> None:
        """Counts log-odds and memberships of some nodes, both of shape (J, number of nodes)."""
        _native.count_by_threshold(
            np.ascontiguousarray(log_odds),
            as_bytes(memberships),
            self._thresholds,
            self._num_threads,
            self._number,
            self._members,
            self._total,
        )

    def result(self) -> Reliability:
        """The comparison, after all nodes were added."""
        number, total, members = (counts.sum(axis=0) for counts in (self._number, self._total, self._members))
        with np.errstate(invalid="ignore"):
            return Reliability(np.array(EDGES), number, total / number, members / number)
