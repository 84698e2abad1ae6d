"""The shadow models' answers: what the attack works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import InputError
from bmpaudit.shadow.margin import label_margin


@dataclass(frozen=True, eq=False)
class ShadowRuns:
    """Memberships and statistics of J finished shadow models on N nodes.

    Attributes:
        indices: Number of each model in its plan, shape (J,).
        memberships: Whether each node was in each model's sample, shape (J, N).
        statistics: For each view, the label margin of every node under every model, shape (J, N); higher = surer of
            the true label.
        train_accuracy: Of each model on its sample, shape (J,); NaN where unknown.
        held_out_accuracy: Of each model on all other nodes, shape (J,); NaN where unknown.
        failed: Numbers of models that failed (no finite parameters, or an empty sample) and are left out.
    """

    indices: npt.NDArray[np.int64]
    memberships: npt.NDArray[np.bool_]
    statistics: Mapping[str, npt.NDArray[np.float32]]
    train_accuracy: npt.NDArray[np.float32]
    held_out_accuracy: npt.NDArray[np.float32]
    failed: tuple[int, ...] = ()

    @property
    def num_models(self) -> int:
        """J: models that were trained."""
        return len(self.indices)

    def __str__(self) -> str:
        views = ", ".join(self.statistics)
        told = f"{self.num_models:,} shadow models of {self.memberships.shape[1]:,} nodes, views {views}"
        return told + (f"; {len(self.failed)} failed: {', '.join(map(str, self.failed[:10]))}" if self.failed else "")

    @classmethod
    def from_arrays(
        cls,
        memberships: npt.ArrayLike,
        logits_or_statistics: npt.ArrayLike | Mapping[str, npt.ArrayLike],
        labels: npt.ArrayLike,
    ) -> ShadowRuns:
        """Takes in models that were trained elsewhere.

        Args:
            memberships: Whether node i was in the sample of model j, shape (J, N), booleans or 0 and 1.
            logits_or_statistics: Logits, shape (J, N, C), or label margins, shape (J, N); or a mapping from names of
                views to such arrays. A single array is the view `full_clean`.
            labels: Class of each node, shape (N,).

        Raises:
            InputError: if shapes do not fit or a value is not finite.
        """
        members = _as_memberships(memberships)
        classes = np.asarray(labels)
        if classes.shape != (members.shape[1],):
            raise InputError(f"labels must have shape ({members.shape[1]},), got {classes.shape}")
        views = logits_or_statistics
        if not isinstance(views, Mapping):
            views = {"full_clean": views}
        unknown = np.full(len(members), np.nan, dtype=np.float32)
        return cls(
            indices=np.arange(len(members)),
            memberships=members,
            statistics={name: _as_statistics(name, given, members.shape, classes) for name, given in views.items()},
            train_accuracy=unknown,
            held_out_accuracy=unknown,
        )


def _as_memberships(memberships: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    given = np.asarray(memberships)
    if given.ndim != 2 or given.size == 0:
        raise InputError(f"memberships must have shape (num_models, num_nodes), got {given.shape}")
    if given.dtype != np.bool_ and not np.isin(given, (0, 1)).all():
        raise InputError("memberships must be booleans, or 0 and 1")
    return given.astype(np.bool_)


def _as_statistics(
    name: str, given: npt.ArrayLike, shape: tuple[int, ...], labels: npt.NDArray[np.generic]
) -> npt.NDArray[np.float32]:
    values = np.asarray(given)
    if values.ndim == 3 and values.shape[:2] == shape:
        values = label_margin(values, labels)
    if values.shape != shape:
        raise InputError(
            f"view {name}: must have shape {shape} for margins or (…, num_classes) for logits, got {values.shape}"
        )
    if not np.isfinite(values).all():
        model, node = np.argwhere(~np.isfinite(values))[0]
        raise InputError(f"view {name}: must be finite, got {values[model, node]} for model {model}, node {node}")
    return values.astype(np.float32)
