"""What the guarantee of `PrivateSGC` costs in accuracy, and how broken it must be before an audit notices.

    python examples/private_sgc.py accuracy [--data pubmed cora] [--models 4]
    python examples/private_sgc.py broken [--nodes 4 24] [--models 120 1000] [--share 1 0.5 0.1 0]

The first prints held-out accuracy with half of the nodes in the sample. The second audits a mechanism that adds only a
share of its noise, on a graph made to show it: no edges, each node a feature of its own.
"""

import argparse
import tempfile
from dataclasses import dataclass

import numpy as np

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit
from bmpaudit.graph.graph import Graph
from bmpaudit.models import PrivateSGC
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import Clean, FullEdges
from bmpaudit.samplers import Bernoulli, Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows

EPSILONS = (0.5, 1.0, 2.0, 4.0, 16.0, 1e9)
QUIET = Runtime(quiet=True)


@dataclass(frozen=True)
class LessNoise(PrivateSGC):
    """A broken mechanism.

    Attributes:
        share: Share of the noise that is added.
    """

    share: float = 1.0

    @property
    def noise_scale(self) -> float:
        """Less than the proof asks for."""
        return self.share * super().noise_scale


def held_out_accuracy(graph: Graph, model: PrivateSGC, num_models: int) -> float:
    """Mean over some models, each trained on half of the nodes."""
    plan = ShadowPlan(Uniform(0.5), model, releases=(Clean(),), queries=(FullEdges(),), engine="torch")
    with tempfile.TemporaryDirectory() as folder:
        return float(train_shadows(graph, plan, num_models, folder).held_out_accuracy.mean())


def audit_broken(num_nodes: int, num_models: int, share: float) -> Audit:
    """Audits the mechanism with a share of its noise, ε = 1."""
    graph = Graph.from_edges(
        np.empty((0, 2), dtype=np.int64), np.eye(num_nodes, dtype=np.float32), np.arange(num_nodes) % 2
    )
    model = LessNoise(1.0, 0, max_degree=1, dimensions=num_nodes, regularization=1.0, max_norm=50.0, share=share)
    plan = AuditPlan(
        model=model,
        sampler=Bernoulli(0.5),
        shadows=num_models,
        releases="clean",
        queries="none",
        definitions="bmp-r",
        attack="gaussian",
    )
    return audit(graph, plan, runtime=QUIET)


def print_accuracy(names: list[str], num_models: int) -> None:
    """A row for each graph, a column for each ε, and the share of the largest class."""
    print("held-out accuracy", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "largest class", sep=" | ")
    for name in names:
        graph = datasets.load(name)
        cells = [held_out_accuracy(graph, PrivateSGC(epsilon), num_models) for epsilon in EPSILONS]
        largest = np.bincount(graph.labels).max() / graph.num_nodes
        print(name, *(f"{cell:.2f}" for cell in (*cells, largest)), sep=" | ", flush=True)


def print_broken(sizes: list[int], numbers: list[int], shares: list[float]) -> None:
    """What is proven of ε_R, ε_L and MP, and whether that contradicts the guarantee."""
    for num_nodes in sizes:
        for num_models in numbers:
            for share in shares:
                done = audit_broken(num_nodes, num_models, share)
                proof = done.main_findings.proof
                bounds = [] if proof is None else [bound.proven for bound in proof.bounds]
                proven = ", ".join("nothing" if bound is None else f"{bound:.2f}" for bound in bounds)
                is_caught = any("is broken" in caution for caution in done.summary["cautions"])
                verdict = "caught" if is_caught else "not caught"
                about = f"{num_nodes} nodes, {num_models:,} models, {share:g} of the noise"
                print(f"{about}: proven ε_R, ε_L, MP ε {proven}; {verdict}", flush=True)


def main() -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("accuracy", "broken"))
    parser.add_argument("--data", nargs="+", default=["pubmed", "cora"])
    parser.add_argument("--nodes", nargs="+", type=int, default=[4, 24])
    parser.add_argument("--models", nargs="+", type=int)
    parser.add_argument("--share", nargs="+", type=float, default=[1.0, 0.5, 0.2, 0.1, 0.05, 0.0])
    options = parser.parse_args()
    if options.what == "accuracy":
        print_accuracy(options.data, (options.models or [4])[0])
    else:
        print_broken(options.nodes, options.models or [120, 1_000], options.share)


if __name__ == "__main__":
    main()
