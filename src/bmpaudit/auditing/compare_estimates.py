"""Estimated ε side by side: the posteriors of several audits, and their differences to the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bmpaudit import registry
from bmpaudit.auditing.compared import ComparedAudit
from bmpaudit.auditing.variant import Variant
from bmpaudit.errors import InputError
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.difference import DifferenceMarginal
from bmpaudit.registry import DEFINITION
from bmpaudit.report.words import probability, signed

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
    # From the summary: a definition of somebody's own cannot be asked without its code.
    floor = audit.audit.summary["variants"][audit.variant.name]["posteriors"][name]["floors"][parameter]
    return EstimatedEpsilon(
        audit.label, audit.variant, row[name], parameter, float(floor), bool(audit.is_leakage_found)
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
