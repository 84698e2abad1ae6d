"""The example trains with Lightning, without a word and without files, alike in any process."""

import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.auditing.context import Runtime
from bmpaudit.models import TorchModel
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.releases import Clean, FullEdges
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.torch import TorchEngine
from bmpaudit.util.errors import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*LeafSpec.*", "ignore:.*num_workers.*", "ignore:.*log_every_n_steps.*", "ignore:.*batch_size.*"
)
EXAMPLES = Path(__file__).parents[2] / "examples"
GRAPH = datasets.load("demo")
PATIENCE = 120.0
QUIET = Runtime(1, quiet=True)


@pytest.fixture
def lightning_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("pytorch_lightning")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import lightning_model

    monkeypatch.setattr(lightning_model, "EPOCHS", 3)
    yield lightning_model
    sys.modules.pop("lightning_model", None)


def test_the_example_is_audited_quietly_and_writes_nothing(
    lightning_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    level = logging.getLogger("pytorch_lightning").level
    done = lightning_model.audit_lightning(GRAPH, 8)
    assert done.title == "graph, Uniform 25 %, LightningGCN"
    assert (done.runs.held_out_accuracy > 1 / GRAPH.num_classes).all()
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert logging.getLogger("pytorch_lightning").level == level


def test_another_process_trains_the_same_modules(lightning_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmpaudit.shadow.engines.processes.SECONDS_ALONE", 0.0)
    monkeypatch.setattr(lightning_model, "EPOCHS", 50)  # as the other process has it
    plan = ShadowPlan(
        Uniform(0.1),
        TorchModel(lightning_model.LightningGCN, lightning_model.train),
        releases=(Clean(),),
        queries=(FullEdges(),),
        engine="torch",
    )
    memberships = draw_memberships(GRAPH, plan.sampler, 4, 0)
    alone, together = (ShadowBatch.empty(GRAPH, plan, np.arange(4), memberships) for _ in range(2))
    engine = TorchEngine(GRAPH, plan)

    def wait(_: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while not engine.processes:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    try:
        engine.fill(together, 2, wait)
    finally:
        engine.close()
    TorchEngine(GRAPH, plan).fill(alone, 1, lambda _: None)
    assert alone.statistics.tobytes() == together.statistics.tobytes()


def train_careless(module: Any, data: Any, seed: int) -> None:
    """As people do: with all generators seeded once more, and something printed."""
    import pytorch_lightning as pl
    from lightning_model import train

    pl.seed_everything(seed)
    print("a line on stdout")
    train(module, data, seed)


def test_seeding_everything_and_printing_do_no_harm(lightning_model: Any, capfd: pytest.CaptureFixture[str]) -> None:
    state = np.random.get_state()  # noqa: NPY002
    audit(GRAPH, model=lightning_model.LightningGCN, train=train_careless, shadows=8, runtime=QUIET)
    assert str(np.random.get_state()) == str(state)  # noqa: NPY002
    out, errors = capfd.readouterr()
    assert out == "", "results alone are on stdout"
    assert errors.splitlines() == ["a line on stdout"] * 8


def train_on_parts(module: Any, data: Any, seed: int) -> None:  # noqa: ARG001
    import torch
    from torch_geometric.loader import RandomNodeLoader

    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    for part in RandomNodeLoader(data, num_parts=4, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(part.x, part.edge_index), part.y).backward()
        optimizer.step()


def test_a_loader_of_random_parts_draws_from_the_models_stream(lightning_model: Any) -> None:
    first, again = (
        audit(
            GRAPH, model=lightning_model.LightningGCN, train=train_on_parts, shadows=8, runtime=Runtime(1, quiet=True)
        )
        for _ in range(2)
    )
    assert first.runs.statistics["full_clean"].tobytes() == again.runs.statistics["full_clean"].tobytes()


def train_on_neighbours(module: Any, data: Any, seed: int) -> None:  # noqa: ARG001
    """What `NeighborLoader` does where neither library is there."""
    raise ImportError("'NeighborSampler' requires either 'pyg-lib' or 'torch-sparse'")


def test_a_missing_library_ends_in_one_line(lightning_model: Any) -> None:
    expected = (
        r"shadow model 0: its training needs what is not installed \(ImportError: 'NeighborSampler' requires .*\)$"
    )
    with pytest.raises(InputError, match=expected):
        audit(GRAPH, model=lightning_model.LightningGCN, train=train_on_neighbours, shadows=8)
