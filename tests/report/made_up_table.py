"""A graph and a table of its nodes as an audit would leave them, of any size, without an audit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bmpaudit.graph import Graph

NUM_MODELS = 200


def made_up_graph(num_nodes: int, num_edges: int) -> Graph:
    """Hubs, many nodes of small degree, and some without neighbours."""
    rng = np.random.default_rng(3)
    pairs = (num_nodes * rng.random((num_edges, 2)) ** 2).astype(np.int64)
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    labels = np.concatenate([np.arange(20), rng.integers(0, 20, num_nodes - 20)])
    features = np.ones((num_nodes, 1), dtype=np.float32)
    names = [f"user {node} of a long name" for node in range(num_nodes)]
    return Graph.from_edges(pairs, features, labels, node_names=names)


def made_up_nodes(graph: Graph) -> pd.DataFrame:
    """A table as an audit of the graph would have it (docs/audit-folder.md)."""
    rng = np.random.default_rng(4)
    number = graph.num_nodes
    prior = rng.beta(5, 14, number)
    num_in = rng.binomial(NUM_MODELS, prior)
    num_out = NUM_MODELS - num_in
    table = pd.DataFrame({"node": np.arange(number), "name": list(graph.node_names or ()), "degree": graph.degrees})
    table["class"] = [f"class {label}" for label in graph.labels]
    table["homophily"] = np.where(graph.degrees > 0, rng.random(number).round(1), np.nan)
    table["component"], table["prior_prob"], table["prior_standard_error"] = 0, prior, 0.001
    for side, models in (("member", num_in), ("non_member", num_out)):
        named = rng.binomial(models, rng.beta(0.3, 2.0, number))
        share = np.where(models > 0, named / np.maximum(models, 1), np.nan)
        counts = {f"{side}_models": models, f"{side}_named": named, f"{side}_wrong": rng.binomial(named, 0.1)}
        for name, values in counts.items():
            table[name] = pd.array(values, dtype="Int64")
        table[f"{side}_exposure"] = share
        table[f"{side}_exposure_low"], table[f"{side}_exposure_high"] = 0.8 * share, 0.2 + 0.8 * share
    table["is_leaking"] = np.arange(number) % 80 == 3
    table["p_value"] = np.where(table["is_leaking"], 0.005, rng.random(number))
    table["num_out"], table["num_in"] = num_out, num_in
    table["false_positives"], table["false_negatives"] = rng.binomial(num_out, 0.3), rng.binomial(num_in, 0.4)
    floor = np.log(prior / (1 - prior))
    for side, sign in (("right", 1.0), ("left", -1.0)):
        table[f"floor_{side}"] = sign * floor
        for end, shift in (("low", 0.5), ("median", 1.0), ("high", 1.5)):
            table[f"{side}_{end}"] = np.where(np.arange(number) % 50 == 7, np.nan, sign * floor + shift * rng.random())
    table["excess_right_median"] = table["right_median"] - floor
    table["flag"] = ""
    return table
