"""The posterior of ε by Markov chains (Algorithm 3), with the paper's settings by default."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Floats
from bmpaudit.checks import check_at_least_one, thread_count
from bmpaudit.errors import InputError
from bmpaudit.estimation.definitions.curve import Curve, Side, curve_of, name_of, parameter_names
from bmpaudit.estimation.diagnostics import (
    FEWEST_DRAWS,
    LARGEST_R_HAT,
    LEAST_BULK_ESS,
    ParameterDiagnostics,
    diagnose,
    mcse_quantile,
)
from bmpaudit.estimation.prior import NormalPrior, StrengthPrior
from bmpaudit.estimation.support import check_one_parameter
from bmpaudit.interfaces import Definition, Progress
from bmpaudit.streams import Purpose, check_seed

DEFAULT_ITERATIONS = 10_000
DEFAULT_JOINT_ITERATIONS = 50_000


@dataclass(frozen=True)
class CorrelatedCounts:
    """Bivariate normal counts (A, B) with unknown correlations θ = (τ, ρ), instead of independent binomials.

    Mean (n0·α, n1·β), Var A = n0·α(1-α)[1+(n0-1)τ], Var B likewise, Cov(A, B) = ρ·n0·n1·√(α(1-α)β(1-β)). τ is the
    correlation of two trials of one hypothesis and has the prior N(0, `tau_variance`) restricted to where the
    covariance is positive definite; ρ, of an H0 and an H1 trial, is then uniform on its range.

    Attributes:
        tau_variance: Variance of the prior of τ.
    """

    tau_variance: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 < self.tau_variance < np.inf:
            raise InputError(f"tau_variance must be positive, got tau_variance={self.tau_variance}")


@dataclass(frozen=True)
class MhaarSettings:
    """Everything beside the data that changes the draws.

    Attributes:
        definition: Definition whose parameters are estimated.
        prior: Prior of each ε.
        num_iterations: Number of iterations of a chain, T of Algorithm 3.
        burn_in: Number of iterations to discard, during which the random walk adapts to an acceptance rate of 0.23.
        num_auxiliary: Number of points per node, M of Algorithm 3.
        num_chains: Number of independent chains.
        seed: Random seed; chain c uses stream c.
        strength: Attack strength s, or its prior.
        correlated: Model of correlated counts, or None for independent binomials.
    """

    definition: Definition
    prior: NormalPrior
    num_iterations: int
    burn_in: int
    num_auxiliary: int
    num_chains: int
    seed: int
    strength: float | StrengthPrior
    correlated: CorrelatedCounts | None

    def __post_init__(self) -> None:
        check_at_least_one(
            num_iterations=self.num_iterations, num_auxiliary=self.num_auxiliary, num_chains=self.num_chains
        )
        if not isinstance(self.burn_in, int) or isinstance(self.burn_in, bool) or self.burn_in < 0:
            raise InputError(f"burn_in must be a whole number of at least 0, got burn_in={self.burn_in}")
        if self.num_iterations - self.burn_in < FEWEST_DRAWS:
            raise InputError(
                f"num_iterations must exceed burn_in by at least {FEWEST_DRAWS}, "
                f"got num_iterations={self.num_iterations}, burn_in={self.burn_in}"
            )
        if self.num_auxiliary < 2:
            raise InputError(f"num_auxiliary must be at least 2, got num_auxiliary={self.num_auxiliary}")
        check_seed(self.seed)
        if isinstance(self.strength, StrengthPrior):
            check_one_parameter(self.definition)
        elif not 0 <= self.strength < 1:
            raise InputError(f"strength must be in [0, 1), got strength={self.strength}")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the draws."""
        names = list(parameter_names(self.definition))
        if isinstance(self.strength, StrengthPrior):
            names.append("strength")
        if self.correlated is not None:
            names += ["tau", "rho"]
        return tuple(names)


@dataclass(frozen=True)
class MhaarStatus:
    """Whether the chains have converged, and what to do if not."""

    has_converged: bool
    message: str


