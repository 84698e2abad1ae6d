"""What is compared: figures per model of several audits or releases, their differences, and differing settings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from bmpaudit.auditing import Audit
from bmpaudit.auditing import result as tree
from bmpaudit.auditing.answer import release_accuracy
from bmpaudit.auditing.context import Variant
from bmpaudit.proof.exposure import untransformed
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.errors import InputError
from bmpaudit.util.matrices import model_blocks, take_rows
from bmpaudit.util.values import Floats, Ints
from bmpaudit.util.words import interval, number, percent, signed

NAMED = {"right": "training nodes", "left": "nodes outside the training graph"}


@dataclass(frozen=True)
class Quantity:
    """What is compared of each model."""

    name: str  # as in files
    label: str  # as readers see it
    digits: int
    is_share: bool = False  # shown in per cent, and differences in points


def named_with(certainty: float) -> Quantity:
    """Number of nodes that are named correctly with this certainty."""
    return Quantity(f"named_{100 * certainty:g}", f"named with {100 * certainty:g} % certainty", 1)


NAMED_90, NAMED_99 = named_with(0.9), named_with(0.99)
AUC = Quantity("auc", "AUC within a model", 3)
TRUE_POSITIVE_RATE = Quantity("tpr", "TPR at FPR 1 % within a model", 1, is_share=True)
HELD_OUT_ACCURACY = Quantity("held_out_accuracy", "held-out accuracy", 1, is_share=True)
QUANTITIES = (NAMED_90, NAMED_99, AUC, TRUE_POSITIVE_RATE, HELD_OUT_ACCURACY)


LEVEL = 0.95


def show_mean(quantity: Quantity, mean: Mean | None) -> str:
    """A mean with its limits.

    >>> show_mean(NAMED_99, Mean(12.34, 11.5, 13.2))
    '12.3 (11.5 to 13.2)'
    >>> show_mean(HELD_OUT_ACCURACY, Mean(0.995, 0.985, 1.005))
    '99.5 % (98.5 to 100.0)'
    """
    if mean is None:
        return "not known"
    factor = 100 if quantity.is_share else 1
    # Limits of Student's t know no bounds.
    low, high = max(mean.low, 0.0), min(mean.high, 1.0) if quantity.is_share else mean.high
    middle = (percent if quantity.is_share else number)(mean.mean, quantity.digits)
    return f"{middle} ({interval(factor * low, factor * high, quantity.digits)})"


def show_change(quantity: Quantity, change: Mean) -> tuple[str, str]:
    """A difference and its limits, of shares in points.

    >>> show_change(HELD_OUT_ACCURACY, Mean(-0.004, -0.006, -0.002))
    ('−0.4 points', '−0.6 to −0.2')
    """
    factor, unit = (100, " points") if quantity.is_share else (1, "")
    mean, low, high = (signed(factor * end, quantity.digits) for end in (change.mean, change.low, change.high))
    return f"{mean}{unit}", f"{low} to {high}"


@dataclass(frozen=True)
class Mean:
    """A mean over models with confidence limits."""

    mean: float
    low: float
    high: float

    @property
    def is_apart_from_0(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.low > 0 or self.high < 0


def _spread(values: Floats, sign: float = 1.0) -> Floats:
    """Variance and third central moment of the mean of J independent values, or of its opposite.

    Both add up over independent parts of a sum, so spreads are added as they are.
    """
    num, centred = len(values), values - values.mean()
    return np.array([(centred**2).sum() / (num - 1) / num, sign * (centred**3).mean() / num**2])


@dataclass(frozen=True, eq=False)
class ModelFigures:
    """Figures of each shadow model of an audit.

    Effects are what each model has done to the mean through what all models share, times J; 0 on average. The nodes of
    all models are named by one calibration, which was learnt from them.
    """

    index: Ints  # number of each model in its plan, ascending, shape (J,)
    values: Mapping[str, Floats]  # by the quantity's name, shape (J,); NaN where unknown
    effects: Mapping[str, Floats]  # of the quantities that have any, shape (J,)

    def effect(self, quantity: Quantity) -> Floats:
        """Effects of the models on the mean of a quantity, shape (J,)."""
        return self.effects.get(quantity.name, np.zeros(len(self.index)))

    def mean(self, quantity: Quantity) -> Mean | None:
        """The mean of a quantity with limits as in `band`; None if fewer than two models know it."""
        values = self.with_effects(quantity)
        if len(values) < 2:
            return None
        known = self.values[quantity.name]
        return _limits(float(np.nanmean(known)), _spread(values), len(values) - 1)

    def with_effects(self, quantity: Quantity) -> Floats:
        """Known values of a quantity plus effects, whose spread tells how uncertain the mean is."""
        values = self.values[quantity.name] + self.effect(quantity)
        return values[np.isfinite(values)]


@dataclass(frozen=True)
class ModelDifference:
    """By how much a figure of one released model is larger in one audit than in the first."""

    quantity: Quantity
    change: Mean
    is_paired: bool  # whether models with the same sample were compared, or independent ones
    num_models: tuple[int, int]  # of the first audit and of the other; of pairs, if paired


def paired_difference(
    first: ModelFigures, other: ModelFigures, quantity: Quantity, pairs: Ints
) -> ModelDifference | None:
    """The mean of other - first over pairs of models of the same sample, with Student's t limits, or Hall's if farther.

    What a sample makes easy or hard is in both models of a pair and cancels, so limits are narrower than those of
    independent models. Models that only one audit has still have an effect on its calibration, and count with that.
    None if fewer than two pairs know the quantity; `pairs` are the numbers of the models of the same sample.
    """
    rows = [np.searchsorted(each.index, pairs) for each in (first, other)]
    one, two = (each.values[quantity.name][chosen] for each, chosen in zip((first, other), rows, strict=True))
    is_known = np.isfinite(one) & np.isfinite(two)
    num_pairs = int(is_known.sum())
    if num_pairs < 2:
        return None
    change = (two - one)[is_known]
    pulls, spread = np.zeros(num_pairs), np.zeros(2)
    for sign, each, chosen in zip((-1.0, 1.0), (first, other), rows, strict=True):
        effect = each.effect(quantity) / len(each.index)
        pulls += sign * num_pairs * effect[chosen[is_known]]
        alone = sign * np.delete(effect, chosen[is_known])
        spread += np.array([(alone**2).sum(), (alone**3).sum()])
    spread += _spread(change + pulls)
    limits = _farther_limits(float(change.mean()), spread, num_pairs - 1)
    return ModelDifference(quantity, limits, is_paired=True, num_models=(num_pairs, num_pairs))


def independent_difference(first: ModelFigures, other: ModelFigures, quantity: Quantity) -> ModelDifference | None:
    """The difference of two means over independent models; None with fewer than two models on a side.

    Limits are Welch's, or Hall's if farther.
    """
    means = [each.mean(quantity) for each in (first, other)]
    values = [each.with_effects(quantity) for each in (first, other)]
    if means[0] is None or means[1] is None:
        return None
    parts = [_spread(each, sign) for each, sign in zip(values, (-1.0, 1.0), strict=True)]
    spread, freedom = parts[0] + parts[1], 1.0
    if spread[0]:  # Satterthwaite
        shares = [(part[0] / spread[0]) ** 2 for part in parts]
        freedom = 1 / sum(share / (len(each) - 1) for share, each in zip(shares, values, strict=True))
    limits = _farther_limits(means[1].mean - means[0].mean, spread, freedom)
    return ModelDifference(quantity, limits, is_paired=False, num_models=(len(values[0]), len(values[1])))


def model_differences(
    first: ModelFigures, other: ModelFigures, pairs: Ints, quantities: Sequence[Quantity] = QUANTITIES
) -> tuple[ModelDifference, ...]:
    """Differences of those quantities that both audits know: over pairs if two at least know it, else independent."""
    found = (
        paired_difference(first, other, quantity, pairs) or independent_difference(first, other, quantity)
        for quantity in quantities
    )
    return tuple(filter(None, found))


def _farther_limits(mean: float, spread: Floats, freedom: float) -> Mean:
    """Limits of a difference: on each side the farther of those with and without Hall's correction.

    Numbers of named nodes are skewed, and so is their difference where one audit names far more than the other: there
    the plain limit misses too often on one side. Where both name as many, the difference is symmetric with heavy
    tails: there the skewness of the sample is chance, and limits that are corrected for it miss too often.
    """
    plain, corrected = (_limits(mean, each, freedom) for each in (spread * (1.0, 0.0), spread))
    return Mean(mean, min(plain.low, corrected.low), max(plain.high, corrected.high))


def _limits(mean: float, spread: Floats, freedom: float) -> Mean:
    """As `band`, for any sum of independent parts.

    With T = (estimate - truth)/error, the law of T up to 1/√J depends on the third moment over error³ alone, and in the
    same way for one mean and for a sum or difference of several: each mean is correlated with its own variance, by its
    own third moment. So Hall's transformation takes that in place of skewness/√J.
    """
    error = math.sqrt(spread[0])
    if not error:
        return Mean(mean, mean, mean)
    skewness = spread[1] / error**3
    quantile = float(scipy.special.stdtrit(freedom, (1 + LEVEL) / 2))
    high, low = (mean - error * float(untransformed(end, skewness)) for end in (-quantile, quantile))
    return Mean(mean, low, high)


AnyAudit = Audit | str | Path | tuple[Audit, str]
"""An audit or its folder; a release of it is `FOLDER:RELEASE`, or an audit and the release's label."""


