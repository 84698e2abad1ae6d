"""The kernels that sort, compare and count scores, and test nodes, against what they are defined to be."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.special
import scipy.stats

from bmpaudit import _native

KINDS = (np.float32, np.float64)


def numbers(kind: str, shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "continuous":
        return (4 * rng.normal(size=shape)).astype(dtype)
    if kind == "ties":
        return np.round(2 * rng.normal(size=shape)).astype(dtype)
    if kind == "close":  # differ in the last bits only
        return (1 + np.finfo(dtype).eps * rng.integers(50, size=shape)).astype(dtype)
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-30, 30, size=shape)
    values[rng.random(shape) < 0.1], values[rng.random(shape) < 0.1], values[rng.random(shape) < 0.1] = (
        np.inf,
        -np.inf,
        0,
    )
    values[rng.random(shape) < 0.1] = -0.0
    return values.astype(dtype)


def members(shape: tuple[int, ...], share: float = 0.3) -> np.ndarray:
    return (np.random.default_rng(9).random(shape) < share).astype(np.uint8)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", ["continuous", "ties", "close", "wild"])
@pytest.mark.parametrize("size", [0, 1, 2, 64, 65, 3_000, 2**15, 2**15 + 1, 100_000])
def test_sorting(size: int, kind: str, dtype: Any) -> None:
    values = numbers(kind, (size,), dtype)
    expected = np.sort(values)
    _native.sort_numbers(values)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["continuous", "ties", "close", "wild"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_sides_are_kept_apart_and_pairs_counted(share: float, kind: str, threads: int) -> None:
    scores, member = numbers(kind, (40, 13), np.float64), members((40, 13), share)
    out, inside = _native.sort_by_side(scores, member, threads)
    np.testing.assert_array_equal(out, np.sort(scores[member == 0]))
    np.testing.assert_array_equal(inside, np.sort(scores[member == 1]))
    pairs = sum(int(a < b) + int(a <= b) for a, b in itertools.product(out, inside))
    assert _native.pairs_in_order(out, inside) == pairs


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", ["continuous", "ties", "wild"])
@pytest.mark.parametrize("num_thresholds", [0, 1, 2, 17, 145, 700])
def test_counting_by_threshold(num_thresholds: int, kind: str, dtype: Any) -> None:
    scores, member = numbers(kind, (7, 301), dtype), members((7, 301))
    thresholds = np.unique(numbers(kind, (num_thresholds,), dtype, seed=1))
    counts, inside = np.ones((2, 7, len(thresholds) + 1), dtype=np.int64)
    stated = np.ones(counts.shape)
    _native.count_by_threshold(scores, member, thresholds, 2, counts, inside, stated)
    for model in range(7):
        place = np.searchsorted(thresholds, scores[model], side="right")
        probability = scipy.special.expit(scores[model].astype(np.float64))
        for values, weights in ((counts, np.ones(301)), (inside, member[model]), (stated, probability)):
            expected = 1 + np.bincount(place, weights, len(thresholds) + 1)
            np.testing.assert_allclose(values[model], expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("num_nodes", [1, 1_023, 1_030])
def test_counting_who_is_named(num_nodes: int, dtype: Any) -> None:
    scores, member = numbers("ties", (50, num_nodes), dtype), members((50, num_nodes))
    named = np.zeros((4, num_nodes), dtype=np.int64)
    _native.count_named_nodes(scores, member, 2.0, -1.0, 2, named)
    high, low, inside = scores >= 2, scores <= -1, member == 1
    expected = [(high & inside), (high & ~inside), (low & inside), (low & ~inside)]
    np.testing.assert_array_equal(named, [flags.sum(axis=0) for flags in expected])


@pytest.mark.parametrize("num_nodes", [1, 1_030])
def test_counting_errors_of_decisions(num_nodes: int) -> None:
    scores, member = numbers("ties", (50, num_nodes), np.float64), members((50, num_nodes))
    odds = np.round(np.random.default_rng(2).normal(size=num_nodes))
    errors = np.empty((2, num_nodes), dtype=np.int64)
    _native.count_decisions(scores, member, odds, 1.0, 2, errors)
    says_member, inside = scores + odds > 1, member == 1
    np.testing.assert_array_equal(errors, [(says_member & ~inside).sum(axis=0), (~says_member & inside).sum(axis=0)])


@pytest.mark.parametrize("num_points", [1, 2, 20, 300])
def test_interpolation_is_that_of_numpy(num_points: int) -> None:
    values = numbers("wild", (6, 500), np.float32)
    values[:, ::2] = numbers("continuous", (6, 250), np.float32)
    points = np.unique(np.concatenate([numbers("continuous", (num_points,), np.float64, seed=3), [0.0]]))[:num_points]
    values[0, : len(points)] = points  # rounded to float32, on either side
    heights = np.cumsum(np.abs(np.random.default_rng(4).normal(size=(3, len(points)))), axis=1)
    function_of = np.array([0, 1, 2, 0, 1, 2])
    expected = [
        np.interp(row, points, heights[k]).astype(np.float32) for row, k in zip(values, function_of, strict=True)
    ]
    _native.interpolate_rows(values, points, heights, function_of, 2)
    np.testing.assert_allclose(values, expected, rtol=2e-7)


def test_the_surest_nodes_are_found_and_of_equals_the_first() -> None:
    scores = numbers("ties", (30, 40), np.float64)
    scores[5, 7], scores[6, 8], scores[7] = np.inf, -np.inf, -np.inf
    odds, is_asked = np.round(np.random.default_rng(5).normal(size=40)), members((40,), 0.7)
    node, value = np.empty((4, 30), dtype=np.int64), np.empty((4, 30))
    _native.find_surest(scores, odds, is_asked, 2, node, value)
    for k, values in enumerate((scores + odds, -(scores + odds), scores, -scores)):
        masked = np.where(is_asked == 1, values, -np.inf)
        np.testing.assert_array_equal(value[k], masked.max(axis=1))
        is_any = value[k] > -np.inf
        np.testing.assert_array_equal(node[k][is_any], masked.argmax(axis=1)[is_any])


@pytest.mark.parametrize("threads", [1, 3])
def test_means_over_neighbours(threads: int) -> None:
    rng = np.random.default_rng(6)
    adjacency = scipy.sparse.csr_array(np.triu(rng.random((50, 50)) < 0.1, 1))
    adjacency = (adjacency + adjacency.T).astype(np.float64)
    values = rng.normal(size=(9, 50)).astype(np.float32)
    means = np.empty_like(values)
    indptr, indices = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32)
    _native.neighbour_means(indptr, indices, values, threads, means)
    degrees = np.diff(indptr)
    expected = np.where(degrees > 0, (adjacency @ values.T.astype(np.float64)).T / np.maximum(degrees, 1), 0)
    np.testing.assert_array_equal(means, expected.astype(np.float32))


@pytest.mark.parametrize("num_features", [1, 3, 4, 6])
def test_sums_of_features_by_fold_and_side(num_features: int) -> None:
    rng = np.random.default_rng(7)
    features = rng.normal(size=(num_features, 30, 21)).astype(np.float32)
    member, center, fold_of = members((30, 21)), rng.normal(size=(num_features, 21)), np.sort(rng.integers(4, size=30))
    sums = np.zeros((4, 2, 21, num_features + 1, num_features + 1))
    _native.student_sums(features, member, center, fold_of, 2, sums)
    values = np.concatenate([np.ones((1, 30, 21)), features - center[:, None]])
    for fold, side in itertools.product(range(4), range(2)):
        weight = (member == side) & (fold_of == fold)[:, None]
        np.testing.assert_allclose(sums[fold, side], np.einsum("jm,vjm,wjm->mvw", weight, values, values), atol=1e-12)


@pytest.mark.parametrize("num_features", [1, 3, 4, 6])
def test_likelihoods_of_covariances(num_features: int) -> None:
    rng = np.random.default_rng(8)

    def positive(count: int) -> np.ndarray:
        factors = rng.normal(size=(count, num_features, num_features + 3))
        return factors @ factors.transpose(0, 2, 1)

    start, freedom = np.array([0, 13, 13, 30]), rng.integers(1, 9, size=30).astype(np.float64)
    scatter, other, own = positive(30), positive(30), positive(3)
    scatter[4] = 0  # a node whose models all answer alike
    shares, candidates = np.array([0.0, 0.5, 1.0]), np.geomspace(0.25, 400, 7)
    likelihood = np.zeros((3, 3, 7))
    _native.covariance_likelihood(start, freedom, scatter, own, other, shares, candidates, 2, likelihood)
    expected = np.zeros_like(likelihood)
    for (problem, share), k in itertools.product(itertools.product(range(3), range(3)), range(7)):
        for node in range(start[problem], start[problem + 1]):
            mean = (1 - shares[share]) * own[problem] + shares[share] * other[node]
            plain = np.linalg.slogdet(mean)[1]
            mixed = np.linalg.slogdet(candidates[k] * mean + scatter[node])[1]
            exponent = (num_features + 1 + candidates[k] + freedom[node]) / 2
            expected[problem, share, k] -= exponent * (mixed - plain) + freedom[node] / 2 * plain
    np.testing.assert_allclose(likelihood, expected, rtol=1e-10)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["continuous", "ties", "wild"])
@pytest.mark.parametrize("num_nodes", [1, 64, 131])
def test_rank_tests_of_nodes(num_nodes: int, kind: str, threads: int) -> None:
    rng = np.random.default_rng(10)
    statistics, member = numbers(kind, (2, 23, num_nodes), np.float32), members((23, num_nodes), 0.4)
    member[:, 0] = 1  # there is nothing to compare with
    statistics[0, :, -1] = 5.0
    order = np.stack([np.arange(23), *(rng.permutation(23) for _ in range(30)), np.arange(23)])
    z, num_reached, totals = np.full((2, num_nodes), 9.0), np.full(num_nodes, 7), np.full((3, len(order)), 0.5)
    _native.test_nodes(statistics, member, order, threads, z, num_reached, totals)

    expected = np.zeros((len(order), 2, num_nodes))
    for query, node in itertools.product(range(2), range(num_nodes)):
        ranks = scipy.stats.rankdata(statistics[query, :, node])
        num_in = member[:, node].sum()
        variance = num_in * (23 - num_in) * ranks.var(ddof=1) / 23  # of a sum of so many drawn without replacement
        if variance > 0:
            of_members = np.array([ranks[member[each, node] == 1].sum() for each in order])
            expected[:, query, node] = (of_members - num_in * 12) / np.sqrt(variance)
    largest = np.abs(expected).max(axis=1)
    np.testing.assert_allclose(z, expected[0], atol=1e-12)
    np.testing.assert_array_equal(num_reached, 7 + (largest[1:] >= largest[0] - 1e-12).sum(axis=0))
    np.testing.assert_allclose(totals[0], np.maximum(largest.max(axis=1), 0.5))
    np.testing.assert_allclose(totals[1], 0.5 + expected.sum(axis=(1, 2)), atol=1e-11)
    np.testing.assert_allclose(totals[2], 0.5 + (expected**2).sum(axis=(1, 2)))
    assert (totals[:, -1] == totals[:, 0]).all()  # to the last bit


def test_rank_tests_are_the_same_on_any_number_of_threads() -> None:
    statistics, member = numbers("continuous", (2, 40, 700), np.float32), members((40, 700))
    order = np.stack([np.random.default_rng(k).permutation(40) for k in range(50)])

    def made(threads: int) -> bytes:
        z, num_reached, totals = np.zeros((2, 700)), np.zeros(700, dtype=np.int64), np.zeros((3, 50))
        _native.test_nodes(statistics, member, order, threads, z, num_reached, totals)
        return z.tobytes() + num_reached.tobytes() + totals.tobytes()

    assert made(1) == made(2) == made(100)
