"""Nodes on which no attack is possible, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from bmpaudit.arrays import Flags, Floats, Ints


@dataclass(frozen=True)
class NotAuditable:
    """A node on which no attack is possible, and why.

    Attributes:
        node: Node id.
        reason: Why not, as a phrase.
        name: Name of the node, if the graph has names.
    """

    node: int
    reason: str
    name: str | None = None

    def __str__(self) -> str:
        return f"{node_label(self.node, self.name)}: {self.reason}"


def node_label(node: int, name: str | None) -> str:
    """What messages call a node: by its name if it has one.

    >>> node_label(7, None), node_label(7, "alice")
    ('node 7', "node 'alice'")
    """
    return f"node {node}" if name is None else f"node {name!r}"


def too_few_models(
    nodes: Ints, num_out: Ints, num_in: Ints, needed: int, names: Sequence[str] | None = None
) -> tuple[NotAuditable, ...]:
    """Nodes with fewer than `needed` models on one side.

    Args:
        nodes: Ids of the K nodes to look at, shape (K,).
        num_out: Number of models trained without each of them, shape (K,).
        num_in: Number of models trained with each of them, shape (K,).
        needed: Minimum number of models on either side.
        names: Names of all nodes of the graph, if they have names.
    """

    @cache  # of many nodes, few numbers of models differ
    def reason(number_in: int, number_out: int) -> str:
        where, count = ("in", number_in) if number_in < needed else ("missing from", number_out)
        total = number_out + number_in
        return f"{where} the samples of {count:,} of {total:,} models, at least {needed} are needed"

    is_left = np.minimum(num_out, num_in) < needed
    rows = zip(nodes[is_left].tolist(), num_in[is_left].tolist(), num_out[is_left].tolist(), strict=True)
    return tuple(NotAuditable(node, reason(*numbers), names[node] if names else None) for node, *numbers in rows)


def with_certain_priors(
    reasons: Iterable[NotAuditable], nodes: Ints, prior_prob: Floats, names: Sequence[str] | None = None
) -> tuple[NotAuditable, ...]:
    """Adds nodes whose prior is 0 or 1, which leaves nothing to infer; one reason per node, in the order of `nodes`."""
    by_node: dict[int, NotAuditable] = {}
    for left in reasons:
        by_node.setdefault(left.node, left)
    for i in np.flatnonzero((prior_prob <= 0) | (prior_prob >= 1)):
        node = int(nodes[i])
        reason = f"its prior probability is {prior_prob[i]:g}"
        by_node.setdefault(node, NotAuditable(node, reason, names[node] if names else None))
    return tuple(by_node[node] for node in nodes.tolist() if node in by_node)


def can_be_attacked(nodes: Ints, reasons: Iterable[NotAuditable]) -> Flags:
    """Which of the nodes are not among those that cannot be attacked, shape (K,)."""
    return ~np.isin(nodes, [left.node for left in reasons])
