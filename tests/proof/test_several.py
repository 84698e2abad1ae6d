import numpy as np
import pytest
import scipy.stats
from finite_models import load_example

from bmpaudit.privacy import privacy_levels
from bmpaudit.proof import AnytimeBound, epsilon_bound, surest_hits
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Ints

example = load_example()


def bounds(hits: Ints, guesses_per_model: int) -> tuple[float | None, float | None]:
    """For BMDP and for BMP."""
    mean = AnytimeBound()
    mean.update(hits / guesses_per_model)
    return epsilon_bound(int(hits.sum()), len(hits) * guesses_per_model), mean.value


def test_the_surest_nodes_are_guessed() -> None:
    log_odds = np.array([[3.0, 1.0, 2.0, -5.0], [0.0, 0.0, 0.0, 0.0]])
    memberships = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], dtype=bool)
    assert surest_hits(log_odds, memberships, 2).tolist() == [1, 1]
    assert surest_hits(log_odds, memberships, 2, says_member=False).tolist() == [1, 1]


def test_one_guess_is_the_ordinary_bound() -> None:
    rng = np.random.default_rng(0)
    memberships = rng.random((50, 6)) < 0.5
    hits = surest_hits(np.where(memberships, 2.0, -2.0), memberships, 1)
    assert hits.tolist() == memberships.any(axis=1).tolist()
    bmdp, bmp = bounds(hits, 1)
    assert bmdp is not None
    assert bmp is not None
    assert bmp < bmdp


def test_bounds_exceed_the_truth_no_more_often_than_they_say() -> None:
    rng, audits = np.random.default_rng(1), 250
    above = np.zeros(4, dtype=int)
    for _ in range(audits):
        mechanism = example.random_mechanism(rng)
        truth, models = privacy_levels(mechanism), example.draw(mechanism, 150, rng)
        odds = mechanism.posterior_log_odds.T[models.output]
        number = int(rng.integers(1, mechanism.num_nodes + 1))
        right = bounds(surest_hits(odds, models.memberships, number), number)
        left = bounds(surest_hits(odds, models.memberships, number, says_member=False), number)
        above += [
            bound is not None and bound > value + 1e-9
            for bound, value in (
                (right[0], truth.bmdp.right),
                (left[0], truth.bmdp.left),
                (right[1], truth.bmp.right),
                (left[1], truth.bmp.left),
            )
        ]
    assert above.max() <= scipy.stats.binom.isf(1e-5, audits, 0.05)


def test_counting_each_guess_would_be_wrong_for_bmp() -> None:
    """Four nodes that are all in or all out: their guesses are right or wrong together, and count four times."""
    rng, audits, above = np.random.default_rng(2), 400, 0
    for _ in range(audits):
        mechanism = example.worst_case(rng)
        while mechanism.num_nodes != 4:
            mechanism = example.worst_case(rng)
        models, odds = example.draw(mechanism, 150, rng), mechanism.posterior_log_odds.T
        said_in = odds[models.output][:, 0] > 0
        hits = surest_hits(odds[models.output][said_in], models.memberships[said_in], mechanism.num_nodes)
        each, _ = bounds(hits, mechanism.num_nodes)
        above += each is not None and each > privacy_levels(mechanism).bmp.right
    assert above > scipy.stats.binom.isf(1e-5, audits, 0.05)


def test_bad_input() -> None:
    truth = np.ones((3, 2), dtype=bool)
    with pytest.raises(InputError, match="guesses_per_model must be at most 2, the number of nodes, got 3"):
        surest_hits(np.zeros((3, 2)), truth, 3)
    with pytest.raises(InputError, match="guesses_per_model must be a whole number of at least 1"):
        surest_hits(np.zeros((3, 2)), truth, 0)
    with pytest.raises(InputError, match="must have one shape"):
        surest_hits(np.zeros((3, 3)), truth, 1)
    with pytest.raises(InputError, match="log-odds must not be NaN"):
        surest_hits(np.full((3, 2), np.nan), truth, 1)
