"""The data of the page (docs/report-page.md)."""

from __future__ import annotations

import dataclasses
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from bmpaudit.arrays import Ints
from bmpaudit.auditing.answer import IS_NOT
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.node_ranking import node_accuracy, ranked_nodes
from bmpaudit.auditing.page_releases import release_data
from bmpaudit.auditing.plan_file import format_plan
from bmpaudit.auditing.stamps import build_id
from bmpaudit.auditing.summary import graph_sizes
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import Parameter
from bmpaudit.plain import plain
from bmpaudit.proof import Proof
from bmpaudit.report.layout import graph_layout
from bmpaudit.report.words import signed

if TYPE_CHECKING:
    import pandas as pd

MOST_NODES = 5_000  # shown on the page
MOST_EXPOSED = 3_000  # of these, when there are more
CURVE_POINTS = 201
JOINT_DRAWS = 1_000
HISTOGRAM_BINS = 24
COLUMNS = (
    *("prior_prob", "prior_standard_error", "name", "class", "degree", "homophily", "component", "flag"),
    *("member_models", "member_named", "member_exposure_low", "non_member_models", "non_member_named"),
    *("floor_right", "floor_left", "num_out", "num_in", "false_positives", "false_negatives", "excess_right_median"),
    *(f"{side}_{end}" for side in ("right", "left") for end in ("low", "median", "high")),
)
CITATION = "Bayesian Membership Privacy for Graph Neural Networks. Audited with bmpaudit; cite both, see CITATION.cff."


def page_data(audit: Audit) -> dict[str, Any]:
    """Everything that the page shows, as plain values."""
    nodes = audit.nodes
    ranking = ranked_nodes(nodes)["node"].to_numpy()
    shown = _shown_nodes(ranking)
    exposure = audit.main_findings.exposure.exposure
    test = audit.attacks.permutation_test
    graph = audit.graph
    adjacency = graph.adjacency[shown][:, shown]
    source, target = scipy.sparse.triu(adjacency).nonzero()
    positions = graph_layout(adjacency)
    return _finite(
        {
            "title": audit.title,
            "version": version("bmpaudit"),
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "graph": {"name": audit.graph_name, **graph_sizes(graph)},
            "verdict": audit.verdict,
            "is_leakage_found": audit.is_leakage_found,
            "answer": dataclasses.asdict(audit.answer),
            "next": audit.summary["next"],
            "releases": [release_data(audit, release) for release in audit.attacks.releases],
            "headline": [dataclasses.asdict(row) for row in audit.headline],
            "cautions": audit.summary["cautions"],
            "permutation_test": {
                "is_leakage_found": test.is_leakage_found,
                "p_value": test.p_value,
                "statistic": test.statistic,
                "null_statistics": test.null_statistics,
            },
            "is_not": IS_NOT,
            "variants": [_variant(audit, variant.name, variant.label) for variant in audit.attacks.variants],
            "posteriors": _posteriors(audit),
            "joint": _joint(audit),
            "nodes": {
                "id": shown,
                "x": positions[:, 0],
                "y": positions[:, 1],
                "rank": np.argsort(ranking)[shown] + 1,
                "accuracy": np.round(node_accuracy(nodes)[shown], 4),
                **{name: _column(nodes, name, shown) for name in COLUMNS},
            },
            "at_risk": exposure.at_risk,
            "exposure_level": exposure.member_nodes.level,
            "leakage_level": audit.estimates.leakage.level,
            "edges": {"source": source, "target": target},
            "margins": _margins(audit, shown),
            "accuracy": {"train": audit.runs.train_accuracy, "held_out": audit.runs.held_out_accuracy},
            "provenance": _provenance(audit),
            "diagnostics": _diagnostics(audit),
            "timings": [(name, f"{seconds:.1f} s") for name, seconds in audit.timings.items()],
            "plan_toml": format_plan(audit.plan.without_gate, audit.source),
            "citation": CITATION,
        }
    )


def _shown_nodes(ranking: Ints) -> Ints:
    """All nodes, or those most at risk and some of the rest, in the graph's order."""
    if len(ranking) <= MOST_NODES:
        return np.arange(len(ranking))
    top, rest = ranking[:MOST_EXPOSED], ranking[MOST_EXPOSED:]
    evenly = rest[np.linspace(0, len(rest) - 1, MOST_NODES - MOST_EXPOSED).astype(np.int64)]
    return np.sort(np.concatenate([top, evenly]))


