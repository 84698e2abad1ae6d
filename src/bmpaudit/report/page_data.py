"""What the page and the tables show of an audit, as plain values (docs/report-page.md)."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.auditing.answer import in_words_of, words_of
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.nodes import node_accuracy, ranked_nodes
from bmpaudit.auditing.result import PARAMETERS, AuditResult, NamedResult, ParameterResult, PosteriorResult
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import Parameter
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.plan import format_plan
from bmpaudit.report.drawing import Drawing
from bmpaudit.report.page import library_version, render_page
from bmpaudit.util.build import build_id
from bmpaudit.util.values import Flags, Floats, Ints, plain
from bmpaudit.util.words import confidence, interval, listed, number, percent, signed

if TYPE_CHECKING:
    import pandas as pd


NUM_BINS = 24


def margin_histograms(statistics: npt.NDArray[np.floating], is_in: Flags) -> dict[str, Any]:
    """Counts by bin, on bins of each node's own, with the mean and standard deviation of either side.

    Args:
        statistics: Margins of each model and node, shape (J, K).
        is_in: Whether the node was in the model's sample, shape (J, K).
    """
    margins = statistics.astype(np.float64)
    num_nodes = margins.shape[1]
    low, high = margins.min(axis=0), margins.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    bins = np.minimum((NUM_BINS * (margins - low) / width).astype(np.int64), NUM_BINS - 1)
    place = bins + NUM_BINS * np.arange(num_nodes)
    histograms: dict[str, Any] = {"num_bins": NUM_BINS, "low": np.round(low, 4), "high": np.round(high, 4)}
    for name, chosen in (("out", ~is_in), ("in", is_in)):
        counts = np.bincount(place[chosen], minlength=NUM_BINS * num_nodes)
        histograms[name] = counts.reshape(num_nodes, NUM_BINS)
        number = chosen.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(chosen, margins, 0.0).sum(axis=0) / number
            spread = np.sqrt(np.where(chosen, (margins - mean) ** 2, 0.0).sum(axis=0) / number)
        histograms[f"mean_{name}"], histograms[f"std_{name}"] = np.round(mean, 5), np.round(spread, 5)
    return histograms


# What the page shows of the attack's variants and their posteriors (docs/report-page.md).


CURVE_POINTS = 201
JOINT_DRAWS = 1_000


def estimates_part(audit: Audit) -> dict[str, Any]:
    """Variants of the attack, their posteriors, and draws from joint ones."""
    variants = audit.result.variants
    return {
        "variants": [
            {
                "id": name,
                **{key: getattr(variant, key) for key in ("label", "auc", "accuracy", "tpr_at_fpr")},
                "roc": {"fpr": roc.false_positive_rate, "tpr": roc.true_positive_rate},
            }
            for name, variant in variants.items()
            for roc in (audit.attacks.performance[name].roc,)
        ],
        "posteriors": [
            _posterior_curve(variant, definition, audit.estimates.posteriors[variant][definition], parameter, figures)
            for variant, each in variants.items()
            for definition, posterior in each.posteriors.items()
            for parameter, figures in posterior.parameters.items()
            if figures.floor is not None  # a parameter of the definition
        ],
        "joint": _joint(audit),
    }


def _posterior_curve(
    variant: str, definition: str, posterior: Posterior, parameter: str, figures: ParameterResult
) -> dict[str, Any]:
    low, high = posterior.quantile([0.0005, 0.9995], parameter)
    x = np.linspace(max(low - 0.05 * (high - low), posterior.support_low(parameter)), high, CURVE_POINTS)
    return {
        "variant": variant,
        "definition": definition,
        "parameter": parameter,
        "symbol": f"{figures.symbol} ({definition})",
        **{name: getattr(figures, name) for name in ("p5", "p50", "p95", "mean")},
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


# Boxes and means of groups of nodes, over the whole graph, for the page (docs/report-page.md).


MOST_CLASSES = 16
DEGREES = (0, 1, 2, 3, 4, 5, 6, 9, 17, 33)
HOMOPHILIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
NUM_PRIOR_GROUPS = 6
WHISKER_REACH = 1.5  # lengths of the box
MEASURES = (
    *("member_exposure", "non_member_exposure", "accuracy"),
    *("right_median", "excess_right_median", "left_median"),
)

Groups = tuple[list[str], Ints]
"""Labels, and for each node the place of its label, or -1."""


def group_data(nodes: pd.DataFrame, accuracy: Floats, shown: Ints) -> dict[str, Any]:
    """For each property by which nodes are grouped: labels, the groups of the nodes shown, and boxes by measure.

    Args:
        nodes: The audit's table of nodes.
        accuracy: Of the attack on each node.
        shown: The nodes that the page shows.
    """
    measures = {name: accuracy if name == "accuracy" else _numbers(nodes, name) for name in MEASURES}
    data = {}
    for key, (labels, group) in {
        "class": _by_class(nodes["class"].to_numpy(dtype=object)),
        "degree": _in_ranges(_numbers(nodes, "degree"), DEGREES, _degree_label),
        "homophily": _by_homophily(_numbers(nodes, "homophily")),
        "prior_prob": _by_prior(_numbers(nodes, "prior_prob")),
    }.items():
        boxes = {
            name: [_box(values[(group == place) & np.isfinite(values)]) for place in range(len(labels))]
            for name, values in measures.items()
        }
        data[key] = {"label": labels, "group": group[shown], "boxes": boxes}
    return data


def _numbers(nodes: pd.DataFrame, name: str) -> Floats:
    return nodes[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _box(values: Floats) -> dict[str, float] | None:
    """Tukey's box: quartiles, and whiskers to the furthest values within 1.5 lengths of the box."""
    if not values.size:
        return None
    lower, median, upper = np.percentile(values, [25, 50, 75])
    reach = WHISKER_REACH * (upper - lower)
    inside = values[(values >= lower - reach) & (values <= upper + reach)]
    figures = {"lower": lower, "median": median, "upper": upper, "mean": values.mean()}
    figures |= {"low": inside.min(), "high": inside.max()}
    return {"num_nodes": len(values), **{name: float(figure) for name, figure in figures.items()}}


