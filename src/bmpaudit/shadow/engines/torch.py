"""Shadow models in PyTorch Geometric: the built-in ones for comparison, and any of the user's own.

Read from the bottom: an engine, the trainer that takes one model from its sample to its statistics, a plan's training,
and what it draws: the same nodes, edges and batches as C++ does, from the same random words.
"""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch has it
from torch import nn
from torch_geometric.data import Data

from bmpaudit import _native
from bmpaudit.graph import Graph
from bmpaudit.models import NativeModel, Training
from bmpaudit.models.gnn import ALL_NEIGHBORS
from bmpaudit.models.own import check_call, is_estimator
from bmpaudit.models.torch_modules import LayeredModule, with_parts
from bmpaudit.releases import WEIGHTS
from bmpaudit.samplers.draw import compressed_rows, training_edges
from bmpaudit.shadow import engines
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.class_rows import UnitNodes, WeightRows
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.engines.processes import ProcessEngine, seeded_generators
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError, one_line
from bmpaudit.util.files import uninterrupted
from bmpaudit.util.streams import Purpose, repeat_index, stream
from bmpaudit.util.values import Flags, Floats, Floats32, Ints


def random_order(rng: np.random.Generator, size: int) -> Ints:
    """The numbers below `size` in random order: that of one random word for each."""
    return np.argsort(rng.bit_generator.random_raw(size), kind="stable")


def random_subset(rng: np.random.Generator, size: int, count: int) -> Ints:
    """`count` of the numbers below `size`, ascending: those with the smallest words."""
    return np.sort(random_order(rng, size)[:count])


def validation_nodes(rng: np.random.Generator, size: int, share: float) -> Ints:
    """A share of a sample's nodes, at least one and not all."""
    return random_subset(rng, size, min(max(round(share * size), 1), size - 1))


