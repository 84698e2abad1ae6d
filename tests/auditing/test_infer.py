"""From one released model to who was in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from payload_module import MODULE, PARTS, Payload
from scipy.special import expit, logit
from slow_strata import SlowStrata
from small_audit import QUIET, contents, leaky_graph, pipeline, run_audit, small_plan, tiny_plan

from bmpaudit.attack import Evidence, Gaussian, Strong, Student, challenge
from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit
from bmpaudit.inference.infer import infer, render_inference_page
from bmpaudit.models import GCN, MLP, Training
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import NoEdges, OutputRelease
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.util.errors import InputError, UntrustedCodeError
from bmpaudit.util.values import to_json

PLAN = small_plan(model=GCN(hidden=8, dropout=0.0), shadows=120, attack="student", seed=3)
TRAINING = Training(epochs=15, learning_rate=0.1)


def train_only(path: Path, plan: AuditPlan) -> Path:
    steps = pipeline(path, plan, may_run=("train",))
    with steps.prepared():
        assert isinstance(steps.runs, ShadowRuns)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_only(tmp_path_factory.mktemp("infer") / "audit", PLAN)


def release(number: int, model: Any = PLAN.model, training: Training = TRAINING) -> tuple[dict[str, Any], np.ndarray]:
    """Outputs by query of a model that was trained as the plan says, and who was in."""
    graph = leaky_graph()
    members = draw_memberships(graph, Uniform(0.4), 1, 99, first=number)[0]
    kernel = make_kernel(graph, model, training)
    flat = kernel.trained_parameters(kernel.initial_parameters(99, number), members.view(np.uint8))
    alone = NoEdges().graph(graph)
    outputs = {
        "full": kernel.logits(flat, graph.indptr, graph.indices),
        "none": kernel.logits(flat, alone.indptr, alone.indices),
    }
    return outputs, members


def test_what_is_named_is_as_right_as_it_says(folder: Path) -> None:
    """Over twenty models: the named are members with their stated probability, within sampling error."""
    expected, right, spread = np.zeros(2), np.zeros(2), np.zeros(2)
    aucs = []
    for number in range(20):
        outputs, members = release(number)
        result = infer(folder, outputs, truth=members, runtime=Runtime(num_threads=1))
        assert result.score is not None
        aucs.append(result.score.auc)
        for side, chosen in enumerate((result.table["named_95"] == "member", result.table["named_95"] == "non-member")):
            prob = result.table.loc[chosen, "posterior_prob"].to_numpy()
            prob = prob if side == 0 else 1 - prob
            expected[side] += prob.sum()
            spread[side] += (prob * (1 - prob)).sum()
            right[side] += (result.table.loc[chosen, "member"].to_numpy() == (side == 0)).sum()
    assert np.mean(aucs) > 0.9
    assert (expected > 20).all()
    assert (np.abs(right - expected) < 4 * np.sqrt(spread)).all()


@pytest.mark.parametrize("queries", [("full", "none"), ("none",), ("full",)])
def test_log_odds_are_those_of_a_fit_on_all_shadow_models(folder: Path, queries: tuple[str, ...]) -> None:
    """Step by step from the public parts, on the queries that are answered."""
    outputs, members = release(0)
    result = infer(folder, {query: outputs[query] for query in queries}, runtime=Runtime(num_threads=1))
    assert result.queries == queries
    assert result.source == f"student, {' and '.join(queries)}"
    graph, prior = leaky_graph(), np.full(48, 19 / 48)  # a fixed number of nodes
    runs = pipeline(folder, PLAN, may_run=("train",)).runs
    shadows = Evidence.of_runs(runs, "clean", queries, graph)
    rules = {"strong": Strong()}
    left_out = challenge(Student(), shadows, prior, rules, with_scores=True).scores
    assert left_out is not None
    slow = SlowStrata(left_out.of("strong").astype(np.float32), left_out.memberships, prior)
    from bmpaudit.releases import label_margin

    statistics = {query: label_margin(outputs[query], graph.labels)[None] for query in queries}
    one = Evidence(statistics, members[None], np.array([10_000]), graph)
    scores = challenge(Student(), one, prior, rules, fitting=shadows, with_scores=True).scores
    assert scores is not None
    found = result.table.sort_values("node")
    assert found["score"].to_numpy() == pytest.approx(scores.of("strong")[0])
    assert found["log_odds"].to_numpy() == pytest.approx(slow.calibrated(scores.of("strong")[0]))
    assert found["beyond"].tolist() == slow.beyond(scores.of("strong")[0])
    assert found["posterior_prob"].to_numpy() == pytest.approx(expit(found["log_odds"].to_numpy()))


def test_weights_outputs_and_an_audit_give_the_same_answer(tmp_path: Path) -> None:
    plan = small_plan(attack="student", shadows=60)
    audit = run_audit(tmp_path / "audit", plan)
    before = contents(tmp_path / "audit")
    graph = leaky_graph()
    kernel = make_kernel(graph, MLP(hidden=8, dropout=0.0), TRAINING)
    members = draw_memberships(graph, Uniform(0.4), 1, 99)[0]
    flat = kernel.trained_parameters(kernel.initial_parameters(99, 0), members.view(np.uint8))
    logits = kernel.logits(flat, graph.indptr, graph.indices)
    sizes = np.cumsum([8 * 48, 8, 3 * 8])
    first, first_bias, second, second_bias = np.split(flat, sizes)
    weights = {"0.weight": first.reshape(8, 48), "0.bias": first_bias}
    weights |= {"2.weight": second.reshape(3, 8), "2.bias": second_bias}
    answers = [
        infer(tmp_path / "audit", weights),
        infer(tmp_path / "audit", {"full": logits, "none": logits}),
        infer(audit, weights),
        infer(Audit.load(tmp_path / "audit"), weights, release="clean"),
    ]
    assert [each.came_as for each in answers] == ["weights", "outputs", "weights", "weights"]
    for other in answers[1:]:
        assert other.table.equals(answers[0].table)
        assert other.verdict == answers[0].verdict
    assert contents(tmp_path / "audit") == before


def test_a_declared_prior_shifts_the_log_odds(folder: Path) -> None:
    outputs, _ = release(1)
    usual = infer(folder, outputs).table.sort_values("node")
    priors = np.linspace(0.05, 0.9, 48)
    result = infer(folder, outputs, prior=priors)
    shifted = result.table.sort_values("node")
    shift = logit(priors) - logit(19 / 48)
    assert shifted["log_odds"].to_numpy() - usual["log_odds"].to_numpy() == pytest.approx(shift)
    assert shifted["prior_prob"].to_numpy() == pytest.approx(priors)
    assert result.has_declared_prior
    same = infer(folder, outputs, prior=19 / 48).table.sort_values("node")
    assert same["log_odds"].to_numpy() == pytest.approx(usual["log_odds"].to_numpy())


def test_certain_priors_need_no_attack(folder: Path) -> None:
    outputs, members = release(1)
    priors = np.full(48, 0.4)
    priors[[3, 5]] = 0.0, 1.0
    result = infer(folder, outputs, prior=priors, truth=members)
    table = result.table.set_index("node")
    assert table.loc[3, "posterior_prob"] == 0.0
    assert table.loc[5, "posterior_prob"] == 1.0
    assert table.loc[[3, 5], "flag"].tolist() == ["its declared prior is 0", "its declared prior is 1"]
    assert result.at(0.99).members_by_prior == 1
    assert "the prior alone names 1" in result.verdict
    json.loads(to_json(result.to_plain()))
    str(result), render_inference_page(result, 5)


def test_an_attack_of_one_query_takes_the_one_that_tells_more(tmp_path: Path) -> None:
    """With all edges a node's answer is mixed with its neighbours'; without them it is its own."""
    plan = PLAN.replace(attack=Gaussian(), shadows=80)
    result = infer(train_only(tmp_path / "audit", plan), release(0)[0])
    assert result.source == "gaussian, none"
    assert result.queries == ("full", "none")


def test_nodes_that_cannot_be_attacked_keep_their_prior(tmp_path: Path) -> None:
    plan = PLAN.replace(attack=Gaussian(min_models=32), shadows=80, queries=("none",))
    result = infer(train_only(tmp_path / "audit", plan), {"none": release(0)[0]["none"]}, truth=release(0)[1])
    left = result.table[result.table["flag"] != ""]
    assert 0 < len(left) < 48
    # Of nodes in exactly 32 samples, fits without one of them are impossible, and odds cannot be calibrated.
    num_in = pipeline(tmp_path / "audit", plan, may_run=("train",)).runs.memberships[:, left["node"]].sum(axis=0)
    reasons = np.where(num_in < 32, "at least 32 are needed", "too few shadow models hold it")
    assert all(reason in flag for reason, flag in zip(reasons, left["flag"], strict=True))
    assert set(reasons) == {"at least 32 are needed", "too few shadow models hold it"}
    assert left["posterior_prob"].to_numpy() == pytest.approx(19 / 48)


def test_a_model_trained_otherwise_is_told_first(folder: Path) -> None:
    outputs, members = release(0, training=Training(epochs=60, learning_rate=0.1))
    result = infer(folder, outputs, truth=members)
    assert not result.check.is_like_shadows
    assert str(result).startswith("! This model was not trained as the plan says: ")
    assert result.to_plain()["check"]["is_like_shadows"] is False
    assert result.warnings[0] in render_inference_page(result, 3)


def test_models_that_were_trained_as_the_plan_says_pass(folder: Path) -> None:
    results = [infer(folder, outputs, truth=members) for outputs, members in map(release, range(20, 35))]
    assert sum(not each.check.is_like_shadows for each in results) <= 2
    assert sum(not each.score.standing.is_like_shadows for each in results if each.score) <= 2


def test_wrong_memberships_do_not_fit_the_shadow_models(folder: Path) -> None:
    outputs, members = release(0)
    result = infer(folder, outputs, truth=~members)
    assert result.score is not None
    assert result.score.auc < 0.2
    assert any("does not give away what the shadow models do" in warning for warning in result.warnings)


class Silent(OutputRelease):
    """Says the same of every node."""

    def outputs(self, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        return np.zeros_like(logits)


@pytest.mark.parametrize("attack", ["gaussian", "student", "rmia", "base"])
def test_a_model_that_says_nothing_names_nobody(attack: str, tmp_path: Path) -> None:
    plan = PLAN.replace(attack=attack, shadows=40, releases=(Silent(),))
    train_only(tmp_path / "audit", plan)
    _, members = release(0)
    outputs = {query: np.zeros((48, 3), dtype=np.float32) for query in ("full", "none")}
    result = infer(tmp_path / "audit", outputs, truth=members, trust_code=True)
    assert result.verdict == (
        "With 40 shadow models it cannot be decided with 95 % certainty whether any node was in its training sample. "
        "The most likely member is node 0, at 39.6 %."
    )
    assert result.table["posterior_prob"].to_numpy() == pytest.approx(19 / 48, abs=0.001)
    assert result.score is not None
    assert result.score.auc == 0.5
    assert result.check.is_like_shadows
    assert result.score.standing.is_like_shadows
    assert result.warnings == ()
    assert result.beyond("non-member") == result.beyond("member") == []
    assert [each.members_undecidable for each in result.named] == [48, 48]
    json.loads(to_json(result.to_plain()))
    str(result), render_inference_page(result, 5)


def test_few_models_are_told(tmp_path: Path) -> None:
    result = infer(train_only(tmp_path / "audit", PLAN.replace(shadows=10)), release(0)[0])
    assert any("10 shadow models are too few to tell whether" in warning for warning in result.warnings)
    assert result.check.is_like_shadows


def test_words_json_and_page(folder: Path) -> None:
    outputs, members = release(0)
    result = infer(folder, outputs, truth=members)
    named = result.at(0.95)
    assert named.members == (result.table["named_95"] == "member").sum()
    assert named.members_right == ((result.table["named_95"] == "member") & result.table["member"]).sum()
    assert result.verdict.startswith("From this model an adversary can name ")
    values = json.loads(to_json(result.to_plain()))
    assert len(values["nodes"]) == 48
    assert values["nodes"][0]["log_odds"] == result.table["log_odds"].max()
    assert set(values["score"]) == {"num_members", "auc", "tpr_at_1_percent", "standing"}
    assert len(result.to_plain(top=3)["nodes"]) == 3
    with pytest.raises(InputError, match=r"certainty must be one of 0\.95, 0\.99, got 0\.9"):
        result.at(0.9)
    assert "<table>" in result._repr_html_()

    evil = [f"<script>alert({number})</script>" for number in range(48)]
    graph = leaky_graph(node_names=evil)
    runs = pipeline(folder, PLAN, may_run=("train",)).runs
    from bmpaudit.auditing.context import Subject
    from bmpaudit.pipeline.pipeline import Pipeline

    steps = Pipeline(Subject(graph, "", PLAN.replace(definitions="mp")), None, QUIET)
    steps.__dict__["runs"] = runs
    named_evil = infer(steps.audit, outputs)
    for page in (render_inference_page(named_evil, 48), named_evil._repr_html_()):
        assert "&lt;script&gt;alert(" in page
        assert "<script" not in page
    assert "http" not in render_inference_page(named_evil, 48).replace("http-equiv", "")


def test_an_unknown_release_and_models_of_another_graph(folder: Path) -> None:
    outputs, members = release(0)
    with pytest.raises(InputError, match="release must be one of clean, got 'noisy'"):
        infer(folder, outputs, release="noisy")
    with pytest.raises(InputError, match=r"full: outputs are of 47 nodes, and the graph has 48: of another graph\?"):
        infer(folder, {"full": outputs["full"][:-1]})
    with pytest.raises(InputError, match="truth: must have a flag for each of 48 nodes, got 47"):
        infer(folder, outputs, truth=members[:-1])


@pytest.mark.parametrize("field", ["attack", "statistic", "releases", "sampler", "rules"])
def test_code_of_a_folder_is_run_only_if_it_is_trusted(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = Payload(tmp_path / "modules", monkeypatch)
    plan = tiny_plan(**{field: f"{MODULE}:{PARTS[field]}"}, prior_draws=200, shadows=20)
    train_only(tmp_path / "theirs", plan)
    payload.forget()
    outputs = {"full": release(0)[0]["full"]}
    if field == "rules":  # are not used
        infer(tmp_path / "theirs", outputs)
        assert not payload.was_run()
    else:
        with pytest.raises(UntrustedCodeError, match=f"the module '{MODULE}'"):
            infer(tmp_path / "theirs", outputs)
        assert not payload.was_run()
        infer(tmp_path / "theirs", outputs, trust_code=True)
        assert payload.was_run()
    payload.forget()


@pytest.mark.parametrize("field", ["queries", "model"])
def test_outputs_are_enough_where_the_code_is_not_trusted(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = Payload(tmp_path / "modules", monkeypatch)
    train_only(tmp_path / "theirs", tiny_plan(**{field: f"{MODULE}:{PARTS[field]}"}, shadows=20))
    payload.forget()
    query = "ownquery" if field == "queries" else "full"
    assert infer(tmp_path / "theirs", {query: release(0)[0]["full"]}).queries == (query,)
    shapes = {"0.weight": (8, 48), "0.bias": (8,), "1.weight": (3, 8), "1.bias": (3,)}
    weights = {name: np.zeros(shape) for name, shape in shapes.items()}
    with pytest.raises(UntrustedCodeError, match=f"the module '{MODULE}'"):
        infer(tmp_path / "theirs", weights)
    assert not payload.was_run()
    payload.forget()
