"""Published and estimated intervals against what is proven, and what they say about exposure."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from bmpaudit.auditing import Runtime
from bmpaudit.auditing.context import Variant
from bmpaudit.util.values import Floats
from reproduction import run as cell_results
from reproduction.experiments import (
    DEFINITIONS,
    FACTORS,
    KEY,
    RELEASES,
    RULES,
    SAMPLERS,
    VARIANTS,
    Cell,
    Configuration,
    published_table,
)
from reproduction.records import exposure_row, proven_row
from reproduction.run import (
    ADVERSARIES,
    PERCENTILES,
    Run,
    Task,
    cell_task,
    challenge_all,
    known_priors,
    load_graph,
    proof_name,
    prove_and_expose,
    rank_correlation,
    result_name,
    train,
    unflagged_task,
)

PROVEN_PARAMETERS = {"bmp-r": "epsilon_right", "mp": "mp"}
PROVERS = {"same": "its own query and attack", "all": "all queries, Student"}
"""Who proves: the adversary of the cell itself, or the strongest one against the same release."""
INTERVALS = {"published": "published", "paper": "ours, counted the paper's way", "ours": "ours, counted our way"}
CONFIGURATION = [name for name in KEY if name not in ("query", "rule", "definition")]
"""The columns that name what was proven, but for the adversary."""
AT = 0.99


def against_proofs(cells: pd.DataFrame, unflagged: pd.DataFrame, proofs: pd.DataFrame) -> pd.DataFrame:
    """A row per cell: the upper ends of its intervals beside what is proven.

    Proven values are medians over seeds, the lower one of an even number: with two or three independent seeds, it
    exceeds the truth only if two bounds do, with a probability of at most 0.8 %, where a single bound has 5 %.

    Args:
        cells: `cell_records`.
        unflagged: `unflagged_records`, of the first seed.
        proofs: `proof_records`.

    Returns:
        The columns of `KEY`; `published_p5`, `published_p50`, `published_p95`, and the same of `paper` and `ours`
        (medians over seeds); `proven_same` and `proven_all`, -∞ where nothing is proven; `below_published_same` and so
        on: whether the end lies below what is proven; `p50_unflagged`, and `is_driven`: whether decisions that never
        vary drive the cell, that is, without them its p50 falls below what p5 was with them.
    """
    table = published_table().rename(columns={name: f"published_{name}" for name in ("p5", "p50", "p95")})
    for counting in ("paper", "ours"):
        own = cells[cells["counting"] == counting].groupby(list(KEY))[["p5", "p50", "p95"]].median().reset_index()
        table = table.merge(own.rename(columns={name: f"{counting}_{name}" for name in ("p5", "p50", "p95")}))
    medians = _proven_medians(proofs)
    for prover in PROVERS:
        adversary = table["query"] if prover == "same" else pd.Series("all", index=table.index)
        keyed = table[[*CONFIGURATION, "definition"]].assign(adversary=adversary).merge(medians, how="left")
        table[f"proven_{prover}"] = keyed["proven"].fillna(-np.inf).to_numpy()
    ends = {
        "published": highest_meant(table["published_p95"].to_numpy(dtype=np.float64)),
        "paper": table["paper_p95"].to_numpy(dtype=np.float64),
        "ours": table["ours_p95"].to_numpy(dtype=np.float64),
    }
    for name, end in ends.items():
        for prover in PROVERS:
            table[f"below_{name}_{prover}"] = end < table[f"proven_{prover}"]
    without = unflagged[unflagged["seed"] == 0][[*KEY, "p50_unflagged"]]
    first = cells[(cells["counting"] == "paper") & (cells["seed"] == 0)][[*KEY, "p5"]]
    table = table.merge(without, how="left").merge(first, how="left")
    return table.assign(is_driven=table["p50_unflagged"].isna() | (table["p50_unflagged"] < table["p5"])).drop(
        columns="p5"
    )


def highest_meant(printed: Floats) -> Floats:
    """The largest number that is printed so with two digits.

    >>> highest_meant(np.array([0.86, 2.4, 11.0])).round(3).tolist()
    [0.865, 2.45, 11.5]
    """
    half = np.where(printed < 1, 0.005, np.where(printed < 10, 0.05, 0.5))
    result: Floats = printed + half
    return result


def directions(cells: pd.DataFrame, exposures: pd.DataFrame) -> pd.DataFrame:
    """Do estimates and exposure rise and fall together?

    For each factor, pairs of cells that differ in nothing else are compared: does p50, counted the paper's way, go the
    way of the share of members that the cell's own adversary names at 99 %?

    Returns:
        A row per factor, definition and rule: `num_pairs`, `num_agreeing`; and, with factor `all`, the number of
        cells as `num_pairs` and the rank correlation over all of them as `correlation`.
    """
    named = exposures[np.isclose(exposures["precision"], AT)].assign(
        share=lambda table: table["correct_mean"] / table["total"]
    )
    shares = named.groupby([*CONFIGURATION, "adversary"])["share"].mean().reset_index()
    middle = cells[cells["counting"] == "paper"].groupby(list(KEY))["p50"].mean().reset_index()
    both = middle.merge(shares.rename(columns={"adversary": "query"}))
    rows = []
    for definition in DEFINITIONS:
        for rule in RULES:
            part = both[(both["definition"] == definition) & (both["rule"] == rule)]
            for factor in (name for name in FACTORS if name != "rule"):
                others = [name for name in (*CONFIGURATION, "query") if name != factor]
                sides = [part[part[factor] == level] for level in FACTORS[factor]]
                pairs = sides[0].merge(sides[1], on=others, suffixes=("_first", "_second"))
                moves = [np.sign(pairs[f"{name}_second"] - pairs[f"{name}_first"]) for name in ("p50", "share")]
                agreeing = int((moves[0] == moves[1]).sum())
                rows.append([factor, definition, rule, len(pairs), agreeing, np.nan])
            correlation = rank_correlation(*(part[name].to_numpy(dtype=np.float64) for name in ("p50", "share")))
            rows.append(["all", definition, rule, len(part), np.nan, correlation])
    return pd.DataFrame(rows, columns=["factor", "definition", "rule", "num_pairs", "num_agreeing", "correlation"])


def _proven_medians(proofs: pd.DataFrame) -> pd.DataFrame:
    parts = []
    for definition, parameter in PROVEN_PARAMETERS.items():
        values = proofs.assign(proven=proofs[f"{parameter}_proven"].fillna(-np.inf), definition=definition)
        grouped = values.groupby([*CONFIGURATION, "definition", "adversary"])["proven"]
        parts.append(grouped.quantile(0.5, interpolation="lower").reset_index())
    return pd.concat(parts, ignore_index=True)


# How what is proven, exposed and estimated moves with the number of models: one configuration, 100 to 20,000.


GROWTH_MODELS = 20_000
GROWTH_SIZES = (100, 300, 1_000, 3_000, 10_000)
GROWN = Configuration("cora", 0.25, "uniform", "gcn")


def growth_run(out: Path, num_models: int = GROWTH_MODELS) -> Run:
    """All models of the study; smaller numbers are the first ones of them."""
    return Run(GROWN, 0, num_models, out)


def sizes_of(run: Run) -> list[int]:
    """Numbers of models to look at, ascending."""
    return [size for size in GROWTH_SIZES if size < run.num_models] + [run.num_models]


def study_growth(run: Run, runtime: Runtime, *, keep_shadows: bool = False) -> None:
    """Proofs, exposure and posteriors, counted the paper's way, for each number of models; only what is missing."""
    results = run.results
    proofs = [
        each
        for each in product(sizes_of(run), RELEASES, ADVERSARIES)
        if _name(each[0], proof_name(*each[1:])) not in results
    ]
    cells = [
        each
        for each in product(sizes_of(run), VARIANTS, DEFINITIONS)
        if _name(each[0], result_name(*each[1:], "paper")) not in results
    ]
    if proofs or cells:
        shadows, _ = train(run, runtime)
        graph, plan = load_graph(GROWN.dataset), run.plan("paper")
        priors = known_priors(GROWN.dataset, plan.sampler)
        with runtime.progress("numbers of models", len(proofs) + len(cells)) as progress:
            for done, (size, release, adversary) in enumerate(proofs, 1):
                shown = prove_and_expose(shadows, graph, priors, release, ADVERSARIES[adversary], runtime, size)
                results.put(_name(size, proof_name(release, adversary)), shown)
                progress(done)
            counts = {}
            for done, (size, variant, definition) in enumerate(cells, len(proofs) + 1):
                if size not in counts:
                    counts = {size: challenge_all(plan, shadows, priors, runtime, size)}
                errors = counts[size].error_counts(variant.name)
                posterior = cell_results.cell_posterior(errors, plan, runtime, definition=definition)
                results.put(_name(size, result_name(variant, definition, "paper")), posterior)
                progress(done)
    if not keep_shadows and run.audit_folder.exists():
        shutil.rmtree(run.audit_folder)