class Neighborhoods(NamedTuple):
    """A graph by the neighbours of each node: those of node i are `indices[indptr[i] : indptr[i + 1]]`."""

    indptr: Ints
    indices: npt.NDArray[np.integer]

    @property
    def sources(self) -> Ints:
        """The node that each of `indices` is a neighbour of."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def edge_index(self) -> torch.Tensor:
        """Both directions of every edge, shape (2, 2 * num_edges), as PyTorch Geometric has them."""
        return torch.from_numpy(np.stack([self.sources, self.indices]))

    def without_some(self, share: float, rng: np.random.Generator) -> Neighborhoods:
        """The graph without a share of its edges, both directions of an edge together."""
        sources, num_nodes = self.sources, len(self.indptr) - 1
        ends = np.minimum(sources, self.indices) * num_nodes + np.maximum(sources, self.indices)
        edges, number = np.unique(ends, return_inverse=True)
        is_left = np.ones(len(edges), dtype=bool)
        is_left[random_subset(rng, len(edges), round(share * len(edges)))] = False
        kept = is_left[number]
        return Neighborhoods(np.searchsorted(sources[kept], np.arange(num_nodes + 1)), self.indices[kept])


class Batch(NamedTuple):
    """A mini-batch; ends of edges are places in `nodes`."""

    nodes: Ints  # those that carry the loss come first
    num_seeds: int  # how many those are
    sources: Ints  # where each sampled edge comes from
    targets: Ints  # the node that it was sampled for


def batches(
    graph: Neighborhoods, seeds: Ints, batch_size: int, neighbors: Sequence[int], rng: np.random.Generator
) -> Iterator[Batch]:
    """The mini-batches of an epoch; neighbours are sampled hop by hop, of each node that the hop before has reached."""
    order = seeds[random_order(rng, len(seeds))]
    for start in range(0, len(order), batch_size):
        nodes: list[int] = order[start : start + batch_size].tolist()
        places = {node: place for place, node in enumerate(nodes)}
        sources, targets, begin, num_seeds = [], [], 0, len(nodes)
        for most in neighbors:
            end = len(nodes)
            for target in range(begin, end):
                around = graph.indices[graph.indptr[nodes[target]] : graph.indptr[nodes[target] + 1]]
                if most != ALL_NEIGHBORS and len(around) > most:
                    around = around[random_subset(rng, len(around), most)]
                for node in around.tolist():
                    if node not in places:
                        places[node] = len(nodes)
                        nodes.append(node)
                    sources.append(places[node])
                    targets.append(target)
            begin = end
        yield Batch(np.array(nodes), num_seeds, np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64))


# Of PyTorch Geometric's GCNConv and GATConv, as the native engine lists them.
CONVOLUTION_PARAMETERS = ("lin.weight", "att_src", "att_dst", "bias")


@contextmanager
def noisy_last_layer(module: nn.Module, noise_std: float, rng: np.random.Generator) -> Iterator[None]:
    """Adds noise to the last layer within a block, and restores the layer afterwards; 0 means no noise."""
    parameters = last_layer_parameters(module) if noise_std > 0 else []
    if noise_std > 0 and not parameters:
        what = f"noise of {noise_std:g} on the last layer needs one with parameters"
        raise InputError(f"{what}, and the model {type(module).__name__} has none")
    trained = [parameter.detach().clone() for parameter in parameters]
    add_noise(parameters, noise_std, rng)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, values in zip(parameters, trained, strict=True):
                parameter.copy_(values)


@torch.no_grad()
def add_noise(parameters: list[torch.Tensor], noise_std: float, rng: np.random.Generator) -> None:
    """Adds Gaussian noise to parameters, the same as the native engine does."""
    noise = noise_std * box_muller(rng, sum(parameter.numel() for parameter in parameters))
    for parameter, values in with_parts(parameters, noise.astype(np.float32)):
        parameter.add_(values)


def last_layer_parameters(module: nn.Module) -> list[torch.Tensor]:
    """What the noise goes on, in the order in which it is drawn."""
    if isinstance(module, LayeredModule):
        return module.last_layer_parameters()
    named = dict(last_layer(module).named_parameters())
    if "lin.weight" in named and set(named) <= set(CONVOLUTION_PARAMETERS):
        return [named[name] for name in CONVOLUTION_PARAMETERS if name in named]
    return list(named.values())


def last_layer(module: nn.Module) -> nn.Module:
    """The layer that noise goes on: the module's `last_layer` if it has one, else its last child with parameters."""
    own = getattr(module, "last_layer", None)
    if isinstance(own, nn.Module):
        return own
    children = [child for child in module.children() if any(True for _ in child.parameters())]
    if not children:
        return module
    last = children[-1]
    return last_layer(last) if isinstance(last, (nn.ModuleList, nn.Sequential)) else last


def box_muller(rng: np.random.Generator, count: int) -> Floats:
    """Standard normal numbers, made from the stream's uniform ones as in `native/random.hpp`."""
    uniform = rng.random((count + 1) // 2 * 2).reshape(-1, 2)
    radius, angle = np.sqrt(-2.0 * np.log(1.0 - uniform[:, 0])), 2.0 * np.pi * uniform[:, 1]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).ravel()[:count]


def flat_weights(module: nn.Module) -> Floats32:
    """All numbers of a module's state dict, in its order, in single precision; `with_parts` puts them back."""
    parts = [np.zeros(0, dtype=np.float32)]
    for name, tensor in module.state_dict().items():
        values = tensor.detach().cpu()
        single = values.to(torch.float32)
        if not bool(((single.to(values.dtype) == values) | (values != values)).all()):
            raise InputError(f"weights are kept in single precision, which cannot hold {name} of {values.dtype}")
        parts.append(single.numpy().ravel())
    return np.concatenate(parts)


