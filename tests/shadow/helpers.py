"""Small graphs and PyTorch counterparts for the tests of the engines."""

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F  # noqa: N812

from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Engine
from bmpaudit.models import NativeModel, Training
from bmpaudit.models.torch_modules import LayeredModule
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.torch import train_on_sample

torch.set_num_threads(1)  # the models are tiny, and tests may share the machine


def random_graph(num_nodes: int = 60, num_classes: int = 3, kind: str = "binary", seed: int = 0) -> Graph:
    """A random graph with isolated nodes; `kind` of features: binary, weighted or dense."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, num_nodes - 3, size=(2 * num_nodes, 2))  # the last three nodes are isolated
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    density = 0.8 if kind == "dense" else 0.1
    features = scipy.sparse.random_array((num_nodes, 37), density=density, rng=rng, dtype=np.float32)
    if kind == "binary":
        features.data[:] = 1.0
    labels = np.concatenate([np.arange(num_classes), rng.integers(0, num_classes, num_nodes - num_classes)])
    return Graph.from_edges(pairs, features, labels)


def sample_flags(graph: Graph, index: int, fraction: float = 0.5) -> np.ndarray:
    flags: np.ndarray = draw_memberships(graph, Uniform(fraction), 1, seed=5, first=index)[0].view(np.uint8)
    return flags


def flat_parameters(module: LayeredModule) -> np.ndarray:
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in module.ordered_tensors()])


def torch_module(graph: Graph, model: NativeModel, parameters: np.ndarray) -> LayeredModule:
    module = LayeredModule(model, graph.num_features, graph.num_classes)
    module.load_flat(parameters)
    return module


def torch_gradient(graph: Graph, model: NativeModel, parameters: np.ndarray, flags: np.ndarray) -> np.ndarray:
    module = torch_module(graph, model, parameters)
    sample = graph.to_pyg().subgraph(torch.from_numpy(np.flatnonzero(flags)))
    F.cross_entropy(module(sample.x, sample.edge_index), sample.y).backward()
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in module.ordered_tensors()]
    return np.concatenate([gradient.numpy().ravel() for gradient in gradients])


def torch_trained(
    graph: Graph,
    model: NativeModel,
    training: Training,
    parameters: np.ndarray,
    flags: np.ndarray,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    index: int = 0,
) -> LayeredModule:
    module = torch_module(graph, model, parameters).to(dtype)
    sample = graph.to_pyg().subgraph(torch.from_numpy(np.flatnonzero(flags)))
    sample.x = sample.x.to(dtype)
    assert train_on_sample(module, sample, training, seed, index)
    return module.eval()


@torch.no_grad()
def torch_logits(graph: Graph, module: LayeredModule) -> np.ndarray:
    data = graph.to_pyg()
    dtype = next(module.parameters()).dtype
    logits: np.ndarray = module.eval()(data.x.to(dtype), data.edge_index).numpy()
    return logits


def fill(
    engine: Engine, graph: Graph, plan: ShadowPlan, indices: list[int], num_threads: int = 1, keep_logits: bool = False
) -> ShadowBatch:
    memberships = np.stack([draw_memberships(graph, plan.sampler, 1, plan.seed, first=j)[0] for j in indices])
    batch = ShadowBatch.empty(graph, plan, np.array(indices, dtype=np.int64), memberships, keep_logits)
    engine.fill(batch, num_threads, lambda _: None)
    return batch
