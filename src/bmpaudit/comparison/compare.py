"""Audits side by side: exposure, proofs, estimates and nodes, what they say in plain words, as page and picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from bmpaudit import registry
from bmpaudit.auditing.context import Variant
from bmpaudit.auditing.result import PARAMETERS, Parameter
from bmpaudit.comparison.sides import (
    AUC,
    HELD_OUT_ACCURACY,
    LEVEL,
    NAMED,
    NAMED_99,
    QUANTITIES,
    AnyAudit,
    ComparedAudit,
    DifferingSetting,
    Mean,
    ModelDifference,
    Quantity,
    compared_audits,
    differing_settings,
    model_differences,
    named_with,
    same_samples,
    show_change,
)
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.posterior import DifferenceMarginal
from bmpaudit.registry import DEFINITION
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats, Ints, plain
from bmpaudit.util.words import SYMBOLS, count, probability, signed

if TYPE_CHECKING:
    import pandas as pd


# Estimated ε side by side: the posteriors of several audits, and their differences to the first.


PERCENTILES = (0.05, 0.5, 0.95)
SURE = 0.95
ABOVE = 0.5  # the upper half of a posterior
DOMINATED = 0.8


@dataclass(frozen=True, eq=False)
class EstimatedEpsilon:
    """The ε of one audit.

    Attributes:
        label: Of the audit.
        variant: The attack whose errors it is about.
        posterior: The posterior.
        parameter: Which ε of it.
        floor: What the sampler alone gives away of it.
        is_leakage_found: Whether leakage was found in the audit.
    """

    label: str
    variant: Variant
    posterior: Posterior
    parameter: str
    floor: float
    is_leakage_found: bool

    @property
    def prior_share(self) -> float:
        """How much of the upper half of the posterior simply has the shape of the prior, from 0 to 1."""
        return self.posterior.tail_prior_share(self.parameter, above=ABOVE)

    @property
    def is_prior_dominated(self) -> bool:
        """Whether the data say how large ε is at least, and the prior how large at most."""
        return self.prior_share > DOMINATED

    @property
    def percentiles(self) -> tuple[float, float, float]:
        """5th, 50th and 95th percentile of the posterior."""
        p5, p50, p95 = (float(value) for value in self.posterior.quantile(PERCENTILES, self.parameter))
        return p5, p50, p95

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "audit": self.label,
            "variant": self.variant.name,
            **dict(zip(("p5", "p50", "p95"), self.percentiles, strict=True)),
            "mean": self.posterior.mean(self.parameter),
            "floor": self.floor,
            "num_nodes": self.posterior.num_nodes,
            "prior_share": self.prior_share,
            "is_prior_dominated": self.is_prior_dominated,
            "status": self.posterior.status,
        }


@dataclass(frozen=True, eq=False)
class EstimatedDifference:
    """By how much the ε of an audit exceeds that of the first.

    Attributes:
        label: Of the audit.
        marginal: The distribution of the difference.
        p5: Percentile of the difference.
        p50: Percentile of the difference.
        p95: Percentile of the difference.
        more_prob: Probability that this audit leaks more than the first.
    """

    label: str
    marginal: DifferenceMarginal
    p5: float
    p50: float
    p95: float
    more_prob: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        percentiles = {name: getattr(self, name) for name in ("p5", "p50", "p95")}
        return {"audit": self.label, **percentiles, "mean": self.marginal.mean(), "more_prob": self.more_prob}


@dataclass(frozen=True, eq=False)
class EstimatedComparison:
    """The posteriors of several audits, taken to be independent.

    Formal guarantee: if the posteriors are independent, `more_prob` and the percentiles of the differences have no
    error but that of the two densities (quadrature, no draws); of Markov chains they are the draws'.

    Attributes:
        definition: Of privacy.
        parameter: Which ε of it.
        epsilons: Those of the audits, in the order given.
        differences: Of each audit but the first, to the first.
    """

    definition: str
    parameter: str
    epsilons: tuple[EstimatedEpsilon, ...]
    differences: tuple[EstimatedDifference, ...]

    @property
    def symbol(self) -> str:
        """Symbol of the compared ε."""
        parameters = self.epsilons[0].posterior.definition.parameters
        return next(parameter.symbol for parameter in parameters if parameter.name == self.parameter)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each audit but the first."""
        first = self.epsilons[0].label
        sentences = []
        for each in self.differences:
            if round(max(each.more_prob, 1 - each.more_prob), 2) < SURE:  # as it is shown
                head = f"{self.symbol} of {each.label} and of {first} cannot be told apart"
            else:
                more = "larger" if each.more_prob > 0.5 else "smaller"
                head = f"{self.symbol} is estimated {more} in {each.label} than in {first}"
            sentences.append(
                f"{head}: it is larger with probability {probability(each.more_prob)}; the difference is "
                f"{signed(each.p50)} in the median, 90 % interval {signed(each.p5)} to {signed(each.p95)}."
            )
        return tuple(sentences)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why not to trust the estimates."""
        messages = [
            f"{each.label}: no leakage was found there, so its estimate means little."
            for each in self.epsilons
            if not each.is_leakage_found
        ]
        messages += self._prior_cautions()
        messages += [
            f"{each.label}: {each.posterior.status.removeprefix('exact; ')}."
            for each in self.epsilons
            if each.posterior.status not in ("exact", "converged")
        ]
        variants = [each.variant for each in self.epsilons]
        if len({(variant.queries, variant.rule) for variant in variants}) > 1:
            names = ", ".join(dict.fromkeys(variant.name for variant in variants))
            messages.append(f"Different attacks are compared: {names}; --variant chooses one for all.")
        return tuple(messages)

    def _prior_cautions(self) -> list[str]:
        dominated = [each.label for each in self.epsilons if each.is_prior_dominated]
        if not dominated:
            return []
        who = f"The posterior of {dominated[0]} is"
        if len(dominated) > 1:
            num_all = len(self.epsilons)
            both = "Both" if num_all == 2 else "All" if len(dominated) == num_all else len(dominated)
            names = "" if len(dominated) == num_all else f" ({', '.join(dominated)})"
            who = f"{both} posteriors{names} are"
        said = "how far apart they are" if len(dominated) > 1 else "how large it is at most"
        return [
            f"{who} prior-dominated (above the median, more than {100 * DOMINATED:.0f} % is the prior's shape): the "
            f"data say how large {self.symbol} is at least; {said}, and in part the probability, is the prior's word."
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the densities as plain values."""
        return {
            "definition": self.definition,
            "parameter": self.parameter,
            "symbol": self.symbol,
            "sentences": self.sentences,
            "cautions": self.cautions,
            "audits": [each.to_dict() for each in self.epsilons],
            "differences": [each.to_dict() for each in self.differences],
        }


