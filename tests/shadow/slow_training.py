"""A slow reference for training: every edge, node and batch drawn one by one, from the random words of the engines."""

import copy

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from helpers import flat_parameters, torch_module

from bmpaudit.graph.graph import Graph
from bmpaudit.models import NativeModel, Training
from bmpaudit.util.streams import Purpose, stream


def neighbors_of(graph: Graph, node: int) -> list[int]:
    found: list[int] = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
    return found


class Words:
    """The random words of one stream."""

    def __init__(self, seed: int, index: int, purpose: Purpose) -> None:
        self._bits = stream(seed, index, purpose).bit_generator

    def order(self, things: list[int]) -> list[int]:
        """Things by one word each."""
        words = [int(self._bits.random_raw()) for _ in things]
        return [things[place] for place in sorted(range(len(things)), key=lambda place: (words[place], place))]


def without_edges(around: list[list[int]], share: float, words: Words) -> list[list[int]]:
    edges = [(i, j) for i, others in enumerate(around) for j in others if i < j]
    dropped = words.order(list(range(len(edges))))[: round(share * len(edges))]
    gone = {edges[number] for number in dropped}
    return [[j for j in others if (min(i, j), max(i, j)) not in gone] for i, others in enumerate(around)]


def batch_of(
    around: list[list[int]], seeds: list[int], neighbors: tuple[int, ...], words: Words
) -> tuple[list[int], list[tuple[int, int]]]:
    """Nodes, and edges from a place to another."""
    nodes, frontier, edges = list(seeds), list(seeds), []
    for most in neighbors:
        reached = []
        for node in frontier:
            sampled = around[node]
            if most >= 0 and len(sampled) > most:
                taken = set(words.order(sampled)[:most])
                sampled = [other for other in sampled if other in taken]
            for other in sampled:
                if other not in nodes:
                    nodes.append(other)
                    reached.append(other)
                edges.append((nodes.index(other), nodes.index(node)))
        frontier = reached
    return nodes, edges


def edge_index_of(edges: list[tuple[int, int]]) -> torch.Tensor:
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T


def slowly_trained(
    graph: Graph,
    model: NativeModel,
    training: Training,
    parameters: np.ndarray,
    flags: np.ndarray,
    seed: int,
    index: int,
) -> tuple[np.ndarray, int]:
    """Parameters in double precision, and how many epochs were trained."""
    members = np.flatnonzero(flags).tolist()
    around = [[members.index(j) for j in neighbors_of(graph, i) if flags[j]] for i in members]
    x = torch.from_numpy(graph.dense_features[members]).double()
    y = torch.from_numpy(graph.labels[members]).long()
    module = torch_module(graph, model, parameters).double()
    kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer = kinds[training.optimizer](
        module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
    )
    split, edge_words, batch_words = (
        Words(seed, index, purpose) for purpose in (Purpose.VALIDATION, Purpose.EDGES, Purpose.BATCHES)
    )
    everyone = list(range(len(members)))
    held: list[int] = []
    if training.validation_share is not None:
        count = min(max(round(training.validation_share * len(members)), 1), len(members) - 1)
        held = split.order(everyone)[:count]
    learnt = [node for node in everyone if node not in held]
    whole = [(j, i) for i, others in enumerate(around) for j in others]
    losses: list[float] = []
    kept = []
    for _ in range(training.epochs):
        here = without_edges(around, training.drop_edge, edge_words) if training.drop_edge else around
        batches = [(everyone, [(j, i) for i, others in enumerate(here) for j in others], learnt)]
        if training.batch_size is not None:
            order, batches = batch_words.order(learnt), []
            for start in range(0, len(order), training.batch_size):
                seeds = order[start : start + training.batch_size]
                nodes, edges = batch_of(here, seeds, training.neighbors or (), batch_words)
                batches.append((nodes, edges, list(range(len(seeds)))))
        module.train()
        for nodes, edges, in_loss in batches:
            optimizer.zero_grad()
            F.cross_entropy(module(x[nodes], edge_index_of(edges))[in_loss], y[nodes][in_loss]).backward()
            optimizer.step()
        if held:
            module.eval()
            with torch.no_grad():
                losses.append(F.cross_entropy(module(x, edge_index_of(whole))[held], y[held]).item())
            kept.append(copy.deepcopy(module.state_dict()))
            best = int(np.argmin(losses))
            if training.patience is not None and len(losses) - 1 - best == training.patience:
                break
    if held:
        module.load_state_dict(kept[int(np.argmin(losses))])
    return flat_parameters(module), len(losses)
