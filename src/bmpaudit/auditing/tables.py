"""The posteriors of all variants as tables in the paper's p5/p50/p95 form."""

from __future__ import annotations

from collections.abc import Mapping

from bmpaudit.auditing.page_data import SYMBOLS
from bmpaudit.estimation import Posterior
from bmpaudit.plan import AuditPlan

Posteriors = Mapping[str, Mapping[str, Posterior]]
LATEX_SYMBOLS = {
    "epsilon_right": r"$\varepsilon_R$",
    "epsilon_left": r"$\varepsilon_L$",
    "epsilon": r"$\varepsilon$",
}


def markdown_table(plan: AuditPlan, posteriors: Posteriors) -> str:
    """A row a variant, a column a parameter: p5/p50/p95."""
    columns = _columns(posteriors)
    head = ["attack", *(f"{definition} {SYMBOLS[parameter]}" for definition, parameter in columns)]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(plan, posteriors, columns)]
    return "\n".join(lines) + "\n"


def latex_table(plan: AuditPlan, posteriors: Posteriors) -> str:
    """The same as a LaTeX `tabular`."""
    columns = _columns(posteriors)
    head = ["attack", *(f"{definition} {LATEX_SYMBOLS[parameter]}" for definition, parameter in columns)]
    lines = [r"\begin{tabular}{l" + "c" * len(columns) + "}", r"\hline", " & ".join(head) + r" \\", r"\hline"]
    lines += [" & ".join(row) + r" \\" for row in _rows(plan, posteriors, columns)]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _columns(posteriors: Posteriors) -> list[tuple[str, str]]:
    main = next(iter(posteriors.values()))
    return [(definition, name) for definition, found in main.items() for name in found.parameter_names]


def _rows(plan: AuditPlan, posteriors: Posteriors, columns: list[tuple[str, str]]) -> list[list[str]]:
    return [
        [variant.label, *(_cell(posteriors[variant.name].get(definition), name) for definition, name in columns)]
        for variant in plan.variants
    ]


def _cell(posterior: Posterior | None, parameter: str) -> str:
    if posterior is None:
        return ""
    return "/".join(f"{value:.1f}" for value in posterior.quantile([0.05, 0.5, 0.95], parameter))