def compare_estimates(audits: Sequence[ComparedAudit], definition: str, side: str | None) -> EstimatedComparison:
    """Compares the posteriors of a definition.

    Raises:
        InputError: if an audit has no such posterior, or the definition has no ε of that side.
    """
    first, *others = epsilons = tuple(_epsilon(audit, definition, side) for audit in audits)
    differences = []
    for other in others:
        marginal = DifferenceMarginal(*(each.posterior.marginal(each.parameter) for each in (first, other)))
        p5, p50, p95 = (float(value) for value in marginal.quantile(PERCENTILES))
        differences.append(EstimatedDifference(other.label, marginal, p5, p50, p95, marginal.probability_above()))
    return EstimatedComparison(definition, first.parameter, epsilons, tuple(differences))


def shared_definition(audits: Sequence[ComparedAudit], side: str | None) -> str | None:
    """The definition to compare where none is named: the usual one of the side, else the first that all have."""
    first, *others = (audit.audit.estimates.posteriors[audit.variant.name] for audit in audits)
    shared = [name for name in first if all(name in other for other in others) and _is_about(first[name], side)]
    usual = "bmp-l" if side == "left" else "bmp-r"
    return usual if usual in shared else next(iter(shared), None)


def _is_about(posterior: Posterior, side: str | None) -> bool:
    names = [parameter.name for parameter in posterior.definition.parameters]
    return side is None or f"epsilon_{side}" in names or not names[0].startswith("epsilon_")


