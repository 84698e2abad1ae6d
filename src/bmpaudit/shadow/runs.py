"""Shadow models as attacks take them: memberships, statistics and accuracies, from a store or from the user."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.releases import label_margin
from bmpaudit.util.errors import InputError
from bmpaudit.util.matrices import FlagMatrix, FloatMatrix, Rows
from bmpaudit.util.values import Floats, Floats32, Ints

MAX_DENSE_BYTES = 2**30
"""Features are dense up to this size: many estimators refuse sparse matrices, and few tables are larger."""

ZERO_SHARE, LARGEST_ZERO = 0.25, 0.01
"""What a probability of 0 counts as: this share of the model's smallest probability above 0, and no more than that.

Trees and nearest neighbours count votes, so that 0 stands for less than one vote. With a number far smaller, attacks
that fit a mean and a spread would find less."""

SUM_TOLERANCE = 1e-3
"""How far from 1 the sum of a node's probabilities may be."""


class ProbabilitiesConvertedWarning(UserWarning):
    """Outputs were recognised as probabilities and converted to log-probabilities."""


class ViewAccuracy(NamedTuple):
    """Accuracy of what is given out of each model, both of shape (J,)."""

    train: Floats32  # on the model's sample
    held_out: Floats32  # on all other nodes


@dataclass(frozen=True, eq=False)
class ShadowRuns:
    """Memberships and statistics of J finished shadow models on N nodes.

    Matrices of shape (J, N) are NumPy arrays, or read from the store when they are indexed (`matrices.LazyMatrix`) if
    that would take too much memory; `matrix[:, nodes]` gives an array in either case, and `np.asarray(matrix)` the
    whole.
    """

    indices: Ints  # of each model in its plan, ascending, shape (J,)
    memberships: FlagMatrix  # whether each node was in each model's sample, shape (J, N)
    statistics: Mapping[str, FloatMatrix]  # by view, of every node, shape (J, N); higher = surer of the true label
    train_accuracy: Floats32  # of each model on its sample, shape (J,); NaN where unknown
    held_out_accuracy: Floats32  # of each model on all other nodes, shape (J,); NaN where unknown
    failed: tuple[int, ...] = ()  # models that failed (no finite parameters, or an empty sample) and are left out
    notes: tuple[str, ...] = ()  # what is to be known about the models, such as workers of another build
    view_accuracy: Mapping[str, ViewAccuracy] = field(
        default_factory=dict
    )  # of the likeliest class, the first of equals
    # By release and query, the graph and the mean statistic of each node's neighbours, once an attack has asked for it.
    neighbour_means: dict[str, dict[str, tuple[Graph, FloatMatrix]]] = field(default_factory=dict, repr=False)
    rows: Mapping[str, Rows] = field(default_factory=dict, repr=False)  # class rows by access and release
    is_right: Mapping[str, FlagMatrix] = field(default_factory=dict, repr=False)  # by view, of the likeliest class
    are_independent: bool = False  # known to be: trained by this program, or checked against their sampler

    @property
    def num_models(self) -> int:
        """J: models that were trained."""
        return len(self.indices)

    def __str__(self) -> str:
        views = ", ".join(self.statistics)
        summary = f"{self.num_models:,} shadow models of {self.memberships.shape[1]:,} nodes, views {views}"
        failed = f"; {len(self.failed)} failed: {', '.join(map(str, self.failed[:10]))}" if self.failed else ""
        return summary + failed

    @classmethod
    def from_arrays(
        cls,
        memberships: npt.ArrayLike,
        logits_or_statistics: npt.ArrayLike | Mapping[str, npt.ArrayLike],
        graph_or_labels: Graph | npt.ArrayLike,
        *,
        node_names: Sequence[str] | None = None,
    ) -> ShadowRuns:
        """Takes in models that were trained elsewhere.

        Args:
            memberships: Whether node i was in the sample of model j, shape (J, N), booleans or 0 and 1.
            logits_or_statistics: Logits or probabilities, shape (J, N, C), or label margins, shape (J, N), of the view
                `full_clean`; or a mapping from view names (query and release) to such arrays. Probabilities are
                converted, with a `ProbabilitiesConvertedWarning`.
            graph_or_labels: The graph, or the class of each node, shape (N,).
            node_names: How errors name nodes; a graph brings its own names.
        """
        if isinstance(graph_or_labels, Graph):
            classes, node_names = graph_or_labels.labels, node_names or graph_or_labels.node_names
        else:
            classes = np.asarray(graph_or_labels)
        given = np.asarray(memberships)
        if given.ndim != 2 or given.size == 0:
            raise InputError(f"memberships must have shape (num_models, num_nodes), got {given.shape}")
        if given.dtype != np.bool_ and not np.isin(given, (0, 1)).all():
            raise InputError("memberships must be booleans, or 0 and 1")
        members = given.astype(np.bool_)
        if classes.shape != (members.shape[1],):
            raise InputError(f"labels must have shape ({members.shape[1]},), got {classes.shape}")
        if node_names is not None and len(node_names) != len(classes):
            raise InputError(f"node_names must have {len(classes)} names, got {len(node_names)}")
        is_single = not isinstance(logits_or_statistics, Mapping)
        views: Any = {"full_clean": logits_or_statistics} if is_single else logits_or_statistics
        if not views:
            raise InputError("logits_or_statistics must hold at least one view, got none")
        unknown = np.full(len(members), np.nan, dtype=np.float32)
        statistics, accuracies, is_right = {}, {}, {}
        for name, values in views.items():
            outputs = np.asarray(values)
            statistics[name] = _as_statistics(name, outputs, members.shape, classes, node_names)
            accuracies[name] = ViewAccuracy(unknown, unknown)
            is_right[name] = right = statistics[name] > 0  # a margin alone tells whether a label is likelier than not
            if outputs.ndim == 3:
                is_right[name] = right = outputs.argmax(axis=2) == classes
                with np.errstate(invalid="ignore"):  # of no nodes
                    shares = [(right & some).sum(axis=1) / some.sum(axis=1) for some in (members, ~members)]
                accuracies[name] = ViewAccuracy(*(share.astype(np.float32) for share in shares))
        return cls(
            indices=np.arange(len(members)),
            memberships=members,
            statistics=statistics,
            train_accuracy=unknown,
            held_out_accuracy=unknown,
            view_accuracy=accuracies,
            is_right=is_right,
        )


