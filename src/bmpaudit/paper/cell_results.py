"""What is computed from the errors of one attack: each function returns plain values that a file can keep."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bmpaudit.arrays import Floats, Ints
from bmpaudit.attack import ErrorCounts
from bmpaudit.auditing import AuditPlan, Runtime
from bmpaudit.auditing.posteriors import estimate_one
from bmpaudit.estimation import Posterior, estimate, node_leakage

PERCENTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95}
JOINT_DRAWS = 400
TOP_SHARE = 0.01
DROPPED = (1, 10)


def cell_posterior(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str) -> dict[str, Any]:
    """The exact posterior of one cell, and how good the attack is."""
    start = time.perf_counter()
    posterior = estimate_one(plan, counts, definition, runtime)
    quantiles = _quantiles(posterior)
    seconds = time.perf_counter() - start
    trials = int(counts.num_out.sum() + counts.num_in.sum())
    wrong = int(counts.false_positives.sum() + counts.false_negatives.sum())
    false_positive_rate = _rate(counts.false_positives, counts.num_out)
    false_negative_rate = _rate(counts.false_negatives, counts.num_in)
    return {
        **quantiles,
        "mean": posterior.mean(),
        "floor": posterior.floor.right if definition == "bmp-r" else 0.0,
        "accuracy": 1.0 - wrong / trials,
        "balanced_accuracy": 1.0 - 0.5 * false_positive_rate - 0.5 * false_negative_rate,
        "num_nodes": counts.num_nodes,
        "num_not_auditable": len(counts.not_auditable),
        "num_constant": int(counts.is_constant.sum()),
        "seconds": seconds,
    }


def mhaar_posterior(
    counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str, num_iterations: int
) -> dict[str, Any]:
    """The same by Algorithm 3 as in the paper: one chain, the first half of it burn-in, M = 50."""
    start = time.perf_counter()
    posterior = estimate(
        counts,
        definition,
        method="mhaar",
        prior=plan.epsilon_prior,
        num_iterations=num_iterations,
        num_chains=1,
        seed=plan.seed,
        num_threads=runtime.num_threads,
    )
    run = posterior.run
    if run is None:
        raise RuntimeError("method mhaar returned no chains")
    (parameter,) = run.parameter_names
    return {
        **_quantiles(posterior),
        "r_hat": float(run.diagnostics[parameter].r_hat),
        "bulk_ess": float(run.diagnostics[parameter].bulk_ess),
        "acceptance_rate": float(run.acceptance_rate.mean()),
        "seconds": time.perf_counter() - start,
    }


def unflagged_posterior(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str) -> dict[str, Any]:
    """The posterior without the nodes whose decision never varies, which include those that could not be attacked."""
    kept = np.flatnonzero(~counts.is_constant)
    return {"num_nodes": len(kept), "p50": _median(counts, kept, plan, runtime, definition) if len(kept) else None}


def node_summary(counts: ErrorCounts, _plan: AuditPlan, runtime: Runtime, *, keep_nodes: bool) -> dict[str, Any]:
    """How the ε that each node's errors imply varies with its prior (Figure 3), with and without flagged nodes.

    The implied ε of MP is the larger of e_R - log η and e_L + log η, each at its posterior median. Flagged nodes are
    those whose decision never varies, which include those that could not be attacked.
    """
    leakage = node_leakage(counts, num_threads=runtime.num_threads)
    implied = np.maximum(leakage.excess_right.median, leakage.excess_left.median)
    flagged = counts.is_constant | counts.is_kept
    summary: dict[str, Any] = {}
    for name, chosen in (("all", np.ones_like(flagged)), ("unflagged", ~flagged)):
        prior, epsilon = counts.prior_prob[chosen], implied[chosen]
        top = np.argsort(-epsilon, kind="stable")[: max(1, round(TOP_SHARE * len(epsilon)))]
        summary |= {
            f"{name}_num": int(chosen.sum()),
            f"{name}_spearman": rank_correlation(prior, epsilon),
            f"{name}_top_median_prior": float(np.median(prior[top])),
            f"{name}_median_prior": float(np.median(prior)),
        }
    if keep_nodes:
        summary["nodes"] = {
            "prior_prob": _rounded(counts.prior_prob, 6),
            "implied": _rounded(implied, 3),
            "right": _rounded(leakage.right.median, 3),
            "right_low": _rounded(leakage.right.low, 3),
            "right_high": _rounded(leakage.right.high, 3),
            "flagged": flagged.astype(int).tolist(),
        }
    return summary


def joint_posterior(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime) -> dict[str, Any]:
    """The joint posterior of (ε_L, ε_R), with draws for Figure 4 and Pr(ε_L > ε_R) from them."""
    start = time.perf_counter()
    posterior = estimate_one(plan, counts, "bmp", runtime)
    draws = posterior.sample(JOINT_DRAWS, plan.seed)
    left, right = draws["epsilon_left"], draws["epsilon_right"]
    return {
        **_quantiles(posterior, "epsilon_left", "epsilon_left_"),
        **_quantiles(posterior, "epsilon_right", "epsilon_right_"),
        "left_exceeds_right": float(np.mean(left > right)),
        "left": _rounded(left, 3),
        "right": _rounded(right, 3),
        "seconds": time.perf_counter() - start,
    }


def deciding_nodes(counts: ErrorCounts, plan: AuditPlan, runtime: Runtime, *, definition: str) -> dict[str, Any]:
    """How much of a cell depends on its most leaking nodes: p50 without the first, and without the first ten.

    Nodes are ranked by the lower end of what they imply: e_R, or the larger excess for MP.
    """
    leakage = node_leakage(counts, num_threads=runtime.num_threads)
    low = leakage.right.low if definition == "bmp-r" else np.maximum(leakage.excess_right.low, leakage.excess_left.low)
    order = np.argsort(-low, kind="stable")
    first = int(order[0])
    node_counts = (counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives)
    return {
        "node": int(counts.node[first]),
        "node_low": float(low[first]),
        "node_prior_prob": float(counts.prior_prob[first]),
        "node_is_constant": bool(counts.is_constant[first]),
        "node_counts": [int(values[first]) for values in node_counts],
        **{
            f"p50_without_{dropped}": _median(counts, np.sort(order[dropped:]), plan, runtime, definition)
            for dropped in DROPPED
        },
    }


def _quantiles(posterior: Posterior, parameter: str | None = None, prefix: str = "") -> dict[str, float]:
    values = posterior.quantile(list(PERCENTILES.values()), parameter)
    return {f"{prefix}{name}": float(value) for name, value in zip(PERCENTILES, values, strict=True)}


def _median(counts: ErrorCounts, kept: Ints, plan: AuditPlan, runtime: Runtime, definition: str) -> float:
    return float(estimate_one(plan, counts.take(kept), definition, runtime).quantile(0.5))


def _rounded(values: Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def _rate(errors: Ints, trials: Ints) -> float:
    return float(errors.sum() / trials.sum())


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's; 0 if one of them is constant."""
    if len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return 0.0
    return float(spearmanr(first, second).statistic)
