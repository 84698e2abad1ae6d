"""The whole line: from a graph to what a model trained on a sample of it gives away."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit import datasets
from bmpaudit.auditing.attack_step import Attacks, check_enough_models, run_attacks
from bmpaudit.auditing.estimate_step import Estimates, run_estimates
from bmpaudit.auditing.headline import HeadlineRow, headline, verdict
from bmpaudit.auditing.nodes_table import nodes_table
from bmpaudit.auditing.summary import summarise
from bmpaudit.graph import Graph
from bmpaudit.plan import AuditPlan, Runtime
from bmpaudit.samplers import Priors, prior_probabilities
from bmpaudit.shadow import ShadowRuns, train_shadows

if TYPE_CHECKING:
    import pandas as pd

    from bmpaudit.auditing.plots import AuditPlots


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that one plan found out about one graph; each part is a value of the line.

    Attributes:
        graph: What was audited.
        source: Where it came from.
        plan: How.
        priors: Membership probabilities under the sampler alone.
        runs: Shadow models: memberships and statistics.
        attacks: Errors of every variant of the attack.
        estimates: Posteriors, bounds and leakage of nodes.
        timings: Seconds that each step took.
    """

    graph: Graph
    source: str
    plan: AuditPlan
    priors: Priors
    runs: ShadowRuns
    attacks: Attacks
    estimates: Estimates
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What was audited, in a few words."""
        return f"{self.graph_name}, {self.plan.title}"

    @property
    def graph_name(self) -> str:
        """The graph's source without the way to it."""
        name = Path(self.source).name
        return name.removesuffix(".npz") or "graph"

    @property
    def headline(self) -> tuple[HeadlineRow, ...]:
        """The main variant's ε, each with interval, floor and proven bound."""
        return headline(self.plan, self.estimates)

    @property
    def verdict(self) -> str:
        """The answer in words."""
        return verdict(self.headline, self.attacks.null_control)

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row a node (docs/audit-folder.md)."""
        counts = self.attacks.counts[self.plan.main_variant.name]
        return nodes_table(self.graph, self.priors, counts, self.estimates.leakage)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The audit as plain values (docs/audit-folder.md)."""
        return summarise(self)

    @property
    def plot(self) -> AuditPlots:
        """Pictures, as matplotlib figures."""
        from bmpaudit.auditing.plots import AuditPlots

        return AuditPlots(self)

    def save(self, folder: str | Path, *, pictures: bool = True) -> Path:
        """Writes everything but the shadow models as `bmpaudit audit` does (docs/audit-folder.md).

        Returns:
            The page's path.

        Raises:
            InputError: if the folder holds something else.
        """
        from bmpaudit.auditing.folder import AuditFolder, check_new_or_audit
        from bmpaudit.auditing.report_step import write_report

        place = AuditFolder(folder)
        check_new_or_audit(place.path)
        place.write_audit(self)
        return write_report(self, place, Runtime(), pictures=pictures)

    def __str__(self) -> str:
        lines = [self.title, self.verdict]
        for row in self.headline:
            proven = "" if row.proven is None else f", proven ≥ {row.proven:.2f}"
            lines.append(f"  {row.name:<5} {row.p5:6.2f} {row.p50:6.2f} {row.p95:6.2f}   floor {row.floor:.2f}{proven}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th>{escape(row.name)}</th><td>{row.p5:.2f}</td><td>{row.p50:.2f}</td><td>{row.p95:.2f}</td>"
            f"<td>{row.floor:.2f}</td><td>{'' if row.proven is None else f'{row.proven:.2f}'}</td></tr>"
            for row in self.headline
        )
        head = "<tr><th></th><th>5 %</th><th>50 %</th><th>95 %</th><th>floor</th><th>proven</th></tr>"
        return f"<h4>{escape(self.title)}</h4><p>{escape(self.verdict)}</p><table>{head}{rows}</table>"


def audit(
    graph: Graph | str | Path,
    plan: AuditPlan | None = None,
    *,
    folder: str | Path | None = None,
    runtime: Runtime | None = None,
) -> Audit:
    """Runs the whole line: sample, train, attack, estimate.

    Args:
        graph: A graph, or what `datasets.load` takes.
        plan: What to do; the defaults if not given.
        folder: Where to keep the shadow models, so that a stopped audit goes on and more models can be added; nothing
            is kept if not given. `Audit.save` writes the rest beside them.
        runtime: Threads and progress.

    Raises:
        InputError: if something given does not fit, or the folder belongs to another plan or graph.
    """
    plan, runtime = plan or AuditPlan(), runtime or Runtime()
    loaded = graph if isinstance(graph, Graph) else datasets.load(graph)
    source = "" if isinstance(graph, Graph) else str(graph)
    timings: dict[str, float] = {}
    with timed(timings, "priors"):
        priors = find_priors(loaded, plan, runtime)
    with timed(timings, "training"), _folder_or_temporary(folder) as place:
        runs = train(loaded, plan, place, runtime)
    return attack_and_estimate(loaded, source, plan, priors, runs, runtime, timings)


def find_priors(graph: Graph, plan: AuditPlan, runtime: Runtime) -> Priors:
    """The prior of every node, by formula or many draws, whichever source the attack is to use."""
    with runtime.progress("priors", plan.prior_draws) as progress:
        return prior_probabilities(graph, plan.sampler, num_draws=plan.prior_draws, seed=plan.seed, progress=progress)


def train(graph: Graph, plan: AuditPlan, folder: Path, runtime: Runtime, *, keep_logits: bool = False) -> ShadowRuns:
    """Makes sure that the folder holds the plan's shadow models."""
    with runtime.progress("shadow models", plan.num_shadows) as progress:
        return train_shadows(
            graph,
            plan.shadow_plan,
            plan.num_shadows,
            folder,
            num_threads=runtime.num_threads,
            keep_logits=keep_logits,
            progress=progress,
            report=runtime.report,
        )


def attack_and_estimate(
    graph: Graph,
    source: str,
    plan: AuditPlan,
    priors: Priors,
    runs: ShadowRuns,
    runtime: Runtime,
    timings: dict[str, float] | None = None,
) -> Audit:
    """The second half of the line, for models trained here or elsewhere."""
    check_enough_models(runs)
    spent = {} if timings is None else timings
    with timed(spent, "attack"):
        attacks = run_attacks(plan, runs, priors, runtime)
    with timed(spent, "estimation"):
        estimates = run_estimates(plan, attacks, runtime)
    return Audit(graph, source, plan, priors, runs, attacks, estimates, spent)


@contextmanager
def timed(timings: dict[str, float], name: str) -> Iterator[None]:
    """Notes how many seconds a block took."""
    start = time.perf_counter()
    yield
    timings[name] = time.perf_counter() - start


@contextmanager
def _folder_or_temporary(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="bmpaudit-") as temporary:
        yield Path(temporary)
