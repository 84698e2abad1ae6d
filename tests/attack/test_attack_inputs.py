"""What an attack refuses, in one line that names the thing, the bound and the value."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from slow_attack import GAUSSIAN, QUERY, RULES, make_models, random_memberships, scores_of

from bmpaudit.attack import DecisionSettings, Evidence, Gaussian, challenge, node_mia
from bmpaudit.graph.graph import Graph
from bmpaudit.util.errors import InputError

MEMBERS = random_memberships(20, 6, seed=1)
MODELS = make_models(MEMBERS, np.random.default_rng(1).normal(size=MEMBERS.shape))
PRIOR = np.full(6, 0.4)
NAMES = ("alice", "bob", "carol", "dave", "erin", "frank")
GRAPH = Graph.from_edges([[0, 1]], np.eye(6), [0, 1, 0, 1, 0, 1], node_names=NAMES)
NAMED = Evidence(MODELS.statistics, MEMBERS, MODELS.indices, GRAPH)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "bold"}, "rule must be one of strong, weak, or module:Name of your own, got 'bold'"),
        ({"prior_prob": "uniform"}, "prior_prob must be an array or 'shadow-frequency', got 'uniform'"),
        ({"prior_prob": [0.4] * 5}, "prior_prob must have shape (6,), one for each node of the graph, got (5,)"),
        ({"prior_prob": 0.4}, "prior_prob must have shape (6,), one for each node of the graph, got ()"),
        ({"prior_prob": [0.4, 1.1, 0, 0, 0, 0]}, "prior_prob must be in [0, 1], got prior_prob=1.1 for node 1"),
        ({"prior_prob": [0.4, np.nan, 0, 0, 0, 0]}, "prior_prob must be in [0, 1], got prior_prob=nan for node 1"),
        ({"targets": [0, 6]}, "targets must be in [0, 6), got 6"),
        ({"targets": [-1]}, "targets must be in [0, 6), got -1"),
        ({"targets": [1, 2, 1]}, "targets must be distinct"),
        ({"targets": []}, "targets must be a list of node ids, at least one, got float64 of shape (0,)"),
        ({"targets": [0.5]}, "targets must be a list of node ids, at least one, got float64 of shape (1,)"),
        ({"targets": [True, False]}, "targets must be a list of node ids, at least one, got bool of shape (2,)"),
        ({"attack": "gaussian"}, "attack must have fuses_queries and score(...), got 'gaussian'"),
        ({"num_threads": 0}, "num_threads must be a whole number of at least 1, got num_threads=0"),
        (
            {"attack": Gaussian(min_models=19)},
            "no node is left to audit; 6 cannot be, such as node 0: "
            f"in the samples of {MEMBERS[:, 0].sum()} of 20 models, at least 20 are needed",
        ),
    ],
)
def test_one_line_each(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        node_mia(MODELS, **{"prior_prob": PRIOR, **change})
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("kind", "setting", "message"),
    [
        (Gaussian, {"min_models": 0}, "min_models must be a whole number of at least 1, got min_models=0"),
        (Gaussian, {"min_sigma": -1.0}, "min_sigma must be at least 0 and finite, got min_sigma=-1.0"),
        (Gaussian, {"min_sigma": np.nan}, "min_sigma must be at least 0 and finite, got min_sigma=nan"),
        (
            DecisionSettings,
            {"unfittable": "drop"},
            "unfittable must be leave-out or non-member, got unfittable='drop'",
        ),
        (
            DecisionSettings,
            {"cost_false_positive": 0.0},
            "cost_false_positive must be positive and finite, got cost_false_positive=0.0",
        ),
        (
            DecisionSettings,
            {"cost_false_negative": np.inf},
            "cost_false_negative must be positive and finite, got cost_false_negative=inf",
        ),
    ],
)
def test_settings_are_checked_when_made(kind: type, setting: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        kind(**setting)
    assert str(refused.value) == message


def test_rules_are_checked() -> None:
    with pytest.raises(InputError, match=r"^there must be at least one decision rule, got none$"):
        challenge(GAUSSIAN, MODELS, PRIOR, {})
    bad: Any = {"bold": 3}
    with pytest.raises(InputError, match=r"^rule bold must have decision_score\(...\), got 3$"):
        challenge(GAUSSIAN, MODELS, PRIOR, bad)
    with pytest.raises(InputError, match=r"^rule must be one of weak, strong, got rule='bold'$"):
        challenge(GAUSSIAN, MODELS, PRIOR, RULES).error_counts("bold")


def test_scores_of_no_node_are_refused_too() -> None:
    with pytest.raises(InputError, match=r"^no node is left to audit; 6 cannot be, such as node 0"):
        scores_of(MODELS, PRIOR, Gaussian(min_models=19))


def test_nodes_with_names_are_called_by_them() -> None:
    with pytest.raises(InputError, match=r"^prior_prob must be in \[0, 1\], got prior_prob=1.1 for node 'bob'$"):
        node_mia(NAMED, [0.4, 1.1, 0, 0, 0, 0])
    with pytest.raises(InputError, match="such as node 'alice': in the samples of"):
        node_mia(NAMED, PRIOR, attack=Gaussian(min_models=19))
    counts = node_mia(NAMED, [0.4, 0.4, 0, 1, 0.4, 0.4])
    assert [str(left) for left in counts.not_auditable] == [
        "node 'carol': its prior probability is 0",
        "node 'dave': its prior probability is 1",
    ]
    assert [left.node for left in counts.not_auditable] == [2, 3]
    damaged = MODELS.statistics[QUERY].copy()
    damaged[3, 4] = np.nan
    with pytest.raises(InputError, match=r"got nan for model 3, node 'erin'$"):
        Evidence({QUERY: damaged}, MEMBERS, MODELS.indices, GRAPH)


def test_no_models() -> None:
    with pytest.raises(InputError, match=r"^there must be at least one model, got none$"):
        make_models(MEMBERS[:0], MODELS.statistics[QUERY][:0])
    with pytest.raises(InputError, match=r"^there must be at least one model, got none$"):
        node_mia(MODELS, PRIOR, fitting=MODELS.take(slice(0)))


def test_arrays_need_not_be_contiguous_or_of_one_type() -> None:
    transposed = make_models(np.asfortranarray(MEMBERS), np.asfortranarray(MODELS.statistics[QUERY]).astype(np.float64))
    expected, counts = node_mia(MODELS, PRIOR), node_mia(transposed, PRIOR)
    assert np.array_equal(counts.false_positives, expected.false_positives)
    assert np.array_equal(counts.false_negatives, expected.false_negatives)


def test_import_is_light() -> None:
    """The estimator takes error counts from here, and does without what shadow models and tables need."""
    program = "import sys, bmpaudit.attack; print(*sorted({'zarr', 'pandas', 'pyarrow', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
