"""A finished audit, everything that one plan found out about one graph; and what reads and writes its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit import datasets
from bmpaudit.attack.certain import count_certain
from bmpaudit.auditing import stages
from bmpaudit.auditing.answer import make_result
from bmpaudit.auditing.context import Runtime, Subject, accesses_of, attack_hash, models_hash, plan_hash, proof_hash
from bmpaudit.auditing.nodes import NODE_COLUMNS, nodes_table
from bmpaudit.auditing.result import FORMAT, LEVELS, AnswerResult, AuditResult, EpsilonResult, read_result
from bmpaudit.auditing.workspace import Files, Workspace
from bmpaudit.graph import Graph
from bmpaudit.io.codec import encode
from bmpaudit.io.readers import read_json, read_table
from bmpaudit.plan import AuditPlan, PlanFile, read_plan
from bmpaudit.samplers import Priors
from bmpaudit.samplers.priors import COLUMNS as PRIOR_COLUMNS
from bmpaudit.shadow import ShadowRuns, ShadowStore
from bmpaudit.util.errors import DataError
from bmpaudit.util.text import paragraphs
from bmpaudit.util.values import to_json

if TYPE_CHECKING:
    import pandas as pd

    from bmpaudit.report.plots import AuditPlots


class Audit:
    """Everything that one plan found out about one graph; `bmpaudit.audit` returns it, `Audit.load` reads it again."""

    def __init__(
        self,
        *,
        plan: AuditPlan,  # what was done
        source: str,  # where the graph came from; empty if it was given as an object
        priors: Priors,  # membership probabilities under the sampler alone
        attacks: stages.Attacks,  # errors of every variant of the attack
        findings: stages.Findings,  # what each release proves and exposes, by its label
        estimates: stages.Estimates,  # posteriors and the leakage of nodes
        graph: Graph | Callable[[], Graph],
        runs: ShadowRuns | Callable[[], ShadowRuns],
        timings: Mapping[str, float] | None = None,  # seconds that each step took
        result: AuditResult | None = None,  # of an audit that was read, as the folder has it
        nodes: pd.DataFrame | None = None,  # likewise
    ) -> None:
        self.plan, self.source = plan, source
        self.priors, self.attacks, self.findings, self.estimates = priors, attacks, findings, estimates
        self.timings = dict(timings or {})
        self._graph, self._runs, self._result, self._nodes = graph, runs, result, nodes

    @classmethod
    def load(cls, folder: str | Path, *, trust_code: bool = False) -> Audit:
        """Reads a finished audit from its folder; graph and shadow models are read when they are first asked for.

        Samplers, models and other parts that the folder's plan names `module:Name` are imported with `trust_code` only;
        everything that is stored can be read without them.

        Raises:
            DataError: if it is not a finished audit, or a file is missing, damaged, or of another plan.
        """
        workspace = Workspace(folder)
        with workspace.unchanged():
            stored = stored_plan(workspace, trust_code=trust_code)
            return read_audit(workspace, stored.plan, stored.graph, Runtime(), trust_code=trust_code)

    @cached_property
    def graph(self) -> Graph:
        """The graph that was audited."""
        return self._graph if isinstance(self._graph, Graph) else self._graph()

    @cached_property
    def runs(self) -> ShadowRuns:
        """The shadow models: memberships and statistics."""
        return self._runs if isinstance(self._runs, ShadowRuns) else self._runs()

    @property
    def title(self) -> str:
        """What was audited, in a few words."""
        return f"{self.graph_name}, {self.plan.title}"

    @property
    def graph_name(self) -> str:
        """The graph's source without the path to it."""
        name = Path(self.source).name
        for suffix in (".npz", ".csv", ".parquet"):
            name = name.removesuffix(suffix)
        if name not in ("", "graph"):  # the second is what a folder calls data that came as an object
            return name
        return "graph" if self.graph.num_edges else "table"

    @property
    def notes(self) -> tuple[str, ...]:
        """What was overridden or is unusual about this audit."""
        return self.attacks.notes

    @cached_property
    def result(self) -> AuditResult:
        """Everything that people are shown of the audit: one tree, of which all that is shown is a view."""
        return make_result(self) if self._result is None else self._result

    @property
    def answer(self) -> AnswerResult:
        """The answer in words, what is certain first."""
        return self.result.answer

    @property
    def headline(self) -> list[EpsilonResult]:
        """Every ε of the main variant: estimated with interval and warnings, floor, and what is proven."""
        return self.result.headline

    @property
    def main_findings(self) -> stages.AccessFindings:
        """What the main release proves and exposes."""
        return self.findings[self.attacks.releases[0]]

    @property
    def is_leakage_found(self) -> bool:
        """Whether the permutation test found leakage, or more is proven than the sampling alone gives away."""
        return self.result.is_leakage_found

    @cached_property
    def guaranteed(self) -> stages.Guaranteed | None:
        """What the model guarantees by a proof; None if it guarantees nothing, or is code that has not been run."""
        return stages.guaranteed(self.plan.shadow_plan, self.graph, self.priors)

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        return self.result.answer.verdict

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per node (docs/audit-folder.md)."""
        if self._nodes is not None:
            return self._nodes
        release = self.attacks.releases[0]
        rows = self.runs.rows.get(f"{accesses_of(self.plan, release)[-1]}_{release}")
        certain = None if rows is None else count_certain(rows, self.runs.memberships, self.graph)
        return nodes_table(self.graph, self.priors, self.attacks, self.main_findings, self.estimates, certain)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The result as plain values (docs/audit-folder.md)."""
        return dict(encode(self.result))

    @property
    def plot(self) -> AuditPlots:
        """Pictures, as matplotlib figures."""
        from bmpaudit.report.plots import AuditPlots

        return AuditPlots(self)

    def __str__(self) -> str:
        answer = self.result.answer
        lines = [self.title, f"{LEVELS[answer.level]}. {answer.verdict}"]
        lines += [f"  {name + ':':<10} {text}" for name, text in answer.lines]
        return "\n".join([*lines, *(f"  ! {warning}" for warning in answer.warnings)])

    def _repr_html_(self) -> str:
        answer = self.result.answer
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in answer.lines)
        warnings = paragraphs(f"! {warning}" for warning in answer.warnings)
        said = f"<p><b>{LEVELS[answer.level]}</b> {escape(answer.verdict)}</p>"
        return f"<h4>{escape(self.title)}</h4>{said}<table>{rows}</table>{warnings}"


