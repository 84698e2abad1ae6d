"""Which nodes count, and where a posterior can live."""

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation.definition import Definition
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.prior import LogDensity, upper_end
from bmpaudit.privacy.epsilon import log_prior_odds


def used_nodes(counts: ErrorCounts, definition: Definition) -> npt.NDArray[np.bool_]:
    """Which nodes count: not those whose certain prior would rule out every finite ε, shape (K,).

    Raises:
        InputError: if none is left.
    """
    is_empty = definition.empties_support(log_prior_odds(counts.prior_odds))
    if is_empty.all():
        raise InputError(f"{definition.name} has no finite ε for these priors: every node's membership is certain")
    return ~is_empty


def likelihood_of(counts: ErrorCounts, definition: Definition) -> Likelihood:
    """The likelihood of the nodes that count."""
    is_used = used_nodes(counts, definition)
    table = np.column_stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives])
    log_odds = definition.log_odds(log_prior_odds(counts.prior_odds[is_used]))
    return Likelihood(table[is_used].astype(np.float64), log_odds)


def support_low(
    definition: Definition, log_prior_odds: npt.NDArray[np.float64], prior: LogDensity, parameter: str
) -> float:
    """The lower end of a parameter's support: below it R is empty for some node (Prop. 1)."""
    if parameter == "strength":
        return 0.0
    left, right = definition.support_low(log_prior_odds)
    low = {"epsilon": max(left, right), "epsilon_left": left, "epsilon_right": right}[parameter]
    # Without a bound from the nodes (all of them certainly out) the prior alone says where to begin.
    return low if low > -np.inf else -upper_end(lambda epsilon: prior(-epsilon), 0.0)
