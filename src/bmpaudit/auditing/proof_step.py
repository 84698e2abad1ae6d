"""From shadow models to what is certain: what each release proves, and what one released model exposes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bmpaudit import registry
from bmpaudit.attack import Evidence
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.variant import attack_on, queries_of
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof import Proof, ReleaseExposure, expose, prove
from bmpaudit.proof.flat_arrays import from_arrays, to_arrays
from bmpaudit.reading.archive import read_archive
from bmpaudit.registry import ATTACK
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

CANDIDATES = ("student", "gaussian")
"""Attacks that a proof chooses from on its fitting models, besides the plan's."""


@dataclass(frozen=True, eq=False)
class ReleaseFindings:
    """What is certain about one release.

    Attributes:
        queries: Queries that the exposure's attack uses: those of the strongest variant.
        exposure: What one released model gives away under that attack, on average over the shadow models.
        proof: What is proven, by whatever attack and queries promised most on the fitting models; None if there are too
            few models to prove anything.
        not_proven: Why there is no proof; empty if there is one.
    """

    queries: tuple[str, ...]
    exposure: ReleaseExposure
    proof: Proof | None
    not_proven: str = ""


Findings = Mapping[str, ReleaseFindings]
"""By the release's label, the main one first."""


def proof_attacks(plan: AuditPlan, release: str) -> list[Attack]:
    """The attack on a release, and the built-in ones that a proof may choose instead."""
    attack = attack_on(plan, release)
    own = registry.label(ATTACK, attack)
    return [attack, *(registry.build(ATTACK, name) for name in CANDIDATES if name != own)]


def run_proofs(
    plan: AuditPlan, graph: Graph, runs: ShadowRuns, priors: Priors, attacks: Attacks, runtime: Runtime
) -> Findings:
    """Proves and counts what can be named, for each release."""
    findings = {}
    # Exposure scores every node twice, once with all models and once with halves of them; a proof counts as one more.
    num_nodes = graph.num_nodes
    with runtime.progress("proof and exposure", 3 * num_nodes * len(attacks.releases)) as progress:
        for number, release in enumerate(attacks.releases):
            before = 3 * num_nodes * number
            strongest = attacks.strongest(release).queries
            exposed = expose(
                attack_on(plan, release),
                Evidence.of_runs(runs, release, strongest, graph),
                priors.prob,
                level=plan.proof_level,
                num_threads=runtime.num_threads,
                executor=runtime.executor,
                progress=lambda done, before=before: progress(before + done),  # type: ignore[misc]
            )
            proof, reason = None, ""
            try:
                proof = prove_release(
                    plan,
                    graph,
                    runs,
                    priors,
                    release,
                    runtime,
                    progress=lambda done, before=before: progress(before + 2 * num_nodes + done),  # type: ignore[misc]
                )
            except InputError as wrong:  # too few models, or none with a member: there is an audit all the same
                reason = str(wrong)
            findings[release] = ReleaseFindings(strongest, exposed, proof, reason)
            progress(before + 3 * num_nodes)
    return findings


def prove_release(
    plan: AuditPlan,
    graph: Graph,
    runs: ShadowRuns,
    priors: Priors,
    release: str,
    runtime: Runtime,
    progress: Progress = lambda _: None,
) -> Proof:
    """What one release proves, by the plan's method.

    `progress` is called with how much of the work is done, from 0 to the number of nodes.

    Raises:
        InputError: if there are too few models to prove anything.
    """
    return prove(
        proof_attacks(plan, release),
        Evidence.of_runs(runs, release, queries_of(plan), graph),
        priors.prob,
        prior_draws=priors.num_draws,
        level=plan.proof_level,
        method=plan.proof_method,
        num_threads=runtime.num_threads,
        executor=runtime.executor,
        progress=progress,
    )


def proof_files(findings: Findings) -> dict[str, Callable[[Path], None]]:
    """What writes each file of the step."""
    return {proof_name(release): partial(_write, part) for release, part in findings.items()}


def proof_name(release: str) -> str:
    """The path of a release's file in the folder."""
    return f"proof/{release}.npz"


def _write(findings: ReleaseFindings, path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **to_arrays(findings))


def read_proofs(workspace: Workspace, releases: tuple[str, ...]) -> Findings:
    """Reads what the step left; the workspace has checked that it is whole."""
    return {release: workspace.read(proof_name(release), _read) for release in releases}


def _read(path: Path) -> ReleaseFindings:
    return from_arrays(ReleaseFindings, read_archive(path))
