"""Tables for papers: what each release proves and exposes, then the posteriors of all variants as p5/p50/p95."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.release_accuracy import known_mean, release_accuracy
from bmpaudit.estimation.definitions import Parameter
from bmpaudit.proof import ExposureCurve, Proof
from bmpaudit.report.words import confidence, interval, number, percent

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
    releases = _markdown([_release_head(audit, PLAIN_SYMBOLS), *_release_rows(audit)])
    return f"{releases}\n{_markdown([head, *_rows(audit, columns)])}"


def latex_table(audit: Audit) -> str:
    """The same as two LaTeX `tabular`s."""
    columns = _columns(audit)
    head = ["attack", *(f"{escape_latex(definition)} ${parameter.latex}$" for definition, parameter in columns)]
    releases = _latex(_release_head(audit, LATEX_SYMBOLS, escape_latex), _release_rows(audit))
    return f"{releases}\n{_latex(head, _rows(audit, columns))}"


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


def _release_head(audit: Audit, symbols: tuple[str, ...], write: Callable[[str], str] = lambda text: text) -> list[str]:
    level = confidence(audit.plan.proof_level)
    return [
        "release",
        *(f"{symbol} {write(f'proven ({level})')}" for symbol in symbols),
        *(write(f"members named at {percent(precision)} ({level} interval)") for precision in SURE),
        *(write(name) for name in ("AUC", "TPR at FPR 1 %", "held-out accuracy", "calibration error")),
    ]


def _release_rows(audit: Audit) -> list[list[str]]:
    rows = []
    for release, findings in audit.findings.items():
        figures = audit.attacks.performance[audit.attacks.strongest(release).name]
        members = findings.exposure.exposure.members
        held_out = known_mean(release_accuracy(audit.plan, audit.runs, release).held_out)
        rows.append(
            [
                release,
                *_proven(findings.proof),
                *(_named(members, precision) for precision in SURE),
                number(figures.auc, 3),
                percent(figures.tpr_at_fpr[0.01], 1),
                percent(held_out, 1),
                number(findings.exposure.reliability.expected_calibration_error, 4),
            ]
        )
    return rows


def _proven(proof: Proof | None) -> list[str]:
    if proof is None or not proof.is_leakage_proven:
        return ["nothing"] * len(PLAIN_SYMBOLS)
    return [f"≥ {number(bound.proven)}" if bound.is_beyond_floor else "nothing" for bound in proof.bounds]


def _named(curve: ExposureCurve, precision: float) -> str:
    k, band = curve.at(precision), curve.reach
    text = f"{number(band.mean[k], 1)} ({interval(band.low[k], band.high[k], 1)})"
    return text if curve.is_settled[k] else f"{text}, too few models"


def _columns(audit: Audit) -> list[tuple[str, Parameter]]:
    main = audit.estimates.posteriors[audit.attacks.main]
    return [(name, parameter) for name, posterior in main.items() for parameter in posterior.definition.parameters]


def _rows(audit: Audit, columns: list[tuple[str, Parameter]]) -> list[list[str]]:
    variants = audit.summary["variants"]
    return [
        [
            variant.label,
            *(_cell(variants[variant.name]["posteriors"].get(name), parameter.name) for name, parameter in columns),
        ]
        for variant in audit.attacks.variants
    ]


def _cell(posterior: Mapping[str, Any] | None, parameter: str) -> str:
    """Percentiles of a posterior, as the summary has them."""
    if posterior is None:
        return ""
    return "/".join(number(posterior[parameter][name], 1) for name in ("p5", "p50", "p95"))
