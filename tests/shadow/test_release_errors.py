"""Releases that a model, an engine or a statistic does not fit, each refused in one line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import random_graph
from own_parts import first_class
from torch import nn

from bmpaudit.models import TorchModel
from bmpaudit.releases import Clean, Embeddings, Ensemble, LabelOnly, NoisyLastLayer
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats32, Ints

GRAPH = random_graph()
PLAN = ShadowPlan(Uniform(0.5))


class Fixed(nn.Module):  # type: ignore[misc, unused-ignore]
    """A model that learns nothing and has no parameters."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.linspace(0, 1, num_features * num_classes).view(num_features, -1))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        return x @ self.weight


def keep(module: nn.Module, data: object, seed: int) -> None:
    """Trains nothing."""


def right_or_not(outputs: Floats32, labels: Ints) -> Floats32:
    right: Floats32 = (outputs.argmax(axis=-1) == labels).astype("float32")
    return right


right_or_not.takes_labels = True  # type: ignore[attr-defined]


def test_labels_have_no_scores() -> None:
    releases = (Clean(), LabelOnly())
    with pytest.raises(InputError, match="label-only gives out no scores, which the statistic "):
        replace(PLAN, releases=releases, statistic=first_class)
    assert replace(PLAN, releases=releases, statistic=right_or_not).statistic is right_or_not


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (NoisyLastLayer(), "noise of 0.25 on the last layer needs one with parameters, and the model Fixed has none"),
        (Embeddings(), "release embeddings needs a hidden layer, and the model .*Fixed has none"),
    ],
    ids=["noisy", "embeddings"],
)
def test_a_module_without_layers_gives_no_noise_and_no_embeddings(release: Any, message: str, tmp_path: Path) -> None:
    plan = replace(PLAN, model=TorchModel(Fixed, keep), engine="torch", releases=(release,))
    with pytest.raises(InputError, match=message):
        train_shadows(GRAPH, plan, 2, tmp_path)


def test_an_engine_of_ones_own_trains_one_model(tmp_path: Path) -> None:
    plan = replace(PLAN, engine="own_parts:ConstantEngine", releases=(Ensemble(2),))
    with pytest.raises(InputError, match="takes several models, which engine own_parts:ConstantEngine does not give"):
        train_shadows(GRAPH, plan, 2, tmp_path)
