"""Results of all runs as tables: what the page, the figures and the findings are made from."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pandas as pd

from bmpaudit.paper.experiments import COUNTINGS, KEY, MEASURES, VARIANTS, Cell
from bmpaudit.paper.reproduce import Run, cell_name, load_counts

CELL_COLUMNS = (
    *KEY,
    "p5",
    "p50",
    "p95",
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


def cell_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a cell, seed and way of counting, of what is there."""
    rows = []
    for run in runs:
        results = run.results
        for variant, measure, counting in product(VARIANTS, MEASURES, COUNTINGS):
            found = results.get(cell_name(variant, measure, counting))
            if found is not None:
                key = dict(zip(KEY, Cell(run.configuration, variant, measure).key, strict=True))
                rows.append({**key, "seed": run.seed, "counting": counting, "num_models": run.num_models, **found})
    return pd.DataFrame(rows, columns=list(CELL_COLUMNS))


def mhaar_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a cell that was estimated by Algorithm 3, with the exact posterior of the same counts."""
    rows = []
    for run in runs:
        results = run.results
        for variant, measure in product(VARIANTS, MEASURES):
            found = results.get(f"{variant.name}/{measure}/mhaar")
            exact = results.get(cell_name(variant, measure, "paper"))
            if found is None or exact is None:
                continue
            key = dict(zip(KEY, Cell(run.configuration, variant, measure).key, strict=True))
            rows.append(
                {
                    **key,
                    "seed": run.seed,
                    **{f"exact_{name}": exact[name] for name in ("p5", "p50", "p95")},
                    **{f"mhaar_{name}": found[name] for name in ("p5", "p50", "p95")},
                    **{name: found[name] for name in ("r_hat", "bulk_ess", "acceptance_rate")},
                    "mhaar_seconds": found["seconds"],
                    "exact_seconds": exact["seconds"],
                }
            )
    return pd.DataFrame(rows)


def unflagged_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a cell under snowball sampling: p50 counted the paper's way, ours, and without all flagged nodes."""
    rows = []
    for run in runs:
        results = run.results
        for variant, measure in product(VARIANTS, MEASURES):
            found = results.get(f"{variant.name}/{measure}/unflagged")
            if found is not None:
                key = dict(zip(KEY, Cell(run.configuration, variant, measure).key, strict=True))
                told = {f"p50_{way}": results[cell_name(variant, measure, way)]["p50"] for way in COUNTINGS}
                rows.append({**key, "seed": run.seed, **told, "p50_unflagged": found["p50"], **found})
    return pd.DataFrame(rows).drop(columns="p50", errors="ignore")


def joint_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a joint posterior."""
    return pd.DataFrame([row for row, _ in _joints(runs)])


def joint_draws(runs: Iterable[Run]) -> pd.DataFrame:
    """Draws of the joint posteriors, counted the paper's way; one row a draw."""
    frames = [
        pd.DataFrame({**_named(row), "epsilon_left": draws["left"], "epsilon_right": draws["right"]})
        for row, draws in _joints(runs)
        if row["counting"] == "paper"
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _joints(runs: Iterable[Run]) -> list[tuple[dict[str, object], dict[str, list[float]]]]:
    found = []
    for run in runs:
        results = run.results
        for variant, counting in product(VARIANTS, COUNTINGS):
            joint = results.get(f"{variant.name}/bmp/{counting}")
            if joint is not None:
                key = dict(zip(KEY, Cell(run.configuration, variant, "bmp-r").key, strict=True)) | {"measure": "bmp"}
                told = {name: value for name, value in joint.items() if name not in ("left", "right")}
                found.append(({**key, "seed": run.seed, "counting": counting, **told}, joint))
    return found


def _named(row: dict[str, object]) -> dict[str, object]:
    return {name: row[name] for name in ("sampling", "edges", "decision")}


def node_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a run and way of counting: how priors go with the ε that nodes imply."""
    rows = []
    for run in runs:
        for counting in COUNTINGS:
            found = run.results.get(f"nodes/{counting}")
            if found is not None:
                of = run.configuration
                key = {name: getattr(of, name) for name in ("dataset", "train_fraction", "sampling", "model")}
                told = {name: value for name, value in found.items() if name != "nodes"}
                rows.append({**key, "seed": run.seed, "counting": counting, **told})
    return pd.DataFrame(rows)


def nodes_shown(runs: Iterable[Run]) -> pd.DataFrame:
    """Prior and implied ε of each node of Figure 3."""
    frames = []
    for run in runs:
        nodes = run.results.get("nodes/paper", {}).get("nodes")
        if nodes is not None:
            frame = pd.DataFrame(nodes)
            frame.insert(0, "sampling", run.configuration.sampling)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def deciding_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a cell that was looked into: the node it hangs on, and p50 without it."""
    rows = []
    for run in runs:
        results = run.results
        for variant, measure in product(VARIANTS, MEASURES):
            found = results.get(f"{variant.name}/{measure}/deciding")
            if found is not None:
                key = dict(zip(KEY, Cell(run.configuration, variant, measure).key, strict=True))
                whole = results[cell_name(variant, measure, "paper")]["p50"]
                told = found | {"node_counts": "/".join(map(str, found["node_counts"]))}
                rows.append({**key, "seed": run.seed, "p50": whole, **told})
    return pd.DataFrame(rows)


def run_records(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a run: how long it took, how well its models do."""
    rows = []
    for run in runs:
        if not run.counts_path.exists():
            continue
        counts, results = load_counts(run), run.results
        told = {name: value for name, value in counts.about.items() if name not in ("plan", "failed")}
        seconds = {
            f"seconds_posteriors_{counting}": sum(
                found["seconds"]
                for name, found in results.items()
                if name.endswith((f"/bmp-r/{counting}", f"/mp/{counting}"))
            )
            for counting in COUNTINGS
        }
        of = run.configuration
        key = {name: getattr(of, name) for name in ("dataset", "train_fraction", "sampling", "model")}
        failed = len(counts.about.get("failed", []))
        rows.append({**key, "seed": run.seed, "num_models": counts.num_models, "failed": failed, **told, **seconds})
    return pd.DataFrame(rows)
