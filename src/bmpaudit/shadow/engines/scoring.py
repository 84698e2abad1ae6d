"""From the answers of one model to the statistics of its views: what every engine does alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.releases import gives_embeddings, label_margin, models_of, probe_scores
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan, View
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import Purpose, stream
from bmpaudit.util.values import Flags, Floats32, Ints


class Question(NamedTuple):
    """What a trained model is asked: several views may need the same answer.

    Attributes:
        query: Number of the query in the plan.
        noise_std: Standard deviation of the noise on the last layer.
        repeat: Which of the models that are trained on the same sample is asked.
        is_embedding: Whether the answer is the activations of the last hidden layer, and not logits.
    """

    query: int
    noise_std: float
    repeat: int = 0
    is_embedding: bool = False


def questions_of(plan: ShadowPlan) -> list[tuple[Question, ...]]:
    """The questions behind each view, one for each model that its release takes, in the order of `plan.views`."""
    return [
        tuple(
            Question(number, float(release.last_layer_noise), repeat, gives_embeddings(release))
            for repeat in range(models_of(release))
        )
        for number in range(len(plan.queries))
        for release in plan.releases
    ]


def distinct_questions(plan: ShadowPlan) -> list[Question]:
    """Every question of a plan, once."""
    return list(dict.fromkeys(question for questions in questions_of(plan) for question in questions))


def is_margin_of_logits(plan: ShadowPlan, view: View) -> bool:
    """Whether a view's statistic is the label margin of the model's own logits, which C++ computes."""
    release = view.release
    return plan.statistic is label_margin and not release.changes_outputs and not gives_embeddings(release)


def shown_graphs(plan: ShadowPlan, graph: Graph) -> list[Graph]:
    """What the model sees under each query.

    Raises:
        InputError: if a query changes the nodes.
    """
    shown = [query.graph(graph) for query in plan.queries]
    for query, other in zip(plan.queries, shown, strict=True):
        if other.num_nodes != graph.num_nodes:
            raise InputError(
                f"query {query} must show a graph with the same nodes: {graph.num_nodes:,}, got {other.num_nodes:,}"
            )
    return shown


def refuse_embeddings(plan: ShadowPlan) -> None:
    """Raises `InputError` if a release needs a hidden layer, for a model that has none."""
    for release in plan.releases:
        if gives_embeddings(release):
            name, model = registry.label(registry.RELEASE, release), registry.title(plan.model)
            raise InputError(f"release {name} needs a hidden layer, and the model {model} has none")


def share(flags: Flags) -> np.float32:
    """How many of some flags are true, as C++ divides; NaN if there are none."""
    return np.float32(flags.sum()) / np.float32(len(flags)) if len(flags) else np.float32(np.nan)


def score_model(
    plan: ShadowPlan,
    labels: Ints,
    batch: ShadowBatch,
    row: int,
    answers: Mapping[Question, Floats32],
    margins: Mapping[Question, Floats32],
    *,
    num_classes: int = 0,
) -> None:
    """Fills in the statistics and accuracies of a model's views, or marks it as failed if one is not finite.

    Args:
        plan: The plan.
        labels: Class of each node, shape (num_nodes,).
        batch: Where the statistics go.
        row: Which model of the batch.
        answers: Logits or embeddings, for all questions of the plan.
        margins: Label margins of these logits, where the engine has them already.
        num_classes: Number of classes, for embeddings.
    """
    questions, num_releases = questions_of(plan), len(plan.releases)
    member = batch.memberships[row]
    for first in range(num_releases):
        rng = stream(plan.seed, int(batch.indices[row]), Purpose.RELEASE)
        for number in range(first, len(questions), num_releases):
            view, asked = plan.views[number], questions[number]
            outputs = _given_out(view, [answers[question] for question in asked], rng)
            if gives_embeddings(view.release):
                outputs = probe_scores(outputs, labels, num_classes)
            if is_margin_of_logits(plan, view) and asked[0] in margins:
                statistics = margins[asked[0]]
            else:
                statistics = np.asarray(plan.statistic(outputs, labels), dtype=np.float32)
                if statistics.shape != labels.shape:
                    raise InputError(
                        f"the statistic must give one number for each of {len(labels):,} nodes, "
                        f"got shape {statistics.shape}"
                    )
            batch.statistics[number, row] = statistics
            right = outputs.argmax(axis=1) == labels
            batch.view_train_accuracy[number, row] = share(right[member])
            batch.view_held_out_accuracy[number, row] = share(right[~member])
            if batch.logits is not None:
                batch.logits[number, row] = outputs
    if np.isfinite(batch.statistics[:, row]).all():
        batch.state[row] = ModelState.TRAINED
    else:
        batch.fail(row)


def _given_out(view: View, logits: list[Floats32], rng: np.random.Generator) -> Floats32:
    """What the release of a view gives out of the logits of its models."""
    if not view.release.changes_outputs:
        return logits[0]
    takes = logits[0].copy() if len(logits) == 1 else np.stack(logits)
    outputs = np.asarray(view.release.outputs(takes, rng), dtype=np.float32)
    if outputs.shape != logits[0].shape:
        axes = "(nodes, units)" if gives_embeddings(view.release) else "(nodes, classes)"
        raise InputError(
            f"release {view.release_name} must give outputs of shape {logits[0].shape} {axes}, got {outputs.shape}"
        )
    return outputs
