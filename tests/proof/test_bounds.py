import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

from bmpaudit.proof import epsilon_bound, mp_bound
from bmpaudit.proof.bounds import quick_mp_bounds
from bmpaudit.util.errors import InputError


@pytest.mark.parametrize(("hits", "guesses"), [(500, 500), (499, 500), (3, 10), (1, 1), (9_990, 10_000)])
def test_the_bound_is_where_the_binomial_test_begins_to_reject(hits: int, guesses: int) -> None:
    bound = epsilon_bound(hits, guesses, 0.95)
    assert bound is not None
    assert scipy.stats.binom.sf(hits - 1, guesses, scipy.special.expit(bound)) == pytest.approx(0.05, rel=1e-6)


def test_ceiling_without_a_miss() -> None:
    assert epsilon_bound(500, 500) == pytest.approx(scipy.special.logit(0.05 ** (1 / 500)))


def test_nothing_is_proven_without_a_hit() -> None:
    assert epsilon_bound(0, 100) is None
    assert epsilon_bound(0, 0) is None
    assert mp_bound(0, np.zeros(5)) is None
    assert mp_bound(0, np.zeros(0)) is None


def test_the_bound_exceeds_the_truth_no_more_often_than_it_says() -> None:
    """By summing over all outcomes: no chance is involved."""
    for guesses in (1, 7, 60):
        bounds = [epsilon_bound(hits, guesses, 0.9) for hits in range(guesses + 1)]
        for epsilon in np.linspace(-3, 6, 40):
            mass = scipy.stats.binom.pmf(np.arange(guesses + 1), guesses, scipy.special.expit(epsilon))
            assert sum(p for p, bound in zip(mass, bounds, strict=True) if bound is not None and bound > epsilon) <= 0.1


def test_mp_with_even_odds_is_the_same_bound() -> None:
    for hits, guesses in ((500, 500), (480, 500), (60, 100)):
        assert mp_bound(hits, np.zeros(guesses)) == pytest.approx(epsilon_bound(hits, guesses), abs=1e-5)


def test_mp_with_equal_odds_is_shifted_by_them() -> None:
    assert mp_bound(190, np.full(200, -1.5)) == pytest.approx((epsilon_bound(190, 200) or 0) + 1.5, abs=1e-5)


def test_mp_is_where_the_exact_test_begins_to_reject() -> None:
    odds = np.random.default_rng(2).normal(-1, 1.5, size=40)
    bound = mp_bound(36, odds, 0.95)
    assert bound is not None
    mass = np.array([1.0])
    for p in scipy.special.expit(bound + odds):
        mass = np.convolve(mass, [1 - p, p])
    assert mass[36:].sum() == pytest.approx(0.05, abs=1e-6)


def test_higher_limits_of_the_prior_lower_the_mp_bound() -> None:
    odds = np.random.default_rng(3).normal(-1, 1, size=100)
    bound, looser = mp_bound(95, odds), mp_bound(95, odds + 0.1)
    assert bound is not None
    assert looser is not None
    assert looser < bound


@pytest.mark.parametrize("hits", [100, 97, 80])
def test_the_quick_mp_bound_is_close_and_not_above(hits: int) -> None:
    odds = np.random.default_rng(4).normal(-1, 1, size=100)
    exact = mp_bound(hits, odds, 0.95)
    assert exact is not None
    rate = scipy.special.betaincinv(hits, 101 - hits, 0.05)
    (quick,) = quick_mp_bounds(np.array([rate]), odds, np.array([100]))
    assert exact - 0.2 < quick <= exact + 1e-6


def test_quick_mp_bounds_are_those_of_bisection_for_each_set() -> None:
    odds = np.random.default_rng(5).normal(-1, 1, size=200)
    lengths = np.array([1, 7, 60, 200, 200, 200, 3])
    rates = np.array([0.9, 0.8, 0.97, 0.999, 0.01, 1.0, 0.6])
    for bound, rate, length in zip(quick_mp_bounds(rates, odds, lengths), rates, lengths, strict=True):

        def mean_at(epsilon: float, num: int = length) -> float:
            return float(scipy.special.expit(epsilon + odds[:num]).mean())

        if mean_at(0) > rate:
            assert bound == 0
        elif rate == 1:
            assert bound > 300
        else:
            exact = scipy.optimize.brentq(lambda epsilon, r=rate: mean_at(epsilon) - r, 0, 50)
            assert exact - 1e-3 <= bound <= exact


def test_guesses_against_all_odds_prove_nothing_about_mp() -> None:
    assert mp_bound(75, np.full(100, scipy.special.logit(0.75))) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon_bound(3, 2), r"num_hits must be in \[0, num_guesses=2\], got num_hits=3"),
        (lambda: epsilon_bound(1, 2, 1.0), r"level must be in \(0, 1 - 1e-9\], got level=1.0"),
        (lambda: epsilon_bound(1, 2, float("nan")), "level must be in"),
        (lambda: mp_bound(1, np.array([np.nan])), "log_odds must be numbers, got NaN"),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=message):
        call()