def _as_statistics(
    view: str, values: npt.NDArray[Any], shape: tuple[int, ...], labels: npt.NDArray[Any], names: Sequence[str] | None
) -> Floats32:
    is_outputs = values.ndim == 3 and values.shape[:2] == shape and values.shape[2] > 0
    if not is_outputs and values.shape != shape:
        raise InputError(
            f"view {view}: must have shape {shape} for margins or (…, num_classes) for logits, got {values.shape}"
        )
    if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values):
        raise InputError(f"view {view}: must be real numbers, got {values.dtype}")
    if is_outputs:
        statistics = label_margin(as_logits(values, f"view {view}", stacklevel=4), labels)
    else:
        with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
            statistics = values.astype(np.float32)
    is_finite = np.isfinite(statistics)
    if not is_finite.all():
        model, node = np.argwhere(~is_finite)[0].tolist()
        name = node if names is None else repr(names[node])
        raise InputError(f"view {view}: must be finite, got {statistics[model, node]} for model {model}, node {name}")
    return statistics


def as_logits(outputs: npt.NDArray[Any], what: str, stacklevel: int) -> npt.NDArray[Any]:
    """Logits as they are, and probabilities as log-probabilities, with a warning that names `what`."""
    if not is_probabilities(outputs):
        return outputs
    message = f"{what}: the outputs are probabilities (each row sums to 1): converted to log-probabilities"
    warnings.warn(message, ProbabilitiesConvertedWarning, stacklevel)
    # 0 is taken as the smallest positive number of the input's precision, float32 at the most.
    kind = np.float16 if outputs.dtype == np.float16 else np.float32
    return np.log(np.maximum(outputs.astype(np.float64), float(np.finfo(kind).smallest_subnormal)))


def is_probabilities(outputs: npt.NDArray[Any]) -> bool:
    """Whether all rows (the last axis) lie in [0, 1] and sum to 1.

    >>> is_probabilities(np.array([[0.25, 0.75], [1.0, 0.0]])), is_probabilities(np.array([[0.5, 2.0]]))
    (True, False)
    """
    if outputs.min() < 0 or outputs.max() > 1:
        return False
    return bool((np.abs(outputs.sum(axis=-1, dtype=np.float64) - 1) <= SUM_TOLERANCE).all())


def table_features(graph: Graph) -> Any:
    """The features as a classifier gets them, shape (num_nodes, num_features): dense unless they are too large."""
    is_small = 4 * graph.num_nodes * graph.num_features <= MAX_DENSE_BYTES
    return graph.dense_features if is_small else graph.features


def class_probabilities(estimator: Any, features: Any, num_classes: int) -> Floats:
    """Probability of every class for each node, shape (num_nodes, num_classes); 0 for classes that it does not know."""
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
