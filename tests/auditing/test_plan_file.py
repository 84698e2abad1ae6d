"""Plans, and plans as TOML files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bmpaudit.attack import DecisionSettings, Evidence, Gaussian, Scores, Student, Weak
from bmpaudit.auditing.context import variants
from bmpaudit.estimation import NormalPrior
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GAT, GCN, MLP, TorchModel, TrainedElsewhere, Training
from bmpaudit.plan import AuditPlan, Gate, PlanFile, format_plan, plan_keys, plan_template, read_plan
from bmpaudit.registry import ENTRIES, UntrustedPart, field_help
from bmpaudit.releases import NoisyLastLayer, label_margin
from bmpaudit.samplers import Bernoulli, DegreeWeighted, RandomWalk, Snowball, Stratified, Uniform
from bmpaudit.util.errors import DataError, InputError

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
    shadows=17,
    queries="none",
    releases=(NoisyLastLayer(1.0), "clean", NoisyLastLayer(0.5)),
    engine="torch",
    rules="weak",
    attack=Gaussian(min_models=3, pooled_variance=True, min_sigma=0.5),
    unfittable="non-member",
    cost_false_positive=2.0,
    prior_source="shadow-frequency",
    prior_draws=12,
    permutations=239,
    definitions=("mp", "bmp-s"),
    prior_mean=1.0,
    prior_variance=4.0,
    strength=0.25,
    level=0.8,
    proof_level=0.99,
    seed=5,
)


@dataclass(frozen=True)
class Hubs:
    """A sampler of one's own.

    Attributes:
        share: Share of nodes.
        names: Some names.
    """

    share: float = 0.5
    names: tuple[str, ...] = ("a", "b")

    def sample(self, graph: Graph, rng: np.random.Generator) -> np.ndarray:
        return rng.permutation(graph.num_nodes)[: int(self.share * graph.num_nodes)]


def every_second(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """A sampler as a function."""
    return np.arange(int(rng.integers(2)), graph.num_nodes, 2)


def statistic(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """A statistic of one's own."""
    return label_margin(outputs, labels)


@dataclass(frozen=True)
class Fused:
    """An attack that takes all queries together."""

    fuses_queries: ClassVar[bool] = True
    weight: float = 1.0

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
        raise NotImplementedError


@dataclass(frozen=True)
class Shifted(Weak):
    """A rule of one's own."""

    shift: float = 0.5


def make_module(num_features: int, num_classes: int) -> Any:
    """A model of one's own."""
    raise NotImplementedError


def train_module(module: Any, data: Any, seed: int) -> None:
    """And its own training."""
    raise NotImplementedError


OWN = AuditPlan(
    sampler=Hubs(0.3, ("x",)),
    model=TorchModel(make_module, train_module, "2"),
    engine="torch",
    statistic=statistic,
    attack=Fused(0.5),
    rules=(Shifted(0.25), "weak", Shifted(0.75)),
    definitions="mp",
)


def written(text: str, folder: Path) -> Path:
    path = folder / "audit.toml"
    path.write_text(text, encoding="utf-8")
    return path


PLANS = [
    AuditPlan(),
    EVERYTHING_ELSE,
    *(AuditPlan(sampler=sampler, model=model) for sampler, model in product(SAMPLERS, MODELS)),
    *(
        AuditPlan(queries=queries, releases=releases, rules=rules, definitions=definitions)
        for queries, releases, rules, definitions in product(
            ("full", ("none", "full")),
            ("noisy", ("noisy", "clean")),
            ("weak", ("weak", "strong")),
            ("bmp", ("mp", "bmp-l")),
        )
    ),
    AuditPlan(model=TrainedElsewhere()),
    OWN,
    AuditPlan(sampler=every_second),
]


@pytest.mark.parametrize("writer", [format_plan, plan_template])
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.title)
def test_a_written_plan_is_read_as_the_same(plan: AuditPlan, writer: Any, tmp_path: Path) -> None:
    source = 'a "graph" \\ of #    [ mine,].npz'
    path = written(writer(plan, source), tmp_path)
    assert read_plan(path, trust_code=True) == PlanFile(source, plan)
    # Without running anybody's code, and written again.
    untrusted = read_plan(path)
    assert format_plan(untrusted.plan, untrusted.graph) == format_plan(plan, source)
    assert untrusted.plan.title == plan.title
    assert [view.name for view in untrusted.plan.views] == [view.name for view in plan.views]
    assert list(untrusted.plan.rules_by_name) == list(plan.rules_by_name)
    assert list(untrusted.plan.definitions_by_name) == list(plan.definitions_by_name)


