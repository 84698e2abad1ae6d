import numpy as np
import pytest

from bmpaudit.proof.guesses import PriorOdds, can_be_named, choose, learn_threshold, make_guesses, most_confident

SURE = np.full(10, 20.0)


def test_names_the_surest_node_each_way() -> None:
    ratios = np.array([[1.0, 4.0, -2.0], [0.0, -9.0, 3.0]])
    odds = np.array([5.0, 0.0, -1.0])
    claims = most_confident(ratios, odds)
    assert claims["in by odds"].node.tolist() == [0, 0]
    assert claims["in by odds"].confidence.tolist() == [6.0, 5.0]
    assert claims["out by odds"].node.tolist() == [2, 1]
    assert claims["in by ratio"].node.tolist() == [1, 2]
    assert claims["out by ratio"].node.tolist() == [2, 1]
    either = claims["either by ratio"]
    assert either.node.tolist() == [1, 1]
    assert either.says_member.tolist() == [True, False]


def test_ties_go_to_the_first_node_and_to_members() -> None:
    claims = most_confident(np.array([[2.0, 2.0, -2.0]]), np.zeros(3))
    assert claims["in by odds"].node.tolist() == [0]
    assert claims["either by ratio"].says_member.tolist() == [True]
    infinite = most_confident(np.array([[np.inf, -np.inf, np.inf]]), np.array([0.0, 0.0, np.inf]))
    assert infinite["in by odds"].node.tolist() == [0]
    assert infinite["out by odds"].node.tolist() == [1]


def test_nodes_that_are_not_scored_are_never_named() -> None:
    claims = most_confident(np.array([[9.0, 1.0, -9.0]]), np.zeros(3), np.array([False, True, False]))
    assert {int(made.node[0]) for made in claims.values()} == {1}
    nobody = most_confident(np.array([[9.0]]), np.zeros(1), np.array([False]))["in by odds"]
    made = make_guesses(nobody, -np.inf, np.array([[True]]), np.arange(1), np.zeros(1))
    assert made.num_guesses == 0


def test_blocks_of_nodes_give_the_same_claims() -> None:
    ratios = np.random.default_rng(0).integers(-3, 4, size=(50, 9)).astype(float)
    odds = np.linspace(-1, 1, 9)
    whole = most_confident(ratios, odds)
    parts = [most_confident(ratios[:, part], odds[part], None, np.arange(9)[part]) for part in (slice(4), slice(4, 9))]
    for order in ("in by odds", "out by odds", "in by ratio", "out by ratio"):
        merged = parts[0][order].merge(parts[1][order])
        assert np.array_equal(merged.node, whole[order].node)
        assert np.array_equal(merged.confidence, whole[order].confidence)


def test_hits_and_prior_odds_of_claims() -> None:
    claims = most_confident(np.array([[5.0, 0.0], [-7.0, 0.0]]), np.zeros(2))["either by ratio"]
    memberships = np.array([[True, False], [True, False]])
    assert claims.are_hits(memberships).tolist() == [True, False]
    # "In" is made likelier by the upper limit, "out" by the lower one.
    priors = PriorOdds(np.zeros(2), np.array([-2.0, 0.0]), np.array([-1.0, 0.0]), 10)
    assert priors.of_claims(claims).tolist() == [-1.0, 2.0]


def test_the_threshold_leaves_out_misses_of_low_confidence() -> None:
    confidence = np.concatenate([np.linspace(10, 5, 94), np.linspace(4, 3, 6)])
    is_hit = confidence > 4.5
    threshold = learn_threshold(confidence, is_hit, np.full(100, 20.0), 200, 0.05)
    assert threshold.value == 5.0


def test_the_attacks_own_doubts_count_where_no_miss_was_seen() -> None:
    confidence = np.concatenate([np.full(80, 9.0), np.full(20, 0.5)])
    threshold = learn_threshold(confidence, np.ones(100, dtype=bool), confidence, 1000, 0.05)
    assert threshold.value == 9.0


def test_a_few_lucky_guesses_do_not_beat_many_good_ones() -> None:
    confidence = np.linspace(10, 5, 100)
    is_hit = np.ones(100, dtype=bool)
    is_hit[[3, 50]] = False
    assert learn_threshold(confidence, is_hit, np.full(100, 20.0), 200, 0.05).value == 5.0


def test_equal_confidence_is_not_torn_apart() -> None:
    confidence, is_hit = np.full(10, 3.0), np.arange(10) < 9
    assert learn_threshold(confidence, is_hit, SURE, 10, 0.05).value == 3.0


def test_without_a_hit_everything_is_guessed() -> None:
    threshold = learn_threshold(np.arange(10.0), np.zeros(10, dtype=bool), SURE, 10, 0.05)
    assert threshold.value == threshold.expected == -np.inf


@pytest.mark.parametrize("parameter", ["epsilon_right", "mp"])
def test_the_better_source_is_chosen(parameter: str) -> None:
    rng = np.random.default_rng(1)
    memberships = rng.random((60, 5)) < 0.4
    odds = np.full(5, np.log(0.4 / 0.6))
    good = most_confident(np.where(memberships, 6.0, -6.0) + rng.normal(size=memberships.shape), odds)
    bad = most_confident(rng.normal(size=memberships.shape), odds)
    for claims in ({"bad": bad, "good": good}, {"good": good, "bad": bad}):
        assert choose(parameter, claims, memberships, odds, 100, 0.05).source == "good"  # type: ignore[arg-type]
    assert choose(parameter, {"a": good, "b": good}, memberships, odds, 100, 0.05).source == "a"  # type: ignore[arg-type]


def test_nodes_that_few_fitting_models_hold_or_few_do_not_cannot_be_named() -> None:
    num_in = np.array([0, 9, 10, 100, 190, 191, 200])
    assert can_be_named(num_in, 200).tolist() == [False, False, True, True, True, False, False]
    assert can_be_named(np.minimum(num_in, 32), 32).tolist() == [False, True, True, False, False, False, False]
    assert can_be_named(np.arange(5), 4).tolist() == [False, True, True, True, False]
