"""The errors of all attacks on one set of shadow models, counted the paper's way and ours; small enough to keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.attack import AttackSettings, ErrorCounts, challenge_models
from bmpaudit.attack.inputs import SHADOW_FREQUENCY, find_not_auditable
from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.paper.experiments import COUNTINGS, DECISIONS, Counting, Variant
from bmpaudit.shadow import ShadowRuns

SETTINGS: Mapping[Counting, AttackSettings] = {
    "paper": AttackSettings(unfittable="non-member"),
    "ours": AttackSettings(unfittable="leave-out"),
}


@dataclass(frozen=True, eq=False)
class AttackCounts:
    """Errors of Algorithm 1 for every view, decision and way of counting.

    Attributes:
        num_models: Models that were challenged.
        num_in: n_1 of each node, shape (N,).
        prior_prob: γ(1) of each node for each way of counting, shape (N,).
        errors: For each (counting, view) false positives and negatives of weak, then strong decisions, shape (2, 2, N).
        about: What the models were, and how long they took; plain values.
    """

    num_models: int
    num_in: npt.NDArray[np.int64]
    prior_prob: Mapping[Counting, npt.NDArray[np.float64]]
    errors: Mapping[tuple[Counting, str], npt.NDArray[np.int64]]
    about: Mapping[str, Any]

    @classmethod
    def of_runs(
        cls,
        runs: ShadowRuns,
        prior_prob: npt.NDArray[np.float64],
        about: Mapping[str, Any],
        num_threads: int | None = None,
    ) -> AttackCounts:
        """Attacks the models in every way; `prior_prob` is the sampler's own, for counting our way."""
        priors: dict[Counting, npt.NDArray[np.float64] | str] = {"paper": SHADOW_FREQUENCY, "ours": prior_prob}
        errors = {
            (counting, view): challenge_models(
                runs, view, priors[counting], settings=SETTINGS[counting], num_threads=num_threads
            ).errors
            for counting in COUNTINGS
            for view in runs.statistics
        }
        known: dict[Counting, npt.NDArray[np.float64]] = {"paper": runs.memberships.mean(axis=0), "ours": prior_prob}
        return cls(runs.num_models, runs.memberships.sum(axis=0, dtype=np.int64), known, errors, about)

    def error_counts(self, variant: Variant, counting: Counting) -> ErrorCounts:
        """The errors of one attack, node by node."""
        settings, prior = SETTINGS[counting], self.prior_prob[counting]
        nodes = np.arange(len(self.num_in))
        num_out = self.num_models - self.num_in
        left = find_not_auditable(nodes, num_out, self.num_in, prior, settings.min_models + 1)
        kept = np.ones(len(nodes), dtype=np.bool_)
        if settings.unfittable == "leave-out":
            kept[[found.node for found in left]] = False
        positives, negatives = self.errors[counting, variant.view][DECISIONS.index(variant.decision)]
        return ErrorCounts(
            nodes[kept], num_out[kept], self.num_in[kept], positives[kept], negatives[kept], prior[kept], left
        )

    def save(self, path: Path) -> None:
        """Writes one archive, whole or not at all."""
        arrays: dict[str, npt.NDArray[Any]] = {f"prior_{name}": prior for name, prior in self.prior_prob.items()}
        smallest = np.min_scalar_type(self.num_models)
        arrays |= {f"errors_{counting}_{view}": made.astype(smallest) for (counting, view), made in self.errors.items()}
        arrays["num_in"] = self.num_in.astype(smallest)
        arrays["about"] = np.array(json.dumps({"num_models": self.num_models, **self.about}))
        with atomic_write(path) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> AttackCounts:
        """Reads what `save` wrote.

        Raises:
            DataError: if it is damaged.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            about = json.loads(str(arrays["about"]))
            errors: dict[tuple[Counting, str], npt.NDArray[np.int64]] = {
                (counting, name.removeprefix(f"errors_{counting}_")): array.astype(np.int64)
                for counting in COUNTINGS
                for name, array in arrays.items()
                if name.startswith(f"errors_{counting}_")
            }
            priors: dict[Counting, npt.NDArray[np.float64]] = {name: arrays[f"prior_{name}"] for name in COUNTINGS}
            return cls(about.pop("num_models"), arrays["num_in"].astype(np.int64), priors, errors, about)
        except (ValueError, KeyError, OSError, EOFError) as damage:
            raise DataError(f"{path}: damaged ({damage}); remove it to have it made again") from None

    def check_plan(self, plan: Mapping[str, Any], path: Path) -> None:
        """Refuses counts of other models.

        Raises:
            InputError: if they were made by another plan.
        """
        wanted = json.loads(json.dumps(plan))
        found = self.about.get("plan")
        if found != wanted:
            differing = [name for name in wanted if not isinstance(found, dict) or found.get(name) != wanted[name]]
            raise InputError(f"{path} holds results of another plan ({', '.join(differing)} differ); use a new folder")
