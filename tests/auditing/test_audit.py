"""The whole line as one function."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audit import leaky_graph, small_plan, stamps

from bmpaudit import Graph, InputError
from bmpaudit.attack import (
    Evidence,
    Gaussian,
    Strong,
    attack_performance,
    challenge,
    node_mia,
    permutation_test,
    split_mia,
    split_models,
)
from bmpaudit.auditing import Audit, audit
from bmpaudit.auditing.headline import HeadlineRow, cautions, odds_in_words, verdict
from bmpaudit.auditing.nodes_table import node_components, node_homophily
from bmpaudit.estimation import estimate, lower_bound, node_leakage
from bmpaudit.plan import AttackSettings, AuditPlan, Runtime
from bmpaudit.samplers import prior_probabilities
from bmpaudit.shadow import QueryView, train_shadows

PLAN = small_plan(definitions=("bmp", "bmp-r", "mp"), views=(QueryView(),))
NODES_COLUMNS = [
    *("node", "name", "class", "degree", "homophily", "component", "prior_prob", "prior_standard_error"),
    *("num_out", "num_in", "false_positives", "false_negatives"),
]


@pytest.fixture(scope="module")
def done() -> Audit:
    return audit(leaky_graph(), PLAN)


def test_parts_are_those_of_the_stages(done: Audit, tmp_path: Path) -> None:
    graph = leaky_graph()
    runs = train_shadows(graph, PLAN.shadow_plan, PLAN.num_shadows, tmp_path)
    prior = prior_probabilities(graph, PLAN.sampler).prob
    np.testing.assert_array_equal(done.runs.memberships, runs.memberships)
    np.testing.assert_array_equal(done.runs.statistics["full_clean"], runs.statistics["full_clean"])
    np.testing.assert_array_equal(done.priors.prob, prior)
    models = Evidence.of_runs(runs, "clean", ["full"])
    for decision in PLAN.decisions:
        name = f"full_clean_{decision}"
        counts = node_mia(models, prior, rule=decision)
        assert_same_counts(done.attacks.counts[name], counts)
        halves = split_models(models)
        split = split_mia(halves.fitting, halves.challenged, prior, rule=decision)
        assert_same_counts(done.attacks.split_counts[name], split)
        assert done.estimates.bounds[name].right.bound == lower_bound(split).right.bound
        definition: Any
        for definition, posterior in done.estimates.posteriors[name].items():
            parameter = posterior.parameter_names[0]
            assert posterior.quantile(0.5, parameter) == estimate(counts, definition).quantile(0.5, parameter)
        scores = challenge(Gaussian(), models, prior, {"strong": Strong()}, with_scores=True).scores
        assert scores is not None
        performance = attack_performance(scores, decision)
        for figure in ("num_out", "num_in", "accuracy", "auc", "tpr_at_fpr"):
            assert getattr(done.attacks.performance[name], figure) == getattr(performance, figure)
    control = permutation_test(Gaussian(), models, prior, num_permutations=3)
    assert done.attacks.null_control.statistic == control.statistic
    np.testing.assert_array_equal(done.attacks.null_control.null_statistics, control.null_statistics)
    leakage = node_leakage(done.attacks.counts["full_clean_strong"], PLAN.level)
    np.testing.assert_array_equal(done.estimates.leakage.right.low, leakage.right.low)
    medians = [float(estimate(counts, "bmp-r").quantile(0.5)) for counts in (control.counts, *control.null_counts)]
    assert [done.estimates.control_median, *done.estimates.null_medians] == medians


def assert_same_counts(found: object, expected: object) -> None:
    for name in ("node", "num_out", "num_in", "false_positives", "false_negatives", "prior_prob"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_only_the_main_variant_has_two_parameters(done: Audit) -> None:
    assert set(done.estimates.posteriors["full_clean_strong"]) == {"bmp", "bmp-r", "mp"}
    assert set(done.estimates.posteriors["full_clean_weak"]) == {"bmp-r", "mp"}


def test_threads_and_folder_change_nothing(done: Audit, tmp_path: Path) -> None:
    again = audit(leaky_graph(), PLAN, folder=tmp_path, runtime=Runtime(num_threads=1))
    assert without_timings(again) == without_timings(done)
    assert (tmp_path / "shadows").is_dir()
    assert not (tmp_path / "summary.json").exists()
    page = again.save(tmp_path, pictures=False)
    assert page == tmp_path / "report.html"
    assert json.loads((tmp_path / "summary.json").read_text()) == again.summary


def without_timings(found: Audit) -> dict[str, object]:
    return {name: part for name, part in found.summary.items() if name != "timings"}


def test_leakage_is_found_where_models_learn_by_heart(done: Audit) -> None:
    assert done.attacks.null_control.is_leakage_found
    assert done.headline[0].name == "ε_R"
    assert done.headline[0].p50 > done.headline[0].floor


def test_nodes_have_all_nodes_and_agree_with_the_leakage(done: Audit) -> None:
    nodes, leakage = done.nodes, done.estimates.leakage
    frame = leakage.to_frame().set_index("node").drop(columns="is_constant")
    assert list(nodes) == [*NODES_COLUMNS, *frame, "flag"]
    np.testing.assert_array_equal(nodes["node"], np.arange(done.graph.num_nodes))
    for name in frame:
        np.testing.assert_array_equal(nodes[name].to_numpy()[frame.index], frame[name])
    np.testing.assert_array_equal(nodes["degree"], done.graph.degrees)
    assert nodes["homophily"].isna().to_numpy().tolist() == (done.graph.degrees == 0).tolist()
    assert nodes["name"].tolist() == list(map(str, range(done.graph.num_nodes)))


def test_homophily_and_components_by_hand() -> None:
    # A triangle of classes 0, 0, 1, a pair of class 1, and a node by itself.
    graph = Graph.from_edges([(3, 4), (0, 1), (1, 2), (0, 2)], np.eye(6, dtype=np.float32), [0, 0, 1, 1, 1, 0])
    np.testing.assert_array_equal(node_homophily(graph), [0.5, 0.5, 0.0, 1.0, 1.0, np.nan])
    np.testing.assert_array_equal(node_components(graph), [0, 0, 0, 1, 1, 2])


def test_nodes_that_cannot_be_audited_are_flagged() -> None:
    # Each node is in few of 8 samples.
    plan = small_plan(num_shadows=8, views=(QueryView(),), decisions=("strong",), definitions=("mp",))
    found = audit(leaky_graph(), plan)
    left = {each.node for each in found.attacks.counts["full_clean_strong"].not_auditable}
    assert left
    is_flagged = found.nodes["flag"].str.startswith("not auditable: ")
    assert set(found.nodes["node"][is_flagged]) == left
    for name in ("num_out", "false_positives", "right_low", "left_high", "excess_right_median"):
        assert found.nodes[name].isna().to_numpy().tolist() == is_flagged.tolist()
    assert f"{len(left):,} nodes could not be audited and are left out" in " ".join(found.summary["cautions"])
    assert found.summary["nodes"]["not_auditable"] == len(left)
    kept = audit(leaky_graph(), replace(plan, attack=replace(plan.attack, unfittable="non-member")))
    assert kept.summary["nodes"]["audited"] == found.graph.num_nodes
    assert "kept as never a member" in " ".join(kept.summary["cautions"])


def test_nothing_to_audit_is_told_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^no node is left to audit; 48 cannot be, such as node 0: .*$"):
        audit(leaky_graph(), small_plan(attack=AttackSettings(min_models=30)))


def test_a_sampler_of_ones_own(tmp_path: Path) -> None:
    plan = small_plan(sampler=one_half, prior_draws=500, views=(QueryView(),), definitions=("bmp-r",))
    found = audit(leaky_graph(), plan)
    assert found.priors.num_draws == 500
    found.save(tmp_path, pictures=False)
    assert "one_half" in (tmp_path / "plan.toml").read_text()
    assert (tmp_path / "graph.npz").exists()


def one_half(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(graph.num_nodes)[: graph.num_nodes // 2]


def test_save_refuses_a_folder_of_somebody_else(done: Audit, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds files that are not an audit's; use a new folder"):
        done.save(tmp_path)
    assert list(stamps(tmp_path)) == ["letter.txt"]


def test_prints_and_shows_in_notebooks() -> None:
    graph = leaky_graph(class_names=["<b>", "y", "z"])
    found = audit(graph, small_plan(views=(QueryView(),), decisions=("weak",)))
    lines = str(found).splitlines()
    assert lines[0] == "graph, Uniform 40 %, MLP"
    assert lines[1] == found.verdict
    assert len(lines) == 2 + len(found.headline)
    shown = found._repr_html_()
    assert shown.count("<tr>") == 1 + len(found.headline)
    assert found.title in shown


# The words


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.0, "1 : 1"),
        (np.log(2.0), "2 : 1"),
        (-np.log(4.0), "1 : 4"),
        (np.log(1234.0), "1,234 : 1"),
        (30.0, "over 1,000,000 : 1"),
        (np.inf, "over 1,000,000 : 1"),
        (-np.inf, "below 1 : 1,000,000"),
    ],
)
def test_odds(epsilon: float, words: str) -> None:
    assert odds_in_words(epsilon) == words


def row(name: str, p50: float, floor: float, proven: float | None) -> HeadlineRow:
    return HeadlineRow(name, "", "", "", p50 - 1, p50, p50 + 1, floor, proven, 0.95, 0.5)


def test_verdict(done: Audit) -> None:
    control = done.attacks.null_control
    assert verdict((row("ε_R", np.log(120.0), -1.0, np.log(8.0)),), control) == (
        "Estimated: seeing this model, an adversary's odds that a node was in the training graph reach about 120 : 1 "
        "(ε_R = 4.8, 90 % interval 3.8 to 5.8); the sampling alone gives 1 : 2.7; the attack proves at least 8 : 1."
    )
    assert "that a node was not in the training graph" in verdict((row("ε_L", 2.0, 1.0, 1.0),), control)
    assert verdict((row("ε_L", 2.0, 1.0, 1.0),), control).endswith("; the attack proves nothing beyond that.")
    assert verdict((row("ε_R", 2.0, 1.0, None),), control).endswith("; nothing was proven, for lack of models.")
    told = verdict((row("MP ε", 40.0, 0.0, 0.0),), control)
    assert "multiplies an adversary's odds that a node was in the training graph by up to about over 1,000,000" in told
    assert told.endswith("; the attack proves nothing.")
    assert verdict((row("MP ε", 3.0, 0.0, np.log(5.0)),), control).endswith("; the attack proves at least 5.")
    nothing = replace(control, statistic=0.0)
    assert verdict((row("ε_R", 2.0, 1.0, None),), nothing).startswith("No leakage found: ")


def test_cautions(done: Audit) -> None:
    attacks = replace(done.attacks, null_control=replace(done.attacks.null_control, statistic=0.0))
    told = cautions(done.plan, attacks, done.estimates)
    assert told[0].startswith("The null control found no leakage: ")
    assert cautions(done.plan, done.attacks, done.estimates) == told[1:]


@pytest.mark.parametrize("definition", ["bmp", "bmp-r", "bmp-l", "bmp-s", "mp"])
def test_every_definition_alone_makes_a_headline(definition: str) -> None:
    plan = AuditPlan(**{**vars(PLAN), "definitions": (definition,), "decisions": ("weak",)})
    found = audit(leaky_graph(), plan)
    assert [row.definition for row in found.headline] == [definition] * (2 if definition == "bmp" else 1)
    assert found.summary["verdict"]
    assert len(found.summary["drivers"]) == len(found.headline)
