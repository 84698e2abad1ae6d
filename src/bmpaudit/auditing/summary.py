"""The audit in one JSON object (docs/audit-folder.md)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit.auditing.estimate_step import control_definition
from bmpaudit.auditing.headline import IS_NOT, cautions, driving_nodes, headline, verdict
from bmpaudit.plain import plain
from bmpaudit.graph import Graph
from bmpaudit.plan import AuditPlan
from bmpaudit.plan.plan_file import plan_table
from bmpaudit.shadow import ShadowRuns

if TYPE_CHECKING:
    from bmpaudit.auditing.audit import Audit

FORMAT = 1


def fingerprint(graph: Graph, plan: AuditPlan, runs: ShadowRuns, *, attack_only: bool = False) -> str:
    """Tells audits apart whose answers may differ: plan, graph, models, version; or the attacks of audits."""
    table = plan_table(plan, "")
    if attack_only:
        del table["estimation"]
    told = {"plan": table, "graph": graph.content_hash, "models": _digest(runs), "version": version("bmpaudit")}
    return hashlib.sha256(json.dumps(plain(told), sort_keys=True).encode()).hexdigest()


def _digest(runs: ShadowRuns) -> str:
    found = hashlib.sha256(runs.indices.astype(np.int64).tobytes())
    found.update(np.packbits(runs.memberships).tobytes())
    for name, values in runs.statistics.items():
        found.update(name.encode())
        found.update(np.ascontiguousarray(values).data)
    return found.hexdigest()


def summarise(audit: Audit) -> dict[str, Any]:
    """Everything of interest as plain values."""
    plan, attacks, estimates, graph = audit.plan, audit.attacks, audit.estimates, audit.graph
    main = plan.main_variant.name
    rows = headline(plan, estimates)
    control, counts, leakage = attacks.null_control, attacks.counts[main], estimates.leakage
    return plain(
        {
            "format": FORMAT,
            "bmpaudit": version("bmpaudit"),
            "fingerprint": fingerprint(graph, plan, audit.runs),
            "title": audit.title,
            "verdict": verdict(rows, control),
            "headline": [dataclasses.asdict(row) for row in rows],
            "cautions": cautions(plan, attacks, estimates),
            "is_not": IS_NOT,
            "graph": {
                "source": audit.source,
                "content_hash": graph.content_hash,
                **{n: getattr(graph, n) for n in ("num_nodes", "num_edges", "num_features", "num_classes")},
            },
            "plan": plan_table(plan, audit.source),
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
            "null_control": {
                "leakage_found": control.is_leakage_found,
                "p_value": control.p_value,
                "statistic": control.statistic,
                "null_statistics": control.null_statistics,
                "definition": control_definition(plan),
                "control_median": estimates.control_median,
                "null_medians": estimates.null_medians,
            },
            "variants": {variant.name: _variant(audit, variant.name) for variant in plan.variants},
            "drivers": {
                f"{definition} {parameter}": driving_nodes(estimates, estimates.posteriors[main][definition], parameter)
                for definition, parameter in estimates.influences
            },
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
        "posteriors": {name: found.summary() for name, found in audit.estimates.posteriors[name].items()},
    }


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None
