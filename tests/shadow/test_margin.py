import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmpaudit.releases import label_margin
from bmpaudit.util.errors import InputError


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=6), st.integers(0, 5))
def test_margin_is_the_log_odds_of_the_label(logits: list[float], label: int) -> None:
    label %= len(logits)
    weights = np.exp(np.array(logits) - max(logits))
    with np.errstate(divide="ignore"):
        expected = np.log(weights[label]) - np.log(np.delete(weights, label).sum())
    assert label_margin([logits], [label])[0] == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_margin_of_huge_logits_is_exact_and_finite() -> None:
    assert label_margin([[1e4, -1e4], [-1e4, 1e4]], [0, 0]).tolist() == [2e4, -2e4]


def test_margin_takes_any_leading_shape() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    labels = np.array([0, 4, 2, 1])
    assert label_margin(logits, labels)[1, 2] == pytest.approx(label_margin(logits[1, 2], labels))


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "logits must have shape"),
        (np.zeros((2, 1)), [0, 0], "at least 2 classes"),
        (np.zeros((2, 2)), [0, 2], r"labels must be in \[0, 2\), got 0 to 2"),
    ],
)
def test_what_does_not_fit_is_refused(logits: np.ndarray, labels: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        label_margin(logits, labels)
