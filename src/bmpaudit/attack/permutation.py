"""Is there anything to find, and about whom? Every node is tested against memberships shuffled between models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.special

from bmpaudit import _native
from bmpaudit.attack.evidence import check_samples
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.matrices import columns, node_blocks
from bmpaudit.util.streams import Purpose, check_seed, stream
from bmpaudit.util.values import Flags, Floats, Ints, as_bytes

if TYPE_CHECKING:
    from bmpaudit.attack.evidence import Evidence
    from bmpaudit.interfaces import Progress

SIGNIFICANT = 0.01
LEAKING = 0.005
"""Level of the list of nodes that leak, over all nodes together."""
MIN_SHUFFLES = 199
MORE_SHUFFLES, UNDECIDED = 10, 10  # times as many, where a first round leaves fewer than so many ahead, but not none
POWER = 0.95  # probability with which a leak is found that is said to be found


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """How strongly nodes' answers are linked to their memberships, and how strongly by chance.

    A node's statistic T is the largest, over the queries, of |z|: the rank sum of the models that hold the node,
    centred, in units of its standard deviation under shuffling. Whole rows of memberships are shuffled, the same way
    for all nodes, so that priors and the dependence between nodes stay as they are, and only the link between a model
    and its sample is cut.

    Formal guarantees, if models are independent draws: where answers and memberships are independent, `p_value` is at
    most p with probability at most p. A node whose answers are independent of its own membership has a `node_p_value`
    of at most p with probability at most p. Where the answers about all nodes that do not leak are independent of the
    memberships of all of these together, `is_leaking` holds any of them with probability at most 0.5 %.
    """

    # Of the largest T, the sum of z and the sum of z² together: the share of arrangements that stand out as much as the
    # real one in one of the three.
    p_value: float
    num_shuffles: int  # number of shuffles, R
    largest: Floats  # largest T as it is and after each shuffle, shape (R + 1,)
    node: Ints  # ids of the nodes, shape (K,)
    z: Floats  # the z of largest size over the queries, shape (K,): positive where answers rise with membership
    num_in: Ints  # number of models that hold each node, shape (K,)
    node_p_value: Floats  # share of arrangements in which the node's T is at least the real one, shape (K,)
    is_leaking: Flags  # which nodes are proven to leak, shape (K,), by step-down against the largest T
    critical: float  # T from which on a node is proven to leak, had it been the only one
    num_models: int  # number of models, J

    @property
    def is_leakage_found(self) -> bool:
        """Whether the p-value is at most 0.01."""
        return self.p_value <= SIGNIFICANT

    @property
    def num_leaking(self) -> int:
        """Number of nodes that are proven to leak."""
        return int(np.count_nonzero(self.is_leaking))

    @property
    def can_be_found(self) -> Flags:
        """Whether a node that gives itself away in every model would have been found to leak, shape (K,)."""
        return largest_z(self.num_in, self.num_models) > self.critical

    @property
    def missed_auc(self) -> Floats:
        """AUC of a node's answers up to which a leak may well have been missed, shape (K,); 1 where any may have been.

        A node that alone leaks with a larger AUC would have been found with a probability of 95 %.
        """
        num_in = self.num_in.astype(np.float64)
        with np.errstate(divide="ignore"):
            deviation = np.sqrt((self.num_models + 1) / (12 * num_in * (self.num_models - num_in)))
        needed = 0.5 + (self.critical + float(scipy.special.ndtri(POWER))) * deviation
        return np.where(self.can_be_found, np.minimum(needed, 1.0), 1.0)

    def __str__(self) -> str:
        verdict = "leakage found" if self.is_leakage_found else "no leakage found"
        return (
            f"{verdict} (p = {self.p_value:.2g}, {self.num_shuffles:,} shuffles of memberships): "
            f"{self.num_leaking:,} of {len(self.node):,} nodes are proven to leak"
        )


def largest_z(num_in: Ints, num_models: int) -> Floats:
    """The z of a node that all models with it rank above all without it, shape as `num_in`."""
    pairs = num_in.astype(np.float64) * (num_models - num_in)
    result: Floats = np.sqrt(3 * pairs / (num_models + 1))
    return result


def permutation_test(
    models: Evidence,
    *,
    num_shuffles: int = MIN_SHUFFLES,
    seed: int = 0,
    num_threads: int | None = None,
    progress: Progress = lambda _: None,
) -> PermutationTest:
    """Tests every node, and all of them together.

    Where the real arrangement is among the first 5 % but not the first, ten times as many shuffles make the p-values
    finer: that of all nodes together then allows for the second look. Which nodes leak is decided by the first ones.

    There are at least 199 shuffles, and shuffle r depends on (seed, r) only; `progress` is called with the number of
    nodes done.

    Raises:
        InputError: if there are fewer than 2 models.
    """
    check_seed(seed)
    if num_shuffles < MIN_SHUFFLES:
        raise InputError(f"num_shuffles must be at least {MIN_SHUFFLES}, got num_shuffles={num_shuffles}")
    if models.num_models < 2:
        raise InputError(f"there must be at least 2 models to shuffle memberships, got {models.num_models}")
    check_samples(models)
    threads = thread_count(num_threads)
    made = _Arrangements.of(models, num_shuffles, seed, threads, progress)
    is_leaking, critical = np.zeros(len(made.z), dtype=np.bool_), made.critical
    found = made.statistic > critical
    while (found & ~is_leaking).any():  # of the others, chance alone makes less
        is_leaking |= found
        if is_leaking.all():
            break
        rest = _Arrangements.of(models.about(models.nodes[~is_leaking]), num_shuffles, seed, threads)
        found = is_leaking.copy()
        found[~is_leaking] = rest.statistic > rest.critical
    num_ahead, num_first = made.num_ahead, num_shuffles
    p_value = (1 + num_ahead) / (1 + num_shuffles)
    if 0 < num_ahead < UNDECIDED:
        num_shuffles *= MORE_SHUFFLES
        made = _Arrangements.of(models, num_shuffles, seed, threads)
        p_value = after_second_look(made.num_ahead, num_shuffles, num_first)
    return PermutationTest(
        p_value=p_value,
        num_shuffles=num_shuffles,
        largest=made.largest,
        node=models.nodes,
        z=made.z,
        num_in=models.num_in,
        node_p_value=(1 + made.num_reached) / (1 + num_shuffles),
        is_leaking=is_leaking,
        critical=critical,
        num_models=models.num_models,
    )


def after_second_look(num_ahead: int, num_shuffles: int, num_first: int) -> float:
    """The p-value of a rank among all shuffles if the rank was also looked at after the first of them.

    It was called significant then if none of the first R' shuffles was ahead. With k - 1 of R ahead, each of R + 1
    ranks being equally likely, that happens with probability C(R - k + 1, R')/C(R, R'); so a p-value of (k0)/(R + 1)
    becomes the probability that k ≤ k0 or that this happens.

    >>> after_second_look(4, 1990, 199) > 5 / 1991
    True
    """
    ahead = np.arange(num_ahead + 1, num_shuffles - num_first + 1)
    log_none = (
        scipy.special.gammaln(num_shuffles - ahead + 1)
        + scipy.special.gammaln(num_shuffles - num_first + 1)
        - scipy.special.gammaln(num_shuffles - ahead - num_first + 1)
        - math.lgamma(num_shuffles + 1)
    )
    return float((num_ahead + 1 + np.exp(log_none).sum()) / (num_shuffles + 1))


@dataclass(frozen=True, eq=False)
class _Arrangements:
    """What nodes come to as they are and after R shuffles."""

    z: Floats  # shape (K,)
    num_reached: Ints  # shuffles in which a node's statistic is at least the real one, shape (K,)
    largest: Floats  # largest statistic over nodes, shape (R + 1,)
    sums: Floats  # of z and of its squares, shape (2, R + 1)

    @classmethod
    def of(
        cls, models: Evidence, num_shuffles: int, seed: int, num_threads: int, progress: Progress = lambda _: None
    ) -> _Arrangements:
        """Works through the nodes to score in blocks."""
        num_models, nodes = models.num_models, models.nodes
        shuffled = (stream(seed, r, Purpose.PERMUTATION_TEST).permutation(num_models) for r in range(num_shuffles))
        order = np.stack([np.arange(num_models), *shuffled])
        z, num_reached = np.empty((len(models.queries), len(nodes))), np.zeros(len(nodes), dtype=np.int64)
        totals = np.zeros((3, len(order)))
        for block in node_blocks(len(nodes), num_models * len(models.queries)):
            here = nodes[block]
            statistics = np.stack([columns(table, here) for table in models.statistics.values()], dtype=np.float32)
            members = as_bytes(columns(models.memberships, here))
            part, reached = np.empty(statistics.shape[::2]), np.zeros(len(here), dtype=np.int64)
            _native.test_nodes(statistics, members, order, num_threads, part, reached, totals)
            z[:, block], num_reached[block] = part, reached
            progress(block.stop)
        furthest = np.abs(z).argmax(axis=0)
        return cls(z[furthest, np.arange(len(nodes))], num_reached, totals[0], totals[1:])

    @property
    def statistic(self) -> Floats:
        return np.abs(self.z)

    @property
    def critical(self) -> float:
        """The largest statistic that at least 0.5 % of all arrangements reach, the real one counted among them."""
        num_allowed = int(LEAKING * len(self.largest) + 1e-9)
        return float(np.sort(self.largest[1:])[-num_allowed])

    @property
    def num_ahead(self) -> int:
        """Number of shuffles that stand out at least as much as the real arrangement, in the best of three respects."""
        respects = np.stack([self.largest, *self.sums])
        ranks = np.stack([len(row) - np.searchsorted(np.sort(row), row, side="left") for row in respects])
        best, total = ranks.min(axis=0), ranks.sum(axis=0)
        is_ahead = (best < best[0]) | ((best == best[0]) & (total <= total[0]))
        return int(np.count_nonzero(is_ahead)) - 1
