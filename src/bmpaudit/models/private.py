"""Models with a proof: DP-SGD with its accounting, and a private simplified graph convolution.

Importing this imports neither torch nor dp-accounting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln, logsumexp, ndtr, xlog1py, xlogy

from bmpaudit.graph import Graph
from bmpaudit.models.gnn import MAX_UNITS
from bmpaudit.privacy import Guarantee
from bmpaudit.samplers import AnySampler, sampler_distance
from bmpaudit.samplers.draw import compressed_rows
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.values import Floats

_ORDER_SEED = 20_250_101  # which edges go is public, and the same for everybody

LEAST_NOISE, MOST_NOISE = 0.3, 10_000.0
"""Of DP-SGD: outside of it the loss of a step is too coarse or too fine to be computed."""
TAIL = 9.0  # standard deviations; what lies beyond has probability 1e-19
FINEST, MOST_LOSSES = 1e-4, 40_000
DEFAULT_EPSILON = 8.0
MOST_NEIGHBOURS = 200

MOST_HOPS = 64
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-9, 1e9
"""Of `PrivateSGC`: below the first the noise may leave the range of single precision; beyond the second it is smaller
than the rounding of the optimum, for which no proof accounts."""


def bound_degrees(graph: Graph, max_degree: int) -> Graph:
    """The same nodes, and of the edges as many as a greedy pass keeps: no node has more than `max_degree` neighbours.

    Edges come in a fixed random order; one is kept if both ends still have room. What is kept depends on the graph
    alone, so that a sample is not in it: for any two samples, the edges among the nodes they share are the same.
    """
    if graph.num_edges == 0 or graph.degrees.max() <= max_degree:
        return graph
    edges = graph.edges
    order = np.random.default_rng(_ORDER_SEED).permutation(len(edges))
    room = [max_degree] * graph.num_nodes
    kept = np.zeros(len(edges), dtype=np.bool_)
    for number, (one, other) in zip(order.tolist(), edges[order].tolist(), strict=True):
        if room[one] and room[other]:
            room[one] -= 1
            room[other] -= 1
            kept[number] = True
    indptr, indices = compressed_rows(edges[kept], graph.num_nodes)
    return replace(graph, indptr=indptr, indices=indices)


@dataclass(frozen=True)
class Steps:
    """The steps of DP-SGD, and what they give away: their privacy loss by dp-accounting.

    A step adds Gaussian noise to a sum of clipped rows, each drawn into the batch with probability q. The unit is the
    length that a row is clipped to. A node that joins the sample brings a row and changes those of its d neighbours;
    docs/guarantees.md has the proof that no pair of samples can then be told apart better than

        P = Σ_k Bin(k; d + 1, q)·N(k, σ²)  from  Q = Σ_k Bin(k; d, q)·N(-k, σ²).
    """

    num_steps: int  # T
    sampling_rate: float  # q
    max_degree: int = 0  # d: how many rows a node changes besides its own

    def epsilon(self, noise_multiplier: float, delta: float) -> float:
        """The ε that goes with δ; rounded upwards, never downwards."""
        return float(_privacy_loss(self, noise_multiplier).get_epsilon_for_delta(delta))

    def noise_for(self, epsilon: float, delta: float) -> float:
        """The least noise multiplier, to three digits, that gives (ε, δ); `InputError` if none does."""
        from scipy.optimize import brentq  # takes long to import

        low, high = LEAST_NOISE, MOST_NOISE
        if self.epsilon(low, delta) <= epsilon:
            return low
        if self.epsilon(high, delta) > epsilon:
            raise InputError(
                f"no noise_multiplier up to {MOST_NOISE:,.0f} gives epsilon={epsilon:g} with delta={delta:g} in "
                f"{self.num_steps:,} steps: the least it can give is {self.epsilon(high, delta):.2g}"
            )
        # log ε falls nearly linearly in log σ, so that few tries are needed.
        found = brentq(
            lambda log_noise: math.log(self.epsilon(math.exp(log_noise), delta) / epsilon),
            *(math.log(low), math.log(high)),
            xtol=1e-4,
        )
        digits = 2 - math.floor(found / math.log(10))
        noise = math.ceil(math.exp(found) * 10**digits) / 10**digits
        while self.epsilon(noise, delta) > epsilon:
            noise = (round(noise * 10**digits) + 1) / 10**digits
        return noise


def step_delta(epsilon: Floats, noise: float, sampling_rate: float, max_degree: int) -> tuple[Floats, Floats]:
    """H_ε(P‖Q) and H_ε(Q‖P) of one step, for any real ε, each of the shape of `epsilon`.

    P/Q rises from left to right, so the best test is a threshold: at each ε, where log P/Q = ±ε.
    """
    first = _mixture(max_degree + 1, sampling_rate, 1.0 / noise)
    second = _mixture(max_degree, sampling_rate, -1.0 / noise)
    # Where log P/Q takes these values; ±∞ for values beyond the tails.
    grid = np.linspace(second[0].min() - TAIL, first[0].max() + TAIL, 2 * MOST_LOSSES + 1)
    densities = [
        logsumexp(weights - (grid[:, None] - centers) ** 2 / 2, axis=1) for centers, weights in (first, second)
    ]
    ratios = densities[0] - densities[1]
    above, below = (np.interp(sign * epsilon, ratios, grid, left=-np.inf, right=np.inf) for sign in (1.0, -1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.exp(epsilon)
        p_above, q_above = (ndtr(-above[:, None] + centers) @ np.exp(weights) for centers, weights in (first, second))
        p_below, q_below = (ndtr(below[:, None] - centers) @ np.exp(weights) for centers, weights in (first, second))
        there, back = p_above - factor * q_above, q_below - factor * p_below
    # A threshold at infinity has nothing beyond it, whatever the factor.
    there, back = np.where(np.isposinf(above), 0.0, there), np.where(np.isneginf(below), 0.0, back)
    return np.clip(there, 0.0, 1.0), np.clip(back, 0.0, 1.0)


def _mixture(number: int, prob: float, spacing: float) -> tuple[Floats, Floats]:
    """Centers of standard normal laws, 0, 1, …, `number` times `spacing`, and the logarithms of binomial weights."""
    k = np.arange(number + 1.0)
    ways = gammaln(number + 1) - gammaln(k + 1) - gammaln(number - k + 1)
    return spacing * k, ways + xlogy(k, prob) + xlog1py(number - k, -prob)


@cache
def _privacy_loss(steps: Steps, noise: float) -> Any:
    """The `PrivacyLossDistribution` of all steps."""
    try:
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld import privacy_loss_distribution as distributions
    except ImportError as missing:
        raise InputError(f"DP-SGD needs dp-accounting: pip install 'bmpaudit[private]' ({missing})") from None
    # The largest loss is about that of the two extreme centers at the end of the tail.
    span = (2 * steps.max_degree + 1) * (steps.max_degree + 1 + TAIL * noise) / noise**2
    interval = max(FINEST, 2 * span / MOST_LOSSES)
    if steps.max_degree == 0:
        one_step = distributions.from_gaussian_mechanism(
            noise, value_discretization_interval=interval, sampling_prob=steps.sampling_rate
        )
        return one_step.self_compose(steps.num_steps)
    number = math.ceil(span / interval)
    deltas = step_delta(interval * np.arange(-number, number + 1.0), noise, steps.sampling_rate, steps.max_degree)
    there, back = (
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -number, number, delta) for delta in deltas
    )
    return distributions.PrivacyLossDistribution(there, back).self_compose(steps.num_steps)


def _check_positive(**settings: float) -> None:
    for name, value in settings.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be positive and finite, got {name}={value}")


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
        noise_multiplier: Noise σ of a step, relative to the length of a clipped row; by default the least for ε.
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
        noise = self.noise_multiplier
        if self.epsilon is not None and noise is not None:
            both = f"epsilon={self.epsilon} and noise_multiplier={noise}"
            raise InputError(f"one of epsilon and noise_multiplier sets the noise, got {both}")
        if self.epsilon is not None:
            _check_positive(epsilon=self.epsilon)
        if noise is not None and not LEAST_NOISE <= noise <= MOST_NOISE:
            raise InputError(f"noise_multiplier must be in [{LEAST_NOISE:g}, {MOST_NOISE:g}], got {noise}")
        if not 1e-12 <= self.delta < 1:
            raise InputError(f"delta must be in [1e-12, 1), got delta={self.delta}")
        if not 0 < self.sampling_rate <= 1:
            raise InputError(f"sampling_rate must be in (0, 1], got sampling_rate={self.sampling_rate}")
        _check_positive(clip=self.clip, step_size=self.step_size)
        check_at_least_one(steps=self.steps, hidden=self.hidden, dimensions=self.dimensions)
        if max(self.hidden, self.dimensions) > MAX_UNITS:
            both = f"{self.hidden} and {self.dimensions}"
            raise InputError(f"hidden and dimensions must be at most {MAX_UNITS}, got {both}")

    def __str__(self) -> str:
        level = f"ε = {self._target:g}" if self.noise_multiplier is None else f"σ = {self.noise_multiplier:g}"
        return f"{type(self).__name__} with {level}"

    @property
    def rows_changed(self) -> int:
        """How many rows a node changes besides its own: those of its neighbours, if the model uses edges."""
        return int(getattr(self, "max_degree", 0))

    @property
    def accounting(self) -> Steps:
        """The steps, as they are accounted for."""
        return Steps(self.steps, self.sampling_rate, self.rows_changed)

    @cached_property
    def noise(self) -> float:
        """The noise multiplier σ: the one that was given, or the least that gives (ε, δ); imports dp-accounting."""
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
        return Guarantee(type(self).__name__, self.guaranteed_epsilon, self.delta, sampler_distance(sampler, graph))

    def training_graph(self, graph: Graph) -> Graph:
        """What of the graph is trained on; `InputError` if no noise gives (ε, δ)."""
        _ = self.noise  # found before a model is trained, and sent to other processes with the model
        return graph

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """The model as a PyTorch module; imports torch."""
        from bmpaudit.models.torch_modules import DPModule

        return DPModule(self, num_features, num_classes)

    def train(self, module: Any, data: Any, seed: int) -> None:
        """Trains a module on the `Data` of a training graph; all randomness comes from the seed."""
        module.fit(data.x, data.edge_index, data.y, seed)


@dataclass(frozen=True)
class DPMLP(DPModel):
    """A perceptron on node features that is (ε, δ)-MDP by a proof: DP-SGD, one row for each node. It sees no edges.

    Formal guarantees:
        - The weights, and all that is computed from them, are (ε, δ)-MDP: for any two samples that differ in one node,
          added or removed, Pr(O) ≤ e^ε·Pr'(O) + δ for every set of outputs O. A node's data is one row.
        - ε is computed by dp-accounting from the noise, the sampling rate and the number of steps.
        - What follows for MP and BMP depends on the sampler (`guarantee`, docs/guarantees.md).
        - The proof is for real numbers and noise that nobody can predict. Opacus's secure mode is off, and the noise of
          a shadow model follows from its seed, which a model that is really released must keep secret.
    """


@dataclass(frozen=True)
class DPGCN(DPModel):
    """A graph convolution of one hop that is (ε, δ)-MDP by a proof, in the manner of Daigavane et al. (2022).

    A node's row is the mean of its own features and its neighbours', scaled to length 1, on a graph of bounded degree.
    A node is in its own row and in those of at most d neighbours, for which the noise accounts.

    Formal guarantees:
        - As `DPMLP`, with the loss of a step from docs/guarantees.md: the node's own row and the rows of its neighbours
          are drawn into a batch independently of each other.
        - The degree bound holds for the whole graph, which is public: it does not depend on the sample.

    Attributes:
        max_degree: Degree bound d: edges beyond it are left out of the training graph.
    """

    max_degree: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_one(max_degree=self.max_degree)
        if self.max_degree > MOST_NEIGHBOURS:
            raise InputError(f"max_degree must be at most {MOST_NEIGHBOURS}, got max_degree={self.max_degree}")

    def training_graph(self, graph: Graph) -> Graph:
        """The graph with bounded degrees; samples induce their training graph in it."""
        return bound_degrees(super().training_graph(graph), self.max_degree)


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
        - The proof is for real numbers and secret noise, as that of `DPMLP`.

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
        _check_positive(regularization=self.regularization, max_norm=self.max_norm)

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
        from bmpaudit.models.torch_modules import PrivateModule

        return PrivateModule(self, num_features, num_classes)

    def train(self, module: Any, data: Any, seed: int) -> None:
        """Trains a module on the `Data` of a training graph with bounded degrees; all randomness is from the seed."""
        module.fit(data.x, data.edge_index, data.y, seed)
