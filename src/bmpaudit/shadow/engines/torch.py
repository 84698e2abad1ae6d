"""Shadow models in PyTorch Geometric: the built-in ones for comparison, and any of the user's own.

Training draws the same nodes, edges and batches as C++ does, from the same random words. Read from the bottom: an
engine, the trainer that takes one model from its sample to its statistics, a plan's training, and what it draws.
"""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch has it
from torch import nn
from torch_geometric.data import Data

from bmpaudit.graph import Graph
from bmpaudit.models import NativeModel, Training
from bmpaudit.models.own import check_call, is_estimator
from bmpaudit.models.torch_modules import LayeredModule
from bmpaudit.models.training import ALL_NEIGHBORS
from bmpaudit.samplers.draw import compressed_rows, training_edges
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.engines.processes import OneModel, ProcessEngine, seeded_generators
from bmpaudit.shadow.engines.scoring import (
    Question,
    distinct_questions,
    refuse_embeddings,
    score_model,
    share,
    shown_graphs,
)
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError
from bmpaudit.util.files import uninterrupted
from bmpaudit.util.streams import Purpose, repeat_index, stream
from bmpaudit.util.values import Flags, Floats, Floats32, Ints


def random_order(rng: np.random.Generator, size: int) -> Ints:
    """The numbers below `size` in random order: that of one random word for each."""
    order: Ints = np.argsort(rng.bit_generator.random_raw(size), kind="stable")
    return order


def random_subset(rng: np.random.Generator, size: int, count: int) -> Ints:
    """`count` of the numbers below `size`, ascending: those with the smallest words."""
    return np.sort(random_order(rng, size)[:count])


def validation_nodes(rng: np.random.Generator, size: int, share: float) -> Ints:
    """A share of a sample's nodes, at least one and not all."""
    return random_subset(rng, size, min(max(round(share * size), 1), size - 1))


