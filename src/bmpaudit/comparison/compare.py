"""Audits side by side: exposure, proofs, estimates and nodes, what they say in plain words, as page and picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.special

from bmpaudit import registry
from bmpaudit.auditing import answer
from bmpaudit.auditing.result import HEADLINE_CERTAINTY, LEVELS, PARAMETERS
from bmpaudit.comparison import sides
from bmpaudit.comparison.sides import AnyAudit, ComparedAudit, DifferingSetting, Mean, ModelDifference, Quantity
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.posterior import DifferenceMarginal
from bmpaudit.io.codec import encode, filled
from bmpaudit.releases import ACCESSES
from bmpaudit.util.errors import InputError
from bmpaudit.util.values import Floats, Ints, plain
from bmpaudit.util.words import CEILING, MISSING, SYMBOLS, count, listed, number, percent, probability, signed

if TYPE_CHECKING:
    import pandas as pd

SURE = 0.95
ABOVE = 0.5  # the upper half of a posterior
DOMINATED = 0.8


@dataclass(frozen=True)
class EstimatedEpsilon:
    """The ε of one audit, as its result has it."""

    audit: str  # its label
    variant: str  # the attack whose errors it is about
    p5: float
    p50: float
    p95: float
    mean: float
    floor: float | None  # what the sampler alone gives away of it
    num_nodes: int  # that count
    prior_share: float  # of the upper half of the posterior, how much simply has the shape of the prior
    is_prior_dominated: bool  # whether the data say how large ε is at least, and the prior how large at most
    status: str  # whether to believe the posterior


@dataclass(frozen=True)
class EstimatedDifference:
    """By how much the ε of an audit exceeds that of the first."""

    audit: str  # its label
    p5: float
    p50: float
    p95: float
    mean: float
    more_prob: float  # that this audit leaks more than the first

    def sentence(self, symbol: str, first: str) -> str:
        """In words."""
        if round(max(self.more_prob, 1 - self.more_prob), 2) < SURE:  # as it is shown
            head = f"{symbol} of {self.audit} and of {first} cannot be told apart"
        else:
            more = "larger" if self.more_prob > 0.5 else "smaller"
            head = f"{symbol} is estimated {more} in {self.audit} than in {first}"
        return (
            f"{head}: it is larger with probability {probability(self.more_prob)}; the difference is "
            f"{signed(self.p50)} in the median, 90 % interval {signed(self.p5)} to {signed(self.p95)}."
        )


@dataclass(frozen=True)
class EstimatedComparison:
    """The posteriors of several audits, taken to be independent.

    Formal guarantee: if the posteriors are independent, `more_prob` and the percentiles of the differences have no
    error but that of the two densities (quadrature, no draws); of Markov chains they are the draws'.
    """

    definition: str  # of privacy
    parameter: str  # which ε of it
    symbol: str
    sentences: tuple[str, ...]  # one for each difference
    cautions: tuple[str, ...]  # why not to trust the estimates
    audits: tuple[EstimatedEpsilon, ...]
    differences: tuple[EstimatedDifference, ...]  # of each audit but the first, to the first


def compare_estimates(audits: Sequence[ComparedAudit], definition: str, side: str | None) -> EstimatedComparison:
    """Compares the posteriors of a definition."""
    parameter, epsilons = "", list[EstimatedEpsilon]()
    for audit in audits:
        name, posterior = posterior_of(audit, definition)
        wanted = _parameter_of(posterior, side)
        if wanted is None:
            raise InputError(f"{name} is about the other side, got side={side!r}")
        parameter = wanted
        # From the result: a definition of somebody's own cannot be asked without its code.
        figures = audit.audit.result.variants[audit.variant.name].posteriors[name]
        of_it, share = figures.parameters[parameter], posterior.tail_prior_share(parameter, above=ABOVE)
        about = {"prior_share": share, "is_prior_dominated": share > DOMINATED, "variant": audit.variant.name}
        epsilons.append(filled(EstimatedEpsilon, of_it, figures, audit=audit.label, **about))
    differences = []
    for label, marginal in difference_marginals(audits, definition, parameter).items():
        p5, p50, p95 = map(float, marginal.quantile((0.05, 0.5, 0.95)))
        differences.append(EstimatedDifference(label, p5, p50, p95, marginal.mean(), marginal.probability_above()))
    return EstimatedComparison(
        definition=definition,
        parameter=parameter,
        symbol=of_it.symbol,
        sentences=tuple(each.sentence(of_it.symbol, audits[0].label) for each in differences),
        cautions=_estimate_cautions(audits, epsilons, of_it.symbol),
        audits=tuple(epsilons),
        differences=tuple(differences),
    )


def posterior_of(audit: ComparedAudit, definition: str) -> tuple[str, Posterior]:
    """The posterior of a definition, given by its name or by the label it has in the audit, and that label."""
    row = audit.audit.estimates.posteriors[audit.variant.name]
    for name, posterior in row.items():
        if definition in (name, registry.name_of(registry.DEFINITION, posterior.definition)):
            return name, posterior
    raise InputError(
        f"{definition} was not estimated for {audit.variant.name} in {audit.label}; it has {', '.join(row)}"
    )


def difference_marginals(
    audits: Sequence[ComparedAudit], definition: str, parameter: str
) -> dict[str, DifferenceMarginal]:
    """The distribution of the difference to the first audit, by the labels of the others."""
    first, *others = (posterior_of(audit, definition)[1].marginal(parameter) for audit in audits)
    return {audit.label: DifferenceMarginal(first, other) for audit, other in zip(audits[1:], others, strict=True)}


def _estimate_cautions(
    audits: Sequence[ComparedAudit], epsilons: Sequence[EstimatedEpsilon], symbol: str
) -> tuple[str, ...]:
    unfound = [audit.label for audit in audits if not audit.is_leakage_found]
    messages = [f"{label}: no leakage was found there, so its estimate means little." for label in unfound]
    dominated = [each.audit for each in epsilons if each.is_prior_dominated]
    if dominated:
        who, said = f"The posterior of {dominated[0]} is", "how large it is at most"
        if len(dominated) > 1:
            is_all = len(dominated) == len(epsilons)
            which = "Both" if len(epsilons) == 2 else "All" if is_all else len(dominated)
            names = "" if is_all else f" ({', '.join(dominated)})"
            who, said = f"{which} posteriors{names} are", "how far apart they are"
        messages.append(
            f"{who} prior-dominated (above the median, more than {100 * DOMINATED:.0f} % is the prior's shape): the "
            f"data say how large {symbol} is at least; {said}, and in part the probability, is the prior's word."
        )
    doubtful = [each for each in epsilons if each.status not in ("exact", "converged")]
    messages += [f"{each.audit}: {each.status.removeprefix('exact; ')}." for each in doubtful]
    if len({(audit.variant.queries, audit.variant.rule) for audit in audits}) > 1:
        names = ", ".join(dict.fromkeys(each.variant for each in epsilons))
        messages.append(f"Different attacks are compared: {names}; --variant chooses one for all.")
    return tuple(messages)


def shared_definition(audits: Sequence[ComparedAudit], side: str | None) -> str | None:
    """The definition to compare where none is named: the usual one of the side, else the first that all have."""
    first, *others = (audit.audit.estimates.posteriors[audit.variant.name] for audit in audits)
    names = [name for name in first if all(name in other for other in others)]
    shared = [name for name in names if side is None or _parameter_of(first[name], side) is not None]
    usual = "bmp-l" if side == "left" else "bmp-r"
    return usual if usual in shared else next(iter(shared), None)


def _parameter_of(posterior: Posterior, side: str | None) -> str | None:
    """Which ε is compared: that of the side where a definition has both, else its only one; None if of another side."""
    names = [parameter.name for parameter in posterior.definition.parameters]
    if len(names) == 1 and (side is None or not names[0].startswith("epsilon_")):
        return names[0]
    wanted = f"epsilon_{side or 'right'}"
    return wanted if wanted in names else None


# Two audits node by node: who is named more often, and who less.

COLUMNS = [
    *("node", "name", "class", "first_models", "first_named", "first_exposure", "second_models", "second_named"),
    *("second_exposure", "change", "change_low", "change_high"),
]


@dataclass(frozen=True, eq=False)
class NodeComparison:
    """How the exposure of nodes changed against the first audit."""

    label: str  # of the audit
    matched_by: str  # `id` if both are of the same graph, `name` if of graphs with names; empty if not comparable
    not_comparable: str  # why nodes cannot be compared; empty if they can
    table: pd.DataFrame  # one row per node that is in both, those that surely changed most first (docs/compare.md)

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
            f"often in {self.label} and {self.num_less:,} less often, by the {100 * sides.LEVEL:.0f} % interval of the "
            f"change; up to about {len(self.table) * (1 - sides.LEVEL) / 2:,.0f} of each may be chance."
        )


def compare_nodes(first: ComparedAudit, other: ComparedAudit) -> NodeComparison:
    """The change of the exposure of every node that is in both: among the models it is in, the share that name it.

    Nodes are the same if the graphs have the same content and the nodes the same id; else if both graphs have names,
    which are then distinct, and the nodes the same name.
    """
    import pandas as pd

    nothing = pd.DataFrame(columns=COLUMNS)
    names = [each.audit.nodes.set_index("node")["name"] for each in (first, other)]
    if first.graph_hash == other.graph_hash:
        matched_by = "id"
    elif all(own.is_unique and (own.astype(str) != own.index.astype(str)).any() for own in names):  # not mere numbers
        matched_by = "name"
    else:
        why = f"nodes are not comparable with those of {first.label}: another graph, and not both have distinct names"
        return NodeComparison(other.label, "", why, nothing)
    exposed = []
    for prefix, each in (("first", first), ("second", other)):
        exposure = each.audit.findings[each.release].exposure.exposure
        shares = exposure.member_nodes if each.side == "right" else exposure.non_member_nodes
        columns = {"models": shares.num_models, "named": shares.num_named, "exposure": shares.share}
        table = pd.DataFrame(columns, index=pd.Index(shares.node, name="node")).add_prefix(f"{prefix}_")
        exposed.append(table[shares.num_models > 0])
    table, second = exposed
    table = first.audit.nodes.set_index("node")[["name", "class"]].join(table, how="inner")
    if matched_by == "name":
        second = second.set_axis(names[1].loc[second.index], axis=0)
    table = table.join(second, on="name" if matched_by == "name" else None, how="inner").reset_index()
    if table.empty:
        return NodeComparison(other.label, matched_by, f"no node was audited both here and in {first.label}", nothing)
    table["change"] = table["second_exposure"] - table["first_exposure"]
    hits_and_trials = ("first_named", "first_models", "second_named", "second_models")
    low, high = difference_of_shares(*(table[name].to_numpy() for name in hits_and_trials))
    nearer = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    order = np.lexsort((table["node"], -np.abs(table["change"]), -nearer))
    table = table.assign(change_low=low, change_high=high).iloc[order].reset_index(drop=True)
    return NodeComparison(other.label, matched_by, "", table)


def difference_of_shares(
    first_hits: Ints, first_trials: Ints, second_hits: Ints, second_trials: Ints
) -> tuple[Floats, Floats]:
    """Newcombe's limits of the differences of K pairs of independent shares, second - first; trials are at least 1.

    They join Wilson's limits of each share (Newcombe 1998, method 10), and are within [-1, 1]. In paired audits the
    shares of a node are not independent: they are larger or smaller together, so that limits are too wide, if anything.
    """
    share_1, low_1, high_1 = _wilson(first_hits, first_trials)
    share_2, low_2, high_2 = _wilson(second_hits, second_trials)
    change = share_2 - share_1
    return change - np.hypot(share_2 - low_2, high_1 - share_1), change + np.hypot(high_2 - share_2, share_1 - low_1)


def _wilson(hits: Ints, trials: Ints) -> tuple[Floats, Floats, Floats]:
    """The share and Wilson's limits."""
    z = float(scipy.special.ndtri((1 + sides.LEVEL) / 2))
    share = hits / trials
    middle, weight = (hits + z**2 / 2) / (trials + z**2), z / (trials + z**2)
    half = weight * np.sqrt(trials * share * (1 - share) + z**2 / 4)
    # The ends are 0 and 1 exactly where all trials agree, but for rounding.
    return share, np.where(hits == 0, 0.0, middle - half), np.where(hits == trials, 1.0, middle + half)


