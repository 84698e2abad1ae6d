"""What the guarantees of `DPMLP` and `DPGCN` cost in accuracy, and how broken DP-SGD must be before an audit notices.

    python examples/dp_sgd.py accuracy [--data cora pubmed] [--models 4]
    python examples/dp_sgd.py broken [--nodes 4 24] [--models 120 1000] [--share 1 0.1 0] [--clip 10 1000]

The first prints held-out accuracy with half of the nodes in the sample, and the seconds of processor time of a model.
The second audits DP-SGD that adds only a share of its noise, or clips to a multiple of the length that it should, on a
graph made to show it: pairs of nodes, each node a feature of its own, every row in every batch.
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit
from bmpaudit.graph.graph import Graph
from bmpaudit.models import DPGCN, DPMLP
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import Clean, FullEdges
from bmpaudit.samplers import Bernoulli, Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
QUIET = Runtime(quiet=True)
SHARP: dict[str, Any] = {
    "delta": 1e-8,
    "steps": 30,
    "sampling_rate": 1.0,
    "clip": 0.01,
    "step_size": 0.05,
    "hidden": 64,
}


class Broken:
    """Training that differs from what was accounted for."""

    share: float
    times_clip: float

    def train(self, module: Any, data: Any, seed: int) -> None:
        """With a share of the noise, and rows a multiple of the promised length."""
        from bmpaudit.models import torch_modules as dp_module

        usual = dp_module.private_optimizer

        def other(optimizer: Any, model: Any, draws: Any) -> Any:
            made = usual(optimizer, model, draws)
            made.noise_multiplier *= self.share / self.times_clip
            made.max_grad_norm *= self.times_clip
            return made

        dp_module.private_optimizer = other
        try:
            module.fit(data.x, data.edge_index, data.y, seed)
        finally:
            dp_module.private_optimizer = usual


@dataclass(frozen=True)
class BrokenMLP(Broken, DPMLP):
    """A broken mechanism.

    Attributes:
        share: Share of the noise that is added.
        times_clip: Multiple of `clip` that rows are clipped to.
    """

    share: float = 1.0
    times_clip: float = 1.0


@dataclass(frozen=True)
class BrokenGCN(Broken, DPGCN):
    """A broken mechanism.

    Attributes:
        share: Share of the noise that is added.
        times_clip: Multiple of `clip` that rows are clipped to.
    """

    share: float = 1.0
    times_clip: float = 1.0


def pairs_of_nodes(num_nodes: int) -> Graph:
    """Nodes two by two, each with a feature of its own."""
    nodes = np.arange(num_nodes)
    return Graph.from_edges(nodes.reshape(-1, 2), np.eye(num_nodes, dtype=np.float32), nodes % 2)


def audit_broken(model: BrokenMLP | BrokenGCN, num_nodes: int, num_models: int) -> Audit:
    """Audits a mechanism on the graph that is made to show it."""
    plan = AuditPlan(
        model=model,
        sampler=Bernoulli(0.5),
        shadows=num_models,
        releases="clean",
        queries="none",
        definitions="bmp-r",
        attack="gaussian",
    )
    return audit(pairs_of_nodes(num_nodes), plan, runtime=QUIET)


def print_broken(sizes: list[int], numbers: list[int], shares: list[float], lengths: list[float]) -> None:
    """What is proven of ε_R, ε_L and MP, and whether that contradicts the guarantee of ε = 1."""
    ways = [(share, 1.0) for share in shares] + [(1.0, length) for length in lengths]
    for num_nodes in sizes:
        for num_models in numbers:
            for kind, more in ((BrokenMLP, {}), (BrokenGCN, {"max_degree": 1})):
                for share, times_clip in ways:
                    settings = SHARP | more | {"dimensions": num_nodes}
                    model = kind(epsilon=1.0, share=share, times_clip=times_clip, **settings)
                    done = audit_broken(model, num_nodes, num_models)
                    proof = done.main_findings.proof
                    bounds = [] if proof is None else [bound.proven for bound in proof.bounds]
                    proven = ", ".join("nothing" if bound is None else f"{bound:.2f}" for bound in bounds)
                    is_caught = any("is broken" in caution for caution in done.summary["cautions"])
                    verdict = "caught" if is_caught else "not caught"
                    way = f"{share:g} of the noise, {times_clip:g} times the length"
                    about = f"{kind.__name__}, {num_nodes} nodes, {num_models:,} models, {way}"
                    print(f"{about}: proven ε_R, ε_L, MP ε {proven}; {verdict}", flush=True)


def print_accuracy(names: list[str], num_models: int) -> None:
    """A row for each graph and model, a column for each ε, and the time of a model."""
    print("held-out accuracy", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "seconds a model", sep=" | ")
    for name in names:
        graph = datasets.load(name)
        for kind in (DPMLP, DPGCN):
            cells, seconds = [], []
            for epsilon in EPSILONS:
                model = kind(epsilon)
                model.training_graph(graph)  # finds the noise
                plan = ShadowPlan(Uniform(0.5), model, releases=(Clean(),), queries=(FullEdges(),), engine="torch")
                with tempfile.TemporaryDirectory() as folder:
                    train_shadows(graph, plan, 1, folder, num_threads=1)
                    start = time.process_time()
                    runs = train_shadows(graph, plan, 1 + num_models, folder, num_threads=1)
                    seconds.append((time.process_time() - start) / num_models)
                cells.append(float(runs.held_out_accuracy.mean()))
            shown = [f"{cell:.2f}" for cell in (*cells, min(seconds))]
            print(f"{name}, {kind.__name__}", *shown, sep=" | ", flush=True)


def main() -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("accuracy", "broken"))
    parser.add_argument("--data", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--nodes", nargs="+", type=int, default=[4, 24])
    parser.add_argument("--models", nargs="+", type=int)
    parser.add_argument("--share", nargs="*", type=float, default=[1.0, 0.5, 0.2, 0.1, 0.05, 0.0])
    parser.add_argument("--clip", nargs="*", type=float, default=[10.0, 100.0])
    options = parser.parse_args()
    if options.what == "accuracy":
        print_accuracy(options.data, (options.models or [4])[0])
    else:
        print_broken(options.nodes, options.models or [120, 1_000], options.share, options.clip)


if __name__ == "__main__":
    main()
