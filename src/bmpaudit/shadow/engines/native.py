"""Shadow models in C++."""

from __future__ import annotations

from dataclasses import asdict
from typing import ClassVar

import numpy as np

from bmpaudit import _native
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.engines.scoring import Question, is_margin_of_logits, questions_of, score_model, shown_graphs
from bmpaudit.shadow.models import NativeModel, Training
from bmpaudit.shadow.plan import ShadowPlan

MODELS_AT_ONCE = 32
"""Models whose logits are held in memory while releases and statistics in Python are applied to them."""


class NativeEngine:
    """Trains built-in models in float32, one model per thread, with the GIL released.

    Model j depends on (graph, plan, j) only: same bytes on any number of threads, in any order, on the same build and
    kind of CPU. Elsewhere samples and random draws are the same and statistics agree to the rounding of float32 sums.

    Label margins of the model's own logits are computed in C++; any other release or statistic is applied to the
    logits in Python.
    """

    trains_in_parallel: ClassVar[bool] = True
    is_thread_safe: ClassVar[bool] = True  # several threads may call `fill` at once

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not isinstance(plan.model, NativeModel) or plan.training is None:
            raise InputError(f"the native engine cannot train {plan.model}: it needs another engine")
        self.graph = graph
        self.plan = plan
        self.shown = shown_graphs(plan, graph)
        self.kernel = make_kernel(graph, plan.model, plan.training)

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `interfaces.Engine`."""
        questions = questions_of(self.plan)
        if all(is_margin_of_logits(self.plan, view) for view in self.plan.views):
            self._ask(batch, questions, num_threads, progress)
            return
        for start in range(0, len(batch.indices), MODELS_AT_ONCE):
            rows = slice(start, start + MODELS_AT_ONCE)
            self._fill_by_logits(batch, rows, list(dict.fromkeys(questions)), num_threads, progress)

    def _fill_by_logits(
        self, batch: ShadowBatch, rows: slice, questions: list[Question], num_threads: int, progress: Progress
    ) -> None:
        indices = batch.indices[rows]
        shape = (len(questions), len(indices), self.graph.num_nodes)
        margins = np.full(shape, np.nan, dtype=np.float32)
        logits = np.full((*shape, self.graph.num_classes), np.nan, dtype=np.float32)
        state = np.zeros(len(indices), dtype=np.uint8)
        answers = ShadowBatch(
            indices=indices,
            memberships=batch.memberships[rows],
            statistics=margins,
            logits=logits,
            state=state,
            train_accuracy=batch.train_accuracy[rows],
            held_out_accuracy=batch.held_out_accuracy[rows],
        )
        try:
            self._ask(answers, questions, num_threads, lambda done: progress(rows.start + done))
        finally:  # after a stop, the models that were finished are kept
            for row, state_of_row in enumerate(state.tolist()):
                if state_of_row == ModelState.TRAINED:
                    score_model(
                        self.plan,
                        self.graph.labels,
                        batch,
                        rows.start + row,
                        {question: logits[number, row] for number, question in enumerate(questions)},
                        {question: margins[number, row] for number, question in enumerate(questions)},
                    )
                elif state_of_row == ModelState.FAILED:
                    batch.fail(rows.start + row)

    def _ask(self, batch: ShadowBatch, questions: list[Question], num_threads: int, progress: Progress) -> None:
        """Trains the models of a batch and asks them; statistics are label margins of each question's answer."""
        self.kernel.run(
            member=batch.memberships.view(np.uint8),
            indices=batch.indices,
            seed=self.plan.seed,
            queries=[(shown.indptr, shown.indices) for shown in self.shown],
            views=[(question.query, question.noise_std) for question in questions],
            num_threads=num_threads,
            statistics=batch.statistics,
            logits=batch.logits,
            state=batch.state,
            train_accuracy=batch.train_accuracy,
            held_out_accuracy=batch.held_out_accuracy,
            progress=progress,
        )


def make_kernel(graph: Graph, model: NativeModel, training: Training) -> _native.ShadowEngine:
    """The compiled engine for one graph, model and training."""
    features = graph.features
    x_indptr = x_indices = x_values = x_dense = None
    if isinstance(features, np.ndarray):
        x_dense = features.ravel()
    else:
        x_indptr, x_indices = features.indptr.astype(np.int64), features.indices.astype(np.int32)
        x_values = None if (features.data == 1).all() else features.data
    return _native.ShadowEngine(
        indptr=graph.indptr,
        indices=graph.indices,
        x_indptr=x_indptr,
        x_indices=x_indices,
        x_values=x_values,
        x_dense=x_dense,
        num_features=graph.num_features,
        labels=graph.labels.astype(np.int32),
        num_classes=graph.num_classes,
        model=_native.ModelSettings(
            [_native.LayerSettings(**asdict(layer)) for layer in model.native_layers(graph.num_classes)],
            model.activation,
            model.dropout,
        ),
        training=_native.TrainingSettings(
            training.epochs,
            training.learning_rate,
            training.weight_decay,
            training.optimizer,
            training.schedule or "constant",
            training.label_smoothing or 0.0,
            training.drop_edge or 0.0,
            training.validation_share or 0.0,
            training.patience or 0,
            training.batch_size or 0,
            training.neighbors or (),
        ),
    )
