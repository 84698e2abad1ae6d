"""The posterior of ε by Markov chains (Algorithm 3), and whether they have converged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from bmpaudit import _native
from bmpaudit.estimation.definitions import Side, name_of, parameter_names, sides_of
from bmpaudit.estimation.likelihood import Likelihood, NormalPrior, StrengthPrior
from bmpaudit.interfaces import Definition, Progress
from bmpaudit.util.errors import InputError, check_at_least_one, thread_count
from bmpaudit.util.streams import Purpose, check_seed
from bmpaudit.util.values import Floats

DEFAULT_ITERATIONS = 10_000
DEFAULT_JOINT_ITERATIONS = 50_000
LARGEST_R_HAT = 1.01
LEAST_BULK_ESS = 400.0
FEWEST_DRAWS = 4
TAIL_PROBS = (0.05, 0.95)


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
    """How the chains are run: everything that changes the draws, beside the model."""

    num_iterations: int  # of a chain, T of Algorithm 3
    burn_in: int  # iterations to discard, during which the random walk adapts to an acceptance rate of 0.23
    num_auxiliary: int = 50  # points per node, M of Algorithm 3
    num_chains: int = 4
    seed: int = 0  # chain c uses stream c
    tau_variance: float | None = None  # of `CorrelatedCounts`; independent binomials if None

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


@dataclass(frozen=True, eq=False)
class MhaarRun:
    """Draws from the posterior, with diagnostics of their convergence."""

    draws: Floats  # after burn-in, shape (num_chains, num_kept, num_parameters)
    acceptance_rate: Floats  # of each chain after burn-in, shape (num_chains,)
    settings: MhaarSettings
    parameter_names: tuple[str, ...]  # in the order of the draws

    @cached_property
    def diagnostics(self) -> dict[str, ParameterDiagnostics]:
        """Diagnostics of each parameter, by name."""
        return {name: diagnose(self.chains(name)) for name in self.parameter_names}

    def chains(self, name: str) -> Floats:
        """The draws of one parameter, shape (num_chains, num_kept)."""
        if name not in self.parameter_names:
            raise InputError(f"parameter must be one of {', '.join(self.parameter_names)}, got {name!r}")
        return self.draws[:, :, self.parameter_names.index(name)]

    @property
    def has_converged(self) -> bool:
        """Whether every parameter has R-hat of at most 1.01 and bulk ESS of at least 400."""
        return all(each.has_converged for each in self.diagnostics.values())

    @property
    def status(self) -> str:
        """`converged`, or why not and what to do."""
        if self.has_converged:
            return "converged"
        failing = [
            f"{name} has R-hat {each.r_hat:.3f} and bulk ESS {each.bulk_ess:.0f}"
            for name, each in self.diagnostics.items()
            if not each.has_converged
        ]
        wanted = f"(wanted: R-hat ≤ {LARGEST_R_HAT}, bulk ESS ≥ {LEAST_BULK_ESS:.0f})"
        least = min(each.bulk_ess for each in self.diagnostics.values())
        factor, other = int(np.ceil(LEAST_BULK_ESS / least)) + 1, "more chains (num_chains="
        num_other = factor * self.settings.num_chains
        if any(each.r_hat > LARGEST_R_HAT for each in self.diagnostics.values()):
            factor, other, num_other = 4, "more points per node (num_auxiliary=", 4 * self.settings.num_auxiliary
        remedy = f"more iterations (num_iterations={factor * self.settings.num_iterations}) or {other}{num_other})"
        return f"not converged: {'; '.join(failing)} {wanted}; use {remedy}"


def estimated_names(
    definition: Definition, strength: float | StrengthPrior, tau_variance: float | None = None
) -> tuple[str, ...]:
    """Names of all parameters that are estimated, in order: those of the definition come first."""
    with_strength = ("strength",) if isinstance(strength, StrengthPrior) else ()
    return (*parameter_names(definition), *with_strength, *(() if tau_variance is None else ("tau", "rho")))


def run_mhaar(
    likelihood: Likelihood,
    definition: Definition,
    prior: NormalPrior,
    strength: float | StrengthPrior,
    settings: MhaarSettings,
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

    Guaranteed: the same draws for the same arguments and build, with any number of threads, of which no more than one
    per chain is used. Each of ε_L and ε_R must be a parameter itself or ∞.
    """
    left, right = sides_of(definition)
    if Side.CURVE in (left, right):
        raise InputError(
            f"method mhaar needs ε_L and ε_R to be the parameter itself or infinite, which {name_of(definition)} does "
            "not satisfy: use method exact"
        )
    if strength != 0.0 and np.isinf(likelihood.log_prior_odds).any():
        raise InputError("with an attack strength the prior odds of every node must be positive and finite")
    names = estimated_names(definition, strength, settings.tau_variance)
    draws = np.zeros((settings.num_chains, settings.num_iterations - settings.burn_in, len(names)))
    acceptance = np.zeros(settings.num_chains)
    _native.run_mhaar(
        likelihood.counts,
        likelihood.log_prior_odds,
        bounds_left=left is Side.PARAMETER,
        bounds_right=right is Side.PARAMETER,
        is_joint=len(definition.parameters) == 2,
        prior_mean=prior.mean,
        prior_variance=prior.variance,
        strength=0.0 if isinstance(strength, StrengthPrior) else strength,
        strength_prior=(strength.a, strength.b) if isinstance(strength, StrengthPrior) else None,
        tau_variance=settings.tau_variance,
        num_auxiliary=settings.num_auxiliary,
        num_iterations=settings.num_iterations,
        burn_in=settings.burn_in,
        seed=settings.seed,
        purpose=int(Purpose.MHAAR),
        num_threads=thread_count(likelihood.num_threads),
        draws=draws,
        acceptance=acceptance,
        progress=progress,
    )
    return MhaarRun(draws, acceptance, settings, names)


