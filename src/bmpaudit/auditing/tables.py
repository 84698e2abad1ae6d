"""The posteriors of all variants as tables in the paper's p5/p50/p95 form."""

from __future__ import annotations

from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import Parameter
from bmpaudit.report.words import number


def markdown_table(audit: Audit) -> str:
    """A row per variant and a column per parameter: p5/p50/p95."""
    columns = _columns(audit)
    head = ["attack", *(f"{definition} {parameter.symbol}" for definition, parameter in columns)]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(audit, columns)]
    return "\n".join(lines) + "\n"


def latex_table(audit: Audit) -> str:
    """The same as a LaTeX `tabular`."""
    columns = _columns(audit)
    head = ["attack", *(f"{definition} ${parameter.latex}$" for definition, parameter in columns)]
    lines = [r"\begin{tabular}{l" + "c" * len(columns) + "}", r"\hline", " & ".join(head) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in _rows(audit, columns)]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _columns(audit: Audit) -> list[tuple[str, Parameter]]:
    main = audit.estimates.posteriors[audit.attacks.main]
    return [(name, parameter) for name, posterior in main.items() for parameter in posterior.definition.parameters]


def _rows(audit: Audit, columns: list[tuple[str, Parameter]]) -> list[list[str]]:
    posteriors = audit.estimates.posteriors
    return [
        [variant.label, *(_cell(posteriors[variant.name].get(name), parameter.name) for name, parameter in columns)]
        for variant in audit.attacks.variants
    ]


def _cell(posterior: Posterior | None, parameter: str) -> str:
    if posterior is None:
        return ""
    return "/".join(number(value, 1) for value in posterior.quantile([0.05, 0.5, 0.95], parameter))