LOGGERS = ("pytorch_lightning", "lightning", "lightning.pytorch", "lightning.fabric", "lightning_fabric")


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Within the block the loggers of Lightning, if it was imported, say nothing below an error: not a line a model."""
    if not {"lightning", "pytorch_lightning"} & sys.modules.keys():
        yield
        return
    loggers = [logging.getLogger(name) for name in LOGGERS]

    def set_levels(levels: Sequence[int]) -> None:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

    # Ctrl-C waits: between taking and releasing the lock of `logging` it would leave every other thread waiting.
    before = [logger.level for logger in loggers]
    uninterrupted(lambda: set_levels([logging.ERROR] * len(LOGGERS)))
    try:
        yield
    finally:
        uninterrupted(lambda: set_levels(before))


Step = tuple[torch.Tensor | None, torch.Tensor, torch.Tensor | slice]
"""Nodes of the sample that the module is called with (None for all), their edges, and which nodes carry the loss."""


def train_on_sample(module: nn.Module, sample: Data, training: Training, seed: int, index: int) -> bool:
    """Trains a module on the graph of a sample; draws are those of model `index` of a plan with this seed.

    Whether there was enough to train on: a sample that is split, or a mini-batch that is normalised, needs two nodes.
    """
    new_optimizer: Any = torch.optim.Adam if training.optimizer == "adam" else torch.optim.SGD
    optimizer = new_optimizer(module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay)
    schedulers, num_epochs = torch.optim.lr_scheduler, training.epochs
    milestones = [num_epochs // 2, 3 * num_epochs // 4] if training.schedule == "step" else []
    schedule: Any
    if training.schedule == "cosine":
        schedule = schedulers.CosineAnnealingLR(optimizer, num_epochs)
    else:
        schedule = schedulers.MultiStepLR(optimizer, milestones, 0.1)
    validation: Ints = np.empty(0, dtype=np.int64)
    if training.validation_share is not None:
        if sample.num_nodes == 1:
            return False
        rng = stream(seed, index, Purpose.VALIDATION)
        validation = validation_nodes(rng, sample.num_nodes, training.validation_share)
    # Early stopping: the weights with the lowest loss on the nodes for validation are kept, if there are any.
    nodes_for_validation = torch.from_numpy(validation).to(sample.x.device)
    lowest, epochs_without, kept = float("inf"), 0, None
    has_batch_norm = any(isinstance(part, nn.BatchNorm1d) for part in module.modules())
    for steps in epochs(sample, validation, training, seed, index):
        module.train()
        for nodes, edge_index, in_loss in steps:
            x, y = (sample.x, sample.y) if nodes is None else (sample.x[nodes], sample.y[nodes])
            if has_batch_norm and len(x) == 1:
                return False
            optimizer.zero_grad()
            logits = module(x, edge_index)
            smoothing = training.label_smoothing or 0.0
            F.cross_entropy(logits[in_loss], y[in_loss], label_smoothing=smoothing).backward()
            optimizer.step()
        schedule.step()
        if len(validation) == 0:
            continue
        module.eval()
        with torch.no_grad():
            logits = module(sample.x, sample.edge_index)[nodes_for_validation].double()
        loss = F.cross_entropy(logits, sample.y[nodes_for_validation]).item()
        epochs_without += 1
        if loss < lowest:
            lowest, epochs_without, kept = loss, 0, copy.deepcopy(module.state_dict())
        elif epochs_without == training.patience:
            break
    if kept is not None:
        module.load_state_dict(kept)
    return True


def epochs(sample: Data, validation: Ints, training: Training, seed: int, index: int) -> Iterator[Iterator[Step]]:
    """The steps of each epoch."""
    device = sample.x.device
    learnt = np.setdiff1d(np.arange(sample.num_nodes), validation)
    edge_rng, batch_rng = (stream(seed, index, purpose) for purpose in (Purpose.EDGES, Purpose.BATCHES))
    whole = Neighborhoods(*compressed_rows(sample.edge_index.cpu().numpy().T, sample.num_nodes))
    in_loss = torch.from_numpy(learnt).to(device) if len(validation) > 0 else slice(None)
    edge_index = sample.edge_index
    for _ in range(training.epochs):
        graph = whole.without_some(training.drop_edge, edge_rng) if training.drop_edge else whole
        if training.batch_size is None:
            if training.drop_edge:
                edge_index = graph.edge_index.to(device)
            yield iter([(None, edge_index, in_loss)])
            continue
        yield (
            (
                torch.from_numpy(batch.nodes).to(device),
                torch.from_numpy(np.stack([batch.sources, batch.targets])).to(device),
                slice(batch.num_seeds),
            )
            for batch in batches(graph, learnt, training.batch_size, training.neighbors or (), batch_rng)
        )


TRIAL_EPOCHS = 2
UNIT_NODES_AT_ONCE = 1_024


@dataclass(frozen=True, eq=False)
class TorchTrainer:
    """Trains models one by one in the process it is in."""

    plan: ShadowPlan  # its sampler and queries are not used
    graph: Graph
    data: Data  # the graph, or what the model trains on of it, on the device to train on
    edge_indices: list[torch.Tensor]  # what the model is shown under each query, each of shape (2, 2 * num_edges)

    @classmethod
    def from_graph(cls, graph: Graph, plan: ShadowPlan, device: torch.device) -> TorchTrainer:
        """Raises `InputError` if a query changes the nodes, or model and sampler both choose edges."""
        shown = engines.shown_graphs(plan, graph)
        trained_on = graph
        if hasattr(plan.model, "training_graph"):  # a part of the graph that does not depend on the sample
            if training_edges(graph, plan.sampler, np.arange(1), plan.seed) is not None:
                raise InputError(
                    f"{plan.model} trains on edges that it chooses itself, so that the sampler must leave them alone, "
                    f"got {plan.sampler}"
                )
            trained_on = plan.model.training_graph(graph)
        edge_indices = [Neighborhoods(each.indptr, each.indices).edge_index.to(device) for each in shown]
        return cls(plan, graph, trained_on.to_pyg().to(device), edge_indices)

    def __getstate__(self) -> dict[str, Any]:
        """Arrays in place of tensors: processes of one machine share them."""
        data = {name: self.data[name].numpy() for name in ("x", "edge_index", "y")}
        edges = [edges.numpy() for edges in self.edge_indices]
        return {"plan": self.plan, "graph": self.graph, "data": data, "edge_indices": edges}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the arrays are not to be written to, which tensors do not know
            data = {name: torch.from_numpy(array) for name, array in state["data"].items()}
            edges = [torch.from_numpy(array) for array in state["edge_indices"]]
        self.__dict__.update({**state, "data": Data(**data), "edge_indices": edges})

    def for_trial(self) -> TorchTrainer:
        """See `Trainer`: two epochs of the plan's training."""
        if self.plan.training is None:
            return self
        short = replace(self.plan.training, epochs=min(self.plan.training.epochs, TRIAL_EPOCHS))
        return replace(self, plan=replace(self.plan, training=short))

    @cached_property
    def kernel(self) -> _native.ShadowEngine | None:
        """The compiled engine, from which a built-in model has its initial parameters."""
        model, training = self.plan.model, self.plan.training
        if not isinstance(model, NativeModel) or training is None:
            return None
        return make_kernel(self.graph, model, training)

    @cached_property
    def unit_nodes(self) -> UnitNodes:
        """What a model is asked about for its class rows."""
        return UnitNodes(self.graph)

    @cached_property
    def weight_rows(self) -> WeightRows:
        """Class rows from weights of a built-in model."""
        return WeightRows(self.graph, self.plan.model)

    @property
    def device(self) -> torch.device:
        """Where models are trained."""
        return self.data.x.device

    def fill(self, batch: ShadowBatch) -> None:
        """See `Trainer`."""
        index, member = int(batch.indices[0]), batch.memberships[0]
        has_batch_norm = isinstance(self.plan.model, NativeModel) and any(
            layer.norm == "batch" for layer in self.plan.model.native_layers(self.graph.num_classes)
        )
        if member.sum() <= has_batch_norm:  # of one node there is no variance
            batch.fail(0)
            return
        answers: dict[engines.Question, Floats32] = {}
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), quiet_lightning():
            for repeat in range(self.plan.num_repeats):
                kept = None if batch.weights is None else batch.weights[repeat, 0]
                module: nn.Module | None
                if kept is not None and np.isfinite(kept[:1]).all():
                    module = self.new_module().eval()
                    for tensor, values in with_parts(list(module.state_dict().values()), kept):
                        tensor.copy_(values)
                else:
                    edges = None if batch.edges is None else batch.edges[0]
                    module = self._trained(member, edges, repeat_index(index, repeat))
                if module is None or not all(bool(torch.isfinite(each).all()) for each in module.parameters()):
                    batch.fail(0)
                    return
                if kept is not None:
                    kept[:] = flat_weights(module)
                if repeat == 0:
                    with torch.no_grad():
                        logits = self._logits(module, self.data.edge_index)
                    wanted = self.graph.num_nodes, self.graph.num_classes
                    if logits.shape != wanted:
                        found = f"{wanted} (nodes, classes), got {logits.shape}"
                        raise InputError(f"the model must give logits of shape {found}")
                    engines.keep_accuracy(batch, logits.argmax(axis=1) == self.graph.labels)
                answers |= self._answers(module, index, repeat)
                if repeat == 0 and batch.rows is not None:
                    self._fill_class_rows(batch, module, index)
            engines.score_model(self.plan, self.graph, batch, 0, answers)
            if batch.rows is not None and not np.isfinite(batch.rows).all():
                batch.fail(0)

    @torch.no_grad()
    def _fill_class_rows(self, batch: ShadowBatch, module: nn.Module, index: int) -> None:
        """Class rows of a trained module; a model that cannot be asked about made-up nodes raises `InputError`."""
        assert batch.rows is not None  # noqa: S101 - the plan keeps both
        assert batch.norms is not None  # noqa: S101
        for number, (access, release) in enumerate(self.plan.row_sets):
            if access == WEIGHTS:
                assert isinstance(module, LayeredModule)  # noqa: S101 - others have no such rows
                flat = np.concatenate([each.detach().cpu().numpy().ravel() for each in module.ordered_tensors()])
                rows = self.weight_rows.class_rows(flat, release)
            else:
                rng = stream(self.plan.seed, index, Purpose.NOISE)
                with noisy_last_layer(module, float(release.last_layer_noise), rng):
                    rows = self.unit_nodes.class_rows(self._unit_logits(module))
            batch.rows[number, 0], batch.norms[number, 0] = rows

    def _unit_logits(self, module: nn.Module) -> Floats32:
        """Logits of the made-up nodes, some at a time: without edges they are independent of each other."""
        features = scipy.sparse.csr_array(self.unit_nodes.graph.features)
        no_edges = torch.empty((2, 0), dtype=torch.int64, device=self.device)
        parts = []
        for start in range(0, self.unit_nodes.graph.num_nodes, UNIT_NODES_AT_ONCE):
            x = torch.from_numpy(features[start : start + UNIT_NODES_AT_ONCE].toarray()).to(self.device)
            try:
                parts.append(module(x, no_edges).float().cpu().numpy())
            except Exception as failure:
                raise InputError(
                    f"{self.plan.model} cannot be asked about made-up nodes without edges ({one_line(failure)}): "
                    "audit access to scores only"
                ) from failure
        return np.concatenate(parts)

    def _trained(self, member: Flags, edges: Ints | None, stream_index: int) -> nn.Module | None:
        """A trained module; None if the sample is too small to train on."""
        seed = int(stream(self.plan.seed, stream_index, Purpose.DROPOUT).integers(2**63))
        with seeded_generators(seed):
            torch.manual_seed(seed)
            module = self.new_module()
            if isinstance(module, LayeredModule) and self.kernel is not None:
                module.load_flat(self.kernel.initial_parameters(self.plan.seed, stream_index))
            data = copy.copy(self.data)
            if edges is not None:  # other ones than the graph's
                data.edge_index = Neighborhoods(*compressed_rows(edges, data.num_nodes)).edge_index.to(self.device)
            sample = data.subgraph(torch.from_numpy(np.flatnonzero(member)).to(self.device))
            if self.plan.training is None:
                sample.train_mask = torch.ones(sample.num_nodes, dtype=torch.bool, device=self.device)
                with redirect_stdout(sys.stderr):  # where progress is; results are on stdout
                    self.plan.model.train(module, sample, seed % 2**32)  # every library takes such a seed
            elif not train_on_sample(module, sample, self.plan.training, self.plan.seed, stream_index):
                return None
        return module.eval()

    def new_module(self) -> nn.Module:
        """A module of the plan's model."""
        module: Any = self.plan.model.torch_module(self.graph.num_features, self.graph.num_classes)
        if not isinstance(module, nn.Module):
            hint = "; what makes a scikit-learn classifier takes no arguments" if is_estimator(module) else ""
            raise InputError(f"{self.plan.model} must make an nn.Module, got {type(module).__name__}{hint}")
        check_call(module.forward, f"forward of {self.plan.model}", "x", "edge_index")
        return module.to(self.device)

    @torch.no_grad()
    def _answers(self, module: nn.Module, index: int, repeat: int) -> dict[engines.Question, Floats32]:
        """Logits for every question to one repeat; each noise level starts from the trained last layer."""
        questions = [question for question in engines.distinct_questions(self.plan) if question.repeat == repeat]
        answers = {}
        for noise_std in dict.fromkeys(question.noise_std for question in questions):
            rng = stream(self.plan.seed, repeat_index(index, repeat), Purpose.NOISE)
            with noisy_last_layer(module, noise_std, rng):
                for question in questions:
                    if question.noise_std == noise_std:
                        ask = self._embeddings if question.is_embedding else self._logits
                        answers[question] = ask(module, self.edge_indices[question.query])
        return answers

    def _embeddings(self, module: nn.Module, edge_index: torch.Tensor) -> Floats32:
        """What goes into the last layer; where nothing is learnt before it, there is no hidden layer."""
        layer = last_layer(module)
        taken: list[Any] = []
        hook = layer.register_forward_pre_hook(lambda _, inputs: taken.append(inputs[0]))
        try:
            self._logits(module, edge_index)
        finally:
            hook.remove()
        shape = None if not taken else tuple(taken[-1].shape)
        is_learnt = len(list(module.parameters())) > len(list(layer.parameters()))
        if not is_learnt or shape is None or taken[-1] is self.data.x:
            engines.refuse_embeddings(self.plan)
        num_nodes = self.graph.num_nodes
        if shape is None or len(shape) != 2 or shape[0] != num_nodes:
            raise InputError(f"the last layer must take a row for each node, {num_nodes:,}, got shape {shape}")
        return taken[-1].float().cpu().numpy()

    def _logits(self, module: nn.Module, edge_index: torch.Tensor) -> Floats32:
        return module(self.data.x, edge_index).float().cpu().numpy()


