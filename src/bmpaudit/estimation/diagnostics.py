"""Whether chains have converged, and how many independent draws they amount to.

Rank-normalised split R-hat, bulk and tail effective sample size, and Monte Carlo standard errors, after Vehtari,
Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and localization".
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError

LARGEST_R_HAT = 1.01
LEAST_BULK_ESS = 400.0
FEWEST_DRAWS = 4
TAIL_PROBS = (0.05, 0.95)


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
