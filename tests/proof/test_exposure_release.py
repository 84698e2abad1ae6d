import io
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from finite_models import leaky_models, noise_models

from bmpaudit.attack import (
    ChallengeScores,
    Evidence,
    Gaussian,
    Scores,
    Strong,
    Student,
    attack_performance,
    challenge,
)
from bmpaudit.io.codec import from_arrays, to_arrays
from bmpaudit.proof import ReleaseExposure, calibration, expose, recalibrate
from bmpaudit.proof.calibration import RawBins, recalibrate_bins
from bmpaudit.proof.exposure import PRECISIONS, NamingCounter, map_pulls
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import AnyFloats, Flags, Ints

PRIOR = np.full(40, 0.25)


def models_of(num_models: int = 60, num_nodes: int = 40, shift: float = 3.0) -> Evidence:
    return leaky_models(num_models, num_nodes, np.random.default_rng(0), shift)


def same(first: ReleaseExposure, second: ReleaseExposure) -> bool:
    one, other = to_arrays(first), to_arrays(second)
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k], equal_nan=True) for k in one)


def scores_of(models: Evidence) -> ChallengeScores:
    scores = challenge(Student(), models, PRIOR, {"strong": Strong()}, with_scores=True).scores
    assert scores is not None
    return scores


def uneven_models(num_models: int = 60, num_nodes: int = 40) -> Evidence:
    """A third of the nodes leaks nothing, a third a little, a third everything."""
    models = noise_models(num_models, num_nodes, np.random.default_rng(4))
    shifts = np.array([0.0, 1.6, 9.0])[np.arange(num_nodes) % 3]
    shifted = models.statistics["none"] + (shifts * models.memberships).astype(np.float32)
    return Evidence({"full": models.statistics["full"], "none": shifted}, models.memberships, models.indices)


def slow_strata(log_odds: AnyFloats, memberships: Flags) -> Ints:
    """For each model, the strata of the nodes by the other half of the models, shape (J, K)."""
    half = np.arange(len(log_odds)) >= len(log_odds) // 2
    entropy, result = scipy.stats.entropy([0.25, 0.75]), np.empty(log_odds.shape, dtype=np.int64)
    for own, node in itertools.product((False, True), range(log_odds.shape[1])):
        told = []
        for model in np.flatnonzero(half != own):
            prob, prior = scipy.special.expit(np.clip(float(log_odds[model, node]), -6, 6)), 0.25
            if not memberships[model, node]:
                prob, prior = 1 - prob, 0.75
            told.append(np.log(prob) - np.log(prior))
        share = np.mean(told) / entropy
        result[half == own, node] = int(share >= 0.1) + int(share >= 0.5)
    return result


def test_it_is_the_parts_put_together() -> None:
    """Slow reference: scores by `challenge`, a map for each stratum and tenth of the models, counts node by node."""
    models = uneven_models()
    result = expose(Student(), models, PRIOR)
    truth, log_odds = models.memberships[:, :], scores_of(models).of("strong").astype(np.float32)
    stratum, fold = slow_strata(log_odds, truth), np.arange(60) // 6
    assert set(stratum.ravel()) == {0, 1, 2}
    threshold = np.float32(scipy.special.logit(0.99))
    named, might = np.zeros((2, 60, 40), dtype=bool)
    possible = np.zeros(60)
    for number in range(3):
        halves = [(rows, stratum[rows.start] == number) for rows in (slice(0, 30), slice(30, 60))]
        bins = RawBins.of([(log_odds[rows][:, is_in], truth[rows][:, is_in]) for rows, is_in in halves])
        assert bins is not None
        is_here = stratum == number
        for own in range(10):
            learnt = recalibrate_bins(bins, np.flatnonzero(fold != own)).recalibration
            is_own, others = is_here & (fold == own)[:, None], is_here & (fold != own)[:, None]
            named[is_own] = learnt(log_odds[is_own]).astype(np.float32) >= threshold
            might[is_own] = log_odds[is_own] > log_odds[others & ~truth].max()
        right, beyond = ((each & is_here & truth).sum(axis=1) for each in (named, might))
        possible += np.maximum(right, beyond)
    curve, nodes = result.exposure.members, result.exposure.member_nodes
    k = curve.at(0.99)
    assert result.models.members_named[:, k].tolist() == named.sum(axis=1).tolist()
    assert result.models.members_correct[:, k].tolist() == (named & truth).sum(axis=1).tolist()
    assert curve.named[k] == pytest.approx(named.sum(axis=1).mean())
    assert nodes.num_named.tolist() == (named & truth).sum(axis=0).tolist()
    assert nodes.num_wrong.tolist() == (named & ~truth).sum(axis=0).tolist()
    assert nodes.num_possible.tolist() == ((named | might) & truth).sum(axis=0).tolist()
    assert curve.correct.high[k] >= possible.mean()
    assert nodes.num_named[2::3].sum() > 0.5 * truth[:, 2::3].sum()  # those that leak everything
    assert nodes.num_named[0::3].sum() == 0
    assert curve.total == 10
    assert (result.num_nodes, result.num_left_out, result.num_fitting) == (40, 0, 59)