# Whether chains have converged, and how many independent draws they amount to
#
# Rank-normalised split R-hat, bulk and tail effective sample size, and Monte Carlo standard errors, after Vehtari,
# Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and localization".


@dataclass(frozen=True)
class ParameterDiagnostics:
    """Diagnostics of one parameter's chains."""

    r_hat: float  # larger of the split R-hats of ranks and of folded ranks; near 1 if the chains agree
    bulk_ess: float  # effective sample size of the rank-normalised split chains
    tail_ess: float  # smaller of the effective sample sizes for the 5 % and the 95 % quantile
    mcse_mean: float  # standard deviation over the root of the effective sample size

    @property
    def has_converged(self) -> bool:
        """Whether R-hat is at most 1.01 and the bulk ESS at least 400."""
        return self.r_hat <= LARGEST_R_HAT and self.bulk_ess >= LEAST_BULK_ESS


def diagnose(draws: Floats) -> ParameterDiagnostics:
    """The diagnostics of one parameter's draws, shape (num_chains, num_draws).

    >>> bool(diagnose(np.random.default_rng(0).normal(size=(4, 1000))).r_hat < 1.01)
    True
    """
    halves = split_chains(draws)
    ranks, folded = _rank_normalised(halves), _rank_normalised(np.abs(halves - np.median(halves)))
    return ParameterDiagnostics(
        r_hat=max(_plain_r_hat(ranks), _plain_r_hat(folded)),
        bulk_ess=_ess(ranks),
        tail_ess=min(quantile_ess(halves, prob) for prob in TAIL_PROBS),
        mcse_mean=float(halves.std(ddof=1) / np.sqrt(_ess(halves))),
    )


def quantile_ess(halves: Floats, prob: float) -> float:
    """Effective sample size for a quantile: that of the indicator of lying at or below it."""
    return _ess((halves <= np.quantile(halves, prob)).astype(np.float64))


def split_chains(draws: Floats) -> Floats:
    """The halves of all chains, so that a drifting chain disagrees with itself; an odd middle draw is left out."""
    if draws.ndim != 2 or draws.shape[0] < 1 or draws.shape[1] < FEWEST_DRAWS:
        raise InputError(f"draws must have shape (num_chains, at least {FEWEST_DRAWS}), got shape={draws.shape}")
    if not np.isfinite(draws).all():
        raise InputError("draws must be finite")
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _rank_normalised(draws: Floats) -> Floats:
    """Normal scores Φ⁻¹((rank - 3/8)/(S + 1/4)) of the ranks among all draws; equal draws share their mean rank."""
    _, group, sizes = np.unique(draws, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(sizes) - (sizes - 1) / 2
    scores = np.array([*map(NormalDist().inv_cdf, ((mean_ranks - 0.375) / (draws.size + 0.25)).tolist())])
    return scores[group.reshape(draws.shape)]


def _plain_r_hat(chains: Floats) -> float:
    num_draws = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = chains.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt((num_draws - 1) / num_draws + between / within))


def _ess(chains: Floats) -> float:
    """S/τ, with autocorrelations summed in pairs as long as these are positive and falling (Geyer 1992)."""
    num_chains, num_draws = chains.shape
    total = num_chains * num_draws
    # Σ_t (x_t - x̄)(x_{t+lag} - x̄)/N for every lag, by the Fourier transform.
    spectrum = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), n=2 * num_draws, axis=1)
    covariances = np.fft.irfft(np.abs(spectrum) ** 2, n=2 * num_draws, axis=1)[:, :num_draws] / num_draws
    within = covariances[:, 0].mean() * num_draws / (num_draws - 1)
    pooled = within * (num_draws - 1) / num_draws + (chains.mean(axis=1).var(ddof=1) if num_chains > 1 else 0.0)
    if pooled == 0:
        return float(total)
    correlations = 1 - (within - covariances.mean(axis=0)) / pooled
    correlations[0] = 1.0
    even = num_draws // 2 * 2
    pairs = correlations[:even].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    stop = int(negative[0]) if negative.size else len(pairs)
    falling = np.minimum.accumulate(pairs[:stop])
    time = -1 + 2 * float(falling.sum())
    if stop < len(pairs):  # the even lag after the last pair, as it lowers the error for antithetic chains
        time += max(float(correlations[2 * stop]), 0.0)
    return total / max(time, 1 / np.log10(total))