def test_an_empty_file_is_the_default_plan(tmp_path: Path) -> None:
    assert read_plan(written("", tmp_path)) == PlanFile("", AuditPlan())


def test_a_section_without_a_name_is_the_default_part(tmp_path: Path) -> None:
    plan = read_plan(written("[sampler]\ntrain_fraction = 0.5\n[attack]\nneighbours = false\n", tmp_path)).plan
    assert (plan.sampler, plan.attack) == (Uniform(0.5), Student(neighbours=False))


@pytest.mark.parametrize("plan", [AuditPlan(sampler=sampler, model=MODELS[1]) for sampler in SAMPLERS])
def test_every_key_of_the_template_has_a_comment(plan: AuditPlan) -> None:
    text = plan_template(plan, "cora")
    keys = [line for line in text.splitlines() if " = " in line.partition("#")[0]]
    assert len(keys) == sum(len(part) if isinstance(part, dict) else 1 for part in tomllib.loads(text).values())
    for line in keys:
        assert len(line.partition(" # ")[2].strip()) > 5, line
        assert len(line) <= 200


def test_comments_name_the_choices_and_come_from_the_parts() -> None:
    text = plan_template(AuditPlan(sampler="snowball"), "cora")
    assert f"# How the training sample is drawn: {', '.join(ENTRIES['sampler'])}, or module:Name" in text
    assert f"# {field_help(Snowball)['fan_out']}" in text
    of_my_own = plan_template(AuditPlan(sampler=Hubs()), "cora")
    assert "# Share of nodes" in of_my_own


def test_every_field_of_the_plan_is_in_the_file() -> None:
    table = tomllib.loads(format_plan(AuditPlan(gate=Gate(max_proven_right=3)), "cora"))
    for name, key in plan_keys().items():
        assert name in (table if key.section in ("", name) else table[key.section])
        assert name in ("training", "gate") or key.about


