"""The errors of all attacks on one set of shadow models, counted the paper's way and ours; small enough to keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.attack import (
    SHADOW_FREQUENCY,
    DecisionSettings,
    ErrorCounts,
    Evidence,
    Gaussian,
    RuleErrors,
    Strong,
    Weak,
    challenge,
)
from bmpaudit.attack.not_auditable import can_be_attacked, too_few_models, with_certain_priors
from bmpaudit.errors import DataError, InputError
from bmpaudit.files import atomic_write
from bmpaudit.interfaces import DecisionRule
from bmpaudit.paper.experiments import COUNTINGS, Counting, Variant
from bmpaudit.shadow import ShadowRuns

ATTACK = Gaussian()
RULES: Mapping[str, DecisionRule] = {"weak": Weak(), "strong": Strong()}
SETTINGS: Mapping[Counting, DecisionSettings] = {
    "paper": DecisionSettings(unfittable="non-member"),
    "ours": DecisionSettings(unfittable="leave-out"),
}


@dataclass(frozen=True, eq=False)
class AttackCounts:
    """Errors of Algorithm 1 for every view, decision and way of counting.

    Attributes:
        num_models: Models that were challenged.
        num_in: n_1 of each node, shape (N,).
        prior_prob: γ(1) of each node for each way of counting, shape (N,).
        errors: For each (counting, view, rule) the errors on each node.
        about: What the models were, and how long they took; plain values.
    """

    num_models: int
    num_in: npt.NDArray[np.int64]
    prior_prob: Mapping[Counting, npt.NDArray[np.float64]]
    errors: Mapping[tuple[Counting, str, str], RuleErrors]
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
        errors: dict[tuple[Counting, str, str], RuleErrors] = {}
        for view in runs.statistics:
            query, _, release = view.partition("_")
            models = Evidence.of_runs(runs, release, [query])
            for counting in COUNTINGS:
                challenges = challenge(
                    ATTACK, models, priors[counting], RULES, settings=SETTINGS[counting], num_threads=num_threads
                )
                errors |= {(counting, view, rule): made for rule, made in challenges.errors.items()}
        known: dict[Counting, npt.NDArray[np.float64]] = {"paper": runs.memberships.mean(axis=0), "ours": prior_prob}
        return cls(runs.num_models, runs.memberships.sum(axis=0, dtype=np.int64), known, errors, about)

    def error_counts(self, variant: Variant, counting: Counting) -> ErrorCounts:
        """The errors of one attack, node by node."""
        settings, prior = SETTINGS[counting], self.prior_prob[counting]
        nodes = np.arange(len(self.num_in))
        num_out = self.num_models - self.num_in
        left = too_few_models(nodes, num_out, self.num_in, ATTACK.min_models + 1)
        left = with_certain_priors(left, nodes, prior)
        kept = can_be_attacked(nodes, left) | (settings.unfittable == "non-member")
        positives, negatives = self.errors[counting, variant.view, variant.decision]
        return ErrorCounts(
            nodes[kept], num_out[kept], self.num_in[kept], positives[kept], negatives[kept], prior[kept], left
        )

    def save(self, path: Path) -> None:
        """Writes one archive, whole or not at all."""
        arrays: dict[str, npt.NDArray[Any]] = {f"prior_{name}": prior for name, prior in self.prior_prob.items()}
        smallest = np.min_scalar_type(self.num_models)
        arrays |= {":".join(["errors", *key]): np.stack(made).astype(smallest) for key, made in self.errors.items()}
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
            errors: dict[tuple[Counting, str, str], RuleErrors] = {}
            for name, array in arrays.items():
                if name.startswith("errors:"):
                    _, counting, view, rule = name.split(":")
                    errors[counting, view, rule] = RuleErrors(*array.astype(np.int64))
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
