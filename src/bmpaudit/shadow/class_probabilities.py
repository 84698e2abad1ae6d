"""What a scikit-learn classifier says of every node, as probabilities of all classes and as logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmpaudit.arrays import Floats, Floats32
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph

MAX_DENSE_BYTES = 2**30
"""Features are dense up to this size: many estimators refuse sparse matrices, and few tables are larger."""

ZERO_SHARE, LARGEST_ZERO = 0.25, 0.01
"""What a probability of 0 counts as: this share of the model's smallest probability above 0, and no more than that.

Trees and nearest neighbours count votes, so that 0 stands for less than one vote. A number far smaller would put such
answers far from all others, and attacks that fit a mean and a spread would find less."""


def table_features(graph: Graph) -> Any:
    """The features as a classifier gets them, shape (num_nodes, num_features): dense unless they are too large."""
    is_small = 4 * graph.num_nodes * graph.num_features <= MAX_DENSE_BYTES
    return graph.dense_features if is_small else graph.features


def class_probabilities(estimator: Any, features: Any, num_classes: int) -> Floats:
    """Probability of every class for each node, shape (num_nodes, num_classes); 0 for classes that it does not know.

    Raises:
        InputError: if the classifier knows other classes, or does not give one number for each node and class.
    """
    answers, known = np.asarray(estimator.predict_proba(features)), np.asarray(estimator.classes_)
    wanted = (features.shape[0], len(known))
    if answers.shape != wanted:
        raise InputError(f"predict_proba must give shape {wanted} (nodes, classes), got {answers.shape}")
    if known.dtype.kind not in "iu" or known.min() < 0 or known.max() >= num_classes:
        shown = ", ".join(map(str, known[:5]))
        raise InputError(f"the classifier must know classes from 0 to {num_classes - 1}, got {shown}")
    probabilities = np.zeros((len(answers), num_classes))
    probabilities[:, known] = answers
    return probabilities


def log_votes(probabilities: Floats) -> Floats32:
    """Logits of one model's probabilities, shape (num_nodes, num_classes), with a finite one for 0.

    >>> log_votes(np.array([[0.98, 0.02], [1.0, 0.0]])).round(2)
    array([[-0.02, -3.91],
           [ 0.  , -5.3 ]], dtype=float32)
    """
    above_zero = probabilities > 0
    zero = min(ZERO_SHARE * np.min(probabilities, where=above_zero, initial=1.0), LARGEST_ZERO)
    return np.log(np.where(above_zero, probabilities, max(zero, np.finfo(float).tiny))).astype(np.float32)
