"""The experiments of others as audit plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bmpaudit.auditing.plan import AuditPlan

POOL, NUM_TARGETS = 192, 20
"""Shadow models to choose from, enough that every node is in 64 of them and not in 64 others; models to attack."""
QUICK_POOL, QUICK_TARGETS, QUICK_SHADOWS = 40, 4, 8
"""For a first look, which leaves out what needs more shadow models."""
QUERY, RELEASE = "none", "clean"
SOURCE = "https://github.com/MarcusLassila/MIA-audit-GNN"
COMMIT = "b3e0c95fcecb6e508c211a46292d7d17ed405206"
PAPER = "https://arxiv.org/abs/2505.24089"


@dataclass(frozen=True)
class Experiment:
    """A data set and a model with the settings of Lassila et al. (2025): half of the nodes, uniformly drawn.

    Attributes:
        dataset: Name of the data set.
        model: Name of the model.
        epochs: Number of epochs.
        weight_decay: L2 penalty.
        options: Settings of the model beyond 64 hidden units, dropout 0.5 on the hidden layer and ReLU.
    """

    dataset: str
    model: str
    epochs: int
    weight_decay: float
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """`cora-gcn`, and so on."""
        return f"{self.dataset}-{self.model}"

    def plan(self, num_models: int) -> AuditPlan:
        """The plan of all models: first those that attacks are fitted on, then those that are attacked."""
        return AuditPlan(
            shadows=num_models,
            sampler={"name": "uniform", "train_fraction": 0.5},
            model={
                "name": self.model,
                "hidden": 64,
                "dropout": 0.5,
                "dropout_on": ["hidden"],
                "activation": "relu",
                **dict(self.options),
            },
            training={"epochs": self.epochs, "learning_rate": 0.001, "weight_decay": self.weight_decay},
            releases=RELEASE,
            queries=QUERY,
        )


_FOUR_HEADS = (("heads", 4),)
_LARGEST = (("aggregation", "max"),)

EXPERIMENTS = (
    Experiment("cora", "gcn", 200, 1e-5),
    Experiment("cora", "gat", 100, 1e-4, _FOUR_HEADS),
    Experiment("cora", "sage", 200, 1e-4, _LARGEST),
    Experiment("citeseer", "gcn", 100, 1e-4),
    Experiment("citeseer", "gat", 50, 1e-4, _FOUR_HEADS),
    Experiment("citeseer", "sage", 100, 1e-4, _LARGEST),
)

ATTACKS: Mapping[str, Any] = {
    "gaussian": "gaussian",
    "rmia": {"name": "rmia", "gamma": 1.0},
    "base": "base",
}
"""By the name in the table of published figures; LiRA is called gaussian here."""

TITLES = {"gaussian": "LiRA", "rmia": "RMIA", "base": "BASE", "confidence": "confidence"}
MODEL_TITLES = {"gcn": "GCN", "gat": "GAT", "sage": "GraphSAGE"}
