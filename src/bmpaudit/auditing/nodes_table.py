"""One row per node: who it is, how the attack fared, and what it leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bmpaudit.arrays import Floats, Ints
from bmpaudit.auditing.attack_step import Attacks
from bmpaudit.auditing.estimate_step import Estimates
from bmpaudit.auditing.proof_step import ReleaseFindings
from bmpaudit.graph import Graph
from bmpaudit.reading.table import KNOWN_NUMBERS, NUMBERS, TEXT, Columns
from bmpaudit.samplers import Priors

if TYPE_CHECKING:
    import pandas as pd

CONSTANT = "constant decision"

_SIDES = ("models", "named", "wrong", "exposure", "exposure_low", "exposure_high")
NODE_COLUMNS: Columns = {
    **dict.fromkeys(("node", "degree", "component", "prior_prob", "prior_standard_error"), NUMBERS),
    **dict.fromkeys(("name", "class", "flag"), TEXT),
    "homophily": KNOWN_NUMBERS,
    **{f"{side}_{name}": KNOWN_NUMBERS for side in ("member", "non_member") for name in _SIDES},
    **dict.fromkeys(("num_out", "num_in", "false_positives", "false_negatives"), KNOWN_NUMBERS),
    **{
        f"{side}_{name}": KNOWN_NUMBERS
        for side in ("right", "left", "excess_right", "excess_left")
        for name in ("low", "median", "high")
    },
    **dict.fromkeys(("floor_right", "floor_left"), KNOWN_NUMBERS),
}
"""What the columns of the table hold."""


def node_homophily(graph: Graph) -> Floats:
    """The share of each node's neighbours that have its class; NaN without neighbours, shape (num_nodes,)."""
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    same = graph.labels[source] == graph.labels[graph.indices]
    with np.errstate(invalid="ignore"):
        return np.bincount(source, same, minlength=graph.num_nodes) / graph.degrees


def node_components(graph: Graph) -> Ints:
    """The connected component of each node, the largest being 0, shape (num_nodes,)."""
    from scipy.sparse.csgraph import connected_components  # takes long to import

    _, label = connected_components(graph.adjacency, directed=False)
    sizes = np.bincount(label)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[label]


def class_names(graph: Graph) -> list[str]:
    """The name of each class, or its number."""
    return list(graph.class_names or map(str, range(graph.num_classes)))


def nodes_table(
    graph: Graph, priors: Priors, attacks: Attacks, findings: ReleaseFindings, estimates: Estimates
) -> pd.DataFrame:
    """All nodes of the graph in their order; unknown values are missing (docs/audit-folder.md)."""
    import pandas as pd

    counts = attacks.main_counts
    table = pd.DataFrame(
        {
            "node": np.arange(graph.num_nodes),
            "name": list(graph.node_names or map(str, range(graph.num_nodes))),
            "class": np.array(class_names(graph), dtype=object)[graph.labels],
            "degree": graph.degrees,
            "homophily": node_homophily(graph),
            "component": node_components(graph),
            "prior_prob": priors.prob,
            "prior_standard_error": priors.standard_error,
        }
    ).set_index("node")
    exposure = findings.exposure.exposure
    for side, exposed in (("member", exposure.member_nodes), ("non_member", exposure.non_member_nodes)):
        columns = {
            f"{side}_models": exposed.num_models,
            f"{side}_named": exposed.num_named,
            f"{side}_wrong": exposed.num_wrong,
            f"{side}_exposure": exposed.share,
            f"{side}_exposure_low": exposed.low,
            f"{side}_exposure_high": exposed.high,
        }
        table = table.join(pd.DataFrame(columns, index=pd.Index(exposed.node, name="node")))
        whole = [f"{side}_{name}" for name in ("models", "named", "wrong")]
        table[whole] = table[whole].astype("Int64")
    audited = pd.DataFrame(
        {
            "num_out": counts.num_out,
            "num_in": counts.num_in,
            "false_positives": counts.false_positives,
            "false_negatives": counts.false_negatives,
        },
        index=pd.Index(counts.node, name="node"),
        dtype="Int64",
    )
    leaked = estimates.leakage.to_frame().set_index("node").drop(columns="is_constant")
    table = table.join(audited).join(leaked)
    flag = pd.Series("", index=table.index, dtype=object)
    flag[counts.node[counts.is_constant]] = CONSTANT
    for left in counts.not_auditable:
        flag[left.node] = f"not auditable: {left.reason}"
    table["flag"] = flag
    return table.reset_index()
