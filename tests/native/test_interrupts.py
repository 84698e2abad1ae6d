"""Ctrl-C ends every long native call soon, also in the middle of its only task."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BEFORE = """
import signal
import numpy as np
from bmpaudit import _native

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
path = np.array([0, 1, 3, 4], dtype=np.int64), np.array([1, 0, 2, 1], dtype=np.int32)  # 0 - 1 - 2
counts = np.column_stack([rng.integers(100, 200, (4_000, 2)), rng.integers(0, 100, (4_000, 2))]).astype(np.float64)
odds, times = rng.normal(size=4_000), np.ones(4_000)
epsilon = np.linspace(3, 12, 2_000)


def walks():
    return _native.RandomWalks(*path, 2**31 - 1, 2**31 - 1)


def engine():
    model = _native.ModelSettings([_native.LayerSettings("gcn", 8), _native.LayerSettings("gcn", 2)], "relu", 0.0)
    training = _native.TrainingSettings(2**31 - 1, 0.01, 0.0, "adam")
    features, labels = np.ones(6, dtype=np.float32), np.array([0, 1, 0], dtype=np.int32)
    return _native.ShadowEngine(*path, None, None, None, features, 2, labels, 2, model, training)


def one_model(engine):
    statistics, one = np.zeros((1, 1, 3), dtype=np.float32), np.zeros(1, dtype=np.float32)
    member, state = np.ones((1, 3), dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    views = np.zeros((2, 1, 1), dtype=np.float32)
    engine.run(member, np.zeros(1, dtype=np.int64), 1, [path], [(0, 0.0)], 2, statistics, None, state, one, one,
               *views, None)


def chains(correlated):
    draws, acceptance = np.zeros((2, 1, 3 if correlated else 1)), np.zeros(2)
    tau_variance = 1e-4 if correlated else None
    _native.run_mhaar(counts, odds, True, True, False, 0.0, 9.0, 0.0, None, tau_variance, 2_000, 10**9, 10**9 - 1, 1, 7,
                      2, draws, acceptance, None)


def rows():
    num_nodes, ones = 2_000, np.ones(2_000, dtype=np.float32)
    entries = np.arange(0, 50 * num_nodes + 1, 50), np.tile(np.arange(50, dtype=np.int32), num_nodes)
    x, one_model = np.ones(50 * num_nodes, dtype=np.float32), np.full((1, num_nodes), 2, dtype=np.uint8)
    prior = ones[:50].copy(), np.ones((num_nodes, 4), dtype=np.float32), ones, ones
    statistic = np.zeros((1, num_nodes), dtype=np.float32)
    _native.infer_members(*entries, x, np.ones((1, 50, 4), dtype=np.float32), one_model, *prior,
                          np.ones(10**7, dtype=np.float32), True, 2, statistic, None, None)


print("ready", flush=True)
"""
LONG_CALLS = {
    "sample": "walks().sample(np.random.PCG64(1))",
    "memberships": "walks().memberships(1, 2, 0, 1, 2)",
    "counts": "walks().counts(1, 2, 0, 4, 2)",
    "run": "one_model(engine())",
    "trained parameters": "engine().trained_parameters(engine().initial_parameters(1, 0), np.ones(3, dtype=np.uint8))",
    "log-likelihood": "_native.log_likelihood(counts, odds, times, epsilon, epsilon, epsilon - 1e9, 0.3, 2, None)",
    "of rows": "_native.node_log_likelihood(counts, odds, epsilon, epsilon, 0.3, 2)",
    "grid": "_native.grid_log_likelihood(counts, odds, times, epsilon, epsilon, np.inf, 0.3, 2, None)",
    "quantiles": "_native.leakage_quantiles(np.repeat(counts, 50, axis=0), np.linspace(0.001, 0.999, 400), 2)",
    "rows": "rows()",
    "chains": "chains(correlated=False)",
    "correlated chains": "chains(correlated=True)",
}


@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c_ends_a_long_call(call: str) -> None:
    command = [sys.executable, "-c", BEFORE + LONG_CALLS[call]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)  # of work that takes minutes at least, mostly years
        finally:
            process.kill()
        assert process.stderr.read().strip().endswith("KeyboardInterrupt")


def test_a_model_stopped_while_it_is_scored_leaves_nothing_behind() -> None:
    call = """
num_nodes, num_views, num_classes = 20_000, 400, 64  # takes far longer than the 0.1 s between polls
model = _native.ModelSettings([_native.LayerSettings("mlp", num_classes)], "relu", 0.0)
training = _native.TrainingSettings(0, 0.01, 0.0, "sgd")
query = np.zeros(num_nodes + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
features, labels = np.ones(2 * num_nodes, dtype=np.float32), (np.arange(num_nodes) % num_classes).astype(np.int32)
engine = _native.ShadowEngine(*query, None, None, None, features, 2, labels, num_classes, model, training)
statistics = np.full((num_views, 1, num_nodes), np.nan, dtype=np.float32)
state = np.zeros(1, dtype=np.uint8)
one, other = np.full((2, 1), np.nan, dtype=np.float32)


def stop(done):
    raise RuntimeError("stop")


views = [(0, 0.01 * number) for number in range(num_views)]  # one last layer after another
member = np.ones((1, num_nodes), dtype=np.uint8)
try:
    engine.run(member, np.zeros(1, dtype=np.int64), 1, [query], views, 1, statistics, None, state, one, other,
               *np.zeros((2, len(views), 1), dtype=np.float32), stop)
except RuntimeError:
    print(state[0], np.isnan(statistics).all(), np.isnan([one, other]).all())
"""
    done = subprocess.run([sys.executable, "-c", BEFORE + call], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[1:] == ["0 True True"], done.stderr


def test_an_exception_of_the_progress_ends_a_long_call() -> None:
    call = """
def fail(done):
    raise RuntimeError(f"enough after {type(done).__name__}")

_native.run_mhaar(counts, odds, True, True, False, 0.0, 9.0, 0.0, None, None, 50, 10**9, 10**9 - 1, 1, 7, 2,
                  np.zeros((2, 1, 1)), np.zeros(2), fail)
"""
    done = subprocess.run([sys.executable, "-c", BEFORE + call], capture_output=True, text=True, timeout=120)
    assert done.stderr.strip().endswith("RuntimeError: enough after int")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the address space in use is read from /proc")
def test_a_call_that_gets_no_further_threads_works_on_its_own() -> None:
    call = """
import resource
from pathlib import Path

sampler = _native.GroupedSubset(np.zeros(9, dtype=np.int32), [4])
wanted = sampler.memberships(1, 2, 0, 500, 1)
in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**20, in_use + 2**20))  # no thread gets its stack of 8 MB
print("same" if (sampler.memberships(1, 2, 0, 500, 8) == wanted).all() else "different")
"""
    done = subprocess.run([sys.executable, "-c", BEFORE + call], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["ready", "same"], done.stderr
