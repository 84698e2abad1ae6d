"""One row per node: who it is, how the attack fared, what it leaks, and in which order to look at them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bmpaudit.attack.certain import CertainCounts, Holders
from bmpaudit.auditing.stages import AccessFindings, Attacks, Estimates
from bmpaudit.graph import Graph
from bmpaudit.io.readers import FLAGS, KNOWN_NUMBERS, NUMBERS, TEXT, Columns
from bmpaudit.samplers import Priors
from bmpaudit.util.values import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

CONSTANT = "constant decision"

_COLUMNS_OF_SIDE = ("models", "named", "wrong", "exposure", "exposure_low", "exposure_high")
_ERRORS = ("num_out", "num_in", "false_positives", "false_negatives")
NODE_COLUMNS: Columns = {
    **dict.fromkeys(("node", "degree", "component", "prior_prob", "prior_standard_error"), NUMBERS),
    **dict.fromkeys(("name", "class", "flag"), TEXT),
    "homophily": KNOWN_NUMBERS,
    **{f"{side}_{name}": KNOWN_NUMBERS for side in ("member", "non_member") for name in _COLUMNS_OF_SIDE},
    "p_value": KNOWN_NUMBERS,
    "is_leaking": FLAGS,
    **dict.fromkeys(("member_certain", "non_member_certain", "certain_wrong", "telling_feature"), KNOWN_NUMBERS),
    **dict.fromkeys(_ERRORS, KNOWN_NUMBERS),
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
    order = np.argsort(-np.bincount(label), kind="stable")
    rank: Ints = np.argsort(order)
    return rank[label]


def node_columns(graph: Graph) -> dict[str, Any]:
    """Who each node is: number, name, class and degree. What has no name goes by its number."""
    class_names = list(graph.class_names or map(str, range(graph.num_classes)))
    return {
        "node": np.arange(graph.num_nodes),
        "name": list(graph.node_names or map(str, range(graph.num_nodes))),
        "class": np.array(class_names, dtype=object)[graph.labels],
        "degree": graph.degrees,
    }


def nodes_table(
    graph: Graph,
    priors: Priors,
    attacks: Attacks,
    findings: AccessFindings,
    estimates: Estimates,
    certain: CertainCounts | None,
) -> pd.DataFrame:
    """All nodes of the graph in their order; unknown values are missing (docs/audit-folder.md)."""
    import pandas as pd

    counts = attacks.main_counts
    table = pd.DataFrame(
        {
            **node_columns(graph),
            "homophily": node_homophily(graph),
            "component": node_components(graph),
            "prior_prob": priors.prob,
            "prior_standard_error": priors.standard_error,
        }
    ).set_index("node")
    exposure = findings.exposure.exposure
    for side, exposed in (("member", exposure.member_nodes), ("non_member", exposure.non_member_nodes)):
        numbers = (exposed.num_models, exposed.num_named, exposed.num_wrong)
        columns = dict(zip(_COLUMNS_OF_SIDE, (*numbers, exposed.share, exposed.low, exposed.high), strict=True))
        joined = pd.DataFrame(columns, index=pd.Index(exposed.node, name="node")).add_prefix(f"{side}_")
        table = table.join(joined)
        are_numbers = joined.columns[: len(numbers)]
        table[are_numbers] = table[are_numbers].astype("Int64")
    test = attacks.permutation_test
    table["p_value"] = pd.Series(test.node_p_value, index=test.node)
    table["is_leaking"] = np.isin(table.index, test.node[test.is_leaking])
    names = ("member_certain", "non_member_certain", "certain_wrong", "telling_feature")
    known = (None,) * len(names) if certain is None else (*certain, Holders(graph).rarest_feature())
    for name, values in zip(names, known, strict=True):
        table[name] = pd.Series(pd.NA if values is None else values, index=table.index, dtype="Int64")
    table.loc[(table["telling_feature"] < 0).fillna(value=False), "telling_feature"] = pd.NA
    audited = pd.DataFrame(
        {name: getattr(counts, name) for name in _ERRORS}, index=pd.Index(counts.node, name="node"), dtype="Int64"
    )
    leaked = estimates.leakage.to_frame().set_index("node").drop(columns="is_constant")
    table = table.join(audited).join(leaked)
    flag = pd.Series("", index=table.index, dtype=object)
    flag[counts.node[counts.is_constant]] = CONSTANT
    for each in counts.not_auditable:
        flag[each.node] = f"not auditable: {each.reason}"
    table["flag"] = flag
    return table.reset_index()


# Which nodes are most at risk: by exposure, never by a region that is symmetric under inversion.

Side = Literal["member", "non_member"]
"""Whether nodes are named as members or as non-members."""


def ranked_nodes(nodes: pd.DataFrame, side: Side = "member") -> pd.DataFrame:
    """The rows of the table of nodes (docs/audit-folder.md), those most at risk first.

    Nodes are ordered by the lower limit of their exposure times the share of models naming them that are right, then by
    the exposure itself. Of nodes that are equal in this, such as those that nobody names, the ones proven to leak come
    first, then those of smaller p-value, then those that the attack is right about more often, then by their number.
    Nodes of unknown exposure come last.
    """
    columns = [f"{side}_{name}" for name in ("exposure", "exposure_low", "named", "wrong")]
    share, low, named, wrong = _numbers(nodes, columns)
    risk = low * named / np.maximum(named + wrong, 1)
    (p_value,) = _numbers(nodes, ["p_value"])
    keys = (-node_accuracy(nodes), p_value, ~nodes["is_leaking"].to_numpy(), -share, -risk)  # NaN comes last
    return nodes.iloc[np.lexsort((nodes["node"].to_numpy(), *keys, np.isnan(share)))]


def node_accuracy(nodes: pd.DataFrame) -> Floats:
    """How often the attack's decision about each node is right, members and non-members counting alike, shape (N,).

    1/2 + m/(m + 2) (1/2 - (A/n0 + B/n1)/2) with m = min(n0, n1): guessing and decisions that never vary have 1/2, and
    few challenges on either side stay close to it. NaN for nodes that were not audited.
    """
    num_out, num_in, false_positives, false_negatives = _numbers(nodes, _ERRORS)
    fewest = np.minimum(num_out, num_in)
    error = (false_positives / np.maximum(num_out, 1) + false_negatives / np.maximum(num_in, 1)) / 2
    accuracy: Floats = 0.5 + fewest / (fewest + 2) * (0.5 - error)
    return accuracy


def _numbers(nodes: pd.DataFrame, columns: Iterable[str]) -> list[Floats]:
    """Columns as numbers, NaN where a value is missing."""
    return [nodes[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in columns]