# What a comparison says in plain words: does it help, and what does it cost?


def verdict(first: ComparedAudit, other: ComparedAudit, differences: Sequence[ModelDifference]) -> str:
    """One or a few sentences on one audit against the first."""
    changes = {each.quantity: each.change for each in differences}
    unfound = [audit.label for audit in (first, other) if audit.is_leakage_found is False]
    if len(unfound) == 2:
        sentences = [f"No leakage was found in {first.label} or in {other.label}{_cost(changes)}."]
    else:
        sentences = [_certified(first, other), f"{_exposure(first, other, changes)}{_cost(changes)}."]
        sentences += [f"No leakage was found in {label}." for label in unfound]
    sentences += [
        f"That {audit.label} leaks is not proven, and the permutation test was on the release "
        f"{audit.audit.attacks.releases[0]} alone."
        for audit in (first, other)
        if audit.is_leakage_found is None
    ]
    unsettled = [audit.label for audit in (first, other) if not audit.named_surely.is_settled]
    if unsettled:
        sentences.append(f"How many can be named in {listed(unsettled)} is open: more models would narrow it down.")
    reasons = [audit.why_no_accuracy for audit in (first, other) if audit.why_no_accuracy]
    if reasons:
        sentences.append(f"What it costs in held-out accuracy is not known: {'; '.join(reasons)}.")
    return " ".join(filter(None, sentences))


