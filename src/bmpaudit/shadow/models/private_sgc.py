"""A model with a guarantee: k hops of a lazy random walk, then logistic regression with noise on its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.privacy import Guarantee
from bmpaudit.samplers import AnySampler, sampler_distance
from bmpaudit.shadow.models.bounded_degree import bound_degrees

MOST_HOPS = 64
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-9, 1e9
"""Below the first the noise may leave the range of single precision; beyond the second it is smaller than the rounding
of the optimum, for which no proof accounts."""


@dataclass(frozen=True)
class PrivateSGC:
    """Simplified graph convolution (Wu et al. 2019) that is ε-MDP by a proof: the weights get noise before release.

    Each node's features are projected by a public random matrix and scaled to length 1, then averaged over k hops of a
    lazy random walk, H = (I - L/(1 + d))^k X, where L is the Laplacian of the training graph and d the degree bound.
    The weights minimise Σ_i cross-entropy(Θ h_i, y_i) + λ/2·‖Θ‖² over ‖Θ‖ ≤ ρ, and are released with noise b of
    density ∝ exp(-ε‖b‖/Δ) (Chaudhuri, Monteleoni and Sarwate 2011), Δ being `sensitivity`.

    Formal guarantees:
        - The released weights, and all that is computed from them, are ε-MDP: for any two samples that differ in one
          node, added or removed, no output is more than e^ε times as likely under one as under the other.
        - What follows for MP and BMP depends on the sampler (`guarantee`, docs/guarantees.md).
        - The degree bound holds for the whole graph, which is public: it does not depend on the sample.
        - The proof is for real numbers and noise that nobody can predict; the noise of a shadow model follows from its
          seed, which a model that is really released must keep secret.

    Attributes:
        epsilon: Privacy parameter ε of MDP, which sets the noise.
        hops: Steps k of the random walk; 0 uses no edges.
        max_degree: Degree bound d: edges beyond it are left out of the training graph.
        dimensions: Dimensions that features are projected to; fewer mean less noise.
        regularization: Weight λ of the penalty in the sum over training nodes; more means less noise.
        max_norm: Largest norm ρ of the weights before noise.
    """

    epsilon: float = 1.0
    hops: int = 1
    max_degree: int = 3
    dimensions: int = 32
    regularization: float = 1_000.0
    max_norm: float = 1.0

    trains_itself: ClassVar[bool] = True
    gradient_tolerance: ClassVar[float] = 1e-6
    """How far from 0 the gradient is when training ends; the noise accounts for it."""

    def __post_init__(self) -> None:
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            limits = f"[{SMALLEST_EPSILON:g}, {LARGEST_EPSILON:g}]"
            raise InputError(f"epsilon must be in {limits}, got epsilon={self.epsilon}")
        check_at_least_one(max_degree=self.max_degree, dimensions=self.dimensions)
        if not 0 <= self.hops <= MOST_HOPS:
            raise InputError(f"hops must be a whole number in [0, {MOST_HOPS}], got hops={self.hops}")
        for name in ("regularization", "max_norm"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InputError(f"{name} must be positive and finite, got {name}={value}")

    def __str__(self) -> str:
        return f"PrivateSGC with ε = {self.epsilon:g}"

    @property
    def rows_reached(self) -> int:
        """How many rows of H one node can change besides its own: the nodes within k hops, d·Σ_{t<k} (d-1)^t."""
        return self.max_degree * sum((self.max_degree - 1) ** step for step in range(self.hops))

    @property
    def rows_movement(self) -> float:
        """How far one node can move the other rows of H, all together: 2k·d/(1 + d)."""
        return 2 * self.hops * self.max_degree / (1 + self.max_degree)

    @property
    def gradient_sensitivity(self) -> float:
        """How much one node can change the gradient at any Θ with ‖Θ‖ ≤ ρ.

        √2 for its own row, and for the others the smaller of 2√2 for each and (√2 + ρ/2) times their movement.
        """
        by_rows = 2 * math.sqrt(2) * min(self.rows_reached, 10**15)
        by_movement = (math.sqrt(2) + self.max_norm / 2) * self.rows_movement
        return math.sqrt(2) + min(by_rows, by_movement)

    @property
    def sensitivity(self) -> float:
        """Δ: how far one node can move the trained weights, what is left of the gradient included."""
        return (self.gradient_sensitivity + 2 * self.gradient_tolerance) / self.regularization

    @property
    def noise_scale(self) -> float:
        """Δ/ε: the norm of the noise has the law Gamma(number of weights, Δ/ε)."""
        return self.sensitivity / self.epsilon

    def guarantee(self, graph: Graph, sampler: AnySampler) -> Guarantee:
        """What is guaranteed when samples of this graph are drawn by this sampler."""
        return Guarantee("PrivateSGC", self.epsilon, distance=sampler_distance(sampler, graph))

    def training_graph(self, graph: Graph) -> Graph:
        """The graph with bounded degrees; samples induce their training graph in it."""
        return bound_degrees(graph, self.max_degree)

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """The model as a PyTorch module, with weights 0; imports torch."""
        from bmpaudit.shadow.models.private_module import PrivateModule

        return PrivateModule(self, num_features, num_classes)

    def train(self, module: Any, data: Any, seed: int) -> None:
        """Trains a module on the `Data` of a training graph with bounded degrees; all randomness comes from the seed.

        Raises:
            InputError: if a node has more neighbours than `max_degree`.
        """
        module.fit(data.x, data.edge_index, data.y, seed)
