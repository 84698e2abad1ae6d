import numpy as np
import pytest
import scipy.special

from bmpaudit.proof import recalibrate, reliability
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags, Floats


def draw(seed: int, shape: tuple[int, int] = (60, 1000), spread: float = 2.0) -> tuple[Floats, Flags]:
    """True log-odds, and memberships drawn from them."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(-1, spread, size=shape)
    return truth, rng.random(shape) < scipy.special.expit(truth)


@pytest.mark.parametrize(
    "distort", [lambda x: x, lambda x: 3 * x, lambda x: x + 2, lambda x: x**3, lambda x: 0.2 * x - 1]
)
def test_any_monotone_distortion_is_undone(distort: object) -> None:
    assert callable(distort)
    truth, members = draw(0)
    learnt = recalibrate(distort(truth), members)
    other, other_members = draw(1)
    assert reliability(learnt(distort(other)), other_members).expected_calibration_error < 0.01
    inner = np.abs(other + 1) < 3
    assert np.abs(learnt(distort(other)) - other)[inner].mean() < 0.15


def test_order_is_kept() -> None:
    truth, members = draw(0)
    learnt = recalibrate(truth**3, members)
    grid = np.linspace(-500, 500, 5000)
    assert (np.diff(learnt(grid)) >= 0).all()
    assert (np.diff(learnt.raw) > 0).all()


def test_beyond_the_data_nothing_more_is_promised() -> None:
    truth, members = draw(0)
    learnt = recalibrate(truth, members)
    far = learnt(np.array([-np.inf, -1e6, 1e6, np.inf]))
    assert np.array_equal(far, learnt.log_odds[[0, 0, -1, -1]])
    assert np.isfinite(far).all()


def test_a_perfect_attack_is_believed_only_as_far_as_it_was_seen() -> None:
    memberships = np.random.default_rng(0).random((20, 50)) < 0.5
    learnt = recalibrate(np.where(memberships, np.inf, -np.inf), memberships)
    number = int(memberships.sum())
    assert learnt(np.array([np.inf]))[0] == pytest.approx(np.log(2 * number + 1))


def test_no_more_is_promised_than_the_highest_challenges_have_kept() -> None:
    """Twenty members at the very top, above many challenges of which nine in ten are members."""
    rng = np.random.default_rng(0)
    scores = np.sort(rng.normal(size=(1, 40_000)))
    members = (rng.random(scores.shape) < np.where(scores > 1, 0.9, 0.1)) | (np.arange(40_000) >= 39_980)
    top, bottom = scipy.special.expit(recalibrate(scores, members)(np.array([9.0, -9.0])))
    number = np.arange(20, 40_001)
    highest = (members[0, ::-1].cumsum()[19:] + 0.5) / (number + 1)
    lowest = (members[0].cumsum()[19:] + 0.5) / (number + 1)
    assert top <= highest.max() + 1e-12
    assert bottom >= lowest.min() - 1e-12


def test_reliability_by_hand() -> None:
    log_odds = scipy.special.logit(np.array([[0.15, 0.15, 0.15, 0.97]]))
    result = reliability(log_odds, np.array([[True, False, False, True]]))
    assert result.num_challenges.sum() == 4
    filled = result.num_challenges > 0
    assert result.stated[filled] == pytest.approx([0.15, 0.97])
    assert result.observed[filled] == pytest.approx([1 / 3, 1.0])
    assert result.expected_calibration_error == pytest.approx((3 * (1 / 3 - 0.15) + 0.03) / 4)


def test_calibrated_odds_are_reliable_and_overconfident_ones_are_not() -> None:
    truth, members = draw(2)
    assert reliability(truth, members).expected_calibration_error < 0.01
    assert reliability(3 * truth, members).expected_calibration_error > 0.05


def test_results_print() -> None:
    truth, members = draw(0, (20, 100))
    result = reliability(truth, members)
    assert len(result.edges) == len(result.stated) + 1
    assert str(result).startswith("expected calibration error 0.0")
    assert str(recalibrate(truth, members)).startswith("recalibrated on 2,000 challenges of 20 models")


@pytest.mark.parametrize("score", [3.0, -np.inf])
def test_equal_log_odds_stand_for_the_share_of_members(score: float) -> None:
    members = np.arange(40).reshape(4, 10) % 4 == 0
    learnt = recalibrate(np.full((4, 10), score), members)
    assert (learnt.num_models, learnt.num_challenges) == (4, 40)
    assert learnt(np.array([[-np.inf, -1.0], [score, 7.0]])) == pytest.approx(np.full((2, 2), np.log(10.5 / 30.5)))


@pytest.mark.parametrize(
    ("log_odds", "members", "message"),
    [
        (
            np.zeros((2, 3)),
            np.ones((2, 2)),
            r"must have one shape \(num_models, num_nodes\), got \(2, 3\) and \(2, 2\)",
        ),
        (np.full((1, 2), np.nan), np.array([[True, False]]), "log-odds must not be NaN"),
        (np.zeros((1, 2)), np.array([[True, True]]), "memberships must hold both sides, got no non-member"),
        (np.zeros((1, 2)), np.array([[False, False]]), "memberships must hold both sides, got no member"),
    ],
)
def test_bad_input(log_odds: Floats, members: Flags, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recalibrate(log_odds, members)
    with pytest.raises(InputError, match="log-odds must not be NaN"):
        recalibrate(*draw(0, (10, 50)))(np.array([np.nan]))
