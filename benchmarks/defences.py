"""What defences hide from an adversary with more or less access, and what they cost in accuracy.

python benchmarks/defences.py [--data cora citeseer] [--models 128] [--seed 0]

GCNs on a uniform quarter of the nodes, trained in other ways or on other features, and a model with a privacy
guarantee. Of each the held-out accuracy, and how many training nodes of one model are named correctly with 99 %
certainty, on average, from labels, scores, answers to any query, and weights. Hashed features are sums of features with
random signs in 64 buckets; reduced ones are 64 principal components of all nodes' features, which are taken to be
public.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

import bmpaudit
from bmpaudit import datasets
from bmpaudit.auditing import Runtime
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GCN, PrivateSGC, Training
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import ACCESSES

BUCKETS = 64


def hashed(graph: Graph) -> Graph:
    """The graph with features in random buckets."""
    rng, number = np.random.default_rng(0), graph.num_features
    signs, bucket = rng.choice([-1.0, 1.0], number), rng.integers(0, BUCKETS, number)
    to_buckets = scipy.sparse.csr_array((signs, (np.arange(number), bucket)), shape=(number, BUCKETS))
    return with_features(graph, graph.features @ to_buckets)


def reduced(graph: Graph) -> Graph:
    """The graph with principal components as features, of variance 1."""
    dense = graph.dense_features.astype(np.float64)
    left, _, _ = np.linalg.svd(dense - dense.mean(axis=0), full_matrices=False)
    return with_features(graph, left[:, :BUCKETS] * np.sqrt(graph.num_nodes))


def with_features(graph: Graph, features: Any) -> Graph:
    """The graph with other features."""
    dense = features.toarray() if scipy.sparse.issparse(features) else features
    return Graph.from_scipy(graph.adjacency, dense.astype(np.float32), graph.labels)


def defences(graph: Graph) -> Iterator[tuple[str, Graph, dict[str, Any]]]:
    """Name, graph and settings of each."""
    usual = Training()
    yield "gcn", graph, {}
    for decay in (0.0, 5e-3, 5e-2):
        yield f"weight decay {decay:g}", graph, {"training": replace(usual, weight_decay=decay)}
    for dropout in (0.0, 0.8):
        yield f"dropout {dropout:g}", graph, {"model": GCN(dropout=dropout)}
    yield "early stopping", graph, {"training": replace(usual, validation_share=0.2, patience=10)}
    yield "epochs 20", graph, {"training": replace(usual, epochs=20)}
    yield f"hashed to {BUCKETS}", hashed(graph), {}
    yield f"{BUCKETS} components", reduced(graph), {}
    for epsilon in (8.0, 1.0):
        yield f"private-sgc, ε {epsilon:g}", graph, {"model": PrivateSGC(epsilon=epsilon)}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "citeseer"])
    parser.add_argument("--models", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| setting | accuracy | " + " | ".join(ACCESSES) + " |")
    for data in arguments.data:
        for name, graph, settings in defences(datasets.load(data)):
            plan = AuditPlan(
                shadows=arguments.models, seed=arguments.seed, releases="clean", definitions="bmp-r", **settings
            )
            main = bmpaudit.audit(graph, plan, pictures="none", runtime=Runtime(quiet=True)).result.main
            cells = [
                f"{main.ladder[access].exposure.named(0.99).correct:.1f}" if access in main.ladder else "–"
                for access in ACCESSES
            ]
            accuracy = "–" if main.held_out_accuracy is None else f"{main.held_out_accuracy:.1%}"
            print(f"| {data}, {name} | {accuracy} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