def _column(nodes: pd.DataFrame, name: str, shown: Ints) -> list[Any]:
    column = nodes[name].iloc[shown]
    known = column.notna()
    values = column.astype(object).where(known, None).tolist()
    # No prior is certain to more digits, and the page stays small.
    return [float(f"{value:.6g}") if isinstance(value, float) and np.isfinite(value) else value for value in values]


def _finite(value: Any) -> Any:
    """Plain values; the page knows no infinity, which it shows as a dash."""
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return _finite(value.tolist())
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, (list, tuple)) else plain(value)


def _variant(audit: Audit, name: str, label: str) -> dict[str, Any]:
    figures = audit.attacks.performance[name]
    return {
        "id": name,
        "label": label,
        "auc": figures.auc,
        "accuracy": figures.accuracy,
        "tpr_at_fpr": {f"{rate:g}": value for rate, value in figures.tpr_at_fpr.items()},
        "roc": {"fpr": figures.roc.false_positive_rate, "tpr": figures.roc.true_positive_rate},
    }


def _posteriors(audit: Audit) -> list[dict[str, Any]]:
    return [
        _curve(variant, definition, posterior, parameter)
        for variant, row in audit.estimates.posteriors.items()
        for definition, posterior in row.items()
        for parameter in posterior.definition.parameters
    ]


def _curve(variant: str, definition: str, posterior: Posterior, of: Parameter) -> dict[str, Any]:
    parameter = of.name
    p5, p50, p95 = posterior.quantile([0.05, 0.5, 0.95], parameter)
    low, high = posterior.quantile([0.0005, 0.9995], parameter)
    x = np.linspace(max(low - 0.05 * (high - low), posterior.support_low(parameter)), high, CURVE_POINTS)
    return {
        "variant": variant,
        "definition": definition,
        "parameter": parameter,
        "symbol": f"{of.symbol} ({definition})",
        "p5": p5,
        "p50": p50,
        "p95": p95,
        "mean": posterior.mean(parameter),
        "x": np.round(x, 5),
        "density": np.round(posterior.marginal(parameter).pdf(x), 6),
        "prior_density": np.round(np.exp(posterior.prior(x)), 6),
        "status": posterior.status,
    }


def _joint(audit: Audit) -> list[dict[str, Any]]:
    rows = []
    for variant, posteriors in audit.estimates.posteriors.items():
        if "bmp" in posteriors:
            draws = posteriors["bmp"].sample(JOINT_DRAWS, seed=audit.plan.seed)
            left, right = (np.round(draws[name], 4) for name in ("epsilon_left", "epsilon_right"))
            rows.append({"variant": variant, "left": left, "right": right})
    return rows


def _margins(audit: Audit, shown: Ints) -> dict[str, Any]:
    """Histograms of each node's margins without and with it in the sample, on bins of its own."""
    main = audit.attacks.variants[0]
    view = f"{main.queries[0]}_{main.release}"
    margins = audit.runs.statistics[view][:, shown].astype(np.float64)
    is_in = audit.runs.memberships[:, shown]
    low, high = margins.min(axis=0), margins.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    bins = np.minimum((HISTOGRAM_BINS * (margins - low) / width).astype(np.int64), HISTOGRAM_BINS - 1)
    place = bins + HISTOGRAM_BINS * np.arange(len(shown))
    histograms: dict[str, Any] = {
        "view": view,
        "num_bins": HISTOGRAM_BINS,
        "low": np.round(low, 4),
        "high": np.round(high, 4),
    }
    for name, chosen in (("out", ~is_in), ("in", is_in)):
        counts = np.bincount(place[chosen], minlength=HISTOGRAM_BINS * len(shown))
        histograms[name] = counts.reshape(len(shown), HISTOGRAM_BINS)
        number = chosen.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(chosen, margins, 0.0).sum(axis=0) / number
            spread = np.sqrt(np.where(chosen, (margins - mean) ** 2, 0.0).sum(axis=0) / number)
        histograms[f"mean_{name}"], histograms[f"std_{name}"] = np.round(mean, 5), np.round(spread, 5)
    return histograms


def _provenance(audit: Audit) -> list[tuple[str, str]]:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "zarr", "plotly"))
    return [
        ("graph", audit.source or "given as an object"),
        ("graph's hash", audit.graph.content_hash),
        ("seed", str(audit.plan.seed)),
        ("build", build_id()[:16]),
        ("bmpaudit", version("bmpaudit")),
        ("libraries", libraries),
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
