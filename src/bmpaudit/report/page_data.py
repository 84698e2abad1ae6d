"""What the page and the tables show of an audit, as plain values (docs/report-page.md), and the files of a report.

`report_files`, at the end, is what the pipeline calls: from an audit to the page, the tables and the pictures.
"""

import math
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse

from bmpaudit import estimation, interfaces, plan
from bmpaudit.attack.permutation import LEAKING
from bmpaudit.auditing.answer import in_words_of, missed_in_words, words_of
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.nodes import node_accuracy, ranked_nodes
from bmpaudit.auditing.result import PARAMETERS, ParameterResult
from bmpaudit.graph import Graph
from bmpaudit.report.drawing import Drawing
from bmpaudit.report.page import library_version, render_page
from bmpaudit.util.build import build_id
from bmpaudit.util.values import Flags, Floats, Ints, plain
from bmpaudit.util.words import SYMBOLS, confidence, interval, listed, number, percent, signed

NUM_BINS = 24


def margin_histograms(statistics: npt.NDArray[np.floating], is_in: Flags) -> dict[str, Any]:
    """Margins of shape (J, K) counted by bin, on bins of each node's own, with mean and standard deviation per side."""
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
    variants, curves, joint = [], [], []
    for name, variant in audit.result.variants.items():
        roc, posteriors = audit.attacks.performance[name].roc, audit.estimates.posteriors[name]
        variants.append(
            {
                "id": name,
                **{key: getattr(variant, key) for key in ("label", "auc", "accuracy", "tpr_at_fpr")},
                "roc": {"fpr": roc.false_positive_rate, "tpr": roc.true_positive_rate},
            }
        )
        for definition, each in variant.posteriors.items():
            for parameter, figures in each.parameters.items():
                if figures.floor is not None:  # a parameter of the definition
                    curves.append(_posterior_curve(name, definition, posteriors[definition], parameter, figures))
    for name, posteriors in audit.estimates.posteriors.items():
        if "bmp" in posteriors:
            draws = posteriors["bmp"].sample(JOINT_DRAWS, seed=audit.plan.seed)
            sides = {side: np.round(draws[f"epsilon_{side}"], 4) for side in ("left", "right")}
            joint.append({"variant": name, **sides})
    return {"variants": variants, "posteriors": curves, "joint": joint}


