"""Prior membership probabilities γ: what the adversary knows before seeing the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bmpaudit.arrays import Floats, Ints
from bmpaudit.errors import InputError
from bmpaudit.privacy import EpsilonPair, prior_floor
from bmpaudit.samplers.any_sampler import AnySampler, sampler_name
from bmpaudit.samplers.floor import (
    DEFAULT_LEVEL,
    PriorFloor,
    check_level,
    clopper_pearson,
    floor_bound,
    pilot_size,
)

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("node", "prior_prob", "standard_error", "num_draws", "num_pilot")


@dataclass(frozen=True, eq=False, repr=False)
class Priors:
    """Prior membership probabilities of all nodes under one sampler, as `prior_probabilities` finds them.

    The standard error of an estimate is the standard deviation of the Beta posterior under Jeffreys' prior: √(γ(1-γ)/n)
    for all practical purposes, but not 0 for a node that was never, or always, drawn.

    Attributes:
        sampler: The sampler they belong to.
        prob: γ_i(1), exact or estimated, shape (num_nodes,).
        standard_error: Standard error of each estimate, shape (num_nodes,); zeros where γ is exact.
        num_draws: Number of samples behind an estimate; 0 where γ is exact.
        pilot_counts: Number of the first draws that hold each node, shape (num_nodes,); they choose the candidates of
            the floor (see `floor_bound`). Zeros where γ is exact.
    """

    sampler: AnySampler
    prob: Floats
    standard_error: Floats
    num_draws: int
    pilot_counts: Ints

    @classmethod
    def from_formula(cls, sampler: AnySampler, prob: Floats) -> Priors:
        """Exact priors."""
        return cls(sampler, prob, np.zeros_like(prob), 0, np.zeros(len(prob), dtype=np.int64))

    @classmethod
    def from_counts(cls, sampler: AnySampler, counts: Ints, pilot_counts: Ints, num_draws: int) -> Priors:
        """Priors estimated by how often each node was drawn, in all draws and in the pilot."""
        mean = (counts + 0.5) / (num_draws + 1)
        standard_error = np.sqrt(mean * (1 - mean) / (num_draws + 2))
        return cls(sampler, counts / num_draws, standard_error, num_draws, pilot_counts)

    @property
    def is_exact(self) -> bool:
        """Whether γ comes from a closed form."""
        return self.num_draws == 0

    @property
    def odds(self) -> Floats:
        """η_i = γ_i(1)/γ_i(0); infinite where γ is 1."""
        with np.errstate(divide="ignore"):
            return self.prob / (1.0 - self.prob)

    @cached_property
    def floor(self) -> PriorFloor:
        """What the sampler alone gives away (Prop. 1): exact, or a bound that holds with confidence 0.95."""
        return self.floor_at()

    def floor_at(self, level: float = DEFAULT_LEVEL) -> PriorFloor:
        """The floor as a lower confidence bound at another level; exact where the priors are."""
        check_level(level)
        if self.is_exact:
            return PriorFloor(self.floor_estimate.left, self.floor_estimate.right)
        return floor_bound(self._counts, self.pilot_counts, self.num_draws, level)

    @property
    def floor_estimate(self) -> EpsilonPair[float]:
        """The extremes of the estimated log-odds: too high on average unless the priors are exact, so no bound."""
        return prior_floor(self.odds)

    def confidence_bounds(self, level: float = DEFAULT_LEVEL) -> tuple[Floats, Floats]:
        """Lower and upper bounds of γ, each of shape (num_nodes,), that hold for all nodes together.

        Clopper–Pearson bounds, Bonferroni over nodes and sides; both are γ itself where it is exact. For statements
        that must not take an estimated prior as known.
        """
        check_level(level)
        if self.is_exact:
            return self.prob, self.prob
        return clopper_pearson(self._counts, self.num_draws, (1 - level) / (2 * len(self.prob)))

    @property
    def num_never_drawn(self) -> int:
        """The number of nodes that no draw holds."""
        return int(np.count_nonzero(self.prob == 0))

    @property
    def _counts(self) -> Ints:
        return np.rint(self.prob * self.num_draws).astype(np.int64)

    def to_frame(self) -> pd.DataFrame:
        """A table with one row per node: `node`, `prior_prob`, `standard_error`, `num_draws`, `num_pilot`."""
        import pandas as pd

        columns = (np.arange(len(self.prob)), self.prob, self.standard_error, self.num_draws, self.pilot_counts)
        return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))

    @classmethod
    def from_frame(cls, sampler: AnySampler, frame: pd.DataFrame) -> Priors:
        """Priors from a table that `to_frame` made.

        Raises:
            InputError: if a column is missing or its values are impossible.
        """
        missing = [name for name in COLUMNS if name not in frame]
        if missing:
            raise InputError(f"a table of priors must have the columns {', '.join(COLUMNS)}, got no {missing[0]}")
        try:
            prob, standard_error = (frame[name].to_numpy(dtype=np.float64) for name in COLUMNS[1:3])
            node, num_draws, pilot_counts = (
                frame[name].to_numpy(dtype=np.int64) for name in ("node", "num_draws", "num_pilot")
            )
        except (TypeError, ValueError) as failure:
            raise InputError(f"a table of priors must hold numbers: {failure}") from failure
        if len(prob) == 0 or not np.array_equal(node, np.arange(len(prob))):
            raise InputError("a table of priors must list the nodes 0, 1, 2, … in this order")
        if not ((prob >= 0) & (prob <= 1)).all():
            raise InputError("prior_prob must be in [0, 1] in a table of priors")
        if (num_draws != num_draws[0]).any() or num_draws[0] < 0:
            raise InputError("num_draws must be the same whole number for all nodes in a table of priors")
        num_pilot = pilot_size(int(num_draws[0]))
        if not ((pilot_counts >= 0) & (pilot_counts <= num_pilot)).all():
            raise InputError(f"num_pilot must be between 0 and {num_pilot} in a table of priors")
        return cls(sampler, prob, standard_error, int(num_draws[0]), pilot_counts)

    def __repr__(self) -> str:
        source = (
            "exact"
            if self.is_exact
            else f"from {self.num_draws:,} draws, standard error up to {self.standard_error.max():.2g}"
        )
        return (
            f"Priors(sampler={sampler_name(self.sampler)}, {len(self.prob):,} nodes, "
            f"{self.prob.min():.4g} to {self.prob.max():.4g}, {source})"
        )
