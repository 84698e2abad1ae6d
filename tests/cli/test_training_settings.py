"""How models are trained, by options, in a plan file and in Python: the same models by each way."""

from pathlib import Path

import pytest
from command_line import run_well, run_wrong

from bmpaudit import datasets
from bmpaudit.models import GCN, Training
from bmpaudit.plan import read_plan
from bmpaudit.shadow import ShadowPlan, train_shadows

EVERY_WAY = {
    "DropEdge": (Training(3, drop_edge=0.2), ("--drop-edge", 0.2), "drop_edge = 0.2"),
    "early stopping": (
        Training(3, validation_share=0.25, patience=1),
        ("--validation-share", 0.25, "--patience", 1),
        "validation_share = 0.25\npatience = 1",
    ),
    "mini-batches": (
        Training(3, batch_size=32, neighbors=(4, -1)),
        ("--batch-size", 32, "--neighbors", 4, "--neighbors", -1),
        "batch_size = 32\nneighbors = [4, -1]",
    ),
}


@pytest.mark.parametrize("name", EVERY_WAY)
def test_options_plan_file_and_python_train_the_same_models(name: str, tmp_path: Path) -> None:
    training, options, lines = EVERY_WAY[name]
    run_well("train", "demo", "--epochs", 3, "--shadows", 8, *options, "--out", tmp_path / "options")
    plan = tmp_path / "plan.toml"
    plan.write_text(f'graph = "demo"\nshadows = 8\n[training]\nepochs = 3\n{lines}\n')
    run_well("train", "--plan", plan, "--out", tmp_path / "file")
    graph = datasets.load("demo")
    in_python = ShadowPlan(read_plan(plan).plan.sampler, GCN(), training, rows=("queries", "weights"))
    assert read_plan(plan).plan.shadow_plan == in_python
    # Folders of another plan would be refused.
    runs = [train_shadows(graph, in_python, 8, tmp_path / folder) for folder in ("python", "options", "file")]
    assert len({each.statistics["full_clean"].tobytes() for each in runs}) == 1


def test_a_model_without_edges_refuses_what_is_done_to_them(tmp_path: Path) -> None:
    wrong = run_wrong("train", "demo", "--model", "mlp", "--drop-edge", 0.2, "--out", tmp_path / "audit")
    assert wrong == "MLP sees no edges, and takes no drop_edge, got drop_edge=0.2"
