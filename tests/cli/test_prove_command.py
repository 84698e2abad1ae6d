"""The command `bmpaudit prove`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import TRAINING, contents, run_well, run_wrong
from small_graph import small_graph

from bmpaudit.samplers import Uniform, draw_memberships

KEYS = {
    "proven",
    "floor",
    "is_shown",
    "level",
    "method",
    "num_fitting",
    "num_challenged",
    "num_guesses",
    "num_hits",
    "source",
}
NUM_MODELS = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prove")
    small_graph().to_npz(path / "graph.npz")
    audit = path / "audit"
    run_well("train", path / "graph.npz", "--out", audit, *TRAINING, "--train-fraction", 0.4, "--shadows", NUM_MODELS)
    return audit


@pytest.fixture
def arrays() -> dict[str, Any]:
    """Margins that tell a member of each model apart from everybody else, and memberships of a known sampler."""
    graph = small_graph()
    memberships = draw_memberships(graph, Uniform(0.4), NUM_MODELS, seed=3)
    noise = np.random.default_rng(3).normal(size=memberships.shape)
    return {
        "memberships": memberships,
        "full_clean": (noise + 6.0 * memberships).astype(np.float32),
        "prior_prob": np.full(graph.num_nodes, 0.4),
    }


def save(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path, **arrays)
    return path


def test_a_folder_is_read_and_not_changed(folder: Path) -> None:
    before = contents(folder)
    table = run_well("prove", folder)
    assert "proven with 95 % confidence each, one guess per model, fitted on 40 models, 40 challenged" in table
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["ε_R", "ε_L", "MP"]
    assert contents(folder) == before


def test_json_has_every_documented_key(folder: Path) -> None:
    proof = json.loads(run_well("prove", folder, "--json", "--level", 0.9, "--num-fitting", 20))
    assert set(proof) == {"epsilon_right", "epsilon_left", "mp"}
    for bound in proof.values():
        assert set(bound) == KEYS
        assert (bound["level"], bound["num_fitting"], bound["num_challenged"]) == (0.9, 20, NUM_MODELS - 20)


def test_a_file_without_folder_and_graph_proves_as_much_as_never_missing_can(tmp_path: Path, arrays: Any) -> None:
    """With G right guesses and no wrong one, ε_R ≥ logit(0.05^(1/G))."""
    proof = json.loads(run_well("prove", "--runs", save(tmp_path / "a.npz", arrays), "--json"))
    right = proof["epsilon_right"]
    assert right["num_hits"] == right["num_guesses"] > 0
    kappa = 0.05 ** (1 / right["num_guesses"])
    assert right["proven"] == pytest.approx(np.log(kappa / (1 - kappa)))
    assert right["floor"] == pytest.approx(np.log(0.4 / 0.6))


def test_shuffled_memberships_prove_little(tmp_path: Path, arrays: Any) -> None:
    arrays["memberships"] = arrays["memberships"][np.random.default_rng(0).permutation(NUM_MODELS)]
    proof = json.loads(run_well("prove", "--runs", save(tmp_path / "a.npz", arrays), "--json"))
    assert (proof["epsilon_right"]["proven"] or -9.0) < 1.0
    assert (proof["mp"]["proven"] or 0.0) < 1.0


def test_logits_with_labels_and_edges_for_the_neighbours(tmp_path: Path, arrays: Any) -> None:
    graph = small_graph()
    margins = arrays.pop("full_clean")
    arrays["full_clean"] = np.where(np.arange(3) == graph.labels[:, None], margins[..., None] + np.log(2), 0.0)
    arrays |= {"labels": graph.labels, "edges": graph.edges}
    proof = json.loads(run_well("prove", "--runs", save(tmp_path / "a.npz", arrays), "--attack", "student", "--json"))
    assert proof["epsilon_right"]["source"] == "student, full"
    assert proof["epsilon_right"]["proven"] > 1.0


def test_prequential(folder: Path) -> None:
    assert "prequential" in run_well("prove", folder, "--method", "prequential", "--attack", "gaussian")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memberships": None}, "key 'memberships' is missing; the archive has full_clean, prior_prob"),
        ({"prior_prob": None}, "key 'prior_prob' is missing; the archive has full_clean, memberships"),
        ({"prior_draws": 2.5}, "prior_draws must be one whole number, got float64 of shape ()"),
        ({"prior_draws": [40] * 40}, "prior_draws must be one whole number, got int64 of shape (40,)"),
        ({"prior_draws": -1}, "prior_draws must be a whole number of at least 0, got prior_draws=-1"),
        ({"prior_draws": 7}, "prior_prob must be a frequency over prior_draws=7 draws, got 0.4 for node 0"),
        ({"full_clean": None}, "no view; at least one of full_clean, full_noisy, "),
        (
            {"sideways_clean": np.zeros((80, 40))},
            "unknown array 'sideways_clean'; there may be memberships, prior_prob, ",
        ),
        ({"full_clean": np.zeros((80, 40, 3))}, "labels is missing: logits need them"),
        ({"full_clean": np.zeros((80, 39))}, "view full_clean: must have shape (80, 40)"),
        ({"prior_prob": np.full(39, 0.4)}, "prior_prob must have shape (40,)"),
        ({"edges": np.array([[0, 99]])}, "edge 0 joins nodes 0 and 99, but node ids must be in [0, 40)"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path: Path, arrays: Any, change: dict[str, Any], message: str) -> None:
    arrays = {name: values for name, values in (arrays | change).items() if values is not None}
    path = save(tmp_path / "a.npz", arrays)
    assert run_wrong("prove", "--runs", path).startswith(f"{path}: ")
    assert message in run_wrong("prove", "--runs", path)


def test_priors_that_are_frequencies_cost_what_they_may_be_wrong_by(tmp_path: Path, arrays: Any) -> None:
    """ε_R needs no priors to be right; MP is bounded with their limits, and the sampler alone gives away less."""
    bounds = {}
    for draws in (0, 400, 100_000):
        path = save(tmp_path / f"{draws}.npz", arrays | {"prior_draws": draws})
        bounds[draws] = json.loads(run_well("prove", "--runs", path, "--json"))
    exact, few, many = (bounds[draws] for draws in (0, 400, 100_000))
    assert exact == json.loads(run_well("prove", "--runs", save(tmp_path / "a.npz", arrays), "--json"))
    assert few["epsilon_right"]["proven"] == exact["epsilon_right"]["proven"]
    assert few["epsilon_right"]["floor"] < many["epsilon_right"]["floor"] < exact["epsilon_right"]["floor"]
    assert few["mp"]["proven"] < many["mp"]["proven"] < exact["mp"]["proven"]


def test_models_that_share_their_samples_are_refused(tmp_path: Path, arrays: Any) -> None:
    """Four seeds of each of 20 samples, and answers that tell the samples apart and nothing else."""
    order = np.random.default_rng(1).permutation(NUM_MODELS)
    marks = np.random.default_rng(2).normal(size=(20, 40)).astype(np.float32)
    arrays["memberships"] = np.repeat(arrays["memberships"][:20], 4, axis=0)[order]
    arrays["full_clean"] = np.repeat(marks, 4, axis=0)[order]
    path = save(tmp_path / "a.npz", arrays)
    assert run_wrong("prove", "--runs", path) == (
        f"{path}: 80 of 80 models have the same sample as another one: models must be independent draws of a sample "
        "and a training; keep one model of each sample; --allow-misfit proves all the same"
    )
    assert "proven with 95 % confidence each" in run_well("prove", "--runs", path, "--allow-misfit")


def test_wrong_use(folder: Path, tmp_path: Path) -> None:
    both = "prove takes an audit folder or --runs FILE, one of the two"
    assert run_wrong("prove") == both
    assert run_wrong("prove", folder, "--runs", tmp_path / "a.npz") == both
    assert run_wrong("prove", tmp_path) == f"{tmp_path} is not an audit folder: it has no plan.toml"
    assert run_wrong("prove", folder, "--release", "rounded") == "release must be one of clean, noisy, got 'rounded'"
    assert "level" in run_wrong("prove", folder, "--level", 1.5)
    assert run_wrong("prove", folder, "--attack", "nosuch").startswith("attack must be one of gaussian, student")
