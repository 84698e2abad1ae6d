"""How often each node is named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from bmpaudit.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class NodeExposure:
    """How often each node is named, among the models for which that is right.

    Attributes:
        node: Node ids, shape (K,).
        num_models: Number of models that the node is in (or, for non-members, not in), shape (K,).
        num_named: Number of these that name it, shape (K,).
        num_wrong: Number of all other models that name it, wrongly, shape (K,).
        level: Confidence level of `low` and `high`, for each node by itself.
    """

    node: Ints
    num_models: Ints
    num_named: Ints
    num_wrong: Ints
    level: float

    @property
    def share(self) -> Floats:
        """Share of these models that name the node, shape (K,); NaN without such models."""
        with np.errstate(invalid="ignore"):
            return self.num_named / self.num_models

    @property
    def share_correct(self) -> Floats:
        """Share of the models naming the node that are right, shape (K,); NaN if it is never named."""
        with np.errstate(invalid="ignore"):
            return self.num_named / (self.num_named + self.num_wrong)

    @property
    def low(self) -> Floats:
        """Lower Clopper-Pearson limits of the share, shape (K,)."""
        limit = scipy.special.betaincinv(
            np.maximum(self.num_named, 1), self.num_models - self.num_named + 1.0, (1 - self.level) / 2
        )
        return np.where(self.num_named == 0, 0.0, limit)

    @property
    def high(self) -> Floats:
        """Upper Clopper-Pearson limits of the share, shape (K,)."""
        rest = self.num_models - self.num_named
        limit = scipy.special.betainccinv(self.num_named + 1.0, np.maximum(rest, 1), (1 - self.level) / 2)
        return np.where(rest == 0, 1.0, limit)

    def ranked(self) -> Ints:
        """Positions of the nodes from the most to the least exposed.

        By the lower limit of the share times the share that is correct, then by the share: a node that is named whether
        that is right or not is not exposed, and one that is only named wrongly comes last, with those never named.
        """
        risk = self.low * np.nan_to_num(self.share_correct)
        return np.lexsort((self.node, -np.nan_to_num(self.share), -risk))
