"""Differences between two audits, the models being the units."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from compare_fixture import SNOWBALL, UNIFORM, made_audit, weak

from bmpaudit.comparison.compare import compare, difference_of_shares, verdict
from bmpaudit.comparison.sides import (
    AUC,
    HELD_OUT_ACCURACY,
    NAMED_99,
    ComparedAudit,
    Mean,
    ModelDifference,
    ModelFigures,
    compared_audits,
    independent_difference,
    model_differences,
    named_with,
    paired_difference,
    same_samples,
)
from bmpaudit.proof.exposure import band

RUNS = 2_000


def figures(values: np.ndarray, effects: np.ndarray | None = None, index: np.ndarray | None = None) -> ModelFigures:
    shared = {} if effects is None else {AUC.name: effects}
    return ModelFigures(np.arange(len(values)) if index is None else index, {AUC.name: values}, shared)


def farther(mean: float, first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float, float]:
    return mean, min(first[0], second[0]), max(first[1], second[1])


def test_paired_limits_are_the_farther_of_a_t_test_and_the_exposures() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=30), rng.gamma(0.5, 10, size=30)
    found = paired_difference(figures(first), figures(second), AUC, np.arange(30))
    assert found is not None
    plain = scipy.stats.ttest_rel(second, first).confidence_interval(0.95)
    skewed = band((second - first)[:, None], 0.95)
    corrected = float(skewed.low[0]), float(skewed.high[0])
    assert corrected[0] > plain.low  # a long tail above: both limits are higher
    assert corrected[1] > plain.high
    wanted = farther(float((second - first).mean()), (plain.low, plain.high), corrected)
    assert astuple(found.change) == pytest.approx(wanted)
    assert found.num_models == (30, 30)


def test_independent_limits_are_the_farther_of_welch_and_hall() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=30), 3 * rng.gamma(0.5, size=12)
    found = independent_difference(figures(first), figures(second), AUC)
    assert found is not None
    welch = scipy.stats.ttest_ind(second, first, equal_var=False)
    plain, parts = welch.confidence_interval(0.95), [(second, 1), (first, -1)]
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each, _ in parts))
    a = sum(sign * scipy.stats.moment(each, 3) / len(each) ** 2 for each, sign in parts) / error**3
    mean = second.mean() - first.mean()

    def transformed(truth: float) -> float:
        t = (mean - truth) / error
        return float(t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6)

    quantile = scipy.stats.t.ppf(0.975, welch.df)
    ends = (
        scipy.optimize.brentq(lambda truth, end=end: transformed(truth) - end, mean - 40 * error, mean + 40 * error)
        for end in (quantile, -quantile)
    )
    low, high = ends
    assert astuple(found.change) == pytest.approx(farther(mean, (plain.low, plain.high), (low, high)))
    # All of the second's, if the first does not vary: as a band of it alone.
    still = independent_difference(figures(np.zeros(30)), figures(second), AUC)
    assert still is not None
    assert still.change.high == pytest.approx(float(band(second[:, None], 0.95).high[0]))


def test_side_by_side_are_the_limits_of_the_exposure() -> None:
    first, _ = audits({}, {"noise_seed": 1})
    for certainty in (0.9, 0.99):
        found, of_models = first.mean(named_with(certainty)), first.models.mean(named_with(certainty))
        assert found is not None
        assert of_models is not None
        row = first.result.exposure.named(certainty)
        assert (found.mean, found.low, found.high) == (row.correct, row.correct_low, row.correct_high)
        # Those of the models alone, of which the audit takes the farther side, with what they cannot refute.
        table = first.audit.main_findings.exposure.models
        k = list(table.precision).index(certainty)
        alone = band((table.members_correct + table.members_effect)[:, [k]], 0.95)
        assert astuple(of_models) == pytest.approx((row.correct, float(alone.low[0]), float(alone.high[0])))
        assert of_models.high <= row.correct_high + 1e-9


def test_unknown_values_are_left_out() -> None:
    first, second = np.array([1.0, 2.0, np.nan, 4.0]), np.array([2.0, np.nan, 1.0, 6.0])
    (paired,) = model_differences(figures(first), figures(second), np.arange(4), [AUC])
    assert (paired.change.mean, paired.num_models) == (1.5, (2, 2))
    (apart,) = model_differences(figures(first), figures(second), np.zeros(0, dtype=int), [AUC])
    assert apart.change.mean == pytest.approx(3 - 7 / 3)
    assert apart.num_models == (3, 3)
    known_elsewhere = figures(np.array([np.nan, 7.0, 9.0, np.nan]))
    (fallen_back,) = model_differences(figures(first), known_elsewhere, np.arange(4), [AUC])
    assert (fallen_back.is_paired, fallen_back.num_models) == (False, (3, 2))
    assert fallen_back.change.mean == pytest.approx(8 - 7 / 3)
    unknown = figures(np.full(4, np.nan))
    assert model_differences(figures(first), unknown, np.arange(4), [AUC]) == ()
    assert model_differences(figures(first), unknown, np.zeros(0, dtype=int), [AUC]) == ()


def test_pairs_are_found_by_the_number_of_the_model() -> None:
    first = figures(np.array([1.0, 2.0, 3.0]), index=np.array([0, 2, 5]))
    second = figures(np.array([9.0, 2.5, 3.7]), index=np.array([1, 2, 5]))
    found = paired_difference(first, second, AUC, np.array([2, 5]))
    assert found is not None
    assert found.change.mean == pytest.approx(0.6)


@pytest.mark.parametrize("is_paired", [True, False])
def test_intervals_hold_as_often_as_they_should(is_paired: bool) -> None:
    """Skewed counts whose expectation depends on the sample; the truth is a difference of -1."""
    rng = np.random.default_rng(2)
    held, widths = 0, []
    for _ in range(RUNS):
        ease = rng.gamma(4.0, 1.0, size=40)
        other_ease = ease if is_paired else rng.gamma(4.0, 1.0, size=40)
        first, second = rng.poisson(ease + 2), rng.poisson(other_ease + 1)
        pairs = np.arange(40) if is_paired else np.zeros(0, dtype=int)
        (found,) = model_differences(figures(first.astype(float)), figures(second.astype(float)), pairs, [AUC])
        assert found.is_paired == is_paired
        held += found.change.low <= -1 <= found.change.high
        widths.append(found.change.high - found.change.low)
    # 95 % nominal; the standard error of the share is 0.5 %.
    assert 0.93 <= held / RUNS <= 0.97


@pytest.mark.parametrize("is_paired", [True, False])
@pytest.mark.parametrize("is_one_quiet", [True, False])
def test_intervals_hold_for_skewed_numbers(is_paired: bool, is_one_quiet: bool) -> None:
    """One model in ten names anyone; the plain t misses in 10 % of cases if no model of the other audit does."""
    rng = np.random.default_rng(4)
    pairs = np.arange(40) if is_paired else np.zeros(0, dtype=int)
    missed = 0
    for _ in range(RUNS):
        named = np.where(rng.random((2, 40)) < 0.1, rng.poisson(20, size=(2, 40)), 0).astype(float)
        first = np.zeros(40) if is_one_quiet else named[0]
        (found,) = model_differences(figures(first), figures(named[1]), pairs, [AUC])
        truth = 2.0 if is_one_quiet else 0.0
        missed += not found.change.low <= truth <= found.change.high
    assert missed / RUNS <= 0.065  # 5 % and three standard errors


@pytest.mark.parametrize("num_only_first", [0, 40])
def test_intervals_allow_for_what_the_models_share(num_only_first: int) -> None:
    """All models of an audit are shifted by a calibration that was learnt from them: by the mean of what each says."""
    rng = np.random.default_rng(3)
    held, held_without = 0, 0
    for _ in range(RUNS):
        said = rng.normal(scale=3.0, size=(2, 40 + num_only_first))
        said[1, :40] += said[0, :40]  # the same samples say nearly the same
        parts = []
        for each in (said[0], said[1, :40]):
            effects = each - each.mean()
            parts.append((rng.normal(size=len(each)) + each.mean(), effects))
        pairs = np.arange(40)
        found = paired_difference(figures(*parts[0]), figures(*parts[1]), AUC, pairs)
        without = paired_difference(figures(parts[0][0]), figures(parts[1][0]), AUC, pairs)
        assert found is not None
        assert without is not None
        held += found.change.low <= 0 <= found.change.high
        held_without += without.change.low <= 0 <= without.change.high
    assert 0.93 <= held / RUNS <= 0.97
    assert held_without / RUNS < 0.8


def audits(first: dict[str, Any], second: dict[str, Any]) -> tuple[ComparedAudit, ...]:
    return compared_audits([made_audit(weak(), **options) for options in (first, second)], "right")


def test_models_are_paired_only_where_samples_agree() -> None:
    same = audits({}, {"noise_seed": 1})
    assert same_samples(*same).tolist() == list(range(24))
    fewer = audits({}, {"plan": UNIFORM.replace(shadows=16)})
    assert same_samples(*fewer).tolist() == list(range(16))
    for other in ({"plan": UNIFORM.replace(seed=1)}, {"plan": SNOWBALL}, {"graph_hash": "other"}):
        assert not len(same_samples(*audits({}, other)))


def test_the_comparison_says_which_and_how_many() -> None:
    first = made_audit(weak())
    paired = compare([first, made_audit(weak(), noise_seed=1)]).differences[0]
    assert paired.basis == "24 pairs of models with the same training sample"
    fewer = compare([first, made_audit(weak(), plan=UNIFORM.replace(shadows=16))])
    assert fewer.differences[0].basis == "16 pairs of models with the same training sample"
    assert any("24 shadow models" in caution and "16" in caution for caution in fewer.cautions)
    apart = compare([first, made_audit(weak(), plan=UNIFORM.replace(seed=1, shadows=16))]).differences[0]
    assert apart.basis == "independent models, 24 and 16"


def test_figures_that_too_few_pairs_know_are_said_to_be_from_independent_models() -> None:
    first, other = made_audit(weak()), made_audit(weak(), noise_seed=1)
    first.runs.held_out_accuracy[12:] = np.nan
    other.runs.held_out_accuracy[:10] = np.nan
    other.runs.held_out_accuracy[12:14] = np.nan
    first.runs.held_out_accuracy[10:12] = np.nan
    difference = compare([first, other]).differences[0]
    by_quantity = {each.quantity: each for each in difference.models}
    accuracy, named = by_quantity[HELD_OUT_ACCURACY], by_quantity[NAMED_99]
    assert (accuracy.is_paired, accuracy.num_models, named.is_paired) == (False, (10, 12), True)
    assert difference.basis == (
        "24 pairs of models with the same training sample; held-out accuracy: from independent models, 10 and 12"
    )


def test_accuracy_is_that_of_the_release() -> None:
    audit = made_audit(weak())
    result = compare([(audit, "clean"), (audit, "noisy")])
    clean, noisy = (each.models.mean(HELD_OUT_ACCURACY) for each in result.audits)
    assert clean is not None
    assert noisy is not None
    assert clean.mean == pytest.approx(float(audit.runs.held_out_accuracy.mean(dtype=np.float64)))
    assert noisy.mean == pytest.approx(clean.mean - 0.1, abs=1e-6)
    assert "held-out accuracy is 10 points lower" in result.verdicts[0]


def test_a_defence_that_does_nothing_cannot_be_told_apart() -> None:
    """The same leakage, other noise: intervals contain 0, but for the one in twenty that may miss."""
    missed = 0
    first = made_audit(weak(), leakage=1.0)
    for seed in range(1, 9):
        difference = compare([first, made_audit(weak(), leakage=1.0, noise_seed=seed)]).differences[0]
        (auc,) = (each for each in difference.models if each.quantity == AUC)
        missed += auc.change.is_apart_from_0
    assert missed <= 3  # P(more than 3 of 8) is 0.0004 at 5 %


def test_audits_without_leakage_are_told() -> None:
    quiet = [made_audit(weak(), leakage=0.0, noise_seed=seed, is_leakage_found=False) for seed in (1, 2)]
    result = compare(quiet)
    assert result.estimated is None
    assert result.to_dict()["estimated"] is None
    assert result.verdicts[0].startswith("No leakage was found in tiny, Uniform 25 %, GCN (1) or in ")
    mixed = compare([made_audit(weak()), quiet[0]])
    assert "No leakage was found in tiny, Uniform 25 %, GCN (2)." in mixed.verdicts[0]
    assert mixed.estimated is not None
    assert any("its estimate means little" in caution for caution in mixed.estimated.cautions)
    # 24 models are too few to settle the exposure.
    assert "GCN (1) and tiny, Uniform 25 %, GCN (2) is open: more models would narrow it down." in mixed.verdicts[0]


def test_difference_of_shares_is_newcombe_and_holds() -> None:
    # Newcombe (1998), table II, method 10: 56/70 - 48/80, 9/10 - 3/10, 5/56 - 0/29.
    hits_2, trials_2 = np.array([56, 9, 5]), np.array([70, 10, 56])
    hits_1, trials_1 = np.array([48, 3, 0]), np.array([80, 10, 29])
    low, high = difference_of_shares(hits_1, trials_1, hits_2, trials_2)
    np.testing.assert_allclose(low, [0.0524, 0.1705, -0.0381], atol=5e-5)
    np.testing.assert_allclose(high, [0.3339, 0.8090, 0.1926], atol=5e-5)
    # Exact coverage: every outcome, weighed by its probability.
    a, b = np.meshgrid(np.arange(21), np.arange(31), indexing="ij")
    low, high = difference_of_shares(a, np.full_like(a, 20), b, np.full_like(b, 30))
    assert (low >= -1).all()
    assert (high <= 1).all()
    coverage = []
    for one in np.linspace(0.02, 0.98, 17):
        for two in np.linspace(0.02, 0.98, 17):
            weight = scipy.stats.binom.pmf(a, 20, one) * scipy.stats.binom.pmf(b, 30, two)
            coverage.append(weight[(low <= two - one) & (two - one <= high)].sum())
    assert np.mean(coverage) >= 0.95
    assert np.min(coverage) >= 0.9


def test_nodes_are_ranked_by_the_nearer_end_of_their_change() -> None:
    result = compare([made_audit(weak()), made_audit(weak(), leakage=0.0, noise_seed=3)])
    table = result.differences[0].nodes.table
    nearer = np.maximum(np.maximum(table["change_low"], -table["change_high"]), 0)
    assert (np.diff(nearer) <= 0).all()
    assert (table["change_low"] <= table["change"]).all()
    assert (table["change"] <= table["change_high"]).all()


def test_a_release_that_was_not_tested_is_not_said_to_leak_nothing() -> None:
    audit = made_audit(weak(), leakage=0.0, is_leakage_found=False)
    clean, noisy = compared_audits([(audit, "clean"), (audit, "noisy")], "right")
    assert (clean.is_leakage_found, noisy.is_leakage_found) == (False, None)
    changes = [ModelDifference(NAMED_99, Mean(1.0, -1.0, 3.0), is_paired=True, num_models=(24, 24))]
    for first, other in ((clean, noisy), (noisy, clean)):
        said = verdict(first, other, changes)
        assert said.startswith(f"{other.label} and {first.label} cannot be told apart: ")
        assert "No leakage was found in clean. " in said
        assert "found in noisy" not in said
        assert "That noisy leaks is not proven, and the permutation test was on the release clean alone." in said
    assert "No leakage was found" not in verdict(noisy, replace(noisy, label="again"), changes)


def test_verdicts_in_words() -> None:
    first, other = audits({}, {"noise_seed": 1})

    def said(named: Mean, accuracy: Mean | None = None) -> str:
        changes = [ModelDifference(NAMED_99, named, is_paired=True, num_models=(24, 24))]
        if accuracy is not None:
            changes.append(ModelDifference(HELD_OUT_ACCURACY, accuracy, is_paired=True, num_models=(24, 24)))
        return verdict(replace(first, label="A"), replace(other, label="B"), changes)

    assert said(Mean(-31.2, -34.4, -28.1), Mean(-0.004, -0.006, -0.002)).startswith(
        "B exposes 31 fewer training nodes per released model than A (28 to 34 fewer; estimated, named with 99 % "
        "certainty), and held-out accuracy is 0.4 points lower (0.2 to 0.6). "
    )
    assert said(Mean(3.0, 0.04, 5.96)).startswith(
        "B exposes 3.00 more training nodes per released model than A (0.04 to"
    )
    assert said(Mean(1.0, -1.0, 3.0), Mean(0.0, -0.001, 0.001)).startswith(
        "B and A cannot be told apart: the difference in training nodes exposed per released model is −1.0 to +3.0 "
        "(estimated, named with 99 % certainty), and no difference in held-out accuracy can be told (−0.1 to +0.1 "
        "points). "
    )