def shared_certainty(audits: Sequence[ComparedAudit]) -> float | None:
    """The certainty at which all those that have certified names have some; None if none has."""
    return min((audit.certificate.certainty for audit in audits if audit.certificate is not None), default=None)


def _certified(first: ComparedAudit, other: ComparedAudit) -> str:
    """What is certified of both; lower bounds, so that their difference says nothing."""
    certainty = shared_certainty((first, other))
    if certainty is None:
        return ""
    numbers = {audit.label: audit.certified_names(certainty) for audit in (first, other)}
    parts = [
        f"at least {answer.names(number)} in {label}" if number else f"none in {label}"
        for label, number in numbers.items()
    ]
    return (
        f"Certified names of {sides.NAMED[other.side]} per released model, {percent(certainty)} of them right: "
        f"{listed(parts)}."
    )


def _exposure(first: ComparedAudit, other: ComparedAudit, changes: Mapping[Quantity, Mean]) -> str:
    nodes, change = sides.NAMED[other.side], changes[sides.NAMED_99]
    if change.is_apart_from_0:
        word = "fewer" if change.mean < 0 else "more"
        amount, low, high = _unsigned(change)
        return (
            f"{other.label} exposes {amount} {word} {nodes} per released model than {first.label} "
            f"({low} to {high} {word}; estimated, named with 99 % certainty)"
        )
    if change.low == change.high:
        if not change.mean and not first.named_surely.correct:
            most = max(audit.named_surely.correct_high for audit in (first, other))
            said = (
                f"At most {number(most, 1)} {nodes} of one released model can be named with 99 % certainty, in "
                f"{first.label} and in {other.label}"
            )
        else:
            said = f"Each model of {other.label} exposes as many {nodes} as that of {first.label}"
    else:
        said = (
            f"{other.label} and {first.label} cannot be told apart: the difference in {nodes} exposed per released "
            f"model is {signed(change.low, 1)} to {signed(change.high, 1)} (estimated, named with 99 % certainty)"
        )
    auc = changes.get(sides.AUC)
    if auc is not None and auc.is_apart_from_0:
        amount, low, high = _unsigned(auc, digits=3)
        said += f", though the attack's AUC is {amount} {'lower' if auc.mean < 0 else 'higher'} ({low} to {high})"
    return said


