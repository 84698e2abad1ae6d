"""Audits side by side: does this sampler, model or defence leak less, and what does it cost?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from bmpaudit.auditing.compare_estimates import EstimatedComparison, compare_estimates, shared_definition
from bmpaudit.auditing.compare_models import (
    LEVEL,
    ModelDifference,
    model_differences,
)
from bmpaudit.auditing.compare_nodes import NodeComparison, compare_nodes
from bmpaudit.auditing.compare_settings import DifferingSetting, differing_settings
from bmpaudit.auditing.compare_verdict import cautions, verdict
from bmpaudit.auditing.compared import AnyAudit, ComparedAudit, compared_audits, same_samples
from bmpaudit.errors import InputError
from bmpaudit.plain import plain
from bmpaudit.proof.result import SYMBOLS, ProvenBound
from bmpaudit.report.compare_words import QUANTITIES, Quantity, named_with, show_change
from bmpaudit.report.words import count

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 2

IS_NOT = (
    "Exposure, AUC and TPR are about the attack that was run. A defence that only misleads this attack looks the same "
    "as one that protects; audit with other attacks too.",
    "Intervals are over models trained this way, each taken by itself: with many figures, some intervals miss.",
    "The changes of nodes are taken to be independent between audits, though the same samples may be behind both.",
    "The posteriors of the estimated ε are taken to be independent, and beyond the data their upper tails are the "
    "prior's, and so are both tails of a difference.",
    "Another sampler changes the floor too: what is proven and estimated includes what the sampling alone gives away.",
)


@dataclass(frozen=True, eq=False)
class Difference:
    """One audit against the first.

    Attributes:
        label: Of the audit.
        verdict: In plain words.
        models: Differences of the figures that both audits know.
        curve: Differences of the numbers of nodes named, at each certainty.
        more_proven: By parameter, the label of the audit of which more is proven; empty if as much is of both. These
            are bounds, and have no interval.
        nodes: The same node by node.
    """

    label: str
    verdict: str
    models: tuple[ModelDifference, ...]
    curve: tuple[ModelDifference, ...]
    more_proven: Mapping[str, str]
    nodes: NodeComparison

    def of(self, quantity: Quantity) -> ModelDifference | None:
        """The difference of a quantity; None if it is not known of both audits."""
        return next((each for each in self.models if each.quantity == quantity), None)

    @property
    def basis(self) -> str:
        """What intervals rest on, and which figures rest on something else."""
        paired = [each for each in self.models if each.is_paired]
        apart = [each for each in self.models if not each.is_paired]
        most = max(paired or apart, key=lambda each: each.num_models)
        if not paired:
            return f"independent models, {most.num_models[0]:,} and {most.num_models[1]:,}"
        others = (
            f"; {each.quantity.label}: from independent models, {each.num_models[0]:,} and {each.num_models[1]:,}"
            for each in apart
        )
        return f"{count(most.num_models[0], 'pair')} of models with the same training sample{''.join(others)}"

    @property
    def proven(self) -> str:
        """Of which audit more is proven, in words."""
        parts = (
            f"{SYMBOLS[name]} {f'more in {label}' if label else 'as much in both'}"
            for name, label in self.more_proven.items()
        )
        return f"Proven: {', '.join(parts)}. These are lower bounds: that less is proven is no sign of less leakage."


@dataclass(frozen=True, eq=False)
class Comparison:
    """Audits or releases side by side, the first being what the others are compared with.

    Limits of differences are Student's t over pairs of models where both audits have the same samples, and Welch's over
    independent models elsewhere, or those with Hall's correction for skewness (`bmpaudit.proof.bands.band`) where they
    are farther. They hold approximately. Models are the units; the nodes of one model count as one observation.

    Attributes:
        audits: What was compared, in the order given.
        differences: Of each audit but the first, to the first.
        settings: Keys of the plan in which the audits differ.
        estimated: Their posteriors; None if no leakage was found in any of them, or no ε was estimated in all of them.
    """

    audits: tuple[ComparedAudit, ...]
    differences: tuple[Difference, ...]
    settings: tuple[DifferingSetting, ...]
    estimated: EstimatedComparison | None

    @property
    def verdicts(self) -> tuple[str, ...]:
        """In plain words, for each audit but the first."""
        return tuple(each.verdict for each in self.differences)

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know before trusting the verdicts."""
        lost = [f"{each.label}: {each.nodes.not_comparable}." for each in self.differences if each.nodes.not_comparable]
        if self.estimated is None and any(audit.is_leakage_found for audit in self.audits):
            lost.append("No ε of this side was estimated in all of the audits, so no estimates are compared.")
        return (*cautions(self.audits), *lost)

    def to_dict(self, top: int = 20) -> dict[str, Any]:
        """Everything but curves and densities as plain values (docs/compare.md); of the nodes those changed most."""
        first = self.audits[0].label
        content: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "bmpaudit": version("bmpaudit"),
                "verdicts": self.verdicts,
                "cautions": self.cautions,
                "side": self.audits[0].side,
                "level": LEVEL,
                "audits": [audit_row(audit) for audit in self.audits],
                "differences": [
                    {
                        "audit": each.label,
                        "to": first,
                        "basis": each.basis,
                        "figures": [difference.to_dict() for difference in each.models],
                        "proven": each.proven,
                        "more_proven": {name: label or None for name, label in each.more_proven.items()},
                    }
                    for each in self.differences
                ],
                "nodes": [each.nodes.to_dict(top) for each in self.differences],
                "estimated": None if self.estimated is None else self.estimated.to_dict(),
                "settings": [vars(setting) for setting in self.settings],
                "is_not": IS_NOT,
            }
        )
        return content

    def node_table(self) -> pd.DataFrame:
        """The changes of all nodes that are in both, one audit after the other, those that changed most first."""
        import pandas as pd

        return pd.concat([each.nodes.table.assign(audit=each.label) for each in self.differences], ignore_index=True)

    def __str__(self) -> str:
        lines = [*self.verdicts]
        for each in self.differences:
            lines.append(f"  {each.label} − {self.audits[0].label}, {each.basis}")
            for difference in each.models:
                change = show_change(difference.quantity, vars(difference.change))
                lines.append(f"    {difference.quantity.label:<30} {change.mean} ({change.interval})")
        return "\n".join([*lines, *(f"  ! {caution}" for caution in self.cautions)])


