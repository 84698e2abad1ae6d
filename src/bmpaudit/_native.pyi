"""C++ kernels of bmpaudit."""

from typing import Any

import numpy as np
import numpy.typing as npt

class Sampler:
    """Draws training samples; made for one graph, whose arrays it keeps alive."""

    def sample(self, bit_generator: Any) -> npt.NDArray[np.int64]: ...
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
    ) -> None: ...

class RandomWalks(Sampler):
    def __init__(
        self, indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], num_roots: int, walk_length: int
    ) -> None: ...
