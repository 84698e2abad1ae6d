"""Attacks written as a user would write them, and some that break the rules."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmpaudit.attack import Evidence, Scores, Strong, Weak
from bmpaudit.util.values import Floats


def normal_ratio(z: Floats, fitting: Floats, members: np.ndarray) -> Floats:
    """Log-likelihood ratio of two normal distributions fitted to the columns of `fitting`, one for each column of z."""
    total = np.zeros_like(z)
    for side, sign in ((members, 1), (~members, -1)):
        count = side.sum(axis=0)
        mean = np.where(side, fitting, 0).sum(axis=0) / count
        variance = np.where(side, fitting - mean, 0).__pow__(2).sum(axis=0) / count
        total -= sign * 0.5 * (np.log(variance) + (z - mean) ** 2 / variance)
    return total


class PlainGaussian:
    """The paper's attack in NumPy, without a way to leave models out: it is cross-fitted."""

    fuses_queries = False

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        z = challenged.at_targets(challenged.only_statistic).astype(np.float64)
        fitted = fitting.at_targets(fitting.only_statistic).astype(np.float64)
        return Scores(normal_ratio(z, fitted, fitting.at_targets(fitting.memberships)))


class Cheating(PlainGaussian):
    """Looks at the memberships of the models it is to score."""

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        return Scores(challenged.memberships.astype(np.float64))


class InItsOwnFit(PlainGaussian):
    """Claims to leave models out, but fits on all of them."""

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
        return self.score(models, models, num_threads=num_threads)


@dataclass(frozen=True)
class WithNeighbours:
    """All queries of a release, and for each the mean over the neighbours too: the sum of their normal log-ratios.

    It says why a node cannot be scored, and records how large its blocks are.
    """

    fuses_queries: ClassVar[bool] = True
    largest: ClassVar[int] = 0
    min_models: int = 2

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:  # noqa: ARG002
        assert fitting.graph is not None
        WithNeighbours.largest = max(WithNeighbours.largest, challenged.num_models * len(challenged.nodes))
        members = fitting.at_targets(fitting.memberships)
        total = np.zeros((challenged.num_models, len(challenged.nodes)))
        mean_over_neighbours = fitting.graph.adjacency / np.maximum(fitting.graph.degrees, 1)
        with np.errstate(all="ignore"):
            for query in challenged.queries:
                for weights in (np.eye(fitting.num_nodes), mean_over_neighbours.toarray()):
                    z, fitted = (
                        models.at_targets(models.statistics[query].astype(np.float64) @ weights)
                        for models in (challenged, fitting)
                    )
                    total += normal_ratio(z, fitted, members)
        num_in = members.sum(axis=0)
        few = np.minimum(num_in, fitting.num_models - num_in) < self.min_models
        reasons = (fitting.not_auditable(node, "too few models") for node in challenged.nodes[few])
        return Scores(total, tuple(reasons))


class ScoreStrong(Strong):
    """The strong rule, but not the very class, so that errors are counted from scores."""


class ScoreWeak(Weak):
    """The weak rule in the same way."""


@dataclass(frozen=True)
class Tempered:
    """A rule of one's own: half of the prior."""

    weight: float = 0.5

    def decision_score(self, log_likelihood_ratio: Floats, log_prior_odds: Floats) -> Floats:
        return log_likelihood_ratio + self.weight * log_prior_odds
