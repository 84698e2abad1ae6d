"""How what is proven, exposed and estimated moves with the number of models: one configuration, 100 to 20,000."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pandas as pd

from bmpaudit.auditing import Runtime
from bmpaudit.paper import cell_results
from bmpaudit.paper.cell_results import PERCENTILES
from bmpaudit.paper.counts import challenge_all
from bmpaudit.paper.experiments import DEFINITIONS, KEY, RELEASES, VARIANTS, Cell, Configuration
from bmpaudit.paper.proof_records import exposure_row, proven_row
from bmpaudit.paper.proofs import ADVERSARIES, proof_name, prove_and_expose
from bmpaudit.paper.run import Run, known_priors, load_graph, train
from bmpaudit.paper.tasks import result_name

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
