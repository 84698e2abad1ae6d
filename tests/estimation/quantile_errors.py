"""How far a quantile of Markov chains may be off."""

import numpy as np

from bmpaudit.estimation.mhaar import quantile_ess, split_chains
from bmpaudit.util.values import Floats


def mcse_quantile(draws: Floats, prob: float) -> float:
    """Monte Carlo standard error of a quantile.

    The share of draws below the quantile has a Beta(S·p + 1, S·(1-p) + 1) law for S effective draws; half the distance
    between the quantiles at one standard deviation to either side of it is the error.
    """
    halves = split_chains(draws)
    size = quantile_ess(halves, prob)
    mean = (size * prob + 1) / (size + 2)
    spread = np.sqrt(mean * (1 - mean) / (size + 3))
    low, high = np.quantile(halves, np.clip([mean - spread, mean + spread], 0, 1))
    return float((high - low) / 2)
