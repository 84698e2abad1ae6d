"""Error counts: what they say of themselves, and what they refuse."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bmpaudit.attack import ErrorCounts, NotAuditable
from bmpaudit.util.errors import InputError

GOOD: dict[str, Any] = {
    "num_out": [70, 80, 0, 1, 50],
    "num_in": [30, 20, 5, 0, 50],
    "false_positives": [7, 0, 0, 1, 50],
    "false_negatives": [10, 20, 2, 0, 0],
    "prior_prob": [0.3, 0.2, 1.0, 0.0, 0.5],
}
WHOLE = "a whole number of at least 0"
MOST = "{} must be at most {}"


def test_what_follows_from_the_counts() -> None:
    counts = ErrorCounts.from_arrays(**GOOD)
    assert counts.num_nodes == 5
    assert counts.node.tolist() == [0, 1, 2, 3, 4]
    assert counts.accuracy == pytest.approx([0.83, 0.8, 0.6, 0.0, 0.5])
    assert counts.prior_odds == pytest.approx([3 / 7, 0.25, np.inf, 0.0, 1.0])
    # Always "out", then one that varies, then always "in" with one challenge, and with a hundred.
    assert counts.is_constant.tolist() == [False, True, False, True, True]
    assert not counts.is_kept.any()


def test_numbers_are_made_whole_and_cannot_be_changed() -> None:
    counts = ErrorCounts.from_arrays(**{name: np.array(values, dtype=np.float64) for name, values in GOOD.items()})
    assert counts.num_out.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        counts.num_out[0] = 3


def test_what_was_given_stays_the_callers() -> None:
    mine = {name: np.array(values) for name, values in GOOD.items()}
    counts = ErrorCounts.from_arrays(**mine)
    mine["num_out"][0] = 99
    assert counts.num_out[0] == 70


def test_one_number_stands_for_all_nodes() -> None:
    counts = ErrorCounts.from_arrays(750, 250, np.zeros(3, dtype=int), [250, 250, 1], 0.25)
    assert counts.num_out.tolist() == [750] * 3
    assert counts.prior_prob.tolist() == [0.25] * 3
    assert ErrorCounts.from_arrays(5, 5, 1, 1, 0.5).num_nodes == 1


def test_without_a_challenge_there_is_no_accuracy() -> None:
    counts = ErrorCounts.from_arrays([0, 4], [0, 4], 0, 0, 0.5)
    assert np.isnan(counts.accuracy[0])
    assert counts.accuracy[1] == 1.0


def test_nodes_may_have_names() -> None:
    counts = ErrorCounts.from_arrays(5, 5, 1, 1, 0.5, node=["Rex", "Tom"])
    assert counts.node.tolist() == ["Rex", "Tom"]
    assert not counts.is_kept.any()


def test_prints_as_a_small_table() -> None:
    left_out = (NotAuditable(7, "its prior probability is 0"),)
    counts = replace(ErrorCounts.from_arrays(**GOOD), not_auditable=left_out)
    assert str(counts).splitlines() == [
        "5 nodes, 306 challenges",
        "  false positives     58 of 201   28.9 %",
        "  false negatives     32 of 105   30.5 %",
        "  right decisions    216 of 306   70.6 %",
        "  constant decision     3 nodes  the attack learns nothing there",
        "  not auditable          1 node  left out, such as node 7: its prior probability is 0",
    ]
    assert str(ErrorCounts.from_arrays(0, 0, 0, 0, 0.5)).splitlines()[1] == "  false positives    0 of 0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"false_positives": [71, 0, 0, 1, 50]},
            f"{MOST.format('false_positives', 'num_out')}, got false_positives=71, num_out=70, for node 0",
        ),
        (
            {"false_negatives": [0, 21, 0, 0, 0]},
            f"{MOST.format('false_negatives', 'num_in')}, got false_negatives=21, num_in=20, for node 1",
        ),
        ({"num_in": [30, -1, 5, 0, 50]}, f"num_in must be {WHOLE}, got num_in=-1, for node 1"),
        ({"num_out": [70, 80.5, 0, 1, 50]}, f"num_out must be {WHOLE}, got num_out=80.5, for node 1"),
        ({"num_out": [70, np.nan, 0, 1, 50]}, f"num_out must be {WHOLE}, got num_out=nan, for node 1"),
        ({"num_out": [70, np.inf, 0, 1, 50]}, f"num_out must be {WHOLE}, got num_out=inf, for node 1"),
        ({"num_out": [70, 1e300, 0, 1, 50]}, f"num_out must be {WHOLE}, got num_out=1e+300, for node 1"),
        ({"num_out": ["70", "80", "0", "1", "50"]}, "num_out must be numbers, got <U2, for node 0"),
        ({"num_out": [True] * 5}, "num_out must be numbers, got bool, for node 0"),
        ({"prior_prob": [0.3, 0.2, 1.1, 0.0, 0.5]}, r"prior_prob must be in [0, 1], got prior_prob=1.1, for node 2"),
        ({"prior_prob": [0.3, 0.2, 0.1, -0.1, 0.5]}, r"prior_prob must be in [0, 1], got prior_prob=-0.1, for node 3"),
        ({"prior_prob": np.nan}, r"prior_prob must be in [0, 1], got prior_prob=nan, for node 0"),
        ({"prior_prob": [0.3, 0.2]}, "prior_prob must have shape (5,) as node has, got (2,)"),
        ({"num_in": np.ones((5, 1))}, "num_in must have shape (5,) as node has, got (5, 1)"),
        ({"node": [3, 4, 5, 4, 3]}, "node must be distinct, got 4 again, for node 4"),
        ({"node": [0.0, 1.0, 2.0, 3.0, 4.0]}, "node must be whole numbers or names, got float64, for node 0.0"),
        ({"node": [1, 2]}, "num_out must have shape (2,) as node has, got (5,)"),
        (dict.fromkeys(GOOD, ()), "no node is left to audit"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        ErrorCounts.from_arrays(**GOOD | change)
    assert str(refused.value) == message


def test_when_no_node_is_left_the_message_says_why() -> None:
    none: Any = np.array([], dtype=np.int64)
    left_out = (NotAuditable(0, "its prior probability is 0"), NotAuditable(1, "its prior probability is 1"))
    with pytest.raises(InputError) as refused:
        ErrorCounts(none, none, none, none, none, none, left_out)
    assert str(refused.value) == ("no node is left to audit; 2 cannot be, such as node 0: its prior probability is 0")
