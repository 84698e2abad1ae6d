"""Whether what is said of exposure is true, on simulated models of which it is known; `reliability/` has more of it."""

import numpy as np
import pytest
import scipy.stats
from known_exposure import Coverage, Setting, equal, exponential, few, mixture

SHARE = 0.93  # of audits whose limits hold the truth, at least
SURPRISE = 1e-4


def covered(settings: list[Setting], audits: int) -> Coverage:
    made = Coverage()
    for setting in settings:
        for audit in range(audits):
            made.add(setting, audit)
    return made


def check(made: Coverage) -> None:
    fewest = scipy.stats.binom.ppf(SURPRISE, made.audits, SHARE)
    assert made.high >= fewest
    assert made.low >= fewest
    assert made.node_high >= fewest
    assert made.node_low >= fewest


def test_a_few_that_give_themselves_away_are_not_averaged_away() -> None:
    check(covered([Setting("few", few(number), 300, 64) for number in (1, 3, 10, 30)], audits=3))


def test_a_few_that_are_seldom_in_the_sample_are_not_averaged_away() -> None:
    check(covered([Setting("few", few(number), 300, 64, prior=0.02) for number in (1, 10, 30)], audits=2))


def test_a_few_of_a_thousand_are_not_averaged_away() -> None:
    check(covered([Setting("few", few(number), 1000, 64) for number in (1, 10)], audits=2))


@pytest.mark.parametrize("shifts", [equal(2.0), exponential, mixture])
def test_leakage_of_many_is_covered(shifts: object) -> None:
    assert callable(shifts)
    check(covered([Setting("many", shifts, 300, 64)], audits=4))


def test_upper_limits_of_nodes_that_are_named_now_and_then_hold() -> None:
    """What was learnt about a node moves it in all models alike: counts over models do not tell how far."""
    setting = Setting("exponential", exponential, 300, 1000)
    is_between = (setting.shares > 0.05) & (setting.shares < 0.9)
    held = []
    for audit in range(6):
        nodes = setting.audit(audit).exposure.member_nodes
        held.append((setting.shares[nodes.node] <= nodes.high)[is_between[nodes.node]])
    assert np.mean(held) >= SHARE


def test_nothing_is_little() -> None:
    setting = Setting("nothing", few(0), 300, 64)
    made = covered([setting], audits=3)
    check(made)
    assert setting.truth == 0
    assert made.correct == 0
    assert made.mean_high < 0.5


def test_what_is_true_by_hand() -> None:
    assert Setting("few", few(3), 300, 64).truth == pytest.approx(0.75, abs=1e-3)
    assert Setting("equal", equal(2.0), 300, 64).truth == pytest.approx(
        75 * scipy.stats.norm.sf((4.59512 + 1.09861) / 2 + 1 - 2), rel=1e-4
    )
    assert exponential(1000).mean() == pytest.approx(1, abs=0.01)
    assert (mixture(300) == 7).sum() == 6
