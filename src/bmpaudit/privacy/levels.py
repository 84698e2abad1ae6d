"""The tightest parameters for which a finite mechanism satisfies each definition (Definitions 1 to 5)."""

from dataclasses import dataclass

import numpy as np

from bmpaudit.privacy.epsilon import EpsilonPair, Floats, log_ratio
from bmpaudit.privacy.mechanism import FiniteMechanism
from bmpaudit.privacy.membership_law import membership_table


@dataclass(frozen=True)
class PrivacyLevels:
    """The smallest ε of each definition; ∞ where there is none, -∞ where nothing is constrained.

    The two sides of BMP and BMDP are separate conditions, so the tightest pair is unique and its components are the
    tightest one-sided parameters: `bmp.right` is that of BMP-R, `bmp.left` that of BMP-L, and so for BMDP.

    Attributes:
        mp: Definition 1.
        mdp: Definition 2.
        bmp: Definitions 3 and 4.
        bmdp: Definition 5.
    """

    mp: float
    mdp: float
    bmp: EpsilonPair[float]
    bmdp: EpsilonPair[float]


def privacy_levels(mechanism: FiniteMechanism) -> PrivacyLevels:
    """Enumerates a mechanism.

    Conventions: outputs with f_0(w) = 0 do not count; 0/0 constrains nothing and x/0 is ∞; MP ignores a node whose
    membership is certain; BMDP ranges over the m_{-i} that have positive posterior probability, MDP over all.
    """
    seen = mechanism.output_prob > 0
    odds = mechanism.posterior_log_odds[:, seen]
    log_prior_odds = np.log(mechanism.prior_odds, where=mechanism.prior_odds > 0, out=np.full(len(odds), -np.inf))
    is_uncertain = np.isfinite(log_prior_odds)
    likelihood_ratios = odds[is_uncertain] - log_prior_odds[is_uncertain, None]

    table = membership_table(mechanism.num_nodes)
    neighbours_in = [np.flatnonzero(is_in) for is_in in table.T]
    neighbours_out = [rows - (1 << node) for node, rows in enumerate(neighbours_in)]
    differential = _paired(mechanism.table[:, seen], neighbours_in, neighbours_out)
    conditional_odds = _paired(mechanism.joint[:, seen], neighbours_in, neighbours_out)
    return PrivacyLevels(
        mp=_largest(np.abs(likelihood_ratios)),
        mdp=_largest(np.abs(differential)),
        bmp=EpsilonPair(left=_largest(-odds), right=_largest(odds)),
        bmdp=EpsilonPair(left=_largest(-conditional_odds), right=_largest(conditional_odds)),
    )


def _paired(values: Floats, rows_in: list[np.ndarray], rows_out: list[np.ndarray]) -> Floats:
    """Log-ratios of the rows that differ in one membership, for every node."""
    return np.stack([log_ratio(values[m_in], values[m_out]) for m_in, m_out in zip(rows_in, rows_out, strict=True)])


def _largest(values: Floats) -> float:
    """The maximum, without the NaN of 0/0."""
    return float(np.max(values, initial=-np.inf, where=~np.isnan(values)))
