"""C++ kernels of bmpaudit."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

instruction_set: str
"""What the kernels in use were compiled for: baseline, avx2, avx512, or tuned for the machine that built them."""
library_file: str
"""Path of the library that they are in."""

class Sampler:
    """Draws training samples from one graph, of which it keeps a copy."""

    def sample(self, bit_generator: np.random.BitGenerator) -> npt.NDArray[np.int64]: ...
    def memberships(
        self, seed: int, purpose: int, first: int, count: int, num_threads: int
    ) -> npt.NDArray[np.uint8]: ...
    def counts(self, seed: int, purpose: int, first: int, count: int, num_threads: int) -> npt.NDArray[np.int64]: ...

class GroupedSubset(Sampler):
    def __init__(self, group: npt.NDArray[np.int32], take: list[int]) -> None: ...

class IndependentCoins(Sampler):
    def __init__(self, num_nodes: int, probability: float) -> None: ...

class WeightedSubset(Sampler):
    def __init__(self, weights: npt.NDArray[np.float64], take: int) -> None: ...

class Snowball(Sampler):
    def __init__(
        self,
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        target: int,
        fan_out: int,
        restart: bool,
        any_order: bool,
    ) -> None: ...
    def walked_edges(self, bit_generator: np.random.BitGenerator) -> npt.NDArray[np.int64]: ...

class RandomWalks(Sampler):
    def __init__(
        self, indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], num_roots: int, walk_length: int
    ) -> None: ...

class LayerSettings:
    def __init__(
        self,
        kind: str,
        channels: int,
        heads: int = 1,
        initialisation: str = "glorot",
        drops_input: bool = False,
        drops_attention: bool = False,
        aggregation: str = "mean",
        root_weight: bool = False,
        hops: int = 1,
        alpha: float = 1.0,
        norm: str = "none",
        residual: int = 0,
    ) -> None: ...

class ModelSettings:
    def __init__(self, layers: list[LayerSettings], activation: str, dropout: float) -> None: ...

class TrainingSettings:
    def __init__(
        self,
        epochs: int,
        learning_rate: float,
        weight_decay: float,
        optimizer: str,
        schedule: str = "constant",
        label_smoothing: float = 0.0,
        drop_edge: float = 0.0,
        validation_share: float = 0.0,
        patience: int = 0,
        batch_size: int = 0,
        neighbors: Sequence[int] = (),
    ) -> None: ...

class ShadowEngine:
    """Trains shadow models on one graph, of which it keeps a copy."""

    def __init__(
        self,
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        x_indptr: npt.NDArray[np.int64] | None,
        x_indices: npt.NDArray[np.int32] | None,
        x_values: npt.NDArray[np.float32] | None,
        x_dense: npt.NDArray[np.float32] | None,
        num_features: int,
        labels: npt.NDArray[np.int32],
        num_classes: int,
        model: ModelSettings,
        training: TrainingSettings,
    ) -> None: ...
    def run(
        self,
        member: npt.NDArray[np.uint8],
        indices: npt.NDArray[np.int64],
        seed: int,
        queries: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]],
        views: list[tuple[int, float]],
        num_threads: int,
        statistics: npt.NDArray[np.float32],
        logits: npt.NDArray[np.float32] | None,
        state: npt.NDArray[np.uint8],
        train_accuracy: npt.NDArray[np.float32],
        held_out_accuracy: npt.NDArray[np.float32],
        view_train_accuracy: npt.NDArray[np.float32],
        view_held_out_accuracy: npt.NDArray[np.float32],
        progress: Callable[[int], object] | None,
        weights: npt.NDArray[np.float32] | None = None,
        embeddings: npt.NDArray[np.float32] | None = None,
        right: npt.NDArray[np.uint8] | None = None,
        graphs: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]] = ...,
    ) -> None: ...
    @property
    def num_hidden(self) -> int: ...
    @property
    def num_parameters(self) -> int: ...
    def initial_parameters(self, seed: int, index: int) -> npt.NDArray[np.float32]: ...
    def gradient(
        self, parameters: npt.NDArray[np.float32], member: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.float32]: ...
    def trained_parameters(
        self, parameters: npt.NDArray[np.float32], member: npt.NDArray[np.uint8], seed: int = 0, index: int = 0
    ) -> npt.NDArray[np.float32]: ...
    def logits(
        self, parameters: npt.NDArray[np.float32], indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float32]: ...

def challenge_models(
    statistics: npt.NDArray[np.float32],
    member: npt.NDArray[np.uint8],
    fitting_statistics: npt.NDArray[np.float32] | None,
    fitting_member: npt.NDArray[np.uint8] | None,
    log_prior_odds: npt.NDArray[np.float64],
    is_fittable: npt.NDArray[np.uint8],
    pooled_variance: bool,
    min_sigma: float,
    threshold: float,
    num_threads: int,
    errors: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64] | None,
) -> None: ...
def neighbour_means(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    num_threads: int,
    means: npt.NDArray[np.float32],
) -> None: ...
def student_sums(
    features: npt.NDArray[np.float32],
    member: npt.NDArray[np.uint8],
    center: npt.NDArray[np.float64],
    fold_of: npt.NDArray[np.int64],
    num_threads: int,
    sums: npt.NDArray[np.float64],
) -> None: ...
def covariance_likelihood(
    start: npt.NDArray[np.int64],
    freedom: npt.NDArray[np.float64],
    scatter: npt.NDArray[np.float64],
    own: npt.NDArray[np.float64],
    other: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    candidates: npt.NDArray[np.float64],
    num_threads: int,
    likelihood: npt.NDArray[np.float64],
) -> None: ...
def sort_numbers(values: npt.NDArray[np.floating[Any]]) -> None: ...
def sort_by_side(
    scores: npt.NDArray[np.float64], member: npt.NDArray[np.uint8], num_threads: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
def pairs_in_order(out: npt.NDArray[np.float64], in_: npt.NDArray[np.float64]) -> int: ...
def roc_within_models(
    scores: npt.NDArray[np.floating[Any]],
    member: npt.NDArray[np.uint8],
    rate: float,
    num_threads: int,
    auc: npt.NDArray[np.float64],
    tpr: npt.NDArray[np.float64],
) -> None: ...
def count_by_threshold(
    scores: npt.NDArray[np.floating[Any]],
    member: npt.NDArray[np.uint8],
    thresholds: npt.NDArray[np.floating[Any]],
    num_threads: int,
    counts: npt.NDArray[np.int64],
    members: npt.NDArray[np.int64],
    probability: npt.NDArray[np.float64] | None,
) -> None: ...
def count_named_nodes(
    scores: npt.NDArray[np.floating[Any]],
    member: npt.NDArray[np.uint8],
    high: float,
    low: float,
    num_threads: int,
    named: npt.NDArray[np.int64],
) -> None: ...
def count_decisions(
    scores: npt.NDArray[np.float64],
    member: npt.NDArray[np.uint8],
    log_prior_odds: npt.NDArray[np.float64],
    threshold: float,
    num_threads: int,
    errors: npt.NDArray[np.int64],
) -> None: ...
def interpolate_rows(
    values: npt.NDArray[np.float32],
    from_: npt.NDArray[np.float64],
    to: npt.NDArray[np.float64],
    function_of: npt.NDArray[np.int64],
    num_threads: int,
) -> None: ...
def find_surest(
    scores: npt.NDArray[np.float64],
    log_prior_odds: npt.NDArray[np.float64],
    is_asked: npt.NDArray[np.uint8],
    num_threads: int,
    node: npt.NDArray[np.int64],
    value: npt.NDArray[np.float64],
) -> None: ...
def test_nodes(
    statistics: npt.NDArray[np.float32],
    member: npt.NDArray[np.uint8],
    order: npt.NDArray[np.int64],
    num_threads: int,
    z: npt.NDArray[np.float64],
    num_reached: npt.NDArray[np.int64],
    totals: npt.NDArray[np.float64],
) -> None: ...
def infer_members(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    rows: npt.NDArray[np.float32],
    state: npt.NDArray[np.uint8],
    noise: npt.NDArray[np.float32],
    mean: npt.NDArray[np.float32],
    variance: npt.NDArray[np.float32],
    log_odds: npt.NDArray[np.float32],
    temperatures: npt.NDArray[np.float32],
    with_spread: bool,
    num_threads: int,
    statistic: npt.NDArray[np.float32] | None,
    coefficient: npt.NDArray[np.float32] | None,
    residual: npt.NDArray[np.float32] | None,
) -> None: ...
def student_scores(
    features: npt.NDArray[np.float32],
    member: npt.NDArray[np.uint8],
    challenged: npt.NDArray[np.float32] | None,
    set_of: npt.NDArray[np.int64],
    level: npt.NDArray[np.float64],
    shift: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    dof: npt.NDArray[np.float64],
    other_share: npt.NDArray[np.float64],
    scale: npt.NDArray[np.float64],
    log_gamma: npt.NDArray[np.float64],
    num_threads: int,
    scores: npt.NDArray[np.float64],
) -> None: ...
def log_likelihood(
    counts: npt.NDArray[np.float64],
    log_prior_odds: npt.NDArray[np.float64],
    times: npt.NDArray[np.float64],
    epsilon_left: npt.NDArray[np.float64],
    epsilon_right: npt.NDArray[np.float64],
    cutoff: npt.NDArray[np.float64],
    strength: float,
    num_threads: int,
    progress: Callable[[int], None] | None,
) -> npt.NDArray[np.float64]: ...
def node_log_likelihood(
    counts: npt.NDArray[np.float64],
    log_prior_odds: npt.NDArray[np.float64],
    epsilon_left: npt.NDArray[np.float64],
    epsilon_right: npt.NDArray[np.float64],
    strength: float,
    num_threads: int,
) -> npt.NDArray[np.float64]: ...
def grid_log_likelihood(
    counts: npt.NDArray[np.float64],
    log_prior_odds: npt.NDArray[np.float64],
    times: npt.NDArray[np.float64],
    epsilon_left: npt.NDArray[np.float64],
    epsilon_right: npt.NDArray[np.float64],
    depth: float,
    strength: float,
    num_threads: int,
    progress: Callable[[int], None] | None,
) -> npt.NDArray[np.float64]: ...
def leakage_quantiles(
    counts: npt.NDArray[np.float64], probabilities: npt.NDArray[np.float64], num_threads: int
) -> npt.NDArray[np.float64]: ...
def run_mhaar(
    counts: npt.NDArray[np.float64],
    log_prior_odds: npt.NDArray[np.float64],
    bounds_left: bool,
    bounds_right: bool,
    is_joint: bool,
    prior_mean: float,
    prior_variance: float,
    strength: float,
    strength_prior: tuple[float, float] | None,
    tau_variance: float | None,
    num_auxiliary: int,
    num_iterations: int,
    burn_in: int,
    seed: int,
    purpose: int,
    num_threads: int,
    draws: npt.NDArray[np.float64],
    acceptance: npt.NDArray[np.float64],
    progress: Callable[[int], object] | None,
) -> None: ...
