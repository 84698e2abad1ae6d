"""What the owner gives out of a trained model, how the adversary asks, and the statistic that an attack looks at."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from bmpaudit.graph import Graph
from bmpaudit.registry import UntrustedPart
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.values import Floats, Floats32, Ints

__all__ = ["Clean", "Embeddings", "Ensemble", "LabelOnly", "NoisyLastLayer", "NoisyOutputs", "OutputRelease", "Rounded"]
__all__ += ["FullEdges", "NoEdges", "Temperature", "TopClasses", "label_margin", "probe_scores"]

LABELS, SCORES, QUERIES, WEIGHTS = ACCESSES = ("labels", "scores", "queries", "weights")
"""What an adversary sees of a released model, the least first: each can be computed from the next.

The predicted classes of the graph's nodes, their scores, answers about inputs of the adversary's own, or the weights.
"""

MOST_DIGITS = 6  # of a rounded probability: float32 has no more
MOST_IN_ENSEMBLE = 1_000
LEAST_PROBABILITY = 1e-12  # whose logarithm is taken
NOT_PREDICTED = -20.0
PENALTY = 0.01  # of the ridge of `probe_scores`, for each node and in units of the embeddings' mean variance


def models_of(release: object) -> int:
    """How many models, trained on the same sample, a release takes."""
    return 1 if isinstance(release, UntrustedPart) else int(getattr(release, "num_models", 1))


def gives_embeddings(release: object) -> bool:
    """Whether a release gives out activations of the last hidden layer in place of logits."""
    return not isinstance(release, UntrustedPart) and bool(getattr(release, "gives_embeddings", False))


def gives_labels_only(release: object) -> bool:
    """Whether a release gives out labels, and no scores."""
    return not isinstance(release, UntrustedPart) and bool(getattr(release, "gives_labels_only", False))


def is_computed_from(release: Any, base: Any, access: str = WEIGHTS) -> bool:
    """Whether whoever has access to one release can make what another gives out, in law (Prop. 2).

    Then the first gives away no less than the second. Everything that is made from the trained model itself is computed
    from the weights of `Clean`. From answers alone other answers can be made, but no noise on weights, and no hidden
    layer.

    >>> is_computed_from(LabelOnly(), Clean()), is_computed_from(Clean(), LabelOnly())
    (True, False)
    >>> is_computed_from(NoisyLastLayer(), Clean()), is_computed_from(NoisyLastLayer(), Clean(), access="scores")
    (True, False)
    """
    if release == base:
        return True
    if isinstance(release, UntrustedPart) or isinstance(base, UntrustedPart) or models_of(release) > models_of(base):
        return False
    if access != WEIGHTS and (not release.changes_outputs or gives_embeddings(release)):
        return False
    match base:
        case Clean():
            return True
        case Temperature():
            return isinstance(release, (LabelOnly, NoisyOutputs, Rounded, Temperature, TopClasses))
        case TopClasses():
            return isinstance(release, LabelOnly) or (isinstance(release, TopClasses) and release.top < base.top)
        case NoisyLastLayer():
            return isinstance(release, NoisyLastLayer) and release.noise_std > base.noise_std
        case NoisyOutputs():
            return isinstance(release, NoisyOutputs) and release.output_noise > base.output_noise
    return False


class OutputRelease(ABC):
    """A release that leaves the model as it was trained and changes its outputs: subclass it and write `outputs`.

    >>> class Rounded(OutputRelease):
    ...     def outputs(self, logits, rng):
    ...         return logits.round(1)
    >>> Rounded().outputs(np.array([[0.123, -0.456]], dtype=np.float32), np.random.default_rng(0))
    array([[ 0.1, -0.5]], dtype=float32)
    """

    last_layer_noise = 0.0
    changes_outputs = True

    @abstractmethod
    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:
        """What is given out in place of one model's logits, both of shape (num_nodes, num_classes)."""


def probabilities(logits: Floats32) -> Floats:
    """Softmax over the classes, in double precision.

    >>> probabilities(np.array([[0.0, np.log(3.0)]], dtype=np.float32)).round(6)
    array([[0.25, 0.75]])
    """
    return np.asarray(softmax(logits.astype(np.float64), axis=-1))


