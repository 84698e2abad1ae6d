"""The paper's definitions as loops over membership vectors, in exact fractions; shares no code with the package."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from bmpaudit.privacy import FiniteMechanism

ZERO = Fraction(0)


@dataclass(frozen=True)
class ExactMechanism:
    """Pr(M = m) and f(w | m) as fractions; bit i of the row number m tells whether node i is in."""

    law: tuple[Fraction, ...]
    table: tuple[tuple[Fraction, ...], ...]

    @property
    def num_nodes(self) -> int:
        return round(math.log2(len(self.law)))

    @property
    def num_outputs(self) -> int:
        return len(self.table[0])

    @property
    def vectors(self) -> range:
        return range(len(self.law))

    def in_floats(self) -> FiniteMechanism:
        return FiniteMechanism([float(p) for p in self.law], [[float(p) for p in row] for row in self.table])

    def prior(self, node: int, membership: int) -> Fraction:
        """γ_i(m_i)."""
        return sum((self.law[m] for m in self.vectors if is_in(m, node) == membership), ZERO)

    def joint(self, node: int, membership: int, output: int) -> Fraction:
        """Pr(M_i = m_i, W = w)."""
        rows = (m for m in self.vectors if is_in(m, node) == membership)
        return sum((self.law[m] * self.table[m][output] for m in rows), ZERO)

    def conditional(self, node: int, membership: int, output: int) -> Fraction:
        """f_i(w | m_i)."""
        return self.joint(node, membership, output) / self.prior(node, membership)

    def seen_outputs(self) -> list[int]:
        """The w with f_0(w) > 0."""
        return [w for w in range(self.num_outputs) if any(self.law[m] * self.table[m][w] for m in self.vectors)]

    def uncertain_nodes(self) -> list[int]:
        return [i for i in range(self.num_nodes) if 0 < self.prior(i, 1) < 1]


def is_in(m: int, node: int) -> int:
    return m // 2**node % 2


def flipped(m: int, node: int) -> int:
    return m - 2**node if is_in(m, node) else m + 2**node


def log_of_ratio(numerator: Fraction, denominator: Fraction) -> float | None:
    """None for 0/0, which constrains nothing; x/0 is ∞."""
    if numerator == denominator == 0:
        return None
    if denominator == 0:
        return math.inf
    return math.log(numerator / denominator) if numerator else -math.inf


def largest(log_ratios: Iterator[float | None]) -> float:
    return max((value for value in log_ratios if value is not None), default=-math.inf)


def slow_mp(exact: ExactMechanism) -> float:
    """Definition 1."""
    return largest(
        sign * ratio
        if (ratio := log_of_ratio(exact.conditional(i, 1, w), exact.conditional(i, 0, w))) is not None
        else None
        for i in exact.uncertain_nodes()
        for w in exact.seen_outputs()
        for sign in (1, -1)
    )


def slow_mdp(exact: ExactMechanism) -> float:
    """Definition 2; both directions come from the two m of a pair."""
    return largest(
        log_of_ratio(exact.table[m][w], exact.table[flipped(m, i)][w])
        for i in range(exact.num_nodes)
        for m in exact.vectors
        for w in exact.seen_outputs()
    )


def slow_bmp(exact: ExactMechanism) -> tuple[float, float]:
    """Definition 3: the smallest ε_L and ε_R."""
    left, right = (
        largest(
            log_of_ratio(exact.joint(i, numerator, w), exact.joint(i, 1 - numerator, w))
            for i in range(exact.num_nodes)
            for w in exact.seen_outputs()
        )
        for numerator in (0, 1)
    )
    return left, right


def slow_bmdp(exact: ExactMechanism) -> tuple[float, float]:
    """Definition 5: the smallest ε_L and ε_R."""
    left, right = (
        largest(
            log_of_ratio(exact.law[m] * exact.table[m][w], exact.law[flipped(m, i)] * exact.table[flipped(m, i)][w])
            for i in range(exact.num_nodes)
            for m in exact.vectors
            if is_in(m, i) == numerator
            for w in exact.seen_outputs()
        )
        for numerator in (0, 1)
    )
    return left, right


def decision_rules(num_outputs: int) -> Iterator[tuple[int, ...]]:
    """All 2^W rules without chance (Definition 6)."""
    return product((0, 1), repeat=num_outputs)


def slow_errors(exact: ExactMechanism, node: int, rule: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """(α, β) of Definition 6."""
    outputs = range(exact.num_outputs)
    alpha = sum((exact.conditional(node, 0, w) for w in outputs if rule[w] == 1), ZERO)
    beta = sum((exact.conditional(node, 1, w) for w in outputs if rule[w] == 0), ZERO)
    return alpha, beta


def slow_smallest_cost(
    exact: ExactMechanism, node: int, false_positive: Fraction, false_negative: Fraction
) -> Fraction:
    """The least expected cost over all decision rules."""
    outputs = range(exact.num_outputs)
    return min(
        sum((false_positive * exact.joint(node, 0, w) for w in outputs if rule[w] == 1), ZERO)
        + sum((false_negative * exact.joint(node, 1, w) for w in outputs if rule[w] == 0), ZERO)
        for rule in decision_rules(exact.num_outputs)
    )