def _epsilon(audit: ComparedAudit, definition: str, side: str | None) -> EstimatedEpsilon:
    row = audit.audit.estimates.posteriors[audit.variant.name]
    name = next((key for key in row if definition in (key, registry.name_of(DEFINITION, row[key].definition))), None)
    if name is None:
        raise InputError(
            f"{definition} was not estimated for {audit.variant.name} in {audit.label}; it has {', '.join(row)}"
        )
    parameter = parameter_of(row[name], name, side)
    # From the result: a definition of somebody's own cannot be asked without its code.
    figures = audit.audit.result.variants[audit.variant.name].posteriors[name].parameters[parameter]
    assert figures.floor is not None  # noqa: S101 - it is a parameter of the definition
    return EstimatedEpsilon(
        audit.label, audit.variant, row[name], parameter, figures.floor, bool(audit.is_leakage_found)
    )


def parameter_of(posterior: Posterior, definition: str, side: str | None) -> str:
    """Which ε is compared: that of the side where a definition has both, else its only one.

    Raises:
        InputError: if the definition has no ε of that side.
    """
    names = [parameter.name for parameter in posterior.definition.parameters]
    if len(names) == 1 and (side is None or not names[0].startswith("epsilon_")):
        return names[0]
    wanted = f"epsilon_{side or 'right'}"
    if wanted not in names:
        raise InputError(f"{definition} is about the other side, got side={side!r}")
    return wanted


# Two audits node by node: who is named more often, and who less.


COLUMNS = (
    *("node", "name", "class", "first_models", "first_named", "first_exposure", "second_models", "second_named"),
    *("second_exposure", "change", "change_low", "change_high"),
)


@dataclass(frozen=True, eq=False)
class NodeComparison:
    """How the exposure of nodes changed against the first audit.

    Attributes:
        label: Of the audit.
        matched_by: `id` if both audits are of the same graph, `name` if of graphs with names; empty if not comparable.
        not_comparable: Why nodes cannot be compared; empty if they can.
        table: One row per node that is in both, those that surely changed most first (docs/compare.md).
    """

    label: str
    matched_by: str
    not_comparable: str
    table: pd.DataFrame

    @property
    def num_more(self) -> int:
        """Number of nodes that are named more often: the interval of the change is above 0."""
        return int((self.table["change_low"] > 0).sum())

    @property
    def num_less(self) -> int:
        """Number of nodes that are named less often: the interval of the change is below 0."""
        return int((self.table["change_high"] < 0).sum())

    @property
    def sentence(self) -> str:
        """In words."""
        if self.not_comparable:
            return f"{self.not_comparable[:1].upper()}{self.not_comparable[1:]}."
        return (
            f"Of {count(len(self.table), 'node')} (matched by {self.matched_by}), {self.num_more:,} are named more "
            f"often in {self.label} and {self.num_less:,} less often, by the {100 * LEVEL:.0f} % interval of the "
            f"change; up to about {len(self.table) * (1 - LEVEL) / 2:,.0f} of each may be chance."
        )

    def to_dict(self, top: int) -> dict[str, Any]:
        """As plain values, with the rows of those that changed most."""
        return {
            "audit": self.label,
            "matched_by": self.matched_by or None,
            "not_comparable": self.not_comparable or None,
            "sentence": self.sentence,
            "num_nodes": len(self.table),
            "num_more": self.num_more,
            "num_less": self.num_less,
            "changed_most": plain(self.table.head(top).to_dict(orient="records")),
        }


