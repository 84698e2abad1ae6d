"""A folder of shadow models for the tests of the store."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Snowball
from bmpaudit.shadow import ShadowPlan, train_shadows

PLAN = ShadowPlan(Snowball(0.25), GCN(), Training(epochs=40), seed=6)
NUM_MODELS = 300


@pytest.fixture(scope="module")
def graph() -> Graph:
    return datasets.load("demo")


@pytest.fixture(scope="module")
def whole(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was filled without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    train_shadows(graph, PLAN, NUM_MODELS, folder)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def arrays(folder: Path) -> dict[str, bytes]:
    group = zarr.open_group(folder / "shadows", mode="r")
    return {name: np.asarray(array[:]).tobytes() for name, array in group.arrays()}