@dataclass(frozen=True, eq=False)
class ComparedAudit:
    """One release of one audit."""

    label: str  # the name of its folder, its release, or its title, made distinct
    path: str  # its folder; empty for an audit that was never written
    audit: Audit
    variant: Variant  # the attack whose errors the estimated ε is about
    side: str  # `right` if members are named, `left` if non-members
    release: str = field(init=False)  # its label
    result: tree.ReleaseResult = field(init=False)  # what the audit says of it
    named_side: str = field(init=False)  # who is named: `members` or `non_members`
    named: list[tree.NamedResult] = field(init=False)  # how many nodes of this side are named, by certainty
    named_surely: tree.NamedResult = field(init=False)  # how many with 99 % certainty
    # The one of this side to lead with; None if no name is certified beyond what the sampling tells.
    certificate: tree.CertificateResult | None = field(init=False)
    test: tree.TestResult | None = field(init=False)  # about the audit's main release; None for another one
    level: tree.Level | None = field(init=False)  # how much leaks; None for a release that was not tested
    graph_hash: str = field(init=False)  # of the graph's content

    def __post_init__(self) -> None:
        whole, release = self.audit.result, self.variant.release
        result, side = whole.releases[release], "members" if self.side == "right" else "non_members"
        is_tested = release == whole.main_release
        # Not by assignment, as this is frozen.
        vars(self).update(
            release=release,
            result=result,
            named_side=side,
            named=getattr(result.exposure, side),
            named_surely=result.exposure.named(tree.HEADLINE_CERTAINTY, side),
            certificate=None if result.certified is None else result.certified.leading(side),
            test=whole.permutation_test if is_tested else None,
            level=whole.answer.level if is_tested else None,
            graph_hash=whole.graph.content_hash,
        )

    def certified_names(self, certainty: float) -> float:
        """Number of names that are certified with at least a certainty; 0 if the sampling alone tells as many."""
        row = None if self.result.certified is None else self.result.certified.named(certainty, self.named_side)
        return row.names if row is not None and row.by_model > 0 else 0.0

    def mean(self, quantity: Quantity) -> Mean | None:
        """The mean of a quantity over models, with the limits that the audit itself shows; None if it is not known."""
        for row in self.named:
            if quantity == named_with(row.precision):
                return Mean(row.correct, row.correct_low, row.correct_high)
        return self.models.mean(quantity)

    def named_from(self, certainty: float) -> dict[str, Mean]:
        """How many nodes are named by each access, the least first."""
        ladder = self.result.ladder.items()
        rows = {access: found.exposure.named(certainty, self.named_side) for access, found in ladder}
        return {access: Mean(row.correct, row.correct_low, row.correct_high) for access, row in rows.items()}

    @property
    def is_leakage_found(self) -> bool | None:
        """Whether leakage was found; None for a release that was not tested and of which nothing is proven."""
        if self.test is not None:
            return self.audit.is_leakage_found
        return True if self.result.is_leakage_proven else None

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
        table = self.audit.findings[self.release].exposure.models
        correct, effect = (getattr(table, f"{self.named_side}_{what}") for what in ("correct", "effect"))
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
    parts = list[tuple[str, Audit, str]]()  # folder, audit and release; folder and release are empty if not given
    for given in audits:
        if isinstance(given, Audit):
            parts.append(("", given, ""))
        elif isinstance(given, tuple):
            parts.append(("", *given))
        else:
            folder, release = str(given), ""
            if not Path(folder).exists() and ":" in folder:
                folder, _, release = folder.rpartition(":")
            if folder not in loaded:
                loaded[folder] = Audit.load(folder)
            parts.append((folder, loaded[folder], release))
    return tuple(
        ComparedAudit(label, path, audit, _chosen_variant(label, path, audit, release, variant), side)
        for label, (path, audit, release) in zip(_labels(parts), parts, strict=True)
    )