ALL_SAMPLERS, ALL_DEFINITIONS = ", ".join(ENTRIES["sampler"]), ", ".join(ENTRIES["definition"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "shadow = 3",
            "unknown key shadow; allowed here: graph, shadows, seed, engine, keep_weights, permutations, sampler, "
            "model, training, views, attack, decision, estimation",
        ),
        ("level = 0.5", "unknown key level; allowed here: "),
        ('queries = ["full"]', "unknown key queries; allowed here: "),
        (
            '[sampler]\nname = "uniform"\nfan_out = 3',
            "unknown key sampler.fan_out; allowed in [sampler]: name, train_fraction",
        ),
        ("[model]\nheads = 3", "unknown key model.heads; allowed in [model]: name, hidden, layers, dropout"),
        ("[training]\nepoch = 3", "unknown key training.epoch; allowed in [training]: epochs, learning_rate"),
        ("[views]\nedge = []", "unknown key views.edge; allowed in [views]: releases, release_as, queries, statistic"),
        ("[decision]\nlevel = 0.5", "unknown key decision.level; allowed in [decision]: rules, cost_false_positive"),
        ("[extra]\na = 1", "unknown key extra; allowed here: "),
        ('[sampler]\nname = "snow"', f"sampler must be one of {ALL_SAMPLERS}, or module:Name of your own, got 'snow'"),
        ('[sampler]\nname = ["uniform"]', "sampler.name must be one of uniform, "),
        (
            '[model]\nname = "tree"',
            f"model must be one of {', '.join(ENTRIES['model'])}, or module:Name of your own, got 'tree'",
        ),
        ("shadows = 100.0", "shadows must be an integer, got 100.0"),
        ("shadows = true", "shadows must be an integer, got True"),
        ('shadows = "100"', "shadows must be an integer, got '100'"),
        ("shadows = 7", "shadows must be greater than or equal to 8, got 7"),
        ("seed = -1", "seed must be greater than or equal to 0, got -1"),
        ("permutations = 198", "permutations must be greater than or equal to 199, got 198"),
        (
            'engine = "jax"',
            "engine must be one of native, torch, sklearn, or module:Name of your own, got 'jax'",
        ),
        ("engine = 3", "engine must be a string, got 3"),
        ("graph = 3", "graph must be a string, got 3"),
        ("sampler = 3", "sampler must be a table, as in [sampler], got 3"),
        ("[sampler]\ntrain_fraction = 1.5", "[sampler] train_fraction must be in (0, 1), got train_fraction=1.5"),
        ('[sampler]\ntrain_fraction = "half"', "sampler.train_fraction must be a number, got 'half'"),
        ("[training]\nepochs = 0", "[training] epochs must be "),
        ("[training]\nepochs = 1.5", "training.epochs must be an integer, got 1.5"),
        ("[training]\nlearning_rate = nan", "[training] learning_rate must be "),
        ('[views]\nqueries = ["some"]', "query must be one of full, none, or module:Name of your own, got 'some'"),
        ("[views]\nqueries = []", "queries must name at least one, each once, got none"),
        ("[views]\nqueries = 3", "a query must have a method graph, got 3"),
        ('[views]\nreleases = ["clean", "clean"]', "releases must name at least one, each once, got clean, clean"),
        (
            '[views]\nreleases = [{name = "noisy", noise_std = -1.0}]',
            "[release] noise_std must be at least 0, got noise_std=-1",
        ),
        ("[decision]\nrules = []", "rules must name at least one, each once, got none"),
        ('[decision]\nrules = ["brave"]', "rule must be one of strong, weak, or module:Name of your own, got 'brave'"),
        ('[decision]\nprior_source = "mine"', "prior_source must be 'exact' or 'shadow-frequency', got 'mine'"),
        ("[decision]\nprior_draws = 0", "prior_draws must be greater than or equal to 1, got 0"),
        ('[decision]\nunfittable = "drop"', "unfittable must be 'leave-out' or 'non-member', got 'drop'"),
        ("[decision]\ncost_false_positive = 0", "cost_false_positive must be greater than 0, got 0"),
        (
            '[estimation]\ndefinitions = ["dp"]',
            f"definition must be one of {ALL_DEFINITIONS}, or module:Name of your own, got 'dp'",
        ),
        ('[estimation]\ndefinitions = ["mp", "mp"]', "definitions must name at least one, each once, got mp, mp"),
        ("[estimation]\nprior_variance = 0", "prior_variance must be greater than 0, got 0"),
        ("[estimation]\nprior_mean = nan", "prior_mean must be a finite number, got nan"),
        ("[estimation]\nstrength = 1", "strength must be less than 1, got 1"),
        ("[estimation]\nlevel = nan", "level must be "),
        ("[proof]\nproof_level = 1.0", "proof_level must be less than 1, got 1.0"),
    ],
)
def test_mistakes_are_reported_with_file_key_and_what_is_allowed(text: str, message: str, tmp_path: Path) -> None:
    path = written(text, tmp_path)
    with pytest.raises(InputError) as wrong:
        read_plan(path)
    assert str(wrong.value).startswith(f"{path}: {message}")
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("shadow = 30", "; did you mean shadows?"),
        ("[training]\nepoch = 3", "; did you mean epochs?"),
        ('[model]\nname = "DPMLP"', ", got 'DPMLP'; did you mean dp-mlp or mlp?"),
        ('[sampler]\nname = "snowbal"', ", got 'snowbal'; did you mean snowball?"),
        ('[views]\nreleases = ["label_only"]', ", got 'label_only'; did you mean label-only?"),
        ('engine = "pytorch"', ", got 'pytorch'; did you mean torch?"),
        ('[model]\nname = "tree"', ", got 'tree'"),
    ],
)
def test_what_may_have_been_meant_is_said(text: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as wrong:
        read_plan(written(text, tmp_path))
    assert str(wrong.value).endswith(hint)


@pytest.mark.parametrize("content", [b"shadows 100", b"shadows = 1\nshadows = 2", b"\xff\xfe", b"[sampler"])
def test_what_is_not_toml_is_reported(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a TOML file: "):
        read_plan(path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.toml: no such file; `bmpaudit plan init` writes one"):
        read_plan(tmp_path / "nowhere.toml")
    with pytest.raises(DataError, match="Is a directory"):
        read_plan(tmp_path)


def test_parts_of_ones_own_are_recorded_by_name(tmp_path: Path) -> None:
    table = tomllib.loads(format_plan(OWN, "cora"))
    assert table["sampler"] == {"name": f"{__name__}:Hubs", "share": 0.3, "names": ["x"]}
    assert table["model"] == {"name": f"{__name__}:make_module", "train": f"{__name__}:train_module", "version": "2"}
    assert "training" not in table  # its own function says how; no epochs are claimed
    assert table["views"]["statistic"] == f"{__name__}:statistic"
    assert OWN.title == "Hubs, make_module"
    assert AuditPlan(sampler=every_second, model=TorchModel(make_module), engine="torch").title == (
        "every_second, make_module"
    )
    untrusted = read_plan(written(format_plan(OWN, "cora"), tmp_path)).plan
    assert isinstance(untrusted.sampler, UntrustedPart)


def test_nothing_is_claimed_of_models_trained_elsewhere() -> None:
    plan = AuditPlan(model=TrainedElsewhere())
    assert "training" not in tomllib.loads(format_plan(plan, "cora"))
    assert plan.title == "Uniform 25 %, trained elsewhere"


def test_titles() -> None:
    assert AuditPlan(sampler=Snowball(0.3), model=GAT()).title == "Snowball 30 %, GAT"
    assert AuditPlan(sampler=Hubs()).title == "Hubs, GCN"


def test_variants_are_views_by_rules_and_the_first_is_the_main_one() -> None:
    plan = AuditPlan(queries=("none", "full"), releases="noisy", rules=("weak", "strong"), attack="gaussian")
    found = variants(plan)
    assert [variant.name for variant in found] == [
        "none_noisy_weak",
        "none_noisy_strong",
        "full_noisy_weak",
        "full_noisy_strong",
    ]
    assert found[0].label == "no edges, noisy output, weak decision"
    fused = variants(plan.replace(attack="student"))
    assert [variant.name for variant in fused] == ["none+full_noisy_weak", "none+full_noisy_strong"]


def test_settings_of_stages_come_from_the_plan() -> None:
    plan = EVERYTHING_ELSE
    assert plan.decision_settings == DecisionSettings(2.0, 1.0, "non-member")
    assert plan.epsilon_prior == NormalPrior(1.0, 4.0)
    assert (plan.shadow_plan.seed, plan.shadow_plan.engine) == (5, "torch")
    # The defaults are those of the stages.
    assert AuditPlan().decision_settings == DecisionSettings()
    assert AuditPlan().epsilon_prior == NormalPrior()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shadows": 7}, "shadows must be greater than or equal to 8, got 7"),
        ({"shadows": 8.0}, "shadows must be an integer, got 8.0"),
        ({"num_shadows": 9}, "unknown key num_shadows; allowed here: shadows, "),
        ({"rules": "brave"}, "rule must be one of strong, weak"),
        ({"rules": ()}, "rules must name at least one"),
        ({"definitions": "mdp"}, "definition must be one of bmp, "),
        ({"prior_source": "mine"}, "prior_source must be 'exact' or 'shadow-frequency', got 'mine'"),
        ({"permutations": 0}, "permutations must be greater than or equal to 199, got 0"),
        ({"strength": float("nan")}, "strength must be "),
        ({"seed": -3}, "seed must be greater than or equal to 0, got -3"),
        ({"sampler": 3}, "sampler must have a method sample or be a function, got 3"),
        ({"releases": 3}, "a release must have a method outputs, got 3"),
        ({"queries": 3}, "a query must have a method graph, got 3"),
        ({"attack": 3}, "the attack must have a method score, got 3"),
        ({"rules": 3}, "the rule must have a method decision_score, got 3"),
        ({"definitions": 3}, "the definition must have a method epsilons, got 3"),
        ({"statistic": lambda outputs, labels: label_margin(outputs, labels)}, "may stand for many functions"),
        ({"model": TorchModel(make_module), "engine": "native"}, "needs engine='torch'"),
    ],
)
def test_impossible_plans_cannot_be_made(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as wrong:
        AuditPlan(**settings)
    assert message in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_plans_do_not_change() -> None:
    plan = AuditPlan()
    with pytest.raises(Exception, match="frozen"):
        plan.shadows = 12
    assert plan.replace(shadows=12) == AuditPlan(shadows=12)
    with pytest.raises(InputError, match="shadows must be"):
        plan.replace(shadows=1)
