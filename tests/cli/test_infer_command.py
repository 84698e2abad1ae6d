"""The command `bmpaudit infer`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import TRAINING, contents, run_here, run_well, run_wrong
from small_graph import small_graph

from bmpaudit import datasets
from bmpaudit.models import MLP, Training
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow.engines.native import make_kernel

NUM_MODELS = 120
HIDDEN, NODES, CLASSES = 8, 40, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("infer")
    small_graph().to_npz(path / "graph.npz")
    run_well(
        *("train", path / "graph.npz", "--out", path / "audit", *TRAINING, "--train-fraction", 0.4),
        *("--shadows", NUM_MODELS, "--set", "attack.name=student"),
    )
    return path / "audit"


@pytest.fixture(scope="module")
def released(folder: Path) -> Path:
    """Weights, outputs and members of a model that was trained as the plan says, in one folder."""
    graph = small_graph()
    kernel = make_kernel(graph, MLP(hidden=HIDDEN, dropout=0.0), Training(epochs=15, learning_rate=0.1))
    members = draw_memberships(graph, Uniform(0.4), 1, 77)[0]
    flat = kernel.trained_parameters(kernel.initial_parameters(77, 0), members.view(np.uint8))
    path = folder.parent / "released"
    path.mkdir()
    parts = np.split(flat, np.cumsum([HIDDEN * NODES, HIDDEN, CLASSES * HIDDEN]))
    names = ("lin1.weight", "lin1.bias", "lin2.weight", "lin2.bias")
    shapes = ((HIDDEN, NODES), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
    weights: dict[str, Any] = {
        name: part.reshape(shape) for name, part, shape in zip(names, parts, shapes, strict=True)
    }
    np.savez(path / "weights.npz", **weights)
    logits = kernel.logits(flat, graph.indptr, graph.indices)
    np.savez(path / "logits.npz", full=logits, none=logits)
    np.savetxt(path / "members.txt", np.flatnonzero(members), fmt="%d")
    return path


def test_the_verdict_comes_first_and_nothing_is_changed(folder: Path, released: Path) -> None:
    before = contents(folder)
    shown = run_well("infer", folder, "--model", released / "weights.npz", "--top", 4)
    assert shown.startswith("From this model an adversary can name ")
    assert "Nothing speaks against its having been trained as the plan says (p = " in shown
    assert "4 of 40 nodes, the most likely members first" in shown
    assert contents(folder) == before
    assert "most likely members first" not in run_well("infer", folder, "--model", released / "weights.npz", "--top", 0)


def test_weights_and_outputs_say_the_same(folder: Path, released: Path) -> None:
    answers = [
        json.loads(run_well("infer", folder, "--model", released / name, "--json"))
        for name in ("weights.npz", "logits.npz")
    ]
    assert answers[0]["nodes"] == answers[1]["nodes"]
    assert len(answers[0]["nodes"]) == NODES
    assert answers[0]["verdict"] == answers[1]["verdict"]
    assert [answer["came_as"] for answer in answers] == ["weights", "outputs"]
    assert [named["certainty"] for named in answers[0]["named"]] == [0.95, 0.99]
    assert answers[0]["score"] is None


def test_truth_prior_release_and_page(folder: Path, released: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shown = run_well(
        *("infer", folder, "--model", released / "logits.npz", "--truth", released / "members.txt"),
        *("--prior", 0.3, "--out", page, "--top", 2),
    )
    assert "Scored on 16 members: AUC " in shown
    assert "declared prior" in " ".join(shown.split())
    assert f"page: {page}" in shown
    html = page.read_text()
    assert html.count("<tr>") >= 2
    assert "<script" not in html
    noisy = json.loads(run_well("infer", folder, "--model", released / "weights.npz", "--release", "noisy", "--json"))
    assert noisy["release"] == "noisy"


def test_a_model_trained_otherwise_is_shown_with_the_warning_first(folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "flat.npz", full=np.zeros((NODES, CLASSES)), none=np.zeros((NODES, CLASSES)))
    shown = run_well("infer", folder, "--model", tmp_path / "flat.npz")
    assert shown.startswith("! This model was not trained as the plan says: ")


def test_wrong_use(folder: Path, released: Path, tmp_path: Path) -> None:
    weights = released / "weights.npz"
    assert run_wrong("infer", folder) == "Missing option '--model'."
    assert run_wrong("infer", tmp_path, "--model", weights) == f"{tmp_path} is not an audit folder: it has no plan.toml"
    assert run_wrong("infer", folder, "--model", "no.npz") == "no.npz: no such file"
    assert run_wrong("infer", folder, "--model", weights, "--release", "rounded") == (
        "release must be one of clean, noisy, got 'rounded'"
    )
    assert run_wrong("infer", folder, "--model", weights, "--prior", 1.5) == "prior must be in (0, 1), got 1.5"
    assert run_wrong("infer", folder, "--model", weights, "--prior", "half") == (
        "half: priors must be a number, or a file .npy, .csv or .parquet"
    )
    assert run_wrong("infer", folder, "--model", weights, "--truth", "no.txt") == "no.txt: no such file"
    assert run_wrong("infer", folder, "--model", weights, "--out", "page.pdf") == (
        "--out must be a page, FILE.html, got page.pdf"
    )
    assert run_wrong("infer", folder, "--model", "model.pt").startswith("model.pt: a pickle, which can run code")
    np.savez(tmp_path / "other.npz", full=np.zeros((NODES - 1, CLASSES)))
    assert run_wrong("infer", folder, "--model", tmp_path / "other.npz") == (
        f"{tmp_path / 'other.npz'}: full: outputs are of 39 nodes, and the graph has 40: of another graph?"
    )
    assert run_here("infr").stderr.strip().endswith("Did you mean 'infer'?")


def certain_weights(path: Path, members: Any) -> Path:
    """A first layer in which features that no member has are nearly empty."""
    graph, rng = datasets.load("demo"), np.random.default_rng(0)
    is_touched = graph.dense_features[members].any(axis=0)
    weights = rng.uniform(0.5, 1, (16, graph.num_features)) * np.where(is_touched, 1, 1e-4)
    np.savez(path, **{"conv1.lin.weight": weights, "conv2.lin.weight": rng.normal(size=(5, 16))})  # type: ignore[arg-type]
    return path


def test_without_shadow_models_logic_tells_who_was_certainly_in_or_out(tmp_path: Path) -> None:
    members = np.random.default_rng(1).permutation(1_000)[:60]
    model = certain_weights(tmp_path / "model.npz", members)
    np.savetxt(tmp_path / "members.txt", members, fmt="%d")
    shown = run_well("infer", "demo", "--model", model, "--truth", tmp_path / "members.txt", "--top", 3)
    assert shown.startswith("Without any shadow model: of 1,000 nodes, ")
    assert "Of these members 0 are wrong, of these non-members 0." in " ".join(shown.split())
    answer = json.loads(run_well("infer", "demo", "--model", model, "--json"))
    assert answer["num_non_members"] > 500
    assert answer["num_members"] > 0
    assert len(answer["nodes"]) == answer["num_members"] + answer["num_non_members"]
    assert {row["certainly"] for row in answer["nodes"]} == {"in", "out"}
    features = datasets.load("demo").dense_features
    assert all(features[row["node"], row["feature"]] > 0 for row in answer["nodes"])
    refused = run_wrong("infer", "demo", "--model", model, "--prior", 0.3)
    assert refused == "infer takes --prior with an audit folder, got the graph demo"


def test_without_a_gap_nothing_is_certain_and_a_wrong_model_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", weight=np.random.default_rng(0).normal(size=(16, 600)))
    assert run_well("infer", "demo", "--model", tmp_path / "model.npz").startswith("Nothing is certain: ")
    np.savez(tmp_path / "other.npz", weight=np.ones((3, 4)))
    assert "no weights of a first layer for the graph's 600 features" in run_wrong(
        "infer", "demo", "--model", tmp_path / "other.npz"
    )
    assert "no data set, archive or folder 'dmeo'" in run_here("infer", "dmeo", "--model", "x.npz").stderr
