"""No gate passes a recipe that exceeds it for want of shadow models, and one passes where there is evidence."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_audit import audit_of, shifted, simulated_audit

from bmpaudit import datasets
from bmpaudit.gate import check
from bmpaudit.graph import Graph
from bmpaudit.plan import Gate
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowRuns

# How many nodes of 300 leak, by how many standard deviations, and what the recipe exceeds: ε is infinite in each.
RECIPES = {
    "one": (1, 10.0, Gate(max_exposure=("0.2@0.99", "0.2@0.9"), max_node_exposure=0.5)),
    "ten": (10, 10.0, Gate(max_exposure=("2@0.99", "2@0.9"), max_node_exposure=0.5)),
    "all": (300, 3.0, Gate(max_exposure=("20@0.99", "40@0.9"), max_node_exposure=0.25)),
}
EPSILONS = (0.0, 1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize("num_models", [28, 64, 128, 300, 1_000])
@pytest.mark.parametrize("recipe", RECIPES)
def test_no_recipe_that_exceeds_a_gate_passes_it(recipe: str, num_models: int) -> None:
    num_leaking, shift, gate = RECIPES[recipe]
    audit = simulated_audit(num_models, shifted(300, num_leaking, shift), seed=num_models + num_leaking)
    found = list(check(audit, gate, max_leaking_nodes=0, max_estimated_right=2.0).thresholds)
    for epsilon in EPSILONS:
        proven = Gate(max_proven_right=epsilon, max_proven_left=epsilon, max_proven_mp=epsilon)
        found += check(audit, proven).thresholds
    assert [each for each in found if each.outcome == "passed"] == []
    if num_models == 1_000:  # with enough models it is shown
        assert {each.name for each in found if each.outcome == "exceeded"} == {each.name for each in found}


@pytest.mark.parametrize("num_models", [64, 300])
def test_one_node_of_the_demo_that_every_model_gives_away_is_not_passed(num_models: int) -> None:
    graph = datasets.load("demo")
    shifts = np.where(np.arange(graph.num_nodes) == 0, 10.0, 0.0)
    audit = simulated_audit(num_models, shifts, seed=5, graph=graph)
    result = check(audit, max_exposure="0.2@0.99", max_proven_right=4)
    assert [each.outcome for each in result.thresholds] == ["undecided", "undecided"]
    assert result.exit_code == 3
    proven = result.thresholds[0]
    assert proven.models_needed is not None
    assert proven.models_needed > 1_000
    assert check(audit, max_leaking_nodes=0).exit_code == 1  # the test of every node finds it


def test_a_leak_that_ranks_do_not_show_is_a_leak_if_it_is_proven() -> None:
    """Members answer with a hundred times the spread, and rank in the middle on average."""
    graph = Graph.from_table(np.eye(300, 2, dtype=np.float32), np.arange(300) % 2)
    sampler = Uniform(0.25)
    memberships = draw_memberships(graph, sampler, 500, seed=1)
    answers = np.random.default_rng(1).normal(size=memberships.shape)
    answers[:, 0] *= np.where(memberships[:, 0], 100, 1)
    runs = ShadowRuns.from_arrays(memberships, {"full_clean": answers.astype(np.float32)}, graph)
    audit = audit_of(runs, graph, sampler, seed=1)
    result = check(audit, max_leaking_nodes=0).thresholds[0]
    assert (result.outcome, result.low) == ("exceeded", 1)
    assert "so some node leaks" in result.reason
    assert check(audit, max_leaking_nodes=1).outcome == "passed"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_gate_passes_what_leaks_nothing(seed: int) -> None:
    audit = simulated_audit(1_000, shifted(300, 0, 0.0), seed)
    gate = Gate(
        max_proven_right=3.0,
        max_proven_left=4.0,
        max_proven_mp=3.0,
        max_exposure=("0.2@0.99", "0.5@0.9"),
        max_exposure_non_members="0.5@0.99",
        max_node_exposure=0.1,
        max_leaking_nodes=0,
        max_estimated_right=3.0,
    )
    result = check(audit, gate)
    assert {each.label: each.outcome for each in result.thresholds if each.outcome != "passed"} == {}
    # The same evidence does not pass what a single node could hide.
    assert check(audit, max_proven_right=4).outcome == "undecided"
    assert check(audit, max_exposure="0.2@0.999").outcome == "undecided"
    assert check(audit, max_node_exposure=0.01).outcome == "undecided"
