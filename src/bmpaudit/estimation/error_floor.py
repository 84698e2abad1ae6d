"""What a claimed (ε_L, ε_R) would mean for each node: the error that no adversary can avoid (Theorem 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.privacy.epsilon import log_prior_odds
from bmpaudit.privacy.error_bounds import attained_cost_bound

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ErrorFloor:
    """*If* the mechanism is (ε_L, ε_R)-BMP, no adversary is wrong about these nodes with a smaller probability.

    This is a conditional statement: an audit does not show that the premise holds. The bound is the best possible, and
    at least that of Theorem 7: some (ε_L, ε_R)-BMP mechanism attains it. Where -ε_L ≤ log η ≤ ε_R fails there is no
    such mechanism (Prop. 1), and the premise is false whatever the model: these nodes are listed in `excluded`.

    Attributes:
        epsilon_left: Claimed ε_L.
        epsilon_right: Claimed ε_R.
        node: Nodes with a bound, shape (K',).
        prior_prob: γ(1) of these nodes, shape (K',).
        error_prob: Smallest probability of a wrong decision, shape (K',); never NaN.
        excluded: Nodes whose prior contradicts the premise.
    """

    epsilon_left: float
    epsilon_right: float
    node: npt.NDArray[Any]
    prior_prob: Floats
    error_prob: Floats
    excluded: npt.NDArray[Any]

    @property
    def guess_error_prob(self) -> Floats:
        """Error probability of a guess from the prior alone, shape (K',): min(γ(0), γ(1))."""
        return np.minimum(self.prior_prob, 1 - self.prior_prob)

    def to_frame(self) -> pd.DataFrame:
        """One row per node that has a bound."""
        import pandas as pd

        columns = {"node": self.node, "prior_prob": self.prior_prob}
        return pd.DataFrame(columns | {"error_prob": self.error_prob, "guess_error_prob": self.guess_error_prob})

    def __str__(self) -> str:
        lines = [f"if the mechanism is BMP with ε_L = {self.epsilon_left:g}, ε_R = {self.epsilon_right:g}:"]
        if len(self.node):
            k = int(np.argmin(self.error_prob))
            lines += [
                f"  every decision about {len(self.node):,} nodes is wrong with probability ≥ {self.error_prob[k]:.4f}",
                f"  (smallest for node {self.node[k]}; {self.guess_error_prob[k]:.4f} from the prior alone)",
            ]
        if len(self.excluded):
            number, example = len(self.excluded), self.excluded[0]
            lines.append(f"  but {number:,} of the priors rule this out, such as that of node {example}")
        return "\n".join(lines)


def error_floor(counts: ErrorCounts, epsilon_left: float = np.inf, epsilon_right: float = np.inf) -> ErrorFloor:
    """Applies Theorem 7, in the form that is attained; only the priors of the counts matter.

    Args:
        counts: Nodes and their priors.
        epsilon_left: ε_L; ∞ for BMP-R.
        epsilon_right: ε_R; ∞ for BMP-L.

    Raises:
        InputError: if a parameter is NaN.

    >>> counts = ErrorCounts.from_arrays(num_out=1, num_in=1, false_positives=0, false_negatives=0,
    ...                                  prior_prob=[0.25, 0.5, 0.9])
    >>> print(error_floor(counts, epsilon_left=2.0, epsilon_right=1.0))
    if the mechanism is BMP with ε_L = 2, ε_R = 1:
      every decision about 2 nodes is wrong with probability ≥ 0.1512
      (smallest for node 0; 0.2500 from the prior alone)
      but 1 of the priors rule this out, such as that of node 2
    """
    for name, value in (("epsilon_left", epsilon_left), ("epsilon_right", epsilon_right)):
        if np.isnan(value):
            raise InputError(f"{name} must be a number or infinite, got {name}={value}")
    log_odds = log_prior_odds(counts.prior_odds)
    is_possible = (log_odds >= -epsilon_left) & (log_odds <= epsilon_right)
    error_prob = attained_cost_bound(counts.prior_odds[is_possible], epsilon_left, epsilon_right)
    return ErrorFloor(
        epsilon_left=float(epsilon_left),
        epsilon_right=float(epsilon_right),
        node=counts.node[is_possible],
        prior_prob=counts.prior_prob[is_possible],
        error_prob=error_prob,
        excluded=counts.node[~is_possible],
    )
