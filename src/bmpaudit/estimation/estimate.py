"""From error counts to a posterior of ε: exact, by quadrature only, or by MHAAR."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from bmpaudit import registry
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation.definitions import epsilons_of, parameter_names
from bmpaudit.estimation.density import ELSEWHERE, PARTS, PiecewiseDensity, Steps, approximate_density
from bmpaudit.estimation.joint_density import (
    DEEPEST,
    Ends,
    JointDensity,
    JointLogDensity,
    approximate_joint_density,
    find_peak,
    floor_coordinates,
    floor_tolerance,
    joint_density_at_floor,
)
from bmpaudit.estimation.likelihood import (
    STRONGEST,
    Likelihood,
    LogDensity,
    NormalPrior,
    Rows,
    StrengthPrior,
    check_one_parameter,
    likelihood_of,
    support_lows,
    upper_end,
    used_nodes,
)
from bmpaudit.estimation.lower_bound import check_prior_draws
from bmpaudit.estimation.mhaar import CorrelatedCounts, MhaarRun, run_mhaar
from bmpaudit.estimation.posterior import DrawsMarginal, Marginal, Posterior
from bmpaudit.interfaces import Definition, Progress
from bmpaudit.privacy import prior_floor
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats

TYPICAL_POINTS = 12  # half of the points at which a posterior is computed for all rows
GRID_POINTS = 64  # points of a grid that stand for one of these
RING_SHARE = 0.005  # of the work left: one strength of some hundred
FURTHEST_RING = 600.0  # where e^-ε comes near the smallest double
HAIR = 1e-13  # share of the range, next to its lower end, that is left out: there R is too thin for double precision


def silent(_: int) -> None:
    """Progress that nobody watches."""


def exact_density(
    likelihood: Likelihood,
    definition: Definition,
    prior: LogDensity,
    strength: float = 0.0,
    progress: Progress = silent,
) -> PiecewiseDensity:
    """The posterior density of the one parameter of a definition.

    log p(ε | data) = log prior + Σ_k [log Pr((α_k, β_k) ∈ R_k) - log |R_k|], on the support that the priors leave.
    """
    (low,) = support_lows(definition, likelihood.log_prior_odds, prior).values()
    steps = Steps(progress)

    def log_posterior(epsilon: Floats, cutoff: float, rows: Rows | None = None) -> Floats:
        left, right = epsilons_of(definition, epsilon)
        log_prior = prior(epsilon)
        # A prior of 0 leaves 0, whatever the likelihood is.
        lowest = np.where(log_prior == -np.inf, np.inf, cutoff - np.maximum(log_prior, np.finfo(np.float64).min))
        step = steps.step(*_share(likelihood, len(epsilon), rows))
        return likelihood(left, right, strength, lowest, rows=rows, progress=step) + log_prior

    high, sketch = _upper_end(prior, low, strength > 0), likelihood.rows.sketch()
    rough = None if sketch is likelihood.rows else partial(log_posterior, rows=sketch)
    return approximate_density(log_posterior, _just_above(low, high), high, rough)


def exact_joint_density(
    likelihood: Likelihood,
    definition: Definition,
    prior: LogDensity,
    strength: float = 0.0,
    progress: Progress = silent,
) -> JointDensity:
    """The posterior density of (ε_L, ε_R), with independent priors."""
    low_left, low_right = support_lows(definition, likelihood.log_prior_odds, prior).values()
    steps, all_rows = Steps(progress), likelihood.rows.condensed()

    def on_grid(left: Floats, right: Floats, rows: Rows = all_rows) -> Floats:
        step = steps.step(*_share(likelihood, len(left) * len(right) // GRID_POINTS, rows))
        values = likelihood.on_grid(left, right, strength, rows=rows, progress=step)
        return values + prior(left)[:, None] + prior(right)[None, :]

    def at_points(left: Floats, right: Floats, rows: Rows = all_rows) -> Floats:
        step = steps.step(*_share(likelihood, left.size // GRID_POINTS, rows))
        return likelihood(left, right, strength, rows=rows, progress=step) + prior(left) + prior(right)

    def on_rays(low: Ends, distances: Floats, directions: tuple[Floats, Floats], rows: Rows = all_rows) -> Floats:
        left, right = (start + distances[:, None] * each for start, each in zip(low, directions, strict=True))
        if strength > 0:
            return at_points(left, right, rows)
        step = steps.step(*_share(likelihood, left.size // GRID_POINTS, rows))
        return likelihood.on_rays(low, distances, directions, rows=rows, progress=step) + prior(left) + prior(right)

    high, sketch = _upper_end(prior, max(low_left, low_right), strength > 0), all_rows.sketch()
    lows, highs = (_just_above(low_left, high), _just_above(low_right, high)), (high, high)
    is_small = sketch is all_rows
    peak = find_peak(partial(on_grid, rows=sketch), lows, highs)
    if not is_small:
        # Of two peaks far apart, a sketch cannot tell which is higher.
        elsewhere = on_grid(lows[0] + (high - lows[0]) * ELSEWHERE, lows[1] + (high - lows[1]) * ELSEWHERE)
        if elsewhere.max() > on_grid(peak[:1], peak[1:])[0, 0]:
            is_small, sketch = True, all_rows
            peak = find_peak(on_grid, lows, highs)
    coordinates = floor_coordinates(partial(at_points, rows=sketch), peak, (low_left, low_right))
    if coordinates is not None:
        rough = JointLogDensity(partial(on_grid, rows=sketch), partial(on_rays, rows=sketch))
        return joint_density_at_floor(
            JointLogDensity(on_grid, on_rays),
            coordinates,
            (low_left, low_right),
            highs,
            None if is_small else rough,
            floor_tolerance(peak, (low_left, low_right)),
        )
    return approximate_joint_density(on_grid, lows, highs, None if is_small else partial(on_grid, rows=sketch), peak)


def exact_strength_density(
    likelihood: Likelihood,
    definition: Definition,
    prior: LogDensity,
    strength_prior: StrengthPrior,
    progress: Progress = silent,
) -> JointDensity:
    """The posterior density of (ε, s) of a definition with one ε, for an unknown attack strength s.

    Raises:
        InputError: if the definition has two ε, or a prior is 0 or 1: the ring needs finite prior odds.
    """
    check_one_parameter(definition)
    (low,) = support_lows(definition, likelihood.log_prior_odds, prior).values()

    best, steps = [-np.inf], Steps(progress)

    def log_posterior(epsilon: Floats, strength: Floats) -> Floats:
        left, right = epsilons_of(definition, epsilon)
        log_prior = prior(epsilon)[:, None] + strength_prior.log_density(strength)[None, :]
        values = np.empty(log_prior.shape)
        for column, s in enumerate(strength):
            # Rings take long to integrate: skip those that are negligible beside the best value so far.
            cutoff = best[0] - DEEPEST - log_prior[:, column]
            step = steps.step(RING_SHARE, len(likelihood.rows))
            values[:, column] = likelihood(left, right, float(s), cutoff, progress=step) + log_prior[:, column]
            best[0] = max(best[0], float(values[:, column].max()))
        return values

    high = _upper_end(prior, low, is_ring=True)
    return approximate_joint_density(log_posterior, (_just_above(low, high), 0.0), (high, STRONGEST))


def _upper_end(prior: LogDensity, low: float, is_ring: bool) -> float:
    high = upper_end(prior, low)
    if is_ring and high > FURTHEST_RING:
        raise InputError(
            f"with an attack strength the prior must be negligible beyond ε = {FURTHEST_RING:g}, got one that reaches "
            f"ε = {high:.4g}: choose a smaller variance or mean"
        )
    return high


def _share(likelihood: Likelihood, num_points: int, rows: Rows | None) -> tuple[float, int]:
    """What share of the work left some points on some rows are thought to be, and the number of rows."""
    num_rows = len(likelihood.rows if rows is None else rows)
    return 1 - 2.0 ** -(num_points / TYPICAL_POINTS * num_rows / len(likelihood.rows)), num_rows


def _just_above(low: float, high: float) -> float:
    return low + HAIR * (high - low)


# From error counts to a posterior of ε.


def estimate(
    counts: ErrorCounts,
    definition: str | Mapping[str, Any] | Definition = "bmp-r",
    *,
    method: Literal["exact", "mhaar"] = "exact",
    prior: LogDensity | None = None,
    strength: float | StrengthPrior = 0.0,
    correlated: CorrelatedCounts | None = None,
    num_iterations: int | None = None,
    num_auxiliary: int = 50,
    num_chains: int = 4,
    seed: int = 0,
    prior_draws: int = 0,
    num_threads: int | None = None,
    progress: Progress = lambda _: None,
) -> Posterior:
    """Estimates the parameters of a privacy definition from an attack's errors (Section IV of the paper).

    Args:
        counts: Errors of the attack, node by node.
        definition: `bmp-r`, `bmp-l`, `mp`, `bmp-s` (ε_L = ε_R), `bmp` (both, jointly), `module:Name` of your own, or a
            definition object (docs/estimation.md).
        method: `exact`: latent error rates integrated out by quadrature; `mhaar`: the paper's Algorithm 3.
        prior: Log-density of each parameter; N(0, 10), variance 10, if None. `mhaar` accepts normal priors only.
        strength: Attack strength s in [0, 1): error rates are uniform on R minus R_{η^s}(sε_L, sε_R). Or its prior: s
            is then estimated together with ε, for definitions with one ε.
        correlated: Model of correlated counts instead of independent binomials (`mhaar`).
        num_iterations: Number of iterations of a chain (`mhaar`), half of them burn-in; the paper's 10,000, or 50,000
            with two ε, if None.
        num_auxiliary: Number of points per node, M of Algorithm 3 (`mhaar`).
        num_chains: Number of chains (`mhaar`).
        seed: Random seed of the chains (`mhaar`).
        prior_draws: Number of independent draws behind each `counts.prior_prob`, for what the errors prove; 0 if these
            are exact. The posterior itself takes them as known.
        num_threads: Number of threads; all processors if None.
        progress: Called with the number of iterations done so far, over all chains (`mhaar`), or with the number of
            thousandths done (`exact`).

    Raises:
        InputError: if no node is left, or a setting is out of bounds.

    >>> counts = ErrorCounts.from_arrays(num_out=[100], num_in=[100], false_positives=[20], false_negatives=[30],
    ...                                  prior_prob=0.5)
    >>> print(estimate(counts, "mp"))
    mp, exact, 1 node
                          5 %     50 %     95 %   proven*
      epsilon           1.253    2.664    6.436  ≥  0.653
      * with 95 % confidence, if these counts come from Algorithm 4
    """
    chosen = _definition(definition)
    check_prior_draws(counts, prior_draws)
    log_prior = NormalPrior() if prior is None else prior
    is_used = used_nodes(counts, chosen)
    likelihood = likelihood_of(counts, chosen, is_used, num_threads=num_threads)
    marginals: Mapping[str, Marginal]
    joint: JointDensity | None = None
    run: MhaarRun | None = None
    if method == "mhaar":
        if not isinstance(log_prior, NormalPrior):
            raise InputError("method mhaar takes a NormalPrior; method exact takes any log-density")
        run = run_mhaar(
            likelihood.counts,
            likelihood.log_prior_odds,
            chosen,
            log_prior,
            num_iterations=num_iterations,
            num_auxiliary=num_auxiliary,
            num_chains=num_chains,
            seed=seed,
            strength=strength,
            correlated=correlated,
            num_threads=num_threads,
            progress=progress,
        )
        marginals = {name: DrawsMarginal(run.chains(name).ravel()) for name in run.parameter_names}
    elif method != "exact":
        raise InputError(f"method must be exact or mhaar, got method={method!r}")
    elif correlated is not None:
        raise InputError("correlated counts are for method mhaar, got method='exact'")
    else:
        marginals, joint = _exact(likelihood, chosen, log_prior, strength, progress)
        progress(PARTS)
    posterior = Posterior(
        definition=chosen,
        method=method,
        marginals=marginals,
        counts=counts,
        is_used=is_used,
        likelihood=likelihood,
        prior=log_prior,
        strength=strength,
        floor=prior_floor(counts.prior_odds[is_used]),
        lows=support_lows(chosen, likelihood.log_prior_odds, log_prior),
        status="exact" if run is None else run.status.message,
        prior_draws=prior_draws,
        joint=joint,
        run=run,
    )
    doubt = _doubt(posterior)
    return posterior if doubt is None else posterior.with_status(f"{posterior.status}; {doubt}")


def _definition(given: Any) -> Definition:
    definition = registry.build(registry.DEFINITION, given)
    if isinstance(definition, type) or not isinstance(definition, Definition):
        raise InputError(
            "definition must be a name, module:Name or an object with parameters, uses_prior, epsilons and "
            f"empties_support, got {given!r}"
        )
    return definition


def _exact(
    likelihood: Likelihood,
    definition: Definition,
    prior: LogDensity,
    strength: float | StrengthPrior,
    progress: Progress,
) -> tuple[Mapping[str, Marginal], JointDensity | None]:
    """The marginals, and the joint density if there are two parameters."""
    names = parameter_names(definition)
    if isinstance(strength, StrengthPrior):
        joint = exact_strength_density(likelihood, definition, prior, strength, progress)
        names = (*names, "strength")
    elif len(names) == 2:
        joint = exact_joint_density(likelihood, definition, prior, strength, progress)
    else:
        return {names[0]: exact_density(likelihood, definition, prior, strength, progress)}, None
    return dict(zip(names, (joint.first_marginal, joint.second_marginal), strict=True)), joint


def _doubt(posterior: Posterior) -> str | None:
    """Whether the posterior rests on nodes whose decision never varies, about which the attack knows nothing."""
    is_constant = posterior.is_constant
    if is_constant.all() and (posterior.likelihood.counts[:, :2] > 0).any():
        return "the attack is uninformative: its decision about every node is the same for every model"
    if not is_constant.any():
        return None
    for name in posterior.parameter_names:
        without = posterior.mean_without_constant(name)
        if without < float(posterior.quantile(0.05, name)):
            return (
                f"{name} is driven by {np.count_nonzero(is_constant):,} nodes whose decision never varies: without "
                f"them its mean would be {without:.2f}, not {posterior.mean(name):.2f}"
            )
    return None
