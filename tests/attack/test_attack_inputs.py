"""What an attack refuses, in one line that names the thing, the bound and the value."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from slow_attack import VIEW, make_runs, random_memberships

from bmpaudit import InputError
from bmpaudit.attack import AttackSettings, challenge_models, challenge_scores, node_mia, split_mia

MEMBERS = random_memberships(20, 6, seed=1)
RUNS = make_runs(MEMBERS, np.random.default_rng(1).normal(size=MEMBERS.shape))
PRIOR = np.full(6, 0.4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"view": "none_clean"}, "view must be one of full_clean, got view='none_clean'"),
        ({"decision": "bold"}, "decision must be strong or weak, got decision='bold'"),
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
        ({"min_models": 0}, "min_models must be a whole number of at least 1, got min_models=0"),
        ({"unfittable": "drop"}, "unfittable must be leave-out or non-member, got unfittable='drop'"),
        ({"min_sigma": -1.0}, "min_sigma must be at least 0 and finite, got min_sigma=-1.0"),
        ({"min_sigma": np.nan}, "min_sigma must be at least 0 and finite, got min_sigma=nan"),
        ({"cost_false_positive": 0.0}, "cost_false_positive must be positive and finite, got cost_false_positive=0.0"),
        (
            {"cost_false_negative": np.inf},
            "cost_false_negative must be positive and finite, got cost_false_negative=inf",
        ),
        ({"num_threads": 0}, "num_threads must be a whole number of at least 1, got num_threads=0"),
        (
            {"min_models": 19},
            "no node is left to audit; 6 cannot be, such as node 0: "
            f"in the samples of {MEMBERS[:, 0].sum()} of 20 models, at least 20 are needed",
        ),
    ],
)
def test_one_line_each(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        node_mia(RUNS, **{"view": VIEW, "prior_prob": PRIOR, **change})
    assert str(refused.value) == message


def test_scores_of_no_node_are_refused_too() -> None:
    with pytest.raises(InputError, match=r"^no node is left to audit; 6 cannot be, such as node 0"):
        challenge_scores(RUNS, VIEW, PRIOR, settings=AttackSettings(min_models=19))


def test_statistics_must_be_finite_and_fit_the_memberships() -> None:
    damaged = RUNS.statistics[VIEW].copy()
    damaged[3, 4] = np.inf
    with pytest.raises(InputError, match=r"^view full_clean: must be finite, got inf for model 3, node 4$"):
        challenge_models(replace(RUNS, statistics={VIEW: damaged}), VIEW, PRIOR)
    with pytest.raises(InputError, match=r"^view full_clean: must be finite, got inf for model 3, node 4$"):
        challenge_models(replace(RUNS, statistics={VIEW: damaged}), VIEW, PRIOR, targets=[4, 2])
    challenge_models(replace(RUNS, statistics={VIEW: damaged}), VIEW, PRIOR, targets=[2])  # not asked about it
    with pytest.raises(InputError, match=r"^view full_clean: must have shape \(20, 6\) as memberships, got \(20, 5\)$"):
        challenge_models(replace(RUNS, statistics={VIEW: damaged[:, :5]}), VIEW, PRIOR)


def test_no_models() -> None:
    empty = replace(
        RUNS, indices=RUNS.indices[:0], memberships=MEMBERS[:0], statistics={VIEW: RUNS.statistics[VIEW][:0]}
    )
    with pytest.raises(InputError, match=r"^there must be at least one model, got none$"):
        node_mia(empty, VIEW, "shadow-frequency")
    with pytest.raises(InputError, match=r"^there must be at least one model, got none$"):
        split_mia(empty, RUNS, VIEW)


def test_arrays_need_not_be_contiguous_or_of_one_type() -> None:
    transposed = replace(
        RUNS,
        memberships=np.asfortranarray(MEMBERS),
        statistics={VIEW: np.asfortranarray(RUNS.statistics[VIEW]).astype(np.float64)},
    )
    expected, counts = node_mia(RUNS, VIEW, PRIOR), node_mia(transposed, VIEW, PRIOR)
    assert np.array_equal(counts.false_positives, expected.false_positives)
    assert np.array_equal(counts.false_negatives, expected.false_negatives)


def test_import_is_light() -> None:
    """The estimator takes error counts from here, and does without what shadow models and tables need."""
    program = "import sys, bmpaudit.attack; print(*sorted({'zarr', 'pandas', 'pyarrow', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
