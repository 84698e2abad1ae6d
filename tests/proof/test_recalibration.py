import numpy as np
import pytest
import scipy.special

from bmpaudit.attack import Evidence
from bmpaudit.proof import recalibrate, reliability
from bmpaudit.proof.calibration import NodeRecalibration, RawBins, gains, recalibrate_bins, strata
from bmpaudit.proof.exposure import LeftOut, recalibrate_nodes
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


def uneven(seed: int) -> tuple[Floats, Flags]:
    """Log-odds about nodes that leak nothing, a little, and everything; all are too sure by a factor of two."""
    truth, _ = draw(seed, (80, 90))
    truth = -1 + (truth + 1) * np.array([0.0, 0.8, 6.0])[np.arange(90) % 3]
    return 2 * truth, np.random.default_rng(seed + 100).random(truth.shape) < scipy.special.expit(truth)


def test_gains_and_strata_by_hand() -> None:
    log_odds = np.array([[3.0, 0.0, -9.0, 9.0], [-2.0, 0.0, 9.0, -9.0]])
    memberships = np.array([[1, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
    prior = scipy.special.logit(np.array([0.5, 0.5, 0.25, 0.25]))
    probs = scipy.special.expit(np.clip(log_odds, -6, 6))
    told = np.log(
        np.where(memberships, probs, 1 - probs) / np.where(memberships, [0.5, 0.5, 0.25, 0.25], [0.5, 0.5, 0.75, 0.75])
    )
    np.testing.assert_allclose(gains(log_odds, memberships, prior), told.sum(axis=0), atol=1e-12)
    assert strata(told.sum(axis=0), 2, prior).tolist() == [2, 0, 0, 2]
    entropy = np.log(2)
    assert strata(np.array([0.099, 0.101, 0.499, 0.501]) * 7 * entropy, 7, np.zeros(4)).tolist() == [0, 1, 1, 2]


def learnt_from(log_odds: Floats, members: Flags, prior: Floats) -> NodeRecalibration:
    table = log_odds.astype(np.float32)
    models = Evidence({"full": table}, members, np.arange(len(table)))
    return recalibrate_nodes(LeftOut(models, prior, table, np.ones(len(prior), dtype=np.bool_), 1, None))


def test_nodes_of_each_strength_have_their_own_map() -> None:
    log_odds, members = uneven(0)
    log_odds = log_odds.astype(np.float32)
    learnt = learnt_from(log_odds, members, np.full(90, -1.0))
    assert learnt.num_models == 80
    assert set(learnt.stratum[0::3]) == {0}
    assert set(learnt.stratum[2::3]) == {2}
    halves, prior = (slice(0, 40), slice(40, 80)), np.full(90, -1.0)
    of_half = [strata(gains(log_odds[half], members[half], prior), 40, prior) for half in halves]
    for number, own in enumerate(learnt.maps):
        is_here = learnt.stratum == number
        # What is learnt from are nodes that the other half of the models puts there.
        parts = [(half, other == number) for half, other in zip(halves, of_half[::-1], strict=True)]
        bins = RawBins.of([(log_odds[half][:, is_in], members[half][:, is_in]) for half, is_in in parts])
        assert bins is not None
        expected = recalibrate_bins(bins).recalibration
        np.testing.assert_array_equal(own.log_odds, expected.log_odds)
        np.testing.assert_array_equal(learnt(log_odds)[:, is_here], expected(log_odds[:, is_here]))
        for end, reached in zip((-np.inf, np.inf), learnt.reachable(), strict=True):
            np.testing.assert_array_equal(reached[is_here], expected(np.array([end]))[0])
    np.testing.assert_array_equal(learnt(log_odds[3]), learnt(log_odds)[3])
    fresh, fresh_members = uneven(1)
    assert reliability(learnt(fresh), fresh_members).expected_calibration_error < 0.02


def test_without_nodes_of_a_strength_there_is_no_map() -> None:
    members = np.random.default_rng(0).random((20, 5)) < 0.4
    learnt = learnt_from(np.zeros((20, 5)), members, np.zeros(5))
    assert len(learnt.maps) == 1
    share = (members.sum() + 0.5) / 101
    assert learnt(np.full(5, 8.0)) == pytest.approx(np.full(5, scipy.special.logit(share)))
    assert np.array(learnt.reachable()) == pytest.approx(np.full((2, 5), scipy.special.logit(share)))
    assert not np.any(learnt.beyond(np.zeros(5)))


def test_bins_of_parts_are_those_of_the_whole() -> None:
    truth, members = draw(0, (20, 300))
    whole, parts = RawBins.of([(truth, members)]), RawBins.of([(truth[:7], members[:7]), (truth[7:], members[7:])])
    assert whole is not None
    assert parts is not None
    for name, values in vars(whole).items():
        np.testing.assert_array_equal(values, getattr(parts, name), err_msg=name)
    ragged = RawBins.of([(truth[:7], members[:7]), (truth[7:, :40], members[7:, :40])])
    assert ragged is not None
    assert ragged.num_challenges.sum(axis=1).tolist() == [300] * 7 + [40] * 13
    assert ragged.num_members.sum(axis=1).tolist() == [*members[:7].sum(axis=1), *members[7:, :40].sum(axis=1)]


def test_equal_log_odds_have_no_bins() -> None:
    assert RawBins.of([(np.full((3, 2), 1.5), np.ones((3, 2), dtype=bool))]) is None
    assert RawBins.of([(np.zeros((3, 0)), np.ones((3, 0), dtype=bool))]) is None


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