def _labels(parts: Sequence[tuple[str, Audit, str]]) -> list[str]:
    """Names of folders, or of releases if there is but one audit; numbered if they are the same."""
    if len({id(audit) for _, audit, _ in parts}) == 1 and all(release for _, _, release in parts):
        labels = [release for _, _, release in parts]
    else:
        named = [(Path(folder).resolve().name if folder else audit.title, release) for folder, audit, release in parts]
        if len(set(named)) < len(parts):
            named = [(folder or name, release) for (name, release), (folder, _, _) in zip(named, parts, strict=True)]
        labels = [f"{name}:{release}" if release else name for name, release in named]
    return [
        label if labels.count(label) == 1 else f"{label} ({labels[: position + 1].count(label)})"
        for position, label in enumerate(labels)
    ]


def _chosen_variant(label: str, path: str, audit: Audit, release: str, variant: str | None) -> Variant:
    """The attack that is named, or the strongest on the release."""
    attacks = audit.attacks
    if release and release not in attacks.releases:
        raise InputError(f"{path or audit.title} has no release {release!r}; it has {', '.join(attacks.releases)}")
    if variant is None:
        return attacks.strongest(release or attacks.releases[0])
    by_name = {each.name: each for each in attacks.variants}
    if variant not in by_name:
        raise InputError(f"{label} has no attack {variant!r}; it has {', '.join(by_name)}")
    chosen = by_name[variant]
    if release not in ("", chosen.release):
        raise InputError(f"{variant} is an attack on the release {chosen.release}, got the release {release!r}")
    return chosen


