"""Whatever the kernels are called with, they answer or raise: no call crashes, hangs or takes all memory."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls import COUNTS, PATH, RIGHT, engine, layer_settings, memberships, model_settings, run, snowball
from wrong_calls import WRONG

from bmpaudit import _native

SCRIPT = Path(__file__).with_name("wrong_calls.py")


@pytest.mark.parametrize("function", RIGHT)
def test_right_calls_work(function: Callable[..., Any]) -> None:
    result = function()
    if isinstance(result, np.ndarray):
        assert result.size > 0
        assert np.isfinite(result).all()


def test_wrong_calls_raise() -> None:
    outcomes: dict[int, str] = {}
    while len(outcomes) < len(WRONG):  # once, unless a call crashes: then from the next one on
        command = [sys.executable, str(SCRIPT), str(len(outcomes))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        for line in done.stdout.splitlines():
            number, outcome = line.split()
            outcomes[int(number)] = outcome
        if done.returncode != 0:
            outcomes[len(outcomes)] = f"crash {done.returncode}: {done.stderr[-500:]}"
    refused = {"TypeError", "ValueError", "MemoryError"}
    accepted = [(WRONG[number], outcome) for number, outcome in outcomes.items() if outcome not in refused]
    assert accepted == []


def test_a_refused_array_is_named_with_what_it_should_be() -> None:
    with pytest.raises(
        TypeError, match=r"indptr must be a C-contiguous array of int64 .* got an array of int32 of shape"
    ):
        snowball(indptr=PATH["indptr"].astype(np.int32))
    with pytest.raises(ValueError, match=r"indices must be in \[0, 4\), got 9 at position 4"):
        snowball(indices=np.array([1, 0, 2, 1, 9, 2], dtype=np.int32))
    with pytest.raises(ValueError, match="optimizer must be one of adam, sgd, got 'lbfgs'"):
        _native.TrainingSettings(1, 0.1, 0.0, "lbfgs")
    with pytest.raises(ValueError, match="kind must be one of appnp, gat, gcn, gin, mlp, sage, sgc, got 'GCN'"):
        layer_settings(kind="GCN")
    with pytest.raises(ValueError, match="aggregation must be one of max, mean, got 'sum'"):
        layer_settings(kind="sage", aggregation="sum")
    with pytest.raises(ValueError, match=r"the last layer must have 2 channels, .* and one head, got 4 and 1"):
        engine(model=model_settings(layers=[layer_settings()]))
    with pytest.raises(MemoryError, match=r"memberships would take .* GiB, and this machine has"):
        memberships(count=2**50)


def test_a_kernel_keeps_its_own_copy_of_the_graph() -> None:
    arrays = {name: values.copy() for name, values in PATH.items()}
    sampler, trainer = _native.Snowball(**arrays, target=3, fan_out=2, restart=True, any_order=False), engine(**arrays)
    before = (
        sampler.memberships(1, 2, 0, 20, 1),
        trainer.trained_parameters(trainer.initial_parameters(1, 0), np.ones(4, dtype=np.uint8)),
    )
    for values in arrays.values():
        values[:] = 2**30
    after = (
        sampler.memberships(1, 2, 0, 20, 1),
        trainer.trained_parameters(trainer.initial_parameters(1, 0), np.ones(4, dtype=np.uint8)),
    )
    assert all(np.array_equal(first, second) for first, second in zip(before, after, strict=True))


def test_extreme_counts_give_numbers() -> None:
    counts = np.array(
        [[2.0**40, 2.0**40, 2.0**39, 2.0**27], [0, 0, 0, 0], [2.0**40, 0, 0, 0], [1, 2.0**40, 1, 2.0**40]]
    )
    left = np.array([0.01, 1.0, 50.0, np.inf])
    values = _native.log_likelihood(counts, np.zeros(4), np.ones(4), left, left, np.full(4, -np.inf), 0.0, 2, None)
    assert not np.isnan(values).any()
    on_grid = _native.grid_log_likelihood(counts, np.zeros(4), np.ones(4), left, left, 400.0, 0.0, 2, None)
    assert not np.isnan(on_grid).any()
    assert not np.isnan(_native.node_log_likelihood(counts, np.zeros(4), left, left, 0.0, 2)).any()
    assert not np.isnan(_native.leakage_quantiles(counts, np.array([0.5]), 2)).any()


def test_certain_memberships_do_not_break_the_chains() -> None:
    draws, acceptance = np.zeros((1, 5, 3)), np.zeros(1)
    for log_odds in (-np.inf, np.inf, 700.0, -700.0):
        _native.run_mhaar(
            COUNTS,
            np.full(3, log_odds),
            bounds_left=True,
            bounds_right=True,
            is_joint=False,
            prior_mean=0.0,
            prior_variance=1.0,
            strength=0.0,
            strength_prior=None,
            tau_variance=0.1,
            num_auxiliary=4,
            num_iterations=10,
            burn_in=5,
            seed=1,
            purpose=7,
            num_threads=1,
            draws=draws,
            acceptance=acceptance,
            progress=None,
        )
    assert np.isfinite(acceptance).all()


def test_every_number_of_threads_gives_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for threads in (2, 7, 100_000):
        statistics = [np.zeros((3, 5, 4), dtype=np.float32) for _ in range(2)]
        run(statistics=statistics[0], num_threads=1)
        run(statistics=statistics[1], num_threads=threads)
        assert statistics[0].tobytes() == statistics[1].tobytes()
        assert np.array_equal(memberships(count=50, num_threads=1), memberships(count=50, num_threads=threads))
    assert capsys.readouterr().err == ""