@dataclass(frozen=True, eq=False)
class MhaarRun:
    """Draws from the posterior, with diagnostics of their convergence.

    Attributes:
        draws: Draws after burn-in, shape (num_chains, num_kept, num_parameters).
        acceptance_rate: Acceptance rate of each chain after burn-in, shape (num_chains,).
        settings: Settings of the chains.
        diagnostics: Diagnostics of each parameter, by name.
    """

    draws: Floats
    acceptance_rate: Floats
    settings: MhaarSettings
    diagnostics: dict[str, ParameterDiagnostics]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the draws."""
        return self.settings.parameter_names

    def chains(self, name: str) -> Floats:
        """The draws of one parameter, shape (num_chains, num_kept)."""
        if name not in self.parameter_names:
            raise InputError(f"parameter must be one of {', '.join(self.parameter_names)}, got {name!r}")
        return self.draws[:, :, self.parameter_names.index(name)]

    def quantile(self, name: str, probability: float) -> float:
        """A quantile of one parameter's draws from all chains."""
        return float(np.quantile(self.chains(name), probability))

    def mcse_quantile(self, name: str, probability: float) -> float:
        """The Monte Carlo standard error of `quantile`."""
        return mcse_quantile(self.chains(name), probability)

    @property
    def status(self) -> MhaarStatus:
        """Converged if every parameter has R-hat of at most 1.01 and bulk ESS of at least 400."""
        failing = [
            f"{name} has R-hat {each.r_hat:.3f} and bulk ESS {each.bulk_ess:.0f}"
            for name, each in self.diagnostics.items()
            if not each.has_converged
        ]
        if not failing:
            return MhaarStatus(True, "converged")
        wanted = f"(wanted: R-hat ≤ {LARGEST_R_HAT}, bulk ESS ≥ {LEAST_BULK_ESS:.0f})"
        if any(each.r_hat > LARGEST_R_HAT for each in self.diagnostics.values()):
            remedy = (
                f"more iterations (num_iterations={4 * self.settings.num_iterations}) "
                f"or more points per node (num_auxiliary={4 * self.settings.num_auxiliary})"
            )
        else:
            least = min(each.bulk_ess for each in self.diagnostics.values())
            factor = int(np.ceil(LEAST_BULK_ESS / least)) + 1
            remedy = (
                f"more iterations (num_iterations={factor * self.settings.num_iterations}) "
                f"or more chains (num_chains={factor * self.settings.num_chains})"
            )
        return MhaarStatus(False, f"not converged: {'; '.join(failing)} {wanted}; use {remedy}")


