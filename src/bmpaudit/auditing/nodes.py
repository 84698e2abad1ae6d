"""One row per node: who it is, how the attack fared, what it leaks, and in which order to look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from bmpaudit.auditing.stages import Attacks, Estimates, ReleaseFindings
from bmpaudit.graph import Graph
from bmpaudit.io.readers import KNOWN_NUMBERS, NUMBERS, TEXT, Columns
from bmpaudit.samplers import Priors
from bmpaudit.util.values import Floats, Ints

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


# Which nodes are most at risk: by exposure, never by a region that is symmetric under inversion.


Side = Literal["member", "non_member"]
"""Whether nodes are named as members or as non-members."""


def ranked_nodes(nodes: pd.DataFrame, side: Side = "member") -> pd.DataFrame:
    """The rows of the table of nodes (docs/audit-folder.md), those most at risk first.

    Nodes are ordered by the lower limit of their exposure times the share of models naming them that are right, then by
    the exposure itself, then by how often the attack is right about them, then by their number. So a node that the
    attack gets wrong every time is never first, and where nobody is named at all the order still means something. Nodes
    of unknown exposure come last.
    """
    share, low, named, wrong = (
        nodes[f"{side}_{name}"].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in ("exposure", "exposure_low", "named", "wrong")
    )
    risk = low * named / np.maximum(named + wrong, 1)
    keys = (nodes["node"].to_numpy(), *(_descending(each) for each in (node_accuracy(nodes), share, risk)))
    return nodes.iloc[np.lexsort((*keys, np.isnan(share)))]


def node_accuracy(nodes: pd.DataFrame) -> Floats:
    """How often the attack's decision about each node is right, members and non-members counting alike, shape (N,).

    1/2 + m/(m + 2) (1/2 - (A/n0 + B/n1)/2) with m = min(n0, n1): guessing and decisions that never vary have 1/2, and
    few challenges on either side stay close to it. NaN for nodes that were not audited.
    """
    false_positives, num_out, false_negatives, num_in = (
        nodes[name].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in ("false_positives", "num_out", "false_negatives", "num_in")
    )
    fewest = np.minimum(num_out, num_in)
    error = (false_positives / np.maximum(num_out, 1) + false_negatives / np.maximum(num_in, 1)) / 2
    accuracy: Floats = 0.5 + fewest / (fewest + 2) * (0.5 - error)
    return accuracy


def _descending(values: Floats) -> Floats:
    return np.where(np.isnan(values), np.inf, -values)
