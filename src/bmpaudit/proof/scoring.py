"""From an attack to its most confident statements, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import can_be_attacked
from bmpaudit.attack.scoring import MAX_BLOCK, rounds, score_round
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack
from bmpaudit.proof.guesses import Claims, Order, most_confident

ClaimsByOrder: TypeAlias = Mapping[Order, Claims]


class SaysNothingError(InputError):
    """An attack has no statement to make about any model: its scores are all the same, or there are none."""


@dataclass(frozen=True)
class Source:
    """What guesses are based on: an attack and the queries that it sees."""

    attack: Attack
    queries: tuple[str, ...]

    @property
    def name(self) -> str:
        """Attack and queries, such as `gaussian, none`."""
        return f"{registry.label(registry.ATTACK, self.attack)}, {' and '.join(self.queries)}"

    def seen(self, models: Evidence) -> Evidence:
        """What the attack sees of models."""
        return models.asked(*self.queries)


def sources_of(attacks: Sequence[Attack], queries: tuple[str, ...]) -> list[Source]:
    """One source for each attack that fuses queries, and one for each query of the others.

    Raises:
        InputError: if there is no attack, or something is not one.
    """
    if not attacks:
        raise InputError("there must be at least one attack, got none")
    sources = []
    for attack in attacks:
        if not isinstance(attack, Attack):
            raise InputError(f"attack must have fuses_queries and score(...), got {attack!r}")
        each = [queries] if attack.fuses_queries else [(query,) for query in queries]
        sources += [Source(attack, part) for part in each]
    return sources


def claims_of_attack(
    source: Source,
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    is_allowed: Flags,
    num_threads: int,
) -> ClaimsByOrder:
    """The most confident statements about each model, by a fit on other models.

    Args:
        source: Attack and queries.
        models: Models to make statements about.
        fitting: Other models to fit on; if None, each model is left out of its own fit, or all are cross-fitted.
        log_prior_odds: log η of all nodes, shape (N,).
        is_allowed: Nodes that statements may be made about, shape (N,).
        num_threads: Number of threads.

    Raises:
        InputError: if the attack fails, or scores are NaN or of the wrong shape.
        SaysNothingError: if no node can be attacked, or each model left out of its own fit has the same scores.
    """
    models, fitting = source.seen(models), None if fitting is None else source.seen(fitting)
    nodes = models.nodes
    claims: dict[Order, Claims] = {}
    lowest, highest, num_scored = np.inf, -np.inf, 0
    width = max(1, MAX_BLOCK // models.num_models)
    for first in range(0, len(nodes), width):
        block = nodes[first : first + width]
        scores = np.empty((models.num_models, len(block)))
        is_scored = is_allowed[block]
        for each in rounds(source.attack, models, fitting):
            made = score_round(source.attack, each.about(block), num_threads=num_threads, is_asked=is_allowed[block])
            scores[each.rows] = made.log_likelihood_ratio
            is_scored &= can_be_attacked(block, made.not_auditable)
        if not is_scored.any():
            continue
        num_scored += int(is_scored.sum())
        values = scores[:, is_scored]
        lowest, highest = min(lowest, float(values.min())), max(highest, float(values.max()))
        for order, surest in most_confident(scores, log_prior_odds[block], is_scored, block).items():
            claims[order] = claims[order].merge(surest) if order in claims else surest
    if not num_scored:
        num_fitting = models.num_models if fitting is None else fitting.num_models
        raise SaysNothingError(f"attack {source.name}: no node can be attacked with {num_fitting} models to fit on")
    if fitting is None and lowest == highest:
        raise SaysNothingError(f"attack {source.name}: scores must differ, got {lowest:g} for all models and nodes")
    return claims