def _by_class(classes: np.ndarray[Any, np.dtype[np.object_]]) -> Groups:
    """The largest classes, and all others together."""
    names, place, sizes = np.unique(classes.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    labels = [str(names[k]) for k in order[:MOST_CLASSES]]
    if len(names) > MOST_CLASSES:
        labels.append("other classes")
    return labels, np.minimum(rank[place], MOST_CLASSES)


def _in_ranges(values: Floats, edges: Sequence[float], label: Callable[[float, float | None], str]) -> Groups:
    """Ranges from each edge to below the next; the last has no end."""
    group = np.searchsorted(np.asarray(edges), values, side="right") - 1
    ends = [*edges[1:], None]
    labels = [label(low, high) for low, high in zip(edges, ends, strict=True)]
    return labels, np.where(np.isnan(values), -1, group)


def _degree_label(low: float, high: float | None) -> str:
    if high is None:
        return f"≥ {low:g}"
    return f"{low:g}" if high - low == 1 else f"{low:g}–{high - 1:g}"


def _by_homophily(values: Floats) -> Groups:
    labels, group = _in_ranges(
        values, HOMOPHILIES, lambda low, high: "exactly 1" if high is None else f"{low:g} to < {high:g}"
    )
    return [*labels, "no neighbours"], np.where(group < 0, len(labels), group)


def _by_prior(values: Floats) -> Groups:
    """About equally many nodes in each; nodes with the same prior are never parted."""
    cuts = np.unique(np.quantile(values, np.arange(NUM_PRIOR_GROUPS) / NUM_PRIOR_GROUPS))
    return _in_ranges(
        values, cuts.tolist(), lambda low, high: f"≥ {low:.2g}" if high is None else f"{low:.2g} to < {high:.2g}"
    )


# What the page shows of nodes: each of them, or of many the most exposed and a sample, and figures of all of them.


# A browser draws some thousands of points and some ten thousands of lines without delay.
MOST_NODES = 5_000
MOST_EXPOSED = 3_000  # of these, where there are more nodes
MOST_EDGES = 40_000

THRESHOLDS = np.arange(101) / 100
COLUMNS = (
    *("prior_prob", "prior_standard_error", "name", "class", "degree", "homophily", "component", "flag"),
    *("member_models", "member_named", "member_exposure_low", "non_member_models", "non_member_named"),
    *("floor_right", "floor_left", "num_out", "num_in", "false_positives", "false_negatives", "excess_right_median"),
    *(f"{side}_{end}" for side in ("right", "left") for end in ("low", "median", "high")),
)


def shown_nodes(nodes: pd.DataFrame) -> Ints:
    """All nodes, or those most at risk and an even sample of the rest, in the graph's order."""
    if len(nodes) <= MOST_NODES:
        return np.arange(len(nodes))
    ranking = ranked_nodes(nodes)["node"].to_numpy()
    top, rest = ranking[:MOST_EXPOSED], ranking[MOST_EXPOSED:]
    evenly = rest[np.linspace(0, len(rest) - 1, MOST_NODES - MOST_EXPOSED).astype(np.int64)]
    return np.sort(np.concatenate([top, evenly]))


def nodes_part(nodes: pd.DataFrame, graph: Graph) -> dict[str, Any]:
    """The nodes shown with the edges between them; groups and thresholds count all nodes.

    Args:
        nodes: The audit's table of nodes (docs/audit-folder.md).
        graph: The graph that was audited.
    """
    from bmpaudit.report.layout import graph_layout  # needs parts of SciPy that take long to import

    shown = shown_nodes(nodes)
    accuracy = node_accuracy(nodes)
    adjacency = graph.adjacency[shown][:, shown]
    source, target = scipy.sparse.triu(adjacency).nonzero()
    num_edges = len(source)
    if num_edges > MOST_EDGES:
        evenly = np.linspace(0, num_edges - 1, MOST_EDGES).astype(np.int64)
        source, target = source[evenly], target[evenly]
    positions = np.round(graph_layout(adjacency), 5)
    rank = np.empty(len(nodes), dtype=np.int64)
    rank[ranked_nodes(nodes)["node"].to_numpy()] = np.arange(1, len(nodes) + 1)
    return {
        "nodes": {
            "id": shown,
            "x": positions[:, 0],
            "y": positions[:, 1],
            "rank": rank[shown],
            "accuracy": np.round(accuracy[shown], 4),
            **{name: _column(nodes[name].iloc[shown]) for name in COLUMNS},
        },
        "num_most_exposed": min(len(shown), MOST_EXPOSED) if len(shown) < len(nodes) else len(shown),
        "edges": {"source": source, "target": target, "num_between": num_edges},
        "groups": group_data(nodes, accuracy, shown),
        "thresholds": _thresholds(nodes),
    }


def _column(column: pd.Series[Any]) -> list[Any]:
    """Values to six digits, as nothing here is certain to more; None where they are unknown."""
    values = column.astype(object).where(column.notna(), None).tolist()
    return [float(f"{value:.6g}") if isinstance(value, float) and np.isfinite(value) else value for value in values]


def _thresholds(nodes: pd.DataFrame) -> dict[str, Any]:
    """How many nodes of the graph have a lower limit of exposure above each threshold."""
    low = nodes["member_exposure_low"].to_numpy(dtype=np.float64, na_value=np.nan)[
        nodes["member_models"].to_numpy(dtype=np.float64, na_value=0.0) > 0
    ]
    ordered = np.sort(low)
    return {
        "threshold": THRESHOLDS,
        "num_above": len(ordered) - np.searchsorted(ordered, THRESHOLDS, side="right"),
        "num_counted": len(ordered),
    }


# The data of the page (docs/report-page.md).


CITATION = "Bayesian Membership Privacy for Graph Neural Networks. Audited with bmpaudit; cite both, see CITATION.cff."


SHOWN_AS_IT_IS = (
    *("title", "bmpaudit", "is_leakage_found", "answer", "next", "cautions", "is_not", "headline", "graph"),
    *("proof_level", "permutation_test"),
)
"""Keys of the result."""


def page_data(audit: Audit, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Everything that the page shows, as plain values; `advance` is called after each of `PARTS`."""
    data: dict[str, Any] = {}
    for part in PARTS:
        data |= finite(part(audit))
        advance()
    return data


def _answer_part(audit: Audit) -> dict[str, Any]:
    """What the page shows of the result as it is."""
    return {
        **{name: audit.summary[name] for name in SHOWN_AS_IT_IS},
        "releases": [{"name": name, **release} for name, release in audit.summary["releases"].items()],
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "words": words_of(audit.graph),
        "guarantee": _guarantee(audit),
        "exposure_level": audit.main_findings.exposure.exposure.member_nodes.level,
        "leakage_level": audit.result.nodes.level,
    }


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
        "timings": [(name, f"{seconds:.1f} s") for name, seconds in audit.result.timings.items()],
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


def _diagnostics(audit: Audit) -> list[tuple[str, str]]:
    result = audit.result
    draws, models = result.priors.num_draws, result.shadow_models
    rows = [
        ("models", f"{models.trained:,}, {len(models.failed):,} failed"),
        ("nodes audited", f"{result.nodes.audited:,} of {result.graph.num_nodes:,}"),
        ("nodes with a constant decision", f"{result.nodes.constant_decision:,}"),
        ("priors", f"from {draws:,} draws" if draws else "from a formula"),
        ("permutation test", f"p = {result.permutation_test.p_value:.2f}"),
    ]
    for release, each in result.releases.items():
        text = "none"
        if each.proof is not None:
            bound = each.proof.epsilon_right
            fitted = f"fitted on {bound.num_fitting:,} models, {bound.num_challenged:,} challenged"
            sources = listed(list(dict.fromkeys(every.source for every in each.proof.bounds.values())))
            text = f"{bound.method}, {fitted}, by {sources}"
        rows.append((f"proof, {release}", text))
    main = result.variants[result.main_variant].posteriors
    rows += [(f"status of {definition}", posterior.status) for definition, posterior in main.items()]
    for row in result.headline:
        nodes = [
            f"node {node.node} ({signed(node.shift)}{', constant' if node.is_constant else ''})"
            for node in result.drivers.get(f"{row.definition} {row.parameter}", [])[:3]
        ]
        rows.append((f"nodes that move {row.name} ({row.definition}) most", ", ".join(nodes)))
    return rows


# Tables for papers: what each release proves and exposes, then the posteriors of all variants as p5/p50/p95.


SURE = (0.9, 0.95, 0.99)
PLAIN_SYMBOLS = ("ε_R", "ε_L", "MP ε")
LATEX_SYMBOLS = (r"$\varepsilon_R$", r"$\varepsilon_L$", r"MP $\varepsilon$")
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≥": r"$\geq$",
    "−": "$-$",
    "∞": r"$\infty$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def markdown_table(audit: Audit) -> str:
    """The releases, then a row per variant and a column per parameter: p5/p50/p95."""
    columns = _columns(audit)
    head = ["attack", *(f"{definition} {parameter.symbol}" for definition, parameter in columns)]
    releases = _markdown([_release_head(audit.result, PLAIN_SYMBOLS), *_release_rows(audit.result)])
    return f"{releases}\n{_markdown([head, *_rows(audit.result, columns)])}"


def latex_table(audit: Audit) -> str:
    """The same as two LaTeX `tabular`s."""
    columns = _columns(audit)
    head = ["attack", *(f"{escape_latex(definition)} ${parameter.latex}$" for definition, parameter in columns)]
    releases = _latex(_release_head(audit.result, LATEX_SYMBOLS, escape_latex), _release_rows(audit.result))
    return f"{releases}\n{_latex(head, _rows(audit.result, columns))}"


def escape_latex(text: str) -> str:
    r"""Text of which no character is a command to LaTeX.

    >>> escape_latex("my_release, 99 %")
    'my\\_release, 99 \\%'
    """
    return re.sub(".", lambda match: LATEX_ESCAPES.get(match[0], match[0]), text, flags=re.DOTALL)


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "| --- " * len(rows[0]) + "|")
    return "\n".join(lines) + "\n"


def _latex(head: list[str], rows: list[list[str]]) -> str:
    lines = [r"\begin{tabular}{l" + "c" * (len(head) - 1) + "}", r"\hline", " & ".join(head) + r" \\", r"\hline"]
    lines += [" & ".join(map(escape_latex, row)) + r" \\" for row in rows]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _release_head(
    result: AuditResult, symbols: tuple[str, ...], write: Callable[[str], str] = lambda text: text
) -> list[str]:
    level = confidence(result.proof_level)
    return [
        "release",
        *(f"{symbol} {write(f'proven ({level})')}" for symbol in symbols),
        *(write(f"members named at {percent(precision)} ({level} interval)") for precision in SURE),
        *(write(name) for name in ("AUC", "TPR at FPR 1 %", "held-out accuracy", "calibration error")),
    ]


def _release_rows(result: AuditResult) -> list[list[str]]:
    rows = []
    for name, release in result.releases.items():
        proven = [release.shown(parameter) for parameter in PARAMETERS]
        rows.append(
            [
                name,
                *("nothing" if each is None else f"≥ {number(each)}" for each in proven),
                *(_named(release.exposure.named(precision)) for precision in SURE),
                number(release.auc, 3),
                percent(release.tpr_at_fpr["0.01"], 1),
                percent(release.held_out_accuracy, 1),
                number(release.exposure.reliability.expected_calibration_error, 4),
            ]
        )
    return rows


def _named(row: NamedResult) -> str:
    text = f"{number(row.correct, 1)} ({interval(row.correct_low, row.correct_high, 1)})"
    return text if row.is_settled else f"{text}, too few models"


def _columns(audit: Audit) -> list[tuple[str, Parameter]]:
    main = audit.estimates.posteriors[audit.result.main_variant]
    return [(name, parameter) for name, posterior in main.items() for parameter in posterior.definition.parameters]


def _rows(result: AuditResult, columns: list[tuple[str, Parameter]]) -> list[list[str]]:
    return [
        [variant.label, *(_cell(variant.posteriors.get(name), parameter.name) for name, parameter in columns)]
        for variant in result.variants.values()
    ]


def _cell(posterior: PosteriorResult | None, parameter: str) -> str:
    """Percentiles of a posterior."""
    if posterior is None:
        return ""
    figures = posterior.parameters[parameter]
    return "/".join(number(value, 1) for value in (figures.p5, figures.p50, figures.p95))


# From an audit to what people read: the page, the tables, the pictures.


NUM_PAGE_PARTS = len(PARTS) + 2  # the data, the page itself, the tables


def num_parts(audit: Audit, drawing: Drawing) -> int:
    """How many parts a report has, by which its progress is counted."""
    return NUM_PAGE_PARTS + (len(audit.plot.names()) if drawing.formats else 0)


def report_files(
    audit: Audit, drawing: Drawing, *, progress: Progress = lambda _: None
) -> dict[str, Callable[[Path], None]]:
    """What writes `report.html`, `tables.md`, `tables.tex` and the pictures.

    Args:
        audit: What is reported.
        drawing: Draws the pictures.
        progress: Called with the number of parts done.
    """
    num_done = count(1)

    def advance() -> None:
        progress(next(num_done))

    drawing.draw(audit.plot.pictures() if drawing.formats else {})
    page = render_page(page_data(audit, advance))
    advance()
    texts = {"report.html": page, "tables.md": markdown_table(audit), "tables.tex": latex_table(audit)}
    advance()
    figures = drawing.finish(advance)
    contents = {name: text.encode() for name, text in texts.items()}
    contents |= {f"figures/{name}": content for name, content in figures.items()}
    return {name: partial(_write, content) for name, content in contents.items()}


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)
