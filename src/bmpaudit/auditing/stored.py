"""Reading an audit folder, which runs nobody's code unless it is trusted, and what writes the files of its steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit import datasets
from bmpaudit.auditing.attack_step import read_attacks
from bmpaudit.auditing.estimate_step import posterior_files, read_estimates
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.nodes_table import NODE_COLUMNS
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.plan_file import PlanFile, read_plan
from bmpaudit.auditing.proof_step import read_proofs
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.stamps import attack_hash, models_hash, plan_hash, proof_hash
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.summary import FORMAT
from bmpaudit.auditing.summary_schema import summary_schema
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import DataError
from bmpaudit.graph import Graph
from bmpaudit.plain import to_json
from bmpaudit.reading.table import read_table
from bmpaudit.samplers import Priors
from bmpaudit.samplers.priors import COLUMNS as PRIOR_COLUMNS
from bmpaudit.shadow import ShadowRuns, ShadowStore

if TYPE_CHECKING:
    import pandas as pd

OWN_GRAPH = "graph.npz"

Files = dict[str, Callable[[Path], None]]


def stored_plan(workspace: Workspace, *, trust_code: bool = False) -> PlanFile:
    """The plan of an audit folder, and where its graph came from.

    Raises:
        DataError: if it is not an audit folder.
    """
    if not workspace.plan_path.exists():
        raise DataError(f"{workspace.path} is not an audit folder: it has no plan.toml")
    return read_plan(workspace.plan_path, trust_code=trust_code)


def stored_graph(workspace: Workspace, source: str, *, trust_code: bool = False) -> Graph:
    """The graph of an audit folder: its own copy, or the data set that it names.

    Raises:
        DataError: if there is neither.
    """
    if source == OWN_GRAPH:
        workspace.stamp("graph")  # there is no other copy
    if workspace.has("graph"):
        return datasets.load(workspace.path / OWN_GRAPH)
    return datasets.load(source, trust_code=trust_code)


def stored_subject(workspace: Workspace, *, trust_code: bool = False) -> Subject:
    """What an audit folder is about.

    Raises:
        DataError: if it is not an audit folder.
    """
    stored = stored_plan(workspace, trust_code=trust_code)
    return Subject(stored_graph(workspace, stored.graph, trust_code=trust_code), stored.graph, stored.plan)


def priors_files(priors: Priors) -> Files:
    """What writes the priors."""
    return {"priors.parquet": partial(_write_table, priors.to_frame())}


def read_priors(workspace: Workspace, sampler: Any) -> Priors:
    """The priors of an audit folder.

    Raises:
        DataError: if there are none, or they are damaged.
    """
    workspace.stamp("priors")
    return workspace.read(
        "priors.parquet", lambda path: Priors.from_frame(sampler, read_table(path, required=PRIOR_COLUMNS, only=True))
    )


def read_runs(workspace: Workspace, graph: Graph, plan: AuditPlan) -> ShadowRuns:
    """The shadow models of an audit folder.

    Raises:
        DataError: if there are none, or fewer than the plan says.
    """
    if not workspace.has_shadows:
        raise DataError(f"{workspace.path} has no shadow models yet: run bmpaudit train")
    runs = ShadowStore(workspace.shadows, graph, plan.shadow_plan, read_only=True).read(plan.shadows)
    num_there = runs.num_models + len(runs.failed)
    if num_there < plan.shadows and plan.shadow_plan.is_trained_elsewhere:
        raise DataError(
            f"{workspace.path} holds {num_there:,} models trained elsewhere; bmpaudit cannot train more of them"
        )
    if num_there < plan.shadows:
        raise DataError(f"{workspace.path} has {num_there:,} of {plan.shadows:,} shadow models: run bmpaudit train")
    return runs


def audit_files(audit: Audit) -> Files:
    """What writes the estimates, the table of nodes and the summary."""
    files: Files = dict(posterior_files(audit.estimates))
    files["nodes.parquet"] = partial(_write_table, audit.nodes)
    files["summary.json"] = lambda path: _write_text(path, to_json(audit.summary) + "\n")
    return files


def load_audit(folder: str | Path, *, trust_code: bool = False, runtime: Runtime | None = None) -> Audit:
    """A finished audit from its folder; see `Audit.load`."""
    workspace = Workspace(folder)
    with workspace.unchanged():
        stored = stored_plan(workspace, trust_code=trust_code)
        return read_audit(workspace, stored.plan, stored.graph, runtime or Runtime(), trust_code=trust_code)


def read_audit(
    workspace: Workspace,
    plan: AuditPlan,
    source: str,
    runtime: Runtime,
    *,
    graph: Graph | None = None,
    runs: ShadowRuns | None = None,
    trust_code: bool = False,
) -> Audit:
    """A finished audit from its workspace; graph and models are read when they are first asked for.

    Raises:
        DataError: if a step is missing, damaged, or of another plan or other models.
    """
    stamp = workspace.stamp("estimate", plan_hash(plan))
    attack = workspace.stamp("attack", attack_hash(plan))
    if (attack.graph, attack.models) != (stamp.graph, stamp.models):
        raise DataError(f"{workspace.path}: its estimates are of other models than its errors: run bmpaudit estimate")
    workspace.stamp("proof", proof_hash(plan))
    priors = read_priors(workspace, plan.sampler)
    summary = read_summary(workspace)
    attacks = read_attacks(workspace)
    if set(summary["variants"]) != set(attacks.counts) or set(summary["releases"]) != set(attacks.releases):
        raise DataError(f"{workspace.path / 'summary.json'} is not about the variants of attack.json")

    def load_graph() -> Graph:
        loaded = stored_graph(workspace, source, trust_code=trust_code)
        if loaded.content_hash != stamp.graph:
            raise DataError(f"{source} is not the graph that was audited: {loaded}, and another content")
        return loaded

    def load_runs() -> ShadowRuns:
        loaded = read_runs(workspace, audit.graph, plan)
        if models_hash(loaded, priors) != stamp.models:
            raise DataError(f"{workspace.path}: its results are of other shadow models: run bmpaudit attack again")
        return loaded

    audit = Audit(
        plan=plan,
        source=source,
        priors=priors,
        attacks=attacks,
        findings=read_proofs(workspace, attacks.releases),
        estimates=read_estimates(workspace, plan, attacks, summary, runtime),
        graph=graph or load_graph,
        runs=runs or load_runs,
        timings=summary["timings"],
        summary=summary,
        nodes=workspace.read("nodes.parquet", _read_nodes),
    )
    return audit


def read_summary(workspace: Workspace) -> dict[str, Any]:
    """The summary of an audit folder whose estimates were checked."""
    summary = workspace.read_json("summary.json", {"type": "object"})
    if summary.get("format") != FORMAT:
        raise DataError(
            f"{workspace.path / 'summary.json'}: format {summary.get('format')!r}; this version reads {FORMAT}"
        )
    return workspace.read_json("summary.json", summary_schema())


def read_nodes(workspace: Workspace) -> pd.DataFrame:
    """The table of nodes of an audit folder.

    Raises:
        DataError: if it is not there, damaged, or of another plan.
    """
    workspace.stamp("estimate", plan_hash(stored_plan(workspace).plan))
    return workspace.read("nodes.parquet", _read_nodes)


def _read_nodes(path: Path) -> pd.DataFrame:
    return read_table(path, required=NODE_COLUMNS)


def _write_table(table: pd.DataFrame, path: Path) -> None:
    table.to_parquet(path, index=False)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
