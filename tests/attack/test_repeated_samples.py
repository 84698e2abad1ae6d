"""Models that share their samples are refused by everything that counts over independent models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.attack import Evidence, Student, permutation_test
from bmpaudit.attack.evidence import check_samples
from bmpaudit.proof import certify, expose, prove
from bmpaudit.samplers import Bernoulli, RandomWalk, Snowball, Uniform, draw_memberships
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Flags

NUM_NODES = 60
PRIOR = np.full(NUM_NODES, 0.25)


def evidence(memberships: Flags, **settings: Any) -> Evidence:
    """Answers that only tell the samples apart: a fingerprint that all models of one sample share."""
    codes = {row.tobytes(): code for code, row in enumerate(memberships)}
    rng = np.random.default_rng(5)
    marks = rng.normal(size=memberships.shape).astype(np.float32)[[codes[row.tobytes()] for row in memberships]]
    return Evidence({"full": marks}, memberships, np.arange(len(memberships)), **settings)


def drawn(num_samples: int, num_seeds: int = 1, seed: int = 0) -> Flags:
    rng = np.random.default_rng(seed)
    rows = np.repeat(rng.random((num_samples, NUM_NODES)) < 0.25, num_seeds, axis=0)
    return rows[rng.permutation(len(rows))]


WAYS: dict[str, Callable[[Flags, bool], Any]] = {
    "prove": lambda rows, known: prove(Student(), evidence(rows, are_independent=known), PRIOR, num_threads=1),
    "prove, other models to fit on": lambda rows, known: prove(
        Student(),
        evidence(rows, are_independent=known).take(slice(40, None)),
        PRIOR,
        fitting=evidence(rows, are_independent=known).take(slice(40)),
        num_threads=1,
    ),
    "expose": lambda rows, known: expose(Student(), evidence(rows, are_independent=known), PRIOR, num_threads=1),
    "certify": lambda rows, known: certify(Student(), evidence(rows, are_independent=known), PRIOR, num_threads=1),
    "permutation_test": lambda rows, known: permutation_test(evidence(rows, are_independent=known), num_threads=1),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_refuses_them(way: str) -> None:
    with pytest.raises(InputError, match="of 100 models have the same sample as another one: models must be indep"):
        WAYS[way](drawn(20, 5), False)
    WAYS[way](drawn(100), False)
    WAYS[way](drawn(20, 5), True)  # whoever says so is believed


def test_a_sample_that_fitting_and_challenged_models_share_is_found_between_them() -> None:
    rows = drawn(40)
    with pytest.raises(InputError, match="80 of 80 models have the same sample as another one"):
        prove(Student(), evidence(rows), PRIOR, fitting=replace(evidence(rows), indices=40 + np.arange(40)))


def refuses(memberships: Flags) -> bool:
    try:
        check_samples(ShadowRuns.from_arrays(memberships, memberships * 1.0, np.arange(memberships.shape[1]) % 2))
    except InputError:
        return True
    return False


@pytest.mark.parametrize("num_models", [2, 8, 64, 1_000])
def test_one_pair_is_enough_and_so_is_a_single_sample(num_models: int) -> None:
    rows = drawn(num_models)
    assert not refuses(rows)
    rows[0] = rows[-1] = rows[rows.sum(axis=1).argmax()]
    assert refuses(rows)
    assert refuses(np.repeat(rows[:1], num_models, axis=0))
    assert refuses(np.concatenate([rows[:1], np.repeat(rows[1:2], num_models, axis=0)]))


@pytest.mark.parametrize("num_nodes", [2, 4, 8, 12, 16, 24])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_on_a_handful_of_nodes_samples_may_repeat(num_nodes: int, *, is_fixed: bool) -> None:
    """Half of the nodes, by independent coins or a fixed number: false alarms in 0.01 % of audits, so in none of 300.

    Of 12 nodes 6 are the same in 60 models 1.9 times on average; coins alone would lead to expect 0.4.
    """
    rng = np.random.default_rng(num_nodes)
    order = rng.random((300, 60, num_nodes)).argsort(axis=2)
    coins = rng.random((300, 60, num_nodes)) < 0.5
    assert not any(map(refuses, order < num_nodes / 2 if is_fixed else coins))


def test_small_samples_of_a_walk_that_died_out_repeat_with_reason() -> None:
    graph = datasets.load("demo")
    samplers = (Snowball(0.25), RandomWalk(0.25), Uniform(0.25), Bernoulli(0.01), Bernoulli(0.0005))
    assert not any(refuses(draw_memberships(graph, sampler, 400, seed=1)) for sampler in samplers)
    islands = drawn(100)
    islands[:30] = np.arange(NUM_NODES) < 3
    assert islands[:30].sum(axis=1).max() < islands.sum(axis=1).mean() / 2
    assert not refuses(islands)


def test_tables_that_are_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(matrices, "MAX_BLOCK", 7 * NUM_NODES)
    for rows, is_wrong in ((drawn(20, 5), True), (drawn(100), False)):
        packed = matrices.new_flags(*rows.shape)
        packed[:] = rows
        assert isinstance(packed, matrices.LazyMatrix)
        runs = ShadowRuns.from_arrays(rows, rows * 1.0, np.arange(NUM_NODES) % 2)
        if is_wrong:
            with pytest.raises(InputError, match="100 of 100 models"):
                check_samples(replace(runs, memberships=packed))
        else:
            check_samples(replace(runs, memberships=packed))
