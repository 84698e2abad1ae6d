"""Random finite mechanisms, exact and in floats: every kind of membership law with every kind of likelihood table."""

from fractions import Fraction
from math import prod

import numpy as np
import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st
from slow_definitions import ExactMechanism, is_in

from bmpaudit.privacy import FiniteMechanism

LAW_KINDS = ("independent", "correlated", "with_zeros", "fixed_size", "all_or_none", "nearly_certain")
TABLE_KINDS = ("plain", "with_zeros", "nearly_deterministic", "deterministic", "constant")

Floats = npt.NDArray[np.float64]

seeds = st.integers(0, 2**32 - 1)
table_kinds = st.sampled_from(TABLE_KINDS)

many_examples = settings(max_examples=200)


def random_law(rng: np.random.Generator, num_nodes: int, kind: str) -> tuple[Fraction, ...]:
    size = 2**num_nodes
    if kind == "independent":
        prior = [Fraction(int(k), 12) for k in rng.integers(1, 12, size=num_nodes)]
        return tuple(
            prod((p if is_in(m, i) else 1 - p for i, p in enumerate(prior)), start=Fraction(1)) for m in range(size)
        )
    if kind == "fixed_size":
        drawn = rng.integers(0, num_nodes + 1)
        return _normalised([int(m.bit_count() == drawn) for m in range(size)])
    if kind == "all_or_none":
        return _normalised([int(rng.integers(1, 10)) if m in (0, size - 1) else 0 for m in range(size)])
    if kind == "nearly_certain":
        return _normalised(_one_heavy(rng, size))
    lowest = 0 if kind == "with_zeros" else 1
    return _normalised(_weights_not_all_zero(rng, size, lowest))


def random_table(
    rng: np.random.Generator, num_nodes: int, num_outputs: int, kind: str
) -> tuple[tuple[Fraction, ...], ...]:
    size = 2**num_nodes
    if kind == "constant":
        return (_normalised(_weights_not_all_zero(rng, num_outputs, 1)),) * size
    if kind == "deterministic":
        rows = np.eye(num_outputs, dtype=int)[rng.integers(0, num_outputs, size=size)]
        return tuple(_normalised([int(x) for x in row]) for row in rows)
    if kind == "nearly_deterministic":
        return tuple(_normalised(_one_heavy(rng, num_outputs)) for _ in range(size))
    lowest = 0 if kind == "with_zeros" else 1
    return tuple(_normalised(_weights_not_all_zero(rng, num_outputs, lowest)) for _ in range(size))


def random_mechanism(seed: int, num_nodes: int, num_outputs: int, law_kind: str, table_kind: str) -> ExactMechanism:
    rng = np.random.default_rng(seed)
    law = random_law(rng, num_nodes, law_kind)
    return ExactMechanism(law, random_table(rng, num_nodes, num_outputs, table_kind))


def exact_mechanisms(
    max_nodes: int = 4,
    law_kinds: tuple[str, ...] = LAW_KINDS,
    table_kinds: tuple[str, ...] = TABLE_KINDS,
) -> st.SearchStrategy[ExactMechanism]:
    return st.builds(
        random_mechanism,
        seed=seeds,
        num_nodes=st.integers(1, max_nodes),
        num_outputs=st.integers(2, 4),
        law_kind=st.sampled_from(law_kinds),
        table_kind=st.sampled_from(table_kinds),
    )


def mechanisms(
    max_nodes: int = 4,
    law_kinds: tuple[str, ...] = LAW_KINDS,
    table_kinds: tuple[str, ...] = TABLE_KINDS,
) -> st.SearchStrategy[FiniteMechanism]:
    return exact_mechanisms(max_nodes, law_kinds, table_kinds).map(ExactMechanism.in_floats)


def later_release(seed: int, first: FiniteMechanism, table_kind: str) -> Floats:
    """f(w' | w, m) of a second release that depends on the output of the first, shape (2^N, num_outputs, num_new)."""
    rng = np.random.default_rng(seed)
    num_new = int(rng.integers(2, 4))
    tables = [random_table(rng, first.num_nodes, num_new, table_kind) for _ in range(first.table.shape[1])]
    return np.array([[[float(p) for p in row] for row in table] for table in tables]).transpose(1, 0, 2)


def random_channel(seed: int, num_outputs: int, num_new: int, *, is_random: bool) -> Floats:
    """Rows Pr(z | w): a function of the output, or a randomised one."""
    rng = np.random.default_rng(seed)
    if is_random:
        return rng.dirichlet(np.full(num_new, 0.5), size=num_outputs)
    return np.eye(num_new)[rng.integers(0, num_new, size=num_outputs)]


def _weights_not_all_zero(rng: np.random.Generator, size: int, lowest: int) -> list[int]:
    weights = rng.integers(lowest, 4 if lowest == 0 else 10, size=size)
    weights[rng.integers(size)] += 1
    return [int(weight) for weight in weights]


def _one_heavy(rng: np.random.Generator, size: int) -> list[int]:
    weights = [int(weight) for weight in rng.integers(1, 4, size=size)]
    weights[int(rng.integers(size))] = 10**6
    return weights


def _normalised(weights: list[int]) -> tuple[Fraction, ...]:
    total = sum(weights)
    return tuple(Fraction(weight, total) for weight in weights)
