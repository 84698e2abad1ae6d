"""Shadow models in scikit-learn."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from threadpoolctl import threadpool_limits

from bmpaudit.graph import Graph
from bmpaudit.models import SklearnModel
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.processes import ProcessEngine, seeded_generators
from bmpaudit.shadow.engines.scoring import Question, distinct_questions, score_model
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import class_probabilities, log_votes, table_features
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import Purpose, repeat_index, stream
from bmpaudit.util.values import Flags, Floats, Floats32, Ints


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
        return cls(plan, table_features(graph), graph.labels, graph.num_classes)

    def for_trial(self) -> Self:
        """See `Trainer`: a whole model."""
        return self

    def fill(self, batch: ShadowBatch, initial: Floats32 | None) -> None:  # noqa: ARG002 - for other engines
        """See `Trainer`."""
        index, member = int(batch.indices[0]), batch.memberships[0]
        if not member.any():
            batch.fail(0)
            return
        answers: dict[Question, Floats32] = {}
        for repeat in range(self.plan.num_repeats):
            probabilities = self._probabilities(member, repeat_index(index, repeat))
            if probabilities is None:
                batch.fail(0)
                return
            if repeat == 0:
                self._keep_accuracy(probabilities, batch)
            asked = [question for question in distinct_questions(self.plan) if question.repeat == repeat]
            answers |= dict.fromkeys(asked, log_votes(probabilities))
        score_model(self.plan, self.labels, batch, 0, answers, {})

    def _probabilities(self, member: Flags, stream_index: int) -> Floats | None:
        """What a classifier says of each row after learning from the members; None if they are all of one class."""
        rng = stream(self.plan.seed, stream_index, Purpose.DROPOUT)
        with seeded_generators(int(rng.integers(2**63))):
            estimator = self.plan.model.new_estimator(rng)
            try:
                estimator.fit(self.features[member], self.labels[member])
            except ValueError:
                if len(np.unique(self.labels[member])) > 1:
                    raise
                return None  # many classifiers cannot learn from one class
            return class_probabilities(estimator, self.features, self.num_classes)

    def _keep_accuracy(self, probabilities: Floats, batch: ShadowBatch) -> None:
        right = probabilities.argmax(axis=1) == self.labels
        member = batch.memberships[0]
        for accuracy, chosen in ((batch.train_accuracy, member), (batch.held_out_accuracy, ~member)):
            accuracy[0] = right[chosen].mean() if chosen.any() else np.nan


class SklearnEngine(ProcessEngine[SklearnTrainer]):
    """Trains scikit-learn classifiers in several processes of one thread each.

    All that a model draws comes from its own random stream: the `random_state` of every estimator in it, and the
    generators of NumPy and Python, which are restored afterwards.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"repeats"})  # beyond logits of one model

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not isinstance(plan.model, SklearnModel):
            raise InputError(f"the sklearn engine cannot train {plan.model}: it is no scikit-learn classifier")
        super().__init__(plan, SklearnTrainer.from_graph(graph, plan))

    def _one_thread(self) -> AbstractContextManager[object]:
        limits: AbstractContextManager[object] = threadpool_limits(limits=1)
        return limits