def _posterior_curve(
    variant: str, definition: str, posterior: estimation.Posterior, parameter: str, figures: ParameterResult
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
    """For each property by which nodes are grouped: labels, the groups of the nodes shown, and boxes by measure."""
    measures = {name: accuracy if name == "accuracy" else _numbers(nodes, name) for name in MEASURES}
    degree, homophily, prior = (_numbers(nodes, name) for name in ("degree", "homophily", "prior_prob"))
    # About equally many nodes in each group of priors; nodes with the same prior are never parted.
    cuts = np.unique(np.quantile(prior, np.arange(NUM_PRIOR_GROUPS) / NUM_PRIOR_GROUPS)).tolist()
    ranges, group = _in_ranges(homophily, HOMOPHILIES, lambda low, high: f"{low:g} to < {high:g}", "exactly 1")
    grouped: dict[str, Groups] = {
        "class": _by_class(nodes["class"].to_numpy(dtype=object)),
        "degree": _in_ranges(
            degree,
            DEGREES,
            lambda low, high: f"{low:g}" if high - low == 1 else f"{low:g}–{high - 1:g}",
            f"≥ {DEGREES[-1]}",
        ),
        "homophily": ([*ranges, "no neighbours"], np.where(group < 0, len(ranges), group)),
        "prior_prob": _in_ranges(prior, cuts, lambda low, high: f"{low:.2g} to < {high:.2g}", f"≥ {cuts[-1]:.2g}"),
    }
    data = {}
    for key, (labels, group) in grouped.items():
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
    labels = [str(names[k]) for k in order[:MOST_CLASSES]]
    if len(names) > MOST_CLASSES:
        labels.append("other classes")
    return labels, np.minimum(np.argsort(order)[place], MOST_CLASSES)


def _in_ranges(values: Floats, edges: Sequence[float], label: Callable[[float, float], str], last: str) -> Groups:
    """Ranges from each edge to below the next; the last has no end."""
    group = np.searchsorted(np.asarray(edges), values, side="right") - 1
    return [*(label(*ends) for ends in pairwise(edges)), last], np.where(np.isnan(values), -1, group)


# What the page shows of nodes: each of them, or of many the most exposed and a sample, and figures of all of them.

# A browser draws some thousands of points and some ten thousands of lines without delay.
MOST_NODES = 5_000
MOST_EXPOSED = 3_000  # of these, where there are more nodes
MOST_EDGES = 40_000

THRESHOLDS = np.arange(101) / 100
_OF_SIDE = ("models", "named", "exposure_low", "exposure_high")
COLUMNS = (
    *("prior_prob", "prior_standard_error", "name", "class", "degree", "homophily", "component", "flag"),
    *("p_value", "is_leaking"),
    *(f"{side}_{name}" for side in ("member", "non_member") for name in _OF_SIDE),
    *("floor_right", "floor_left", "num_out", "num_in", "false_positives", "false_negatives", "excess_right_median"),
    *(f"{side}_{end}" for side in ("right", "left") for end in ("low", "median", "high")),
)


def shown_nodes(nodes: pd.DataFrame) -> Ints:
    """All nodes, or those most at risk and an even sample of the rest, in the graph's order.

    Those that are proven to leak are among the most at risk, whether they are named or not.
    """
    if len(nodes) <= MOST_NODES:
        return np.arange(len(nodes))
    ranking = ranked_nodes(nodes).sort_values("is_leaking", ascending=False, kind="stable")["node"].to_numpy()
    top, rest = ranking[:MOST_EXPOSED], ranking[MOST_EXPOSED:]
    evenly = rest[np.linspace(0, len(rest) - 1, MOST_NODES - MOST_EXPOSED).astype(np.int64)]
    return np.sort(np.concatenate([top, evenly]))


def nodes_part(nodes: pd.DataFrame, graph: Graph) -> dict[str, Any]:
    """The nodes shown with the edges between them; groups and thresholds count all nodes."""
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
    limits = np.sort(_numbers(nodes, "member_exposure_low")[_numbers(nodes, "member_models") > 0])
    rank = 1 + np.argsort(ranked_nodes(nodes)["node"].to_numpy())  # the inverse of a permutation
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
        # How many nodes of the graph have a lower limit of exposure above each threshold.
        "thresholds": {
            "threshold": THRESHOLDS,
            "num_above": len(limits) - np.searchsorted(limits, THRESHOLDS, side="right"),
            "num_counted": len(limits),
        },
    }


def _column(column: "pd.Series[Any]") -> list[Any]:
    """Values to six digits, as nothing here is certain to more; None where they are unknown."""
    values = column.astype(object).where(column.notna(), None).tolist()
    return [float(f"{value:.6g}") if isinstance(value, float) and np.isfinite(value) else value for value in values]


# The data of the page (docs/report-page.md).

CITATION = "Bayesian Membership Privacy for Graph Neural Networks. Audited with bmpaudit; cite both, see CITATION.cff."
SHOWN_AS_IT_IS = (  # keys of the result
    *("title", "bmpaudit", "is_leakage_found", "answer", "next", "cautions", "is_not", "headline", "graph"),
    *("proof_level", "permutation_test"),
)
NUM_PAGE_PARTS = 5


