"""Over many audits, what is proven exceeds a guarantee no more often than the confidence allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.stats
from small_audit import QUIET, tiny_plan

from bmpaudit.attack import Evidence, Gaussian
from bmpaudit.auditing.stages import Guaranteed, guaranteed
from bmpaudit.graph.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.privacy import Guarantee
from bmpaudit.proof import Proof, prove
from bmpaudit.releases import FullEdges
from bmpaudit.samplers import AnySampler, Bernoulli, prior_probabilities, sampler_distance
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.util.streams import Purpose, stream

ISLANDS = Graph.from_edges(np.zeros((0, 2), dtype=np.int64), np.eye(12, dtype=np.float32), [0, 1] * 6)
NUM_AUDITS = 300


@dataclass(frozen=True)
class RandomisedResponse:
    """Says of every node whether it was in, and lies with probability 1/(1 + e^ε); now and then, of one, the truth.

    Attributes:
        epsilon: The ε of MDP, attained by every output.
        candour: Probability that one node, chosen at random, is given away.
    """

    epsilon: float = 1.0
    candour: float = 0.0
    trains_itself: ClassVar[bool] = True

    def train(self) -> None:
        """The engine does it."""

    @property
    def delta(self) -> float:
        """A node is given away with probability candour/12, otherwise not more than by ε."""
        return self.candour / ISLANDS.num_nodes

    def guarantee(self, graph: Graph, sampler: AnySampler) -> Guarantee:
        return Guarantee("RandomisedResponse", self.epsilon, self.delta, sampler_distance(sampler, graph))


@dataclass(frozen=True)
class Boaster(RandomisedResponse):
    """Promises 2 less than it keeps."""

    def guarantee(self, graph: Graph, sampler: AnySampler) -> Guarantee:
        return Guarantee("Boaster", self.epsilon - 2.0, self.delta, sampler_distance(sampler, graph))


class ResponseEngine:
    """Writes the responses into the statistics: 1 or -1, ±100 for a node that is given away, and a little noise."""

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        self.num_nodes, self.plan = graph.num_nodes, plan

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:  # noqa: ARG002
        model = self.plan.model
        for row, index in enumerate(batch.indices):
            rng = stream(self.plan.seed, int(index), Purpose.DROPOUT)
            is_lie = rng.random(self.num_nodes) < 1 / (1 + np.exp(model.epsilon))
            said = np.where(batch.memberships[row] ^ is_lie, 1.0, -1.0)
            if rng.random() < model.candour:
                node = rng.integers(self.num_nodes)
                said[node] = 100.0 if batch.memberships[row, node] else -100.0
            batch.statistics[:, row] = said + 0.01 * rng.standard_normal(self.num_nodes)
        batch.train_accuracy[:] = batch.held_out_accuracy[:] = 0.5
        batch.state[:] = ModelState.TRAINED
        for row in np.flatnonzero(~batch.memberships.any(axis=1)).tolist():  # one of 4,096 samples
            batch.fail(row)
        progress(len(batch.indices))


def proof_of(model: RandomisedResponse, seed: int) -> tuple[Proof, Guaranteed]:
    """What an audit proves, without the estimates and the files."""
    plan = ShadowPlan(Bernoulli(0.5), model, queries=(FullEdges(),), seed=seed, engine=f"{__name__}:ResponseEngine")
    batch = ShadowBatch.drawn(ISLANDS, plan, np.arange(90), keep_logits=False, num_threads=1)
    ResponseEngine(ISLANDS, plan).fill(batch, 1, lambda _: None)
    trained = batch.part(batch.state == ModelState.TRAINED)
    models = Evidence({"full": trained.statistics[0]}, trained.memberships, trained.indices)
    limits = guaranteed(plan, ISLANDS, prior_probabilities(ISLANDS, plan.sampler))
    assert limits is not None
    return prove(Gaussian(), models, np.full(ISLANDS.num_nodes, 0.5), num_threads=1), limits


@pytest.mark.parametrize("model", [RandomisedResponse(1.0), RandomisedResponse(2.0, candour=1e-5)])
def test_no_more_often_than_the_confidence_allows(model: RandomisedResponse) -> None:
    """Each guess is right with the largest probability that ε allows: the bounds fail about as often as they may."""
    results = [proof_of(model, seed) for seed in range(NUM_AUDITS)]
    most = scipy.stats.binom.isf(1e-4, NUM_AUDITS, 0.05)
    for number, parameter in enumerate(("epsilon_right", "epsilon_left", "mp")):
        bounds = [proof.bounds[number] for proof, _ in results]
        proven = np.array([-np.inf if bound.proven is None else bound.proven for bound in bounds])
        assert 0 < (proven > model.epsilon).sum() <= most
        assert np.median(proven) > model.epsilon - 1, "the audits come near it"
        assert all(bound.parameter == parameter for bound in bounds)
    levels = {limits.level_of(bound) for proof, limits in results for bound in proof.bounds}
    assert levels == ({0.947, 0.948, 0.949} if model.candour else {0.95})


def test_a_mechanism_that_lies_less_than_it_says_is_found_out() -> None:
    """From models to cautions."""
    plan = tiny_plan(
        model=Boaster(3.0, candour=1e-5),
        shadows=90,
        engine=f"{__name__}:ResponseEngine",
        sampler=Bernoulli(0.5),
    )
    done = audit(ISLANDS, plan, runtime=QUIET)
    (caution,) = (caution for caution in done.summary["cautions"] if caution.startswith("ε_R"))
    # 0.03 more than its ε, as models tell that their samples are not empty.
    assert "but Boaster guarantees 1.03 at most: the mechanism is broken, or the confidence of 98.9 % failed" in caution
