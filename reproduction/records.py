"""Results of all runs as tables: what the page, the figures and the findings are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from bmpaudit.auditing.context import Variant
from bmpaudit.estimation.mhaar import LARGEST_R_HAT, LEAST_BULK_ESS
from bmpaudit.proof.guesses import PARAMETERS
from reproduction.experiments import (
    COUNTINGS,
    DEFINITIONS,
    KEY,
    RELEASES,
    VARIANTS,
    Cell,
    Configuration,
    published_table,
)
from reproduction.run import (
    ADVERSARIES,
    LIMITS,
    PERCENTILES,
    PROOFS,
    Run,
    Task,
    deciding_task,
    load_counts,
    mhaar_task,
    proof_name,
    result_name,
)

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


# What is proven and exposed, as tables.


BOUND = ("proven", "floor", "num_guesses", "num_hits")


def proof_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per run, release and adversary: three bounds, and how sure the attack may be taken to be."""
    return pd.DataFrame([{**key, **proven_row(shown)} for key, shown in _shown(runs)])


def exposure_records(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per run, release, adversary and precision: members that one released model gives away."""
    return pd.DataFrame([{**key, **row} for key, shown in _shown(runs) for row in exposure_row(shown)])


def proven_row(shown: Mapping[str, Any]) -> dict[str, Any]:
    """What was proven, in one row; a bound is missing where nothing is proven."""
    bounds = {f"{parameter}_{name}": shown[parameter][name] for parameter in PARAMETERS for name in BOUND}
    number = {"num_challenged": shown["mp"]["num_challenged"]}
    return {**bounds, **number, **{name: shown[name] for name in ("auc", "calibration_error")}}


def exposure_row(shown: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is exposed, in a row for each precision: members named correctly with limits, and all that are named."""
    of = shown["exposure"]
    names = [*(f"correct_{limit}" for limit in LIMITS), "named", "by_prior"]
    return [
        {"precision": precision, **{name: of[name][place] for name in names}, "total": of["total"]}
        for place, precision in enumerate(of["precision"])
    ]


def _shown(runs: Iterable[Run]) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    for run in runs:
        results = run.results
        for release, adversary in product(RELEASES, ADVERSARIES):
            shown = results.get(proof_name(release, adversary))
            if shown is not None:
                yield {**asdict(run.configuration), "seed": run.seed, "release": release, "adversary": adversary}, shown


# Does a cell agree with the published one?


RELATIVE_WIDENING = 0.15
LEAST_WIDENING = 0.3
ROUNDING = 1e-9
"""The published values have two digits: a bound that is met up to rounding of doubles is met."""


def is_within_reach(p50: pd.Series[float], published_p50: pd.Series[float]) -> pd.Series[bool]:
    """Whether each p50 of a single seed differs from the published one by at most the widening."""
    widening = (RELATIVE_WIDENING * published_p50).clip(lower=LEAST_WIDENING)
    return (p50 - published_p50).abs() <= widening + ROUNDING


def judge(published: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """A verdict on each published cell that we have.

    A cell agrees if the published p50 lies within the range of our seeds' p50, widened on both sides by 15 % of the
    published value or 0.3, whichever is larger.

    Args:
        published: A row per cell: the columns of `KEY`, p5, p50 and p95.
        ours: A row per cell and seed, with the same columns and `seed`.

    Returns:
        A row per cell, in the order of `published`: `KEY`; `published_p5`, …; the lowest, median and highest p50 of our
        seeds (`lowest`, `median`, `highest`) and the medians of p5 and p95; `num_seeds`; `agrees`; and `miss`, how far
        the published p50 lies outside the widened range: positive where ours is too high, 0 where it agrees.
    """
    grouped = ours.groupby(list(KEY))
    spread = grouped.agg(
        p5=("p5", "median"),
        median=("p50", "median"),
        p95=("p95", "median"),
        lowest=("p50", "min"),
        highest=("p50", "max"),
        num_seeds=("p50", "size"),
    ).reset_index()
    named = published.rename(columns={name: f"published_{name}" for name in ("p5", "p50", "p95")})
    table: pd.DataFrame = named[[*KEY, "published_p5", "published_p50", "published_p95"]].merge(spread, on=list(KEY))
    widening = (RELATIVE_WIDENING * table["published_p50"]).clip(lower=LEAST_WIDENING)
    too_high = table["lowest"] - widening - table["published_p50"]
    too_low = table["published_p50"] - table["highest"] - widening
    table["miss"] = (too_high.where(too_high > ROUNDING, 0.0) - too_low.where(too_low > ROUNDING, 0.0)).astype(float)
    table["agrees"] = table["miss"] == 0
    return table


def judge_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Verdicts on the cells counted the paper's way, with Table II's swapped columns swapped back.

    The column `agrees_as_printed` says whether a cell agrees with the tables as they were printed.
    """
    ours = cells[cells["counting"] == "paper"]
    printed = judge(published_table(as_printed=True), ours).rename(columns={"agrees": "agrees_as_printed"})
    return judge(published_table(), ours).merge(printed[[*KEY, "agrees_as_printed"]], on=list(KEY))


# Cells that disagree: what was tried, and what it explains.


NOTEWORTHY = 0.15  # half of the least widening: what moves p50 by less explains nothing
BORDERLINE = 0.05


def disagreement_tasks(verdicts: pd.DataFrame, runs: Sequence[Run]) -> list[Task]:
    """For each disagreeing cell, with the first seed: Algorithm 3 on the same counts, and the nodes that decide."""
    by_configuration = {run.configuration: run for run in runs if run.seed == 0}
    tasks = []
    for row in verdicts[~verdicts["agrees"]].to_dict("records"):
        run = by_configuration.get(Configuration(row["dataset"], row["train_fraction"], row["sampler"], row["model"]))
        if run is not None:
            variant = Variant(row["release"], (row["query"],), row["rule"])
            tasks += [deciding_task(run, variant, row["definition"]), mhaar_task(run, variant, row["definition"])]
    return tasks


def explain(verdicts: pd.DataFrame, deciding: pd.DataFrame, mhaar: pd.DataFrame) -> pd.DataFrame:
    """A row per disagreeing cell, with the results of `disagreement_tasks` and the reason they support."""
    wrong = verdicts[~verdicts["agrees"]]
    if not len(wrong):
        return wrong.assign(reason=pd.Series(dtype=str))
    node = ["node", "node_prior_prob", "node_counts", "node_is_constant"]
    for part, names in (
        (deciding, ["p50", *node, "p50_without_1", "p50_without_10"]),
        (mhaar, ["exact_p50", "mhaar_p50", "bulk_ess", "r_hat"]),
    ):
        if len(part):
            chosen = part[part["seed"] == 0][[*KEY, *names]]
            wrong = wrong.merge(chosen, on=list(KEY), how="left")
    return wrong.assign(reason=[reason(row) for row in wrong.to_dict("records")])


def reason(row: Mapping[Any, Any]) -> str:
    """The first explanation that brings the published value within reach, or that none of those tried does."""
    published, ours = row["published_p50"], row["median"]
    widening = max(RELATIVE_WIDENING * published, LEAST_WIDENING)
    if _is_number(row.get("r_hat")) and (row["r_hat"] > LARGEST_R_HAT or row["bulk_ess"] < LEAST_BULK_ESS):
        chain, exact = row["mhaar_p50"], row["exact_p50"]
        if abs(exact - published) - abs(chain - published) > NOTEWORTHY:
            partly = "" if abs(chain - published) <= widening else "partly "
            return (
                f"{partly}a chain that has not converged: Algorithm 3 with the paper's settings gives {chain:.1f} "
                f"(R-hat {row['r_hat']:.2f}, bulk ESS {row['bulk_ess']:.0f}), but the exact p50 of the same counts is "
                f"{exact:.1f}"
            )
    for number, nodes in ((1, "one node: without it"), (10, "ten nodes: without them")):
        value = row.get(f"p50_without_{number}")
        if _is_number(value) and abs(value - published) <= widening and abs(value - row["p50"]) > NOTEWORTHY:
            return f"depends on {nodes}, p50 is {value:.1f}"
    if not any(_is_number(row.get(name)) for name in ("r_hat", "p50_without_1")):
        return "not examined yet"
    if abs(row["miss"]) < BORDERLINE:
        return f"borderline: misses by {abs(row['miss']):.3f}"
    spread = row["highest"] - row["lowest"]
    return f"explained neither by the estimator nor by single nodes; our seeds span {spread:.1f} around {ours:.1f}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value
