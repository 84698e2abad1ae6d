"""What a trained model answers to each query under each release, against a plain reference."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bmpaudit import _native
from bmpaudit.util.streams import Purpose, stream

SEED, NUM_NODES, NUM_FEATURES, HIDDEN, NUM_CLASSES = 3, 7, 5, 4, 3
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]
FEWER_EDGES = [(0, 1), (3, 4), (4, 6)]
LABELS = np.array([0, 1, 2, 0, 1, 2, 0], dtype=np.int32)
FEATURES = np.random.default_rng(0).normal(size=(NUM_NODES, NUM_FEATURES)).astype(np.float32)
MEMBER = np.array([[1, 1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 1, 0]], dtype=np.uint8)
INDICES = np.array([4, 11], dtype=np.int64)

Query = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
Floats = npt.NDArray[np.float64]


def dense(edges: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    adjacency = np.zeros((NUM_NODES, NUM_NODES), dtype=np.int64)
    for one, other in edges:
        adjacency[one, other] = adjacency[other, one] = 1
    return adjacency


def query(edges: list[tuple[int, int]]) -> Query:
    adjacency = dense(edges)
    return np.append(0, np.cumsum(adjacency.sum(1))).astype(np.int64), np.nonzero(adjacency)[1].astype(np.int32)


def engine() -> Any:
    layers = [_native.LayerSettings("gcn", HIDDEN), _native.LayerSettings("gcn", NUM_CLASSES)]
    model = _native.ModelSettings(layers, "relu", 0.0)
    training = _native.TrainingSettings(20, 0.05, 5e-4, "adam")
    features = FEATURES.ravel()
    return _native.ShadowEngine(
        *query(EDGES), None, None, None, features, NUM_FEATURES, LABELS, NUM_CLASSES, model, training
    )


def run(queries: list[Query], views: list[tuple[int, float]]) -> dict[str, npt.NDArray[Any]]:
    results: dict[str, npt.NDArray[Any]] = {
        "statistics": np.zeros((len(views), 2, NUM_NODES), dtype=np.float32),
        "logits": np.zeros((len(views), 2, NUM_NODES, NUM_CLASSES), dtype=np.float32),
        "state": np.zeros(2, dtype=np.uint8),
        "train_accuracy": np.zeros(2, dtype=np.float32),
        "held_out_accuracy": np.zeros(2, dtype=np.float32),
        "view_train_accuracy": np.zeros((len(views), 2), dtype=np.float32),
        "view_held_out_accuracy": np.zeros((len(views), 2), dtype=np.float32),
    }
    engine().run(MEMBER, INDICES, SEED, queries, views, 1, **results, progress=None)
    assert results["state"].tolist() == [1, 1]
    return results


def reference_logits(edges: list[tuple[int, int]], model: int, noise_std: float) -> Floats:
    """A GCN with the weights that the kernel trained, in double precision."""
    trainer = engine()
    flat = trainer.trained_parameters(trainer.initial_parameters(SEED, int(INDICES[model])), MEMBER[model])
    sizes = [HIDDEN * NUM_FEATURES, HIDDEN, NUM_CLASSES * HIDDEN, NUM_CLASSES]
    first, first_bias, last, last_bias = np.split(flat.astype(np.float64), np.cumsum(sizes)[:-1])
    noise = noise_std * standard_normals(int(INDICES[model]), sizes[2] + sizes[3])
    last, last_bias = last + noise[: sizes[2]], last_bias + noise[sizes[2] :]
    with_loops = dense(edges) + np.eye(NUM_NODES)
    scale = 1 / np.sqrt(with_loops.sum(1))
    propagate = scale[:, None] * with_loops * scale
    hidden = np.maximum(propagate @ FEATURES @ first.reshape(HIDDEN, -1).T + first_bias, 0)
    return propagate @ hidden @ last.reshape(NUM_CLASSES, -1).T + last_bias


def standard_normals(index: int, size: int) -> Floats:
    """Box-Muller pairs from the stream of noise of one model."""
    uniform = stream(SEED, index, Purpose.NOISE).random(size + size % 2).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(1 - uniform[:, 0])), 2 * np.pi * uniform[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()[:size]


VIEWS = [(0, 0.0), (1, 0.0), (2, 0.0), (0, 0.25), (1, 0.25), (2, 0.25), (1, 1.5)]
EDGES_OF: tuple[list[tuple[int, int]], ...] = (EDGES, [], FEWER_EDGES)


def test_each_view_is_the_query_through_the_release() -> None:
    results = run([query(edges) for edges in EDGES_OF], VIEWS)
    for view, (number, noise_std) in enumerate(VIEWS):
        for model in range(2):
            expected = reference_logits(EDGES_OF[number], model, noise_std)
            np.testing.assert_allclose(results["logits"][view, model], expected, rtol=1e-4, atol=1e-4)
            others = np.where(np.eye(NUM_CLASSES, dtype=bool)[LABELS], -np.inf, expected)
            margin = expected[np.arange(NUM_NODES), LABELS] - np.log(np.exp(others).sum(1))
            np.testing.assert_allclose(results["statistics"][view, model], margin, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("view", range(len(VIEWS)))
def test_a_view_does_not_depend_on_the_others(view: int) -> None:
    together = run([query(edges) for edges in EDGES_OF], VIEWS)
    number, noise_std = VIEWS[view]
    alone = run([query(EDGES_OF[number])], [(0, noise_std)])
    for name in ("statistics", "logits", "view_train_accuracy", "view_held_out_accuracy"):
        assert alone[name][0].tobytes() == together[name][view].tobytes()
    for name in ("train_accuracy", "held_out_accuracy"):
        assert alone[name].tobytes() == together[name].tobytes()


def test_accuracy_is_that_of_the_whole_graph() -> None:
    results = run([query([])], [(0, 1.5)])
    for model in range(2):
        right = reference_logits(EDGES, model, 0.0).argmax(1) == LABELS
        assert results["train_accuracy"][model] == np.float32(right[MEMBER[model] == 1].mean())
        assert results["held_out_accuracy"][model] == np.float32(right[MEMBER[model] == 0].mean())


def test_each_view_has_the_accuracy_of_its_own_answers() -> None:
    results = run([query(edges) for edges in EDGES_OF], VIEWS)
    seen = set()
    for view, (number, noise_std) in enumerate(VIEWS):
        for model in range(2):
            right = reference_logits(EDGES_OF[number], model, noise_std).argmax(1) == LABELS
            assert results["view_train_accuracy"][view, model] == np.float32(right[MEMBER[model] == 1].mean())
            assert results["view_held_out_accuracy"][view, model] == np.float32(right[MEMBER[model] == 0].mean())
            seen.add(float(right.mean()))
    assert len(seen) > 2  # the views differ
