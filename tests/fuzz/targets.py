"""What is fuzzed: for each kind of input, files that are right, and everything that reads them."""

from __future__ import annotations

import contextlib
import io
import random
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mutations import mutate_file, mutate_folder

import bmpaudit
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.auditing.finished import Audit, read_nodes
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.datasets.catalog import read_content, read_planetoid
from bmpaudit.estimation import estimate
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.graph.graph import Graph
from bmpaudit.inference.released import declared_prior, known_members
from bmpaudit.pipeline.outside_runs import ProofSettings, prove_file, read_runs_file
from bmpaudit.plan import format_plan, read_plan
from bmpaudit.shadow.released import read_released
from bmpaudit.util.errors import InputError

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "auditing"), str(TESTS / "datasets")]
from planetoid_files import write_small_planetoid  # noqa: E402
from small_audit import QUIET, leaky_graph, run_audit, tiny_plan  # noqa: E402

REFUSALS: tuple[type[Exception], ...] = (InputError,)
"""What may come out of a reader."""


@dataclass(frozen=True)
class Target:
    """One kind of input.

    Attributes:
        make: Writes whole files into a folder.
        read: Reads them; may raise nothing but bmpaudit's own errors.
        mutate: Damages the folder.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], None]
    mutate: Callable[[Path, random.Random], None]


def one_of_all(folder: Path, rng: random.Random) -> None:
    """Damages one of the files."""
    mutate_file(rng.choice(sorted(path for path in folder.rglob("*") if path.is_file())), rng)


def one_file(folder: Path, rng: random.Random) -> None:
    """Damages one of the files and removes the others, which have nothing to do with it."""
    files = sorted(folder.iterdir())
    chosen = rng.choice(files)
    for path in files:
        if path != chosen:
            path.unlink()
    mutate_file(chosen, rng)


def each(folder: Path, read: Callable[[Path], Any], pattern: str = "*") -> None:
    """Reads each file, whether or not others can be read."""
    for path in sorted(folder.glob(pattern)):
        with contextlib.suppress(*REFUSALS):
            read(path)


COUNTS = {
    "node": ["a", "b", "c"],
    "num_out": [20, 20, 20],
    "num_in": [10, 10, 10],
    "false_positives": [1, 0, 20],
    "false_negatives": [9, 10, 0],
    "prior_prob": [0.3, 0.2, 0.5],
}


def _make_counts(folder: Path) -> None:
    pd.DataFrame(COUNTS).to_csv(folder / "a.csv", index=False)
    pd.DataFrame(COUNTS | {"node": range(3)}).to_parquet(folder / "b.parquet", index=False)


def _make_plans(folder: Path) -> None:
    (folder / "a.toml").write_text(format_plan(tiny_plan(), "demo"))
    (folder / "b.toml").write_text(
        format_plan(bmpaudit.AuditPlan(releases=("clean", "noisy"), attack="student"), "cora.npz")
    )


@cache
def graph() -> Graph:
    """A graph with names."""
    return leaky_graph(12, node_names=[f"n{node}" for node in range(12)], class_names=["x", "y", "z"])


def _make_graphs(folder: Path) -> None:
    graph().to_npz(folder / "sparse.npz")
    Graph.from_edges([(0, 1), (1, 2)], np.ones((3, 2)), [0, 1, 1]).to_npz(folder / "dense.npz")


def _make_tables(folder: Path) -> None:
    graph().to_folder(folder / "csv", format="csv")
    graph().to_folder(folder / "parquet", format="parquet")


def _make_content(folder: Path) -> None:
    (folder / "tiny.content").write_text("a 1 0 x\nb 0 1 y\nc 1 1 y\n")
    (folder / "tiny.cites").write_text("a b\nb c\n")


@cache
def _finished() -> Path:
    import tempfile

    path = Path(tempfile.mkdtemp(prefix="bmpaudit-fuzz-")) / "audit"
    run_audit(path, tiny_plan())
    return path


def _make_audit(folder: Path) -> None:
    shutil.copytree(_finished(), folder, dirs_exist_ok=True)


def _read_audit(folder: Path) -> None:
    steps: tuple[Callable[[], Any], ...] = (
        lambda: read_nodes(Workspace(folder)),
        lambda: _print_nodes(folder),
        lambda: bmpaudit.check(folder, max_proven_right=3),
        lambda: _use(Audit.load(folder)),
    )
    for step in steps:
        with contextlib.suppress(*REFUSALS):
            step()


def _print_nodes(folder: Path) -> None:
    from bmpaudit.cli import cli

    with contextlib.redirect_stdout(io.StringIO()):  # not the command by itself, which would keep a help of its own
        cli.main(["nodes", str(folder)], standalone_mode=False)


def _use(audit: Audit) -> None:
    from bmpaudit.cli.show import print_result
    from bmpaudit.report.page_data import page_data

    str(audit)
    audit.nodes.head()
    with contextlib.redirect_stdout(io.StringIO()):
        print_result(audit.result)
    with contextlib.suppress(*REFUSALS):
        audit.runs.statistics["full_clean"][:]
    page_data(audit)


def _make_runs(folder: Path) -> None:
    rng = np.random.default_rng(1)
    shape = (24, 12)
    members = rng.random(shape) < 0.5
    margins = (rng.normal(size=shape) + members).astype(np.float32)
    np.savez(folder / "runs.npz", memberships=members, full_clean=margins)
    logits = rng.normal(size=(*shape, 3)).astype(np.float32)
    np.savez_compressed(folder / "logits.npz", memberships=members.astype(np.uint8), full_clean=logits)
    prior = np.full(12, 0.5)
    np.savez(folder / "prove.npz", memberships=members, prior_prob=prior, full_clean=margins, labels=graph().labels)


def _read_runs(path: Path) -> None:
    if path.name != "prove.npz":
        read_runs_file(path, graph())
    else:
        prove_file(path, ProofSettings(), QUIET)


def _make_posteriors(folder: Path) -> None:
    counts = ErrorCounts.from_arrays(**{name: np.array(values) for name, values in COUNTS.items()})
    estimate(counts, "bmp-r").save(folder / "exact.npz")
    estimate(counts, "mp", method="mhaar", num_iterations=40, num_chains=2, num_auxiliary=4).save(folder / "chains.npz")
    estimate(counts, "bmp").save(folder / "joint.npz")


def _read_posterior(path: Path) -> None:
    posterior = Posterior.load(path)
    str(posterior)
    posterior.summary()
    for name in posterior.marginals:
        posterior.interval(0.9, name)


def _make_released(folder: Path) -> None:
    rng = np.random.default_rng(1)
    outputs = rng.normal(size=(12, 3)).astype(np.float32)
    np.savez(folder / "outputs.npz", full=outputs)
    weights: dict[str, Any] = {
        "0.weight": rng.normal(size=(8, 12)),
        "0.bias": np.zeros(8),
        "1.weight": rng.normal(size=(3, 8)),
        "1.bias": np.zeros(3),
    }
    np.savez(folder / "weights.npz", **weights)
    np.save(folder / "outputs.npy", outputs)
    table = pd.DataFrame({str(k): outputs[:, k] for k in range(3)})
    table.assign(node=[f"n{k}" for k in range(12)]).to_parquet(folder / "outputs.parquet", index=False)
    header = b'{"full":{"dtype":"F32","shape":[12,3],"data_offsets":[0,144]}}'
    (folder / "outputs.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + outputs.tobytes())


def _read_released(path: Path) -> None:
    read_released(path, graph(), tiny_plan().shadow_plan, "clean")


def _make_truth(folder: Path) -> None:
    flags = np.arange(12) % 2 == 0
    np.save(folder / "flags.npy", flags)
    np.savez(folder / "members.npz", memberships=np.flatnonzero(flags))
    (folder / "names.txt").write_text("n1\nn3\n")
    names = [f"n{k}" for k in range(12)]
    table = pd.DataFrame({"node": names, "member": flags.astype(int), "prior_prob": np.linspace(0.1, 0.9, 12)})
    table.to_csv(folder / "table.csv", index=False)
    table.to_parquet(folder / "table.parquet", index=False)
    np.save(folder / "priors.npy", np.linspace(0.1, 0.9, 12))


def _read_truth(path: Path) -> None:
    if path.name != "priors.npy":
        with contextlib.suppress(*REFUSALS):
            known_members(path, graph())
    if path.stem in ("priors", "table"):
        declared_prior(path, graph())


TARGETS = {
    "count tables": Target(_make_counts, lambda folder: each(folder, ErrorCounts.from_table), one_file),
    "plan files": Target(_make_plans, lambda folder: each(folder, read_plan), one_file),
    "graph archives": Target(_make_graphs, lambda folder: each(folder, Graph.from_npz), one_file),
    "graph tables": Target(_make_tables, lambda folder: each(folder, Graph.from_folder), one_of_all),
    "Planetoid files": Target(write_small_planetoid, lambda folder: _read_named(read_planetoid, folder), one_of_all),
    "content files": Target(_make_content, lambda folder: _read_named(read_content, folder), one_of_all),
    "audit folders": Target(_make_audit, _read_audit, mutate_folder),
    "runs archives": Target(_make_runs, lambda folder: each(folder, _read_runs), one_file),
    "posteriors": Target(_make_posteriors, lambda folder: each(folder, _read_posterior), one_file),
    "released models": Target(_make_released, lambda folder: each(folder, _read_released), one_file),
    "members and priors": Target(_make_truth, lambda folder: each(folder, _read_truth), one_file),
}


def _read_named(read: Callable[[Path, str], Any], folder: Path) -> None:
    with contextlib.suppress(*REFUSALS):
        read(folder, "tiny")


def attempt(target: Target, whole: Path, scratch: Path, rng: random.Random) -> None:
    """Damages a copy of whole files and reads it; whatever is raised is a failure.

    Warnings are shown to the user, and are none.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(whole, scratch)
    for _ in range(rng.choice((1, 1, 1, 2))):
        target.mutate(scratch, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target.read(scratch)
