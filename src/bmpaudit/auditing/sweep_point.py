"""One point of a sweep: a release of an audit, by what it exposes and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags
from bmpaudit.auditing.compare_models import Mean
from bmpaudit.auditing.compared import ComparedAudit
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.sweep_plan import SweptAudit, plain_setting
from bmpaudit.plain import plain
from bmpaudit.registry import RELEASE
from bmpaudit.report.compare_words import HELD_OUT_ACCURACY, NAMED_90, NAMED_99
from bmpaudit.shadow.releases.base import gives_labels_only

CERTAINTY = 0.9


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """What one release of one audit exposes, and what it is worth.

    Attributes:
        audit: Number of its audit in the sweep, from 0.
        label: What sets it apart from the other points, in a few words.
        settings: The same as dotted keys of the plan and their values.
        release: Label of the release.
        folder: Path of the audit's folder; empty if it was not kept.
        num_models: Number of shadow models.
        accuracy: Held-out accuracy of what is released, with 95 % limits; None if it is not known.
        named_90: Training nodes of one released model that are named correctly with 90 % certainty, with 95 % limits.
        named_99: The same with 99 % certainty.
        is_settled: Whether there are enough models to say how many can be named with 90 % certainty.
        proven_right: What ε_R is proven to be at least; None if nothing is proven beyond the sampling.
        proven_left: The same of ε_L.
        guaranteed_right: What ε_R is guaranteed to be at most, by a proof about the model; None if there is none.
        auc: Area under the curve of the strongest attack.
        gives_labels_only: Whether the release is the predicted class and nothing else.
        on_exposure_front: Whether no other point is as accurate and exposes less, or exposes as little and is more
            accurate.
        on_proof_front: The same with what is proven of ε_R in place of what is exposed.
        confirmed: The same release audited again with fresh models; None if it was not.
    """

    audit: int
    label: str
    settings: Mapping[str, Any]
    release: str
    folder: str
    num_models: int
    accuracy: Mean | None
    named_90: Mean | None
    named_99: Mean | None
    is_settled: bool
    proven_right: float | None
    proven_left: float | None
    guaranteed_right: float | None
    auc: float
    gives_labels_only: bool = False
    on_exposure_front: bool = False
    on_proof_front: bool = False
    confirmed: SweepPoint | None = None

    @property
    def on_front(self) -> bool:
        """Whether it is on either front."""
        return self.on_exposure_front or self.on_proof_front

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        values = asdict(replace(self, settings={}, confirmed=None))
        values["settings"] = plain_setting(self.settings)
        values["confirmed"] = None if self.confirmed is None else self.confirmed.to_plain()
        plain_values: dict[str, Any] = plain(values)
        return plain_values


def points_of(audit: Audit, number: int, swept: SweptAudit, folder: str) -> list[SweepPoint]:
    """A point for each release of an audit, the one of this number in its sweep."""
    return [_point(audit, release, number, swept, folder) for release in audit.attacks.releases]


def _point(audit: Audit, release: str, number: int, swept: SweptAudit, folder: str) -> SweepPoint:
    variant = audit.attacks.strongest(release)
    compared = ComparedAudit(swept.label, folder, audit, release, variant, "right")
    models, proof, curve = compared.models, compared.findings.proof, compared.curve
    right, left = (None, None) if proof is None else (proof.epsilon_right, proof.epsilon_left)
    guaranteed = audit.guaranteed
    return SweepPoint(
        audit=number,
        label=f"{swept.label}, {release}",
        settings=swept.settings,
        release=release,
        folder=folder,
        num_models=audit.runs.num_models,
        accuracy=models.mean(HELD_OUT_ACCURACY),
        named_90=models.mean(NAMED_90),
        named_99=models.mean(NAMED_99),
        is_settled=bool(curve.is_settled[curve.at(CERTAINTY)]),
        proven_right=right.proven if right is not None and right.is_beyond_floor else None,
        proven_left=left.proven if left is not None and left.is_beyond_floor else None,
        guaranteed_right=None if guaranteed is None else guaranteed.limits["epsilon_right"],
        auc=audit.attacks.performance[variant.name].auc,
        gives_labels_only=any(
            gives_labels_only(part) for part in audit.plan.releases if registry.label(RELEASE, part) == release
        ),
    )


def with_fronts(points: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    """The points, those on a front marked; one whose accuracy is not known is on neither."""
    gains = [-np.inf if point.accuracy is None else point.accuracy.mean for point in points]
    named = [np.inf if point.named_90 is None else point.named_90.mean for point in points]
    proven = [-np.inf if point.proven_right is None else point.proven_right for point in points]
    fronts = zip(points, pareto_front(gains, named), pareto_front(gains, proven), strict=True)
    return tuple(
        replace(point, on_exposure_front=bool(first), on_proof_front=bool(second)) for point, first, second in fronts
    )


def pareto_front(gains: Sequence[float], costs: Sequence[float]) -> Flags:
    """Which points are not beaten: no other has at least the gain at no more cost, and is better in one of them.

    >>> pareto_front([0.9, 0.8, 0.7, -np.inf], [5, 2, 3, 0]).tolist()
    [True, True, False, False]
    """
    gain, cost = np.asarray(gains, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    is_no_worse = (gain[:, None] >= gain) & (cost[:, None] <= cost)
    is_better = (gain[:, None] > gain) | (cost[:, None] < cost)
    is_beaten = np.logical_or.reduce(is_no_worse & is_better, axis=0)
    return np.isfinite(gain) & ~is_beaten
