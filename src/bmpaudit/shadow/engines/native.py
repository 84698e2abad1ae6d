"""Shadow models in C++."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np

from bmpaudit import _native, registry
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Progress
from bmpaudit.models import NativeModel, Training
from bmpaudit.releases import QUERIES
from bmpaudit.samplers.draw import compressed_rows
from bmpaudit.shadow import engines
from bmpaudit.shadow.batch import ModelState, ShadowBatch, nothing
from bmpaudit.shadow.class_rows import UnitNodes, WeightRows
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
    Label margins of the model's own logits are computed in C++, any other release or statistic in Python.
    """

    trains_in_parallel: ClassVar[bool] = True
    gives: ClassVar[frozenset[str]] = frozenset({"embeddings", "repeats"})  # beyond logits of one model
    is_thread_safe: ClassVar[bool] = True  # several threads may call `fill` at once

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not isinstance(plan.model, NativeModel) or plan.training is None:
            raise InputError(f"the native engine cannot train {plan.model}: it needs another engine")
        self.graph = graph
        self.plan = plan
        self.shown = engines.shown_graphs(plan, graph)
        self.kernel = make_kernel(graph, plan.model, plan.training)
        if plan.row_sets:
            self.unit_nodes, self.weight_rows = UnitNodes(graph), WeightRows(graph, plan.model)
            self.unit_kernel = make_kernel(self.unit_nodes.graph, plan.model, plan.training)
        if self.kernel.num_hidden == 0:
            engines.refuse_embeddings(plan)

    @property
    def num_weights(self) -> int:
        """Parameters of a model, which can be kept."""
        return self.kernel.num_parameters

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `interfaces.Engine`."""
        if not self.plan.row_sets:
            self._fill_views(batch, num_threads, progress)
            return
        if batch.weights is None:
            batch = replace(batch, weights=nothing(self.plan.num_repeats, len(batch.indices), self.num_weights))
        try:
            self._fill_views(batch, num_threads, progress)
        finally:  # after a stop, the models that were finished are kept
            self._fill_class_rows(batch, num_threads)

    def _fill_class_rows(self, batch: ShadowBatch, num_threads: int) -> None:
        """Fills in the class rows of the trained models of a batch, whose weights are there: nothing is trained."""
        trained = np.flatnonzero(batch.state == ModelState.TRAINED)
        if not len(trained) or batch.rows is None or batch.norms is None or batch.weights is None:
            return
        batch.state[trained] = ModelState.UNTRAINED  # as long as there are no rows
        shown, sets = self.unit_nodes.graph, self.plan.row_sets
        weights = np.ascontiguousarray(batch.weights[0, trained])
        asked = [release for access, release in sets if access == QUERIES]
        logits = nothing(len(asked), len(trained), shown.num_nodes, shown.num_classes)
        self.unit_kernel.run(
            member=np.zeros((len(trained), shown.num_nodes), dtype=np.uint8),
            indices=batch.indices[trained],
            seed=self.plan.seed,
            queries=[(shown.indptr, shown.indices)],
            views=[(0, float(release.last_layer_noise)) for release in asked],
            num_threads=num_threads,
            statistics=logits[..., 0].copy(),
            logits=logits,
            state=np.zeros(len(trained), dtype=np.uint8),
            train_accuracy=nothing(len(trained)),
            held_out_accuracy=nothing(len(trained)),
            view_train_accuracy=nothing(len(asked), len(trained)),
            view_held_out_accuracy=nothing(len(asked), len(trained)),
            progress=None,
            weights=weights,
        )
        for number, (access, release) in enumerate(sets):
            if access == QUERIES:
                answers = logits[asked.index(release)]
                batch.rows[number, trained], batch.norms[number, trained] = self.unit_nodes.class_rows(answers)
                continue
            for row, flat in zip(trained.tolist(), weights, strict=True):
                batch.rows[number, row], batch.norms[number, row] = self.weight_rows.class_rows(flat, release)
        batch.state[trained] = ModelState.TRAINED
        for row in trained[~np.isfinite(batch.rows[:, trained]).all(axis=(0, 2, 3))].tolist():
            batch.fail(row)

    def _fill_views(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """Trains the models of a batch and fills in what each view shows: in one native pass if C++ can do it all."""
        plan = self.plan
        if plan.num_repeats == 1 and all(engines.is_margin_of_logits(plan, view) for view in plan.views):
            self._train_and_ask(
                batch, 0, [question for (question,) in engines.questions_of(plan)], num_threads, progress
            )
            return
        size = max(1, MODELS_AT_ONCE // plan.num_repeats)
        for start in range(0, len(batch.indices), size):
            part = batch.part(slice(start, start + size))
            self._fill_by_logits(part, num_threads, lambda done, start=start: progress(start + done))  # type: ignore[misc]
            progress(start + len(part.indices))

    def _fill_by_logits(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """As `_fill_views`, for releases and statistics in Python: all logits of a few models are held in memory."""
        repeats, (models, nodes) = self.plan.num_repeats, batch.memberships.shape
        states = np.zeros((repeats, models), dtype=np.uint8)
        logits: dict[engines.Question, Floats32] = {}
        margins: dict[engines.Question, Floats32] = {}
        try:
            for repeat in range(repeats):
                asked = [question for question in engines.distinct_questions(self.plan) if question.repeat == repeat]
                questions = [question for question in asked if not question.is_embedding]
                shape = len(questions), models
                answers: dict[str, Any] = {
                    "statistics": nothing(*shape, nodes),
                    "logits": nothing(*shape, nodes, self.graph.num_classes),
                    "view_train_accuracy": nothing(*shape),
                    "view_held_out_accuracy": nothing(*shape),
                    "state": states[repeat],
                    "right": None,
                }
                if repeat > 0:  # the models' own accuracy is that of the first
                    answers |= {"train_accuracy": nothing(models), "held_out_accuracy": nothing(models)}
                if len(questions) < len(asked):
                    embeddings = nothing(len(self.shown), models, nodes, self.kernel.num_hidden)
                    answers["embeddings"] = embeddings
                    logits |= {each: embeddings[each.query] for each in asked if each.is_embedding}
                logits |= dict(zip(questions, answers["logits"], strict=True))
                margins |= dict(zip(questions, answers["statistics"], strict=True))

                def show(done: int, repeat: int = repeat) -> None:
                    progress((repeat * models + done) // repeats)

                self._train_and_ask(batch, repeat, questions, num_threads, show, **answers)
        finally:  # after a stop, the models that were finished are kept
            for row, states_of_repeats in enumerate(states.T):
                if (states_of_repeats == ModelState.FAILED).any():
                    batch.fail(row)
                elif (states_of_repeats == ModelState.TRAINED).all():
                    answers_of_model = {question: values[row] for question, values in logits.items()}
                    margins_of_model = {question: values[row] for question, values in margins.items()}
                    engines.score_model(self.plan, self.graph, batch, row, answers_of_model, margins_of_model)

    def _train_and_ask(
        self,
        batch: ShadowBatch,
        repeat: int,
        questions: list[engines.Question],
        num_threads: int,
        progress: Progress,
        **answers: Any,
    ) -> None:
        """Trains one repeat of the models and asks it; models whose weights are in the batch are only asked.

        Label margins and the like are written into the arrays of `answers`, or into those of the batch where it has
        none of that name.
        """
        accuracies = ("train_accuracy", "held_out_accuracy", "view_train_accuracy", "view_held_out_accuracy")
        in_batch = {name: getattr(batch, name) for name in ("statistics", "logits", "state", *accuracies)}
        in_batch["right"] = None if batch.is_right is None else batch.is_right.view(np.uint8)
        self.kernel.run(
            member=batch.memberships.view(np.uint8),
            indices=repeat_index(batch.indices, repeat),
            seed=self.plan.seed,
            queries=[(shown.indptr, shown.indices) for shown in self.shown],
            views=[(question.query, question.noise_std) for question in questions],
            num_threads=num_threads,
            progress=progress,
            weights=None if batch.weights is None else batch.weights[repeat],
            graphs=[] if batch.edges is None else [compressed_rows(each, self.graph.num_nodes) for each in batch.edges],
            **in_batch | answers,
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
        training=_native.TrainingSettings(**registry.settings_of(training)),
    )
