"""What is proven and exposed, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import product
from typing import Any

import pandas as pd

from bmpaudit.paper.experiments import RELEASES
from bmpaudit.paper.proofs import ADVERSARIES, LIMITS, proof_name
from bmpaudit.paper.run import Run
from bmpaudit.proof.guesses import PARAMETERS

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