def _cost(changes: Mapping[Quantity, Mean]) -> str:
    change = changes.get(sides.HELD_OUT_ACCURACY)
    if change is None:
        return ""
    if change.is_apart_from_0:
        amount, low, high = _unsigned(change, 100.0)
        points, word = "point" if amount == "1" else "points", "lower" if change.mean < 0 else "higher"
        return f", and held-out accuracy is {amount} {points} {word} ({low} to {high})"
    if change.low == change.high:
        return ", and held-out accuracy is the same"
    return (
        ", and no difference in held-out accuracy can be told "
        f"({signed(100 * change.low, 1)} to {signed(100 * change.high, 1)} points)"
    )


def _unsigned(change: Mean, factor: float = 1.0, digits: int | None = None) -> tuple[str, str, str]:
    """A difference and its limits without their sign."""
    amount, *ends = (factor * abs(value) for value in (change.mean, change.low, change.high))
    if digits is None:
        # The nearer end tells that there is a difference: it must not round to none.
        digits = 0 if min(ends) >= 10 else 1 if min(ends) >= 0.1 else 2
    amount_text, low, high = (f"{value:,.{digits}f}" for value in (amount, *sorted(ends)))
    return amount_text, low, high


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
    """One audit against the first."""

    label: str  # of the audit
    verdict: str  # in plain words
    models: tuple[ModelDifference, ...]  # of the figures that both audits know
    curve: tuple[ModelDifference, ...]  # of the numbers of nodes named, at each certainty
    more_proven: Mapping[str, str]  # by parameter, the label of the audit with the higher bound; empty if equal
    at_ceiling: tuple[str, ...]  # parameters of which both have proven the most that so many guesses can show
    nodes: NodeComparison

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
        parts = [
            f"{SYMBOLS[name]} {f'more in {label}' if label else 'as much in both'}"
            for name, label in self.more_proven.items()
            if name not in self.at_ceiling
        ]
        told = f"Proven: {', '.join(parts)}. " if parts else ""
        if self.at_ceiling:
            symbols = listed([SYMBOLS[name] for name in self.at_ceiling])
            told += f"Of {symbols} both have proven the most that so many guesses can show, which ranks neither. "
        return f"{told}These are lower bounds: that less is proven is no sign of less leakage."


