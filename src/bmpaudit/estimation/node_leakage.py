"""Which nodes leak most, and how certainly: the posterior of the ε that each node's error rates imply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.likelihood import check_counts
from bmpaudit.privacy.epsilon import log_prior_odds
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.values import Flags, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

ROWS_PRINTED = 10


@dataclass(frozen=True, eq=False)
class LeakageInterval:
    """Median and equal-tailed credible interval of one quantity for each node; arrays of shape (K,)."""

    low: Floats
    median: Floats
    high: Floats

    def __add__(self, shift: Floats) -> LeakageInterval:
        return LeakageInterval(self.low + shift, self.median + shift, self.high + shift)


@dataclass(frozen=True, eq=False)
class NodeLeakage:
    """Posterior of the implied e_R and e_L of every node, each node on its own.

    e_R = log η + max{log((1-β)/α), log(β/(1-α))} and e_L = -log η + max{log((1-α)/β), log(α/(1-β))} (Theorem 6), where
    α ~ Beta(A+1, n0-A+1) and β ~ Beta(B+1, n1-B+1) are the posteriors of the error rates under flat priors.

    Formal guarantee: if a node's error rates are drawn uniformly from the unit square and its counts are binomial, each
    interval contains the implied ε with probability `level`. It is about the attack that was run, not about the best
    one. It lies above the floor (log η and -log η) whatever the counts, as no pair of error rates implies less. An
    attack that decides the same for every model (`is_constant`) can have a high interval without knowing anything.

    Attributes:
        counts: Counts it was computed from.
        level: Posterior probability of the intervals.
        excess_right: e_R - log η, what the model adds to the sampler's floor.
        excess_left: e_L + log η, the same for e_L.
    """

    counts: ErrorCounts
    level: float
    excess_right: LeakageInterval
    excess_left: LeakageInterval

    @property
    def floor_right(self) -> Floats:
        """Log η, shape (K,): e_R of a model that reveals nothing (Prop. 1)."""
        return log_prior_odds(self.counts.prior_odds)

    @property
    def floor_left(self) -> Floats:
        """-log η, shape (K,)."""
        return -self.floor_right

    @property
    def right(self) -> LeakageInterval:
        """e_R."""
        return self.excess_right + self.floor_right

    @property
    def left(self) -> LeakageInterval:
        """e_L."""
        return self.excess_left + self.floor_left

    @property
    def is_constant(self) -> Flags:
        """Whether the decision about a node was the same for every model, shape (K,)."""
        return self.counts.is_constant

    def ranked(self, side: str = "right") -> Ints:
        """Rows by the lower end of their interval of e_R (or e_L), highest first, shape (K,).

        Ranked by the lower end, because wide intervals come from few trials and not from leakage.
        """
        if side not in ("right", "left"):
            raise InputError(f"side must be 'right' or 'left', got side={side!r}")
        low = self.right.low if side == "right" else self.left.low
        return np.argsort(-low, kind="stable")

    def to_frame(self) -> pd.DataFrame:
        """One row per node, in the order of the counts."""
        import pandas as pd

        columns: dict[str, npt.NDArray[np.generic]] = {"node": self.counts.node}
        for name in ("right", "left", "excess_right", "excess_left"):
            interval: LeakageInterval = getattr(self, name)
            columns |= {
                f"{name}_low": interval.low,
                f"{name}_median": interval.median,
                f"{name}_high": interval.high,
            }
        columns |= {
            "floor_right": self.floor_right,
            "floor_left": self.floor_left,
            "is_constant": self.is_constant,
        }
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        shown = self.ranked()[:ROWS_PRINTED]
        right, left = self.right, self.left
        nodes = f"{self.counts.num_nodes:,} node{'' if self.counts.num_nodes == 1 else 's'}"
        text = f"{nodes}, {100 * self.level:g} % credible intervals, ranked by the lower end of e_R"
        text += f"\n  {'node':>12} {'floor':>7} {'e_R':>7} {'interval':>15} {'e_L':>7} {'interval':>15}"
        for k in shown:
            text += f"\n  {self.counts.node[k]!s:>12} {self.floor_right[k]:7.2f}"
            for e in (right, left):
                text += f" {e.median[k]:7.2f} {f'{e.low[k]:.2f} to {e.high[k]:.2f}':>15}"
            text += "  constant decision" if self.is_constant[k] else ""
        return text


def node_leakage(counts: ErrorCounts, level: float = 0.9, *, num_threads: int | None = None) -> NodeLeakage:
    """The posterior of e_R and e_L of every node, with equal-tailed intervals.

    The quantiles are accurate to about 1e-6 and depend on nothing but the counts.

    Args:
        counts: Errors of an attack, with any numbers of trials, also 0.
        level: Posterior probability of the intervals.
        num_threads: Number of threads; all processors if None.

    Raises:
        InputError: if level is not in (0, 1), or a count is too large.

    >>> counts = ErrorCounts.from_arrays(num_out=[75, 75], num_in=25, false_positives=[2, 5], false_negatives=[3, 20],
    ...                                  prior_prob=0.25, node=["a", "b"])
    >>> print(node_leakage(counts))
    2 nodes, 90 % credible intervals, ranked by the lower end of e_R
              node   floor     e_R        interval     e_L        interval
                 a   -1.10    2.09    1.25 to 3.27    3.03    2.36 to 3.97
                 b   -1.10    -0.04   -0.95 to 0.88    1.27    1.13 to 1.48
    """
    if not 0 < level < 1:
        raise InputError(f"level must be in (0, 1), got level={level}")
    check_counts(counts)
    table = np.stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives], axis=1)
    # Many nodes have the same counts if an attack learns nothing.
    distinct, row = np.unique(table.astype(np.float64), axis=0, return_inverse=True)
    probabilities = np.array([(1 - level) / 2, 0.5, (1 + level) / 2])
    quantiles = _native.leakage_quantiles(np.ascontiguousarray(distinct), probabilities, thread_count(num_threads))
    right, left = (LeakageInterval(*np.ascontiguousarray(side[row.ravel()].T)) for side in quantiles)
    return NodeLeakage(counts, level, excess_right=right, excess_left=left)
