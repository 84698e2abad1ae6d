"""Only what guesses prove is called proven, and a floor is exact or a confidence bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_audit import QUIET, leaky_graph, small_plan

from bmpaudit.attack import Evidence
from bmpaudit.auditing.answer import make_result, names
from bmpaudit.auditing.context import Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.stages import Findings, bound_level, proof_attacks
from bmpaudit.pipeline.pipeline import Pipeline, audit
from bmpaudit.proof import Proof, provable, prove
from bmpaudit.samplers import Bernoulli, DegreeWeighted, Snowball, draw_memberships
from bmpaudit.shadow import ShadowRuns


def audit_of_noise(sampler: Any, seed: int, num_models: int = 60, **settings: Any) -> Audit:
    """Statistics that say nothing of memberships."""
    usual: dict[str, Any] = {"queries": "full", "rules": "strong", "prior_draws": 2_000}
    plan = small_plan(sampler=sampler, shadows=num_models, seed=seed, **usual | settings)
    graph = leaky_graph()
    memberships = draw_memberships(graph, sampler, num_models, seed)
    statistics = np.random.default_rng(seed).normal(size=memberships.shape).astype(np.float32)
    pipeline = Pipeline(Subject(graph, "", plan), None, QUIET)
    runs = ShadowRuns.from_arrays(memberships, statistics, graph)
    pipeline.__dict__["runs"] = replace(runs, are_independent=True)  # samples that die in a component repeat
    return pipeline.audit


@pytest.mark.parametrize("sampler", [Snowball(0.3, fan_out=3), DegreeWeighted(0.3)], ids=str)
def test_noise_leaks_nothing_however_uneven_the_priors(sampler: Any) -> None:
    repeats, num_found, num_proven = 20, 0, 0
    for seed in range(repeats):
        result = audit_of_noise(sampler, seed, definitions=("bmp-r", "bmp-l", "mp"))
        num_found += result.is_leakage_found
        proof = result.main_findings.proof
        assert proof is not None
        num_proven += proof.is_leakage_proven
        if not result.is_leakage_found:
            answer = result.answer
            assert answer.verdict.startswith("No leakage found by the attack ")
            assert answer.proven.startswith("Nothing beyond what the sampling alone gives away")
            assert (answer.estimated, answer.warnings) == ("", [])
            assert "=" not in str(result)  # no estimate, large or small
    # The permutation test is wrong in 1 of 100, the proof in 1 of 200: more have a probability below 0.3 %.
    assert num_found <= 3
    assert num_proven <= 2


def test_what_guesses_prove_is_said() -> None:
    result = audit(leaky_graph(), small_plan(queries="full", rules="weak", shadows=300), runtime=QUIET)
    proof, row = result.main_findings.proof, result.headline[0]
    assert proof is not None
    assert proof.is_leakage_proven
    assert row.proven == proof.epsilon_right.proven
    assert row.proven is not None
    assert row.proven > row.floor
    assert result.answer.level in ("leak", "strong")
    certificate = result.result.main.certified and result.result.main.certified.leading()
    assert certificate
    assert result.verdict == (
        f"From one released model an adversary can name at least {names(certificate.names)} nodes as training nodes, "
        f"and at least {100 * certificate.certainty:g} % of the names are right (95 % confidence; there are 19)."
    )
    assert f"(ε_R ≥ {row.proven:.2f}; " in result.answer.proven
    # It is what the library proves with the same models.
    again = prove(
        proof_attacks(result.plan, "clean"),
        Evidence.of_runs(result.runs, "clean", ["full"], result.graph),
        result.priors.prob,
        level=bound_level(result.plan, "clean", "scores"),
        num_threads=1,
    )
    figures = [(each.proven, each.num_hits, each.num_guesses, each.choice.source) for each in proof.bounds]
    assert figures == [(each.proven, each.num_hits, each.num_guesses, each.choice.source) for each in again.bounds]


def test_too_few_models_prove_nothing_and_the_audit_says_why() -> None:
    result = audit(leaky_graph(), small_plan(shadows=60, proof_method="prequential"), runtime=QUIET)
    findings = result.main_findings
    assert findings.proof is None
    assert findings.not_proven == "the prequential method needs more than 64 models, got 60"
    assert result.answer.proven == f"Nothing: {findings.not_proven}."
    assert result.summary["releases"]["clean"]["proof"] is None
    assert [row.proven for row in result.headline] == [None] * len(result.headline)


def test_a_floor_from_a_formula_is_exact() -> None:
    result = audit(leaky_graph(), small_plan(sampler=Bernoulli(0.4), shadows=10, rules="weak"), runtime=QUIET)
    row = result.headline[0]
    assert (row.floor_is_exact, row.floor_level) == (True, None)
    assert row.floor == pytest.approx(np.log(0.4 / 0.6))


def test_a_floor_from_draws_is_a_confidence_bound() -> None:
    sampler = Snowball(0.3, fan_out=3)
    result = audit_of_noise(sampler, 0, definitions=("bmp-r", "bmp-l"))
    right, left = result.headline
    priors = result.priors
    assert (priors.num_draws, right.floor_is_exact, right.floor_level) == (2_000, False, 0.95)
    assert result.result.priors.num_draws == 2_000
    assert (right.floor, left.floor) == (priors.floor.right, priors.floor.left)
    # The largest estimate of many is biased; the bound is below it.
    assert right.floor < priors.floor_estimate.right
    assert left.floor < priors.floor_estimate.left
    # A proof does not take sampled priors for known ones.
    proof = result.main_findings.proof
    assert proof is not None
    assert proof.epsilon_right.floor < priors.floor_estimate.right


def test_a_floor_from_draws_is_below_the_truth() -> None:
    """As often as its level says: the truth is what 200 times as many draws give."""
    sampler, graph = Snowball(0.3, fan_out=3), leaky_graph()
    from bmpaudit.samplers import prior_probabilities

    truth = prior_probabilities(graph, sampler, num_draws=400_000, seed=99).floor_estimate
    misses = sum(
        audit_of_noise(sampler, seed, definitions=("bmp-l",)).headline[0].floor > truth.left + 0.02
        for seed in range(10)
    )
    assert misses <= 2


# Awkward releases and samplers


def audit_of_statistics(statistics: dict[str, np.ndarray], memberships: np.ndarray, **settings: Any) -> Audit:
    usual: dict[str, Any] = {"shadows": len(memberships), "queries": tuple(statistics), "rules": "strong"}
    graph = leaky_graph()
    pipeline = Pipeline(Subject(graph, "", small_plan(**usual | settings)), None, QUIET)
    views = {f"{query}_clean": values.astype(np.float32) for query, values in statistics.items()}
    pipeline.__dict__["runs"] = ShadowRuns.from_arrays(memberships, views, graph.labels)
    return pipeline.audit


@pytest.mark.parametrize("attack", ["student", "gaussian", "rmia", "base"])
@pytest.mark.parametrize("by_node", [False, True], ids=["all the same", "constant for each node"])
def test_a_release_that_gives_nothing_away_leaks_nothing(attack: str, by_node: bool) -> None:
    memberships = draw_memberships(leaky_graph(), Bernoulli(0.4), 40, seed=1)
    constant = np.arange(memberships.shape[1]) if by_node else 0.0
    statistics = np.broadcast_to(constant, memberships.shape)
    result = audit_of_statistics({"full": statistics}, memberships, attack=attack, sampler=Bernoulli(0.4))
    assert not result.is_leakage_found
    assert result.verdict.startswith("No leakage found by the attack ")
    curve = result.main_findings.exposure.exposure.members
    most = curve.correct.high[curve.at(0.99)]
    assert most <= 0.5
    assert result.answer.exposure == (
        f"At most {most:.3g} training nodes per released model can be named with 99 % certainty, by this attack."
    )
    assert result.answer.proven.startswith("Nothing")


def test_an_attack_that_says_nothing_does_not_keep_others_from_proving() -> None:
    """The answers with all edges are constant, those with none give everything away."""
    rng = np.random.default_rng(0)
    memberships = draw_memberships(leaky_graph(), Bernoulli(0.4), 120, seed=1)
    leaking = 8 * memberships + rng.normal(size=memberships.shape)
    for attack in ("student", "gaussian"):
        result = audit_of_statistics(
            {"full": np.zeros(memberships.shape), "none": leaking}, memberships, attack=attack, sampler=Bernoulli(0.4)
        )
        assert result.attacks.permutation_test.is_leakage_found  # by the query that tells most
        proof = result.main_findings.proof
        assert proof is not None
        assert proof.is_leakage_proven
        right = proof.epsilon_right
        assert right.proven == pytest.approx(provable(right.num_challenged, right.level))
        if attack == "gaussian":
            assert result.result.main.queries == ["none"]


def test_what_the_sampling_names_is_not_put_down_to_the_model() -> None:
    """Ten nodes are nearly always in; the model says nothing."""
    graph, rng = leaky_graph(), np.random.default_rng(0)
    prob = np.where(np.arange(graph.num_nodes) < 10, 0.9995, 0.2)

    def hubs(_: Any, rng: np.random.Generator) -> np.ndarray:
        return np.flatnonzero(rng.random(len(prob)) < prob)

    memberships = rng.random((150, graph.num_nodes)) < prob
    noise = rng.normal(size=memberships.shape)
    result = audit_of_statistics({"full": noise}, memberships, attack="student", sampler=hubs, prior_draws=20_000)
    curve = result.main_findings.exposure.exposure.members
    k = curve.at(0.99)
    assert curve.by_prior[k] == pytest.approx(10, abs=0.1)
    assert curve.correct.high[k] <= curve.total
    assert f" (the sampling alone tells {curve.by_prior[k]:.3g})" in result.answer.exposure


def test_proven_and_verdict_agree_at_any_level() -> None:
    for level in (0.5, 0.95, 0.999):
        for seed in range(4):
            result = audit_of_noise(Bernoulli(0.4), seed, proof_level=level, attack="gaussian")
            proof = result.main_findings.proof
            assert proof is not None
            is_said = result.answer.level in ("leak", "strong")
            assert is_said == (proof.is_leakage_proven or result.attacks.permutation_test.num_leaking > 0)
            assert is_said != result.verdict.startswith(("No leakage", "The answers of models depend"))
            assert proof.is_leakage_proven != result.answer.proven.startswith("Nothing")
            assert "100 %" not in result.answer.proven


def test_nothing_proven_is_not_even_odds() -> None:
    """Below even odds of the sampling, a bound that is not there must not pass for one of 0."""
    result = audit_of_noise(Bernoulli(0.25), 0, attack="gaussian")
    findings = result.main_findings
    proof = findings.proof
    assert proof is not None
    assert proof.epsilon_right.floor_high < -1
    right, left, mp = (replace(each, proven=None) for each in proof.bounds)
    changed = replace(findings, proof=Proof(right, left, mp, is_leakage_proven=False))
    result.findings = Findings({**result.findings.ladders, "clean": {"labels": changed, "scores": changed}})
    answer = make_result(result).answer
    assert answer.proven == "Nothing beyond what the sampling alone gives away with 99 % confidence."
