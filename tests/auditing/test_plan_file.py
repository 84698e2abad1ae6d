"""Plans as TOML files."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit import DataError, Graph, InputError
from bmpaudit.estimation import NormalPrior
from bmpaudit.plan import AttackSettings, AuditPlan, PlanFile, format_plan, plan_template, read_plan
from bmpaudit.plan.comments import COMMENTS
from bmpaudit.samplers import Bernoulli, DegreeWeighted, RandomWalk, Snowball, Stratified, Uniform
from bmpaudit.shadow import GAT, GCN, MLP, QueryView, TorchModel, Training

SAMPLERS = (
    Uniform(0.4),
    Snowball(0.3, fan_out=7, restart=True),
    Bernoulli(0.2),
    Stratified(0.5),
    DegreeWeighted(0.1),
    RandomWalk(num_roots=30, walk_length=4),
)
MODELS = (GCN(hidden=8, layers=3), GAT(hidden=3, heads=2, dropout=0.1), MLP(hidden=5, activation="elu"))
EVERYTHING_ELSE = AuditPlan(
    sampler=Uniform(0.25),
    training=Training(epochs=7, learning_rate=0.2, weight_decay=0.0, optimizer="sgd"),
    num_shadows=17,
    views=(QueryView("none", "noisy"), QueryView("none", "clean")),
    noise_std=1,
    engine="torch",
    decisions=("weak",),
    attack=AttackSettings(min_models=3, unfittable="non-member", pooled_variance=True, cost_false_positive=2.0),
    prior_source="shadow-frequency",
    prior_draws=12,
    null_permutations=3,
    definitions=("mp", "bmp-s"),
    epsilon_prior=NormalPrior(1.0, 4.0),
    strength=0.25,
    level=0.8,
    proof_level=0.99,
    seed=5,
)
# Not all edges with all outputs, or in another order.
ODD_VIEWS = (
    (QueryView("full", "clean"), QueryView("none", "noisy")),
    (QueryView("full", "noisy"), QueryView("none", "clean"), QueryView("full", "clean")),
)


def written(text: str, folder: Path) -> Path:
    path = folder / "audit.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("writer", [format_plan, plan_template])
@pytest.mark.parametrize(
    "plan",
    [
        AuditPlan(),
        EVERYTHING_ELSE,
        *(AuditPlan(sampler=sampler) for sampler in SAMPLERS),
        *(AuditPlan(model=model) for model in MODELS),
        *(AuditPlan(views=views) for views in ODD_VIEWS),
    ],
    ids=lambda plan: plan.title,
)
def test_a_written_plan_is_read_as_the_same(plan: AuditPlan, writer: Any, tmp_path: Path) -> None:
    path = written(writer(plan, 'a "graph" \\ of #    [ mine,].npz'), tmp_path)
    assert read_plan(path) == PlanFile('a "graph" \\ of #    [ mine,].npz', plan)


def test_an_empty_file_is_the_default_plan(tmp_path: Path) -> None:
    assert read_plan(written("", tmp_path)) == PlanFile("", AuditPlan())


@pytest.mark.parametrize("plan", [AuditPlan(sampler=sampler, model=MODELS[1]) for sampler in SAMPLERS])
def test_every_key_of_the_template_has_a_comment(plan: AuditPlan) -> None:
    text = plan_template(plan, "cora")
    keys = [line for line in text.splitlines() if " = " in line.partition("#")[0]]
    assert len(keys) == sum(len(part) if isinstance(part, dict) else 1 for part in tomllib.loads(text).values())
    for line in keys:
        assert line.partition(" # ")[2].strip() in COMMENTS.values()
        assert len(line) <= 140


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "shadow = 3",
            "unknown key shadow; allowed here: sampler, model, training, queries, attack, estimation, graph, shadows, "
            "seed, engine",
        ),
        (
            '[sampler]\nname = "uniform"\nfan_out = 3',
            "unknown key sampler.fan_out; allowed in [sampler]: name, train_fraction",
        ),
        ("[model]\nheads = 3", "unknown key model.heads; allowed in [model]: name, hidden, layers, dropout"),
        ("[queries]\nedge = []", "unknown key queries.edge; allowed in [queries]: edges, output, views, noise_std"),
        ("[extra]\na = 1", "unknown key extra; allowed here: "),
        (
            '[sampler]\nname = "snow"',
            "sampler.name must be one of uniform, snowball, bernoulli, stratified, degree-weighted, random-walk, "
            "got 'snow'",
        ),
        ('[sampler]\nname = ["uniform"]', "sampler.name must be one of uniform, "),
        ('[model]\nname = "gin"', "model.name must be one of gcn, gat, mlp, got 'gin'"),
        ("shadows = 100.0", "shadows must be an integer, got 100.0"),
        ("shadows = true", "shadows must be an integer, got True"),
        ('shadows = "100"', "shadows must be an integer, got '100'"),
        ("shadows = 7", "shadows must be at least 8, got shadows=7"),
        ("seed = -1", "seed must be "),
        ('engine = "jax"', "engine must be 'native' or 'torch', got 'jax'"),
        ("graph = 3", "graph must be a string, got 3"),
        ("sampler = 3", "sampler must be a table, as in [sampler], got 3"),
        ("[sampler]\ntrain_fraction = 1.5", "[sampler] train_fraction must be in (0, 1), got train_fraction=1.5"),
        ("[training]\nepochs = 0", "[training] epochs must be "),
        ("[training]\nlearning_rate = nan", "[training] learning_rate must be "),
        ('[queries]\nedges = "full"', "queries.edges must be a list, got 'full'"),
        ('[queries]\nedges = ["some"]', "queries.edges must be 'full' or 'none', got 'some'"),
        ("[queries]\nedges = []", "queries: edges and output must name at least one view, each once"),
        ('[queries]\noutput = ["clean", "clean"]', "queries: edges and output must name at least one view, each once"),
        (
            '[queries]\nedges = ["full"]\nviews = ["none_clean"]',
            "queries.views stands instead of queries.edges and queries.output, not beside them",
        ),
        ("[queries]\nnoise_std = -1", "noise_std must be at least 0, got noise_std=-1"),
        ("[attack]\ndecisions = []", "decisions must name at least one, each once, got []"),
        ('[attack]\nprior_source = "mine"', "attack.prior_source must be 'exact' or 'shadow-frequency', got 'mine'"),
        ("[attack]\nprior_draws = 0", "prior_draws must be a whole number of at least 1, got prior_draws=0"),
        ('[attack]\nunfittable = "drop"', "attack.unfittable must be 'leave-out' or 'non-member', got 'drop'"),
        (
            '[estimation]\ndefinitions = ["dp"]',
            "estimation.definitions must be 'bmp', 'bmp-r', 'bmp-l', 'bmp-s' or 'mp'",
        ),
        ('[estimation]\ndefinitions = ["mp", "mp"]', "definitions must name at least one, each once"),
        ("[estimation]\nprior_variance = 0", "[estimation] "),
        ("[estimation]\nprior_mean = nan", "[estimation] "),
        ("[estimation]\nstrength = 1", "strength must be in [0, 1), got strength=1"),
        ("[estimation]\nlevel = nan", "level must be in (0, 1), got level=nan"),
        ("[estimation]\nproof_level = 1.0", "proof_level must be in (0, 1), got proof_level=1.0"),
    ],
)
def test_what_is_wrong_is_told_with_file_key_and_what_is_allowed(text: str, told: str, tmp_path: Path) -> None:
    path = written(text, tmp_path)
    with pytest.raises(InputError) as wrong:
        read_plan(path)
    assert str(wrong.value).startswith(f"{path}: {told}")
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("content", [b"shadows 100", b"shadows = 1\nshadows = 2", b"\xff\xfe", b"[sampler"])
def test_what_is_not_toml_is_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a TOML file: "):
        read_plan(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.toml: no such file; `bmpaudit plan init` writes one"):
        read_plan(tmp_path / "nowhere.toml")
    with pytest.raises(DataError, match="not a TOML file"):
        read_plan(tmp_path)


def every_second(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """A sampler of one's own."""
    return np.arange(int(rng.integers(2)), graph.num_nodes, 2)


