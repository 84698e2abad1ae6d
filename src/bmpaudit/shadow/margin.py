"""The test statistic of Algorithm 2; the higher it is, the surer the model is of the node's label."""

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError


def label_margin(logits: npt.ArrayLike, labels: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Z = o_y - log Σ_{c≠y} e^{o_c}, without overflow.

    Args:
        logits: Shape (…, num_nodes, num_classes), at least two classes.
        labels: Shape (num_nodes,).

    Returns:
        Shape (…, num_nodes).

    >>> label_margin([[2.0, 0.0, 0.0]], [0]).round(4)
    array([1.3069], dtype=float32)
    """
    scores, classes = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    if scores.ndim < 2 or scores.shape[-2] != len(classes) or scores.shape[-1] < 2:
        raise InputError(
            f"logits must have shape (…, {len(classes)} nodes, at least 2 classes), got {np.shape(logits)}"
        )
    if classes.min() < 0 or classes.max() >= scores.shape[-1]:
        raise InputError(f"labels must be in [0, {scores.shape[-1]}), got {classes.min()} to {classes.max()}")
    index = np.broadcast_to(classes[:, None], (*scores.shape[:-1], 1))
    own = np.take_along_axis(scores, index, axis=-1)[..., 0]
    others = scores.copy()
    np.put_along_axis(others, index, -np.inf, axis=-1)
    with np.errstate(invalid="ignore", over="ignore"):  # logits that are not finite give margins that are not
        return (own - np.logaddexp.reduce(others, axis=-1)).astype(np.float32)
