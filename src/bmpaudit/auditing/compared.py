"""One of several audits that are compared, or one of its releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bmpaudit.arrays import Ints
from bmpaudit.auditing.compare_models import ModelFigures
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.proof_step import ReleaseFindings
from bmpaudit.auditing.release_accuracy import release_accuracy
from bmpaudit.auditing.variant import Variant
from bmpaudit.errors import InputError
from bmpaudit.proof import ExposureCurve, NodeExposure
from bmpaudit.report.compare_words import AUC, HELD_OUT_ACCURACY, TRUE_POSITIVE_RATE, named_with
from bmpaudit.shadow import ShadowRuns
from bmpaudit.tables import model_blocks, take_rows

AnyAudit = Audit | str | Path | tuple[Audit, str]
"""An audit or its folder; a release of it is `FOLDER:RELEASE`, or an audit and the release's label."""


@dataclass(frozen=True, eq=False)
class ComparedAudit:
    """One release of one audit.

    Attributes:
        label: What it is called: the name of its folder, its release, or its title, made distinct.
        path: Its folder; empty for an audit that was never written.
        audit: The audit.
        release: Label of the release.
        variant: The attack whose errors the estimated ε is about.
        side: `right` if members are named, `left` if non-members.
    """

    label: str
    path: str
    audit: Audit
    release: str
    variant: Variant
    side: str

    @property
    def fingerprint(self) -> str:
        """Tells it from audits whose answers may differ."""
        return str(self.audit.summary["fingerprint"])

    @property
    def graph_hash(self) -> str:
        """Hash of the graph's content."""
        return str(self.audit.summary["graph"]["content_hash"])

    @property
    def settings(self) -> dict[str, Any]:
        """The plan by dotted keys, such as `sampler.name`."""
        return _flat(self.audit.summary["plan"])

    @property
    def findings(self) -> ReleaseFindings:
        """What the release proves and exposes."""
        return self.audit.findings[self.release]

    @property
    def curve(self) -> ExposureCurve:
        """Nodes of this side that are named."""
        exposure = self.findings.exposure.exposure
        return exposure.members if self.side == "right" else exposure.non_members

    @property
    def exposed_nodes(self) -> NodeExposure:
        """How often each node is named."""
        exposure = self.findings.exposure.exposure
        return exposure.member_nodes if self.side == "right" else exposure.non_member_nodes

    @property
    def is_leakage_found(self) -> bool | None:
        """Whether leakage was found; None for a release that was not tested and of which nothing is proven."""
        if self.release == self.audit.attacks.releases[0]:
            return self.audit.is_leakage_found
        proof = self.findings.proof
        return True if proof is not None and proof.is_leakage_proven else None

    @cached_property
    def runs(self) -> ShadowRuns | str:
        """The shadow models, or why they cannot be read: a comparison does without them."""
        try:
            return self.audit.runs
        except InputError as reason:
            return str(reason)

    @cached_property
    def models(self) -> ModelFigures:
        """Figures of each shadow model."""
        table = self.findings.exposure.models
        is_right = self.side == "right"
        correct = table.members_correct if is_right else table.non_members_correct
        effect = table.members_effect if is_right else table.non_members_effect
        names = [named_with(precision).name for precision in table.precision]
        accuracy = np.full(len(table.index), np.nan)
        if isinstance(self.runs, ShadowRuns):
            rows = np.searchsorted(self.runs.indices, table.index)
            released = release_accuracy(self.audit.plan, self.runs, self.release)
            accuracy = released.held_out[rows].astype(np.float64)
        return ModelFigures(
            table.index,
            {
                **dict(zip(names, correct.T.astype(np.float64), strict=True)),
                AUC.name: table.auc,
                TRUE_POSITIVE_RATE.name: table.true_positive_rate,
                HELD_OUT_ACCURACY.name: accuracy,
            },
            dict(zip(names, effect.T, strict=True)),
        )

    @property
    def why_no_accuracy(self) -> str:
        """Why the held-out accuracy of this release is unknown; empty if it is known."""
        if isinstance(self.runs, str):
            return self.runs
        if not np.isfinite(release_accuracy(self.audit.plan, self.runs, self.release).held_out).any():
            return f"the models of {self.label} were trained elsewhere, and only their statistics are known"
        return ""


