from collections.abc import Callable

import numpy as np
import pytest

from bmpaudit.graph.graph import Graph
from bmpaudit.releases import label_margin
from bmpaudit.shadow import ProbabilitiesConvertedWarning, ShadowRuns
from bmpaudit.util.errors import InputError

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


NAMED = Graph.from_edges([(0, 1), (2, 3)], np.eye(4), LABELS, node_names=["Ada", "Ben", "Cy", "Di"])


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits)
    shares: np.ndarray = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def test_a_graph_stands_for_its_labels() -> None:
    runs = ShadowRuns.from_arrays(MEMBERSHIPS, LOGITS, NAMED)
    assert np.array_equal(runs.statistics["full_clean"], label_margin(LOGITS, LABELS))


@pytest.mark.parametrize("spoilt", [LOGITS, LOGITS[..., 0]], ids=["logits", "statistics"])
def test_a_value_that_is_not_finite_is_named_by_view_model_and_node(spoilt: np.ndarray) -> None:
    spoilt = spoilt.copy()
    spoilt[2, 1] = np.nan
    with pytest.raises(InputError, match="view none_noisy: must be finite, got nan for model 2, node 'Ben'"):
        ShadowRuns.from_arrays(MEMBERSHIPS, {"full_clean": LOGITS, "none_noisy": spoilt}, NAMED)
    with pytest.raises(InputError, match="view full_clean: must be finite, got nan for model 2, node 'b'"):
        ShadowRuns.from_arrays(MEMBERSHIPS, spoilt, LABELS, node_names="abcd")
    with pytest.raises(InputError, match="for model 2, node 1"):
        ShadowRuns.from_arrays(MEMBERSHIPS, spoilt, LABELS)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_are_recognised_and_converted_with_a_notice(dtype: type[np.floating]) -> None:
    with pytest.warns(ProbabilitiesConvertedWarning, match="view full_clean: the outputs are probabilities") as notices:
        runs = ShadowRuns.from_arrays(MEMBERSHIPS, softmax(LOGITS).astype(dtype), LABELS)
    assert len(notices) == 1
    assert notices[0].filename == __file__
    expected = label_margin(LOGITS, LABELS)
    assert runs.statistics["full_clean"] == pytest.approx(expected, abs=1e-2 if dtype is np.float16 else 1e-5)


def test_certain_probabilities_have_finite_margins_in_the_right_order() -> None:
    certain = np.eye(3, dtype=np.float32)[np.broadcast_to(LABELS, (3, 4))]
    certain[0, 0] = [0, 1, 0]
    almost = certain.copy()
    almost[1, 1] = [1e-6, 1 - 1e-6, 0]
    with pytest.warns(ProbabilitiesConvertedWarning):
        sure = ShadowRuns.from_arrays(MEMBERSHIPS, certain, LABELS).statistics["full_clean"]
    with pytest.warns(ProbabilitiesConvertedWarning):
        less = ShadowRuns.from_arrays(MEMBERSHIPS, almost, LABELS).statistics["full_clean"]
    assert np.isfinite(sure).all()
    assert sure[0, 0] < -50
    assert 10 < less[1, 1] < sure[1, 1]


@pytest.mark.parametrize("change", [lambda p: p * 1.01, lambda p: p - 1e-2, lambda p: np.log(p)])
def test_what_does_not_sum_to_one_is_taken_as_logits(change: Callable[[np.ndarray], np.ndarray]) -> None:
    logits = change(softmax(LOGITS))
    runs = ShadowRuns.from_arrays(MEMBERSHIPS, logits, LABELS)
    assert np.array_equal(runs.statistics["full_clean"], label_margin(logits, LABELS))


def test_no_view_and_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="at least one view, got none"):
        ShadowRuns.from_arrays(MEMBERSHIPS, {}, LABELS)
    with pytest.raises(InputError, match="view full_clean: must be real numbers, got <U1"):
        ShadowRuns.from_arrays(MEMBERSHIPS, np.full((3, 4), "a"), LABELS)
    with pytest.raises(InputError, match="node_names must have 4 names, got 3"):
        ShadowRuns.from_arrays(MEMBERSHIPS, LOGITS, LABELS, node_names="abc")
