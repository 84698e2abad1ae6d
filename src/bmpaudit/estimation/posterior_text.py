"""A posterior as plain values, as text and as a table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from bmpaudit.estimation.prior import NormalPrior, StrengthPrior

if TYPE_CHECKING:
    from bmpaudit.estimation.posterior import Posterior

PERCENTILES = (0.05, 0.5, 0.95)


def summary(posterior: Posterior) -> dict[str, Any]:
    """See `Posterior.summary`."""
    prior, strength = posterior.prior, posterior.strength
    values: dict[str, Any] = {
        "definition": posterior.name,
        "method": posterior.method,
        "num_nodes": posterior.num_nodes,
        "num_left_out": len(posterior.left_out),
        "num_constant": int(posterior.is_constant.sum()),
        "prior": prior.describe() if isinstance(prior, NormalPrior) else "user-defined",
        "strength": None if isinstance(strength, StrengthPrior) else strength,
        "strength_prior": dict(vars(strength)) if isinstance(strength, StrengthPrior) else None,
        "status": posterior.status,
        "floor": {"left": posterior.floor.left, "right": posterior.floor.right},
    }
    for name, marginal in posterior.marginals.items():
        low, middle, high = (float(value) for value in marginal.quantile(PERCENTILES))
        values[name] = {"p5": low, "p50": middle, "p95": high, "mean": marginal.mean()}
        if name in posterior.parameter_names:
            values[name]["proven_if_split"] = posterior.proven(name).bound
            values[name]["tail_prior_share"] = posterior.tail_prior_share(name)
    return values


def text(posterior: Posterior) -> str:
    """A small table."""
    lines = [_title(posterior), f"  {'':<14} {'5 %':>8} {'50 %':>8} {'95 %':>8}   proven*"]
    for name, marginal in posterior.marginals.items():
        low, middle, high = marginal.quantile(PERCENTILES)
        line = f"  {name:<14} {low:8.3f} {middle:8.3f} {high:8.3f}"
        if name in posterior.parameter_names:
            line += f"  {posterior.proven(name)}"
        lines.append(line)
    lines.append("  * with 95 % confidence, if these counts come from Algorithm 4")
    if posterior.status not in ("exact", "converged"):
        lines.append(f"  status: {posterior.status}")
    return "\n".join(lines)


def html(posterior: Posterior) -> str:
    """The same table in HTML."""
    rows = []
    for name, marginal in posterior.marginals.items():
        values = [f"{value:.3f}" for value in marginal.quantile(PERCENTILES)]
        proven = str(posterior.proven(name)) if name in posterior.parameter_names else ""
        cells = "".join(f"<td>{value}</td>" for value in (*values, proven))
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    caption = escape(f"{_title(posterior)}; status: {posterior.status}")
    head = "<tr><th></th><th>5 %</th><th>50 %</th><th>95 %</th><th>proven, if from Algorithm 4</th></tr>"
    return f"<table><caption>{caption}</caption>{head}{''.join(rows)}</table>"


def _title(posterior: Posterior) -> str:
    plural = "" if posterior.num_nodes == 1 else "s"
    return f"{posterior.name}, {posterior.method}, {posterior.num_nodes:,} node{plural}"