class _Answers:
    """A release that gives out what the model answers."""

    changes_outputs = False

    @property
    def last_layer_noise(self) -> float:
        """See `interfaces.Release`."""
        return 0.0

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        return logits


@dataclass(frozen=True)
class Clean(_Answers):
    """Gives out the trained model; attacks look at its logits."""


@dataclass(frozen=True)
class NoisyLastLayer(_Answers):
    """Adds Gaussian noise to all parameters of the last layer, once for each model: every query meets the same noise.

    Attributes:
        noise_std: Standard deviation of the noise.
    """

    noise_std: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.noise_std < float("inf"):
            raise InputError(f"noise_std must be at least 0, got noise_std={self.noise_std}")

    @property
    def last_layer_noise(self) -> float:
        """See `interfaces.Release`."""
        return float(self.noise_std)


@dataclass(frozen=True)
class NoisyOutputs(OutputRelease):
    """Adds Gaussian noise to the logits, anew for each answer.

    Attributes:
        output_noise: Standard deviation of the noise on each logit.
    """

    output_noise: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.output_noise < float("inf"):
            raise InputError(f"output_noise must be at least 0, got output_noise={self.output_noise}")

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:
        """See `interfaces.Release`."""
        return logits + np.float32(self.output_noise) * rng.standard_normal(logits.shape, dtype=np.float32)


@dataclass(frozen=True)
class Rounded(OutputRelease):
    """Gives out probabilities rounded to some decimal places, as their logarithms.

    A probability that is rounded to 0 stands for one below half a unit, and has the logarithm of a quarter of a unit.

    Attributes:
        digits: Decimal places of the probabilities.
    """

    digits: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise InputError(f"digits must be from 1 to {MOST_DIGITS}, got digits={self.digits}")

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        rounded = probabilities(logits).round(self.digits)
        return np.log(np.maximum(rounded, 0.25 * 10.0**-self.digits)).astype(np.float32)


@dataclass(frozen=True)
class Temperature(OutputRelease):
    """Divides the logits by a temperature; this hides nothing by itself, as an adversary who knows it multiplies again.

    Attributes:
        temperature: Above 1 for outputs that are less sure.
    """

    temperature: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise InputError(f"temperature must be positive, got temperature={self.temperature}")

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        return np.asarray(logits / np.float32(self.temperature), dtype=np.float32)