def compare_nodes(first: ComparedAudit, other: ComparedAudit) -> NodeComparison:
    """The change of the exposure of every node that is in both: among the models it is in, the share that name it.

    Nodes are the same if the graphs have the same content and the nodes the same id; else if both graphs have names,
    which are then distinct, and the nodes the same name.
    """
    import pandas as pd

    nodes = [each.audit.nodes.set_index("node") for each in (first, other)]
    nothing = pd.DataFrame(columns=list(COLUMNS))
    if first.graph_hash == other.graph_hash:
        matched_by, marks = "id", [table.index.to_series() for table in nodes]
    elif all(_has_names(table["name"]) for table in nodes):
        matched_by, marks = "name", [table["name"] for table in nodes]
    else:
        why = f"nodes are not comparable with those of {first.label}: another graph, and not both have distinct names"
        return NodeComparison(other.label, "", why, nothing)
    exposed = [each.exposed_nodes for each in (first, other)]
    shown = [np.flatnonzero(each.num_models > 0) for each in exposed]
    keys = [
        mark.loc[each.node[rows].tolist()].to_numpy() for mark, each, rows in zip(marks, exposed, shown, strict=True)
    ]
    _, *places = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    if not len(places[0]):
        return NodeComparison(other.label, matched_by, f"no node was audited both here and in {first.label}", nothing)
    rows = [each[place] for each, place in zip(shown, places, strict=True)]
    ids = exposed[0].node[rows[0]]
    columns: dict[str, Any] = {"node": ids} | {name: nodes[0].loc[ids, name].to_numpy() for name in ("name", "class")}
    for name, each, chosen in zip(("first", "second"), exposed, rows, strict=True):
        columns |= {
            f"{name}_models": each.num_models[chosen],
            f"{name}_named": each.num_named[chosen],
            f"{name}_exposure": each.share[chosen],
        }
    columns["change"] = columns["second_exposure"] - columns["first_exposure"]
    low, high = difference_of_shares(
        *(columns[f"{name}_{what}"] for name in ("first", "second") for what in ("named", "models"))
    )
    nearer = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    order = np.lexsort((ids, -np.abs(columns["change"]), -nearer))
    table = pd.DataFrame(columns | {"change_low": low, "change_high": high}).iloc[order].reset_index(drop=True)
    return NodeComparison(other.label, matched_by, "", table)