@dataclass(frozen=True, eq=False)
class Comparison:
    """Audits or releases side by side, the first being what the others are compared with.

    Limits of differences are Student's t over pairs of models where both audits have the same samples, and Welch's over
    independent models elsewhere, or those with Hall's correction for skewness (`bmpaudit.proof.exposure.band`) where
    they are farther. They hold approximately. Models are the units; the nodes of one model count as one observation.
    """

    audits: tuple[ComparedAudit, ...]  # what was compared, in the order given
    differences: tuple[Difference, ...]  # of each audit but the first, to the first
    settings: tuple[DifferingSetting, ...]  # keys of the plan in which the audits differ
    # Their posteriors; None if no leakage was found in any of them, or no ε was estimated in all of them.
    estimated: EstimatedComparison | None

    @property
    def verdicts(self) -> tuple[str, ...]:
        """In plain words, for each audit but the first."""
        return tuple(each.verdict for each in self.differences)

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know before trusting the verdicts."""
        messages = []
        if len({(audit.audit.result.fingerprint, audit.release) for audit in self.audits}) < len(self.audits):
            messages.append("The same audit is here more than once: it is compared with itself.")
        first, *others = self.audits
        for other in others:
            counted = [setting.key for setting in sides.differing_settings((first, other)) if not setting.is_beside]
            if first.audit is not other.audit and first.release != other.release:
                counted.append("the release")
            if len(counted) > 1:
                messages.append(
                    f"{other.label} differs from {first.label} in {len(counted)} settings, so the difference cannot be "
                    f"put down to one of them: {', '.join(counted)}."
                )
            if len(first.models.index) != len(other.models.index):
                messages.append(
                    f"{first.label} has {count(len(first.models.index), 'shadow model')}, {other.label} "
                    f"{len(other.models.index):,}: an attack that learns from more models names more nodes."
                )
        unread = "its shadow models cannot be read, so neither its accuracy nor its samples are known"
        messages += [f"{each.label}: {unread}: {each.runs}" for each in self.audits if isinstance(each.runs, str)]
        apart = [(each.label, each.nodes.not_comparable) for each in self.differences]
        messages += [f"{label}: {reason}." for label, reason in apart if reason]
        if self.estimated is None and any(audit.is_leakage_found for audit in self.audits):
            messages.append("No ε of this side was estimated in all of the audits, so no estimates are compared.")
        return tuple(messages)

    def to_dict(self, top: int = 20) -> dict[str, Any]:
        """Everything but curves and densities as plain values (docs/compare.md); of the nodes those changed most."""
        first = self.audits[0].label
        content = plain(
            {
                "format": FORMAT,
                "bmpaudit": version("bmpaudit"),
                "verdicts": self.verdicts,
                "cautions": self.cautions,
                "side": self.audits[0].side,
                "level": sides.LEVEL,
                "audits": [audit_row(audit) for audit in self.audits],
                "differences": [
                    {
                        "audit": each.label,
                        "to": first,
                        "basis": each.basis,
                        "figures": [
                            {
                                "quantity": part.quantity.name,
                                **vars(part.change),
                                "is_paired": part.is_paired,
                                "num_models": part.num_models,
                            }
                            for part in each.models
                        ],
                        "proven": each.proven,
                        "more_proven": {name: label or None for name, label in each.more_proven.items()},
                        "at_ceiling": each.at_ceiling,
                    }
                    for each in self.differences
                ],
                "nodes": [
                    {
                        "audit": nodes.label,
                        "matched_by": nodes.matched_by or None,
                        "not_comparable": nodes.not_comparable or None,
                        "sentence": nodes.sentence,
                        "num_nodes": len(nodes.table),
                        "num_more": nodes.num_more,
                        "num_less": nodes.num_less,
                        "changed_most": nodes.table.head(top).to_dict(orient="records"),
                    }
                    for nodes in (each.nodes for each in self.differences)
                ],
                "estimated": None if self.estimated is None else encode(self.estimated),
                "settings": [vars(setting) for setting in self.settings],
                "is_not": IS_NOT,
            }
        )
        return dict(content)

    def node_table(self) -> pd.DataFrame:
        """The changes of all nodes that are in both, one audit after the other, those that changed most first."""
        import pandas as pd

        return pd.concat([each.nodes.table.assign(audit=each.label) for each in self.differences], ignore_index=True)

    def __str__(self) -> str:
        lines = [*self.verdicts]
        for each in self.differences:
            lines.append(f"  {each.label} − {self.audits[0].label}, {each.basis}")
            for difference in each.models:
                change, limits = sides.show_change(difference.quantity, difference.change)
                lines.append(f"    {difference.quantity.label:<30} {change} ({limits})")
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
    first, *others = compared = sides.compared_audits(audits, side or "right", variant)
    chosen = definition or shared_definition(compared, side)
    estimated = None if chosen is None else compare_estimates(compared, chosen, side)
    return Comparison(
        audits=compared,
        differences=tuple(_difference(first, other) for other in others),
        settings=sides.differing_settings(compared),
        estimated=estimated if any(audit.is_leakage_found for audit in compared) else None,
    )


def _difference(first: ComparedAudit, other: ComparedAudit) -> Difference:
    pairs = sides.same_samples(first, other)
    models = _limited(first, other, sides.model_differences(first.models, other.models, pairs))
    named = [sides.named_with(row.precision) for row in first.named]
    at_ceiling = tuple(name for name in PARAMETERS if all(each.result.is_at_ceiling(name) for each in (first, other)))
    more_proven: dict[str, str] = {}
    for name in PARAMETERS:
        bounds = (audit.result.shown(name) for audit in (first, other))
        one, two = (-math.inf if bound is None else bound for bound in bounds)
        more_proven[name] = "" if one == two or name in at_ceiling else first.label if one > two else other.label
    return Difference(
        label=other.label,
        verdict=verdict(first, other, models),
        models=models,
        curve=_limited(first, other, sides.model_differences(first.models, other.models, pairs, named)),
        more_proven=more_proven,
        at_ceiling=at_ceiling,
        nodes=compare_nodes(first, other),
    )


def _limited(
    first: ComparedAudit, other: ComparedAudit, differences: Sequence[ModelDifference]
) -> tuple[ModelDifference, ...]:
    """Differences in nodes named, no further from their mean than the limits of both audits allow.

    Those know how many can be named at most, which a calibration that hardly names anyone does not. They are joined as
    independent ones (Zou and Donner 2008).
    """
    limited = []
    for each in differences:
        one, two, change = first.mean(each.quantity), other.mean(each.quantity), each.change
        if one is not None and two is not None and each.quantity.name.startswith("named_"):
            low = change.mean - math.hypot(two.mean - two.low, one.high - one.mean)
            high = change.mean + math.hypot(two.high - two.mean, one.mean - one.low)
            each = replace(each, change=Mean(change.mean, max(change.low, low), min(change.high, high)))
        limited.append(each)
    return tuple(limited)


def audit_row(audit: ComparedAudit) -> dict[str, Any]:
    """What stands side by side of one audit, by name."""
    priors, exposure, test = audit.audit.result.priors, audit.result.exposure, audit.test
    certificate = audit.certificate
    means = {quantity.name: audit.mean(quantity) for quantity in sides.QUANTITIES}
    return {
        "label": audit.label,
        "folder": audit.path,
        "title": audit.audit.title,
        "fingerprint": audit.audit.result.fingerprint,
        "graph": audit.graph_hash,
        "release": audit.release,
        "access": audit.result.access,
        "named_99_from": {access: vars(mean) for access, mean in audit.named_from(HEADLINE_CERTAINTY).items()},
        "is_leakage_found": audit.is_leakage_found,
        "level": audit.level,
        "p_value": None if test is None else test.p_value,
        "num_leaking": None if test is None else test.num_leaking,
        "certified": certificate and {"certainty": certificate.certainty, "names": certificate.names},
        "is_exposure_settled": audit.named_surely.is_settled,
        "num_models": len(audit.models.index),
        "num_nameable": exposure.total_members if audit.side == "right" else exposure.total_non_members,
        "figures": {name: None if mean is None else vars(mean) for name, mean in means.items()},
        "why_no_accuracy": audit.why_no_accuracy or None,
        "proven": {name: audit.result.shown(name) for name in PARAMETERS},
        "at_ceiling": [name for name in PARAMETERS if audit.result.is_at_ceiling(name)],
        "proof_level": audit.audit.plan.proof_level,
        "floor": {
            "epsilon_right": priors.floor_right,
            "epsilon_left": priors.floor_left,
            "is_exact": priors.level is None,
        },
    }


# What people see of a comparison, in the terminal and on its page: heads and rows of tables

Cells = tuple[list[str], list[list[str]]]
LONGEST_NAME = 80


def side_by_side(result: Comparison) -> Cells:
    """A column for each audit."""
    audits = result.audits
    tests = [MISSING if audit.test is None else f"{audit.test.num_leaking:,}" for audit in audits]
    rows = [
        ["shadow models", *(f"{len(audit.models.index):,}" for audit in audits)],
        ["leakage", *("not tested" if audit.level is None else LEVELS[audit.level] for audit in audits)],
        ["nodes proven to leak", *tests],
    ]
    for certainty in sorted({shared_certainty(audits) or HEADLINE_CERTAINTY, HEADLINE_CERTAINTY}):
        certified = (audit.certified_names(certainty) for audit in audits)
        cells = (f"≥ {answer.names(each)}" if each else MISSING for each in certified)
        rows.append([f"certified names, {percent(certainty)} right", *cells])
    rows.append(["access", *(audit.result.access for audit in audits)])
    rows += [[each.label, *(sides.show_mean(each, audit.mean(each)) for audit in audits)] for each in sides.QUANTITIES]
    by_access = [audit.named_from(HEADLINE_CERTAINTY) for audit in audits]
    for access in ACCESSES:
        if any(access in list(each)[:-1] for each in by_access):
            cells = (sides.show_mean(sides.NAMED_99, each.get(access)) for each in by_access)
            rows.append([f"{sides.NAMED_99.label}, from {access}", *cells])
    for parameter in PARAMETERS:
        marks = [CEILING if audit.result.is_at_ceiling(parameter) else "" for audit in audits]
        bounds = zip((audit.result.shown(parameter) for audit in audits), marks, strict=True)
        cells = ("nothing" if bound is None else f"≥ {number(bound)}{mark}" for bound, mark in bounds)
        rows.append([f"proven {SYMBOLS[parameter]}", *cells])
    for name, end in (("epsilon_right", "floor_right"), ("epsilon_left", "floor_left")):
        priors = [audit.audit.result.priors for audit in audits]
        cells = (f"{'' if each.level is None else '≥ '}{number(getattr(each, end))}" for each in priors)
        rows.append([f"floor of {SYMBOLS[name]}", *cells])
    return [f"per released model ({sides.NAMED[audits[0].side]})", *(audit.label for audit in audits)], rows


def changed_figures(result: Comparison, difference: Difference) -> Cells:
    """The figures of one audit against those of the first."""
    head = [f"{difference.label} − {result.audits[0].label}", "difference", f"{100 * sides.LEVEL:.0f} % interval"]
    return head, [[each.quantity.label, *sides.show_change(each.quantity, each.change)] for each in difference.models]


def changed_nodes(result: Comparison, difference: Difference, top: int, *, with_counts: bool = False) -> Cells:
    """The nodes that changed most, if asked for with the numbers of models."""
    rows = []
    for row in difference.nodes.table.head(top).to_dict(orient="records"):
        names = [str(row[name]) for name in ("name", "class")]
        counts = [f" ({row[f'{each}_named']:,} of {row[f'{each}_models']:,})" for each in ("first", "second")]
        exposures = [percent(row[f"{each}_exposure"]) for each in ("first", "second")]
        change, low, high = (signed(100 * row[f"change{end}"], 0) for end in ("", "_low", "_high"))
        rows.append(
            [
                *(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in names),
                *(f"{share}{text if with_counts else ''}" for share, text in zip(exposures, counts, strict=True)),
                *(change, f"{low} to {high}"),
            ]
        )
    exposure = f"exposure, {result.audits[0].label}"
    return ["node", "class", exposure, difference.label, "change [points]", f"{100 * sides.LEVEL:.0f} % interval"], rows


def estimated_epsilons(estimated: EstimatedComparison, *, with_counts: bool = False) -> Cells:
    """The posterior of each audit, if asked for with the number of nodes."""
    more = ["", *(probability(each.more_prob) for each in estimated.differences)]
    rows = []
    for each, larger in zip(estimated.audits, more, strict=True):
        cells = [each.audit, *map(number, (each.p5, each.p50, each.p95, each.floor))]
        rows.append([*cells, *([f"{each.num_nodes:,}"] if with_counts else []), percent(each.prior_share), larger])
    head = [f"{estimated.symbol} ({estimated.definition})", "5 %", "50 %", "95 %", "floor"]
    return [*head, *(["nodes"] if with_counts else []), "prior's share", "larger than in the first"], rows


def settings_that_differ(result: Comparison) -> Cells:
    """The keys in which plans differ; those that are incidental are marked."""
    return ["setting", *(audit.label for audit in result.audits)], [
        [f"{each.key}{' (not counted)' if each.is_beside else ''}", *map(sides.show_value, each.values)]
        for each in result.settings
    ]
