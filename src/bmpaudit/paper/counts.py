"""The errors of all attacks on one set of shadow models, counted the paper's way and ours; small enough to keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.attack import Challenges, ErrorCounts, Evidence, NotAuditable, RuleErrors, challenge
from bmpaudit.auditing.attack_step import attack_prior
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.variant import Variant
from bmpaudit.errors import DataError
from bmpaudit.files import atomic_write
from bmpaudit.reading.archive import read_archive
from bmpaudit.reading.damage import damage_in
from bmpaudit.reading.text import parse_json
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns

FORMAT = 2
ARRAYS = ("node", "num_out", "num_in", "prior_prob", "is_counted")


@dataclass(frozen=True, eq=False)
class AttackCounts:
    """Errors of Algorithm 1 for every variant of the attack and both ways of counting.

    Attributes:
        challenges: By way of counting; errors in them are by the variant's name.
        about: Where the models came from and how long they took, as plain values.
    """

    challenges: Mapping[str, Challenges]
    about: Mapping[str, Any]

    def error_counts(self, variant: Variant, counting: str) -> ErrorCounts:
        """The errors of one attack, node by node."""
        return self.challenges[counting].error_counts(variant.name)

    def save(self, path: Path) -> None:
        """Writes one archive, completely or not at all."""
        arrays: dict[str, Any] = {}
        for counting, challenges in self.challenges.items():
            arrays |= {f"{counting}:{name}": _compact(getattr(challenges, name)) for name in ARRAYS}
            arrays |= {f"{counting}:errors:{name}": _compact(np.stack(e)) for name, e in challenges.errors.items()}
            arrays[f"{counting}:not_auditable"] = _text([vars(node) for node in challenges.not_auditable])
        arrays["about"] = _text({"format": FORMAT, **self.about})
        with atomic_write(path) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> AttackCounts:
        """Reads what `save` wrote.

        Raises:
            DataError: if it is damaged, or of another version.
        """
        arrays = read_archive(path, required=["about"])
        with damage_in(path, "an archive of counts; remove it to have it made again"):
            about = parse_json(str(arrays.pop("about")), {"type": "object"})
            if about.pop("format", 1) != FORMAT:
                raise DataError(f"{path} was written by another version of bmpaudit: use a new folder")
            parts: dict[str, dict[str, Any]] = {}
            for name, array in arrays.items():
                counting, _, part = name.partition(":")
                parts.setdefault(counting, {})[part] = array
            return cls({counting: _challenges(part) for counting, part in parts.items()}, about)


def challenge_all(
    plan: AuditPlan, runs: ShadowRuns, priors: Priors, runtime: Runtime, num_models: int | None = None
) -> Challenges:
    """Attacks the models, or the first `num_models`, in every way that a plan names; errors are by the variant's name.

    Which nodes can be attacked depends on samples and priors only, so it is the same for all variants.
    """
    errors: dict[str, RuleErrors] = {}
    for view in plan.views:
        queries = (view.query_name,)
        challenges = challenge(
            plan.attack,
            Evidence.of_runs(runs, view.release_name, queries).take(slice(num_models)),
            attack_prior(plan, priors),
            plan.rules_by_name,
            settings=plan.decision_settings,
            num_threads=runtime.num_threads,
        )
        errors |= {Variant(view.release_name, queries, rule).name: made for rule, made in challenges.errors.items()}
    return replace(challenges, errors=errors)


def _challenges(parts: Mapping[str, Any]) -> Challenges:
    arrays = {name: parts[name] for name in ARRAYS}
    arrays |= {name: arrays[name].astype(np.int64) for name in ("node", "num_out", "num_in")}
    errors = {
        name.removeprefix("errors:"): RuleErrors(*values.astype(np.int64))
        for name, values in parts.items()
        if name.startswith("errors:")
    }
    nodes = tuple(NotAuditable(**row) for row in parse_json(str(parts["not_auditable"])))
    return Challenges(**arrays, errors=errors, not_auditable=nodes)


def _compact(values: Any) -> Any:
    """Whole numbers in as few bytes as they need."""
    return values.astype(np.min_scalar_type(values.max(initial=0))) if values.dtype == np.int64 else values


def _text(value: Any) -> Any:
    return np.array(json.dumps(value))