def difference_of_shares(
    first_hits: Ints, first_trials: Ints, second_hits: Ints, second_trials: Ints, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Newcombe's limits of the difference of two independent shares, second - first.

    They join Wilson's limits of each share (Newcombe 1998, method 10), and are within [-1, 1]. In paired audits the
    shares of a node are not independent: they are larger or smaller together, so that limits are too wide, if anything.

    Args:
        first_hits: Hits of the first, shape (K,).
        first_trials: Trials of the first, at least 1, shape (K,).
        second_hits: Hits of the second, shape (K,).
        second_trials: Trials of the second, at least 1, shape (K,).
        level: Confidence level.
    """
    share_1, low_1, high_1 = _wilson(first_hits, first_trials, level)
    share_2, low_2, high_2 = _wilson(second_hits, second_trials, level)
    change = share_2 - share_1
    return change - np.hypot(share_2 - low_2, high_1 - share_1), change + np.hypot(high_2 - share_2, share_1 - low_1)


def _wilson(hits: Ints, trials: Ints, level: float) -> tuple[Floats, Floats, Floats]:
    """The share and Wilson's limits."""
    z = float(scipy.special.ndtri((1 + level) / 2))
    share = hits / trials
    middle, weight = (hits + z**2 / 2) / (trials + z**2), z / (trials + z**2)
    half = weight * np.sqrt(trials * share * (1 - share) + z**2 / 4)
    # The ends are 0 and 1 exactly where all trials agree, but for rounding.
    return share, np.where(hits == 0, 0.0, middle - half), np.where(hits == trials, 1.0, middle + half)


def _has_names(names: pd.Series) -> bool:
    """Whether nodes have names of their own, not just their numbers, and these are distinct."""
    return bool(names.is_unique and (names.astype(str) != names.index.astype(str)).any())


# What a comparison says in plain words: does it help, and what does it cost?


def verdict(first: ComparedAudit, other: ComparedAudit, differences: Sequence[ModelDifference]) -> str:
    """One or a few sentences on one audit against the first."""
    changes = {each.quantity: each.change for each in differences}
    sentences = []
    if first.is_leakage_found is False and other.is_leakage_found is False:
        sentences.append(f"No leakage was found in {first.label} or in {other.label}{_cost(changes)}.")
    else:
        sentences.append(f"{_exposure(first, other, changes)}{_cost(changes)}.")
        unfound = (audit.label for audit in (first, other) if audit.is_leakage_found is False)
        sentences += [f"No leakage was found in {label}." for label in unfound]
    sentences += [_not_tested(audit) for audit in (first, other) if audit.is_leakage_found is None]
    sentences += _not_settled([audit for audit in (first, other) if not audit.named_surely.is_settled])
    reasons = [audit.why_no_accuracy for audit in (first, other) if audit.why_no_accuracy]
    if reasons:
        sentences.append(f"What it costs in held-out accuracy is not known: {'; '.join(reasons)}.")
    return " ".join(sentences)


def _exposure(first: ComparedAudit, other: ComparedAudit, changes: Mapping[Quantity, Mean]) -> str:
    nodes, change = NAMED[other.side], changes[NAMED_99]
    if change.is_apart_from_0:
        ends = _ends(change, 1.0, "fewer", "more")
        return (
            f"{other.label} exposes {ends.amount} {ends.word} {nodes} per released model than {first.label} "
            f"({ends.low} to {ends.high} {ends.word}; named with 99 % certainty)"
        )
    if change.low == change.high:
        if not changes[NAMED_99].mean and not first.named_surely.correct:
            said = f"No model of {first.label} or of {other.label} exposes {nodes} with 99 % certainty"
        else:
            said = f"Each model of {other.label} exposes as many {nodes} as that of {first.label}"
    else:
        said = (
            f"{other.label} and {first.label} cannot be told apart: the difference in {nodes} exposed per released "
            f"model is {signed(change.low, 1)} to {signed(change.high, 1)} (named with 99 % certainty)"
        )
    auc = changes.get(AUC)
    if auc is not None and auc.is_apart_from_0:
        ends = _ends(auc, 1.0, "lower", "higher", digits=3)
        said += f", though the attack's AUC is {ends.amount} {ends.word} ({ends.low} to {ends.high})"
    return said


def _cost(changes: Mapping[Quantity, Mean]) -> str:
    change = changes.get(HELD_OUT_ACCURACY)
    if change is None:
        return ""
    if change.is_apart_from_0:
        ends = _ends(change, 100.0, "lower", "higher")
        points = "point" if ends.amount == "1" else "points"
        return f", and held-out accuracy is {ends.amount} {points} {ends.word} ({ends.low} to {ends.high})"
    if change.low == change.high:
        return ", and held-out accuracy is the same"
    return (
        ", and no difference in held-out accuracy can be told "
        f"({signed(100 * change.low, 1)} to {signed(100 * change.high, 1)} points)"
    )


class _Ends:
    """A difference without its sign, and the word for its sign."""

    def __init__(self, change: Mean, factor: float, less: str, more: str, digits: int | None) -> None:
        self.word = less if change.mean < 0 else more
        amount, *ends = (factor * abs(value) for value in (change.mean, change.low, change.high))
        if digits is None:
            # The nearer end tells that there is a difference: it must not round to none.
            digits = 0 if min(ends) >= 10 else 1 if min(ends) >= 0.1 else 2
        self.amount, self.low, self.high = (f"{value:,.{digits}f}" for value in (amount, *sorted(ends)))


def _ends(change: Mean, factor: float, less: str, more: str, digits: int | None = None) -> _Ends:
    return _Ends(change, factor, less, more, digits)


def _not_settled(audits: Sequence[ComparedAudit]) -> list[str]:
    if not audits:
        return []
    needed = (
        f"{audit.label} has {count(audit.result.exposure.num_models, 'model')}, about "
        f"{audit.named_surely.models_needed:,} would do"
        for audit in audits
    )
    return [f"How many can be named is not settled: {'; '.join(needed)}."]


def _not_tested(audit: ComparedAudit) -> str:
    return (
        f"That {audit.label} leaks is not proven, and the permutation test was on the release "
        f"{audit.audit.attacks.releases[0]} alone."
    )


def cautions(audits: Sequence[ComparedAudit]) -> list[str]:
    """What a reader must know before trusting the verdicts."""
    messages = []
    marks = [(audit.fingerprint, audit.release) for audit in audits]
    if len(set(marks)) < len(marks):
        messages.append("The same audit is here more than once: it is compared with itself.")
    first = audits[0]
    for other in audits[1:]:
        counted = [setting.key for setting in differing_settings((first, other)) if not setting.is_beside]
        if first.audit is not other.audit and first.release != other.release:
            counted.append("the release")
        if len(counted) > 1:
            messages.append(
                f"{other.label} differs from {first.label} in {len(counted)} settings, so the difference cannot be put "
                f"down to one of them: {', '.join(counted)}."
            )
        if len(first.models.index) != len(other.models.index):
            messages.append(
                f"{first.label} has {count(len(first.models.index), 'shadow model')}, {other.label} "
                f"{len(other.models.index):,}: an attack that learns from more models names more nodes."
            )
    messages += [
        f"{audit.label}: its shadow models cannot be read, so neither its accuracy nor its samples are known: "
        f"{audit.runs}"
        for audit in audits
        if isinstance(audit.runs, str)
    ]
    return messages


# Audits side by side: does this sampler, model or defence leak less, and what does it cost?


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
    independent models elsewhere, or those with Hall's correction for skewness (`bmpaudit.proof.exposure.band`) where
    they are farther. They hold approximately. Models are the units; the nodes of one model count as one observation.

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
    named = [named_with(row.precision) for row in first.named]
    return Difference(
        label=other.label,
        verdict=verdict(first, other, models),
        models=models,
        curve=model_differences(first.models, other.models, pairs, named),
        more_proven={parameter: _more_proven(first, other, parameter) for parameter in PARAMETERS},
        nodes=compare_nodes(first, other),
    )


def _more_proven(first: ComparedAudit, other: ComparedAudit, parameter: Parameter) -> str:
    bounds = [audit.result.shown(parameter) for audit in (first, other)]
    one, two = (-math.inf if bound is None else bound for bound in bounds)
    return "" if one == two else first.label if one > two else other.label


def audit_row(audit: ComparedAudit) -> dict[str, Any]:
    """What stands side by side of one audit, by name."""
    floor = audit.audit.priors.floor
    means = {quantity.name: audit.mean(quantity) for quantity in QUANTITIES}
    return {
        "label": audit.label,
        "folder": audit.path,
        "title": audit.audit.title,
        "fingerprint": audit.fingerprint,
        "graph": audit.graph_hash,
        "release": audit.release,
        "is_leakage_found": audit.is_leakage_found,
        "is_exposure_settled": audit.named_surely.is_settled,
        "num_models": len(audit.models.index),
        "num_nameable": audit.num_nameable,
        "figures": {name: None if mean is None else vars(mean) for name, mean in means.items()},
        "why_no_accuracy": audit.why_no_accuracy or None,
        "proven": {name: audit.result.shown(name) for name in PARAMETERS},
        "proof_level": audit.audit.plan.proof_level,
        "floor": {"epsilon_right": floor.right, "epsilon_left": floor.left, "is_exact": floor.is_exact},
    }
