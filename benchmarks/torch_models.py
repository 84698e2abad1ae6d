"""A user's own PyTorch model: one process against two, and several models at once, on small, large and dense graphs.

python benchmarks/torch_models.py [--quick]

One process and two train the same models, in turn. The ratio by the clock needs two quiet cores; processor time needs
none.

Memory that PyTorch frees goes back to the operating system, as glibc has it, or is used again, as the engine has it.

Several models at once are one call of PyTorch for eight models: `torch.func.vmap` over their stacked parameters, the
samples padded to the same number of edges. What this can save is the time that an epoch takes however small the graph,
which is measured on ten nodes.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import TorchModel, Training
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines import processes
from bmpaudit.shadow.engines.processes import reused_memory
from bmpaudit.shadow.engines.torch import TorchEngine, TorchTrainer, one_torch_thread, train_on_sample

GRAPHS = ("cora", "pubmed", "amazon_photo")
MODELS_AT_ONCE = 8
Train = Callable[[list["TwoLayers"], list[Data], int], None]


class Sage(nn.Module):
    """GraphSAGE as in PyTorch Geometric's examples."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = SAGEConv(num_features, 16), SAGEConv(16, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = F.dropout(F.relu(self.conv1(x, edge_index)), 0.5, self.training)
        out: torch.Tensor = self.conv2(x, edge_index)
        return out


@dataclass(frozen=True)
class Spent:
    """Seconds for one model."""

    clock: float
    processor: float


def processor_seconds(processes: list[int]) -> float:
    """Processor time of this process and of others, as Linux counts it."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # user and system
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def new_batch(graph: Graph, plan: ShadowPlan, first: int, count: int) -> ShadowBatch:
    """Models that are not trained yet."""
    memberships = draw_memberships(graph, plan.sampler, count, plan.seed, first=first)
    return ShadowBatch.empty(graph, plan, np.arange(first, first + count), memberships)


def measure(engine: TorchEngine, batch: ShadowBatch, num_processes: int) -> Spent:
    """Trains a batch."""
    clock, processor = time.perf_counter(), processor_seconds(engine.processes)
    engine.fill(batch, num_processes, lambda _: None)
    spent = time.perf_counter() - clock, processor_seconds(engine.processes) - processor
    return Spent(*(seconds / len(batch.indices) for seconds in spent))


def start(engine: TorchEngine, batch: ShadowBatch) -> float:
    """Seconds until the second process has joined in."""
    clock = time.perf_counter()

    def wait(_: int) -> None:
        while not engine.processes:
            time.sleep(0.01)

    engine.fill(batch, 2, wait)
    return time.perf_counter() - clock


def compare(name: str, epochs: int, count: int, repeats: int) -> None:
    """Prints the ratio for one graph."""
    graph = datasets.load(name)
    plan = ShadowPlan(Uniform(0.25), TorchModel(Sage), Training(epochs=epochs), engine="torch")
    engine = TorchEngine(graph, plan)
    waited = start(engine, new_batch(graph, plan, 0, 2))
    alone, together = [], []
    for turn in range(repeats):
        batches = [new_batch(graph, plan, turn * count, count) for _ in range(2)]
        alone.append(measure(engine, batches[0], 1))
        together.append(measure(engine, batches[1], 2))
        same = batches[0].statistics.tobytes() == batches[1].statistics.tobytes()
        if not same:
            raise SystemExit(f"{name}: one process and two disagree")
    engine.close()
    one, two = (statistics.median(spent.clock for spent in turns) for turns in (alone, together))
    work_one, work_two = (statistics.median(spent.processor for spent in turns) for turns in (alone, together))
    print(
        f"{name:<14}{one * 1e3:9.0f} ms {two * 1e3:9.0f} ms {one / two:7.2f}x {work_one * 1e3:9.0f} ms "
        f"{work_two * 1e3:9.0f} ms {work_one / work_two:8.0%} {waited:8.1f} s",
        flush=True,
    )


class TwoLayers(nn.Module):
    """Two convolutions of a kind, with dropout between them."""

    def __init__(self, convolution: type[nn.Module], num_features: int, num_classes: int) -> None:
        super().__init__()
        heads = {"heads": 8} if convolution is GATConv else {}
        self.conv1 = convolution(num_features, 4 if heads else 16, **heads)
        self.conv2 = convolution(32 if heads else 16, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        out: torch.Tensor = self.conv2(F.dropout(F.relu(self.conv1(x, edge_index)), 0.5, self.training), edge_index)
        return out


def one_by_one(modules: list[TwoLayers], samples: list[Data], epochs: int) -> None:
    """Trains modules as the torch engine does."""
    for module, sample in zip(modules, samples, strict=True):
        train_on_sample(module, sample, Training(epochs=epochs), seed=0, index=0)


def all_at_once(modules: list[TwoLayers], samples: list[Data], epochs: int) -> None:
    """Trains modules in one call; an extra node without a label takes the edges that fill up."""
    num_nodes, num_edges = samples[0].num_nodes, max(sample.num_edges for sample in samples)
    x = torch.stack([F.pad(sample.x, (0, 0, 0, 1)) for sample in samples])
    y = torch.stack([sample.y for sample in samples])
    edge_index = torch.stack(
        [F.pad(sample.edge_index, (0, num_edges - sample.num_edges), value=num_nodes) for sample in samples]
    )
    stacked, _ = torch.func.stack_module_state(modules)
    parameters = {name: values.detach().requires_grad_() for name, values in stacked.items()}

    def loss(own: dict[str, torch.Tensor], x: torch.Tensor, edge_index: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = torch.func.functional_call(modules[0], own, (x, edge_index))
        return F.cross_entropy(logits[:num_nodes], y)

    losses = torch.func.vmap(loss, randomness="different")
    optimizer = torch.optim.Adam(parameters.values(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        losses(parameters, x, edge_index, y).sum().backward()
        optimizer.step()


def epoch_time(train: Train, convolution: type[nn.Module], samples: list[Data], num_classes: int, epochs: int) -> float:
    """Least processor time of three runs for one epoch of one model."""
    times = []
    for _ in range(3):
        modules = [TwoLayers(convolution, samples[0].num_features, num_classes).train() for _ in samples]
        start = time.process_time()
        train(modules, samples, epochs)
        times.append(time.process_time() - start)
    return min(times) / epochs / len(samples)


def draw_samples(graph: Graph, count: int) -> list[Data]:
    """The subgraphs that samples of a quarter of the nodes induce."""
    data = graph.to_pyg()
    flags = draw_memberships(graph, Uniform(0.25), count, 0)
    return [data.subgraph(torch.from_numpy(np.flatnonzero(row))) for row in flags]


def model_time(name: str, epochs: int, around: Callable[[], AbstractContextManager[None]]) -> float:
    """Least processor time of a model in a context."""
    graph = datasets.load(name)
    plan = ShadowPlan(Uniform(0.25), TorchModel(Sage), Training(epochs=epochs), engine="torch")
    trainer = TorchTrainer.from_graph(graph, plan, torch.device("cpu"))
    return min(processor_time(lambda: trainer.fill(new_batch(graph, plan, 0, 1)), around) for _ in range(3))


def compare_memory(epochs: int) -> None:
    """Prints what it saves to use freed memory again; glibc's settings are not quite the same after that."""
    print("freed memory given back or used again, processor time for a model")
    print(f"{'':<14}{'given back':>12}{'used again':>13}{'ratio':>8}")
    given_back = [model_time(name, epochs, nullcontext) for name in GRAPHS]
    used_again = [model_time(name, epochs, reused_memory) for name in GRAPHS]
    for name, plain, reused in zip(GRAPHS, given_back, used_again, strict=True):
        print(f"{name:<14}{plain * 1e3:9.0f} ms {reused * 1e3:9.0f} ms {plain / reused:7.2f}x", flush=True)


