"""Margins and accuracy of any number of nodes and classes, against the logits that they are made from."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.special

from bmpaudit import _native

NUM_FEATURES = 6
NO_EDGES = np.zeros(0, dtype=np.int32)


def scores(num_nodes: int, num_classes: int) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.int32]]:
    """What one model of a graph without edges says of random labels, and the labels."""
    rng = np.random.default_rng([num_nodes, num_classes])
    features = rng.normal(size=num_nodes * NUM_FEATURES).astype(np.float32)
    labels = rng.integers(num_classes, size=num_nodes).astype(np.int32)
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    layers = [_native.LayerSettings("gcn", 4), _native.LayerSettings("gcn", num_classes)]
    engine = _native.ShadowEngine(
        indptr,
        NO_EDGES,
        None,
        None,
        None,
        features,
        NUM_FEATURES,
        labels,
        num_classes,
        _native.ModelSettings(layers, "relu", 0.0),
        _native.TrainingSettings(5, 0.5, 0.0, "adam"),
    )
    results: dict[str, Any] = {
        "statistics": np.zeros((1, 1, num_nodes), dtype=np.float32),
        "logits": np.zeros((1, 1, num_nodes, num_classes), dtype=np.float32),
        "state": np.zeros(1, dtype=np.uint8),
        "train_accuracy": np.zeros(1, dtype=np.float32),
        "held_out_accuracy": np.zeros(1, dtype=np.float32),
        "view_train_accuracy": np.zeros((1, 1), dtype=np.float32),
        "view_held_out_accuracy": np.zeros((1, 1), dtype=np.float32),
    }
    member = (np.arange(num_nodes) % 2 == 0).astype(np.uint8)[None]
    engine.run(member, np.zeros(1, dtype=np.int64), 0, [(indptr, NO_EDGES)], [(0, 0.0)], 1, **results, progress=None)
    assert results["state"].tolist() == [1]
    return results, labels


@pytest.mark.parametrize("num_nodes", [2, 15, 16, 17, 50])
@pytest.mark.parametrize("num_classes", [2, 3, 4, 5, 8, 9, 15, 16, 17, 40])
def test_margins_and_accuracy_are_those_of_the_logits(num_nodes: int, num_classes: int) -> None:
    results, labels = scores(num_nodes, num_classes)
    logits = results["logits"][0, 0].astype(np.float64)
    is_label = np.arange(num_classes) == labels[:, None]
    margins = logits[is_label] - scipy.special.logsumexp(np.where(is_label, -np.inf, logits), axis=1)
    assert margins.std() > 0.1
    np.testing.assert_allclose(results["statistics"][0, 0], margins, rtol=2e-6, atol=2e-6)
    is_right = logits.argmax(axis=1) == labels
    assert results["train_accuracy"][0] == np.float32(is_right[::2].mean())
    assert results["held_out_accuracy"][0] == np.float32(is_right[1::2].mean())
