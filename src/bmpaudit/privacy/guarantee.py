"""What a mechanism with a proof guarantees, and what follows from it for a sampler."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy.typing as npt

from bmpaudit.privacy.approximate import (
    ApproximateBMP,
    ApproximateMP,
    approximate_mdp_to_mp,
    approximate_mp_to_bmp,
)
from bmpaudit.privacy.epsilon import check_epsilon, check_probability


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-MDP by a proof, and the sampler it is used with.

    MDP compares samples that differ in one node, added or removed. What it says of one node's membership depends on
    the sampler through D alone: where a sample of fixed size replaces a node, D is 2.

    Attributes:
        mechanism: What gives the guarantee, such as "PrivateSGC".
        epsilon: ε of MDP, at least 0.
        delta: δ of MDP; 0 for a pure guarantee.
        distance: D, how many memberships may change with one (`membership_distance`), or an upper bound on it.

    >>> guarantee = Guarantee("PrivateSGC", epsilon=0.5, distance=2)
    >>> guarantee.mp
    ApproximateMP(epsilon=1.0, delta=0.0)
    >>> print(guarantee.sentence(prior_odds=1 / 3))
    PrivateSGC is 0.5-MDP. With this sampler up to 2 memberships change together, so it is 1-MP and (2.1, -0.0986)-BMP.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0
    distance: int = 1

    def __post_init__(self) -> None:
        check_epsilon(epsilon=self.epsilon)
        check_probability(delta=self.delta)
        if self.epsilon < 0 or self.distance < 1:
            raise ValueError(
                f"epsilon must be ≥ 0 and distance ≥ 1, got epsilon={self.epsilon}, distance={self.distance}"
            )

    def repeated(self, times: int) -> Guarantee:
        """The guarantee of several models that are trained independently on the same sample (basic composition).

        >>> Guarantee("PrivateSGC", epsilon=0.5).repeated(3)
        Guarantee(mechanism='PrivateSGC, 3 times', epsilon=1.5, delta=0.0, distance=1)
        """
        if times == 1:
            return self
        name = f"{self.mechanism}, {times} times"
        return replace(self, mechanism=name, epsilon=times * self.epsilon, delta=min(times * self.delta, 1.0))

    @property
    def mp(self) -> ApproximateMP:
        """The MP that follows on this sampler."""
        return approximate_mdp_to_mp(self.epsilon, self.delta, self.distance)

    def bmp(self, prior_odds: npt.ArrayLike) -> ApproximateBMP:
        """The BMP that follows for nodes with these prior odds η."""
        return approximate_mp_to_bmp(self.mp.epsilon, self.mp.delta, prior_odds)

    def sentence(self, prior_odds: npt.ArrayLike) -> str:
        """The guarantee and what follows, in words."""
        mp, bmp = self.mp, self.bmp(prior_odds)
        together = f"up to {self.distance:,} memberships change together"
        return (
            f"{self.mechanism} is {_level(self.epsilon, delta=self.delta)}-MDP. With this sampler "
            f"{'memberships are independent' if self.distance == 1 else together}, so it is "
            f"{_level(mp.epsilon, delta=mp.delta)}-MP and {_level(bmp.left, bmp.right, delta=bmp.delta)}-BMP."
        )


def _level(*epsilons: float, delta: float) -> str:
    values = [f"{epsilon:.3g}" for epsilon in epsilons] + ([f"{delta:.2g}"] if delta > 0 else [])
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
