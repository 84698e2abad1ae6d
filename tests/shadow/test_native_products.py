"""The engine's layouts of features: bands, tiles, dropout and the optimiser's pass, on sizes that reach every path."""

from typing import Literal

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from helpers import fill, sample_flags, torch_gradient

from bmpaudit.graph.graph import Graph
from bmpaudit.models import GAT, GCN, MLP, SAGE, NativeModel, Training
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.engines.native import NativeEngine, make_kernel

Values = Literal["binary", "weighted"]


def graph_of(
    num_nodes: int, num_features: int, density: float, values: Values = "weighted", num_classes: int = 3
) -> Graph:
    """Random features and edges; node 0 has no features, feature 0 is nobody's, the last node has no neighbours."""
    rng = np.random.default_rng(0)
    features = scipy.sparse.random_array((num_nodes, num_features), density=density, rng=rng, dtype=np.float32).tolil()
    features[0] = 0.0
    if num_features > 1:
        features[:, 0] = 0.0
    features = features.tocsr()
    features.data[:] = 1.0 if values == "binary" else rng.normal(size=features.nnz)
    edges = rng.integers(0, num_nodes - 1, size=(3 * num_nodes, 2))
    edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    return Graph.from_edges(edges, features, np.arange(num_nodes) % num_classes)


# (nodes, features, share of non-zeros): what each is there for.
SIZES = {
    "one feature": (40, 1, 1.0),
    "fewer nodes than lanes": (9, 5, 0.3),
    "short rows, many columns": (300, 3_000, 0.005),
    "bands of rows and columns": (700, 900, 0.2),
    "compressed though given dense": (150, 130, 0.5),
    "dense, ragged tiles": (131, 67, 0.9),
    "columns of more than 16 bits": (60, 70_001, 0.002),
}
WIDTHS: list[NativeModel] = [
    MLP(hidden=16, dropout=0.0),
    GCN(hidden=7, dropout=0.0),
    GCN(hidden=40, dropout=0.0),
    GAT(hidden=4, heads=8, dropout=0.0),
    SAGE(hidden=7, dropout=0.0),
    SAGE(hidden=7, dropout=0.0, aggregation="max"),
]


