"""Algorithm 1 against a double loop that fits every hypothesis anew."""

from functools import cache

import numpy as np
import pytest
from slow_attack import (
    GAUSSIAN,
    RULES,
    Fit,
    exact_left_out_score,
    is_clear,
    make_models,
    random_memberships,
    scores_of,
    slow_counts,
    slow_left_out_scores,
)

from bmpaudit.attack import DecisionSettings, ErrorCounts, Evidence, Gaussian, NotAuditable, challenge, node_mia

NUM_MODELS, NUM_NODES = 30, 132  # more nodes than the kernel works on at once
PRIOR = np.linspace(0.05, 0.95, NUM_NODES)
LOG_ODDS = np.log(PRIOR / (1 - PRIOR))


def random_models() -> Evidence:
    rng, members = np.random.default_rng(1), random_memberships(NUM_MODELS, NUM_NODES, seed=1)
    spread = rng.uniform(0.2, 3, NUM_NODES) ** members
    return make_models(members, rng.normal(size=members.shape) * spread + members * rng.normal(0, 2, NUM_NODES))


def large_with_tiny_spread(size: float) -> Evidence:
    """At 10,000 a float32 has steps of 0.001: about seven distinct values on a side."""
    rng, members = np.random.default_rng(2), random_memberships(NUM_MODELS, NUM_NODES, seed=2)
    return make_models(members, size + 1e-3 * (rng.normal(size=members.shape) + members))


def constant_sides() -> Evidence:
    """Sides without spread: the members', the others', both, both with the same value; then with one value apart."""
    rng, members = np.random.default_rng(3), random_memberships(NUM_MODELS, NUM_NODES, seed=3)
    statistics = rng.normal(size=members.shape) + 0.1
    kind = np.arange(NUM_NODES) % 6
    statistics = np.where(members & np.isin(kind, (0, 2, 3, 4)), 0.3, statistics)
    statistics = np.where(~members & np.isin(kind, (1, 2, 3, 5)), 0.7, statistics)
    statistics[:, kind == 3] = 0.3
    statistics[0, kind == 4] = -8.0  # model 0 has every node: without it, the rest of the members is constant
    statistics[5, kind == 5] = 1e-6  # model 5 has none
    return make_models(members, statistics)


def one_outlier() -> Evidence:
    """One model holds nearly all of the spread of its side, be it the first or another."""
    rng, members = np.random.default_rng(4), random_memberships(NUM_MODELS, NUM_NODES, seed=4)
    statistics = 3 + 1e-3 * rng.normal(size=members.shape)
    statistics[0, ::3], statistics[6, 1::3] = 1e6, -1e5
    statistics[2, 2::3] = 4.0
    return make_models(members, statistics)


def small_sides() -> Evidence:
    """Two to four models on a side."""
    rng = np.random.default_rng(5)
    members = np.arange(NUM_MODELS)[:, None] < 2 + np.arange(NUM_NODES) % 3
    members = rng.permuted(members, axis=0) ^ (np.arange(NUM_NODES) % 2 == 0)
    return make_models(members, rng.normal(size=members.shape) + 0.5 * members)


CASES = {
    "random": random_models(),
    "hundred": large_with_tiny_spread(100.0),
    "ten thousand": large_with_tiny_spread(1e4),
    "constant": constant_sides(),
    "outlier": one_outlier(),
    "small": small_sides(),
}
FITS = {
    "plain": Fit(),
    "pooled": Fit(pooled_variance=True),
    "floor": Fit(min_sigma=0.01),
    "pooled with floor": Fit(pooled_variance=True, min_sigma=0.5),
}


@cache
def expected_scores(case: str, fit: str = "plain") -> np.ndarray:
    return slow_left_out_scores(CASES[case], FITS[fit])


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("case", CASES)
def test_same_decisions_as_refitting(case: str, fit: str) -> None:
    models, expected = CASES[case], expected_scores(case, fit)
    challenges = challenge(FITS[fit].attack(min_models=1), models, PRIOR, RULES)
    for rule, scores in {"weak": expected, "strong": expected + LOG_ODDS}.items():
        clear = is_clear(scores)
        # Only sides that are constant and equal give a ratio of exactly 1.
        assert clear.mean() > 0.8 if rule == "weak" else clear.all()
        counts = challenges.error_counts(rule)
        false_positives, false_negatives = slow_counts(scores, models.memberships)
        np.testing.assert_array_equal(counts.false_positives[clear], false_positives[clear])
        np.testing.assert_array_equal(counts.false_negatives[clear], false_negatives[clear])
        np.testing.assert_array_equal(counts.num_in, models.memberships.sum(axis=0))
        np.testing.assert_array_equal(counts.num_out, (~models.memberships).sum(axis=0))


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("case", ["random", "constant", "small"])
def test_same_scores_as_refitting(case: str, fit: str) -> None:
    scores = scores_of(CASES[case], PRIOR, FITS[fit].attack(min_models=1))
    np.testing.assert_allclose(scores.log_likelihood_ratio, expected_scores(case, fit), rtol=1e-10, atol=1e-10)


