"""An audit on disk: a folder that one can enter and leave at every step (docs/audit-folder.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit import datasets
from bmpaudit.attack import ErrorCounts, NullControl
from bmpaudit.attack.performance import AttackPerformance, RocCurve
from bmpaudit.auditing.attack_step import Attacks, VariantPerformance
from bmpaudit.auditing.audit import Audit
from bmpaudit.auditing.estimate_step import Estimates, assemble, estimation_tasks
from bmpaudit.plain import plain
from bmpaudit.auditing.summary import FORMAT, fingerprint
from bmpaudit.errors import DataError, InputError
from bmpaudit.estimation import Posterior
from bmpaudit.files import atomic_write
from bmpaudit.graph import Graph
from bmpaudit.plan import AuditPlan, PlanFile, format_plan, read_plan
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns, ShadowStore

if TYPE_CHECKING:
    import pandas as pd


OWN_GRAPH = "graph.npz"


class AuditFolder:
    """The files of one audit, by name. Every file is written whole or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def plan_path(self) -> Path:
        """What was asked for."""
        return self.path / "plan.toml"

    @property
    def report_path(self) -> Path:
        """The page."""
        return self.path / "report.html"

    def counts_path(self, variant: str, *, split: bool = False) -> Path:
        """Errors of a variant of the attack, by Algorithm 1 or 4."""
        return self.path / "counts" / f"{variant}{'_split' if split else ''}.parquet"

    def posterior_path(self, variant: str, definition: str) -> Path:
        """A posterior."""
        return self.path / "posteriors" / f"{variant}_{definition}.npz"

    # The plan and the graph it is about

    def write_plan(self, plan: AuditPlan, source: str, graph: Graph) -> None:
        """Writes the plan, and the graph itself if nothing else could bring it back."""
        own, text = self.path / OWN_GRAPH, format_plan(plan, source or OWN_GRAPH)
        if not source and (not own.exists() or datasets.load(own).content_hash != graph.content_hash):
            self.path.mkdir(parents=True, exist_ok=True)
            graph.to_npz(own)
        if not self.plan_path.exists() or self.plan_path.read_text(encoding="utf-8") != text:
            _write_text(self.plan_path, text)

    def read_plan(self) -> PlanFile:
        """The plan.

        Raises:
            DataError: if this is no folder of an audit.
        """
        if not self.plan_path.exists():
            raise DataError(f"{self.path} is no folder of an audit: it has no plan.toml")
        return read_plan(self.plan_path)

    def load_graph(self, source: str) -> Graph:
        """The graph that the plan names; `graph.npz` is the folder's own."""
        return datasets.load(self.path / OWN_GRAPH if source == OWN_GRAPH else source)

    # The steps' results

    def write_priors(self, priors: Priors) -> None:
        """γ of every node."""
        _write_table(self.path / "priors.parquet", priors.to_frame())

    def read_priors(self, plan: AuditPlan) -> Priors:
        """γ of every node, as the sample step left it."""
        return Priors.from_frame(plan.sampler, self._read_table("priors.parquet", "sample"))

    def read_runs(self, graph: Graph, plan: AuditPlan) -> ShadowRuns:
        """The shadow models, as the train step left them.

        Raises:
            DataError: if there are none.
        """
        if not (self.path / "shadows").exists():
            raise DataError(f"{self.path} has no shadow models yet: bmpaudit train")
        with ShadowStore(self.path, graph, plan.shadow_plan) as store:
            runs = store.read(min(plan.num_shadows, store.num_models))
        num_there = runs.num_models + len(runs.failed)
        if num_there < plan.num_shadows:
            raise DataError(f"{self.path} has {num_there:,} of {plan.num_shadows:,} shadow models: bmpaudit train")
        return runs

    def write_attacks(self, attacks: Attacks, fingerprint: str) -> None:
        """Counts of all variants, their performance, the null control; `attack.json` last, which vouches for them."""
        control = attacks.null_control
        tables = {self.counts_path(variant): counts for variant, counts in attacks.counts.items()}
        tables |= {self.counts_path(variant, split=True): counts for variant, counts in attacks.split_counts.items()}
        tables[self.counts_path("null_control")] = control.counts
        tables |= {self.counts_path(f"null_{trial:02d}"): counts for trial, counts in enumerate(control.null_counts)}
        for path, counts in tables.items():
            _make_parent(path)
            counts.to_table(path)
        _remove_others(self.path / "counts", "*.parquet", set(tables))
        told = {
            "format": FORMAT,
            "fingerprint": fingerprint,
            "not_auditable": [[left.node, left.reason] for left in next(iter(attacks.counts.values())).not_auditable],
            "null_control": {
                "statistic": control.statistic,
                "null_statistics": control.null_statistics,
                "decision": control.decision,
            },
            "performance": {
                variant: {
                    "num_out": found.figures.num_out,
                    "num_in": found.figures.num_in,
                    "accuracy": found.figures.accuracy,
                    "auc": found.figures.auc,
                    "tpr_at_fpr": found.figures.tpr_at_fpr,
                    "roc": {"fpr": found.roc.false_positive_rate, "tpr": found.roc.true_positive_rate},
                }
                for variant, found in attacks.performance.items()
            },
        }
        _write_json(self.path / "attack.json", told)

    def read_attacks(self, plan: AuditPlan) -> Attacks:
        """What the attack step left.

        Raises:
            DataError: if it was not run, or for another plan.
        """
        from dataclasses import replace

        from bmpaudit.attack import NotAuditable

        told = self._read_json("attack.json", "attack")
        not_auditable = tuple(NotAuditable(int(node), str(reason)) for node, reason in told["not_auditable"])
        names = [variant.name for variant in plan.variants]
        if set(names) - set(told["performance"]):
            raise DataError(f"{self.path} was attacked with other variants: run bmpaudit attack again")

        def read(variant: str, *, split: bool = False) -> ErrorCounts:
            return replace(ErrorCounts.from_table(self.counts_path(variant, split=split)), not_auditable=not_auditable)

        control = told["null_control"]
        trials = range(len(control["null_statistics"]))
        null_control = NullControl(
            control["statistic"],
            np.array(control["null_statistics"]),
            read("null_control"),
            tuple(read(f"null_{trial:02d}") for trial in trials),
            control["decision"],
        )
        return Attacks(
            counts={name: read(name) for name in names},
            split_counts={
                name: read(name, split=True) for name in names if self.counts_path(name, split=True).exists()
            },
            performance={name: _performance(told["performance"][name]) for name in names},
            null_control=null_control,
        )

    def write_estimates(self, estimates: Estimates) -> None:
        """All posteriors."""
        written = set()
        for variant, found in estimates.posteriors.items():
            for definition, posterior in found.items():
                path = self.posterior_path(variant, definition)
                _make_parent(path)
                posterior.save(path)
                written.add(path)
        _remove_others(self.path / "posteriors", "*.npz", written)

    def read_estimates(self, plan: AuditPlan, attacks: Attacks) -> Estimates:
        """What the estimate step left.

        Raises:
            DataError: if it was not run, or for another plan.
        """
        told = self.read_summary()
        posteriors: dict[str, dict[str, Posterior]] = {variant.name: {} for variant in plan.variants}
        for variant, definition in estimation_tasks(plan):
            name = str(self.posterior_path(variant, definition).relative_to(self.path))
            posteriors[variant][definition] = self._read(name, "estimate", Posterior.load)
        control = told["null_control"]
        return assemble(plan, attacks, posteriors, [control["control_median"], *control["null_medians"]])

    def write_audit(self, audit: Audit) -> None:
        """Everything of a finished audit but the page and the pictures; the summary last, which vouches for it."""
        self.write_plan(audit.plan, audit.source, audit.graph)
        self.write_priors(audit.priors)
        self.write_attacks(audit.attacks, fingerprint(audit.graph, audit.plan, audit.runs, attack_only=True))
        self.write_estimates(audit.estimates)
        _write_table(self.path / "nodes.parquet", audit.nodes)
        _write_json(self.path / "summary.json", audit.summary)

    def read_summary(self) -> dict[str, Any]:
        """The audit in one object."""
        return dict(self._read_json("summary.json", "estimate"))

    def attack_fingerprint(self) -> str:
        """Of which plan and models the errors are."""
        return str(self._read_json("attack.json", "attack")["fingerprint"])

    def read_nodes(self) -> pd.DataFrame:
        """One row a node."""
        return self._read_table("nodes.parquet", "estimate")

    def _read_json(self, name: str, step: str) -> Any:
        told = self._read(name, step, lambda path: json.loads(path.read_text(encoding="utf-8")))
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise DataError(
                f"{self.path / name}: damaged, or of another version of bmpaudit: run bmpaudit {step} again"
            )
        return told

    def _read_table(self, name: str, step: str) -> pd.DataFrame:
        import pandas as pd

        return self._read(name, step, pd.read_parquet)

    def _read(self, name: str, step: str, reader: Callable[[Path], Any]) -> Any:
        path = self.path / name
        if not path.exists():
            raise DataError(f"{self.path} has no {name} yet: bmpaudit {step}")
        try:
            return reader(path)
        except InputError:
            raise
        except (ValueError, KeyError, OSError, EOFError) as damage:
            raise DataError(f"{path}: damaged: {str(damage).splitlines()[0]}") from None