def page_data(audit: Audit, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Everything that the page shows, as plain values; `advance` is called after each of its parts."""
    data: dict[str, Any] = {}
    for part in _page_parts(audit):
        data |= finite(part)
        advance()
    return data


def _page_parts(audit: Audit) -> Iterator[dict[str, Any]]:
    """The result as it is, estimates, nodes, shadow models, and how it was made."""
    promised = audit.guaranteed
    yield {
        **{name: audit.summary[name] for name in SHOWN_AS_IT_IS},
        "releases": [{"name": name, **asdict(release)} for name, release in audit.result.releases.items()],
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "words": words_of(audit.graph),
        "missed": in_words_of(audit.graph, missed_in_words(audit.result.permutation_test)),
        "guarantee": promised and {"mechanism": promised.guarantee.mechanism, "corners": promised.mp.corners},
        "exposure_level": audit.main_findings.exposure.exposure.member_nodes.level,
        "leakage_level": audit.result.nodes.level,
        "leaking_level": LEAKING,
    }
    yield estimates_part(audit)
    yield nodes_part(audit.nodes, audit.graph)
    main, runs, shown = audit.attacks.variants[0], audit.runs, shown_nodes(audit.nodes)
    view = f"{main.queries[0]}_{main.release}"
    margins = margin_histograms(runs.statistics[view][:, shown], runs.memberships[:, shown])
    accuracy = {"train": np.round(runs.train_accuracy, 4), "held_out": np.round(runs.held_out_accuracy, 4)}
    yield {"margins": {"view": view, **margins}, "accuracy": accuracy}
    libraries = [f"{name} {version(name)}" for name in ("numpy", "scipy", "zarr")]
    yield {
        "provenance": [
            ("graph", audit.source or "given as an object"),
            ("graph's hash", audit.graph.content_hash),
            ("seed", str(audit.plan.seed)),
            ("build", build_id()[:16]),
            ("bmpaudit", version("bmpaudit")),
            ("libraries", ", ".join([*libraries, f"plotly.js {library_version()}"])),
            ("Python", platform.python_version()),
            ("machine", f"{platform.machine()}, {platform.system()}"),
        ],
        "diagnostics": [[in_words_of(audit.graph, text) for text in row] for row in _diagnostics(audit)],
        "timings": [(name, f"{seconds:.1f} s") for name, seconds in audit.result.timings.items()],
        "plan_toml": plan.format_plan(audit.plan.without_gate, audit.source),
        "citation": CITATION,
    }


def finite(value: Any) -> Any:
    """Plain values; the page knows no infinity, which it shows as a dash."""
    if isinstance(value, (float, np.floating)):  # most values are, so this comes first
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        is_plain = value.dtype.kind in "biu" or (value.dtype.kind == "f" and np.isfinite(value).all())
        return value.tolist() if is_plain else finite(value.tolist())
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    return [finite(part) for part in value] if isinstance(value, (list, tuple)) else plain(value)


def _diagnostics(audit: Audit) -> list[tuple[str, str]]:
    result = audit.result
    draws, models, test = result.priors.num_draws, result.shadow_models, result.permutation_test
    rows = [
        ("models", f"{models.trained:,}, {len(models.failed):,} failed"),
        ("nodes audited", f"{result.nodes.audited:,} of {result.graph.num_nodes:,}"),
        ("nodes with a constant decision", f"{result.nodes.constant_decision:,}"),
        ("priors", f"from {draws:,} draws" if draws else "from a formula"),
        ("permutation test", f"p = {test.p_value:.2g}, {test.num_shuffles:,} shuffles"),
    ]
    for release, _, each in result.rungs:
        text = "none"
        if each.proof is not None:
            bound = each.proof.epsilon_right
            fitted = f"fitted on {bound.num_fitting:,} models, {bound.num_challenged:,} challenged"
            sources = listed(list(dict.fromkeys(every.source for every in each.proof.bounds.values())))
            text = f"{bound.method}, {fitted}, by {sources}"
        rows.append((f"proof, {release}", text))
        named = each.certified
        if named is not None:
            fitted = f"learnt on {named.num_fitting:,} models, {named.num_challenged:,} challenged"
            rows.append((f"certified names, {release}", f"{fitted}, by {named.source}"))
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
    tables = []
    for rows in _tables(audit, SYMBOLS.values(), lambda parameter: parameter.symbol, str):
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        lines.insert(1, "| --- " * len(rows[0]) + "|")
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)


def latex_table(audit: Audit) -> str:
    """The same as two LaTeX `tabular`s."""
    tables = []
    for head, *rest in _tables(audit, LATEX_SYMBOLS, lambda parameter: f"${parameter.latex}$", escape_latex):
        lines = [r"\begin{tabular}{l" + "c" * (len(head) - 1) + "}", r"\hline", " & ".join(head) + r" \\", r"\hline"]
        lines += [" & ".join(map(escape_latex, row)) + r" \\" for row in rest]
        tables.append("\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n")
    return "\n".join(tables)


def escape_latex(text: str) -> str:
    r"""Text of which no character is a command to LaTeX.

    >>> escape_latex("my_release, 99 %")
    'my\\_release, 99 \\%'
    """
    return re.sub(".", lambda match: LATEX_ESCAPES.get(match[0], match[0]), text, flags=re.DOTALL)


def _tables(
    audit: Audit, proven: Iterable[str], symbol: Callable[[estimation.Parameter], str], write: Callable[[str], str]
) -> list[list[list[str]]]:
    """The rows of both tables, heads first; heads hold symbols of parameters, and other text as `write` makes it."""
    result = audit.result
    level = confidence(result.proof_level)
    release_head = [
        "release",
        *(f"{each} {write(f'proven ({level})')}" for each in proven),
        *(write(f"members named at {percent(precision)} ({level} interval)") for precision in SURE),
        *(write(name) for name in ("AUC", "TPR at FPR 1 %", "held-out accuracy", "calibration error")),
    ]
    releases = []
    for name, release, access in result.rungs:
        bounds = [access.shown(parameter) for parameter in PARAMETERS]
        releases.append(
            [
                name,
                *("nothing" if bound is None else f"≥ {number(bound)}" for bound in bounds),
                *(
                    f"{number(row.correct, 1)} ({interval(row.correct_low, row.correct_high, 1)})"
                    f"{'' if row.is_settled else ', too few models'}"
                    for row in map(access.exposure.named, SURE)
                ),
                number(release.auc, 3),
                percent(release.tpr_at_fpr["0.01"], 1),
                percent(release.held_out_accuracy, 1),
                number(access.exposure.reliability.expected_calibration_error, 4),
            ]
        )
    main = audit.estimates.posteriors[result.main_variant]
    columns = [(name, parameter) for name, posterior in main.items() for parameter in posterior.definition.parameters]
    variant_head = ["attack", *(f"{write(name)} {symbol(parameter)}" for name, parameter in columns)]
    variants = []
    for variant in result.variants.values():
        cells = [variant.label]
        for name, parameter in columns:
            posterior = variant.posteriors.get(name)
            shown = None if posterior is None else posterior.parameters[parameter.name]
            cells.append("" if shown is None else "/".join(number(p, 1) for p in (shown.p5, shown.p50, shown.p95)))
        variants.append(cells)
    return [[release_head, *releases], [variant_head, *variants]]


# From an audit to what people read: the page, the tables, the pictures.


def num_parts(audit: Audit, drawing: Drawing) -> int:
    """How many parts a report has, by which its progress is counted: those of the data, page, tables, pictures."""
    return NUM_PAGE_PARTS + 2 + (len(audit.plot.names()) if drawing.formats else 0)


def report_files(
    audit: Audit, drawing: Drawing, *, progress: interfaces.Progress = lambda _: None
) -> dict[str, Callable[[Path], None]]:
    """What writes `report.html`, `tables.md`, `tables.tex` and the pictures; `progress` is told how many are done."""
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