@dataclass(frozen=True)
class TopClasses(OutputRelease):
    """Gives out the probabilities of the likeliest classes, and of the others only that they share the rest.

    Attributes:
        top: How many classes.
    """

    top: int = 3

    def __post_init__(self) -> None:
        check_at_least_one(top=self.top)

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`; `InputError` if there are no other classes."""
        num_classes = logits.shape[-1]
        if self.top >= num_classes:
            raise InputError(f"top must be less than the number of classes, {num_classes}, got top={self.top}")
        shown = probabilities(logits)
        others = np.argsort(-shown, axis=-1, kind="stable")[..., self.top :]
        rest = np.take_along_axis(shown, others, axis=-1).mean(axis=-1, keepdims=True)
        np.put_along_axis(shown, others, np.broadcast_to(rest, others.shape), axis=-1)
        return np.log(np.maximum(shown, LEAST_PROBABILITY)).astype(np.float32)


@dataclass(frozen=True)
class Embeddings(_Answers):
    """Gives out what goes into the last layer, for every node: the activations of the last hidden layer.

    The adversary reads scores of the classes off them by a linear probe of its own (`probe_scores`), and the attack's
    statistic is that of these scores.
    """

    gives_embeddings: ClassVar[bool] = True


@dataclass(frozen=True)
class Ensemble(OutputRelease):
    """Gives out the mean probabilities of several models, trained on the same sample from other initial weights.

    They are given as logarithms. The first of the models is the one that all other releases are about.

    Attributes:
        ensemble_size: How many models.
    """

    ensemble_size: int = 5

    def __post_init__(self) -> None:
        if not 2 <= self.ensemble_size <= MOST_IN_ENSEMBLE:
            raise InputError(f"ensemble_size must be from 2 to {MOST_IN_ENSEMBLE:,}, got {self.ensemble_size}")

    @property
    def num_models(self) -> int:
        """See `interfaces.Release`."""
        return int(self.ensemble_size)

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`; `logits` has shape (ensemble_size, num_nodes, num_classes)."""
        mean = np.mean([probabilities(each) for each in logits], axis=0)
        return np.log(np.maximum(mean, LEAST_PROBABILITY)).astype(np.float32)


@dataclass(frozen=True)
class LabelOnly(OutputRelease):
    """Gives out the predicted class, as logits of 0 for it and -20 for all others.

    The label margin is then positive where the class is the true one, and negative elsewhere. An audit
    attacks it with `right-or-wrong`, which is made for that.
    """

    gives_labels_only: ClassVar[bool] = True

    def outputs(self, logits: Floats32, rng: np.random.Generator) -> Floats32:  # noqa: ARG002
        """See `interfaces.Release`."""
        shown = np.full_like(logits, NOT_PREDICTED)
        np.put_along_axis(shown, logits.argmax(axis=-1)[..., None], 0.0, axis=-1)
        return shown


@dataclass(frozen=True)
class FullEdges:
    """Asks about every node with all edges of the graph."""

    def graph(self, graph: Graph) -> Graph:
        """See `interfaces.Query`."""
        return graph


@dataclass(frozen=True)
class NoEdges:
    """Asks about each node by itself."""

    def graph(self, graph: Graph) -> Graph:
        """See `interfaces.Query`."""
        indptr, indices = np.zeros_like(graph.indptr), np.empty(0, dtype=graph.indices.dtype)
        return replace(graph, indptr=indptr, indices=indices)


def label_margin(logits: npt.ArrayLike, labels: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Z = o_y - log Σ_{c≠y} e^{o_c}, without overflow, of shape (…, num_nodes).

    Logits have shape (…, num_nodes, num_classes), with at least two classes, and labels (num_nodes,).

    >>> label_margin([[2.0, 0.0, 0.0]], [0]).round(4)
    array([1.3069], dtype=float32)
    """
    scores, classes = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    if scores.ndim < 2 or scores.shape[-2] != len(classes) or scores.shape[-1] < 2:
        raise InputError(f"logits must have shape (…, {len(classes)} nodes, at least 2 classes), got {scores.shape}")
    if classes.min() < 0 or classes.max() >= scores.shape[-1]:
        raise InputError(f"labels must be in [0, {scores.shape[-1]}), got {classes.min()} to {classes.max()}")
    index = np.broadcast_to(classes[:, None], (*scores.shape[:-1], 1))
    own = np.take_along_axis(scores, index, axis=-1)[..., 0]
    others = scores.copy()
    np.put_along_axis(others, index, -np.inf, axis=-1)
    with np.errstate(invalid="ignore", over="ignore"):  # logits that are not finite give margins that are not
        return (own - np.logaddexp.reduce(others, axis=-1)).astype(np.float32)


def probe_scores(embeddings: Floats32, labels: Ints, num_classes: int) -> Floats32:
    """Scores of the classes by ridge regression from the embeddings of one model to the nodes' labels.

    With X = (H, 1) and Y the labels as unit vectors, B = (XᵀX + Λ)⁻¹XᵀY, where Λ is λ·N·v on the embeddings' columns, v
    being their mean variance, and 0 on the constant. The score of a node comes from all *other* nodes: with its
    leverage l_i = x_iᵀ(XᵀX + Λ)⁻¹x_i, leaving it out gives (x_iᵀB - l_i·y_i)/(1 - l_i), exactly.

    Two models, trained alike, have embeddings that are rotated against each other, so the probe is fitted anew to each
    of them, without memberships. A rotation or a common scale of the embeddings changes nothing.

    From shape (num_nodes, units) to (num_nodes, num_classes), with NaN for embeddings that are not finite.
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