def check_new_or_audit(path: Path) -> None:
    """Refuses to write into a folder that holds something else.

    Raises:
        InputError: if there are files but no plan, neither of an audit nor of shadow models.
    """
    if path.is_file():
        raise InputError(f"{path} is a file, not a folder")
    ours = ("plan.toml", "shadows.json")
    if path.exists() and any(path.iterdir()) and not any((path / name).exists() for name in ours):
        raise InputError(f"{path} holds files that are not an audit's; use a new folder")


def _performance(told: dict[str, Any]) -> VariantPerformance:
    figures = AttackPerformance(
        told["num_out"],
        told["num_in"],
        told["accuracy"],
        told["auc"],
        {float(rate): value for rate, value in told["tpr_at_fpr"].items()},
    )
    return VariantPerformance(figures, RocCurve(np.array(told["roc"]["fpr"]), np.array(told["roc"]["tpr"])))


def _remove_others(folder: Path, pattern: str, kept: set[Path]) -> None:
    """What an audit with other variants or definitions left would look like this one's."""
    for path in folder.glob(pattern):
        if path not in kept:
            path.unlink()


def _make_parent(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _write_json(path: Path, value: Any) -> None:
    _write_text(path, json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _write_table(path: Path, table: pd.DataFrame) -> None:
    with atomic_write(path) as temporary:
        table.to_parquet(temporary, index=False)