class Neighborhoods(NamedTuple):
    """A graph by the neighbours of each node: those of node i are `indices[indptr[i] : indptr[i + 1]]`."""

    indptr: Ints
    indices: Ints

    @classmethod
    def of_edges(cls, sources: Ints, targets: Ints, num_nodes: int) -> Neighborhoods:
        """From both directions of every edge."""
        order = np.lexsort((targets, sources))
        return cls(np.searchsorted(sources[order], np.arange(num_nodes + 1)), targets[order])

    @property
    def sources(self) -> Ints:
        """The node that each of `indices` is a neighbour of."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

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
    """A mini-batch.

    Attributes:
        nodes: Its nodes; those that carry the loss come first.
        num_seeds: How many those are.
        sources: Where each sampled edge comes from, as places in `nodes`.
        targets: The node that it was sampled for.
    """

    nodes: Ints
    num_seeds: int
    sources: Ints
    targets: Ints


def batches(
    graph: Neighborhoods, seeds: Ints, batch_size: int, neighbors: Sequence[int], rng: np.random.Generator
) -> Iterator[Batch]:
    """The mini-batches of one epoch."""
    order = seeds[random_order(rng, len(seeds))]
    for start in range(0, len(order), batch_size):
        yield sampled_batch(graph, order[start : start + batch_size], neighbors, rng)


def sampled_batch(graph: Neighborhoods, seeds: Ints, neighbors: Sequence[int], rng: np.random.Generator) -> Batch:
    """Some nodes with sampled neighbours: hop by hop, of each node that the hop before has first reached."""
    nodes: list[int] = seeds.tolist()
    places = {node: place for place, node in enumerate(nodes)}
    sources: list[int] = []
    targets: list[int] = []
    begin = 0
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
    return Batch(np.array(nodes), len(seeds), np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64))


# Noise on the last layer of a PyTorch module, with the native engine's random numbers.


# Of PyTorch Geometric's GCNConv and GATConv, as the native engine lists them.
CONVOLUTION_PARAMETERS = ("lin.weight", "att_src", "att_dst", "bias")


@contextmanager
def noisy_last_layer(module: nn.Module, noise_std: float, rng: np.random.Generator) -> Iterator[None]:
    """Adds noise to the last layer within a block, and restores the layer afterwards; 0 means no noise.

    Raises:
        InputError: if there are no parameters for the noise.
    """
    parameters = last_layer_parameters(module) if noise_std > 0 else []
    if noise_std > 0 and not parameters:
        raise InputError(
            f"a release with noise of {noise_std:g} on the last layer needs one with parameters, and the model "
            f"{type(module).__name__} has none"
        )
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
    start = 0
    for parameter in parameters:
        values = torch.from_numpy(noise[start : start + parameter.numel()].astype(np.float32))
        parameter.add_(values.view_as(parameter).to(parameter.device))
        start += parameter.numel()


def last_layer_parameters(module: nn.Module) -> list[torch.Tensor]:
    """What the noise goes on, in the order in which it is drawn."""
    if isinstance(module, LayeredModule):
        return module.last_layer_parameters()
    named = dict(last_layer(module).named_parameters())
    if "lin.weight" in named and set(named) <= set(CONVOLUTION_PARAMETERS):
        return [named[name] for name in CONVOLUTION_PARAMETERS if name in named]
    return list(named.values())


def last_layer(module: nn.Module) -> nn.Module:
    """The layer that noise goes on: the module's own `last_layer` if it has one, else the last part with parameters.

    The last child that has parameters, and of a list or sequence of layers the last of them, and so on.
    """
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


# The state of a PyTorch module as one array of single precision, and back.


def flat_weights(module: nn.Module) -> Floats32:
    """All numbers of a module's state dict, in its order.

    Raises:
        InputError: if single precision cannot hold one of them.
    """
    parts = [np.zeros(0, dtype=np.float32)]
    for name, tensor in module.state_dict().items():
        values = tensor.detach().cpu()
        single = values.to(torch.float32)
        if not bool(((single.to(values.dtype) == values) | (values != values)).all()):
            raise InputError(f"weights are kept in single precision, which cannot hold {name} of {values.dtype}")
        parts.append(single.numpy().ravel())
    return np.concatenate(parts)


@torch.no_grad()
def load_weights(module: nn.Module, flat: Floats32) -> None:
    """Puts the numbers of `flat_weights` back."""
    start = 0
    for tensor in module.state_dict().values():
        values = torch.from_numpy(flat[start : start + tensor.numel()].copy())
        tensor.copy_(values.view(tensor.shape).to(tensor.dtype))
        start += tensor.numel()


# PyTorch Lightning without its messages: one line for each of a thousand models would bury everything else.


LOGGERS = ("pytorch_lightning", "lightning", "lightning.pytorch", "lightning.fabric", "lightning_fabric")


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Within the block the loggers of Lightning, if it was imported, say nothing below an error."""
    if not {"lightning", "pytorch_lightning"} & sys.modules.keys():
        yield
        return
    before = _set_levels([logging.ERROR] * len(LOGGERS))
    try:
        yield
    finally:
        _set_levels(before)


def _set_levels(levels: Sequence[int]) -> list[int]:
    """Sets the levels of the loggers, and returns those before.

    Ctrl-C waits: between taking and releasing the lock of `logging` it would leave every other thread waiting.
    """

    def set_all() -> list[int]:
        loggers = [logging.getLogger(name) for name in LOGGERS]
        before = [logger.level for logger in loggers]
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        return before

    return uninterrupted(set_all)


# A plan's training in PyTorch, with the native engine's draws.


class Step(NamedTuple):
    """What one step of the optimiser is taken on.

    Attributes:
        nodes: Nodes of the sample that the module is called with; None for all.
        edge_index: Edges between them.
        in_loss: Which of them carry the loss.
    """

    nodes: torch.Tensor | None
    edge_index: torch.Tensor
    in_loss: torch.Tensor | slice


