"""A finished audit: everything that one plan found out about one graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit.auditing.answer import Answer, is_leakage_found, make_answer, stored_answer
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.estimate_step import Estimates
from bmpaudit.auditing.guaranteed import Guaranteed, guaranteed
from bmpaudit.auditing.headline import HeadlineRow, headline, stored_headline
from bmpaudit.auditing.nodes_table import nodes_table
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.proof_step import Findings, ReleaseFindings
from bmpaudit.auditing.summary import summarise
from bmpaudit.graph import Graph
from bmpaudit.notebook_html import paragraphs
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

if TYPE_CHECKING:
    import pandas as pd

    from bmpaudit.auditing.plots import AuditPlots


class Audit:
    """Everything that one plan found out about one graph; `bmpaudit.audit` returns it, `Audit.load` reads it again.

    Attributes:
        plan: What was done.
        source: Where the graph came from; empty if it was given as an object.
        priors: Membership probabilities under the sampler alone.
        attacks: Errors of every variant of the attack.
        findings: What each release proves and exposes, by its label.
        estimates: Posteriors and the leakage of nodes.
        timings: Seconds that each step took.
    """

    def __init__(
        self,
        *,
        plan: AuditPlan,
        source: str,
        priors: Priors,
        attacks: Attacks,
        findings: Findings,
        estimates: Estimates,
        graph: Graph | Callable[[], Graph],
        runs: ShadowRuns | Callable[[], ShadowRuns],
        timings: Mapping[str, float] | None = None,
        summary: dict[str, Any] | None = None,
        nodes: pd.DataFrame | None = None,
    ) -> None:
        self.plan, self.source = plan, source
        self.priors, self.attacks, self.findings, self.estimates = priors, attacks, findings, estimates
        self.timings = dict(timings or {})
        self._graph, self._runs = graph, runs
        # Of an audit that was read, as the folder has them.
        self._summary, self._nodes = summary, nodes

    @classmethod
    def load(cls, folder: str | Path, *, trust_code: bool = False) -> Audit:
        """Reads a finished audit from its folder; graph and shadow models are read when they are first asked for.

        Args:
            folder: What `bmpaudit.audit(..., folder=...)` or `bmpaudit audit --out` left.
            trust_code: Whether to import samplers, models and other parts that the folder's plan names `module:Name`.
                Everything that is stored can be read without them.

        Raises:
            DataError: if it is not a finished audit, or a file is missing, damaged, or of another plan.
        """
        from bmpaudit.auditing.stored import load_audit

        return load_audit(folder, trust_code=trust_code)

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
    def headline(self) -> tuple[HeadlineRow, ...]:
        """Every ε of the main variant: estimated with interval and warnings, floor, and what is proven."""
        if self._summary is not None:
            return stored_headline(self._summary)
        return headline(self.priors, self.attacks, self.findings, self.estimates, self.plan.proof_level)

    @property
    def main_findings(self) -> ReleaseFindings:
        """What the main release proves and exposes."""
        return self.findings[self.attacks.releases[0]]

    @property
    def is_leakage_found(self) -> bool:
        """Whether the permutation test found leakage, or more is proven than the sampling alone gives away."""
        return is_leakage_found(self.main_findings, self.attacks.permutation_test)

    @cached_property
    def answer(self) -> Answer:
        """The answer in words, what is certain first."""
        if self._summary is not None:
            return stored_answer(self._summary)
        test, method = self.attacks.permutation_test, self.plan.proof_method
        answer = make_answer(self.main_findings, self.headline, self.priors, test, method, self.guaranteed)
        return answer.in_words_of(self.graph)

    @cached_property
    def guaranteed(self) -> Guaranteed | None:
        """What the model guarantees by a proof; None if it guarantees nothing, or is code that has not been run."""
        return guaranteed(self.plan.shadow_plan, self.graph, self.priors)

    @property
    def verdict(self) -> str:
        """The answer in one sentence."""
        return self.answer.verdict

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per node (docs/audit-folder.md)."""
        if self._nodes is not None:
            return self._nodes
        return nodes_table(self.graph, self.priors, self.attacks, self.main_findings, self.estimates)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The audit as plain values (docs/audit-folder.md)."""
        return summarise(self) if self._summary is None else self._summary

    @property
    def plot(self) -> AuditPlots:
        """Pictures, as matplotlib figures."""
        from bmpaudit.auditing.plots import AuditPlots

        return AuditPlots(self)

    def __str__(self) -> str:
        answer = self.answer
        lines = [f"  {name + ':':<10} {text}" for name, text in answer.lines]
        return "\n".join([self.title, answer.verdict, *lines, *(f"  ! {warning}" for warning in answer.warnings)])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self.answer.lines)
        warnings = paragraphs(f"! {warning}" for warning in self.answer.warnings)
        return f"<h4>{escape(self.title)}</h4><p>{escape(self.verdict)}</p><table>{rows}</table>{warnings}"