def test_a_side_that_is_constant_without_the_challenged_model_has_no_spread() -> None:
    scores = scores_of(CASES["constant"], PRIOR).log_likelihood_ratio
    kind = np.arange(NUM_NODES) % 6
    assert (scores[0, kind == 4] == -np.inf).all()  # the others agree on a value that is not the challenged one
    assert (scores[5, kind == 5] == np.inf).all()


@pytest.mark.parametrize("case", ["hundred", "ten thousand", "outlier"])
def test_scores_are_right_where_digits_are_easily_lost(case: str) -> None:
    models = CASES[case]
    scores = scores_of(models, PRIOR).log_likelihood_ratio
    for node in (0, 1, 2, 3, 131):
        expected = [exact_left_out_score(models, model, node) for model in range(NUM_MODELS)]
        np.testing.assert_allclose(scores[:, node], expected, rtol=1e-12, atol=1e-12)


def test_many_models_lose_no_digits() -> None:
    rng, members = np.random.default_rng(6), random_memberships(20_000, 3, seed=6)
    statistics = 50 + 1e-2 * rng.normal(size=members.shape)
    statistics[[0, 5]] += 10  # the first of each side, which the sums are shifted by, lies far off
    models = make_models(members, statistics)
    scores = scores_of(models, np.full(3, 0.4)).log_likelihood_ratio
    for model in (0, 5, 11, 12):
        assert scores[model, 1] == pytest.approx(exact_left_out_score(models, model, 1), rel=1e-12, abs=1e-12)


def test_result_does_not_depend_on_threads() -> None:
    rng, members = np.random.default_rng(7), random_memberships(40, 700, seed=7)
    models = make_models(members, rng.normal(size=members.shape))
    one = scores_of(models, "shadow-frequency", num_threads=1)
    counts = node_mia(models, "shadow-frequency", num_threads=1)
    for num_threads in (2, 3, 8, 50):
        scores = scores_of(models, "shadow-frequency", num_threads=num_threads)
        assert scores.log_likelihood_ratio.tobytes() == one.log_likelihood_ratio.tobytes()
        again = node_mia(models, "shadow-frequency", num_threads=num_threads)
        assert np.array_equal(again.false_positives, counts.false_positives)
        assert np.array_equal(again.false_negatives, counts.false_negatives)


def test_scores_and_counts_say_the_same() -> None:
    models, settings = CASES["random"], DecisionSettings(cost_false_positive=2.0)
    scores = scores_of(models, PRIOR, settings=settings)
    challenges = challenge(GAUSSIAN, models, PRIOR, RULES, settings=settings)
    for name, rule in RULES.items():
        counts = challenges.error_counts(name)
        expected = slow_counts(scores.of(rule), models.memberships, scores.threshold)
        np.testing.assert_array_equal(counts.false_positives, expected[0])
        np.testing.assert_array_equal(counts.false_negatives, expected[1])


def test_weak_is_strong_with_a_prior_of_one_half() -> None:
    models = CASES["random"]
    strong = node_mia(models, np.full(NUM_NODES, 0.5))
    weak = node_mia(models, PRIOR, rule="weak")
    assert np.array_equal(strong.false_positives, weak.false_positives)
    assert np.array_equal(strong.false_negatives, weak.false_negatives)
    assert np.array_equal(weak.prior_prob, PRIOR)  # kept, though not used
    by_prior = node_mia(models, PRIOR)
    assert (by_prior.false_positives[:40] <= weak.false_positives[:40]).all()  # a small prior: fewer say "member"
    assert (by_prior.false_positives[-40:] >= weak.false_positives[-40:]).all()


@pytest.mark.parametrize(("c0", "c1"), [(3.0, 1.0), (1.0, 4.0), (0.5, 0.5)])
def test_costs_move_the_threshold(c0: float, c1: float) -> None:
    models, threshold = CASES["random"], np.log(c0 / c1)
    scores = expected_scores("random") + LOG_ODDS
    assert is_clear(scores, threshold).all()
    counts = node_mia(models, PRIOR, settings=DecisionSettings(c0, c1))
    false_positives, false_negatives = slow_counts(scores, models.memberships, threshold)
    assert np.array_equal(counts.false_positives, false_positives)
    assert np.array_equal(counts.false_negatives, false_negatives)


def test_the_paper_takes_the_prior_from_the_same_samples() -> None:
    models = CASES["random"]
    frequency = models.memberships.mean(axis=0)
    by_name, by_hand = node_mia(models, "shadow-frequency"), node_mia(models, frequency)
    assert np.array_equal(by_name.prior_prob, frequency)
    assert np.array_equal(by_name.false_positives, by_hand.false_positives)
    assert by_name.prior_odds == pytest.approx(by_name.num_in / by_name.num_out)


