"""The exact posterior of ε, by quadrature only: no Monte Carlo error."""

from __future__ import annotations

from functools import partial

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.estimation.definitions.curve import epsilons_of
from bmpaudit.estimation.density import ELSEWHERE, PiecewiseDensity, approximate_density
from bmpaudit.estimation.floor_coordinates import (
    JointLogDensity,
    floor_coordinates,
    floor_tolerance,
    joint_density_at_floor,
)
from bmpaudit.estimation.joint_density import DEEPEST, Ends, JointDensity, approximate_joint_density, find_peak
from bmpaudit.estimation.likelihood import STRONGEST, Likelihood
from bmpaudit.estimation.prior import LogDensity, StrengthPrior, upper_end
from bmpaudit.estimation.rows import Rows
from bmpaudit.estimation.steps import Steps
from bmpaudit.estimation.support import check_one_parameter, support_lows
from bmpaudit.interfaces import Definition, Progress

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
