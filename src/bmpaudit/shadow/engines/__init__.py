"""What every engine does alike: from a plan to the engine that trains its models, and from answers to statistics.

Each engine has a file of its own; PyTorch is imported only by that of its engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Engine
from bmpaudit.releases import gives_embeddings, label_margin, models_of, probe_scores
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan, View
from bmpaudit.util.errors import InputError, thread_count
from bmpaudit.util.streams import Purpose, stream
from bmpaudit.util.values import Flags, Floats32

LIBRARIES = {"torch": "PyTorch Geometric", "sklearn": "scikit-learn"}
EXTRAS = {"torch": "torch", "torch_geometric": "torch", "sklearn": "sklearn", "threadpoolctl": "sklearn"}
"""By module, the extra that installs it."""


def make_engine(graph: Graph, plan: ShadowPlan) -> Engine:
    """The engine that a plan names, ready to train its models; `InputError` if a release takes what it cannot give."""
    plan.check_trusted()
    try:
        engine: Callable[[Graph, ShadowPlan], Engine] = registry.load(registry.ENGINE, plan.engine_name)
    except InputError as failure:
        missing = failure.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name in EXTRAS:
            extra = EXTRAS[missing.name]
            raise InputError(
                f"engine={plan.engine_name!r} needs {LIBRARIES[extra]}: pip install 'bmpaudit[{extra}]' ({missing})"
            ) from None
        raise
    made = engine(graph, plan)
    gives: frozenset[str] = getattr(made, "gives", frozenset())
    for release in plan.releases:
        name, engine_name = registry.label(registry.RELEASE, release), plan.engine_name
        if models_of(release) > 1 and "repeats" not in gives:
            raise InputError(f"release {name} takes several models, which engine {engine_name} does not give")
        if gives_embeddings(release) and "embeddings" not in gives:
            raise InputError(f"release {name} takes a hidden layer, which engine {engine_name} does not give")
    return made


def num_weights(graph: Graph, plan: ShadowPlan) -> int:
    """How many weights a model of the plan has; `InputError` if its engine cannot keep them."""
    engine = make_engine(graph, plan)
    with closing(engine):
        if not hasattr(engine, "num_weights"):
            raise InputError(f"the engine {plan.engine_name} cannot keep weights")
        return int(engine.num_weights)


def threads_for(engine: Engine, num_threads: int | None) -> int:
    """Threads to train on: if not given, all cores for an engine that `trains_in_parallel`, and one for others."""
    if num_threads is None and not getattr(engine, "trains_in_parallel", False):
        return 1
    return thread_count(num_threads)


@contextmanager
def closing(engine: Engine) -> Iterator[None]:
    """Ends what an engine has started, if it has a method `close`."""
    try:
        yield
    finally:
        getattr(engine, "close", lambda: None)()


class Question(NamedTuple):
    """What a trained model is asked: several views may need the same answer."""

    query: int  # its number in the plan
    noise_std: float  # on the last layer
    repeat: int = 0  # which of the models that are trained on the same sample
    is_embedding: bool = False  # asks for the activations of the last hidden layer, and not for logits


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
    """What the model sees under each query; `InputError` if a query changes the nodes."""
    shown = [query.graph(graph) for query in plan.queries]
    for query, other in zip(plan.queries, shown, strict=True):
        if other.num_nodes != graph.num_nodes:
            sizes = f"{graph.num_nodes:,}, got {other.num_nodes:,}"
            raise InputError(f"query {query} must show a graph with the same nodes: {sizes}")
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


def keep_accuracy(batch: ShadowBatch, right: Flags) -> None:
    """Fills in the accuracies of the only model of a batch by the nodes that it is right about."""
    member = batch.memberships[0]
    batch.train_accuracy[0], batch.held_out_accuracy[0] = share(right[member]), share(right[~member])


def score_model(
    plan: ShadowPlan,
    graph: Graph,
    batch: ShadowBatch,
    row: int,
    answers: Mapping[Question, Floats32],
    margins: Mapping[Question, Floats32] = MappingProxyType({}),
) -> None:
    """Fills in the statistics and accuracies of a model's views, or marks it as failed if one is not finite.

    `answers` are logits or embeddings for all questions of the plan, `margins` label margins of these logits, where the
    engine has them already.
    """
    questions, num_releases = questions_of(plan), len(plan.releases)
    member, labels = batch.memberships[row], graph.labels
    for first in range(num_releases):
        rng = stream(plan.seed, int(batch.indices[row]), Purpose.RELEASE)
        for number in range(first, len(questions), num_releases):
            view, asked = plan.views[number], questions[number]
            outputs = answers[asked[0]]
            if view.release.changes_outputs:
                takes = outputs.copy() if len(asked) == 1 else np.stack([answers[question] for question in asked])
                given = np.asarray(view.release.outputs(takes, rng), dtype=np.float32)
                if given.shape != outputs.shape:
                    axes = "(nodes, units)" if gives_embeddings(view.release) else "(nodes, classes)"
                    wanted = f"outputs of shape {outputs.shape} {axes}"
                    raise InputError(f"release {view.release_name} must give {wanted}, got {given.shape}")
                outputs = given
            if gives_embeddings(view.release):
                outputs = probe_scores(outputs, labels, graph.num_classes)
            if is_margin_of_logits(plan, view) and asked[0] in margins:
                statistics = margins[asked[0]]
            else:
                statistics = np.asarray(plan.statistic(outputs, labels), dtype=np.float32)
                if statistics.shape != labels.shape:
                    found = f"{len(labels):,} nodes, got shape {statistics.shape}"
                    raise InputError(f"the statistic must give one number for each of {found}")
            batch.statistics[number, row] = statistics
            right = outputs.argmax(axis=1) == labels
            batch.view_train_accuracy[number, row] = share(right[member])
            batch.view_held_out_accuracy[number, row] = share(right[~member])
            if batch.is_right is not None:
                batch.is_right[number, row] = right
            if batch.logits is not None:
                batch.logits[number, row] = outputs
    if np.isfinite(batch.statistics[:, row]).all():
        batch.state[row] = ModelState.TRAINED
    else:
        batch.fail(row)
