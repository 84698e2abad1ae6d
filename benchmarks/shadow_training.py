"""Training shadow models: the native engine against a plain PyTorch Geometric loop, side by side.

python benchmarks/shadow_training.py [--quick] [--models | --trainings]

Both do the same work for a model (sample, 100 epochs with dropout, margins of all nodes for four views), on one thread,
in turn, the native engine for as many models as an audit trains at once; ratios are of medians of processor time. The
graph is prepared for either before the clock starts, as it is once for all models of an audit. Then what an epoch's
arithmetic would take at rates that this machine reaches at most, which machine_limits.cpp measures (compiled with g++).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from plain_training import MINI_BATCHES, TRAININGS, Loop, full_batch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import APPNP as Propagation  # noqa: N811
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import APPNP, GAT, GCN, GIN, SAGE, SGC, NativeModel, Training
from bmpaudit.releases import Clean, NoisyLastLayer, OutputRelease
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.util.matrices import MODELS_PER_CHUNK
from bmpaudit.util.values import Floats32


@dataclass(frozen=True)
class Rounded(OutputRelease):
    """Logits with one digit."""

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        return logits.round(1)


class PlainGCN(nn.Module):
    """As in PyTorch Geometric's introduction."""

    def __init__(self, data: Data, num_classes: int) -> None:
        super().__init__()
        self.conv1, self.last = GCNConv(data.num_features, 16), GCNConv(16, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = F.dropout(F.relu(self.conv1(x, edge_index)), 0.5, self.training)
        out: torch.Tensor = self.last(x, edge_index)
        return out


class PlainSAGE(PlainGCN):
    """The same with the mean of the neighbours."""

    aggregation = "mean"

    def __init__(self, data: Data, num_classes: int) -> None:
        super().__init__(data, num_classes)
        self.conv1 = SAGEConv(data.num_features, 16, aggr=self.aggregation)
        self.last = SAGEConv(16, num_classes, aggr=self.aggregation)


class PlainMaxSAGE(PlainSAGE):
    """The same with the largest of the neighbours."""

    aggregation = "max"


class PlainGIN(nn.Module):
    """Sums and perceptrons with batch normalisation."""

    def __init__(self, data: Data, num_classes: int) -> None:
        super().__init__()
        self.last = nn.Linear(16, num_classes)
        first = [nn.Linear(data.num_features, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 16)]
        second = [nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), self.last]
        self.conv1, self.conv2 = GINConv(nn.Sequential(*first)), GINConv(nn.Sequential(*second))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = F.dropout(F.relu(self.conv1(x, edge_index)), 0.5, self.training)
        out: torch.Tensor = self.conv2(x, edge_index)
        return out


