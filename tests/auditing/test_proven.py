"""Only what errors prove is called proven, and a floor is exact or a confidence bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_audit import QUIET, leaky_graph, small_plan

from bmpaudit import Audit, Pipeline, Subject, audit
from bmpaudit.samplers import Bernoulli, DegreeWeighted, Snowball, draw_memberships
from bmpaudit.shadow import ShadowRuns


def audit_of_noise(sampler: Any, seed: int, num_models: int = 60, **settings: Any) -> Audit:
    """Statistics that say nothing of memberships."""
    usual: dict[str, Any] = {"queries": "full", "rules": "strong", "permutations": 1, "prior_draws": 2_000}
    plan = small_plan(sampler=sampler, shadows=num_models, seed=seed, **usual | settings)
    graph = leaky_graph()
    memberships = draw_memberships(graph, sampler, num_models, seed)
    statistics = np.random.default_rng(seed).normal(size=memberships.shape).astype(np.float32)
    pipeline = Pipeline(Subject(graph, "", plan), None, QUIET)
    pipeline.__dict__["runs"] = ShadowRuns.from_arrays(memberships, statistics, graph)
    return pipeline.audit


@pytest.mark.parametrize("sampler", [Snowball(0.3, fan_out=3), DegreeWeighted(0.3)], ids=str)
@pytest.mark.parametrize("rule", ["strong", "weak"])
def test_noise_proves_nothing_however_uneven_the_priors(sampler: Any, rule: str) -> None:
    repeats, claims = 20, 0
    for seed in range(repeats):
        result = audit_of_noise(sampler, seed, rules=rule, definitions=("bmp-r", "bmp-l", "mp"))
        has_claim = any(row.proven is not None for row in result.headline)
        claims += has_claim
        if not has_claim:
            assert "is proven" not in result.verdict.replace("nothing beyond that is proven", "").replace(
                "nothing is proven", ""
            )
            assert "nothing proven" in str(result)
    # At a confidence of 95 %, more than 4 of 20 have a probability below 0.3 %.
    assert claims <= 4


def test_what_errors_prove_is_said() -> None:
    result = audit(leaky_graph(), small_plan(queries="full", rules="weak", shadows=300), runtime=QUIET)
    row = result.headline[0]
    assert row.proven is not None
    assert row.proven > row.floor
    assert result.verdict.endswith(" is proven.")
    bound = result.estimates.bounds["full_clean_weak"]
    assert row.proven == bound.right.bound
    # From Algorithm 4's errors, not from those behind the posterior.
    assert bound.counts is result.attacks.split_counts["full_clean_weak"]


def test_a_floor_from_a_formula_is_exact() -> None:
    result = audit(leaky_graph(), small_plan(sampler=Bernoulli(0.4), shadows=10, rules="weak"), runtime=QUIET)
    row = result.headline[0]
    assert (row.floor_is_exact, row.floor_level) == (True, None)
    assert row.floor == pytest.approx(np.log(0.4 / 0.6))
    assert result.estimates.bounds["full_clean_weak"].prior_draws == 0


def test_a_floor_from_draws_is_a_confidence_bound() -> None:
    sampler = Snowball(0.3, fan_out=3)
    result = audit_of_noise(sampler, 0, definitions=("bmp-r", "bmp-l"))
    right, left = result.headline
    priors = result.priors
    assert (priors.num_draws, right.floor_is_exact, right.floor_level) == (2_000, False, 0.95)
    assert (right.floor, left.floor) == (priors.floor.right, priors.floor.left)
    # The largest estimate of many is biased; the bound is below it.
    assert right.floor < priors.floor_estimate.right
    assert left.floor < priors.floor_estimate.left
    # A proof does not take sampled priors for known ones.
    assert result.estimates.bounds["full_clean_strong"].prior_draws == 2_000


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


def test_priors_from_frequencies_are_those_of_as_many_draws() -> None:
    """Where priors are frequencies in the fitting half, the proof knows from how many models."""
    result = audit(leaky_graph(), small_plan(prior_source="shadow-frequency", rules="weak"), runtime=QUIET)
    assert result.estimates.bounds["full_clean_weak"].prior_draws == 20
