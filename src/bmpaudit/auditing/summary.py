"""The audit in one JSON object (docs/audit-folder.md)."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from bmpaudit import registry
from bmpaudit.auditing.advice import advice
from bmpaudit.auditing.answer import IS_NOT
from bmpaudit.auditing.cautions import cautions
from bmpaudit.auditing.headline import driving_nodes, floor_of
from bmpaudit.auditing.node_ranking import ranked_nodes
from bmpaudit.auditing.plan_file import plan_table
from bmpaudit.auditing.release_accuracy import known_mean, release_accuracy
from bmpaudit.auditing.stamps import fingerprint, models_hash
from bmpaudit.auditing.variant import attack_on
from bmpaudit.plain import plain
from bmpaudit.registry import ATTACK

if TYPE_CHECKING:
    from bmpaudit.auditing.finished_audit import Audit
    from bmpaudit.estimation import Posterior
    from bmpaudit.graph import Graph

FORMAT = 3


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
            "is_leakage_found": audit.is_leakage_found,
            "answer": asdict(audit.answer),
            "next": advice(audit),
            "cautions": [*audit.notes, *cautions(audit)],
            "is_not": IS_NOT,
            "guarantee": None if audit.guaranteed is None else audit.guaranteed.to_plain(),
            "releases": {release: _release(audit, release) for release in attacks.releases},
            "headline": [asdict(row) for row in audit.headline],
            "graph": {"source": audit.source, "content_hash": graph.content_hash, **graph_sizes(graph)},
            "plan": plan_table(audit.plan.without_gate, audit.source),
            "priors": {"num_draws": audit.priors.num_draws},
            "shadow_models": {
                "trained": audit.runs.num_models,
                "failed": list(audit.runs.failed),
                "train_accuracy": known_mean(audit.runs.train_accuracy),
                "held_out_accuracy": known_mean(audit.runs.held_out_accuracy),
            },
            "nodes": {
                "audited": counts.num_nodes,
                "not_auditable": len(counts.not_auditable),
                "constant_decision": int(counts.is_constant.sum()),
                "level": leakage.level,
                "most_exposed": ranked_nodes(audit.nodes)["node"].head(20).tolist(),
            },
            "permutation_test": {
                "is_leakage_found": test.is_leakage_found,
                "p_value": test.p_value,
                "statistic": test.statistic,
                "null_statistics": test.null_statistics,
            },
            "variants": {variant.name: _variant(audit, variant.name) for variant in attacks.variants},
            "drivers": driving_nodes(estimates),
            "notes": list(audit.notes),
            "timings": audit.timings,
        }
    )


def _release(audit: Audit, release: str) -> dict[str, Any]:
    findings, variant = audit.findings[release], audit.attacks.strongest(release)
    figures = audit.attacks.performance[variant.name]
    accuracy = release_accuracy(audit.plan, audit.runs, release)
    return {
        "attack": registry.label(ATTACK, attack_on(audit.plan, release)),
        "queries": list(findings.queries),
        "variant": variant.name,
        "auc": figures.auc,
        "tpr_at_fpr": figures.tpr_at_fpr,
        "train_accuracy": known_mean(accuracy.train),
        "held_out_accuracy": known_mean(accuracy.held_out),
        "proof": None if findings.proof is None else findings.proof.to_plain(),
        "not_proven": findings.not_proven,
        "exposure": findings.exposure.to_plain(),
    }


def _variant(audit: Audit, name: str) -> dict[str, Any]:
    counts, figures = audit.attacks.counts[name], audit.attacks.performance[name]
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
        "posteriors": {
            definition: _without_proof(posterior.summary()) | _of_parameters(audit, posterior)
            for definition, posterior in audit.estimates.posteriors[name].items()
        },
    }


def _without_proof(value: Any) -> Any:
    """These errors are Algorithm 1's, which prove nothing."""
    if not isinstance(value, dict):
        return value
    return {name: _without_proof(part) for name, part in value.items() if name != "proven_if_split"}


def _of_parameters(audit: Audit, posterior: Posterior) -> dict[str, dict[str, Any]]:
    parameters = posterior.definition.parameters
    return {
        "symbols": {each.name: each.symbol for each in parameters},
        "floors": {each.name: floor_of(posterior, each.name, audit.priors) for each in parameters},
    }
