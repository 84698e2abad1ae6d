"""What is computed from the errors of one attack: each function returns plain values that a file can keep."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bmpaudit import registry
from bmpaudit.attack import ErrorCounts
from bmpaudit.estimation import NormalPrior, estimate, node_leakage
from bmpaudit.estimation.density import PiecewiseDensity
from bmpaudit.estimation.exact import exact_density
from bmpaudit.estimation.support import likelihood_of
from bmpaudit.paper.experiments import Measure
from bmpaudit.privacy import prior_floor

PERCENTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95}
JOINT_DRAWS = 400
TOP_SHARE = 0.01
DROPPED = (1, 10)


def measure_cell(counts: ErrorCounts, measure: Measure) -> dict[str, Any]:
    """The exact posterior of one cell, with what else is told of the attack."""
    start = time.perf_counter()
    posterior = exact_posterior(counts, measure)
    quantiles = posterior.quantile(list(PERCENTILES.values()))
    seconds = time.perf_counter() - start
    trials = int(counts.num_out.sum() + counts.num_in.sum())
    wrong = int(counts.false_positives.sum() + counts.false_negatives.sum())
    return {
        **{name: float(value) for name, value in zip(PERCENTILES, quantiles, strict=True)},
        "mean": posterior.mean(),
        "floor": prior_floor(counts.prior_odds[np.isfinite(counts.prior_odds)]).right if measure == "bmp-r" else 0.0,
        "accuracy": 1.0 - wrong / trials,
        "balanced_accuracy": 1.0
        - 0.5 * _rate(counts.false_positives, counts.num_out)
        - 0.5 * _rate(counts.false_negatives, counts.num_in),
        "num_nodes": counts.num_nodes,
        "num_not_auditable": len(counts.not_auditable),
        "num_constant": int(counts.is_constant.sum()),
        "seconds": seconds,
    }


def exact_posterior(counts: ErrorCounts, measure: Measure) -> PiecewiseDensity:
    """The density that `estimate` finds, without its warnings about nodes whose decision never varies.

    Those take many times longer than the density itself, and here such nodes are counted and left out beside.
    """
    definition = registry.build(registry.DEFINITION, measure)
    return exact_density(likelihood_of(counts, definition), definition, NormalPrior())


def measure_by_mhaar(counts: ErrorCounts, measure: Measure, seed: int, num_iterations: int = 10_000) -> dict[str, Any]:
    """The same by Algorithm 3 with the paper's settings: one chain, T = 10,000, half of it burn-in, M = 50."""
    start = time.perf_counter()
    posterior = estimate(counts, measure, method="mhaar", num_iterations=num_iterations, num_chains=1, seed=seed)
    run = posterior.run
    if run is None:
        raise RuntimeError("no chains came back")
    (name,) = run.parameter_names
    quantiles = posterior.quantile(list(PERCENTILES.values()))
    return {
        **{name: float(value) for name, value in zip(PERCENTILES, quantiles, strict=True)},
        "r_hat": float(run.diagnostics[name].r_hat),
        "bulk_ess": float(run.diagnostics[name].bulk_ess),
        "acceptance_rate": float(run.acceptance_rate.mean()),
        "seconds": time.perf_counter() - start,
    }


def measure_unflagged(counts: ErrorCounts, measure: Measure) -> dict[str, Any]:
    """The posterior without the nodes whose decision never varies, those that could not be attacked among them."""
    kept = np.flatnonzero(~counts.is_constant)
    if not len(kept):
        return {"num_nodes": 0, "p50": None}
    return {"num_nodes": len(kept), "p50": float(exact_posterior(counts.take(kept), measure).quantile(0.5))}


def measure_nodes(counts: ErrorCounts, *, keep_nodes: bool) -> dict[str, Any]:
    """How the ε that each node's errors imply goes with its prior (Figure 3), with and without flagged nodes.

    The implied ε of MP is the larger of e_R - log η and e_L + log η, each in its posterior median. Flagged are nodes
    on which the decision never varies, those that could not be attacked among them.
    """
    leakage = node_leakage(counts)
    implied = np.maximum(leakage.excess_right.median, leakage.excess_left.median)
    flagged = counts.is_constant | counts.is_kept
    found: dict[str, Any] = {}
    for name, chosen in (("all", np.ones_like(flagged)), ("unflagged", ~flagged)):
        prior, epsilon = counts.prior_prob[chosen], implied[chosen]
        num_top = max(1, round(TOP_SHARE * len(epsilon)))
        top = np.argsort(-epsilon, kind="stable")[:num_top]
        found |= {
            f"{name}_num": int(chosen.sum()),
            f"{name}_spearman": _spearman(prior, epsilon),
            f"{name}_top_median_prior": float(np.median(prior[top])),
            f"{name}_median_prior": float(np.median(prior)),
        }
    if keep_nodes:
        right = leakage.right
        found["nodes"] = {
            "prior": _rounded(counts.prior_prob, 6),
            "implied": _rounded(implied, 3),
            "right": _rounded(right.median, 3),
            "right_low": _rounded(right.low, 3),
            "right_high": _rounded(right.high, 3),
            "flagged": flagged.astype(int).tolist(),
        }
    return found


def measure_joint(counts: ErrorCounts, seed: int) -> dict[str, Any]:
    """The joint posterior of (ε_L, ε_R), with draws for Figure 4 and Pr(ε_L > ε_R) from them."""
    start = time.perf_counter()
    posterior = estimate(counts, "bmp")
    draws = posterior.sample(JOINT_DRAWS, seed)
    left, right = draws["epsilon_left"], draws["epsilon_right"]
    found: dict[str, Any] = {}
    for name in ("epsilon_left", "epsilon_right"):
        quantiles = posterior.quantile(list(PERCENTILES.values()), name)
        found |= {
            f"{name}_{percentile}": float(value) for percentile, value in zip(PERCENTILES, quantiles, strict=True)
        }
    return {
        **found,
        "left_exceeds_right": float(np.mean(left > right)),
        "left": _rounded(left, 3),
        "right": _rounded(right, 3),
        "seconds": time.perf_counter() - start,
    }


def measure_deciding_nodes(counts: ErrorCounts, measure: Measure) -> dict[str, Any]:
    """How much of a cell hangs on its most leaking nodes: p50 without the first, and without the first ten.

    Nodes are ranked by the lower end of what they imply, e_R or the larger excess for MP.
    """
    leakage = node_leakage(counts)
    low = leakage.right.low if measure == "bmp-r" else np.maximum(leakage.excess_right.low, leakage.excess_left.low)
    order = np.argsort(-low, kind="stable")
    first = int(order[0])
    found: dict[str, Any] = {
        "node": int(counts.node[first]),
        "node_low": float(low[first]),
        "node_prior": float(counts.prior_prob[first]),
        "node_is_constant": bool(counts.is_constant[first]),
        "node_counts": [
            int(values[first])
            for values in (counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives)
        ],
    }
    for dropped in DROPPED:
        kept = np.sort(order[dropped:])
        found[f"p50_without_{dropped}"] = float(exact_posterior(counts.take(kept), measure).quantile(0.5))
    return found


def _rounded(values: np.ndarray, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def _rate(errors: np.ndarray, trials: np.ndarray) -> float:
    return float(errors.sum() / trials.sum())


def _spearman(prior: np.ndarray, epsilon: np.ndarray) -> float:
    if len(np.unique(prior)) < 2 or len(np.unique(epsilon)) < 2:
        return 0.0
    return float(spearmanr(prior, epsilon).statistic)
