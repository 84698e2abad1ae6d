"""Two audits node by node: who is named more often, and who less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from bmpaudit.arrays import Floats, Ints
from bmpaudit.auditing.compare_models import LEVEL
from bmpaudit.auditing.compared import ComparedAudit
from bmpaudit.plain import plain
from bmpaudit.report.words import count

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("node", "name", "class", "first_models", "first_named", "first_exposure", "second_models", "second_named"),
    *("second_exposure", "change", "change_low", "change_high"),
)


@dataclass(frozen=True, eq=False)
class NodeComparison:
    """How the exposure of nodes changed against the first audit.

    Attributes:
        label: Of the audit.
        matched_by: `id` if both audits are of the same graph, `name` if of graphs with names; empty if not comparable.
        not_comparable: Why nodes cannot be compared; empty if they can.
        table: One row per node that is in both, those that surely changed most first (docs/compare.md).
    """

    label: str
    matched_by: str
    not_comparable: str
    table: pd.DataFrame

    @property
    def num_more(self) -> int:
        """Number of nodes that are named more often: the interval of the change is above 0."""
        return int((self.table["change_low"] > 0).sum())

    @property
    def num_less(self) -> int:
        """Number of nodes that are named less often: the interval of the change is below 0."""
        return int((self.table["change_high"] < 0).sum())

    @property
    def sentence(self) -> str:
        """In words."""
        if self.not_comparable:
            return f"{self.not_comparable[:1].upper()}{self.not_comparable[1:]}."
        return (
            f"Of {count(len(self.table), 'node')} (matched by {self.matched_by}), {self.num_more:,} are named more "
            f"often in {self.label} and {self.num_less:,} less often, by the {100 * LEVEL:.0f} % interval of the "
            f"change; up to about {len(self.table) * (1 - LEVEL) / 2:,.0f} of each may be chance."
        )

    def to_dict(self, top: int) -> dict[str, Any]:
        """As plain values, with the rows of those that changed most."""
        return {
            "audit": self.label,
            "matched_by": self.matched_by or None,
            "not_comparable": self.not_comparable or None,
            "sentence": self.sentence,
            "num_nodes": len(self.table),
            "num_more": self.num_more,
            "num_less": self.num_less,
            "changed_most": plain(self.table.head(top).to_dict(orient="records")),
        }


def compare_nodes(first: ComparedAudit, other: ComparedAudit) -> NodeComparison:
    """The change of the exposure of every node that is in both: among the models it is in, the share that name it.

    Nodes are the same if the graphs have the same content and the nodes the same id; else if both graphs have names,
    which are then distinct, and the nodes the same name.
    """
    import pandas as pd

    nodes = [each.audit.nodes.set_index("node") for each in (first, other)]
    nothing = pd.DataFrame(columns=list(COLUMNS))
    if first.graph_hash == other.graph_hash:
        matched_by, marks = "id", [table.index.to_series() for table in nodes]
    elif all(_has_names(table["name"]) for table in nodes):
        matched_by, marks = "name", [table["name"] for table in nodes]
    else:
        why = f"nodes are not comparable with those of {first.label}: another graph, and not both have distinct names"
        return NodeComparison(other.label, "", why, nothing)
    exposed = [each.exposed_nodes for each in (first, other)]
    shown = [np.flatnonzero(each.num_models > 0) for each in exposed]
    keys = [
        mark.loc[each.node[rows].tolist()].to_numpy() for mark, each, rows in zip(marks, exposed, shown, strict=True)
    ]
    _, *places = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    if not len(places[0]):
        return NodeComparison(other.label, matched_by, f"no node was audited both here and in {first.label}", nothing)
    rows = [each[place] for each, place in zip(shown, places, strict=True)]
    ids = exposed[0].node[rows[0]]
    columns: dict[str, Any] = {"node": ids} | {name: nodes[0].loc[ids, name].to_numpy() for name in ("name", "class")}
    for name, each, chosen in zip(("first", "second"), exposed, rows, strict=True):
        columns |= {
            f"{name}_models": each.num_models[chosen],
            f"{name}_named": each.num_named[chosen],
            f"{name}_exposure": each.share[chosen],
        }
    columns["change"] = columns["second_exposure"] - columns["first_exposure"]
    low, high = difference_of_shares(
        *(columns[f"{name}_{what}"] for name in ("first", "second") for what in ("named", "models"))
    )
    nearer = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    order = np.lexsort((ids, -np.abs(columns["change"]), -nearer))
    table = pd.DataFrame(columns | {"change_low": low, "change_high": high}).iloc[order].reset_index(drop=True)
    return NodeComparison(other.label, matched_by, "", table)


def difference_of_shares(
    first_hits: Ints, first_trials: Ints, second_hits: Ints, second_trials: Ints, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Newcombe's limits of the difference of two independent shares, second - first.

    They join Wilson's limits of each share (Newcombe 1998, method 10), and are within [-1, 1]. In paired audits the
    shares of a node are not independent: they are larger or smaller together, so that limits are too wide, if anything.

    Args:
        first_hits: Hits of the first, shape (K,).
        first_trials: Trials of the first, at least 1, shape (K,).
        second_hits: Hits of the second, shape (K,).
        second_trials: Trials of the second, at least 1, shape (K,).
        level: Confidence level.
    """
    share_1, low_1, high_1 = _wilson(first_hits, first_trials, level)
    share_2, low_2, high_2 = _wilson(second_hits, second_trials, level)
    change = share_2 - share_1
    return change - np.hypot(share_2 - low_2, high_1 - share_1), change + np.hypot(high_2 - share_2, share_1 - low_1)


def _wilson(hits: Ints, trials: Ints, level: float) -> tuple[Floats, Floats, Floats]:
    """The share and Wilson's limits."""
    z = float(scipy.special.ndtri((1 + level) / 2))
    share = hits / trials
    middle, weight = (hits + z**2 / 2) / (trials + z**2), z / (trials + z**2)
    half = weight * np.sqrt(trials * share * (1 - share) + z**2 / 4)
    # The ends are 0 and 1 exactly where all trials agree, but for rounding.
    return share, np.where(hits == 0, 0.0, middle - half), np.where(hits == trials, 1.0, middle + half)


def _has_names(names: pd.Series) -> bool:
    """Whether nodes have names of their own, not just their numbers, and these are distinct."""
    return bool(names.is_unique and (names.astype(str) != names.index.astype(str)).any())
