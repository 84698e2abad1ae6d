"""Shadow models in scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from threadpoolctl import threadpool_limits

from bmpaudit.graph import Graph
from bmpaudit.models import SklearnModel
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.class_rows import UnitNodes
from bmpaudit.shadow.engines import Question, distinct_questions, keep_accuracy, score_model
from bmpaudit.shadow.engines.processes import ProcessEngine, seeded_generators
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import class_probabilities, log_votes, table_features
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import Purpose, repeat_index, stream
from bmpaudit.util.values import Flags, Floats, Floats32


@dataclass(frozen=True, eq=False)
class SklearnTrainer:
    """Trains classifiers one by one in the process it is in."""

    plan: ShadowPlan  # its sampler and queries are not used
    features: Any  # of every node, dense or compressed sparse rows
    graph: Graph

    def for_trial(self) -> Self:
        """See `Trainer`: a whole model."""
        return self

    def fill(self, batch: ShadowBatch) -> None:
        """See `Trainer`."""
        index, member = int(batch.indices[0]), batch.memberships[0]
        answers: dict[Question, Floats32] = {}
        for repeat in range(self.plan.num_repeats):
            said = self._probabilities(member, repeat_index(index, repeat)) if member.any() else None
            if said is None:
                batch.fail(0)
                return
            probabilities, of_unit_nodes = said
            if repeat == 0 and batch.rows is not None and batch.norms is not None:
                batch.rows[:, 0], batch.norms[:, 0] = self.unit_nodes.class_rows(log_votes(of_unit_nodes))
            if repeat == 0:
                keep_accuracy(batch, probabilities.argmax(axis=1) == self.graph.labels)
            asked = [question for question in distinct_questions(self.plan) if question.repeat == repeat]
            answers |= dict.fromkeys(asked, log_votes(probabilities))
        score_model(self.plan, self.graph, batch, 0, answers)

    @cached_property
    def unit_nodes(self) -> UnitNodes:
        """What a model is asked about for its class rows."""
        return UnitNodes(self.graph)

    def _probabilities(self, member: Flags, stream_index: int) -> tuple[Floats, Floats] | None:
        """What a classifier says of each row after learning from the members, and of the unit nodes if they are asked.

        None if the members are all of one class.
        """
        rng, labels = stream(self.plan.seed, stream_index, Purpose.DROPOUT), self.graph.labels[member]
        with seeded_generators(int(rng.integers(2**63))):
            estimator = self.plan.model.new_estimator(rng)
            try:
                estimator.fit(self.features[member], labels)
            except ValueError:
                if len(np.unique(labels)) > 1:
                    raise
                return None  # many classifiers cannot learn from one class
            num_classes = self.graph.num_classes
            known = class_probabilities(estimator, self.features, num_classes)
            made_up = table_features(self.unit_nodes.graph) if self.plan.row_sets else None
            return known, known[:0] if made_up is None else class_probabilities(estimator, made_up, num_classes)


class SklearnEngine(ProcessEngine):
    """Trains scikit-learn classifiers in several processes of one thread each.

    All that a model draws comes from its own random stream: the `random_state` of every estimator in it, and the
    generators of NumPy and Python, which are restored afterwards.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"repeats"})  # beyond logits of one model

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not isinstance(plan.model, SklearnModel):
            raise InputError(f"the sklearn engine cannot train {plan.model}: it is no scikit-learn classifier")
        super().__init__(plan, SklearnTrainer(plan, table_features(graph), graph), partial(threadpool_limits, limits=1))
