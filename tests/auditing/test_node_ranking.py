"""The order of nodes by risk."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bmpaudit.auditing.nodes import node_accuracy, ranked_nodes
from bmpaudit.proof import NodeExposure


def table(
    named: list[int],
    models: list[int],
    errors: list[tuple[int, int]] | None = None,
    named_wrongly: list[int] | None = None,
    p_value: list[float] | None = None,
    is_leaking: list[bool] | None = None,
) -> pd.DataFrame:
    """Nodes with such exposure as members, and errors among 10 challenges of either side."""
    num_wrong = np.array(named_wrongly or [0] * len(named))
    exposed = NodeExposure(np.arange(len(named)), np.array(models), np.array(named), num_wrong, np.array(models), 0.95)
    wrong = np.array(errors or [(5, 5)] * len(named))
    return pd.DataFrame(
        {
            "node": exposed.node,
            "member_named": exposed.num_named,
            "member_wrong": exposed.num_wrong,
            "member_exposure": exposed.share,
            "member_exposure_low": exposed.low,
            "false_positives": pd.array(wrong[:, 0], dtype="Int64"),
            "false_negatives": pd.array(wrong[:, 1], dtype="Int64"),
            "num_out": 10,
            "num_in": 10,
            "p_value": p_value or [0.5] * len(named),
            "is_leaking": is_leaking or [False] * len(named),
        }
    )


def test_the_lower_limit_decides_and_then_the_share() -> None:
    # 1 of 1 is less certain than 40 of 50; nobody knows anything of a node in no model.
    assert ranked_nodes(table([1, 40, 0, 0, 45], [1, 50, 30, 0, 50]))["node"].tolist() == [4, 1, 0, 2, 3]


def test_of_nodes_that_nobody_names_the_ones_proven_to_leak_come_first() -> None:
    p_value, is_leaking = [0.9, 0.005, 0.3, 0.0005, np.nan, 0.005, 1.0], [False, True, False, True, False, True, False]
    # The last one is named once; of equal p-values, the attack is right about number 5 more often.
    errors = [(5, 5)] * 5 + [(1, 1), (9, 9)]
    nodes = table([0] * 6 + [1], [20] * 7, errors, p_value=p_value, is_leaking=is_leaking)
    assert ranked_nodes(nodes)["node"].tolist() == [6, 3, 5, 1, 2, 0, 4]


def test_a_node_that_is_always_guessed_wrong_comes_after_all_others() -> None:
    wrong, right, guessed = (10, 10), (0, 0), (0, 10)
    nodes = table([0] * 4, [10] * 4, [wrong, guessed, right, guessed])
    assert ranked_nodes(nodes)["node"].tolist() == [2, 1, 3, 0]
    np.testing.assert_allclose(node_accuracy(nodes), [1 / 12, 0.5, 11 / 12, 0.5])  # 10 of 12 of the way


def test_exposure_agrees_with_the_order_of_the_proof() -> None:
    rng = np.random.default_rng(0)
    models = rng.integers(1, 30, 200)
    named = rng.binomial(models, rng.beta(0.5, 2, 200))
    wrong = rng.binomial(10, rng.beta(0.5, 4, 200))
    nodes = table(named.tolist(), models.tolist(), named_wrongly=wrong.tolist())
    exposed = NodeExposure(np.arange(200), models, named, wrong, models, 0.95)
    np.testing.assert_array_equal(ranked_nodes(nodes)["node"], exposed.ranked())


def test_unknown_errors_are_no_accuracy() -> None:
    nodes = table([0, 0], [3, 3])
    nodes.loc[0, ["false_positives", "false_negatives"]] = pd.NA
    assert ranked_nodes(nodes)["node"].tolist() == [1, 0]
    assert node_accuracy(nodes) == pytest.approx([np.nan, 0.5], nan_ok=True)


def test_few_challenges_and_constant_decisions_are_close_to_guessing() -> None:
    nodes = table([0] * 3, [3] * 3, [(0, 3), (0, 0), (0, 0)])
    nodes["num_out"], nodes["num_in"] = [80, 80, 80], [3, 3, 0]
    # Never says "member"; right about 3 members; was in no sample.
    assert node_accuracy(nodes) == pytest.approx([0.5, 0.5 + 3 / 5 / 2, 0.5])
