"""From an attack to its most confident statements, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack.blocks import BlockJob, map_blocks
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import can_be_attacked
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack, Progress
from bmpaudit.proof.guesses import Claims, Order, most_confident

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


class _BlockClaims(NamedTuple):
    """The most confident statements about the nodes of a block, and how many of these could be scored."""

    claims: ClaimsByOrder
    num_scored: int


@dataclass(frozen=True, eq=False)
class _MostConfident(BlockJob[_BlockClaims]):
    """Finds the most confident statements about each model.

    Attributes:
        log_prior_odds: log η of all nodes, shape (N,).
        is_allowed: Nodes that statements may be made about, shape (N,).
    """

    log_prior_odds: Floats
    is_allowed: Flags

    def run(self, block: slice, num_threads: int, progress: Progress) -> _BlockClaims:
        """Statements about the nodes of a block."""
        nodes = self.models.nodes_in(block)
        values = np.empty((self.models.num_models, len(nodes)))
        is_asked = self.is_allowed[nodes]
        is_scored = is_asked.copy()
        for rows, scores in self.scores(block, num_threads, progress, is_asked):
            values[rows] = scores.log_likelihood_ratio
            is_scored &= can_be_attacked(nodes, scores.not_auditable)
        if not is_scored.any():
            return _BlockClaims({}, 0)
        claims = most_confident(values, self.log_prior_odds[nodes], is_scored, nodes, num_threads=num_threads)
        return _BlockClaims(claims, int(is_scored.sum()))


def claims_of_attack(
    source: Source,
    models: Evidence,
    fitting: Evidence | None,
    log_prior_odds: Floats,
    is_allowed: Flags,
    num_threads: int,
    executor: Executor | None = None,
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
        executor: Workers that score blocks of nodes, if any.
        report: Called with the share of the work that is done.

    Raises:
        InputError: if the attack fails, or scores are NaN or of the wrong shape.
        SaysNothingError: if no node can be attacked, or each model left out of its own fit has the same scores.
    """
    models, fitting = source.seen(models), None if fitting is None else source.seen(fitting)
    num_nodes = models.num_targets
    claims: dict[Order, Claims] = {}
    num_scored = 0
    job = _MostConfident(source.attack, models, fitting, log_prior_odds, is_allowed)
    for _, made in map_blocks(
        job, num_threads=num_threads, executor=executor, progress=lambda done: report(done / num_nodes)
    ):
        num_scored += made.num_scored
        for order, surest in made.claims.items():
            claims[order] = claims[order].merge(surest) if order in claims else surest
    if not num_scored:
        num_fitting = models.num_models if fitting is None else fitting.num_models
        raise SaysNothingError(f"attack {source.name}: no node can be attacked with {num_fitting} models to fit on")
    lowest, highest = -claims["out by ratio"].confidence.max(), claims["in by ratio"].confidence.max()
    if fitting is None and lowest == highest:
        raise SaysNothingError(f"attack {source.name}: scores must differ, got {lowest:g} for all models and nodes")
    return claims
