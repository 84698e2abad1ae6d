"""What the models of one run prove and expose, for adversaries of three kinds: each as plain values."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bmpaudit import registry
from bmpaudit.attack import Evidence
from bmpaudit.auditing import Runtime
from bmpaudit.graph import Graph
from bmpaudit.plain import plain
from bmpaudit.proof import expose, prove
from bmpaudit.proof.guesses import PARAMETERS
from bmpaudit.registry import ATTACK
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

LEVEL = 0.95
LIMITS = ("mean", "low", "high")
PROOFS = "proof/"
"""How the names of all proofs begin."""


@dataclass(frozen=True)
class Adversary:
    """Who attacks.

    Attributes:
        attack: Name of the attack.
        queries: How they ask.
    """

    attack: str
    queries: tuple[str, ...]


ADVERSARIES: Mapping[str, Adversary] = {
    "full": Adversary("gaussian", ("full",)),
    "none": Adversary("gaussian", ("none",)),
    "all": Adversary("student", ("full", "none")),
}
"""The paper's attack with one of its two queries, as a cell has it; and a stronger attack with both."""


def proof_name(release: str, adversary: str) -> str:
    """The name of what one adversary shows about one release, in the run's file."""
    return f"{PROOFS}{release}/{adversary}"


def prove_and_expose(
    shadows: ShadowRuns,
    graph: Graph,
    priors: Priors,
    release: str,
    adversary: Adversary,
    runtime: Runtime,
    num_models: int | None = None,
) -> dict[str, Any]:
    """What is proven, and how many members one released model gives away at each precision.

    With `num_models`, by that many of the models, the first ones.
    """
    start, start_processor = time.perf_counter(), time.process_time()
    attack = registry.build(ATTACK, adversary.attack)
    evidence = Evidence.of_runs(shadows, release, adversary.queries, graph).take(slice(num_models))
    proof = prove(
        attack,
        evidence,
        priors.prob,
        prior_draws=priors.num_draws,
        level=LEVEL,
        num_threads=runtime.num_threads,
        executor=runtime.executor,
    )
    shown = expose(
        attack, evidence, priors.prob, level=LEVEL, num_threads=runtime.num_threads, executor=runtime.executor
    )
    members = shown.exposure.members
    bounds = proof.to_plain()
    values: dict[str, Any] = plain(
        {
            **{parameter: bounds[parameter] for parameter in PARAMETERS},
            "exposure": {
                "precision": members.precision,
                **{f"correct_{limit}": getattr(members.correct, limit) for limit in LIMITS},
                "named": members.named.mean,
                "by_prior": members.by_prior,
                "total": members.total,
            },
            "auc": shown.to_plain()["mean_auc"],
            "calibration_error": shown.reliability.expected_calibration_error,
            "seconds": time.perf_counter() - start,
            "processor_seconds": time.process_time() - start_processor,
        }
    )
    return values