@pytest.mark.parametrize("values", ["binary", "weighted"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("model", WIDTHS, ids=str)
def test_gradients_are_pytorchs_for_every_layout(
    model: NativeModel, size: tuple[int, int, float], values: Values
) -> None:
    graph = graph_of(*size, values)
    kernel = make_kernel(graph, model, Training())
    parameters, flags = kernel.initial_parameters(3, 1), sample_flags(graph, 0)
    ours, theirs = kernel.gradient(parameters, flags), torch_gradient(graph, model, parameters, flags)
    assert np.linalg.norm(ours - theirs) < 1e-5 * np.linalg.norm(theirs)


def test_more_than_four_blocks_of_lanes_in_bands() -> None:
    """Bands and groups of blocks at once: 90 units are six blocks, of which four go together."""
    graph, model = graph_of(500, 400, 0.4), GCN(hidden=90, dropout=0.0)
    kernel = make_kernel(graph, model, Training())
    parameters, flags = kernel.initial_parameters(3, 1), sample_flags(graph, 0)
    ours, theirs = kernel.gradient(parameters, flags), torch_gradient(graph, model, parameters, flags)
    assert np.linalg.norm(ours - theirs) < 1e-5 * np.linalg.norm(theirs)


class OneStep:
    """The first step of a linear classifier with dropout, in which each node is a class of its own.

    At weight 0 the gradient of weight (c, f) is Σ_i x_if (1/n - [i = c]) / n for the features x that dropout left. As
    node 0 has none, the difference of two classes' gradients gives x entry by entry.
    """

    def __init__(self, size: tuple[int, int, float], dropout: float) -> None:
        self.graph = graph_of(*size, num_classes=size[0])
        model = MLP(layers=1, dropout=dropout, dropout_on=("input",))
        step = Training(epochs=1, learning_rate=1.0, weight_decay=0.0, optimizer="sgd")
        self.kernel = make_kernel(self.graph, model, step)

    def gradients(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the weight, classes x features, and of the bias, at bias 0; the same coins in every call."""
        before = np.append(weight.ravel(), np.zeros(len(weight))).astype(np.float32)
        moved = before - self.kernel.trained_parameters(before, np.ones(self.graph.num_nodes, dtype=np.uint8))
        return moved[: weight.size].reshape(weight.shape).astype(np.float64), moved[weight.size :]

    def kept_features(self) -> np.ndarray:
        """What dropout left of each feature on the way back."""
        gradient, _ = self.gradients(np.zeros((self.graph.num_nodes, self.graph.num_features)))
        return len(gradient) * (gradient[:1] - gradient)


@pytest.mark.parametrize("dropout", [0.5, 0.6])
@pytest.mark.parametrize(
    "size",
    ["short rows, many columns", "bands of rows and columns", "compressed though given dense", "dense, ragged tiles"],
)
def test_dropout_drops_the_same_entries_on_the_way_there_and_back(size: str, dropout: float) -> None:
    step = OneStep(SIZES[size], dropout)
    features, kept = step.graph.dense_features, step.kept_features()
    is_kept = np.abs(kept) > 0.5 * np.abs(features)
    assert kept == pytest.approx(np.where(is_kept, features / (1 - dropout), 0.0), abs=1e-3)
    present = features != 0
    share = is_kept[present].mean()
    assert abs(share - (1 - dropout)) < 5 * np.sqrt(dropout * (1 - dropout) / present.sum())

    # The way there: the gradient of the bias at another weight, with the entries read off.
    weight = np.random.default_rng(1).normal(0, 0.3, (step.graph.num_nodes, step.graph.num_features))
    logits = np.where(is_kept, features / (1 - dropout), 0.0) @ weight.T
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    expected = (chances - np.eye(len(chances))).mean(axis=0)
    assert step.gradients(weight)[1] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("dropout", [0.5, 0.6, 0.1, 0.37])
@pytest.mark.parametrize("size", [(300, 400, 0.3), (300, 160, 1.0)], ids=["sparse", "dense"])
def test_coins_have_their_probability_and_are_independent(size: tuple[int, int, float], dropout: float) -> None:
    """Chi-square tests at level 1e-4 with a fixed seed: by sixteenth of the coins, and of pairs of neighbours."""
    step = OneStep(size, dropout)
    features = step.graph.dense_features
    coins = (np.abs(step.kept_features()) > 0.5 * np.abs(features))[features != 0]
    coins = coins[: len(coins) // 16 * 16].reshape(-1, 16)
    keep, count = 1 - dropout, len(coins)
    by_lane = ((coins.sum(axis=0) - keep * count) ** 2 / (count * keep * dropout)).sum()
    assert by_lane < scipy.stats.chi2.isf(1e-4, 16)

    pairs = 2 * coins[:, :-1:2].astype(np.int64) + coins[:, 1::2]
    observed = np.bincount(pairs.ravel(), minlength=4)
    expected = pairs.size * np.array([dropout**2, dropout * keep, keep * dropout, keep**2])
    assert ((observed - expected) ** 2 / expected).sum() < scipy.stats.chi2.isf(1e-4, 3)


@pytest.mark.parametrize("dense", [False, True])
def test_steps_of_adam_follow_the_formula(dense: bool) -> None:
    """Kingma and Ba 2015 with weight decay, in double precision, from the gradients of the kernel itself."""
    graph = graph_of(60, 50, 0.9 if dense else 0.2)
    training = Training(epochs=1, learning_rate=0.05, weight_decay=1e-2)
    flags = sample_flags(graph, 0)
    model = GCN(hidden=20, dropout=0.0)
    value = make_kernel(graph, model, training).initial_parameters(0, 0)
    start = value.copy()
    mean, square = np.zeros(len(value)), np.zeros(len(value))
    for epoch in range(1, 6):
        gradient = make_kernel(graph, model, training).gradient(value, flags).astype(np.float64) + 1e-2 * value
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        step = 0.05 * (mean / (1 - 0.9**epoch)) / (np.sqrt(square / (1 - 0.999**epoch)) + 1e-8)
        value = (value - step).astype(np.float32)
        several = make_kernel(graph, model, Training(epoch, 0.05, 1e-2)).trained_parameters(start, flags)
        # Adam divides a gradient by its size: where that is all rounding, so is the step.
        is_sure = np.sqrt(square) > 1e-6
        assert several[is_sure] == pytest.approx(value[is_sure], abs=1e-4)


@pytest.mark.parametrize("size", ["bands of rows and columns", "dense, ragged tiles", "compressed though given dense"])
def test_the_same_bytes_on_any_number_of_threads_with_any_layout(size: str) -> None:
    graph = graph_of(*SIZES[size])
    plan = ShadowPlan(Uniform(0.5), GAT(dropout=0.6), Training(epochs=4), seed=3)
    engine = NativeEngine(graph, plan)
    one = fill(engine, graph, plan, list(range(6)), num_threads=1)
    many = fill(engine, graph, plan, list(range(6)), num_threads=4)
    assert one.statistics.tobytes() == many.statistics.tobytes()
    backwards = fill(NativeEngine(graph, plan), graph, plan, [5, 2, 0], num_threads=2)
    assert backwards.statistics.tobytes() == one.statistics[:, [5, 2, 0]].tobytes()
