"""Certain members and non-members of a single model, by logic: no shadow models, no statistics.

Weight decay draws the row of a feature that no member has down to almost nothing, while training keeps the rows of all
others well above that. So a node that has an untouched feature was not in the sample. Some member has each feature that
was touched; if all nodes that have it are out but one, that one was in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse

from bmpaudit.graph import Graph
from bmpaudit.util.matrices import FlagMatrix, Rows, model_blocks
from bmpaudit.util.values import Bytes, Flags, Floats32, Ints

NON_MEMBER, MEMBER, UNKNOWN = 0, 1, 2
MIN_GAP = 2.0  # ratio of norms between which there must be none, over models of known members
MIN_UNTOUCHED = 30  # untouched rows that it takes to tell what such rows look like
LARGEST_UNTOUCHED = 2.5  # times the median of untouched rows, and as far away must the next one be, in one model


class Gap(NamedTuple):
    """From which norms conclusions are drawn; from those in between, none are."""

    untouched: float  # no member has a feature whose row is at most as long
    touched: float  # some member has a feature whose row is at least as long


@dataclass(frozen=True, eq=False)
class CertainNodes:
    """Nodes of which the rows of one model leave no doubt, and the features that give them away.

    Attributes:
        gap: From which norms this follows; None if there is no clear gap, and then no node is certain.
        non_members: Ids of nodes that have an untouched feature, ascending.
        untouched: For each of them, the one with the smallest norm.
        members: Ids of nodes that alone can have touched some feature, ascending.
        touched: For each of them, the one with the largest norm.
    """

    gap: Gap | None
    non_members: Ints
    untouched: Ints
    members: Ints
    touched: Ints


def certain_nodes(norms: Floats32, graph: Graph, gap: Gap | None = None) -> CertainNodes:
    """Certain nodes of one model with rows of some norms, shape (F,).

    Without a gap, as `learnt_gap` finds it with models of known members, the model's own norms must show one: there are
    at least 30 rows below a gap of factor 2.5, and above it somebody is left to have touched each row. Rows count as
    untouched up to 2.5 times the median of those below.
    """
    holders = Holders(graph)
    gap = gap or _own_gap(norms, holders)
    states = holders.states(norms[None], gap)
    out, members = np.flatnonzero(states[0] == NON_MEMBER), np.flatnonzero(states[0] == MEMBER)
    lowest, tells_member = np.full_like(norms, -np.inf), np.full_like(norms, -np.inf)
    if gap is not None:
        lowest = np.where(norms <= gap.untouched, -norms, -np.inf)
        is_alone = (norms >= gap.touched) & (holders.count(states != NON_MEMBER)[0] == 1)
        tells_member = np.where(is_alone, norms, -np.inf)
    return CertainNodes(
        gap, out, holders.best_feature(out, lowest), members, holders.best_feature(members, tells_member)
    )


class CertainCounts(NamedTuple):
    """In how many models of known members logic alone settles each node; arrays of shape (N,)."""

    num_in: Ints  # of those that hold it
    num_out: Ints  # of the others
    num_wrong: Ints  # and in how many it is wrong


def count_certain(rows: Rows, memberships: FlagMatrix, graph: Graph) -> CertainCounts:
    """Counts in how many models each node is certain, by the gap that all of them show together."""
    holders = Holders(graph)
    gap = learnt_gap(rows, memberships, holders)
    counts = CertainCounts(*np.zeros((3, graph.num_nodes), dtype=np.int64))
    for block in model_blocks(rows.shape[0], max(rows.shape[1], graph.num_nodes)):
        states, members = holders.states(rows.norms_of(block), gap), memberships[block]
        for into, flags in (
            (counts.num_in, (states == MEMBER) & members),
            (counts.num_out, (states == NON_MEMBER) & ~members),
            (counts.num_wrong, np.where(members, states == NON_MEMBER, states == MEMBER)),
        ):
            into += flags.sum(axis=0)
    return counts


def learnt_gap(rows: Rows, memberships: FlagMatrix, holders: Holders) -> Gap | None:
    """The gap between untouched and touched rows of models whose members are known; None if there is no clear one."""
    untouched, touched, num_untouched = 0.0, np.inf, 0
    for block in model_blocks(rows.shape[0], max(rows.shape[1], memberships.shape[1])):
        norms = rows.norms_of(block)[:, holders.is_used]
        is_touched = holders.count(memberships[block])[:, holders.is_used] > 0
        untouched = max(untouched, float(norms[~is_touched].max(initial=0.0)))
        touched = min(touched, float(norms[is_touched].min(initial=np.inf)))
        num_untouched += int(np.count_nonzero(~is_touched))
    if num_untouched < MIN_UNTOUCHED or touched == np.inf or touched < MIN_GAP * untouched:
        return None
    middle = float(np.sqrt(untouched * touched))
    return Gap(min(middle, MIN_GAP * untouched), middle)


def _own_gap(norms: Floats32, holders: Holders) -> Gap | None:
    ordered = np.sort(norms[holders.is_used].astype(np.float64))
    low, high = ordered[MIN_UNTOUCHED - 1 : -1], ordered[MIN_UNTOUCHED:]
    is_wide = (high >= LARGEST_UNTOUCHED * low) & (high > 0)
    if not is_wide.any():
        return None
    first = int(is_wide.argmax())
    usual = float(np.median(ordered[: MIN_UNTOUCHED + first]))
    gap = Gap(min(float(low[first]), LARGEST_UNTOUCHED * usual), float(high[first]))
    is_left = holders.count(holders.states(norms[None], gap) != NON_MEMBER)[0] > 0
    return gap if is_left[holders.is_used & (norms >= gap.touched)].all() else None


class Holders:
    """Which nodes have which features."""

    def __init__(self, graph: Graph) -> None:
        features = scipy.sparse.csr_array(graph.features, dtype=np.float32, copy=True)
        features.eliminate_zeros()
        features.sort_indices()
        self._has = scipy.sparse.csr_array(
            (np.ones_like(features.data), features.indices, features.indptr), shape=features.shape
        )
        self.num_features: Ints = np.diff(features.indptr).astype(np.int64)
        """Of each node, shape (N,)."""
        self.is_used: Flags = np.bincount(features.indices, minlength=features.shape[1]) > 0
        """Which features any node has, shape (F,)."""

    def count(self, nodes: Flags) -> Floats32:
        """How many of some nodes have each feature, from shape (J, N) to (J, F)."""
        return np.asarray((self._has.T @ nodes.T.astype(np.float32)).T)

    def any_of(self, features: Flags) -> Flags:
        """Which nodes have any of some features, from shape (J, F) to (J, N)."""
        return np.asarray(self._has @ features.T.astype(np.float32)).T > 0

    def states(self, norms: Floats32, gap: Gap | None) -> Bytes:
        """`NON_MEMBER`, `MEMBER` or `UNKNOWN`, from norms (J, F) to shape (J, N); all unknown without a gap."""
        states = np.full((len(norms), self._has.shape[0]), UNKNOWN, dtype=np.uint8)
        if gap is not None:
            is_out = self.any_of(norms <= gap.untouched)
            states[self.any_of((norms >= gap.touched) & (self.count(~is_out) == 1))] = MEMBER
            states[is_out] = NON_MEMBER
        return states

    def rarest_feature(self) -> Ints:
        """Of each node the feature that fewest nodes have, shape (N,); -1 without any."""
        starts, indices = self._has.indptr, self._has.indices
        counts = np.bincount(indices, minlength=self._has.shape[1])[indices]
        rarest = np.full(self._has.shape[0], -1, dtype=np.int64)
        for node in np.flatnonzero(self.num_features).tolist():
            own = slice(starts[node], starts[node + 1])
            rarest[node] = indices[own][counts[own].argmin()]
        return rarest

    def best_feature(self, nodes: Ints, values: Floats32) -> Ints:
        """Of each of some nodes the feature with the highest value."""
        starts = self._has.indptr
        parts = [self._has.indices[starts[node] : starts[node + 1]] for node in nodes.tolist()]
        return np.array([part[values[part].argmax()] for part in parts], dtype=np.int64)