def compare(
    audits: Sequence[AnyAudit],
    definition: str | None = None,
    *,
    side: str | None = None,
    variant: str | None = None,
) -> Comparison:
    """Compares finished audits, or releases of them, with the first.

    Args:
        audits: Audits or their folders, at least two. `FOLDER:RELEASE`, or a pair of an audit and a release's label, is
            another release than the main one.
        definition: Which estimated ε to compare; if not given `bmp-r`, or `bmp-l` for the left side, or where an audit
            lacks it the first that all of them have.
        side: `right` (the default) compares members that are named, `left` non-members; and which ε of a definition
            that has both.
        variant: Which attack the estimated ε is about, such as `full_clean_strong`, and so which release; the strongest
            on the release if not given.

    Raises:
        InputError: if there are fewer than two, or one has no such release, attack or posterior.
        DataError: if one is not a finished audit.
    """
    if side not in (None, "right", "left"):
        raise InputError(f"side must be 'right' or 'left', got side={side!r}")
    first, *others = compared = compared_audits(audits, side or "right", variant)
    chosen = definition or shared_definition(compared, side)
    estimated = None if chosen is None else compare_estimates(compared, chosen, side)
    return Comparison(
        audits=compared,
        differences=tuple(_difference(first, other) for other in others),
        settings=differing_settings(compared),
        estimated=estimated if any(audit.is_leakage_found for audit in compared) else None,
    )


def _difference(first: ComparedAudit, other: ComparedAudit) -> Difference:
    pairs = same_samples(first, other)
    models = model_differences(first.models, other.models, pairs)
    named = [named_with(precision) for precision in first.curve.precision]
    return Difference(
        label=other.label,
        verdict=verdict(first, other, models),
        models=models,
        curve=model_differences(first.models, other.models, pairs, named),
        more_proven={parameter: _more_proven(first, other, parameter) for parameter in SYMBOLS},
        nodes=compare_nodes(first, other),
    )


def _more_proven(first: ComparedAudit, other: ComparedAudit, parameter: str) -> str:
    bounds = [_proven(audit, parameter) for audit in (first, other)]
    one, two = (-math.inf if bound is None else bound for bound in bounds)
    return "" if one == two else first.label if one > two else other.label


def _proven(audit: ComparedAudit, parameter: str) -> float | None:
    """What is proven beyond the floor."""
    proof = audit.findings.proof
    bound: ProvenBound | None = None if proof is None else getattr(proof, parameter)
    return bound.proven if bound is not None and bound.is_beyond_floor else None


def audit_row(audit: ComparedAudit) -> dict[str, Any]:
    """What stands side by side of one audit, by name."""
    floor = audit.audit.priors.floor
    means = {quantity.name: audit.models.mean(quantity) for quantity in QUANTITIES}
    return {
        "label": audit.label,
        "folder": audit.path,
        "title": audit.audit.title,
        "fingerprint": audit.fingerprint,
        "graph": audit.graph_hash,
        "release": audit.release,
        "is_leakage_found": audit.is_leakage_found,
        "is_exposure_settled": bool(audit.curve.is_settled[audit.curve.at(0.99)]),
        "num_models": len(audit.models.index),
        "num_nameable": audit.curve.total,
        "figures": {name: None if mean is None else vars(mean) for name, mean in means.items()},
        "why_no_accuracy": audit.why_no_accuracy or None,
        "proven": {name: _proven(audit, name) for name in SYMBOLS},
        "proof_level": audit.audit.plan.proof_level,
        "floor": {"epsilon_right": floor.right, "epsilon_left": floor.left, "is_exact": floor.is_exact},
    }
