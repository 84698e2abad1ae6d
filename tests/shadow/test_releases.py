"""What each release gives out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from bmpaudit import registry
from bmpaudit.registry import RELEASE
from bmpaudit.releases import LabelOnly, NoisyOutputs, OutputRelease, Rounded, Temperature, TopClasses, label_margin
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats32

LOGITS = np.random.default_rng(1).normal(0, 4, size=(500, 6)).astype(np.float32)
LABELS = np.arange(500) % 6


def given(release: OutputRelease, logits: Floats32 = LOGITS, seed: int = 0) -> Floats32:
    before = logits.copy()
    outputs = release.outputs(logits, np.random.default_rng(seed))
    assert np.array_equal(logits, before)
    assert outputs.dtype == np.float32
    assert outputs.shape == logits.shape
    assert release.last_layer_noise == 0.0
    assert release.changes_outputs
    return outputs


def test_noise_on_outputs_is_gaussian_and_drawn_anew_for_each_answer() -> None:
    many = np.zeros((20_000, 4), dtype=np.float32)
    noise = given(NoisyOutputs(output_noise=0.7), many)
    assert abs(noise.mean()) < 4 * 0.7 / math.sqrt(noise.size)
    assert abs(noise.std() / 0.7 - 1) < 4 / math.sqrt(2 * noise.size)
    rng = np.random.default_rng(0)
    first, second = (NoisyOutputs(0.7).outputs(many, rng) for _ in range(2))
    assert np.array_equal(first, noise)
    assert not np.array_equal(first, second)
    assert np.array_equal(given(NoisyOutputs(0.0)), LOGITS)


@pytest.mark.parametrize("digits", [1, 3])
def test_rounded_probabilities_have_so_many_digits(digits: int) -> None:
    shown, unit = np.exp(given(Rounded(digits)).astype(np.float64)), 10.0**-digits
    expected = softmax(LOGITS.astype(np.float64), axis=1).round(digits)
    is_zero = expected == 0
    assert is_zero.any()
    assert np.allclose(shown[~is_zero], expected[~is_zero], rtol=1e-6)
    assert np.allclose(shown[is_zero], unit / 4)
    assert len(np.unique(given(Rounded(digits)))) <= 10**digits + 1


def test_outputs_that_would_overflow_are_finite() -> None:
    extreme = np.array([[1e4, -1e4, 0.0, 3e38, -3e38, 5.0]], dtype=np.float32)
    for release in (Rounded(), TopClasses(), LabelOnly()):
        outputs = given(release, extreme)
        assert np.isfinite(outputs).all()
        assert outputs.argmax() == 3


def test_temperature_divides_and_hides_nothing_from_who_knows_it() -> None:
    cooled = given(Temperature(2.5))
    assert np.allclose(2.5 * cooled, LOGITS, rtol=1e-6)


@pytest.mark.parametrize("top", [1, 3, 5])
def test_the_likeliest_classes_keep_their_probabilities_and_others_share_the_rest(top: int) -> None:
    shown = np.exp(given(TopClasses(top)).astype(np.float64))
    true = softmax(LOGITS.astype(np.float64), axis=1)
    assert np.allclose(shown.sum(axis=1), 1, rtol=1e-6)
    for row, expected in zip(shown[:50], true[:50], strict=True):
        best = sorted(range(6), key=lambda c, expected=expected: -expected[c])[:top]  # type: ignore[misc]
        rest = [c for c in range(6) if c not in best]
        assert np.allclose(row[best], expected[best], rtol=1e-6)
        assert np.allclose(row[rest], expected[rest].sum() / len(rest), rtol=1e-5)


def test_all_but_one_class_is_all_of_them() -> None:
    assert np.allclose(given(TopClasses(5)), log_softmax(LOGITS.astype(np.float64), axis=1), atol=1e-5)


def test_a_label_is_right_where_its_margin_is_positive() -> None:
    outputs = given(LabelOnly())
    margins = label_margin(outputs, LABELS)
    assert np.array_equal(margins > 0, LOGITS.argmax(axis=1) == LABELS)
    assert len(np.unique(margins)) == 2
    assert np.array_equal(outputs, given(LabelOnly(), 3 * LOGITS + 1)), "nothing but the label shows"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "noisy-outputs", "output_noise": -1.0}, "output_noise must be at least 0, got output_noise=-1.0"),
        ({"name": "rounded", "digits": 0}, "digits must be from 1 to 6, got digits=0"),
        ({"name": "rounded", "digits": 7}, "digits must be from 1 to 6, got digits=7"),
        ({"name": "temperature", "temperature": 0.0}, "temperature must be positive, got temperature=0.0"),
        ({"name": "top", "top": 0}, "top must be a whole number of at least 1, got top=0"),
        ({"name": "label-only", "digits": 2}, "digits"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        registry.build(RELEASE, settings)


def test_as_many_classes_as_there_are_leave_none_out() -> None:
    with pytest.raises(InputError, match="top must be less than the number of classes, 6, got top=6"):
        TopClasses(6).outputs(LOGITS, np.random.default_rng(0))
