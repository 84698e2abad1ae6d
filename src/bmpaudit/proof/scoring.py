"""From an attack to its most confident statements, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import can_be_attacked
from bmpaudit.attack.scoring import rounds, score_round
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack
from bmpaudit.proof.guesses import Claims, Order, most_confident
from bmpaudit.tables import node_blocks

ClaimsByOrder: TypeAlias = Mapping[Order, Claims]
Share: TypeAlias = Callable[[float], None]
"""Is called with the share of some work that is done, from 0 to 1."""


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
    report: Share = lambda _: None,
) -> ClaimsByOrder:
    """The most confident statements about each model, by a fit on other models.

    Args:
        source: Attack and queries.
        models: Models to make statements about.
        fitting: Other models to fit on; if None, each model is left out of its own fit, or all are cross-fitted.
        log_prior_odds: log η of all nodes, shape (N,).
        is_allowed: Nodes that statements may be made about, shape (N,).
        num_threads: Number of threads.
        report: Called with the share of the work that is done.

    Raises:
        InputError: if the attack fails, or scores are NaN or of the wrong shape.
        SaysNothingError: if no node can be attacked, or each model left out of its own fit has the same scores.
    """
    models, fitting = source.seen(models), None if fitting is None else source.seen(fitting)
    nodes = models.nodes
    claims: dict[Order, Claims] = {}
    num_scored = 0
    for span in node_blocks(len(nodes), models.num_models + (0 if fitting is None else fitting.num_models)):
        block = nodes[span]
        scores = np.empty((models.num_models, len(block)))
        is_scored = is_allowed[block]
        for each in rounds(source.attack, models, fitting):
            part = score_round(source.attack, each.about(block), num_threads=num_threads, is_asked=is_allowed[block])
            scores[each.rows] = part.log_likelihood_ratio
            is_scored &= can_be_attacked(block, part.not_auditable)
        if is_scored.any():
            num_scored += int(is_scored.sum())
            made = most_confident(scores, log_prior_odds[block], is_scored, block, num_threads=num_threads)
            for order, surest in made.items():
                claims[order] = claims[order].merge(surest) if order in claims else surest
        report(span.stop / len(nodes))
    if not num_scored:
        num_fitting = models.num_models if fitting is None else fitting.num_models
        raise SaysNothingError(f"attack {source.name}: no node can be attacked with {num_fitting} models to fit on")
    lowest, highest = -claims["out by ratio"].confidence.max(), claims["in by ratio"].confidence.max()
    if fitting is None and lowest == highest:
        raise SaysNothingError(f"attack {source.name}: scores must differ, got {lowest:g} for all models and nodes")
    return claims