def run_mhaar(
    counts: Floats,
    log_prior_odds: Floats,
    definition: Definition,
    prior: NormalPrior,
    *,
    num_iterations: int | None = None,
    burn_in: int | None = None,
    num_auxiliary: int = 50,
    num_chains: int = 4,
    seed: int = 0,
    strength: float | StrengthPrior = 0.0,
    correlated: CorrelatedCounts | None = None,
    num_threads: int | None = None,
    progress: Progress = lambda _: None,
) -> MhaarRun:
    """Draws from the posterior of ε by Metropolis-Hastings with averaged acceptance ratios (Algorithm 3).

    An iteration proposes ε' by a normal random walk, independent in ε_L and ε_R; draws M - 1 points (α, β) per node
    from q_k = Beta(A+1, n0-A+1) x Beta(B+1, n1-B+1) in addition to its current one; accepts ε' with the prior ratio
    times Π_k (Σ_i w'_ki)/(Σ_i w_ki); and selects each node's next point by the weights of the ε that was kept. With
    binomial counts a weight is 1[(α, β) ∈ R]/|R|, since g/q_k is constant. An unknown strength s walks on the logit
    scale, and the ring R minus R_s replaces R. With correlated counts τ and ρ walk too, and the acceptance ratio
    contains the ratio of their priors (their proposals are symmetric), which the printed algorithm leaves out.

    Error rates are drawn in single precision: regions narrower than about 1e-6 are not resolved.

    Chains mix slowly if some node's q_k puts far less than 1/M of its mass into R at plausible ε, as happens with
    thousands of nodes or with a strength that the data contradict. The status says so.

    Guaranteed: the same draws for the same arguments and build, with any number of threads.

    Args:
        counts: Rows (n0, n1, A, B), shape (K, 4).
        log_prior_odds: log η, shape (K,); 0 for MP.
        definition: Definition whose parameters are estimated; each of ε_L and ε_R must be a parameter itself or ∞.
        prior: Prior of each ε.
        num_iterations: Number of iterations of a chain; the paper's 10,000, or 50,000 with two ε, if None.
        burn_in: Number of iterations to discard; half of them, as in the paper, if None.
        num_auxiliary: Number of points per node, M of Algorithm 3.
        num_chains: Number of independent chains.
        seed: Random seed; chain c uses stream c.
        strength: Attack strength s in [0, 1), or its prior to estimate it.
        correlated: Model of correlated counts, whose correlations are estimated; None for independent binomials.
        num_threads: Number of threads; all processors if None. No more than one per chain is used.
        progress: Called with the number of iterations done so far, over all chains.

    Raises:
        InputError: if counts or settings are out of bounds, the support is empty, or a side of the definition is a
            function of its parameter other than the parameter itself.
    """
    curve = _curve_for_chains(definition)
    is_joint = len(definition.parameters) == 2
    if num_iterations is None:
        num_iterations = DEFAULT_JOINT_ITERATIONS if is_joint else DEFAULT_ITERATIONS
    settings = MhaarSettings(
        definition,
        prior,
        num_iterations,
        num_iterations // 2 if burn_in is None else burn_in,
        num_auxiliary,
        num_chains,
        seed,
        strength,
        correlated,
    )
    threads = thread_count(num_threads)
    _check_data(counts, log_prior_odds, settings)
    draws = np.zeros((num_chains, num_iterations - settings.burn_in, len(settings.parameter_names)))
    acceptance = np.zeros(num_chains)
    _native.run_mhaar(
        np.ascontiguousarray(counts, dtype=np.float64),
        np.ascontiguousarray(log_prior_odds, dtype=np.float64),
        bounds_left=curve.left is Side.PARAMETER,
        bounds_right=curve.right is Side.PARAMETER,
        is_joint=is_joint,
        prior_mean=prior.mean,
        prior_variance=prior.variance,
        strength=0.0 if isinstance(strength, StrengthPrior) else strength,
        strength_prior=(strength.a, strength.b) if isinstance(strength, StrengthPrior) else None,
        tau_variance=None if correlated is None else correlated.tau_variance,
        num_auxiliary=num_auxiliary,
        num_iterations=num_iterations,
        burn_in=settings.burn_in,
        seed=seed,
        purpose=int(Purpose.MHAAR),
        num_threads=threads,
        draws=draws,
        acceptance=acceptance,
        progress=progress,
    )
    diagnostics = {name: diagnose(draws[:, :, number]) for number, name in enumerate(settings.parameter_names)}
    return MhaarRun(draws, acceptance, settings, diagnostics)


def _curve_for_chains(definition: Definition) -> Curve:
    curve = curve_of(definition)
    if Side.CURVE in (curve.left, curve.right):
        raise InputError(
            f"method mhaar needs ε_L and ε_R to be the parameter itself or infinite, which {name_of(definition)} does "
            "not satisfy: use method exact"
        )
    return curve


def _check_data(counts: Floats, log_prior_odds: Floats, settings: MhaarSettings) -> None:
    if counts.ndim != 2 or counts.shape[1] != 4 or len(counts) == 0:
        raise InputError(f"counts must have shape (num_nodes, 4) with at least one node, got shape={counts.shape}")
    if log_prior_odds.shape != (len(counts),):
        raise InputError(
            f"log_prior_odds must have one value per node, got shape={log_prior_odds.shape} for {len(counts)} nodes"
        )
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise InputError("counts must be whole numbers of at least 0")
    if (counts[:, 2:] > counts[:, :2]).any():
        node = int(np.flatnonzero((counts[:, 2:] > counts[:, :2]).any(axis=1))[0])
        raise InputError(f"errors must not exceed trials, got (n0, n1, A, B)={counts[node].tolist()} in row {node}")
    if np.isnan(log_prior_odds).any():
        raise InputError("log_prior_odds must not be NaN")
    emptying = settings.definition.empties_support(log_prior_odds)
    if emptying.any():
        raise InputError(
            f"the support of {name_of(settings.definition)} is empty: the membership of the node in row "
            f"{int(np.flatnonzero(emptying)[0])} is certain"
        )
    if settings.strength != 0.0 and np.isinf(log_prior_odds).any():
        raise InputError("with an attack strength the prior odds of every node must be positive and finite")
