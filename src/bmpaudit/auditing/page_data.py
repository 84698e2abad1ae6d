"""The data of the page (docs/report-page.md)."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from bmpaudit.auditing.answer import IS_NOT
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.headline import HeadlineRow
from bmpaudit.auditing.page_estimates import estimates_part
from bmpaudit.auditing.page_margins import margin_histograms
from bmpaudit.auditing.page_nodes import nodes_part, shown_nodes
from bmpaudit.auditing.page_releases import release_data
from bmpaudit.auditing.plan_file import format_plan
from bmpaudit.auditing.summary import graph_sizes
from bmpaudit.auditing.table_words import in_words_of, words_of
from bmpaudit.build import build_id
from bmpaudit.graph import Graph
from bmpaudit.plain import plain
from bmpaudit.proof import Proof
from bmpaudit.report.page import library_version
from bmpaudit.report.words import signed

CITATION = "Bayesian Membership Privacy for Graph Neural Networks. Audited with bmpaudit; cite both, see CITATION.cff."


def page_data(audit: Audit, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Everything that the page shows, as plain values; `advance` is called after each of `PARTS`."""
    data: dict[str, Any] = {}
    for part in PARTS:
        data |= finite(part(audit))
        advance()
    return data


def _answer_part(audit: Audit) -> dict[str, Any]:
    exposure, test = audit.main_findings.exposure.exposure, audit.attacks.permutation_test
    return {
        "title": audit.title,
        "version": version("bmpaudit"),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "graph": {"name": audit.graph_name, **graph_sizes(audit.graph)},
        "words": words_of(audit.graph),
        "verdict": audit.verdict,
        "is_leakage_found": audit.is_leakage_found,
        "answer": dataclasses.asdict(audit.answer),
        "guarantee": _guarantee(audit),
        "next": audit.summary["next"],
        "releases": [release_data(audit, release) for release in audit.attacks.releases],
        "headline": [_headline_row(row, audit.graph) for row in audit.headline],
        "cautions": audit.summary["cautions"],
        "permutation_test": {
            "is_leakage_found": test.is_leakage_found,
            "p_value": test.p_value,
            "statistic": test.statistic,
            "null_statistics": test.null_statistics,
        },
        "is_not": [in_words_of(audit.graph, sentence) for sentence in IS_NOT],
        "at_risk": exposure.at_risk,
        "exposure_level": exposure.member_nodes.level,
        "leakage_level": audit.estimates.leakage.level,
    }


def _headline_row(row: HeadlineRow, graph: Graph) -> dict[str, Any]:
    texts = {
        "meaning": in_words_of(graph, row.meaning),
        "warnings": [in_words_of(graph, each) for each in row.warnings],
    }
    return dataclasses.asdict(row) | texts


def _guarantee(audit: Audit) -> dict[str, Any] | None:
    """The region of error rates that a guarantee leaves of any node's."""
    if audit.guaranteed is None:
        return None
    promised = audit.guaranteed.guarantee
    return {"mechanism": promised.mechanism, "corners": promised.mp.corners}


def _models_part(audit: Audit) -> dict[str, Any]:
    main, runs, shown = audit.attacks.variants[0], audit.runs, shown_nodes(audit.nodes)
    view = f"{main.queries[0]}_{main.release}"
    accuracies = {"train": runs.train_accuracy, "held_out": runs.held_out_accuracy}
    return {
        "margins": {"view": view, **margin_histograms(runs.statistics[view][:, shown], runs.memberships[:, shown])},
        "accuracy": {name: np.round(values, 4) for name, values in accuracies.items()},
    }


def _methods_part(audit: Audit) -> dict[str, Any]:
    return {
        "provenance": _provenance(audit),
        "diagnostics": [[in_words_of(audit.graph, text) for text in row] for row in _diagnostics(audit)],
        "timings": [(name, f"{seconds:.1f} s") for name, seconds in audit.timings.items()],
        "plan_toml": format_plan(audit.plan.without_gate, audit.source),
        "citation": CITATION,
    }


PARTS: tuple[Callable[[Audit], dict[str, Any]], ...] = (
    _answer_part,
    estimates_part,
    lambda audit: nodes_part(audit.nodes, audit.graph),
    _models_part,
    _methods_part,
)


def finite(value: Any) -> Any:
    """Plain values; the page knows no infinity, which it shows as a dash."""
    if isinstance(value, float):  # most values are, so this comes first
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        is_plain = value.dtype.kind in "biu" or (value.dtype.kind == "f" and np.isfinite(value).all())
        return value.tolist() if is_plain else finite(value.tolist())
    if isinstance(value, np.floating):
        return finite(float(value))
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    return [finite(part) for part in value] if isinstance(value, (list, tuple)) else plain(value)


def _provenance(audit: Audit) -> list[tuple[str, str]]:
    libraries = [f"{name} {version(name)}" for name in ("numpy", "scipy", "zarr")]
    return [
        ("graph", audit.source or "given as an object"),
        ("graph's hash", audit.graph.content_hash),
        ("seed", str(audit.plan.seed)),
        ("build", build_id()[:16]),
        ("bmpaudit", version("bmpaudit")),
        ("libraries", ", ".join([*libraries, f"plotly.js {library_version()}"])),
        ("Python", platform.python_version()),
        ("machine", f"{platform.machine()}, {platform.system()}"),
    ]


def _proof_row(release: str, proof: Proof | None) -> tuple[str, str]:
    if proof is None:
        return f"proof, {release}", "none"
    bound = proof.epsilon_right
    return (
        f"proof, {release}",
        f"{bound.method}, fitted on {bound.num_fitting:,} models, {bound.num_challenged:,} challenged, by "
        f"{bound.choice.source}",
    )


def _diagnostics(audit: Audit) -> list[tuple[str, str]]:
    counts, priors = audit.attacks.main_counts, audit.priors
    rows = [
        ("models", f"{audit.runs.num_models:,}, {len(audit.runs.failed):,} failed"),
        ("nodes audited", f"{counts.num_nodes:,} of {audit.graph.num_nodes:,}"),
        ("nodes with a constant decision", f"{int(counts.is_constant.sum()):,}"),
        ("priors", "from a formula" if priors.is_exact else f"from {priors.num_draws:,} draws"),
        ("permutation test", f"p = {audit.attacks.permutation_test.p_value:.2f}"),
        *(_proof_row(release, findings.proof) for release, findings in audit.findings.items()),
    ]
    main = audit.estimates.posteriors[audit.attacks.main]
    rows += [(f"status of {definition}", posterior.status) for definition, posterior in main.items()]
    for row in audit.headline:
        drivers = audit.summary["drivers"].get(f"{row.definition} {row.parameter}", [])[:3]
        nodes = ", ".join(
            f"node {node['node']} ({signed(node['shift'])}{', constant' if node['is_constant'] else ''})"
            for node in drivers
        )
        rows.append((f"nodes that move {row.name} ({row.definition}) most", nodes))
    return rows