def test_parts_of_ones_own_are_written_but_not_read_back(tmp_path: Path) -> None:
    from torch_geometric.nn import GIN

    plan = AuditPlan(sampler=every_second, model=TorchModel(GIN, version="1"), engine="torch")
    for text in (format_plan(plan, "cora"), plan_template(plan, "cora")):
        table = tomllib.loads(text)
        assert table["sampler"]["name"].endswith("test_plan_file.every_second")
        assert table["model"]["kind"] == "TorchModel"
        with pytest.raises(InputError, match=r"model.name must be one of|sampler.name must be one of"):
            read_plan(written(text, tmp_path))
    assert plan.title == "own sampler, TorchModel"


def test_titles() -> None:
    assert AuditPlan(sampler=Snowball(0.3), model=GAT()).title == "Snowball 30 %, GAT"
    assert AuditPlan(sampler=RandomWalk(num_roots=30, walk_length=4)).title == "RandomWalk 25 %, GCN"


def test_variants_are_views_by_decisions_and_the_first_is_the_main_one() -> None:
    plan = replace(EVERYTHING_ELSE, decisions=("weak", "strong"))
    assert [variant.name for variant in plan.variants] == [
        "none_noisy_weak",
        "none_noisy_strong",
        "none_clean_weak",
        "none_clean_strong",
    ]
    assert plan.main_variant == plan.variants[0]
    assert plan.main_variant.label == "no edges, noisy output, weak decision"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"num_shadows": 7}, "num_shadows must be at least 8, got num_shadows=7"),
        ({"num_shadows": 8.0}, "num_shadows must be at least 8"),
        ({"decisions": ("brave",)}, "decisions must be strong or weak, got 'brave'"),
        ({"decisions": ()}, "decisions must name at least one"),
        ({"definitions": ("mdp",)}, "mdp"),
        ({"prior_source": "mine"}, "prior_source must be exact or shadow-frequency, got prior_source='mine'"),
        ({"null_permutations": 0}, "null_permutations must be a whole number of at least 1"),
        ({"strength": float("nan")}, "strength must be in"),
        ({"seed": -3}, "seed"),
        ({"sampler": 3}, "sampler must have a method sample or be a function, got 3"),
    ],
)
def test_impossible_plans_cannot_be_made(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told.replace("(", r"\(")):
        AuditPlan(**settings)
