"""What the models that are trained by DP-SGD have in common. Importing this imports neither torch nor dp-accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.privacy import Guarantee
from bmpaudit.samplers import AnySampler, sampler_distance
from bmpaudit.shadow.models.accounting import LEAST_NOISE, MOST_NOISE, Steps
from bmpaudit.shadow.models.base import MAX_UNITS

DEFAULT_EPSILON = 8.0


@dataclass(frozen=True)
class DPModel:
    """A perceptron with one hidden layer on a row for each node, trained by DP-SGD (Abadi et al. 2016) with Opacus.

    Features are projected by a public random matrix and scaled to length 1. In each step every row of the sample is
    drawn into the batch with probability q, on its own; the gradient of each row is clipped to length C, Gaussian noise
    of standard deviation σC is added to their sum, and the sum goes into Adam. Nothing depends on how many nodes the
    sample has: the sum is not divided by a number of rows, and Adam does not mind its scale.

    Attributes:
        epsilon: Privacy parameter ε of MDP, which sets the noise; 8 unless `noise_multiplier` is given.
        delta: Privacy parameter δ of MDP.
        noise_multiplier: Noise σ of a step, relative to the length of a clipped row; instead of `epsilon`.
        steps: Number T of steps.
        sampling_rate: Probability q that a row of the sample is drawn into the batch of a step.
        clip: Length C that a row's gradient is clipped to.
        step_size: Learning rate of Adam.
        hidden: Units of the hidden layer.
        dimensions: Dimensions that features are projected to; fewer mean less noise.
    """

    epsilon: float | None = None
    delta: float = 1e-6
    noise_multiplier: float | None = None
    steps: int = 100
    sampling_rate: float = 0.1
    clip: float = 1.0
    step_size: float = 0.05
    hidden: int = 16
    dimensions: int = 128

    trains_itself: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.epsilon is not None and self.noise_multiplier is not None:
            raise InputError(
                "one of epsilon and noise_multiplier sets the noise, "
                f"got epsilon={self.epsilon} and noise_multiplier={self.noise_multiplier}"
            )
        if self.epsilon is not None and not 0 < self.epsilon < math.inf:
            raise InputError(f"epsilon must be positive and finite, got epsilon={self.epsilon}")
        if self.noise_multiplier is not None and not LEAST_NOISE <= self.noise_multiplier <= MOST_NOISE:
            raise InputError(
                f"noise_multiplier must be in [{LEAST_NOISE:g}, {MOST_NOISE:g}], got {self.noise_multiplier}"
            )
        if not 1e-12 <= self.delta < 1:
            raise InputError(f"delta must be in [1e-12, 1), got delta={self.delta}")
        if not 0 < self.sampling_rate <= 1:
            raise InputError(f"sampling_rate must be in (0, 1], got sampling_rate={self.sampling_rate}")
        for name in ("clip", "step_size"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InputError(f"{name} must be positive and finite, got {name}={value}")
        check_at_least_one(steps=self.steps, hidden=self.hidden, dimensions=self.dimensions)
        if max(self.hidden, self.dimensions) > MAX_UNITS:
            raise InputError(
                f"hidden and dimensions must be at most {MAX_UNITS}, got {self.hidden} and {self.dimensions}"
            )

    def __str__(self) -> str:
        level = f"ε = {self._target:g}" if self.noise_multiplier is None else f"σ = {self.noise_multiplier:g}"
        return f"{type(self).__name__} with {level}"

    @property
    def rows_changed(self) -> int:
        """How many rows a node changes besides its own."""
        return 0

    @property
    def accounting(self) -> Steps:
        """The steps, as they are accounted for."""
        return Steps(self.steps, self.sampling_rate, self.rows_changed)

    @cached_property
    def noise(self) -> float:
        """The noise multiplier σ: the one that was given, or the least that gives (ε, δ); imports dp-accounting.

        Raises:
            InputError: if no noise gives (ε, δ).
        """
        if self.noise_multiplier is not None:
            return self.noise_multiplier
        return self.accounting.noise_for(self._target, self.delta)

    @property
    def guaranteed_epsilon(self) -> float:
        """The ε that was asked for, or the one that the noise gives; imports dp-accounting."""
        if self.noise_multiplier is None:
            return self._target
        return self.accounting.epsilon(self.noise_multiplier, self.delta)

    @property
    def _target(self) -> float:
        return DEFAULT_EPSILON if self.epsilon is None else self.epsilon

    def guarantee(self, graph: Graph, sampler: AnySampler) -> Guarantee:
        """What is guaranteed when samples of this graph are drawn by this sampler."""
        distance = sampler_distance(sampler, graph)
        return Guarantee(type(self).__name__, self.guaranteed_epsilon, self.delta, distance)

    def training_graph(self, graph: Graph) -> Graph:
        """What of the graph is trained on.

        Raises:
            InputError: if no noise gives (ε, δ).
        """
        _ = self.noise  # found before a model is trained, and sent to other processes with the model
        return graph

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """The model as a PyTorch module; imports torch."""
        from bmpaudit.shadow.models.dp_module import DPModule

        return DPModule(self, num_features, num_classes)

    def train(self, module: Any, data: Any, seed: int) -> None:
        """Trains a module on the `Data` of a training graph; all randomness comes from the seed."""
        module.fit(data.x, data.edge_index, data.y, seed)