def test_the_table_of_models() -> None:
    models = models_of()
    result = expose(Student(), models, PRIOR)
    table, scores = result.models, scores_of(models)
    assert table.index.tolist() == list(range(60))
    assert (table.num_members == 10).all()
    for model in (0, 59):
        one = replace(
            scores,
            log_likelihood_ratio=scores.log_likelihood_ratio[[model]],
            memberships=scores.memberships[[model]],
        )
        expected = attack_performance(one, "strong", (0.01,))
        assert table.auc[model] == pytest.approx(expected.auc)
        assert table.true_positive_rate[model] == expected.tpr_at_fpr[0.01]
    curve = result.exposure.members
    assert table.members_named.mean(axis=0) == pytest.approx(curve.named)
    assert table.members_correct.mean(axis=0) == pytest.approx(curve.correct.mean)
    assert table.non_members_correct.mean(axis=0) == pytest.approx(result.exposure.non_members.correct.mean)
    for effect in (table.members_effect, table.non_members_effect):
        np.testing.assert_allclose(effect.mean(axis=0), 0, atol=1e-9)
    k = curve.at(0.99)
    assert result.exposure.member_nodes.num_named.sum() == table.members_correct[:, k].sum()


def test_threads_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    models = models_of()
    one = expose(Student(), models, PRIOR, num_threads=1)
    assert same(one, expose(Student(), models, PRIOR, num_threads=2))
    monkeypatch.setattr("bmpaudit.util.matrices.MAX_BLOCK", 60 * 7)
    done: list[int] = []
    in_blocks = to_arrays(expose(Student(), models, PRIOR, progress=done.append))
    for name, values in to_arrays(one).items():
        assert values == pytest.approx(in_blocks[name], rel=1e-12, nan_ok=True), name
    assert 79 <= done[-1] <= 80
    assert done == sorted(done)


def test_of_very_many_challenges_evenly_spaced_nodes_teach_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt_on: list[int] = []

    def noted(models: Sequence[tuple[AnyFloats, Flags]], *, num_threads: int | None = None) -> RawBins | None:
        learnt_on.append(sum(raw.size for raw, _ in models))
        return bins_of(models, num_threads=num_threads)

    bins_of = RawBins.of
    monkeypatch.setattr(RawBins, "of", noted)
    monkeypatch.setattr(calibration, "MAX_CHALLENGES", 60 * 20)
    result = expose(Student(), models_of(), PRIOR)
    assert max(learnt_on) <= 60 * 20
    assert result.reliability.num_challenges.sum() == 60 * 40


def test_nodes_that_cannot_be_named_are_counted() -> None:
    prior = PRIOR.copy()
    prior[:3] = [0.0, 1.0, 1.0]
    models = models_of()
    result = expose(Student(), models, prior)
    assert (result.num_nodes, result.num_left_out) == (37, 3)
    assert result.exposure.member_nodes.node.tolist() == list(range(3, 40))
    assert result.exposure.members.total == 10
    part = expose(Student(), models.about(np.arange(10)), prior)
    assert (part.num_nodes, part.num_left_out) == (7, 3)
    assert part.exposure.members.total == pytest.approx(models.memberships[:, :10].sum(axis=1).mean())


def test_an_attack_that_cannot_leave_models_out_is_cross_fitted() -> None:
    class Folded:
        fuses_queries = True

        def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
            assert not set(fitting.indices) & set(challenged.indices)
            return Student().score(fitting, challenged, num_threads=num_threads)

    done: list[int] = []
    result = expose(Folded(), models_of(), PRIOR, progress=done.append)
    assert result.num_fitting == 54
    assert 79 <= done[-1] <= 80
    assert done == sorted(done)
    assert result.models.auc.mean() > 0.9


def test_nothing_is_named_where_nothing_leaks() -> None:
    models = noise_models(64, 40, np.random.default_rng(1))
    result = expose(Student(), models, PRIOR)
    curve = result.exposure.members
    assert curve.named[curve.at(0.9)] == 0
    assert result.reliability.expected_calibration_error < 0.02
    assert "can be named with 99 % certainty, by this attack" in result.exposure.statement()
    assert curve.correct.high[curve.at(0.99)] < 0.5


