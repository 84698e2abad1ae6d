"""A linear probe: what an adversary reads off embeddings."""

from __future__ import annotations

import numpy as np

from bmpaudit.arrays import Floats, Floats32, Ints

PENALTY = 0.01
"""Ridge penalty, for each node and in units of the embeddings' mean variance."""


def probe_scores(embeddings: Floats32, labels: Ints, num_classes: int) -> Floats32:
    """Scores of the classes by ridge regression from the embeddings of one model to the nodes' labels.

    With X = (H, 1) and Y the labels as unit vectors, B = (XᵀX + Λ)⁻¹XᵀY, where Λ is λ·N·v on the embeddings' columns, v
    being their mean variance, and 0 on the constant. The score of a node comes from all *other* nodes: with its
    leverage l_i = x_iᵀ(XᵀX + Λ)⁻¹x_i, leaving it out gives (x_iᵀB - l_i·y_i)/(1 - l_i), exactly.

    Models know their own coordinates only: two of them, trained alike, have embeddings that are rotated against each
    other, and a probe of one says nothing about another. So the probe is fitted anew to each model, with labels, which
    the adversary knows, and without memberships. A rotation or a common scale of the embeddings changes nothing.

    Args:
        embeddings: Shape (num_nodes, units).
        labels: Class of each node, shape (num_nodes,).
        num_classes: Number of classes.

    Returns:
        Scores of shape (num_nodes, num_classes), with NaN for embeddings that are not finite.
    """
    if not np.isfinite(embeddings).all():
        return np.full((len(embeddings), num_classes), np.nan, dtype=np.float32)
    hidden: Floats = embeddings.astype(np.float64)
    inputs = np.column_stack([hidden, np.ones(len(hidden))])
    variance = float(hidden.var(axis=0).mean()) or 1.0
    penalty = np.full(inputs.shape[1], PENALTY * len(hidden) * variance)
    penalty[-1] = 0.0
    targets = np.eye(num_classes)[labels]
    solved = np.linalg.solve(inputs.T @ inputs + np.diag(penalty), inputs.T)  # (units + 1, num_nodes)
    leverage = np.einsum("ui,iu->i", solved, inputs)[:, None]
    scores = (inputs @ (solved @ targets) - leverage * targets) / np.maximum(1.0 - leverage, 1e-9)
    return np.asarray(scores, dtype=np.float32)
