"""What the model of an audit guarantees by a proof, beside what the audit proves of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from bmpaudit.auditing.proof_step import Findings
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.privacy import Guarantee
from bmpaudit.proof import Proof
from bmpaudit.registry import UntrustedPart
from bmpaudit.report.words import confidence, listed, number
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowPlan

SYMBOLS = {"epsilon_right": "ε_R", "epsilon_left": "ε_L", "mp": "MP ε"}


@dataclass(frozen=True)
class Guaranteed:
    """A guarantee, and the upper bounds that follow for an audit.

    Attributes:
        guarantee: What the model guarantees with the audit's sampler.
        limits: Upper bounds by parameter: epsilon_right, epsilon_left and mp.
    """

    guarantee: Guarantee
    limits: dict[str, float]

    def sentence(self, proof: Proof | None) -> str:
        """The upper bounds, and beside them the lower ones that the audit proves of the main release."""
        proven = {bound.parameter: bound for bound in proof.bounds} if proof is not None else {}
        limits = listed([f"{symbol} ≤ {number(self.limits[name], 2)}" for name, symbol in SYMBOLS.items()])
        with_delta = f", each with δ = {self.guarantee.delta:.2g} of MDP" if self.guarantee.delta > 0 else ""
        between = [
            f"{SYMBOLS[name]} between {number(least, 2)} and {number(self.limits[name], 2)}"
            for name, bound in proven.items()
            if (least := bound.floor if bound.proven is None else max(bound.floor, bound.proven)) <= self.limits[name]
        ]
        text = f"By the proof of {self.guarantee.mechanism}, {limits}{with_delta}."
        return f"{text} With the lower bounds of this audit: {listed(between)}." if between and not with_delta else text

    def contradictions(self, findings: Findings) -> Iterator[str]:
        """A sentence for each lower bound that exceeds its upper bound; with a δ the two cannot be compared."""
        if self.guarantee.delta > 0:
            return
        for release, each in findings.items():
            for bound in each.proof.bounds if each.proof is not None else ():
                limit = self.limits[bound.parameter]
                if bound.proven is not None and bound.proven > limit:
                    yield (
                        f"{SYMBOLS[bound.parameter]} ≥ {number(bound.proven, 2)} is proven of the release {release}, "
                        f"but {self.guarantee.mechanism} guarantees {number(limit, 2)} at most: the mechanism is "
                        f"broken, or the confidence of {confidence(bound.level)} failed."
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
    bmp = guarantee.bmp(priors.odds)
    limits = {"epsilon_right": bmp.right, "epsilon_left": bmp.left, "mp": guarantee.mp.epsilon}
    return Guaranteed(guarantee, limits)