def same_samples(first: ComparedAudit, other: ComparedAudit) -> Ints:
    """Numbers of the models that both audits have, if all of these have the same sample in both; else none."""
    none = np.zeros(0, dtype=np.int64)
    if first.graph_hash != other.graph_hash or isinstance(first.runs, str) or isinstance(other.runs, str):
        return none
    shared = np.intersect1d(first.models.index, other.models.index)
    one, two = (take_rows(runs.memberships, np.searchsorted(runs.indices, shared)) for runs in (first.runs, other.runs))
    is_same = all(np.array_equal(one[rows], two[rows]) for rows in model_blocks(*one.shape))
    return shared if is_same else none


def compared_audits(audits: Sequence[AnyAudit], side: str, variant: str | None = None) -> tuple[ComparedAudit, ...]:
    """Finds the audits and releases; see `compare`."""
    if len(audits) < 2:
        raise InputError(f"a comparison takes at least two audits or releases, got {len(audits)}")
    loaded: dict[str, Audit] = {}
    parts = [_part(each, loaded) for each in audits]
    labels = _labels(parts)
    return tuple(
        _compared(label, path, audit, release, side, variant)
        for label, (path, audit, release) in zip(labels, parts, strict=True)
    )


_Part = tuple[str, Audit, str]
"""Folder, audit and release, each empty if not given."""


def _part(given: AnyAudit, loaded: dict[str, Audit]) -> _Part:
    if isinstance(given, Audit):
        return "", given, ""
    if isinstance(given, tuple):
        return "", *given
    folder, release = str(given), ""
    if not Path(folder).exists() and ":" in folder:
        folder, _, release = folder.rpartition(":")
    if folder not in loaded:
        loaded[folder] = Audit.load(folder)
    return folder, loaded[folder], release


def _labels(parts: Sequence[_Part]) -> list[str]:
    """Names of folders, or of releases if there is but one audit."""
    if len({id(audit) for _, audit, _ in parts}) == 1 and all(release for _, _, release in parts):
        return _distinct([release for _, _, release in parts])
    names = [Path(folder).resolve().name if folder else audit.title for folder, audit, _ in parts]
    if len(set(zip(names, (release for _, _, release in parts), strict=True))) < len(parts):
        names = [folder or name for name, (folder, _, _) in zip(names, parts, strict=True)]
    return _distinct(
        [f"{name}:{release}" if release else name for name, (_, _, release) in zip(names, parts, strict=True)]
    )


def _compared(label: str, path: str, audit: Audit, release: str, side: str, variant: str | None) -> ComparedAudit:
    attacks = audit.attacks
    if release and release not in attacks.releases:
        raise InputError(f"{path or audit.title} has no release {release!r}; it has {', '.join(attacks.releases)}")
    if variant is None:
        chosen = attacks.strongest(release or attacks.releases[0])
    else:
        by_name = {each.name: each for each in attacks.variants}
        if variant not in by_name:
            raise InputError(f"{label} has no attack {variant!r}; it has {', '.join(by_name)}")
        chosen = by_name[variant]
        if release not in ("", chosen.release):
            raise InputError(f"{variant} is an attack on the release {chosen.release}, got the release {release!r}")
    return ComparedAudit(label, path, audit, chosen.release, chosen, side)


def _distinct(names: list[str]) -> list[str]:
    return [
        name if names.count(name) == 1 else f"{name} ({names[: position + 1].count(name)})"
        for position, name in enumerate(names)
    ]


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": part for name, part in value.items()}
        else:
            flat[key] = value
    return flat
