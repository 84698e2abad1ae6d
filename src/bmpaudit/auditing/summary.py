"""The audit in one JSON object (docs/audit-folder.md)."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit.auditing.headline import IS_NOT, cautions, driving_nodes, floor_of, proven_of
from bmpaudit.auditing.plan_file import plan_table
from bmpaudit.auditing.stamps import fingerprint, models_hash
from bmpaudit.plain import plain

if TYPE_CHECKING:
    from bmpaudit.auditing.finished_audit import Audit
    from bmpaudit.estimation import Posterior
    from bmpaudit.graph import Graph

FORMAT = 2


def graph_sizes(graph: Graph) -> dict[str, int]:
    """The four numbers that say how large a graph is."""
    return {name: getattr(graph, name) for name in ("num_nodes", "num_edges", "num_features", "num_classes")}


def summarise(audit: Audit) -> dict[str, Any]:
    """Everything of interest as plain values."""
    attacks, estimates, graph = audit.attacks, audit.estimates, audit.graph
    test, counts, leakage = attacks.permutation_test, attacks.main_counts, estimates.leakage
    return plain(
        {
            "format": FORMAT,
            "bmpaudit": version("bmpaudit"),
            "fingerprint": fingerprint(audit.plan, graph.content_hash, models_hash(audit.runs, audit.priors)),
            "title": audit.title,
            "verdict": audit.verdict,
            "headline": [asdict(row) for row in audit.headline],
            "cautions": [*audit.notes, *cautions(attacks, estimates, audit.headline)],
            "is_not": IS_NOT,
            "graph": {"source": audit.source, "content_hash": graph.content_hash, **graph_sizes(graph)},
            "plan": plan_table(audit.plan, audit.source),
            "shadow_models": {
                "trained": audit.runs.num_models,
                "failed": list(audit.runs.failed),
                "train_accuracy": _mean(audit.runs.train_accuracy),
                "held_out_accuracy": _mean(audit.runs.held_out_accuracy),
            },
            "nodes": {
                "audited": counts.num_nodes,
                "not_auditable": len(counts.not_auditable),
                "constant_decision": int(counts.is_constant.sum()),
                "level": leakage.level,
                "most_leaking": counts.node[leakage.ranked()[:20]],
            },
            "permutation_test": {
                "is_leakage_found": test.is_leakage_found,
                "p_value": test.p_value,
                "statistic": test.statistic,
                "null_statistics": test.null_statistics,
                "definition": estimates.control_definition,
                "control_median": estimates.control_median,
                "null_medians": estimates.null_medians,
            },
            "variants": {variant.name: _variant(audit, variant.name) for variant in attacks.variants},
            "drivers": driving_nodes(estimates),
            "notes": list(audit.notes),
            "timings": audit.timings,
        }
    )


def _variant(audit: Audit, name: str) -> dict[str, Any]:
    counts, figures = audit.attacks.counts[name], audit.attacks.performance[name]
    bound = audit.estimates.bounds.get(name)
    return {
        "errors": {
            "false_positives": int(counts.false_positives.sum()),
            "num_out": int(counts.num_out.sum()),
            "false_negatives": int(counts.false_negatives.sum()),
            "num_in": int(counts.num_in.sum()),
        },
        "accuracy": figures.accuracy,
        "auc": figures.auc,
        "tpr_at_fpr": figures.tpr_at_fpr,
        "proven": None
        if bound is None
        else {"right": bound.right.bound, "left": bound.left.bound, "mp": bound.mp.bound, "level": bound.level},
        "posteriors": {
            definition: _without_proof(posterior.summary()) | _of_parameters(audit, name, posterior)
            for definition, posterior in audit.estimates.posteriors[name].items()
        },
    }


def _without_proof(summary: dict[str, Any]) -> dict[str, Any]:
    """These errors are Algorithm 1's, which prove nothing."""
    return {name: value for name, value in summary.items() if name != "proven_if_split"}


def _of_parameters(audit: Audit, variant: str, posterior: Posterior) -> dict[str, dict[str, Any]]:
    parameters, bounds = posterior.definition.parameters, audit.estimates.bounds
    return {
        "symbols": {each.name: each.symbol for each in parameters},
        "floors": {each.name: floor_of(posterior, each.name, audit.priors) for each in parameters},
        "proven": {each.name: proven_of(bounds, variant, posterior, each.name) for each in parameters},
    }


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None
