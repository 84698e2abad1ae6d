"""What an attack proves: a confidence bound below ε."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.privacy.epsilon import log_prior_odds

Floats = npt.NDArray[np.float64]

LIMITS_PER_NODE = 4  # an upper and a lower one of α and of β
TERMS = {
    "mp": ("(1-β)/α", "β/(1-α)", "(1-α)/β", "α/(1-β)"),
    "right": ("(1-β)/α", "β/(1-α)"),
    "left": ("(1-α)/β", "α/(1-β)"),
}


@dataclass(frozen=True, eq=False)
class ProvenEpsilon:
    """The bound on one parameter.

    Attributes:
        proven: What the counts prove: the largest over nodes and terms; -∞ if they prove nothing at all.
        floor: What holds without any attack: ε_R ≥ max log η, ε_L ≥ max(-log η) (Prop. 1), and 0 for MP.
        node: The node that attains `proven`; None if that is -∞.
        term: The ratio of error rates that attains it.
        per_node: The largest over terms for each node, shape (K,). All of them hold together.
    """

    proven: float
    floor: float
    node: Any
    term: str | None
    per_node: Floats

    @property
    def bound(self) -> float:
        """The larger of `proven` and `floor`."""
        return max(self.proven, self.floor)

    @property
    def is_beyond_floor(self) -> bool:
        """Whether the attack proves more than the sampler alone already implies."""
        return self.proven > self.floor


@dataclass(frozen=True, eq=False)
class LowerBound:
    """Confidence bounds below ε_R and ε_L of BMP and below ε of MP.

    Formal guarantee: with probability at least `level` over the challenged models, *all* of these hold together: every
    (ε_L, ε_R) for which the mechanism is BMP has ε_R ≥ `right.bound` and ε_L ≥ `left.bound`, every ε for which it is MP
    has ε ≥ `mp.bound`, and the same with each node's `per_node` in place of the bound.

    Proof. By Theorem 6 a BMP mechanism has (α_k, β_k) ∈ R for any rule and every node, so ε_R ≥ log η_k +
    log((1-β_k)/α_k) and ε_R ≥ log η_k + log(β_k/(1-α_k)); likewise for ε_L, and for MP with η = 1. The ratios (1-β)/α
    and (1-α)/β fall in both rates, so upper limits of the two rates bound them from below; β/(1-α) and α/(1-β) rise in
    both, so lower limits do. All follows from four one-sided Clopper-Pearson limits a node. Each fails with probability
    at most (1-level)/(4K), hence any of the 4K with at most 1-level, however the nodes depend on each other. That
    ε_R ≥ log η_k, ε_L ≥ -log η_k and ε ≥ 0 (the floor) is certain, and costs no probability. ∎

    This asks for counts that are binomial given the rule: of Algorithm 4, whose rule was fitted on other models, the
    challenged ones being independent. Those of Algorithm 1 are over-dispersed, and prove nothing. K counts all nodes
    attacked, chosen without looking at the challenged models: to keep the nodes with few errors and call this on
    them is not covered. η is taken as exactly known. And a low bound does not show privacy: a better attack may prove
    more.

    Attributes:
        counts: The counts it was computed from.
        level: Confidence level.
        right: For ε_R.
        left: For ε_L.
        mp: For ε of MP.
    """

    counts: ErrorCounts
    level: float
    right: ProvenEpsilon
    left: ProvenEpsilon
    mp: ProvenEpsilon

    def __str__(self) -> str:
        told = f"proven with {100 * self.level:g} % confidence, {self.counts.num_nodes:,} nodes"
        for name, side in (("ε_R", self.right), ("ε_L", self.left), ("MP ε", self.mp)):
            told += f"\n  {name:<4} ≥ {side.bound:6.2f}  "
            if side.is_beyond_floor:
                told += f"by {side.term} of node {side.node}; the floor is {side.floor:.2f}"
            else:
                told += "the floor; nothing is proven beyond it"
        return told


def lower_bound(counts: ErrorCounts, level: float = 0.95) -> LowerBound:
    """The largest ε that an attack rules out; see `LowerBound` for what exactly is claimed.

    Args:
        counts: Errors of Algorithm 4.
        level: Confidence level.

    Raises:
        InputError: if level is not in (0, 1).

    >>> counts = ErrorCounts.from_arrays(num_out=[500, 500], num_in=500, false_positives=[10, 250],
    ...                                  false_negatives=[200, 250], prior_prob=0.5)
    >>> print(lower_bound(counts))
    proven with 95 % confidence, 2 nodes
      ε_R  ≥   2.57  by (1-β)/α of node 0; the floor is 0.00
      ε_L  ≥   0.74  by (1-α)/β of node 0; the floor is 0.00
      MP ε ≥   2.57  by (1-β)/α of node 0; the floor is 0.00
    """
    if not 0 < level < 1:
        raise InputError(f"level must be in (0, 1), got level={level}")
    failure = (1 - level) / (LIMITS_PER_NODE * counts.num_nodes)
    # Limits of the rates and, so that small ones keep their digits, of their complements.
    alpha_high = _upper_limit(counts.false_positives, counts.num_out, failure)
    beta_high = _upper_limit(counts.false_negatives, counts.num_in, failure)
    specificity_high = _upper_limit(counts.num_out - counts.false_positives, counts.num_out, failure)
    detected_high = _upper_limit(counts.num_in - counts.false_negatives, counts.num_in, failure)
    with np.errstate(divide="ignore"):
        terms_right = np.stack(
            [
                np.log1p(-beta_high) - np.log(alpha_high),
                np.log1p(-detected_high) - np.log(specificity_high),
            ]
        )
        terms_left = np.stack(
            [
                np.log1p(-alpha_high) - np.log(beta_high),
                np.log1p(-specificity_high) - np.log(detected_high),
            ]
        )
    log_odds = log_prior_odds(counts.prior_odds)
    return LowerBound(
        counts,
        level,
        right=_largest(terms_right, log_odds, counts, "right"),
        left=_largest(terms_left, -log_odds, counts, "left"),
        mp=_largest(np.concatenate([terms_right, terms_left]), np.zeros_like(log_odds), counts, "mp"),
    )


def _upper_limit(errors: npt.NDArray[np.int64], trials: npt.NDArray[np.int64], failure: float) -> Floats:
    """The Clopper-Pearson limit that a rate exceeds with probability at most `failure`; 1 without trials."""
    is_full = errors >= trials
    rest = np.where(is_full, 1, trials - errors)
    limit = scipy.special.betainccinv(errors + 1.0, rest.astype(np.float64), failure)
    return np.where(is_full, 1.0, limit)


def _largest(terms: Floats, log_floor: Floats, counts: ErrorCounts, side: str) -> ProvenEpsilon:
    # Where a membership is certain its log-odds are the posterior's, whatever the error rates.
    values = np.where(np.isinf(log_floor), log_floor, terms + np.where(np.isinf(log_floor), 0.0, log_floor))
    per_node = values.max(axis=0)
    k = int(np.argmax(per_node))
    proven = float(per_node[k])
    is_anything = proven > -np.inf
    return ProvenEpsilon(
        proven=proven,
        floor=float(log_floor.max()) + 0.0,
        node=counts.node[k].item() if is_anything else None,
        term=TERMS[side][int(np.argmax(values[:, k]))] if is_anything else None,
        per_node=per_node,
    )