def train_on_sample(module: nn.Module, sample: Data, training: Training, seed: int, index: int) -> bool:
    """Trains a module on the graph of a sample; draws are those of model `index` of a plan with this seed.

    Returns:
        Whether there was enough to train on: a sample that is split, or a mini-batch that is normalised, needs two
        nodes.
    """
    optimizers: dict[str, Any] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer = optimizers[training.optimizer](
        module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    schedule = learning_rates(optimizer, training)
    validation: Ints = np.empty(0, dtype=np.int64)
    if training.validation_share is not None:
        if sample.num_nodes == 1:
            return False
        rng = stream(seed, index, Purpose.VALIDATION)
        validation = validation_nodes(rng, sample.num_nodes, training.validation_share)
    best = BestWeights(module, sample, validation, training.patience)
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
        if not best.is_worth_another():
            break
    best.restore()
    return True


def epochs(sample: Data, validation: Ints, training: Training, seed: int, index: int) -> Iterator[Iterator[Step]]:
    """The steps of each epoch."""
    device = sample.x.device
    learnt = np.setdiff1d(np.arange(sample.num_nodes), validation)
    edge_rng, batch_rng = (stream(seed, index, purpose) for purpose in (Purpose.EDGES, Purpose.BATCHES))
    sources, targets = sample.edge_index.cpu().numpy()
    whole = Neighborhoods.of_edges(sources, targets, sample.num_nodes)
    in_loss = torch.from_numpy(learnt).to(device) if len(validation) > 0 else slice(None)
    edge_index = sample.edge_index
    for _ in range(training.epochs):
        graph = whole.without_some(training.drop_edge, edge_rng) if training.drop_edge else whole
        if training.batch_size is None:
            if training.drop_edge:
                edge_index = torch.from_numpy(np.stack([graph.sources, graph.indices])).to(device)
            yield iter([Step(None, edge_index, in_loss)])
            continue
        yield (
            Step(
                torch.from_numpy(batch.nodes).to(device),
                torch.from_numpy(np.stack([batch.sources, batch.targets])).to(device),
                slice(batch.num_seeds),
            )
            for batch in batches(graph, learnt, training.batch_size, training.neighbors or (), batch_rng)
        )


class BestWeights:
    """Early stopping: keeps the weights with the lowest loss on the nodes for validation, if there are any."""

    def __init__(self, module: nn.Module, sample: Data, validation: Ints, patience: int | None) -> None:
        self._module, self._sample, self._patience = module, sample, patience
        self._nodes = torch.from_numpy(validation).to(sample.x.device)
        self._lowest = float("inf")
        self._epochs_without = 0
        self._kept: dict[str, Any] | None = None

    @torch.no_grad()
    def is_worth_another(self) -> bool:
        """Whether to go on after an epoch."""
        if len(self._nodes) == 0:
            return True
        self._module.eval()
        logits = self._module(self._sample.x, self._sample.edge_index)
        loss = F.cross_entropy(logits[self._nodes].double(), self._sample.y[self._nodes]).item()
        if loss < self._lowest:
            self._lowest, self._epochs_without = loss, 0
            self._kept = copy.deepcopy(self._module.state_dict())
            return True
        self._epochs_without += 1
        return self._epochs_without != self._patience

    def restore(self) -> None:
        """Gives the module its best weights."""
        if self._kept is not None:
            self._module.load_state_dict(self._kept)


def learning_rates(optimizer: torch.optim.Optimizer, training: Training) -> torch.optim.lr_scheduler.LRScheduler:
    """The schedule of a training."""
    schedulers, num_epochs = torch.optim.lr_scheduler, training.epochs
    if training.schedule == "cosine":
        return schedulers.CosineAnnealingLR(optimizer, num_epochs)
    milestones = [num_epochs // 2, 3 * num_epochs // 4] if training.schedule == "step" else []
    return schedulers.MultiStepLR(optimizer, milestones, 0.1)


# One shadow model in PyTorch, from its sample to its statistics.


TRIAL_EPOCHS = 2


@dataclass(frozen=True, eq=False)
class TorchTrainer:
    """Trains models one by one in the process it is in.

    Attributes:
        plan: What to train; its sampler and queries are not used.
        data: The whole graph, or what the model trains on of it, on the device to train on.
        edge_indices: What the model is shown under each query, each of shape (2, 2 * num_edges).
        labels: Class of each node, shape (num_nodes,).
        num_classes: Number of classes.
    """

    plan: ShadowPlan
    data: Data
    edge_indices: list[torch.Tensor]
    labels: Ints
    num_classes: int

    @classmethod
    def from_graph(cls, graph: Graph, plan: ShadowPlan, device: torch.device) -> TorchTrainer:
        """Raises `InputError` if a query changes the nodes, or model and sampler both choose edges."""
        if (
            hasattr(plan.model, "training_graph")
            and training_edges(graph, plan.sampler, np.arange(1), plan.seed) is not None
        ):
            raise InputError(
                f"{plan.model} trains on edges that it chooses itself, so that the sampler must leave them alone, got "
                f"{plan.sampler}"
            )
        shown = [edge_index_of(shown).to(device) for shown in shown_graphs(plan, graph)]
        # A model may train on a part of the graph that does not depend on the sample.
        trained_on = plan.model.training_graph(graph) if hasattr(plan.model, "training_graph") else graph
        return cls(plan, trained_on.to_pyg().to(device), shown, graph.labels, graph.num_classes)

    def __getstate__(self) -> dict[str, Any]:
        """Arrays in place of tensors: processes of one machine share them."""
        data = {name: self.data[name].numpy() for name in ("x", "edge_index", "y")}
        return {**vars(self), "data": data, "edge_indices": [edges.numpy() for edges in self.edge_indices]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the arrays are not to be written to, which tensors do not know
            data = {name: torch.from_numpy(array) for name, array in state["data"].items()}
            edges = [torch.from_numpy(array) for array in state["edge_indices"]]
        self.__dict__.update({**state, "data": Data(**data), "edge_indices": edges})

    def for_trial(self) -> TorchTrainer:
        """The same with two epochs of the plan's training, enough to tell whether processes compute alike."""
        training = self.plan.training
        if training is None:
            return self
        short = replace(training, epochs=min(training.epochs, TRIAL_EPOCHS))
        return replace(self, plan=replace(self.plan, training=short))

    @property
    def device(self) -> torch.device:
        """Where models are trained."""
        return self.data.x.device

    def fill(self, batch: ShadowBatch, initial: Floats32 | None) -> None:
        """Trains and scores the only model of a batch; global random generators are left as they were.

        Args:
            batch: What to train, and where the answers go.
            initial: Initial parameters of each repeat in the order of the native engine, for a built-in model.
        """
        index, member = int(batch.indices[0]), batch.memberships[0]
        has_batch_norm = isinstance(self.plan.model, NativeModel) and any(
            layer.norm == "batch" for layer in self.plan.model.native_layers(self.num_classes)
        )
        if member.sum() <= has_batch_norm:  # of one node there is no variance
            batch.fail(0)
            return
        answers: dict[Question, Floats32] = {}
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), quiet_lightning():
            for repeat in range(self.plan.num_repeats):
                kept = None if batch.weights is None else batch.weights[repeat, 0]
                module: nn.Module | None
                if kept is not None and np.isfinite(kept[:1]).all():
                    module = self._new_module(None).eval()
                    load_weights(module, kept)
                else:
                    start = None if initial is None else initial[repeat]
                    edges = None if batch.edges is None else batch.edges[0]
                    module = self._trained(member, edges, repeat_index(index, repeat), start)
                if module is None or not all(bool(torch.isfinite(each).all()) for each in module.parameters()):
                    batch.fail(0)
                    return
                if kept is not None:
                    kept[:] = flat_weights(module)
                if repeat == 0:
                    self._keep_accuracy(module, batch)
                answers |= self._answers(module, index, repeat)
            score_model(self.plan, self.labels, batch, 0, answers, {}, num_classes=self.num_classes)

    @property
    def num_weights(self) -> int:
        """Numbers in the state of a module."""
        with torch.random.fork_rng(devices=[]):
            return len(flat_weights(self._new_module(None)))

    def _trained(
        self, member: Flags, edges: Ints | None, stream_index: int, initial: Floats32 | None
    ) -> nn.Module | None:
        """A trained module; None if the sample is too small to train on."""
        seed = int(stream(self.plan.seed, stream_index, Purpose.DROPOUT).integers(2**63))
        with seeded_generators(seed):
            torch.manual_seed(seed)
            module = self._new_module(initial)
            sample = self._with_edges(edges).subgraph(torch.from_numpy(np.flatnonzero(member)).to(self.device))
            if self.plan.training is None:
                sample.train_mask = torch.ones(sample.num_nodes, dtype=torch.bool, device=self.device)
                with redirect_stdout(sys.stderr):  # where progress is; results are on stdout
                    self.plan.model.train(module, sample, seed % 2**32)  # every library takes such a seed
            elif not train_on_sample(module, sample, self.plan.training, self.plan.seed, stream_index):
                return None
        return module.eval()

    def _with_edges(self, edges: Ints | None) -> Data:
        """The graph with other edges, if any are given."""
        if edges is None:
            return self.data
        indptr, columns = compressed_rows(edges, self.data.num_nodes)
        rows = np.repeat(np.arange(self.data.num_nodes), np.diff(indptr))
        data = copy.copy(self.data)
        data.edge_index = torch.from_numpy(np.stack([rows, columns])).to(self.device)
        return data

    def _new_module(self, initial: Floats32 | None) -> nn.Module:
        module: Any = self.plan.model.torch_module(self.data.num_features, self.num_classes)
        if not isinstance(module, nn.Module):
            hint = "; what makes a scikit-learn classifier takes no arguments" if is_estimator(module) else ""
            raise InputError(f"{self.plan.model} must make an nn.Module, got {type(module).__name__}{hint}")
        check_call(module.forward, f"forward of {self.plan.model}", "x", "edge_index")
        if initial is not None:
            module.load_flat(initial)
        moved: nn.Module = module.to(self.device)
        return moved

    @torch.no_grad()
    def _keep_accuracy(self, module: nn.Module, batch: ShadowBatch) -> None:
        logits = self._logits(module, self.data.edge_index)
        wanted = (len(self.labels), self.num_classes)
        if logits.shape != wanted:
            raise InputError(f"the model must give logits of shape {wanted} (nodes, classes), got {logits.shape}")
        right = logits.argmax(axis=1) == self.labels
        member = batch.memberships[0]
        for accuracy, chosen in ((batch.train_accuracy, member), (batch.held_out_accuracy, ~member)):
            accuracy[0] = share(right[chosen])

    @torch.no_grad()
    def _answers(self, module: nn.Module, index: int, repeat: int) -> dict[Question, Floats32]:
        """Logits for every question to one repeat; each noise level starts from the trained last layer."""
        questions = [question for question in distinct_questions(self.plan) if question.repeat == repeat]
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
        layer: nn.Module = module.last_layer if isinstance(module, LayeredModule) else last_layer(module)
        taken: list[Any] = []
        hook = layer.register_forward_pre_hook(lambda _, inputs: taken.append(inputs[0]))
        try:
            self._logits(module, edge_index)
        finally:
            hook.remove()
        shape = None if not taken else tuple(taken[-1].shape)
        is_learnt = len(list(module.parameters())) > len(list(layer.parameters()))
        if not is_learnt or shape is None or taken[-1] is self.data.x:
            refuse_embeddings(self.plan)
        if shape is None or len(shape) != 2 or shape[0] != len(self.labels):
            raise InputError(f"the last layer must take a row for each node, {len(self.labels):,}, got shape {shape}")
        embeddings: Floats32 = taken[-1].float().cpu().numpy()
        return embeddings

    def _logits(self, module: nn.Module, edge_index: torch.Tensor) -> Floats32:
        logits: Floats32 = module(self.data.x, edge_index).float().cpu().numpy()
        return logits


def edge_index_of(graph: Graph) -> torch.Tensor:
    """Both directions of every edge, shape (2, 2 * num_edges), as PyTorch Geometric has them."""
    source = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    return torch.from_numpy(np.stack([source, graph.indices.astype(np.int64)]))


class TorchEngine(ProcessEngine[TorchTrainer]):
    """Trains models with PyTorch: on the CPU in several processes of one thread each, on a GPU one after another.

    Samples, noise and the initial weights of built-in models are the native engine's. Dropout, and whatever else a
    user's code draws, comes from the generators of PyTorch, NumPy and Python, seeded for each model and restored
    afterwards.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"embeddings", "repeats"})  # beyond logits of one model

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not hasattr(plan.model, "torch_module"):
            raise InputError(f"the torch engine cannot train {plan.model}: it has no method torch_module")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        trainer = TorchTrainer.from_graph(graph, plan, device)
        super().__init__(plan, trainer, trains_in_parallel=device.type == "cpu")
        self._kernel = None
        if isinstance(plan.model, NativeModel) and plan.training is not None:
            self._kernel = make_kernel(graph, plan.model, plan.training)

    @property
    def num_weights(self) -> int:
        """Numbers in the state of a module, which can be kept."""
        return self._trainer.num_weights

    def _preparation(self) -> Callable[[], None]:
        return partial(
            _apply,
            torch.get_default_dtype(),
            torch.get_float32_matmul_precision(),
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )

    def _one_thread(self) -> AbstractContextManager[object]:
        return one_torch_thread()

    def _model(self, batch: ShadowBatch, row: int) -> OneModel:
        initial = None
        if self._kernel is not None:
            streams = [repeat_index(int(batch.indices[row]), repeat) for repeat in range(self.plan.num_repeats)]
            initial = np.stack([self._kernel.initial_parameters(self.plan.seed, stream) for stream in streams])
        return OneModel(batch.part(slice(row, row + 1)), initial)


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
