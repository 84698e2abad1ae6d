"""What one released model leaves no doubt about, by logic alone: no shadow models, no sampler, no statistics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit.attack.certain import CertainNodes, certain_nodes
from bmpaudit.auditing.nodes import node_columns
from bmpaudit.graph import Graph
from bmpaudit.inference.released import known_members
from bmpaudit.shadow.released import first_layer_norms
from bmpaudit.util.values import Flags, Floats32
from bmpaudit.util.words import count

if TYPE_CHECKING:
    import pandas as pd

NO_GAP = (
    "Nothing is certain: the first layer's weights show no clear gap between features that some member has and "
    "features that none has. That is no sign of privacy: with shadow models far more can be inferred (bmpaudit audit)."
)


@dataclass(frozen=True, eq=False)
class CertainInference:
    """Nodes that were certainly in the training sample of one model, or certainly not."""

    graph: Graph
    norms: Floats32  # length of the first layer's weights of each feature, shape (F,)
    nodes: CertainNodes
    truth: Flags | None = None  # who was in, if that is known, shape (N,)

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        if self.nodes.gap is None:
            return NO_GAP
        out, members = len(self.nodes.non_members), len(self.nodes.members)
        return (
            f"Without any shadow model: of {count(self.graph.num_nodes, 'node')}, {out:,} were certainly not in the "
            f"training sample, and {members:,} certainly were, provided that all training data are nodes of this graph."
        )

    @property
    def findings(self) -> list[str]:
        """What it follows from."""
        gap = self.nodes.gap
        if gap is None:
            return []
        untouched = int(np.count_nonzero(self.norms <= gap.untouched))
        findings = [
            f"Weight decay has emptied the weights of {count(untouched, 'feature')} (lengths up to "
            f"{gap.untouched:.2g}; the others start at {gap.touched:.2g}): no member has any of them. A node that "
            "alone has another feature was in the sample."
        ]
        if self.truth is not None:
            wrong = [int(np.count_nonzero(~self.truth[self.nodes.members])), 0]
            wrong[1] = int(np.count_nonzero(self.truth[self.nodes.non_members]))
            findings.append(f"Of these members {wrong[0]:,} are wrong, of these non-members {wrong[1]:,}.")
        return findings

    @property
    def table(self) -> pd.DataFrame:
        """One row for each node that is certain, members first, with the feature that gives it away."""
        import pandas as pd

        ids = np.concatenate([self.nodes.members, self.nodes.non_members])
        feature = np.concatenate([self.nodes.touched, self.nodes.untouched])
        columns = {name: np.asarray(values)[ids] for name, values in node_columns(self.graph).items()}
        columns["certainly"] = np.where(np.arange(len(ids)) < len(self.nodes.members), "in", "out")
        return pd.DataFrame({**columns, "feature": feature, "length": self.norms[feature]})

    def to_plain(self, top: int | None = None) -> dict[str, Any]:
        """Values as JSON can hold them."""
        table = self.table if top is None else self.table.head(top)
        gap = self.nodes.gap
        return {
            "verdict": self.verdict,
            "num_nodes": self.graph.num_nodes,
            "num_members": len(self.nodes.members),
            "num_non_members": len(self.nodes.non_members),
            "gap": None if gap is None else {"untouched": gap.untouched, "touched": gap.touched},
            "nodes": table.astype(object).to_dict(orient="records"),
        }

    def __str__(self) -> str:
        return "\n".join([self.verdict, *self.findings])


def infer_certain(graph: Graph, model: Any, truth: Any = None) -> CertainInference:
    """Finds out who was certainly in the training sample of one model, and who was certainly not.

    Formal guarantee: none of statistics. If training decays the weights of the first layer, and drew on no node outside
    of the graph, a feature whose weights are nearly zero was in no member's input; the gap that separates such features
    from all others must be wide, or nothing is concluded (`certain_nodes`).

    Args:
        graph: The graph that the sample was drawn from.
        model: Weights: an `.npz` or `.safetensors` file, arrays by name, or an `nn.Module`.
        truth: Who was in, if that is known (see `released.known_members`).

    Raises:
        DataError: if the file is missing or damaged.
        InputError: if there are no weights of a first layer that fits the graph.
    """
    norms = first_layer_norms(Path(model) if isinstance(model, str) else model, graph)
    members = None if truth is None else known_members(truth, graph)
    return CertainInference(graph, norms, certain_nodes(norms, graph), members)