def test_what_each_model_does_to_the_map_is_what_leaving_it_out_does() -> None:
    """Limits allow for the recalibration by first-order effects; here they are compared with leaving models out."""
    models = models_of(48, shift=2.0)
    scores, truth = scores_of(models).of("strong"), models.memberships[:, :]
    bins = RawBins.of([(scores, truth)])
    assert bins is not None
    learnt = recalibrate_bins(bins)
    counter = NamingCounter(truth.shape, map_pulls(learnt, bins), np.dtype(np.float64), 1)
    nobody = np.zeros(truth.shape, dtype=np.bool_)
    counter.add(slice(0, 48), np.arange(40), learnt.recalibration(scores), truth, nobody, nobody)
    moved = counter.result().members.moved[:, PRECISIONS.index(0.9)]
    left_out = []
    for model in range(48):
        others = np.delete(np.arange(48), model)
        mapped = recalibrate(scores[others], truth[others])(scores[others])
        left_out.append(((mapped >= np.log(9)) & truth[others]).sum(axis=1).mean())
    jackknife = np.sqrt(47 / 48 * ((np.array(left_out) - np.mean(left_out)) ** 2).sum())
    assert moved.std(ddof=1) / np.sqrt(48) == pytest.approx(jackknife, rel=0.35)


def test_arrays_hold_everything() -> None:
    result = expose(Student(), models_of(), PRIOR)
    file = io.BytesIO()
    arrays: dict[str, Any] = to_arrays(result)
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        loaded = from_arrays(ReleaseExposure, stored)
    assert same(loaded, result)
    assert str(loaded) == str(result)
    assert isinstance(loaded.num_nodes, int)
    del arrays["exposure.members.correct.low"]
    with pytest.raises(InputError, match=r"array exposure\.members\.correct\.low is missing"):
        from_arrays(ReleaseExposure, arrays)
    with pytest.raises(InputError, match=r"array num_nodes must be a single value, got shape \(2,\)"):
        from_arrays(ReleaseExposure, {**to_arrays(result), "num_nodes": np.zeros(2)})


def test_bad_input() -> None:
    models = models_of(8)
    with pytest.raises(InputError, match="Gaussian does not fuse queries and takes one at a time, got full, none"):
        expose(Gaussian(), models, PRIOR)
    with pytest.raises(InputError, match=r"attack must have fuses_queries and score\(...\)"):
        expose("student", models, PRIOR)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 2 models"):
        expose(Student(), models.take([0]), PRIOR)
    with pytest.raises(InputError, match="all priors are 0 or 1"):
        expose(Student(), models, np.zeros(40))
    with pytest.raises(InputError, match="level must be in"):
        expose(Student(), models, PRIOR, level=1.0)
    everyone = Evidence(models.statistics, np.ones_like(models.memberships), models.indices)
    with pytest.raises(InputError, match="8 of 8 models have the same sample as another one"):
        expose(Student(), everyone, PRIOR)


def test_the_statement_never_holds_nan() -> None:
    """Effects of models on the map cancel but for rounding; where nobody is named, nobody is."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        num_models, num_nodes = int(rng.integers(64, 120)), int(rng.integers(6, 30))
        memberships = rng.random((num_models, num_nodes)) < 0.4
        statistic = (rng.normal(size=memberships.shape) + 0.3 * memberships).astype(np.float32)
        models = Evidence({"full": statistic}, memberships, np.arange(num_models))
        curve = expose(Gaussian(), models, np.full(num_nodes, 0.4), num_threads=1).exposure
        assert "nan" not in curve.statement()
        assert "e-" not in curve.statement()
        assert (curve.members.named >= 0).all()
        assert (curve.members.correct.high > 0).all()  # that nobody was named does not show that nobody ever is


def test_constant_scores_name_nobody() -> None:
    memberships = np.random.default_rng(0).random((40, 12)) < 0.4
    models = Evidence({"full": np.zeros((40, 12), dtype=np.float32)}, memberships, np.arange(40))
    result = expose(Gaussian(), models, np.full(12, 0.4), num_threads=1)
    assert (result.exposure.members.named[result.exposure.members.precision > 0.6] == 0).all()
    assert result.reliability.expected_calibration_error < 0.01


def test_limits_fall_as_precision_rises() -> None:
    """Whoever is named at 95 % is named at 90 %."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        memberships = rng.random((70, 30)) < 0.3
        statistic = (rng.normal(size=memberships.shape) + 1.5 * memberships).astype(np.float32)
        models = Evidence({"full": statistic}, memberships, np.arange(70))
        exposed = expose(Gaussian(), models, np.full(30, 0.3), num_threads=1).exposure
        for curve in (exposed.members, exposed.non_members):
            limits = curve.correct
            assert (np.diff(limits.low) <= 0).all()
            assert (np.diff(limits.high) <= 0).all()
            assert (limits.low <= limits.mean + 1e-9).all()
            assert (limits.mean <= limits.high + 1e-9).all()
