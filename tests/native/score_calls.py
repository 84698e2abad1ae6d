"""Calls of the kernels that learn the Student prior, sort and count scores, and test nodes; see wrong_calls.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bmpaudit import _native

NUM_MODELS, NUM_NODES = 5, 3
NAN = float("nan")
SCORES = np.random.default_rng(0).normal(size=(NUM_MODELS, NUM_NODES))
MEMBER = (np.arange(NUM_MODELS * NUM_NODES) % 2).astype(np.uint8).reshape(NUM_MODELS, NUM_NODES)
TABLE: dict[str, Any] = {"scores": SCORES, "member": MEMBER, "num_threads": 2}


def call(function: Callable[..., Any], output: str, **arguments: Any) -> Any:
    function(**arguments)
    return arguments[output]


def neighbour_means(**changed: Any) -> Any:
    arguments = {
        "indptr": np.array([0, 1, 3, 4]),
        "indices": np.array([1, 0, 2, 1], dtype=np.int32),
        "values": SCORES.astype(np.float32),
        "num_threads": 2,
        "means": np.zeros(SCORES.shape, dtype=np.float32),
    }
    return call(_native.neighbour_means, "means", **arguments | changed)


def student_sums(**changed: Any) -> Any:
    arguments = {
        "features": np.stack([SCORES, SCORES**2]).astype(np.float32),
        "member": MEMBER,
        "center": np.zeros((2, NUM_NODES)),
        "fold_of": np.array([0, 0, 1, 1, 1]),
        "num_threads": 2,
        "sums": np.zeros((2, 2, NUM_NODES, 3, 3)),
    }
    return call(_native.student_sums, "sums", **arguments | changed)


def covariance_likelihood(**changed: Any) -> Any:
    arguments = {
        "start": np.array([0, 2, 3]),
        "freedom": np.array([1.0, 2.0, 3.0]),
        "scatter": np.tile(np.eye(2), (3, 1, 1)),
        "own": np.tile(np.eye(2), (2, 1, 1)),
        "other": np.tile(np.eye(2), (3, 1, 1)),
        "shares": np.array([0.0, 1.0]),
        "candidates": np.array([0.5, 2.0, 8.0]),
        "num_threads": 2,
        "likelihood": np.zeros((2, 2, 3)),
    }
    return call(_native.covariance_likelihood, "likelihood", **arguments | changed)


def sort_numbers(**changed: Any) -> Any:
    return call(_native.sort_numbers, "values", **{"values": SCORES[0].copy()} | changed)


def sort_by_side(**changed: Any) -> Any:
    return _native.sort_by_side(**TABLE | changed)[0]


def pairs_in_order(**changed: Any) -> Any:
    return _native.pairs_in_order(**{"out": np.array([1.0, 2.0]), "in_": np.array([1.5])} | changed)


def roc_within_models(**changed: Any) -> Any:
    arguments = TABLE | {"rate": 0.1, "auc": np.zeros(NUM_MODELS), "tpr": np.zeros(NUM_MODELS)}
    return call(_native.roc_within_models, "auc", **arguments | changed)


def count_by_threshold(**changed: Any) -> Any:
    counts = np.zeros((NUM_MODELS, 3), dtype=np.int64)
    arguments = TABLE | {"thresholds": np.array([-1.0, 1.0]), "counts": counts, "members": counts.copy()}
    return call(
        _native.count_by_threshold, "counts", **arguments | {"probability": np.zeros((NUM_MODELS, 3))} | changed
    )


def count_named_nodes(**changed: Any) -> Any:
    arguments = TABLE | {"high": 1.0, "low": -1.0, "named": np.zeros((4, NUM_NODES), dtype=np.int64)}
    return call(_native.count_named_nodes, "named", **arguments | changed)


def count_decisions(**changed: Any) -> Any:
    arguments = TABLE | {"log_prior_odds": np.zeros(NUM_NODES), "threshold": 0.0}
    errors = np.zeros((2, NUM_NODES), dtype=np.int64)
    return call(_native.count_decisions, "errors", **arguments | {"errors": errors} | changed)


def interpolate_rows(**changed: Any) -> Any:
    arguments = {
        "values": SCORES.astype(np.float32),
        "from_": np.array([-1.0, 0.0, 2.0]),
        "to": np.array([[0.0, 1.0, 2.0], [5.0, 6.0, 7.0]]),
        "function_of": np.array([0, 1, 0, 1, 1]),
        "num_threads": 2,
    }
    return call(_native.interpolate_rows, "values", **arguments | changed)


def find_surest(**changed: Any) -> Any:
    arguments = {
        "scores": SCORES,
        "log_prior_odds": np.zeros(NUM_NODES),
        "is_asked": np.ones(NUM_NODES, dtype=np.uint8),
        "num_threads": 2,
        "node": np.zeros((4, NUM_MODELS), dtype=np.int64),
        "value": np.zeros((4, NUM_MODELS)),
    }
    return call(_native.find_surest, "value", **arguments | changed)


def test_nodes(**changed: Any) -> Any:
    arguments = {
        "statistics": np.stack([SCORES, SCORES**2]).astype(np.float32),
        "member": MEMBER,
        "order": np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]),
        "num_threads": 2,
        "z": np.zeros((2, NUM_NODES)),
        "num_reached": np.zeros(NUM_NODES, dtype=np.int64),
        "totals": np.zeros((3, 2)),
    }
    return call(_native.test_nodes, "z", **arguments | changed)


def infer_members(**changed: Any) -> Any:
    arguments = {
        "indptr": np.array([0, 2, 2, 3]),
        "indices": np.array([0, 1, 1], dtype=np.int32),
        "values": np.ones(3, dtype=np.float32),
        "rows": np.ones((NUM_MODELS, 2, 4), dtype=np.float32),
        "state": (np.arange(3 * NUM_MODELS).reshape(NUM_MODELS, 3) % 3).astype(np.uint8),
        "noise": np.ones(2, dtype=np.float32),
        "mean": np.ones((3, 4), dtype=np.float32),
        "variance": np.ones(3, dtype=np.float32),
        "log_odds": np.zeros(3, dtype=np.float32),
        "temperatures": np.ones(2, dtype=np.float32),
        "with_spread": True,
        "num_threads": 2,
        "statistic": np.zeros((NUM_MODELS, 3), dtype=np.float32),
        "coefficient": np.zeros((NUM_MODELS, 3, 4), dtype=np.float32),
        "residual": np.zeros((NUM_MODELS, 2), dtype=np.float32),
    }
    return call(_native.infer_members, "statistic", **arguments | changed)


RIGHT: tuple[Callable[..., Any], ...] = (
    neighbour_means,
    student_sums,
    covariance_likelihood,
    sort_numbers,
    sort_by_side,
    pairs_in_order,
    roc_within_models,
    count_by_threshold,
    count_named_nodes,
    count_decisions,
    interpolate_rows,
    find_surest,
    test_nodes,
    infer_members,
)

WITH_NAN = SCORES.copy()
WITH_NAN[1, 2] = NAN
COUNTS = np.zeros((NUM_MODELS, 3), dtype=np.int64)

WRONG: tuple[tuple[Callable[..., Any], dict[str, Any]], ...] = (
    (neighbour_means, {"indices": np.array([1, 0, 3, 1], dtype=np.int32)}),
    (neighbour_means, {"values": SCORES}),
    (neighbour_means, {"values": np.zeros((5, 4), dtype=np.float32)}),
    (neighbour_means, {"means": np.zeros((4, 3), dtype=np.float32)}),
    (neighbour_means, {"num_threads": 0}),
    (student_sums, {"features": np.zeros((17, 5, 3), dtype=np.float32)}),
    (student_sums, {"features": np.zeros((0, 5, 3), dtype=np.float32)}),
    (
        student_sums,
        {"features": np.zeros((2, 0, 3), dtype=np.float32), "member": MEMBER[:0], "fold_of": np.zeros(0, int)},
    ),
    (student_sums, {"member": MEMBER[:4].copy()}),
    (student_sums, {"member": 2 * MEMBER}),
    (student_sums, {"center": np.zeros((1, 3))}),
    (student_sums, {"fold_of": np.array([0, 0, 1, 1, 2])}),
    (student_sums, {"fold_of": np.array([0, 0, 1, 1, -1])}),
    (student_sums, {"fold_of": np.array([0, 0])}),
    (student_sums, {"sums": np.zeros((2, 2, 3, 2, 2))}),
    (student_sums, {"num_threads": 0}),
    (covariance_likelihood, {"start": np.array([0, 2, 4])}),
    (covariance_likelihood, {"start": np.array([0, 4, 3])}),
    (covariance_likelihood, {"start": np.array([0, 3])}),
    (covariance_likelihood, {"start": np.array([1, 2, 3])}),
    (covariance_likelihood, {"freedom": np.ones(2)}),
    (covariance_likelihood, {"scatter": np.ones((3, 2, 3))}),
    (covariance_likelihood, {"own": np.ones((2, 17, 17))}),
    (covariance_likelihood, {"other": np.ones((2, 2, 2))}),
    (covariance_likelihood, {"likelihood": np.zeros((2, 2, 2))}),
    (covariance_likelihood, {"num_threads": 0}),
    (sort_numbers, {"values": WITH_NAN[1].copy()}),
    (sort_numbers, {"values": np.arange(3)}),
    (sort_numbers, {"values": np.arange(6.0)[::2]}),
    (sort_by_side, {"scores": WITH_NAN}),
    (sort_by_side, {"scores": SCORES.astype(np.float32)}),
    (sort_by_side, {"member": MEMBER[:4].copy()}),
    (sort_by_side, {"member": 2 * MEMBER}),
    (sort_by_side, {"num_threads": 0}),
    (pairs_in_order, {"out": np.zeros((2, 2))}),
    (roc_within_models, {"scores": WITH_NAN}),
    (roc_within_models, {"rate": NAN}),
    (roc_within_models, {"rate": 1.5}),
    (roc_within_models, {"auc": np.zeros(4)}),
    (roc_within_models, {"tpr": np.zeros(6)}),
    (count_by_threshold, {"thresholds": np.array([1.0, -1.0])}),
    (count_by_threshold, {"thresholds": np.array([1.0, NAN])}),
    (count_by_threshold, {"thresholds": np.array([-1.0, 1.0], dtype=np.float32)}),
    (count_by_threshold, {"counts": np.zeros((5, 2), dtype=np.int64)}),
    (count_by_threshold, {"members": np.zeros((4, 3), dtype=np.int64)}),
    (count_by_threshold, {"probability": np.zeros((5, 2))}),
    (count_by_threshold, {"member": 3 * MEMBER}),
    (count_named_nodes, {"named": np.zeros((4, 2), dtype=np.int64)}),
    (count_named_nodes, {"member": 3 * MEMBER}),
    (count_decisions, {"log_prior_odds": np.zeros(2)}),
    (count_decisions, {"errors": np.zeros((2, 2), dtype=np.int64)}),
    (count_decisions, {"num_threads": 0}),
    (interpolate_rows, {"values": WITH_NAN.astype(np.float32)}),
    (interpolate_rows, {"from_": np.array([-1.0, 0.0, 0.0])}),
    (interpolate_rows, {"from_": np.zeros(0), "to": np.zeros((2, 0))}),
    (interpolate_rows, {"to": np.zeros((2, 2))}),
    (interpolate_rows, {"function_of": np.array([0, 1, 0, 1, 2])}),
    (interpolate_rows, {"function_of": np.array([0])}),
    (find_surest, {"log_prior_odds": np.zeros(2)}),
    (find_surest, {"is_asked": np.ones(2, dtype=np.uint8)}),
    (find_surest, {"node": np.zeros((3, 5), dtype=np.int64)}),
    (find_surest, {"value": np.zeros((4, 4))}),
    (test_nodes, {"statistics": np.stack([SCORES, SCORES])}),
    (test_nodes, {"statistics": np.stack([WITH_NAN, SCORES]).astype(np.float32)}),
    (test_nodes, {"statistics": SCORES.astype(np.float32)}),
    (
        test_nodes,
        {"statistics": np.zeros((2, 1, 3), dtype=np.float32), "member": MEMBER[:1], "order": np.zeros((2, 1), int)},
    ),
    (test_nodes, {"member": MEMBER[:4].copy()}),
    (test_nodes, {"member": 2 * MEMBER}),
    (test_nodes, {"member": MEMBER.astype(np.bool_)}),
    (test_nodes, {"order": np.array([[0, 1, 2, 3, 5], [4, 3, 2, 1, 0]])}),
    (test_nodes, {"order": np.array([[0, 1, 2, 3, -1], [4, 3, 2, 1, 0]])}),
    (test_nodes, {"order": np.array([[0, 1, 2, 3], [3, 2, 1, 0]])}),
    (test_nodes, {"order": np.arange(5)}),
    (test_nodes, {"num_threads": 0}),
    (test_nodes, {"z": np.zeros((1, NUM_NODES))}),
    (test_nodes, {"z": np.zeros((2, NUM_NODES), dtype=np.float32)}),
    (test_nodes, {"num_reached": np.zeros(2, dtype=np.int64)}),
    (test_nodes, {"num_reached": np.zeros(NUM_NODES)}),
    (test_nodes, {"totals": np.zeros((2, 2))}),
    (test_nodes, {"totals": np.zeros((3, 3))}),
    (infer_members, {"indptr": np.array([0, 2, 1, 3])}),
    (infer_members, {"indptr": np.array([0, 2, 3])}),
    (infer_members, {"indices": np.array([0, 1, 2], dtype=np.int32)}),
    (infer_members, {"indices": np.array([0, -1, 1], dtype=np.int32)}),
    (infer_members, {"values": np.ones(2, dtype=np.float32)}),
    (infer_members, {"values": np.full(3, NAN, dtype=np.float32)}),
    (infer_members, {"rows": np.ones((NUM_MODELS, 2, 4))}),
    (infer_members, {"rows": np.ones((NUM_MODELS, 1, 4), dtype=np.float32)}),
    (infer_members, {"rows": np.zeros((NUM_MODELS, 2, 0), dtype=np.float32)}),
    (infer_members, {"rows": np.full((NUM_MODELS, 2, 4), np.inf, dtype=np.float32)}),
    (infer_members, {"state": np.full((NUM_MODELS, 3), 3, dtype=np.uint8)}),
    (infer_members, {"state": np.zeros((NUM_MODELS - 1, 3), dtype=np.uint8)}),
    (infer_members, {"noise": np.zeros(2, dtype=np.float32)}),
    (infer_members, {"noise": np.ones(3, dtype=np.float32)}),
    (infer_members, {"mean": np.ones((3, 3), dtype=np.float32)}),
    (infer_members, {"mean": np.full((3, 4), NAN, dtype=np.float32)}),
    (infer_members, {"variance": np.array([1, 0, 1], dtype=np.float32)}),
    (infer_members, {"log_odds": np.full(3, np.inf, dtype=np.float32)}),
    (infer_members, {"temperatures": np.array([NAN], dtype=np.float32)}),
    (infer_members, {"num_threads": 0}),
    (infer_members, {"statistic": np.zeros((NUM_MODELS, 2), dtype=np.float32)}),
    (infer_members, {"coefficient": np.zeros((NUM_MODELS, 3, 3), dtype=np.float32)}),
    (infer_members, {"coefficient": np.full((NUM_MODELS, 3, 4), NAN, dtype=np.float32)}),
    (infer_members, {"residual": np.zeros((NUM_MODELS, 3), dtype=np.float32)}),
    (infer_members, {"residual": np.zeros((NUM_MODELS, 2))}),
)
