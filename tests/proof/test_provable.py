"""What guesses about a single node could have proven, and what guesses leave possible."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.stats

from bmpaudit.proof import AnytimeBound, epsilon_bound, mp_bound
from bmpaudit.proof.bounds import poisson_binomial_tail
from bmpaudit.proof.guesses import Choice, Guesses, PriorOdds, Threshold
from bmpaudit.proof.prove import ProvenBound, default_num_fitting, provable_about_each, refits

LEVEL = 0.95


def bound_by_hand(num_guesses: int, log_odds: float | None, method: str) -> float:
    """The bound by so many guesses about one node, all right."""
    if method == "one-guess":
        odds = np.full(num_guesses, log_odds)
        bound = (
            epsilon_bound(num_guesses, num_guesses, LEVEL) if log_odds is None else mp_bound(num_guesses, odds, LEVEL)
        )
    else:
        running = AnytimeBound(LEVEL, lowest=-math.inf if log_odds is None else 0.0)
        running.update(np.ones(num_guesses), log_odds or 0.0)
        bound = running.value
    return -math.inf if bound is None else bound


@pytest.mark.parametrize("method", ["one-guess", "prequential"])
def test_each_node_by_a_slow_reference(method: Any) -> None:
    prior = np.array([0.05, 0.25, 0.5, 0.9, 1.0])
    num_models = 200
    memberships = np.random.default_rng(3).random((num_models, len(prior))) < prior
    memberships[:, 0] = np.arange(num_models) % 25 == 0  # in too few fitting models at first
    made = provable_about_each(memberships, PriorOdds.of(prior, len(prior), 0, 1 - LEVEL), LEVEL, method)
    ends = [default_num_fitting(num_models), num_models] if method == "one-guess" else list(refits(num_models))
    for node in range(4):
        held, missed = 0, 0
        for first, last in pairwise(ends):
            before, here = memberships[:first, node].sum(), memberships[first:last, node].sum()
            if min(before, first - before) >= min(10, first // 8):
                held, missed = held + here, missed + last - first - here
        odds = math.log(prior[node] / (1 - prior[node]))
        assert made["epsilon_right"][node] == pytest.approx(bound_by_hand(held, None, method), abs=1e-5)
        assert made["epsilon_left"][node] == pytest.approx(bound_by_hand(missed, None, method), abs=1e-5)
        both = max(bound_by_hand(held, odds, method), bound_by_hand(missed, -odds, method))
        assert made["mp"][node] == pytest.approx(both, abs=1e-5)
    assert made["epsilon_right"][0] == -math.inf


def test_limits_of_sampled_priors_lower_what_guesses_about_mp_prove() -> None:
    memberships = np.random.default_rng(4).random((300, 3)) < 0.3
    prior = np.full(3, 0.3)
    exact, drawn = (
        provable_about_each(memberships, PriorOdds.of(prior, 3, draws, 1 - LEVEL), LEVEL) for draws in (0, 1_000)
    )
    assert (drawn["mp"] < exact["mp"]).all()
    assert np.array_equal(drawn["epsilon_right"], exact["epsilon_right"])


def proven_bound(parameter: Any, is_hit: np.ndarray, log_odds: np.ndarray) -> ProvenBound:
    number = len(is_hit)
    guesses = Guesses(np.arange(number), np.zeros(number, dtype=np.int64), is_hit, is_hit, log_odds)
    choice = Choice("student, full", "in by odds", Threshold(0.0, 0.0))
    return ProvenBound(parameter, None, 0.0, 0.0, LEVEL, "one guess per model", 10, number, choice, guesses)


def test_what_guesses_leave_possible_is_their_upper_limit() -> None:
    is_hit = np.arange(50) < 40
    for parameter in ("epsilon_right", "epsilon_left"):
        possible = proven_bound(parameter, is_hit, np.zeros(50)).possible
        rate = 1 / (1 + math.exp(-possible))
        assert scipy.stats.binom.cdf(40, 50, rate) == pytest.approx(1 - LEVEL, rel=1e-6)
    odds = np.linspace(-2.0, 1.0, 50)
    possible = proven_bound("mp", is_hit, odds).possible
    wrong = 1 / (1 + np.exp(possible + odds))
    assert poisson_binomial_tail(wrong, 10) == pytest.approx(1 - LEVEL, rel=1e-4)


@pytest.mark.parametrize("parameter", ["epsilon_right", "epsilon_left", "mp"])
def test_guesses_without_a_miss_leave_everything_possible(parameter: Any) -> None:
    assert proven_bound(parameter, np.ones(500, dtype=np.bool_), np.zeros(500)).possible == math.inf
    assert proven_bound(parameter, np.ones(0, dtype=np.bool_), np.zeros(0)).possible == math.inf