# Reading an audit folder, which runs nobody's code unless it is trusted, and what writes the files of its steps.

OWN_GRAPH = "graph.npz"


def stored_plan(workspace: Workspace, *, trust_code: bool = False) -> PlanFile:
    """The plan of an audit folder, and where its graph came from; `DataError` if it is not an audit folder."""
    if not workspace.plan_path.exists():
        raise DataError(f"{workspace.path} is not an audit folder: it has no plan.toml")
    return read_plan(workspace.plan_path, trust_code=trust_code)


def stored_graph(workspace: Workspace, source: str, *, trust_code: bool = False) -> Graph:
    """The graph of an audit folder: its own copy, or the data set that it names; `DataError` if there is neither."""
    if source == OWN_GRAPH:
        workspace.stamp("graph")  # there is no other copy
    if workspace.has("graph"):
        return datasets.load(workspace.path / OWN_GRAPH)
    return datasets.load(source, trust_code=trust_code)


def stored_subject(workspace: Workspace, *, trust_code: bool = False) -> Subject:
    """What an audit folder is about; `DataError` if it is not an audit folder."""
    stored = stored_plan(workspace, trust_code=trust_code)
    return Subject(stored_graph(workspace, stored.graph, trust_code=trust_code), stored.graph, stored.plan)


def read_priors(workspace: Workspace, sampler: Any) -> Priors:
    """The priors of an audit folder; `DataError` if there are none, or they are damaged."""
    workspace.stamp("priors")
    return workspace.read(
        "priors.parquet", lambda path: Priors.from_frame(sampler, read_table(path, required=PRIOR_COLUMNS, only=True))
    )


def read_runs(workspace: Workspace, graph: Graph, plan: AuditPlan) -> ShadowRuns:
    """The shadow models of an audit folder; `DataError` if there are none, or fewer than the plan says."""
    if not workspace.has_shadows:
        raise DataError(f"{workspace.path} has no shadow models yet: run bmpaudit train")
    runs = ShadowStore(workspace.shadows, graph, plan.shadow_plan, read_only=True).read(plan.shadows)
    num_there = runs.num_models + len(runs.failed)
    if num_there < plan.shadows:
        if plan.shadow_plan.is_trained_elsewhere:
            there = f"holds {num_there:,} models trained elsewhere; bmpaudit cannot train more of them"
        else:
            there = f"has {num_there:,} of {plan.shadows:,} shadow models: run bmpaudit train"
        raise DataError(f"{workspace.path} {there}")
    return runs


def audit_files(audit: Audit) -> Files:
    """What writes the estimates, the table of nodes and the summary."""
    return {
        **stages.posterior_files(audit.estimates),
        "nodes.parquet": partial(audit.nodes.to_parquet, index=False),
        "summary.json": lambda path: path.write_text(to_json(audit.summary) + "\n", encoding="utf-8"),
    }


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
    """A finished audit from its workspace; graph and models are read when they are first asked for."""
    stamp = workspace.stamp("estimate", plan_hash(plan))
    attack = workspace.stamp("attack", attack_hash(plan))
    if (attack.graph, attack.models) != (stamp.graph, stamp.models):
        raise DataError(f"{workspace.path}: its estimates are of other models than its errors: run bmpaudit estimate")
    workspace.stamp("proof", proof_hash(plan))
    priors = read_priors(workspace, plan.sampler)
    result = stored_result(workspace)
    attacks = stages.read_attacks(workspace)
    if set(result.variants) != set(attacks.counts) or set(result.releases) != set(attacks.releases):
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
        findings=stages.read_proofs(workspace, plan, attacks.releases),
        estimates=stages.read_estimates(workspace, plan, attacks, result, runtime),
        graph=graph or load_graph,
        runs=runs or load_runs,
        timings=result.timings,
        result=result,
        nodes=workspace.read("nodes.parquet", _read_nodes),
    )
    return audit


def stored_result(workspace: Workspace) -> AuditResult:
    """The result of an audit folder whose estimates were checked."""
    summary = workspace.read("summary.json", read_json)
    there = summary.get("format") if isinstance(summary, dict) else None
    if there != FORMAT:
        raise DataError(f"{workspace.path / 'summary.json'}: format {there!r}; this version reads {FORMAT}")
    return workspace.read("summary.json", lambda _: read_result(summary))


def read_nodes(workspace: Workspace) -> pd.DataFrame:
    """The table of nodes of an audit folder; `DataError` if it is not there, damaged, or of another plan."""
    workspace.stamp("estimate", plan_hash(stored_plan(workspace).plan))
    return workspace.read("nodes.parquet", _read_nodes)


_read_nodes = partial(read_table, required=NODE_COLUMNS)
