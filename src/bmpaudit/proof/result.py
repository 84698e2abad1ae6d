"""What was proven, and from what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit.notebook_html import html_table, paragraphs
from bmpaudit.plain import plain
from bmpaudit.proof.guesses import Choice, Guesses, Parameter

SYMBOLS: dict[str, str] = {"epsilon_right": "ε_R", "epsilon_left": "ε_L", "mp": "MP ε"}
ONE_GUESS, PREQUENTIAL = "one guess per model", "prequential"
SURE = 0.99


@dataclass(frozen=True, eq=False)
class ProvenBound:
    """A lower confidence bound on one parameter, by one method.

    `epsilon_bound`, `mp_bound` and `AnytimeBound` have the formal guarantees and their proofs.

    Attributes:
        parameter: What is bounded: epsilon_right, epsilon_left or mp.
        proven: The bound; None if nothing is proven.
        floor: What the sampler alone gives away (Prop. 1), a lower confidence limit if priors were sampled.
        floor_high: The same, an upper confidence limit if priors were sampled.
        level: Confidence level.
        method: Method: one guess per model, or prequential.
        num_fitting: Number of models that the rule was fitted on; for the prequential method, at the end.
        num_challenged: Number of models that could be guessed about.
        choice: What was guessed by, and when not; for the prequential method, at the end.
        guesses: The guesses.
    """

    parameter: Parameter
    proven: float | None
    floor: float
    floor_high: float
    level: float
    method: str
    num_fitting: int
    num_challenged: int
    choice: Choice
    guesses: Guesses

    @property
    def num_guesses(self) -> int:
        """G, number of models about which something was guessed."""
        return self.guesses.num_guesses

    @property
    def num_hits(self) -> int:
        """C, number of correct guesses."""
        return self.guesses.num_hits

    @property
    def is_beyond_floor(self) -> bool:
        """Whether more is proven than the sampler alone implies."""
        return self.proven is not None and self.proven > self.floor_high

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        names = (
            *("proven", "floor", "is_beyond_floor", "level", "method"),
            *("num_fitting", "num_challenged", "num_guesses", "num_hits"),
        )
        values: dict[str, Any] = plain({name: getattr(self, name) for name in names} | {"source": self.choice.source})
        return values

    def __str__(self) -> str:
        return self.row()

    def row(self) -> str:
        """One line of a table."""
        proven = "nothing proven" if self.proven is None else f"≥ {self.proven:.2f}"
        return (
            f"{SYMBOLS[self.parameter]:<4}  {proven:<14}  {self.num_hits:,} of {self.num_guesses:,} guesses right, "
            f"{self.choice.source}; the sampler alone gives ≥ {self.floor:.2f}"
        )


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proven about one release.

    Each of the three bounds holds with probability `level` by itself; all three hold together with probability at
    least 1 - 3 (1 - level).

    Attributes:
        epsilon_right: Bound on ε_R: how sure an adversary can become that a node is in.
        epsilon_left: Bound on ε_L: how sure they can become that a node is not in.
        mp: Bound on ε of MP: how far the odds move either way.
        is_leakage_proven: Whether the guesses show, with 99 % confidence (or `level`, if that is higher), that models
            give away more than the sampling does: MP's ε is above 0. No guess of a mechanism that gives away nothing is
            right more often than its prior says, however nodes depend on each other. Limits of sampled priors are
            allowed for.
    """

    epsilon_right: ProvenBound
    epsilon_left: ProvenBound
    mp: ProvenBound
    is_leakage_proven: bool

    @property
    def bounds(self) -> tuple[ProvenBound, ProvenBound, ProvenBound]:
        """All three."""
        return (self.epsilon_right, self.epsilon_left, self.mp)

    def to_plain(self) -> dict[str, Any]:
        """By parameter, values as JSON can hold them."""
        return {bound.parameter: bound.to_plain() for bound in self.bounds}

    def __str__(self) -> str:
        first = self.epsilon_right
        head = (
            f"proven with {100 * first.level:g} % confidence each, {first.method}, fitted on {first.num_fitting:,} "
            f"models, {first.num_challenged:,} challenged"
        )
        return "\n".join([head, *(f"  {bound.row()}" for bound in self.bounds)])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head, *_ = str(self).splitlines()
        rows = [
            (
                SYMBOLS[bound.parameter],
                "nothing" if bound.proven is None else f"≥ {bound.proven:.2f}",
                f"{bound.num_hits:,} of {bound.num_guesses:,}",
                bound.choice.source,
                f"≥ {bound.floor:.2f}",
            )
            for bound in self.bounds
        ]
        return paragraphs([head]) + html_table(("", "proven", "guesses right", "by", "sampling alone"), rows)
