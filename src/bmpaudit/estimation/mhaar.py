"""The posterior of ε by Markov chains (Algorithm 3), and whether they have converged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from bmpaudit import _native
from bmpaudit.estimation.definitions import Side, name_of, parameter_names, sides_of
from bmpaudit.estimation.likelihood import Likelihood, NormalPrior, StrengthPrior, check_strength
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
    num_auxiliary: int = 50
    num_chains: int = 4
    seed: int = 0
    strength: float | StrengthPrior = 0.0
    correlated: CorrelatedCounts | None = None

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
        check_strength(self.strength, self.definition)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the draws."""
        names = list(parameter_names(self.definition))
        if isinstance(self.strength, StrengthPrior):
            names.append("strength")
        if self.correlated is not None:
            names += ["tau", "rho"]
        return tuple(names)


@dataclass(frozen=True, eq=False)
class MhaarRun:
    """Draws from the posterior, with diagnostics of their convergence.

    Attributes:
        draws: Draws after burn-in, shape (num_chains, num_kept, num_parameters).
        acceptance_rate: Acceptance rate of each chain after burn-in, shape (num_chains,).
        settings: Settings of the chains.
    """

    draws: Floats
    acceptance_rate: Floats
    settings: MhaarSettings

    @cached_property
    def diagnostics(self) -> dict[str, ParameterDiagnostics]:
        """Diagnostics of each parameter, by name."""
        return {name: diagnose(self.chains(name)) for name in self.parameter_names}

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the draws."""
        return self.settings.parameter_names

    def chains(self, name: str) -> Floats:
        """The draws of one parameter, shape (num_chains, num_kept)."""
        if name not in self.parameter_names:
            raise InputError(f"parameter must be one of {', '.join(self.parameter_names)}, got {name!r}")
        return self.draws[:, :, self.parameter_names.index(name)]

    def mcse_quantile(self, name: str, probability: float) -> float:
        """The Monte Carlo standard error of a quantile of one parameter's draws from all chains."""
        return mcse_quantile(self.chains(name), probability)

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


def run_mhaar(likelihood: Likelihood, settings: MhaarSettings, progress: Progress = lambda _: None) -> MhaarRun:
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
        likelihood: Counts, prior odds, and the number of threads, no more than one of which per chain is used.
        settings: Everything else that changes the draws; each of ε_L and ε_R must be a parameter itself or ∞.
        progress: Called with the number of iterations done so far, over all chains.

    Raises:
        InputError: if a side of the definition is a function of its parameter other than the parameter itself.
    """
    definition, prior, strength = settings.definition, settings.prior, settings.strength
    left, right = sides_of(definition)
    if Side.CURVE in (left, right):
        raise InputError(
            f"method mhaar needs ε_L and ε_R to be the parameter itself or infinite, which {name_of(definition)} does "
            "not satisfy: use method exact"
        )
    if strength != 0.0 and np.isinf(likelihood.log_prior_odds).any():
        raise InputError("with an attack strength the prior odds of every node must be positive and finite")
    num_kept = settings.num_iterations - settings.burn_in
    draws = np.zeros((settings.num_chains, num_kept, len(settings.parameter_names)))
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
        tau_variance=None if settings.correlated is None else settings.correlated.tau_variance,
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
    return MhaarRun(draws, acceptance, settings)


# Whether chains have converged, and how many independent draws they amount to
#
# Rank-normalised split R-hat, bulk and tail effective sample size, and Monte Carlo standard errors, after Vehtari,
# Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and localization".


@dataclass(frozen=True)
class ParameterDiagnostics:
    """Diagnostics of one parameter's chains.

    Attributes:
        r_hat: Larger of the R-hats of ranks and of folded ranks; near 1 if the chains agree.
        bulk_ess: Effective sample size for the bulk of the posterior.
        tail_ess: Smaller of the effective sample sizes for the 5 % and the 95 % quantile.
        mcse_mean: Monte Carlo standard error of the mean.
    """

    r_hat: float
    bulk_ess: float
    tail_ess: float
    mcse_mean: float

    @property
    def has_converged(self) -> bool:
        """Whether R-hat is at most 1.01 and the bulk ESS at least 400."""
        return self.r_hat <= LARGEST_R_HAT and self.bulk_ess >= LEAST_BULK_ESS


def diagnose(draws: Floats) -> ParameterDiagnostics:
    """The diagnostics of one parameter's draws, shape (num_chains, num_draws)."""
    return ParameterDiagnostics(r_hat(draws), bulk_ess(draws), tail_ess(draws), mcse_mean(draws))


def r_hat(draws: Floats) -> float:
    """Split R-hat of the rank-normalised draws or of their distances from the median, whichever is larger.

    >>> bool(r_hat(np.random.default_rng(0).normal(size=(4, 1000))) < 1.01)
    True
    """
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_rank_normalised(halves)), _plain_r_hat(_rank_normalised(folded)))


def bulk_ess(draws: Floats) -> float:
    """Effective sample size of the rank-normalised split chains."""
    return _ess(_rank_normalised(_split(draws)))


def tail_ess(draws: Floats) -> float:
    """The smaller of the effective sample sizes of the 5 % and 95 % quantiles."""
    return min(quantile_ess(draws, prob) for prob in TAIL_PROBS)


def quantile_ess(draws: Floats, prob: float) -> float:
    """Effective sample size for a quantile: that of the indicator of lying at or below it."""
    halves = _split(draws)
    return _ess((halves <= np.quantile(halves, prob)).astype(np.float64))


def mcse_mean(draws: Floats) -> float:
    """Monte Carlo standard error of the mean: the standard deviation over the root of the effective sample size."""
    halves = _split(draws)
    return float(halves.std(ddof=1) / np.sqrt(_ess(halves)))


def mcse_quantile(draws: Floats, prob: float) -> float:
    """Monte Carlo standard error of a quantile.

    The share of draws below the quantile has a Beta(S·p + 1, S·(1-p) + 1) law for S effective draws; half the distance
    between the quantiles at one standard deviation to either side of it is the error.
    """
    if not 0 < prob < 1:
        raise InputError(f"prob must be in (0, 1), got prob={prob}")
    size = quantile_ess(draws, prob)
    mean = (size * prob + 1) / (size + 2)
    spread = np.sqrt(mean * (1 - mean) / (size + 3))
    low, high = np.quantile(_split(draws), np.clip([mean - spread, mean + spread], 0, 1))
    return float((high - low) / 2)


def _split(draws: Floats) -> Floats:
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
    ends = np.cumsum(sizes)
    mean_ranks = ends - (sizes - 1) / 2
    normal = NormalDist()
    scores = np.array([normal.inv_cdf(share) for share in ((mean_ranks - 0.375) / (draws.size + 0.25)).tolist()])
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
    covariances = _autocovariances(chains)
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


def _autocovariances(chains: Floats) -> Floats:
    """Σ_t (x_t - x̄)(x_{t+lag} - x̄)/N for every lag, by the Fourier transform."""
    num_draws = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * num_draws, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, n=2 * num_draws, axis=1)[:, :num_draws] / num_draws
