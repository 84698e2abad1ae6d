"""The posteriors of all variants as tables in the paper's p5/p50/p95 form."""

from __future__ import annotations

from collections.abc import Mapping

from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definition import Parameter
from bmpaudit.plan import AuditPlan

Posteriors = Mapping[str, Mapping[str, Posterior]]


def markdown_table(plan: AuditPlan, posteriors: Posteriors) -> str:
    """A row per variant, a column per parameter: p5/p50/p95."""
    columns = _columns(posteriors)
    head = ["attack", *(f"{definition} {parameter.symbol}" for definition, parameter in columns)]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(plan, posteriors, columns)]
    return "\n".join(lines) + "\n"


def latex_table(plan: AuditPlan, posteriors: Posteriors) -> str:
    """The same as a LaTeX `tabular`."""
    columns = _columns(posteriors)
    head = ["attack", *(f"{definition} ${parameter.latex}$" for definition, parameter in columns)]
    lines = [r"\begin{tabular}{l" + "c" * len(columns) + "}", r"\hline", " & ".join(head) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in _rows(plan, posteriors, columns)]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _columns(posteriors: Posteriors) -> list[tuple[str, Parameter]]:
    main = next(iter(posteriors.values()))
    return [(definition, each) for definition, found in main.items() for each in found.definition.parameters]


def _rows(plan: AuditPlan, posteriors: Posteriors, columns: list[tuple[str, Parameter]]) -> list[list[str]]:
    return [
        [variant.label, *(_cell(posteriors[variant.name].get(definition), each.name) for definition, each in columns)]
        for variant in plan.variants
    ]


def _cell(posterior: Posterior | None, parameter: str) -> str:
    if posterior is None:
        return ""
    return "/".join(f"{value:.1f}" for value in posterior.quantile([0.05, 0.5, 0.95], parameter))
