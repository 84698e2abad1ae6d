"""Mechanisms that are known exactly: bounds exceed the truth at most as often as they say, and come close to it."""

import sys

import numpy as np
import pytest
import scipy.stats
from finite_models import load_example

from bmpaudit.privacy import privacy_levels
from bmpaudit.proof import epsilon_bound
from bmpaudit.proof.guesses import choose, make_guesses, most_confident

FALSE_ALARM = 1e-5
example = load_example()


@pytest.mark.parametrize("family", ["random_mechanism", "worst_case"])
def test_bounds_exceed_the_truth_no_more_often_than_they_say(family: str) -> None:
    """The best adversary, with abstention learnt on other models; and the anytime form, stopped at its best moment."""
    rng, audits = np.random.default_rng(1), 250
    above, at_any_time, stopped_fixed = np.zeros(3, dtype=int), 0, 0
    for _ in range(audits):
        mechanism = getattr(example, family)(rng)
        truth = privacy_levels(mechanism)
        above += example.violations(example.audit(mechanism, example.NUM_MODELS, rng), truth)
        hits = example.surest_hits(mechanism, 500, rng)
        at_any_time += example.anytime_ever_exceeds(hits, truth.bmp.right)
        stopped_fixed += example.fixed_ever_exceeds(hits, truth.bmp.right)
    allowed = scipy.stats.binom.isf(FALSE_ALARM, audits, 1 - example.LEVEL)
    assert above.max() <= allowed
    assert at_any_time <= allowed
    # The test can fail: stopping at will breaks the bound that does not allow for it.
    assert stopped_fixed > allowed


def test_a_threshold_chosen_on_the_challenged_models_would_be_found_out() -> None:
    """The test can fail: with the confidence that looks best afterwards, bounds exceed the truth too often.

    All guesses are right with the largest probability that ε allows, and confidence says nothing more about them.
    """
    rng, audits, above = np.random.default_rng(2), 250, 0
    for _ in range(audits):
        mechanism = example.worst_case(rng)
        truth = privacy_levels(mechanism).bmp.right
        hits = example.surest_hits(mechanism, 500, rng)
        right = np.cumsum(hits[np.argsort(rng.random(len(hits)))])
        bounds = [epsilon_bound(int(right[k]), k + 1, example.LEVEL) for k in range(len(right))]
        above += max(-np.inf if bound is None else bound for bound in bounds) > truth
    assert above > scipy.stats.binom.isf(FALSE_ALARM, audits, 1 - example.LEVEL)


@pytest.mark.parametrize("parameter", ["epsilon_right", "epsilon_left"])
def test_the_bound_comes_within_a_tenth_of_the_truth(parameter: str) -> None:
    """With 100,000 models, for outputs that attain ε and are not rare."""
    rng, ratios = np.random.default_rng(3), list[float]()
    while len(ratios) < 12:
        mechanism = example.random_mechanism(rng)
        truth = privacy_levels(mechanism)
        if not example.is_learnable(mechanism, truth, parameter):
            continue
        models, odds = example.draw(mechanism, 100_000, rng), np.log(mechanism.prior_odds)
        claims = most_confident(example.best_scores(mechanism)[models.output], odds)
        fitting = {
            order: type(made)(made.node[:33_333], made.says_member[:33_333], made.confidence[:33_333])
            for order, made in claims.items()
        }
        choice = choose(parameter, {"": fitting}, models.memberships[:33_333], odds, 66_667, 0.05)  # type: ignore[arg-type]
        made = claims[choice.order]
        rest = type(made)(made.node[33_333:], made.says_member[33_333:], made.confidence[33_333:])
        guesses = make_guesses(
            rest, choice.threshold.value, models.memberships[33_333:], np.arange(66_667), np.zeros(66_667)
        )
        bound = epsilon_bound(guesses.num_hits, guesses.num_guesses)
        assert bound is not None
        ratios.append(bound / example.true_values(truth)[parameter])
    assert 0.9 < np.mean(ratios) <= 1
    assert min(ratios) > 0.8


def test_mp_comes_within_a_tenth_of_the_truth() -> None:
    rng, ratios = np.random.default_rng(4), list[float]()
    while len(ratios) < 4:
        mechanism = example.random_mechanism(rng)
        truth = privacy_levels(mechanism)
        if example.is_learnable(mechanism, truth, "mp"):
            ratios.append((example.audit(mechanism, 100_000, rng).mp.proven or 0.0) / truth.mp)
    assert 0.9 < np.mean(ratios) <= 1.01


def test_the_example_prints_its_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        sys, "argv", ["proof_validity.py", "--mechanisms", "2", "--consistency", "1", "--models", "3000"]
    )
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * 5 + 1 + 2 + 3
    assert all(line.startswith("| ") for line in lines if line)
