import numpy as np
import pytest
import scipy.special
import scipy.stats

from bmpaudit.proof import AnytimeBound, epsilon_bound, mp_bound
from bmpaudit.proof.bounds import LOG_WEIGHTS, STAKES
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats


def fed(hits: int, misses: int, log_odds: float = 0.0, lowest: float = -np.inf) -> AnytimeBound:
    bound = AnytimeBound(lowest=lowest)
    bound.update([1] * hits + [0] * misses, log_odds)
    return bound


def mean_bound(shares: Floats, level: float = 0.95) -> float | None:
    bound = AnytimeBound(level)
    bound.update(shares)
    return bound.value


def test_the_stakes_are_a_mixture() -> None:
    assert np.exp(LOG_WEIGHTS).sum() == pytest.approx(1)
    assert ((STAKES >= 0) & (STAKES <= 1)).all()


@pytest.mark.parametrize("epsilon", [-2.0, 0.0, 3.0])
@pytest.mark.parametrize("log_odds", [0.0, -1.1])
def test_wealth_is_a_martingale_at_the_truth_and_falls_below_it(epsilon: float, log_odds: float) -> None:
    """The mean over the next guess, for a few histories."""
    for hits, misses in ((0, 0), (5, 0), (20, 3)):
        now = fed(hits, misses, log_odds).log_wealth(epsilon)
        after = [
            fed(hits + 1, misses, log_odds).log_wealth(epsilon),
            fed(hits, misses + 1, log_odds).log_wealth(epsilon),
        ]
        at_truth = scipy.special.expit(epsilon + log_odds)
        for rate, is_equal in ((at_truth, True), (0.8 * at_truth, False), (0.1 * at_truth, False)):
            mean = rate * np.exp(after[0]) + (1 - rate) * np.exp(after[1])
            assert mean <= np.exp(now) * (1 + 1e-12)
            assert not is_equal or mean == pytest.approx(np.exp(now))


def test_wealth_falls_in_epsilon() -> None:
    bound = fed(50, 4)
    wealth = [bound.log_wealth(epsilon) for epsilon in np.linspace(-5, 9, 60)]
    assert (np.diff(wealth) < 0).all()


def test_the_bound_is_where_the_wealth_reaches_its_target() -> None:
    bound = fed(90, 3)
    assert bound.value is not None
    assert bound.log_wealth(bound.value) == pytest.approx(np.log(20), abs=1e-4)


@pytest.mark.parametrize(("hits", "misses", "loss"), [(500, 0, 0.3), (497, 3, 0.6), (90_000, 10_000, 0.05)])
def test_the_price_of_stopping_at_will_is_small(hits: int, misses: int, loss: float) -> None:
    fixed, anytime = epsilon_bound(hits, hits + misses), fed(hits, misses)
    assert fixed is not None
    assert anytime.value is not None
    assert fixed - loss < anytime.value < fixed


def test_the_largest_bound_is_kept() -> None:
    bound = fed(100, 0)
    before = bound.value
    bound.update([0] * 50)
    assert bound.value == before


def test_mp_is_never_negative_and_shifted_by_equal_odds() -> None:
    assert fed(30, 70, lowest=0.0).value is None
    shifted, plain = fed(200, 0, log_odds=-1.5).value, fed(200, 0).value
    assert shifted is not None
    assert plain is not None
    assert shifted == pytest.approx(plain + 1.5, abs=1e-5)
    exact = mp_bound(200, np.full(200, -1.5))
    assert exact is not None
    assert shifted < exact


def test_several_guesses_of_one_model_are_one_observation() -> None:
    """Twenty guesses that are all right or all wrong together: the mean bound holds, counting each guess would not."""
    rng, rate, models, level = np.random.default_rng(5), 0.9, 60, 0.9
    truth, audits = scipy.special.logit(rate), 300
    too_high = naive = 0
    for _ in range(audits):
        shares = (rng.random(models) < rate).astype(float)
        bound, wrong = mean_bound(shares, level), epsilon_bound(int(20 * shares.sum()), 20 * models, level)
        too_high += bound is not None and bound > truth
        naive += wrong is not None and wrong > truth
    assert too_high <= scipy.stats.binom.isf(1e-5, audits, 1 - level)
    assert naive > scipy.stats.binom.isf(1e-5, audits, 1 - level)


def test_shares_in_between_are_worth_more_than_chance_allows() -> None:
    bound = mean_bound(np.full(400, 0.9))
    assert bound is not None
    assert scipy.special.logit(0.8) < bound < scipy.special.logit(0.9)


def test_without_a_hit_nothing_is_proven() -> None:
    assert mean_bound(np.zeros(20)) is None


def test_prints_what_is_proven() -> None:
    assert "nothing proven with 95 % confidence at any time, 0 guesses" in str(AnytimeBound())
    assert str(fed(500, 0)).startswith("ε ≥ 4.9")


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"share must be in \[0, 1\], got share=-1"):
        AnytimeBound().update(-1)
    with pytest.raises(InputError, match=r"share must be in \[0, 1\], got share=1.5"):
        AnytimeBound().update([0.5, 1.5])
    with pytest.raises(InputError, match=r"share must be in \[0, 1\], got share=nan"):
        AnytimeBound().update(np.nan)
    with pytest.raises(InputError, match="log_odds must be a number, got NaN"):
        AnytimeBound().update(1, float("nan"))
    with pytest.raises(InputError, match="level must be in"):
        AnytimeBound(0.0)