class TorchEngine(ProcessEngine):
    """Trains models with PyTorch: on the CPU in several processes of one thread each, on a GPU one after another.

    Samples, noise and the initial weights of built-in models are the native engine's. Dropout, and whatever else a
    user's code draws, comes from generators of PyTorch, NumPy and Python that are seeded for each model.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"embeddings", "repeats"})  # beyond logits of one model

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not hasattr(plan.model, "torch_module"):
            raise InputError(f"the torch engine cannot train {plan.model}: it has no method torch_module")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        trainer = TorchTrainer.from_graph(graph, plan, device)
        super().__init__(plan, trainer, one_torch_thread, trains_in_parallel=device.type == "cpu")
        self._new_module = trainer.new_module

    @cached_property
    def num_weights(self) -> int:
        """Numbers in the state of a module, which can be kept."""
        with torch.random.fork_rng(devices=[]):
            return len(flat_weights(self._new_module()))

    def _preparation(self) -> Callable[[], None]:
        return partial(
            _apply,
            torch.get_default_dtype(),
            torch.get_float32_matmul_precision(),
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )


def _apply(dtype: torch.dtype, precision: str, is_deterministic: bool, warn_only: bool) -> None:
    """Gives PyTorch another process's settings that change what a model computes, and one thread."""
    torch.set_num_threads(1)
    torch.set_default_dtype(dtype)
    torch.set_float32_matmul_precision(precision)
    torch.use_deterministic_algorithms(is_deterministic, warn_only=warn_only)


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Within the block PyTorch uses one thread: models this small gain nothing from more, and sums depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