@pytest.mark.parametrize(
    "targets", [[7, 3, 131], np.isin(np.arange(NUM_NODES), [3, 7, 131]), np.array([130], dtype=np.uint8)]
)
def test_targets_are_attacked_as_they_would_be_among_all(targets: np.ndarray) -> None:
    whole, part = node_mia(CASES["random"], PRIOR), node_mia(CASES["random"], PRIOR, targets=targets)
    expected = np.flatnonzero(targets) if np.asarray(targets).dtype == bool else np.asarray(targets)
    assert part.node.tolist() == expected.tolist()
    for column in ("num_in", "num_out", "false_positives", "false_negatives", "prior_prob"):
        assert np.array_equal(getattr(part, column), getattr(whole, column)[expected])


def sides_of(*nums_in: int, num_models: int = 10) -> Evidence:
    members = np.arange(num_models)[:, None] < np.array(nums_in)
    return make_models(members, np.random.default_rng(8).normal(size=members.shape) + 5 * members)


def listed(counts: ErrorCounts) -> dict[int, str]:
    return {left.node: left.reason for left in counts.not_auditable}


def test_models_are_counted_without_the_challenged_one() -> None:
    models, prior = sides_of(0, 1, 2, 3, 5, 7, 8, 9, 10), np.full(9, 0.5)
    assert node_mia(models, prior, attack=Gaussian(min_models=1)).node.tolist() == [2, 3, 4, 5, 6]
    counts = node_mia(models, prior)
    assert counts.node.tolist() == [3, 4, 5]
    assert listed(counts) == {
        0: "in the samples of 0 of 10 models, at least 3 are needed",
        1: "in the samples of 1 of 10 models, at least 3 are needed",
        2: "in the samples of 2 of 10 models, at least 3 are needed",
        6: "missing from the samples of 2 of 10 models, at least 3 are needed",
        7: "missing from the samples of 1 of 10 models, at least 3 are needed",
        8: "missing from the samples of 0 of 10 models, at least 3 are needed",
    }
    assert node_mia(models, prior, attack=Gaussian(min_models=4)).node.tolist() == [4]


@pytest.mark.parametrize("rule", RULES)
def test_a_certain_prior_leaves_nothing_to_audit(rule: str) -> None:
    counts = node_mia(sides_of(5, 5, 5), [0.0, 0.5, 1.0], rule=rule)
    assert counts.node.tolist() == [1]
    assert listed(counts) == {0: "its prior probability is 0", 2: "its prior probability is 1"}
    assert not counts.is_kept.any()


@pytest.mark.parametrize("rule", RULES)
def test_nodes_that_cannot_be_attacked_are_kept_as_non_members_on_request(rule: str) -> None:
    models, prior = sides_of(0, 2, 5, 5, 5, 9, 10), [0.5, 0.5, 0.5, 0.0, 1.0, 0.5, 1.0]
    counts = node_mia(models, prior, rule=rule, settings=DecisionSettings(unfittable="non-member"))
    assert counts.node.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert counts.is_kept.tolist() == [True, True, False, True, True, True, True]
    assert counts.false_positives[counts.is_kept].tolist() == [0] * 6
    assert np.array_equal(counts.false_negatives[counts.is_kept], counts.num_in[counts.is_kept])
    assert counts.is_constant.tolist() == [True, True, False, True, True, True, True]
    assert counts.not_auditable[0] == NotAuditable(0, "in the samples of 0 of 10 models, at least 3 are needed")
    assert "kept as never a member, such as node 0: in the samples of 0" in str(counts)
    scores = scores_of(models, prior, settings=DecisionSettings(unfittable="non-member"))
    assert (scores.of(rule)[:, counts.is_kept] == -np.inf).all()
    assert not np.isnan(scores.of(rule)).any()


def test_a_tie_is_no_member() -> None:
    members = random_memberships(20, 3, seed=11)
    counts = node_mia(make_models(members, np.full(members.shape, 0.3)), [0.3, 0.5, 0.7])
    assert counts.is_constant.all()
    assert counts.false_positives.tolist() == [0, 0, counts.num_out[2]]
    assert counts.false_negatives.tolist() == [counts.num_in[0], counts.num_in[1], 0]


def test_members_may_score_lower() -> None:
    rng, members = np.random.default_rng(9), random_memberships(60, 20, seed=9)
    models = make_models(members, rng.normal(size=members.shape) - 6 * members)
    assert node_mia(models, np.full(20, 0.4)).accuracy.min() > 0.9


def test_a_decision_that_never_varies_is_flagged() -> None:
    rng, members = np.random.default_rng(10), random_memberships(40, 2, seed=10)
    statistics = rng.normal(size=members.shape)
    statistics[:, 1] += 6 * members[:, 1]
    counts = node_mia(make_models(members, statistics), [1e-9, 0.5])
    assert counts.is_constant.tolist() == [True, False]
    assert counts.false_positives[0] == 0
    assert counts.false_negatives[0] == counts.num_in[0]