def processor_time(work: Callable[[], None], around: Callable[[], AbstractContextManager[None]]) -> float:
    """Of the second of two runs on one thread."""
    with one_torch_thread(), around():
        work()
        start = time.process_time()
        work()
        return time.process_time() - start


def compare_at_once(name: str, epochs: int) -> None:
    """Prints what one call for several models costs, for each kind of convolution."""
    graph = datasets.load(name)
    samples = draw_samples(graph, MODELS_AT_ONCE)
    tiny = [Data(x=sample.x[:10, :4], edge_index=torch.arange(10).repeat(2, 1), y=sample.y[:10]) for sample in samples]
    for convolution in (GCNConv, SAGEConv, GATConv):
        alone = epoch_time(one_by_one, convolution, samples, graph.num_classes, epochs)
        fixed = epoch_time(one_by_one, convolution, tiny, graph.num_classes, epochs)
        best = alone / (alone - fixed * (1 - 1 / MODELS_AT_ONCE))
        try:
            at_once = epoch_time(all_at_once, convolution, samples, graph.num_classes, epochs)
            outcome = f"{at_once * 1e3:8.1f} ms {alone / at_once:7.2f}x"
        except RuntimeError as failure:
            outcome = f" refused: {str(failure).partition('.')[0]}"
        print(
            f"{name:<14}{convolution.__name__:<9}{alone * 1e3:8.1f} ms {fixed * 1e3:8.1f} ms {best:7.2f}x{outcome}",
            flush=True,
        )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer epochs and repeats")
    quick = parser.parse_args().quick
    processes.SECONDS_ALONE = 0.0
    compare_memory(20 if quick else 100)
    print(f"\n{'':<14}{'by the clock, a model':^33}{'processor time, a model':^36}")
    print(f"{'':<14}{'one':>12}{'two':>13}{'ratio':>8}{'one':>13}{'two':>13}{'efficiency':>11}{'start':>8}")
    for name in GRAPHS:
        compare(name, 20 if quick else 100, 4 if quick else 8, 3 if quick else 5)
    print(f"\n{MODELS_AT_ONCE} models at once, processor time for an epoch of a model")
    print(f"{'':<14}{'':<9}{'alone':>11}{'fixed':>12}{'at best':>8}{'at once':>11}{'ratio':>8}")
    with one_torch_thread(), reused_memory():
        for name in GRAPHS:
            compare_at_once(name, 5 if quick else 20)


if __name__ == "__main__":
    main()
