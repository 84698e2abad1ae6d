"""Results of all runs as tables: what the page, the figures and the findings are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from bmpaudit.paper.cell_results import PERCENTILES
from bmpaudit.paper.experiments import COUNTINGS, DEFINITIONS, KEY, VARIANTS, Cell
from bmpaudit.paper.proofs import PROOFS
from bmpaudit.paper.run import Run, load_counts
from bmpaudit.paper.tasks import result_name

CELL_COLUMNS = (
    *KEY,
    *PERCENTILES,
    "seed",
    "counting",
    "mean",
    "floor",
    "accuracy",
    "balanced_accuracy",
    "num_models",
    "num_nodes",
    "num_not_auditable",
    "num_constant",
    "seconds",
)
CLOCKS = {"seconds": "seconds", "processor": "processor_seconds"}
"""What is measured of each result: time that passed, and time of the processor."""
NOT_IN_JOINT = ("left", "right", "processor_seconds")
NOT_IN_NODES = ("nodes", "processor_seconds")


class _Found(NamedTuple):
    """A result about one cell.

    Attributes:
        run: The run it belongs to.
        key: The cell and the seed.
        kind: What kind of result; the way of counting for a posterior.
        result: The result itself.
        posteriors: The cell's posteriors by way of counting.
    """

    run: Run
    key: dict[str, Any]
    kind: str
    result: dict[str, Any]
    posteriors: dict[str, dict[str, Any]]


def _find(runs: Iterable[Run], *kinds: str, definitions: Iterable[str] = DEFINITIONS) -> Iterator[_Found]:
    for run in runs:
        results = run.results
        for variant, definition, kind in product(VARIANTS, definitions, kinds):
            result = results.get(result_name(variant, definition, kind))
            if result is not None:
                names = {counting: result_name(variant, definition, counting) for counting in COUNTINGS}
                posteriors = {counting: results[name] for counting, name in names.items() if name in results}
                key = {**Cell(run.configuration, variant, definition).key, "seed": run.seed}
                yield _Found(run, key, kind, result, posteriors)


def cell_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per cell, seed and way of counting."""
    rows = [
        {**key, "counting": counting, "num_models": run.num_models, **result}
        for run, key, counting, result, _ in _find(runs, *COUNTINGS)
    ]
    return pd.DataFrame(rows, columns=list(CELL_COLUMNS))


def mhaar_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per cell that was estimated by Algorithm 3, with the exact posterior from the same counts."""
    rows = [
        {
            **key,
            **{f"exact_{name}": posteriors["paper"][name] for name in PERCENTILES},
            **{f"mhaar_{name}": result[name] for name in PERCENTILES},
            **{name: result[name] for name in ("r_hat", "bulk_ess", "acceptance_rate")},
            "mhaar_seconds": result["seconds"],
            "exact_seconds": posteriors["paper"]["seconds"],
        }
        for _, key, _, result, posteriors in _find(runs, "mhaar")
    ]
    return pd.DataFrame(rows)


def unflagged_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per cell: p50 counted the paper's way, ours, and without all flagged nodes."""
    rows = [
        {
            **key,
            **{f"p50_{counting}": posterior["p50"] for counting, posterior in posteriors.items()},
            "p50_unflagged": result["p50"],
            "num_nodes": result["num_nodes"],
        }
        for _, key, _, result, posteriors in _find(runs, "unflagged")
    ]
    return pd.DataFrame(rows)


def deciding_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per cell that disagrees: the node that it depends on most, and p50 without it."""
    rows = [
        {**key, **result, "p50": posteriors["paper"]["p50"], "node_counts": "/".join(map(str, result["node_counts"]))}
        for _, key, _, result, posteriors in _find(runs, "deciding")
    ]
    return pd.DataFrame(rows)


def joint_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per joint posterior."""
    rows = [
        {**key, "counting": counting, **{name: result[name] for name in result if name not in NOT_IN_JOINT}}
        for _, key, counting, result, _ in _find(runs, *COUNTINGS, definitions=("bmp",))
    ]
    return pd.DataFrame(rows)


def joint_draws(runs: Iterable[Run]) -> pd.DataFrame:
    """Draws of the joint posteriors, counted the paper's way; a row per draw."""
    frames = [
        pd.DataFrame(
            {
                **{name: key[name] for name in ("sampler", "query", "rule")},
                "epsilon_left": result["left"],
                "epsilon_right": result["right"],
            }
        )
        for _, key, _, result, _ in _find(runs, "paper", definitions=("bmp",))
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def node_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per run and way of counting: how the ε that nodes imply varies with their priors."""
    rows = []
    for run in runs:
        for counting in COUNTINGS:
            summary = run.results.get(f"nodes/{counting}")
            if summary is not None:
                figures = {name: value for name, value in summary.items() if name not in NOT_IN_NODES}
                rows.append({**asdict(run.configuration), "seed": run.seed, "counting": counting, **figures})
    return pd.DataFrame(rows)


def nodes_shown(runs: Iterable[Run]) -> pd.DataFrame:
    """Prior and implied ε of each node of Figure 3."""
    frames = []
    for run in runs:
        nodes = run.results.get("nodes/paper", {}).get("nodes")
        if nodes is not None:
            frames.append(pd.DataFrame({"sampler": run.configuration.sampler, **nodes}))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def run_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per run: how long it took, and how accurate its models are."""
    rows = []
    for run in runs:
        if not run.counts_path.exists():
            continue
        about, results = dict(load_counts(run).about), run.results
        for name in ("plan", "build"):
            about.pop(name)
        names = {
            counting: [result_name(*cell, counting) for cell in product(VARIANTS, DEFINITIONS)]
            for counting in COUNTINGS
        }
        seconds = {
            f"{clock}_posteriors_{counting}": sum(results[name][key] for name in names[counting] if name in results)
            for clock, key in CLOCKS.items()
            for counting in COUNTINGS
        }
        proofs = {name: result for name, result in results.items() if name.startswith(PROOFS)}
        seconds |= {f"{clock}_proofs": sum(result[key] for result in proofs.values()) for clock, key in CLOCKS.items()}
        seconds["processor_checks"] = sum(
            result[CLOCKS["processor"]]
            for name, result in results.items()
            if name not in proofs and not any(name in of for of in names.values())
        )
        rows.append({**asdict(run.configuration), "seed": run.seed, **about, "failed": len(about["failed"]), **seconds})
    return pd.DataFrame(rows)