def growth_records(run: Run) -> dict[str, pd.DataFrame]:
    """Three tables: what is proven, what is exposed, and the posteriors; `num_models` is the number of models."""
    results = run.results
    proofs, exposures, cells = [], [], []
    for size in sizes_of(run):
        for release, adversary in product(RELEASES, ADVERSARIES):
            shown = results.get(_name(size, proof_name(release, adversary)))
            if shown is not None:
                key = {"num_models": size, "release": release, "adversary": adversary}
                proofs.append({**key, **proven_row(shown)})
                exposures += [{**key, **row} for row in exposure_row(shown)]
        for variant, definition in product(VARIANTS, DEFINITIONS):
            posterior = results.get(_name(size, result_name(variant, definition, "paper")))
            if posterior is not None:
                names = [name for name in KEY if name in ("query", "release", "rule", "definition")]
                key = {name: Cell(GROWN, variant, definition).key[name] for name in names}
                values = {name: posterior[name] for name in (*PERCENTILES, "num_constant")}
                cells.append({"num_models": size, **key, **values})
    return {
        "growth_proofs": pd.DataFrame(proofs),
        "growth_exposures": pd.DataFrame(exposures),
        "growth_cells": pd.DataFrame(cells),
    }


def _name(size: int, name: str) -> str:
    return f"growth/{size}/{name}"


