"""Which nodes count, and where a posterior can live."""

from __future__ import annotations

import numpy as np

from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.errors import InputError
from bmpaudit.estimation.definitions.curve import name_of, parameter_names, smallest_values
from bmpaudit.estimation.likelihood import Likelihood
from bmpaudit.estimation.prior import LogDensity, upper_end
from bmpaudit.interfaces import Definition
from bmpaudit.privacy.epsilon import log_prior_odds

LARGEST_COUNT = 2**40  # beyond it, error rates are too close to 0 and 1 for double precision


def check_counts(counts: ErrorCounts) -> None:
    """Raises `InputError` if a node has more trials than the kernels can integrate over."""
    for name in ("num_out", "num_in"):
        values = getattr(counts, name)
        if values.max() > LARGEST_COUNT:
            node = int(values.argmax())
            raise InputError(f"{name} must be at most 2^40, got {name}={values[node]} for node {counts.node[node]}")


def used_nodes(counts: ErrorCounts, definition: Definition) -> Flags:
    """Which nodes count: all but those whose certain prior would rule out every finite ε, shape (K,).

    Raises:
        InputError: if none is left, or a count is too large.
    """
    check_counts(counts)
    is_empty = definition.empties_support(log_prior_odds(counts.prior_odds))
    if is_empty.all():
        raise InputError(f"{name_of(definition)} has no finite ε for these priors: every node's membership is certain")
    return ~is_empty


def likelihood_of(
    counts: ErrorCounts, definition: Definition, is_used: Flags | None = None, *, num_threads: int | None = None
) -> Likelihood:
    """The likelihood of the nodes that count, which `used_nodes` finds unless they are given."""
    chosen = used_nodes(counts, definition) if is_used is None else is_used
    table = np.column_stack([counts.num_out, counts.num_in, counts.false_positives, counts.false_negatives])
    log_odds = log_prior_odds(counts.prior_odds[chosen])
    return Likelihood(
        table[chosen].astype(np.float64),
        log_odds if definition.uses_prior else np.zeros_like(log_odds),
        num_threads,
    )


def support_lows(definition: Definition, log_odds: Floats, prior: LogDensity) -> dict[str, float]:
    """The lower end of each parameter's support: below it R is empty for some node (Prop. 1).

    R has a positive area for every node if and only if ε_L > -min log η and ε_R > max log η.

    Args:
        definition: What is estimated.
        log_odds: log η of the nodes that count, as the definition takes them; 0 for MP.
        prior: Log-density of each ε, which says where to start if the nodes leave it open.

    Raises:
        InputError: if no value is large enough.
    """
    left, right = -float(log_odds.min()) + 0.0, float(log_odds.max()) + 0.0
    names, lows = parameter_names(definition), [left, right]
    if len(names) == 1:
        smallest = smallest_values(definition, np.array([left]), np.array([right]), strictly=True)
        lows = [max(float(value[0]) for value in smallest)]
    if np.inf in lows:
        raise InputError(
            f"{name_of(definition)} allows no finite {names[0]} for these priors: they need ε_L > {left:.3g} and "
            f"ε_R > {right:.3g}"
        )
    # Where no node sets a lower end (all of them are certainly out), the prior alone says where to start.
    start = -upper_end(lambda epsilon: prior(-epsilon), 0.0) if -np.inf in lows else 0.0
    return {name: start if low == -np.inf else low for name, low in zip(names, lows, strict=True)}


def check_one_parameter(definition: Definition) -> None:
    """Raises `InputError` if the definition has two parameters, so that the strength cannot be estimated as well."""
    if len(definition.parameters) > 1:
        raise InputError(
            f"strength can be estimated for one-parameter definitions only, got definition={name_of(definition)!r}"
        )
