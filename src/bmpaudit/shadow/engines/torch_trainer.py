"""One shadow model in PyTorch, from its sample to its statistics."""

from __future__ import annotations

import copy
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from bmpaudit.arrays import Flags, Floats32, Ints
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.samplers.edges import compressed_rows, training_edges
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.last_layer import last_layer, noisy_last_layer
from bmpaudit.shadow.engines.module_weights import flat_weights, load_weights
from bmpaudit.shadow.engines.quiet_lightning import quiet_lightning
from bmpaudit.shadow.engines.scoring import (
    Question,
    distinct_questions,
    refuse_embeddings,
    score_model,
    share,
    shown_graphs,
)
from bmpaudit.shadow.engines.seeded import seeded_generators
from bmpaudit.shadow.engines.torch_training import train_on_sample
from bmpaudit.shadow.models import NativeModel
from bmpaudit.shadow.models.estimator_table import is_estimator
from bmpaudit.shadow.models.layered_module import LayeredModule
from bmpaudit.shadow.models.torch_model import check_call
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.streams import Purpose, repeat_index, stream

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
