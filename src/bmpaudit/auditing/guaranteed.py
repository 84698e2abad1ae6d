"""What the model of an audit guarantees by a proof, beside what the audit proves of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from bmpaudit.auditing.proof_step import Findings
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.privacy import Guarantee
from bmpaudit.proof import Proof, ProvenBound
from bmpaudit.registry import UntrustedPart
from bmpaudit.report.words import confidence, listed, number
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.releases.base import models_of

SYMBOLS = {"epsilon_right": "ε_R", "epsilon_left": "ε_L", "mp": "MP ε"}


@dataclass(frozen=True)
class Guaranteed:
    """A guarantee, and the upper bounds that follow for an audit.

    Attributes:
        guarantee: What the model guarantees with the audit's sampler.
        limits: Upper bounds by parameter: epsilon_right, epsilon_left and mp.
        deltas: The δ of each, by parameter; 0 for a pure guarantee.
        num_nodes: Number of nodes that the audit could name.
    """

    guarantee: Guarantee
    limits: dict[str, float]
    deltas: dict[str, float]
    num_nodes: int

    def level_of(self, bound: ProvenBound) -> float | None:
        """The confidence of a lower bound on the smallest ε that holds with the guarantee's δ; None if it is too low.

        A δ costs at most δ for each node that could be named and each model that was challenged (docs/guarantees.md).
        Where that is more than the bound may fail with anyhow, the two are not compared.
        """
        cost = self.deltas[bound.parameter] * self.num_nodes * bound.num_challenged
        if cost > 1 - bound.level:
            return None
        return bound.level if cost == 0 else math.floor(1_000 * (bound.level - cost)) / 1_000

    def sentence(self, proof: Proof | None) -> str:
        """The upper bounds, and beside them the lower ones that the audit proves of the main release."""
        proven = {bound.parameter: bound for bound in proof.bounds} if proof is not None else {}
        limits = listed([f"{symbol} ≤ {number(self.limits[name], 2)}" for name, symbol in SYMBOLS.items()])
        with_delta = f", each with δ = {self.guarantee.delta:.2g} of MDP" if self.guarantee.delta > 0 else ""
        text = f"By the proof of {self.guarantee.mechanism}, {limits}{with_delta}."
        if proven and all(self.level_of(bound) is None for bound in proven.values()):
            return f"{text} That δ is too large for the lower bounds of this audit to be set against it."
        between = [
            f"{SYMBOLS[name]} between {number(least, 2)} and {number(self.limits[name], 2)}"
            for name, bound in proven.items()
            if (least := self._least(bound)) is not None and least <= self.limits[name]
        ]
        return f"{text} With the lower bounds of this audit: {listed(between)}." if between else text

    def _least(self, bound: ProvenBound) -> float | None:
        """What is proven; without a δ also what the sampler alone gives away, if that is more."""
        if self.deltas[bound.parameter] > 0:
            return None if self.level_of(bound) is None else bound.proven
        return bound.floor if bound.proven is None else max(bound.floor, bound.proven)

    def contradictions(self, findings: Findings) -> Iterator[str]:
        """A sentence for each lower bound that exceeds its upper bound, where the δ allows to compare them."""
        for release, each in findings.items():
            for bound in each.proof.bounds if each.proof is not None else ():
                limit, level = self.limits[bound.parameter], self.level_of(bound)
                if bound.proven is not None and bound.proven > limit and level is not None:
                    yield (
                        f"{SYMBOLS[bound.parameter]} ≥ {number(bound.proven, 2)} is proven of the release {release}, "
                        f"but {self.guarantee.mechanism} guarantees {number(limit, 2)} at most: the mechanism is "
                        f"broken, or the confidence of {confidence(level)} failed."
                    )

    def to_plain(self) -> dict[str, Any]:
        """All of it, for the summary."""
        return asdict(self.guarantee) | self.limits


def guaranteed(plan: ShadowPlan, graph: Graph, priors: Priors) -> Guaranteed | None:
    """What the model of a plan guarantees; None if it has no method `guarantee`, or its code has not been run.

    Raises:
        InputError: if the method returns something else.
    """
    model = plan.model
    if isinstance(model, UntrustedPart) or isinstance(plan.sampler, UntrustedPart) or not hasattr(model, "guarantee"):
        return None
    guarantee = model.guarantee(graph, plan.sampler)
    if guarantee is None:
        return None
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"guarantee of {model} must return a Guarantee or None, got {guarantee!r}")
    # The same limits for all releases: an ensemble gives out several models.
    guarantee = guarantee.repeated(max(map(models_of, plan.releases)))
    bmp = guarantee.bmp(priors.odds)
    limits = {"epsilon_right": bmp.right, "epsilon_left": bmp.left, "mp": guarantee.mp.epsilon}
    deltas = {"epsilon_right": bmp.delta, "epsilon_left": bmp.delta, "mp": guarantee.mp.delta}
    return Guaranteed(guarantee, limits, deltas, graph.num_nodes)