# A question that the paper leaves open: how do ε_R and its floor vary with the training fraction?


STUDY_FRACTIONS = tuple(tenth / 10 for tenth in range(1, 10))
STUDY_MODELS = 300
STUDY_VARIANT = Variant("clean", ("full",), "strong")
STUDY_DATASET, STUDY_MODEL = "cora", "gcn"


def study_runs(out: Path, seeds: Sequence[int], num_models: int = STUDY_MODELS) -> list[Run]:
    """Cora, GCN, 10 % to 90 %, both samplers."""
    return [
        Run(Configuration(STUDY_DATASET, fraction, sampler, STUDY_MODEL), seed, num_models, out)
        for seed in seeds
        for sampler in SAMPLERS
        for fraction in STUDY_FRACTIONS
    ]


def study_tasks(runs: Sequence[Run]) -> list[Task]:
    """BMP-R of one attack (full edges, clean outputs, strong decisions), counted our way.

    And again without the nodes whose decision never varies: far from 50 % there are many, and they raise ε.
    """
    cells = [cell_task(run, STUDY_VARIANT, "bmp-r", "ours") for run in runs]
    return cells + [unflagged_task(run, STUDY_VARIANT, "bmp-r") for run in runs]


def study_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per fraction, sampler and seed; `excess` is p50 - floor, `p50_unflagged` is of varying decisions only."""
    names = ("p5", "p50", "p95", "floor", "accuracy", "num_nodes", "num_not_auditable", "num_constant")
    rows = []
    for run in runs:
        of, results = run.configuration, run.results
        cell = results.get(result_name(STUDY_VARIANT, "bmp-r", "ours"))
        unflagged = results.get(result_name(STUDY_VARIANT, "bmp-r", "unflagged"))
        if cell is not None and unflagged is not None:
            row = {"sampler": of.sampler, "train_fraction": of.train_fraction, "seed": run.seed}
            row |= {name: cell[name] for name in names}
            rows.append({**row, "excess": cell["p50"] - cell["floor"], "p50_unflagged": unflagged["p50"]})
    return pd.DataFrame(rows)