class PlainSGC(nn.Module):
    """As in PyTorch Geometric's examples, without the cache, which does not fit several graphs."""

    def __init__(self, data: Data, num_classes: int) -> None:
        super().__init__()
        self.last = SGConv(data.num_features, num_classes, K=2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        out: torch.Tensor = self.last(x, edge_index)
        return out


class PlainAPPNP(nn.Module):
    """As in PyTorch Geometric's examples."""

    def __init__(self, data: Data, num_classes: int) -> None:
        super().__init__()
        self.lin1, self.last = nn.Linear(data.num_features, 64), nn.Linear(64, num_classes)
        self.propagation = Propagation(10, 0.1)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = F.relu(self.lin1(F.dropout(x, 0.5, self.training)))
        x = self.last(F.dropout(x, 0.5, self.training))
        out: torch.Tensor = self.propagation(x, edge_index)
        return out


class PlainGAT(nn.Module):
    """As in PyTorch Geometric's examples."""

    def __init__(self, data: Data, num_classes: int) -> None:
        super().__init__()
        self.conv1 = GATConv(data.num_features, 4, heads=8, dropout=0.5)
        self.last = GATConv(32, num_classes, dropout=0.5)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = F.elu(self.conv1(F.dropout(x, 0.5, self.training), edge_index))
        out: torch.Tensor = self.last(F.dropout(x, 0.5, self.training), edge_index)
        return out


# Each native model with the plain one that does the same.
MODELS: dict[str, tuple[NativeModel, type[nn.Module]]] = {
    "GCN": (GCN(), PlainGCN),
    "GAT": (GAT(), PlainGAT),
    "SAGE": (SAGE(), PlainSAGE),
    "SAGE max": (SAGE(aggregation="max"), PlainMaxSAGE),
    "GIN": (GIN(), PlainGIN),
    "SGC": (SGC(), PlainSGC),
    "APPNP": (APPNP(), PlainAPPNP),
}


def plain_sample(data: Data, fraction: float) -> Data:
    """The graph of a random sample."""
    return data.subgraph(torch.randperm(data.num_nodes)[: int(fraction * data.num_nodes)])


def plain_model(data: Data, kind: type[nn.Module], num_classes: int, sample: Data, train: Loop = full_batch) -> None:
    """One shadow model, from its first weights to margins."""
    model = kind(data, num_classes)
    train(model, sample)
    model.eval()
    with torch.no_grad():
        for _ in ("clean", "noisy"):
            for edge_index in (data.edge_index, torch.empty((2, 0), dtype=torch.long)):
                logits = model(data.x, edge_index)
                own = logits.gather(1, data.y[:, None])[:, 0]
                others = logits.scatter(1, data.y[:, None], -torch.inf)
                _ = own - others.logsumexp(1)
            for parameter in model.last.parameters():
                parameter.add_(0.25 * torch.randn_like(parameter))


def native_models(engine: NativeEngine, count: int, num_threads: int = 1) -> None:
    """Shadow models from samples to margins, in memory."""
    graph, plan = engine.graph, engine.plan
    memberships = draw_memberships(graph, plan.sampler, count, plan.seed)
    batch = ShadowBatch.empty(graph, plan, np.arange(count), memberships)
    engine.fill(batch, num_threads, lambda _: None)


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Time of one run."""
    start = clock()
    work()
    return clock() - start


def without_zeros(graph: Graph) -> Graph:
    """The same graph with normal numbers as features: the worst case of dense ones."""
    features = np.random.default_rng(0).normal(size=(graph.num_nodes, graph.num_features)).astype(np.float32)
    return Graph.from_edges(graph.edges, features, graph.labels)


def compare(
    name: str, graph: Graph, fraction: float, model_name: str, repeats: int, training_name: str = "full batch"
) -> None:
    """Prints the ratio for one configuration."""
    data = graph.to_pyg()
    model, kind = MODELS[model_name]
    training, loop = TRAININGS[training_name]
    engine = NativeEngine(graph, ShadowPlan(Uniform(fraction), model, training))
    native_times, plain_times = [], []
    for _ in range(repeats):
        native_times.append(seconds(lambda: native_models(engine, MODELS_PER_CHUNK)) / MODELS_PER_CHUNK)
        start = time.process_time()
        sample = plain_sample(data, fraction)
        sampling = time.process_time() - start
        MINI_BATCHES.prepare(sample)
        plain_times.append(sampling + seconds(lambda: plain_model(data, kind, graph.num_classes, sample, loop)))  # noqa: B023
    native, plain = statistics.median(native_times), statistics.median(plain_times)
    label = f"{model_name}, {name} {fraction:.0%}" if loop is full_batch else f"{model_name}, {training_name}"
    print(f"{label:<30}{native * 1e3:8.1f} ms {plain * 1e3:9.0f} ms {plain / native:8.1f}x", flush=True)


def thread_scaling(graph: Graph, count: int) -> None:
    """Prints the gain of a second thread."""
    engine = NativeEngine(graph, ShadowPlan(Uniform(0.25)))
    one, two = (
        statistics.median(
            seconds(lambda t=t: native_models(engine, count, t), time.perf_counter)  # type: ignore[misc]
            for _ in range(3)
        )
        for t in (1, 2)
    )
    print(f"2 threads against 1, {count} models, by the clock: {one:.2f} s / {two:.2f} s = {one / two:.2f}x")


def cost_of_releases(graph: Graph, count: int) -> None:
    """Prints what a release in Python costs beside those in C++."""
    plan = ShadowPlan(Uniform(0.25), releases=(Clean(), NoisyLastLayer()))
    with_python = replace(plan, releases=(Clean(), Rounded()))
    native, python = (
        statistics.median(seconds(lambda p=p: native_models(NativeEngine(graph, p), count)) for _ in range(3))  # type: ignore[misc]
        for p in (plan, with_python)
    )
    print(f"a release in Python, {count} models: {python:.2f} s against {native:.2f} s = {python / native:.2f}x")


def cost_against_models(graph: Graph) -> None:
    """Prints the time of a whole run for several J."""
    for count in (100, 200, 400):
        with tempfile.TemporaryDirectory() as folder:
            spent = seconds(lambda: train_shadows(graph, ShadowPlan(Uniform(0.25)), count, folder, num_threads=1))  # noqa: B023
        print(f"J = {count}: {spent:.2f} s, {spent / count * 1e3:.1f} ms per model")


def cost_against_size(names: list[str]) -> None:
    """Prints the time of a model for graphs of several sizes."""
    for name in names:
        graph = datasets.load(name)
        engine = NativeEngine(graph, ShadowPlan(Uniform(0.25)))
        spent = statistics.median(seconds(lambda: native_models(engine, 3)) for _ in range(3)) / 3  # noqa: B023
        entries = (
            int(np.count_nonzero(graph.features)) if isinstance(graph.features, np.ndarray) else graph.features.nnz
        )
        print(f"{name}: {graph}, {entries:,} non-zero features: {spent * 1e3:.1f} ms per model")


def share_outside_training(graph: Graph, count: int) -> None:
    """Prints how much of a run is not spent in epochs; one epoch's time comes from runs of 100 and 200 epochs."""
    plan = ShadowPlan(Uniform(0.25))
    longer = replace(plan, training=Training(epochs=200))
    short, long = (
        statistics.median(seconds(lambda p=p: native_models(NativeEngine(graph, p), count)) for _ in range(3))  # type: ignore[misc]
        for p in (plan, longer)
    )
    with tempfile.TemporaryDirectory() as folder:
        whole = seconds(lambda: train_shadows(graph, plan, count, folder, num_threads=1))
    training = long - short
    print(
        f"{count} models: {whole:.2f} s in all, {training:.2f} s of it in training; "
        f"sampling, scoring and storing take {1 - training / whole:.0%}"
    )


MEMORY_SCRIPT = """
import sys, tempfile
from pathlib import Path
from bmpaudit import datasets
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
before = peak()
with tempfile.TemporaryDirectory() as folder:
    train_shadows(datasets.load("cora"), ShadowPlan(Uniform(0.25)), int(sys.argv[1]), folder)
print(peak() - before)
"""


def peak_memory(count: int) -> None:
    """Prints the peak memory of a whole run, in a process of its own."""
    command = [sys.executable, "-c", MEMORY_SCRIPT, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    print(f"peak memory, J = {count}: {float(done.stdout):.0f} MB above import")


def machine_limits() -> dict[str, float]:
    """What one core reaches at most: GB/s of streaming, Gflop/s of gathering rows of 16 floats and in registers."""
    source = Path(__file__).with_name("machine_limits.cpp")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "machine_limits"
        flags = ["-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-Wno-psabi"]
        subprocess.run(["g++", *flags, str(source), "-o", str(program)], check=True)  # noqa: S603, S607
        done = subprocess.run([str(program)], capture_output=True, text=True, check=True)  # noqa: S603
    limits: dict[str, float] = json.loads(done.stdout)
    print(
        "reading from memory {stream_memory:.0f}, L3 {stream_l3:.0f}, L2 {stream_l2:.0f}, L1 {stream_l1:.0f} GB/s; "
        "gathering from L1 {gather_l1:.0f} (of ones {gather_l1_ones:.0f}), L2 {gather_l2:.0f}, "
        "L3 {gather_l3:.0f} Gflop/s; "
        "in registers {arithmetic:.0f} Gflop/s".format(**limits)
    )
    return limits


def share_of_limit(name: str, graph: Graph, model: GCN | GAT, limits: dict[str, float], repeats: int) -> None:
    """Prints an epoch's time against what its arithmetic takes at the rates of `machine_limits`.

    Features and edges count at the rate of gathering from L1: features that are ones, and not dropped, at that of ones,
    and features without zeros at that in registers. Products of hidden units count at the rate in registers, the
    optimiser's 7 numbers a parameter at that of streaming from L2.
    """
    plan = ShadowPlan(Uniform(0.25), model)
    nodes = np.flatnonzero(draw_memberships(graph, plan.sampler, 1, 0)[0])
    features = graph.features[nodes]
    num_entries = int(np.count_nonzero(features)) if isinstance(features, np.ndarray) else features.nnz
    is_full = isinstance(features, np.ndarray) and num_entries == features.size
    num_edges = graph.adjacency[nodes][:, nodes].nnz + len(nodes)
    units, classes = model.hidden * (model.heads if isinstance(model, GAT) else 1), graph.num_classes
    parameters = (graph.num_features + 1) * units + (units + 1) * classes
    first = 2 * 2 * num_entries * units
    edges = (3 if isinstance(model, GAT) else 2) * 2 * num_edges * (units + classes)
    hidden = 3 * 2 * len(nodes) * units * classes
    are_ones = np.isin(features if isinstance(features, np.ndarray) else features.data, (0, 1)).all()
    kernel = "arithmetic" if is_full else "gather_l1_ones" if are_ones and isinstance(model, GCN) else "gather_l1"
    limit = (first / limits[kernel] + edges / limits["gather_l1"]) * 1e-9
    limit += (hidden / limits["arithmetic"] + 7 * 4 * parameters / limits["stream_l2"]) * 1e-9

    count = 4
    longer = replace(plan, training=Training(epochs=200))
    long, short = (
        min(seconds(lambda p=p: native_models(NativeEngine(graph, p), count)) for _ in range(repeats))  # type: ignore[misc]
        for p in (longer, plan)
    )
    epoch = (long - short) / (100 * count)
    flops = first + edges + hidden + 12 * parameters
    label = f"{type(model).__name__}, {name}"
    print(
        f"{label:<30}{flops / 1e6:8.2f} Mflop {epoch * 1e6:8.0f} µs {flops / epoch / 1e9:7.1f} Gflop/s"
        f"{limit * 1e6:9.0f} µs {limit / epoch:6.0%}",
        flush=True,
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, the small graphs only")
    parser.add_argument("--models", action="store_true", help="only every model on Cora")
    parser.add_argument("--trainings", action="store_true", help="only every model and way of training on Cora")
    arguments = parser.parse_args()
    quick, models_only = arguments.quick, arguments.models
    torch.set_num_threads(1)
    repeats = 3 if quick else 7
    names = [name for name in ("cora", "citeseer", "pubmed", "amazon_photo") if name in datasets.at_hand()]
    graphs: dict[str, Graph] = {name: datasets.load(name) for name in names}
    if "amazon_photo" in graphs:
        graphs["photo, no zeros"] = without_zeros(graphs["amazon_photo"])
    print(f"{'':<30}{'native':>11}{'plain PyG':>13}{'ratio':>8}")
    for model_name in MODELS:
        compare("cora", graphs["cora"], 0.25, model_name, repeats)
    if arguments.trainings:
        for training_name in list(TRAININGS)[1:]:
            for model_name in MODELS:
                compare("cora", graphs["cora"], 0.25, model_name, repeats, training_name)
    if models_only or arguments.trainings:
        return
    cases: list[tuple[str, Graph, GCN | GAT]] = [(name, graph, GCN()) for name, graph in graphs.items()]
    cases += [(name, graph, GAT()) for name, graph in graphs.items() if name not in ("citeseer", "pubmed")]
    for name, graph, model in cases:
        if name != "cora":
            compare(name, graph, 0.25, type(model).__name__, repeats)
    for model_name in ("GCN", "GAT"):
        compare("cora", graphs["cora"], 0.5, model_name, repeats)
    limits = machine_limits()
    print(f"{'':<30}{'an epoch':>14}{'takes':>11}{'rate':>15}{'limit':>12}{'share':>7}")
    for name, graph, model in cases:
        share_of_limit(name, graph, model, limits, repeats)
    cora = graphs["cora"]
    thread_scaling(cora, 50 if quick else 200)
    cost_of_releases(cora, 50 if quick else 200)
    cost_against_models(cora)
    cost_against_size([name for name in ("cora", "pubmed", "coauthor_cs") if name in datasets.at_hand()])
    share_outside_training(cora, 100 if quick else 400)
    peak_memory(200 if quick else 1_000)


if __name__ == "__main__":
    main()