# Settings that leave what is compared as it is, or change nothing but chance.
INCIDENTAL = frozenset(("seed", "permutations", "estimation.definitions", "estimation.level"))


@dataclass(frozen=True)
class DifferingSetting:
    """A key of the plan that is not the same in all audits."""

    key: str
    values: tuple[Any, ...]  # in the order of the audits; None where a plan has no such key
    is_beside: bool  # whether it leaves what is compared as it is, but for chance


def show_value(value: Any) -> str:
    """A setting as a plan file has it, without quotes.

    >>> show_value(["full", "none"]), show_value(True), show_value(0.25), show_value(None)
    ('full none', 'true', '0.25', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, (list, tuple)):
        return " ".join(map(show_value, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {show_value(part)}" for name, part in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def differing_settings(audits: Sequence[ComparedAudit]) -> tuple[DifferingSetting, ...]:
    """The keys in which plans differ; the graph is compared by its content.

    What only one sampler or model has (`sampler.fan_out`) goes with its name and is no difference of its own.
    """
    tables: list[dict[str, Any]] = []
    for audit in audits:
        table: dict[str, Any] = {}
        for key, value in audit.audit.result.plan.items():
            section = value if isinstance(value, dict) else {}
            table |= {f"{key}.{name}": part for name, part in section.items()} if section else {key: value}
        tables.append({**table, "graph": audit.graph_hash})
    differing = []
    for key in dict.fromkeys(key for table in tables for key in table):
        values = tuple(table.get(key) for table in tables)
        present = [value for value in values if value is not None]
        names = [json.dumps(table.get(f"{key.split('.')[0]}.name")) for table in tables]
        have_it = {name for name, table in zip(names, tables, strict=True) if key in table}
        lack_it = {name for name, table in zip(names, tables, strict=True) if key not in table}
        goes_with_name = lack_it and not have_it & lack_it and all(value == present[0] for value in present)
        if goes_with_name or all(value == values[0] for value in values):
            continue
        if key == "graph":
            values = tuple(audit.audit.result.plan.get("graph") or audit.graph_hash[:8] for audit in audits)
        differing.append(DifferingSetting(key, values, key in INCIDENTAL))
    return tuple(differing)
