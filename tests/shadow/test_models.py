from collections.abc import Callable

import pytest

from bmpaudit.models import APPNP, GAT, GCN, GIN, MLP, SAGE, SGC, Training
from bmpaudit.util.errors import InputError


def test_defaults_are_the_papers_settings() -> None:
    gcn, gat, training = GCN(), GAT(), Training()
    assert (gcn.hidden, gcn.layers, gcn.dropout, gcn.dropout_on, gcn.activation) == (16, 2, 0.5, ("hidden",), "relu")
    assert (gat.hidden, gat.heads, gat.layers, gat.dropout, gat.activation) == (4, 8, 2, 0.5, "elu")
    assert gat.dropout_on == ("input", "attention", "hidden")
    assert (training.epochs, training.learning_rate, training.weight_decay) == (100, 0.01, 5e-4)


def test_specifications_are_values() -> None:
    assert len({GCN(), GCN(hidden=16), GCN(hidden=8), GAT(), MLP(), MLP()}) == 4
    with pytest.raises(AttributeError):
        GCN().hidden = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GCN(hidden=0), "hidden must be a whole number of at least 1, got hidden=0"),
        (lambda: GAT(heads=-1), "heads must be a whole number of at least 1, got heads=-1"),
        (lambda: MLP(layers=0), "layers must be a whole number of at least 1, got layers=0"),
        (lambda: GCN(dropout=1.0), r"dropout must be in \[0, 1\), got dropout=1.0"),
        (lambda: GAT(dropout=-0.1), r"dropout must be in \[0, 1\), got dropout=-0.1"),
        (lambda: GCN(dropout_on=("attention",)), "dropout_on must be one of input, hidden, got dropout_on='attention'"),
        (lambda: GAT(activation="tanh"), "activation must be one of relu, elu, got activation='tanh'"),  # type: ignore[arg-type]
        (lambda: SAGE(aggregation="sum"), "aggregation must be one of mean, max, got aggregation='sum'"),  # type: ignore[arg-type]
        (
            lambda: SAGE(aggregation="max", dropout_on=("input",)),
            "dropout_on must be hidden for aggregation='max', got dropout_on='input'",
        ),
        (lambda: GIN(norm="graph"), "norm must be one of none, layer, batch, got norm='graph'"),  # type: ignore[arg-type]
        (lambda: GCN(residual=True), "residual needs layers of at least 3, two of them hidden, got layers=2"),
        (lambda: SGC(hops=0), "hops must be a whole number of at least 1, got hops=0"),
        (lambda: SGC(hops=5_000), "hops must be at most 1024, got hops=5000"),
        (lambda: APPNP(hops=-1), "hops must be a whole number of at least 1, got hops=-1"),
        (lambda: APPNP(alpha=0.0), r"alpha must be in \(0, 1\], got alpha=0.0"),
        (lambda: APPNP(alpha=1.1), r"alpha must be in \(0, 1\], got alpha=1.1"),
        (lambda: Training(epochs=0), "epochs must be a whole number of at least 1, got epochs=0"),
        (lambda: Training(learning_rate=0.0), "learning_rate must be positive, got learning_rate=0.0"),
        (lambda: Training(learning_rate=-1.0), "learning_rate must be positive, got learning_rate=-1.0"),
        (lambda: Training(learning_rate=float("nan")), "learning_rate must be positive, got learning_rate=nan"),
        (lambda: Training(weight_decay=-1e-4), "weight_decay must be at least 0, got weight_decay=-0.0001"),
        (lambda: Training(schedule="warm"), "schedule must be one of constant, cosine, step, got schedule='warm'"),  # type: ignore[arg-type]
        (lambda: Training(label_smoothing=1.0), r"label_smoothing must be in \[0, 1\), got label_smoothing=1.0"),
        (lambda: Training(drop_edge=1.0), r"drop_edge must be in \[0, 1\), got drop_edge=1.0"),
        (lambda: Training(drop_edge=float("nan")), r"drop_edge must be in \[0, 1\), got drop_edge=nan"),
        (lambda: Training(validation_share=0.0), r"validation_share must be in \(0, 1\), got validation_share=0.0"),
        (lambda: Training(patience=5), "patience needs validation_share, got patience=5 alone"),
        (
            lambda: Training(validation_share=0.1, patience=0),
            "patience must be a whole number of at least 1, got patience=0",
        ),
        (lambda: Training(batch_size=0), "batch_size must be a whole number of at least 1, got batch_size=0"),
        (lambda: Training(neighbors=(5, 5)), "neighbors needs batch_size, got neighbors=5 5 alone"),
        (
            lambda: Training(batch_size=8, neighbors=(5, 0)),
            "neighbors must be a whole number of at least 1, got neighbors=0",
        ),
        (lambda: Training(batch_size=8, neighbors=()), "neighbors must be given for 1 to 1024 hops, got 0"),
        (lambda: Training(optimizer="adamw"), "optimizer must be one of adam, sgd, got optimizer='adamw'"),  # type: ignore[arg-type]
    ],
)
def test_settings_out_of_bounds_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
