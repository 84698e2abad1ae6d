"""Two audits node by node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit.auditing.compared import ComparedAudit
from bmpaudit.estimation.node_change import node_change
from bmpaudit.estimation.node_leakage import node_leakage
from bmpaudit.plain import plain

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.9
COLUMNS = (
    *("node", "name", "class", "first_low", "first_median", "first_high", "second_low", "second_median"),
    *("second_high", "change_low", "change_median", "change_high", "more_prob", "is_constant"),
)


@dataclass(frozen=True, eq=False)
class NodeComparison:
    """How the nodes of an audit changed against the first one.

    Attributes:
        label: Of the audit.
        symbol: What was compared of each node.
        matched_by: `id` if both audits are of the same graph, `name` if of graphs with names; empty if not comparable.
        not_comparable: Why nodes cannot be compared; empty if they can.
        table: One row per node that was audited in both, those that surely changed most first (docs/compare.md).
        num_more: How many leak more: the 90 % interval of the change is above 0.
        num_less: How many leak less: it is below 0.
        num_constant: How many have a constant decision in one of the audits; they are not counted above.
    """

    label: str
    symbol: str
    matched_by: str
    not_comparable: str
    table: pd.DataFrame
    num_more: int
    num_less: int
    num_constant: int

    @property
    def sentence(self) -> str:
        """In words."""
        if self.not_comparable:
            return f"{self.not_comparable}."
        counted = len(self.table) - self.num_constant
        sentence = (
            f"Of {counted:,} nodes (matched by {self.matched_by}), {self.num_more:,} leak more in {self.label} and "
            f"{self.num_less:,} less, by the {100 * LEVEL:.0f} % interval of the change; about "
            f"{counted * (1 - LEVEL) / 2:,.0f} of each may be chance."
        )
        if self.num_constant:
            sentence += f" {self.num_constant:,} nodes with a constant decision in one of the two are not counted."
        return sentence

    def to_dict(self, top: int) -> dict[str, Any]:
        """As plain values, with the rows of those that changed most."""
        return {
            "audit": self.label,
            "symbol": self.symbol,
            "matched_by": self.matched_by or None,
            "not_comparable": self.not_comparable or None,
            "sentence": self.sentence,
            "num_nodes": len(self.table),
            "num_more": self.num_more,
            "num_less": self.num_less,
            "num_constant": self.num_constant,
            "changed_most": plain(self.table.head(top).to_dict(orient="records")),
        }


def compare_nodes(first: ComparedAudit, other: ComparedAudit, side: str, *, above_floor: bool) -> NodeComparison:
    """The change of e_R (or e_L) of every node that was audited in both.

    Nodes are the same if the graphs have the same content and the nodes the same id; else if both graphs have names,
    which are then distinct, and the nodes the same name.
    """
    import pandas as pd

    symbol = ("e_R" if side == "right" else "e_L") + (" above the floor" if above_floor else "")
    keys = [audit.nodes.set_index("node") for audit in (first, other)]
    nothing = pd.DataFrame(columns=list(COLUMNS))
    if first.graph_hash == other.graph_hash:
        matched_by, marks = "id", [table.index.to_series() for table in keys]
    elif all(_has_names(table["name"]) for table in keys):
        matched_by, marks = "name", [table["name"] for table in keys]
    else:
        why = f"nodes are not comparable with those of {first.label}: another graph, and not both have distinct names"
        return NodeComparison(other.label, symbol, "", why, nothing, 0, 0, 0)
    counts = [audit.posterior.counts for audit in (first, other)]
    keys_there = [mark.loc[each.node].to_numpy() for mark, each in zip(marks, counts, strict=True)]
    shared, row_first, row_other = np.intersect1d(keys_there[0], keys_there[1], assume_unique=True, return_indices=True)
    if not len(shared):
        why = f"no node was audited both here and in {first.label}"
        return NodeComparison(other.label, symbol, matched_by, why, nothing, 0, 0, 0)
    pair = [each.take(rows) for each, rows in zip(counts, (row_first, row_other), strict=True)]
    change = node_change(pair[0], pair[1], side, above_floor=above_floor, level=LEVEL)
    columns: dict[str, np.ndarray] = {
        "node": pair[0].node,
        "name": keys[0].loc[pair[0].node, "name"].to_numpy(),
        "class": keys[0].loc[pair[0].node, "class"].to_numpy(),
    }
    for name, each in zip(("first", "second"), pair, strict=True):
        interval = getattr(node_leakage(each, LEVEL), f"excess_{side}" if above_floor else side)
        columns |= {f"{name}_{end}": getattr(interval, end) for end in ("low", "median", "high")}
    columns |= {f"change_{end}": getattr(change, end) for end in ("low", "median", "high")}
    columns |= {"more_prob": change.more_prob, "is_constant": change.is_constant}
    return NodeComparison(
        label=other.label,
        symbol=symbol,
        matched_by=matched_by,
        not_comparable="",
        table=pd.DataFrame(columns).iloc[change.ranked()].reset_index(drop=True),
        num_more=int(change.is_more.sum()),
        num_less=int(change.is_less.sum()),
        num_constant=int(change.is_constant.sum()),
    )


def _has_names(names: pd.Series) -> bool:
    """Whether nodes have names of their own, not just their numbers, and these are distinct."""
    return bool(names.is_unique and (names.astype(str) != names.index.astype(str)).any())
