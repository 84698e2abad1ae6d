import numpy as np
import pytest

from bmpaudit import InputError
from bmpaudit.shadow import ShadowRuns, label_margin

LABELS = np.array([0, 1, 2, 0])
MEMBERSHIPS = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]])
LOGITS = np.random.default_rng(0).normal(size=(3, 4, 3))


def test_logits_become_margins() -> None:
    runs = ShadowRuns.from_arrays(MEMBERSHIPS, LOGITS, LABELS)
    assert runs.num_models == 3
    assert runs.memberships.dtype == np.bool_
    assert runs.statistics["full_clean"] == pytest.approx(label_margin(LOGITS, LABELS))
    assert str(runs) == "3 shadow models of 4 nodes, views full_clean"


def test_margins_are_taken_as_they_are_for_each_view() -> None:
    margins = label_margin(LOGITS, LABELS)
    runs = ShadowRuns.from_arrays(MEMBERSHIPS.astype(bool), {"mine": margins, "other": LOGITS}, LABELS)
    assert np.array_equal(runs.statistics["mine"], margins)
    assert np.array_equal(runs.statistics["other"], margins)


@pytest.mark.parametrize(
    ("memberships", "values", "labels", "message"),
    [
        (MEMBERSHIPS[0], LOGITS, LABELS, r"memberships must have shape \(num_models, num_nodes\), got \(4,\)"),
        (MEMBERSHIPS * 2, LOGITS, LABELS, "memberships must be booleans, or 0 and 1"),
        (MEMBERSHIPS, LOGITS[:2], LABELS, r"view full_clean: must have shape \(3, 4\)"),
        (MEMBERSHIPS, LOGITS[:, :3, 0], LABELS, r"view full_clean: must have shape \(3, 4\)"),
        (MEMBERSHIPS, LOGITS, LABELS[:3], r"labels must have shape \(4,\), got \(3,\)"),
        (MEMBERSHIPS, np.where(LOGITS[..., 0] > 1, np.nan, 0.0), LABELS, "must be finite, got nan for model"),
    ],
)
def test_what_does_not_fit_is_refused(
    memberships: np.ndarray, values: np.ndarray, labels: np.ndarray, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ShadowRuns.from_arrays(memberships, values, labels)
