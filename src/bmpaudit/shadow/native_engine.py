"""Shadow models in C++."""

import numpy as np

from bmpaudit import _native
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.shadow.batch import Progress, ShadowBatch
from bmpaudit.shadow.models import GAT, GCN, BuiltInModel, Training
from bmpaudit.shadow.plan import ShadowPlan


class NativeEngine:
    """Trains GCN, GAT and MLP in float32, one model a thread, with the GIL released.

    Model j depends on (graph, plan, j) only: same bytes on any number of threads, in any order, on the same build and
    kind of CPU. Elsewhere samples and random draws are the same and margins agree to the rounding of float32 sums.
    """

    def __init__(self, graph: Graph, plan: ShadowPlan) -> None:
        if not isinstance(plan.model, BuiltInModel):
            raise InputError(f"the native engine trains GCN, GAT and MLP, got {type(plan.model).__name__}")
        self.plan = plan
        # What the model is shown by each of the adversary's queries.
        no_edges = (np.zeros_like(graph.indptr), np.zeros(0, dtype=np.int32))
        self.queries = {"full": (graph.indptr, graph.indices), "none": no_edges}
        self.kernel = make_kernel(graph, plan.model, plan.training)

    def fill(self, batch: ShadowBatch, num_threads: int, progress: Progress) -> None:
        """See `Engine.fill`."""
        self.kernel.run(
            member=batch.memberships.view(np.uint8),
            indices=batch.indices,
            seed=self.plan.seed,
            queries=list(self.queries.values()),
            views=[
                (list(self.queries).index(view.edges), self.plan.noise_std if view.output == "noisy" else 0.0)
                for view in self.plan.views
            ],
            num_threads=num_threads,
            statistics=batch.statistics,
            logits=batch.logits,
            state=batch.state,
            train_accuracy=batch.train_accuracy,
            held_out_accuracy=batch.held_out_accuracy,
            progress=progress,
        )


def make_kernel(graph: Graph, model: BuiltInModel, training: Training) -> _native.ShadowEngine:
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
        model=_model_settings(model),
        training=_native.TrainingSettings(
            training.epochs,
            training.learning_rate,
            training.weight_decay,
            training.optimizer,
        ),
    )


def _model_settings(model: BuiltInModel) -> _native.ModelSettings:
    return _native.ModelSettings(
        architecture="gat" if isinstance(model, GAT) else "gcn" if isinstance(model, GCN) else "mlp",
        hidden=model.hidden,
        heads=model.heads if isinstance(model, GAT) else 1,
        layers=model.layers,
        activation=model.activation,
        dropout=model.dropout,
        drops_input="input" in model.dropout_on,
        drops_attention="attention" in model.dropout_on,
        drops_hidden="hidden" in model.dropout_on,
    )
