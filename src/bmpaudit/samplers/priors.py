"""Prior membership probabilities γ: what the adversary knows before seeing the model."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bmpaudit.graph import Graph
from bmpaudit.privacy import EpsilonPair, prior_floor
from bmpaudit.samplers.draw import Progress, count_memberships
from bmpaudit.samplers.protocol import AnySampler, ExactPriors
from bmpaudit.streams import Purpose

DEFAULT_DRAWS = 100_000


@dataclass(frozen=True, eq=False)
class Priors:
    """Prior membership probabilities of all nodes under one sampler.

    Attributes:
        sampler: The sampler they belong to.
        prob: γ_i(1), exact or estimated, shape (num_nodes,).
        standard_error: Of each estimate, shape (num_nodes,); zeros where γ is exact.
        num_draws: Samples behind an estimate; 0 where γ is exact.
    """

    sampler: AnySampler
    prob: npt.NDArray[np.float64]
    standard_error: npt.NDArray[np.float64]
    num_draws: int

    @property
    def is_exact(self) -> bool:
        """Whether γ came from a closed form."""
        return self.num_draws == 0

    @property
    def odds(self) -> npt.NDArray[np.float64]:
        """η_i = γ_i(1)/γ_i(0); infinite where γ is 1."""
        with np.errstate(divide="ignore"):
            return self.prob / (1.0 - self.prob)

    @property
    def floor(self) -> EpsilonPair[float]:
        """Prop. 1: what the sampler alone gives away; no training can go below it."""
        return prior_floor(self.odds)

    @property
    def num_never_drawn(self) -> int:
        """Nodes that no draw took; an estimate of 0 makes the left floor infinite."""
        return int(np.count_nonzero(self.prob == 0))


def prior_probabilities(
    graph: Graph,
    sampler: AnySampler,
    *,
    num_draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    exact: bool = True,
    progress: Progress = lambda _: None,
) -> Priors:
    """The probability of each node to be in a sample.

    Exact where the sampler knows a closed form; else the frequency over many draws, which are independent of the
    samples that shadow models are trained on. The paper takes the frequency over those J samples themselves, which
    biases the floor of Prop. 1 upward: the largest of N noisy frequencies lies above the largest probability.

    Args:
        graph: The whole graph.
        sampler: A sampler, or any function of (graph, rng) that returns node ids.
        num_draws: Samples to draw where there is no closed form.
        seed: Draw j depends on (seed, j) only.
        exact: Whether a closed form may be used.
        progress: Is told how many samples are drawn.

    The standard error of an estimate is the standard deviation of the Beta posterior under Jeffreys' prior, which
    is √(γ(1-γ)/n) for all practical purposes but not 0 for a node that was never, or always, drawn.

    >>> from bmpaudit import datasets, samplers
    >>> priors = prior_probabilities(datasets.load("demo"), samplers.Uniform(0.25))
    >>> priors.is_exact, float(priors.prob[0]), round(priors.floor.right, 4)
    (True, 0.25, -1.0986)
    """
    if exact and isinstance(sampler, ExactPriors):
        prob = sampler.exact_priors(graph)
        return Priors(sampler, prob, np.zeros_like(prob), num_draws=0)
    counts = count_memberships(graph, sampler, num_draws, seed, Purpose.PRIOR, progress)
    mean = (counts + 0.5) / (num_draws + 1)
    return Priors(sampler, counts / num_draws, np.sqrt(mean * (1 - mean) / (num_draws + 2)), num_draws)
