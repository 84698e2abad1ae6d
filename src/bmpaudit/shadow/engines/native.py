"""Shadow models in C++."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.models import NativeModel, Training
from bmpaudit.samplers.draw import compressed_rows
from bmpaudit.shadow.batch import ModelState, ShadowBatch, nothing
from bmpaudit.shadow.engines.scoring import (
    Question,
    distinct_questions,
    is_margin_of_logits,
    questions_of,
    refuse_embeddings,
    score_model,
    shown_graphs,
)
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import repeat_index
from bmpaudit.util.values import Floats32

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
    gives: ClassVar[frozenset[str]] = frozenset({"embeddings", "repeats"})  # beyond logits of one model
    is_thread_safe: ClassVar[bool] = True  # several threads may call `fill` at once

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not isinstance(plan.model, NativeModel) or plan.training is None:
            raise InputError(f"the native engine cannot train {plan.model}: it needs another engine")
        self.graph = graph
        self.plan = plan
        self.shown = shown_graphs(plan, graph)
        self.kernel = make_kernel(graph, plan.model, plan.training)
        if self.kernel.num_hidden == 0:
            refuse_embeddings(plan)

    @property
    def num_weights(self) -> int:
        """Parameters of a model, which can be kept."""
        return self.kernel.num_parameters

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `interfaces.Engine`."""
        plan = self.plan
        if plan.num_repeats == 1 and all(is_margin_of_logits(plan, view) for view in plan.views):
            self._ask(batch, 0, [question for (question,) in questions_of(plan)], num_threads, progress)
            return
        size = max(1, MODELS_AT_ONCE // plan.num_repeats)
        for start in range(0, len(batch.indices), size):
            rows = slice(start, start + size)
            self._fill_by_logits(batch, rows, num_threads, progress)
            progress(min(rows.stop, len(batch.indices)))

    def _fill_by_logits(self, batch: ShadowBatch, rows: slice, num_threads: int, progress: Progress) -> None:
        part, repeats = batch.part(rows), self.plan.num_repeats
        states = np.zeros((repeats, len(part.indices)), dtype=np.uint8)
        logits: dict[Question, Floats32] = {}
        margins: dict[Question, Floats32] = {}
        try:
            for repeat in range(repeats):
                asked = [question for question in distinct_questions(self.plan) if question.repeat == repeat]
                questions = [question for question in asked if not question.is_embedding]
                answers = self._answers(part, len(questions), states[repeat], is_first=repeat == 0)
                embeddings = None
                if len(questions) < len(asked):
                    shape = (len(self.shown), len(part.indices), self.graph.num_nodes, self.kernel.num_hidden)
                    embeddings = np.full(shape, np.nan, dtype=np.float32)
                    logits |= {each: embeddings[each.query] for each in asked if each.is_embedding}
                logits |= dict(zip(questions, answers.logits, strict=True))  # type: ignore[arg-type]
                margins |= dict(zip(questions, answers.statistics, strict=True))

                def show(done: int, repeat: int = repeat) -> None:
                    progress(rows.start + (repeat * len(part.indices) + done) // repeats)

                self._ask(answers, repeat, questions, num_threads, show, embeddings)
        finally:  # after a stop, the models that were finished are kept
            for row, of_model in enumerate(states.T):
                if (of_model == ModelState.FAILED).any():
                    batch.fail(rows.start + row)
                elif (of_model == ModelState.TRAINED).all():
                    score_model(
                        self.plan,
                        self.graph.labels,
                        batch,
                        rows.start + row,
                        {question: answer[row] for question, answer in logits.items()},
                        {question: margin[row] for question, margin in margins.items()},
                        num_classes=self.graph.num_classes,
                    )

    def _answers(
        self, part: ShadowBatch, num_questions: int, state: npt.NDArray[np.uint8], *, is_first: bool
    ) -> ShadowBatch:
        """Where the answers of one repeat go; the models' own accuracy is that of the first."""
        shape = (num_questions, len(part.indices))
        accuracies: dict[str, Any] = {}
        if not is_first:
            accuracies = {name: nothing(shape[1]) for name in ("train_accuracy", "held_out_accuracy")}
        return replace(
            part,
            statistics=nothing(*shape, self.graph.num_nodes),
            logits=nothing(*shape, self.graph.num_nodes, self.graph.num_classes),
            state=state,
            view_train_accuracy=nothing(*shape),
            view_held_out_accuracy=nothing(*shape),
            **accuracies,
        )

    def _ask(
        self,
        batch: ShadowBatch,
        repeat: int,
        questions: list[Question],
        num_threads: int,
        progress: Progress,
        embeddings: Floats32 | None = None,
    ) -> None:
        """Trains one repeat of the models of a batch and asks it; statistics are label margins of each answer."""
        self.kernel.run(
            member=batch.memberships.view(np.uint8),
            indices=repeat_index(batch.indices, repeat),
            seed=self.plan.seed,
            queries=[(shown.indptr, shown.indices) for shown in self.shown],
            views=[(question.query, question.noise_std) for question in questions],
            num_threads=num_threads,
            statistics=batch.statistics,
            logits=batch.logits,
            state=batch.state,
            train_accuracy=batch.train_accuracy,
            held_out_accuracy=batch.held_out_accuracy,
            view_train_accuracy=batch.view_train_accuracy,
            view_held_out_accuracy=batch.view_held_out_accuracy,
            progress=progress,
            weights=None if batch.weights is None else batch.weights[repeat],
            embeddings=embeddings,
            graphs=[] if batch.edges is None else [compressed_rows(each, self.graph.num_nodes) for each in batch.edges],
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
