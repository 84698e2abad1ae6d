"""Logits as probabilities and back."""

from __future__ import annotations

import numpy as np

from bmpaudit.arrays import Floats, Floats32


def probabilities(logits: Floats32) -> Floats:
    """Softmax over the classes, in double precision.

    >>> probabilities(np.array([[0.0, np.log(3.0)]], dtype=np.float32)).round(6)
    array([[0.25, 0.75]])
    """
    shifted = logits - logits.max(axis=-1, keepdims=True).astype(np.float64)
    weights = np.exp(shifted)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True), dtype=np.float64)
