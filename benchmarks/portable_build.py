"""The portable build against one tuned for this machine, side by side: training, attack and estimation.

python benchmarks/portable_build.py [--quick]

Compiles a tuned copy of the kernels in a temporary folder. Both do the same work on one thread, in turn, each in a
process of its own; a time is the least of several, in seconds of the processor. Then the same for the other instruction
sets of the portable build.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import bmpaudit
from bmpaudit import _native

ROOT = Path(__file__).parents[1]
PACKAGE = Path(bmpaudit.__file__).parent
NUM_NODES, NUM_EDGES, NUM_FEATURES, FEATURES_EACH, NUM_CLASSES = 2_700, 5_300, 1_400, 18, 7  # much like Cora


def compressed_rows(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compressed sparse rows of distinct entries."""
    entries = np.unique(np.stack([rows, columns], axis=1), axis=0)
    starts = np.append(0, np.cumsum(np.bincount(entries[:, 0], minlength=NUM_NODES)))
    return starts.astype(np.int64), entries[:, 1].astype(np.int32)


def training(architecture: str, heads: int) -> Callable[[], object]:
    """Two models on a random graph, from weights to margins of four views."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, NUM_NODES, (NUM_EDGES, 2))
    graph = compressed_rows(pairs.ravel(), pairs[:, ::-1].ravel())
    nodes = np.repeat(np.arange(NUM_NODES), FEATURES_EACH)
    features = compressed_rows(nodes, rng.integers(0, NUM_FEATURES, len(nodes)))
    labels = rng.integers(0, NUM_CLASSES, NUM_NODES).astype(np.int32)
    hidden = 16 if heads == 1 else 4
    layers = [
        _native.LayerSettings(architecture, hidden, heads, drops_input=heads > 1, drops_attention=heads > 1),
        _native.LayerSettings(architecture, NUM_CLASSES, drops_input=True, drops_attention=heads > 1),
    ]
    model = _native.ModelSettings(layers, "relu", 0.5)
    settings = _native.TrainingSettings(100, 0.01, 5e-4, "adam")
    engine = _native.ShadowEngine(*graph, *features, None, None, NUM_FEATURES, labels, NUM_CLASSES, model, settings)
    no_edges = (np.zeros_like(graph[0]), np.zeros(0, dtype=np.int32))
    member = (rng.random((2, NUM_NODES)) < 0.25).astype(np.uint8)
    views = [(0, 0.0), (0, 0.25), (1, 0.0), (1, 0.25)]
    statistics = np.zeros((4, 2, NUM_NODES), dtype=np.float32)
    state, accuracy = np.zeros(2, dtype=np.uint8), np.zeros((2, 2), dtype=np.float32)
    of_views = np.zeros((2, 4, 2), dtype=np.float32)
    numbers = np.arange(2, dtype=np.int64)
    return lambda: engine.run(
        *(member, numbers, 1, [graph, no_edges], views, 1),
        *(statistics, None, state, *accuracy, *of_views, None),
    )


def attack() -> Callable[[], object]:
    """Leave-one-out challenges of 500 models."""
    rng = np.random.default_rng(0)
    statistics = rng.normal(size=(500, NUM_NODES)).astype(np.float32)
    member = (rng.random(statistics.shape) < 0.25).astype(np.uint8)
    log_odds, fittable = np.full(NUM_NODES, -1.1), np.ones(NUM_NODES, dtype=np.uint8)
    errors = np.zeros((2, 2, NUM_NODES), dtype=np.int64)
    return lambda: _native.challenge_models(
        statistics, member, None, None, log_odds, fittable, False, 0.0, 0.0, 1, errors, None
    )


def example_counts() -> np.ndarray:
    """Errors of an attack on 600 nodes."""
    rng = np.random.default_rng(0)
    trials = np.stack([rng.integers(300, 400, 600), rng.integers(100, 200, 600)], axis=1)
    return np.hstack([trials, rng.binomial(trials, [0.2, 0.4])]).astype(np.float64)


def exact_estimation() -> Callable[[], object]:
    """The likelihood on a grid."""
    counts, epsilon = example_counts(), np.linspace(1.2, 6, 60)
    log_odds, times = np.linspace(-1.2, -1.0, len(counts)), np.ones(len(counts))
    return lambda: _native.grid_log_likelihood(counts, log_odds, times, epsilon, epsilon, 400.0, 0.0, 1, None)


def chains() -> Callable[[], object]:
    """Algorithm 3."""
    counts = example_counts()
    log_odds, draws, acceptance = np.full(len(counts), -1.1), np.zeros((1, 200, 1)), np.zeros(1)
    return lambda: _native.run_mhaar(
        counts, log_odds, True, True, False, 0.0, 9.0, 0.0, None, None, 50, 400, 200, 1, 7, 1, draws, acceptance, None
    )


WORK: dict[str, Callable[[], Callable[[], object]]] = {
    "training, GCN": lambda: training("gcn", 1),
    "training, GAT": lambda: training("gat", 8),
    "attack": attack,
    "estimation, exact": exact_estimation,
    "estimation, MHAAR": chains,
}


def measure(repeats: int) -> dict[str, float]:
    """The least processor time of each piece of work."""
    least = {}
    for name, prepare in WORK.items():
        work, times = prepare(), []
        for _ in range(repeats):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        least[name] = min(times)
    return least


def tool(name: str) -> str:
    """A program of this Python's environment, or of the system."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or name


