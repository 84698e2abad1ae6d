"""The whole pipeline as one function, and what it returns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_audit import QUIET, leaky_graph, small_plan, summary_of, times, without_timings

import bmpaudit
from bmpaudit.attack import (
    ErrorCounts,
    Evidence,
    Gaussian,
    RightOrWrong,
    Strong,
    Student,
    attack_performance,
    challenge,
    node_mia,
    permutation_test,
)
from bmpaudit.auditing.answer import _row_warnings
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.nodes import node_components, node_homophily
from bmpaudit.auditing.result import LEVELS
from bmpaudit.auditing.stages import num_named
from bmpaudit.estimation import estimate, node_leakage
from bmpaudit.graph.graph import Graph
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.proof import expose
from bmpaudit.samplers import Uniform, prior_probabilities
from bmpaudit.shadow import train_shadows
from bmpaudit.util.errors import InputError

PLAN = small_plan(definitions=("bmp", "bmp-r", "mp"), queries=("full",))
NODES_COLUMNS = [
    *("node", "name", "class", "degree", "homophily", "component", "prior_prob", "prior_standard_error"),
    *(
        f"{side}_{what}"
        for side in ("member", "non_member")
        for what in ("models", "named", "wrong", "exposure", "exposure_low", "exposure_high")
    ),
    *("p_value", "is_leaking", "member_certain", "non_member_certain", "certain_wrong", "telling_feature"),
    *("num_out", "num_in", "false_positives", "false_negatives"),
]


@pytest.fixture(scope="module")
def done() -> Audit:
    return audit(leaky_graph(), PLAN, runtime=QUIET)


def test_parts_are_those_of_the_stages(done: Audit, tmp_path: Path) -> None:
    graph = leaky_graph()
    runs = train_shadows(graph, PLAN.shadow_plan, PLAN.shadows, tmp_path)
    prior = prior_probabilities(graph, PLAN.sampler).prob
    np.testing.assert_array_equal(done.runs.memberships, runs.memberships)
    np.testing.assert_array_equal(done.runs.statistics["full_clean"], runs.statistics["full_clean"])
    np.testing.assert_array_equal(done.priors.prob, prior)
    models = Evidence.of_runs(runs, "clean", ["full"])
    for rule_name, rule in PLAN.rules_by_name.items():
        name = f"full_clean_{rule_name}"
        counts = node_mia(models, prior, rule=rule)
        assert_same_counts(done.attacks.counts[name], counts)
        definition: Any
        for definition, posterior in done.estimates.posteriors[name].items():
            parameter = posterior.parameter_names[0]
            assert posterior.quantile(0.5, parameter) == estimate(counts, definition).quantile(0.5, parameter)
        scores = challenge(Gaussian(), models, prior, {"strong": Strong()}, with_scores=True).scores
        assert scores is not None
        performance = attack_performance(scores, rule)
        for figure in ("num_out", "num_in", "accuracy", "auc", "tpr_at_fpr"):
            assert getattr(done.attacks.performance[name], figure) == getattr(performance, figure)
    test, tested = done.attacks.permutation_test, permutation_test(models, num_shuffles=PLAN.permutations)
    assert (test.p_value, test.num_leaking) == (tested.p_value, tested.num_leaking)
    for figure in ("largest", "z", "node_p_value", "is_leaking"):
        np.testing.assert_array_equal(getattr(test, figure), getattr(tested, figure))
    np.testing.assert_array_equal(done.nodes["p_value"], test.node_p_value)
    leakage = node_leakage(done.attacks.counts["full_clean_strong"], PLAN.level)
    np.testing.assert_array_equal(done.estimates.leakage.right.low, leakage.right.low)
    half = node_mia(models.take(slice(PLAN.shadows // 2)), prior)
    assert done.attacks.half_counts is not None
    assert_same_counts(done.attacks.half_counts, half)
    median = estimate(half, "bmp-r").quantile(0.5)
    assert done.estimates.half_medians["bmp-r", "epsilon_right"] == done.headline[0].half_median == median
    evidence = Evidence.of_runs(runs, "clean", ["full"], graph)
    exposed = max((expose(attack, evidence, prior, num_threads=1) for attack in (Gaussian(), Student())), key=num_named)
    of_labels = Evidence.of_runs(runs, "clean", ["full"], graph, "labels")
    exposed = exposed.joined(expose(RightOrWrong(), of_labels, prior, num_threads=1))
    assert str(done.main_findings.exposure) == str(exposed)
    np.testing.assert_array_equal(
        done.nodes["member_exposure"].to_numpy()[exposed.exposure.member_nodes.node],
        exposed.exposure.member_nodes.share,
    )


def test_the_strongest_query_is_the_main_one_of_its_release() -> None:
    """With an attack that takes one query at a time."""
    result = audit(leaky_graph(), small_plan(model="gcn", releases=("clean", "noisy")), runtime=QUIET)
    for release in ("clean", "noisy"):
        auc = {query: result.attacks.performance[f"{query}_{release}_strong"].auc for query in ("full", "none")}
        (query,) = result.result.releases[release].queries
        assert auc[query] == max(auc.values())
        assert result.summary["releases"][release]["auc"] == auc[query]
    assert result.attacks.main == f"{result.result.main.queries[0]}_clean_strong"
    assert result.headline[0].p50 == result.estimates.posteriors[result.attacks.main]["bmp-r"].quantile(0.5)


def assert_same_counts(found: object, expected: object) -> None:
    for name in ("node", "num_out", "num_in", "false_positives", "false_negatives", "prior_prob"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_only_the_main_variant_has_two_parameters(done: Audit) -> None:
    assert set(done.estimates.posteriors["full_clean_strong"]) == {"bmp", "bmp-r", "mp"}
    assert set(done.estimates.posteriors["full_clean_weak"]) == {"bmp-r", "mp"}


def test_threads_and_folder_change_nothing(done: Audit, tmp_path: Path) -> None:
    again = audit(leaky_graph(), PLAN, folder=tmp_path, pictures="none", runtime=bmpaudit.Runtime(num_threads=2))
    assert without_timings(again.summary) == without_timings(done.summary)
    assert summary_of(tmp_path) == again.summary
    assert (tmp_path / "report.html").exists()


def test_settings_override_the_plan(tmp_path: Path) -> None:
    one = audit(leaky_graph(), PLAN, shadows=12, definitions="mp", folder=tmp_path, pictures="none", runtime=QUIET)
    assert (one.plan.shadows, list(one.plan.definitions_by_name), one.plan.sampler) == (12, ["mp"], PLAN.sampler)
    with pytest.raises(InputError, match=r"^unknown key shadow; allowed here: shadows, seed, "):
        audit(leaky_graph(), PLAN, shadow=12)


def test_what_is_loaded_is_what_was_returned(done: Audit, tmp_path: Path) -> None:
    result = audit(leaky_graph(), PLAN, folder=tmp_path, pictures="none", runtime=QUIET)
    loaded = Audit.load(tmp_path)
    assert_same_audit(loaded, result)
    assert without_timings(loaded.summary) == without_timings(done.summary)
    assert str(loaded) == str(done)
    # What a page needs, from the folder alone.
    assert loaded.graph.content_hash == done.graph.content_hash
    np.testing.assert_array_equal(loaded.runs.statistics["full_clean"], done.runs.statistics["full_clean"])


def assert_same_audit(one: Audit, other: Audit) -> None:
    assert one.plan == other.plan
    assert (one.title, one.verdict, one.headline, one.summary) == (
        *(other.title, other.verdict, other.headline, other.summary),
    )
    pd.testing.assert_frame_equal(one.nodes, other.nodes, check_dtype=False)
    assert list(one.estimates.posteriors) == list(other.estimates.posteriors)
    for variant, posteriors in one.estimates.posteriors.items():
        assert_same_counts(one.attacks.counts[variant], other.attacks.counts[variant])
        for name, posterior in posteriors.items():
            for parameter in posterior.parameter_names:
                other_one = other.estimates.posteriors[variant][name]
                levels = [0.05, 0.5, 0.95]
                np.testing.assert_allclose(
                    posterior.quantile(levels, parameter), other_one.quantile(levels, parameter), rtol=0, atol=1e-9
                )


def test_leakage_is_found_where_models_learn_by_heart(done: Audit) -> None:
    assert done.attacks.permutation_test.is_leakage_found
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
    plan = small_plan(shadows=8, queries="full", rules="strong", definitions="mp")
    result = audit(leaky_graph(), plan, runtime=QUIET)
    left_out = {each.node for each in result.attacks.counts["full_clean_strong"].not_auditable}
    assert left_out
    is_flagged = result.nodes["flag"].str.startswith("not auditable: ")
    assert set(result.nodes["node"][is_flagged]) == left_out
    for name in ("num_out", "false_positives", "right_low", "left_high", "excess_right_median"):
        assert result.nodes[name].isna().to_numpy().tolist() == is_flagged.tolist()
    message = f"{len(left_out)} node{'s' if len(left_out) > 1 else ''} could not be audited"
    assert message in " ".join(result.summary["cautions"])
    assert result.summary["nodes"]["not_auditable"] == len(left_out)
    kept = audit(leaky_graph(), plan, unfittable="non-member", runtime=QUIET)
    assert kept.summary["nodes"]["audited"] == result.graph.num_nodes
    assert "counted as non-members" in " ".join(kept.summary["cautions"])


def test_nothing_to_audit_is_reported_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^no node is left to audit; 48 cannot be, such as node 0: .*$"):
        audit(leaky_graph(), small_plan(attack=Gaussian(min_models=30)), runtime=QUIET)


def one_half(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(graph.num_nodes)[: graph.num_nodes // 2]


def test_a_function_as_sampler(tmp_path: Path) -> None:
    plan = small_plan(sampler=one_half, prior_draws=500, queries="full", definitions="bmp-r")
    result = audit(leaky_graph(), plan, folder=tmp_path, pictures="none", runtime=QUIET)
    assert result.priors.num_draws == 500
    assert result.title == "graph, one_half, MLP"
    assert f'name = "{__name__}:one_half"' in (tmp_path / "plan.toml").read_text()
    loaded = Audit.load(tmp_path)
    assert (loaded.title, loaded.headline) == (result.title, result.headline)
    assert Audit.load(tmp_path, trust_code=True).plan.sampler is one_half


def test_a_function_that_nobody_can_import_is_recorded_all_the_same(tmp_path: Path) -> None:
    def local(graph: Graph, rng: np.random.Generator) -> np.ndarray:
        return one_half(graph, rng)

    plan = small_plan(sampler=local, prior_draws=500, queries="full", definitions="bmp-r")
    result = audit(leaky_graph(), plan, folder=tmp_path, pictures="none", runtime=QUIET)
    before = times(tmp_path)
    assert Audit.load(tmp_path).headline == result.headline
    assert audit(leaky_graph(), plan, folder=tmp_path, pictures="none", runtime=QUIET).summary == result.summary
    assert times(tmp_path) == before


def test_prints_and_shows_in_notebooks() -> None:
    graph = leaky_graph(class_names=["<b>", "y", "z"])
    result = audit(graph, small_plan(queries="full", rules="weak"), runtime=QUIET)
    lines = str(result).splitlines()
    assert lines[0] == "graph, Uniform 40 %, MLP"
    assert lines[1] == f"{LEVELS[result.answer.level]}. {result.verdict}"
    names = [line.split()[0] for line in lines[2:] if not line.startswith("  !")]
    assert names == ["proven:", "exposure:", "floor:", "estimated:"]
    shown = result._repr_html_()
    assert shown.count("<tr>") == 4
    assert result.title in shown


def test_no_leakage_comes_first_and_nothing_large_is_near() -> None:
    blind = audit(
        leaky_graph(),
        small_plan(queries="full", shadows=16, training={"epochs": 1, "learning_rate": 1e-9}),
        runtime=QUIET,
    )
    assert not blind.is_leakage_found
    assert blind.verdict.startswith("No leakage found by the attack ")
    assert "may have been missed" in blind.verdict
    assert blind.answer.estimated == ""
    assert [name for name, _ in blind.answer.lines] == ["proven", "exposure", "floor"]
    assert any("does not prove that there is none" in text for text in blind.summary["is_not"])
    assert blind.summary["next"][0].startswith("More shadow models find smaller leaks: ")


def warnings_of(done: Audit, **changes: Any) -> tuple[str, ...]:
    posterior = estimate(ErrorCounts.from_arrays(50, 50, 5, 5, 0.5), "bmp-r")
    values: dict[str, Any] = {
        "name": "ε_R",
        "p5": 2.0,
        "p50": 3.0,
        "p95": 4.0,
        "proven": 1.0,
        "half_median": 2.5,
        "mean": 3.0,
        "mean_without_constant": 3.0,
    }
    return tuple(_row_warnings(replace(done.headline[0], **values | changes), 12, posterior))


def test_an_estimate_says_why_not_to_trust_it(done: Audit) -> None:
    assert warnings_of(done) == ()
    assert warnings_of(done, proven=5.0) == ("ε_R lies below what is proven, 5.0: trust the proof",)
    assert warnings_of(done, mean_without_constant=1.0) == (
        "ε_R is driven by 12 nodes whose decision never varies; without them it is 1.0 on average, not 3.0",
    )
    assert warnings_of(done, half_median=7.0) == (
        "ε_R moves with the number of models: with half of them its median is 7.0, not 3.0",
    )
    assert len(warnings_of(done, proven=5.0, half_median=7.0, mean_without_constant=1.0)) == 3


def test_warnings_follow_the_estimate(done: Audit) -> None:
    assert done.is_leakage_found
    listed = [f"{warning}." for row in done.headline for warning in row.warnings]
    of_the_prior = [row.name for row in done.headline if row.tail_prior_share > 0.9]
    assert list(done.answer.warnings[: len(listed)]) == listed
    assert len(done.answer.warnings) == len(listed) + bool(of_the_prior)
    assert all(name in done.answer.warnings[-1] for name in of_the_prior)
    assert len(done.summary["drivers"]) == len(done.headline)


def test_few_models_of_a_node_are_named() -> None:
    """Through its prior the Student attack also takes nodes that hardly any sample holds."""
    plan = small_plan(attack="student", shadows=12, queries="full", sampler=Uniform(0.1), rules="weak")
    result = audit(leaky_graph(), plan, runtime=QUIET)
    counts = result.attacks.main_counts
    assert counts.num_nodes == result.graph.num_nodes
    num_few = int((counts.num_in < 3).sum())
    assert num_few > 10
    assert f"{num_few} nodes are in the samples of fewer than 3 models, or in all but that many" in " ".join(
        result.summary["cautions"]
    )


@pytest.mark.parametrize("definition", ["bmp", "bmp-r", "bmp-l", "bmp-s", "mp"])
def test_every_definition_alone_makes_a_headline(definition: str) -> None:
    result = audit(leaky_graph(), PLAN, definitions=definition, rules="weak", runtime=QUIET)
    assert [row.definition for row in result.headline] == [definition] * (2 if definition == "bmp" else 1)
    assert result.verdict
    assert len(result.summary["drivers"]) == len(result.headline)
