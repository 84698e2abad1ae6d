"""One shadow model in scikit-learn, from its sample to its statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bmpaudit.arrays import Floats, Floats32, Ints
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.scoring import questions_of, score_model
from bmpaudit.shadow.engines.seeded import seeded_generators
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.streams import Purpose, stream

MAX_DENSE_BYTES = 2**30
"""Features are dense up to this size: many estimators refuse sparse matrices, and few tables are larger."""

ZERO_SHARE, LARGEST_ZERO = 0.25, 0.01
"""What a probability of 0 counts as: this share of the model's smallest probability above 0, and no more than that.

Trees and nearest neighbours count votes, so that 0 stands for less than one vote. A number far smaller would put such
answers far from all others, and attacks that fit a mean and a spread would find less."""


@dataclass(frozen=True, eq=False)
class SklearnTrainer:
    """Trains classifiers one by one in the process it is in.

    Attributes:
        plan: What to train; its sampler and queries are not used.
        features: Of every node, dense or compressed sparse rows, shape (num_nodes, num_features).
        labels: Class of each node, shape (num_nodes,).
        num_classes: Number of classes.
    """

    plan: ShadowPlan
    features: Any
    labels: Ints
    num_classes: int

    @classmethod
    def from_graph(cls, graph: Graph, plan: ShadowPlan) -> SklearnTrainer:
        """A trainer for the nodes of a graph; its edges are not used."""
        is_small = 4 * graph.num_nodes * graph.num_features <= MAX_DENSE_BYTES
        return cls(plan, graph.dense_features if is_small else graph.features, graph.labels, graph.num_classes)

    def for_trial(self) -> Self:
        """See `Trainer`: a whole model."""
        return self

    def fill(self, batch: ShadowBatch, initial: Floats32 | None) -> None:  # noqa: ARG002 - for other engines
        """See `Trainer`."""
        index, member = int(batch.indices[0]), batch.memberships[0]
        if not member.any():
            batch.fail(0)
            return
        rng = stream(self.plan.seed, index, Purpose.DROPOUT)
        with seeded_generators(int(rng.integers(2**63))):
            estimator = self.plan.model.new_estimator(rng)
            try:
                estimator.fit(self.features[member], self.labels[member])
            except ValueError:
                if len(np.unique(self.labels[member])) > 1:
                    raise
                batch.fail(0)  # many classifiers cannot learn from one class
                return
            probabilities = self._probabilities(estimator)
        self._keep_accuracy(probabilities, batch)
        logits = log_probabilities(probabilities)
        score_model(self.plan, self.labels, batch, 0, dict.fromkeys(questions_of(self.plan), logits), {})

    def _probabilities(self, estimator: Any) -> Floats:
        """Of every class, shape (num_nodes, num_classes); 0 for those that the sample lacks."""
        answers, known = np.asarray(estimator.predict_proba(self.features)), np.asarray(estimator.classes_)
        wanted = (len(self.labels), len(known))
        if answers.shape != wanted:
            raise InputError(
                f"predict_proba of {self.plan.model} must give shape {wanted} (nodes, classes_), got {answers.shape}"
            )
        probabilities = np.zeros((len(self.labels), self.num_classes))
        probabilities[:, known] = answers
        return probabilities

    def _keep_accuracy(self, probabilities: Floats, batch: ShadowBatch) -> None:
        right = probabilities.argmax(axis=1) == self.labels
        member = batch.memberships[0]
        for accuracy, chosen in ((batch.train_accuracy, member), (batch.held_out_accuracy, ~member)):
            accuracy[0] = right[chosen].mean() if chosen.any() else np.nan


def log_probabilities(probabilities: Floats) -> Floats32:
    """Logits of one model's probabilities, shape (num_nodes, num_classes), with a finite one for 0.

    >>> log_probabilities(np.array([[0.98, 0.02], [1.0, 0.0]])).round(2)
    array([[-0.02, -3.91],
           [ 0.  , -5.3 ]], dtype=float32)
    """
    above_zero = probabilities > 0
    zero = min(ZERO_SHARE * np.min(probabilities, where=above_zero, initial=1.0), LARGEST_ZERO)
    return np.log(np.where(above_zero, probabilities, max(zero, np.finfo(float).tiny))).astype(np.float32)