def build_tuned_copy(folder: Path) -> Path:
    """Compiles tuned kernels into a copy of the package; returns the folder to import it from."""
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_MAKE_PROGRAM": tool("ninja"),
        "Python_EXECUTABLE": sys.executable,
        "nanobind_DIR": nanobind,
        "BMPAUDIT_TUNE_FOR_THIS_MACHINE": "ON",
    }
    build = folder / "build"
    options = [f"-D{name}={value}" for name, value in settings.items()]
    configure = [tool("cmake"), "-S", str(ROOT), "-B", str(build), "-G", "Ninja", *options]
    for command in (configure, [tool("cmake"), "--build", str(build)]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    shutil.copytree(PACKAGE, folder / "copy" / "bmpaudit", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for library in build.glob("*.so"):
        shutil.copy(library, folder / "copy" / "bmpaudit" / "_native")
    return folder / "copy"


def measured_in_a_process(path: Path, instruction_set: str, repeats: int) -> dict[str, float]:
    """The times of one build."""
    environment = {**os.environ, "PYTHONPATH": str(path), "BMPAUDIT_INSTRUCTION_SET": instruction_set}
    command = [sys.executable, str(Path(__file__)), "--measure", str(repeats)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    times: dict[str, float] = json.loads(done.stdout)
    return times


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    turns, repeats = (2, 3) if arguments.quick else (5, 5)
    with tempfile.TemporaryDirectory() as folder:
        tuned = build_tuned_copy(Path(folder))
        portable = PACKAGE.parent
        in_use = _native.instruction_set
        others = [name for name in ("avx2", "baseline") if name != in_use and in_use != "tuned"]
        builds = [(tuned, "tuned"), (portable, in_use), *((portable, name) for name in others)]
        times: dict[str, list[dict[str, float]]] = {name: [] for _, name in builds}
        for _ in range(turns):
            for path, name in builds:
                times[name].append(measured_in_a_process(path, name, repeats))
    least = {name: {work: min(turn[work] for turn in all_turns) for work in WORK} for name, all_turns in times.items()}
    print(f"{'':<20}{'tuned':>12}" + "".join(f"{name:>12}{'speed':>8}" for _, name in builds[1:]))
    for work in WORK:
        row = f"{work:<20}{least['tuned'][work] * 1e3:9.1f} ms"
        for _, name in builds[1:]:
            row += f"{least[name][work] * 1e3:9.1f} ms{least['tuned'][work] / least[name][work]:8.0%}"
        print(row)


if __name__ == "__main__":
    main()
