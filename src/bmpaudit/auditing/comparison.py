"""Audits side by side: does this sampler, model or defence leak less?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit.auditing.compare_nodes import NodeComparison, compare_nodes
from bmpaudit.auditing.compared import DOMINATED, ComparedAudit, DifferingSetting, compared_audits, differing_settings
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.estimation.difference import DifferenceMarginal
from bmpaudit.plain import plain
from bmpaudit.report.words import probability, signed

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
PERCENTILES = (0.05, 0.5, 0.95)
SURE = 0.95

IS_NOT = (
    "The posteriors are taken to be independent. Audits with the same seed and sampler share their samples; the "
    "comparison makes no use of that.",
    "A smaller ε says that this attack found less. A defence that only misleads the attack looks the same as one that "
    "protects; look at other attacks (--variant) too.",
    "Beyond the data the upper tail of a posterior is the prior's, and so are both tails of a difference.",
    "Another sampler changes the floor too: ε includes what the sampling alone gives away.",
)


@dataclass(frozen=True, eq=False)
class Difference:
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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Audits side by side, the first being what the others are compared with.

    Formal guarantee: if the posteriors are independent, `more_prob` and the percentiles of the differences have no
    error but that of the two densities (quadrature, no draws); of Markov chains they are the draws'.

    Attributes:
        audits: What was compared, in the order given.
        definition: Of privacy.
        parameter: Which ε of it.
        differences: Of each audit but the first, to the first.
        nodes: The same node by node, for each audit but the first.
        settings: Keys of the plan in which the audits differ.
    """

    audits: tuple[ComparedAudit, ...]
    definition: str
    parameter: str
    differences: tuple[Difference, ...]
    nodes: tuple[NodeComparison, ...]
    settings: tuple[DifferingSetting, ...]

    @property
    def symbol(self) -> str:
        """Symbol of the compared ε."""
        parameters = self.audits[0].posterior.definition.parameters
        return next(parameter.symbol for parameter in parameters if parameter.name == self.parameter)

    @cached_property
    def verdicts(self) -> tuple[str, ...]:
        """One sentence for each audit but the first."""
        first = self.audits[0].label
        sentences = []
        for each in self.differences:
            if round(max(each.more_prob, 1 - each.more_prob), 2) < SURE:  # as it is shown
                head = f"{each.label} and {first} cannot be told apart"
            else:
                head = f"{each.label} leaks {'more' if each.more_prob > 0.5 else 'less'} than {first}"
            sentences.append(
                f"{head}: the probability that {each.label} leaks more is {probability(each.more_prob)}. "
                f"The difference in {self.symbol} is {signed(each.p50)} in the median, 90 % interval "
                f"{signed(each.p5)} to {signed(each.p95)}."
            )
        return tuple(sentences)

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know before trusting the verdict."""
        return (*self._prior_cautions(), *self._setting_cautions(), *self._audit_cautions())

    def _prior_cautions(self) -> list[str]:
        dominated = [audit.label for audit in self.audits if audit.is_prior_dominated]
        if not dominated:
            return []
        who = f"The posterior of {dominated[0]} is"
        if len(dominated) > 1:
            both = "Both" if len(self.audits) == 2 else "All" if len(dominated) == len(self.audits) else len(dominated)
            names = "" if len(dominated) == len(self.audits) else f" ({', '.join(dominated)})"
            who = f"{both} posteriors{names} are"
        said = "how far apart they are" if len(dominated) > 1 else "how large it is at most"
        return [
            f"{who} prior-dominated (above the median, more than {100 * DOMINATED:.0f} % is the prior's shape): the "
            f"data say how large {self.symbol} is at least; {said}, and in part the probability, is the prior's word."
        ]

    def _setting_cautions(self) -> list[str]:
        messages = []
        prints = [audit.fingerprint for audit in self.audits]
        if len(set(prints)) < len(prints):
            messages.append("The same audit is here more than once: it is compared with itself.")
        first = self.audits[0]
        for other in self.audits[1:]:
            counted = [setting.key for setting in differing_settings((first, other)) if not setting.is_beside]
            if len(counted) > 1:
                messages.append(
                    f"{other.label} differs from {first.label} in {len(counted)} settings, so the difference cannot be "
                    f"put down to one of them: {', '.join(counted)}."
                )
        variants = dict.fromkeys(audit.variant for audit in self.audits)
        if len(variants) > 1:
            messages.append(f"Different attacks are compared: {', '.join(variants)}; --variant chooses one for all.")
        return messages

    def _audit_cautions(self) -> list[str]:
        messages = [
            f"{audit.label}: the permutation test found no leakage; a large ε then comes from few trials or from "
            "decisions that never vary."
            for audit in self.audits
            if not audit.is_leakage_found
        ]
        messages += [
            f"{audit.label}: {audit.posterior.status.removeprefix('exact; ')}."
            for audit in self.audits
            if audit.posterior.status not in ("exact", "converged")
        ]
        messages += [f"{each.label}: {each.not_comparable}." for each in self.nodes if each.not_comparable]
        return messages

    def to_dict(self, top: int = 20) -> dict[str, Any]:
        """Everything but the densities as plain values (docs/compare.md); of the nodes those that changed most."""
        return plain(
            {
                "format": FORMAT,
                "bmpaudit": version("bmpaudit"),
                "definition": self.definition,
                "parameter": self.parameter,
                "symbol": self.symbol,
                "audits": [_audit_row(audit) for audit in self.audits],
                "differences": [
                    {
                        "audit": each.label,
                        "to": self.audits[0].label,
                        "p5": each.p5,
                        "p50": each.p50,
                        "p95": each.p95,
                        "mean": each.marginal.mean(),
                        "more_prob": each.more_prob,
                    }
                    for each in self.differences
                ],
                "both_prior_dominated": all(audit.is_prior_dominated for audit in self.audits),
                "settings": [
                    {"key": setting.key, "values": setting.values, "is_beside": setting.is_beside}
                    for setting in self.settings
                ],
                "nodes": [each.to_dict(top) for each in self.nodes],
                "verdicts": self.verdicts,
                "cautions": self.cautions,
                "is_not": IS_NOT,
            }
        )

    def node_table(self) -> pd.DataFrame:
        """The changes of all nodes that are in both, one audit after the other, those that changed most first."""
        import pandas as pd

        return pd.concat([each.table.assign(audit=each.label) for each in self.nodes], ignore_index=True)

    def __str__(self) -> str:
        wide = max(len(audit.label) for audit in self.audits)
        lines = [f"{self.definition}, {self.symbol}", f"  {'':<{wide}} {'5 %':>8} {'50 %':>8} {'95 %':>8}   leaks more"]
        probabilities = ["", *(probability(each.more_prob) for each in self.differences)]
        for audit, more in zip(self.audits, probabilities, strict=True):
            values = audit.posterior.quantile(PERCENTILES, self.parameter)
            cells = " ".join(f"{value:8.3f}" for value in values)
            lines.append(f"  {audit.label:<{wide}} {cells}   {more}".rstrip())
        for each in self.differences:
            cells = " ".join(f"{value:+8.3f}" for value in (each.p5, each.p50, each.p95))
            lines += [f"  {each.label} - {self.audits[0].label}", f"  {'':<{wide}} {cells}"]
        return "\n".join([*lines, *(f"  ! {caution}" for caution in self.cautions)])


def compare(
    audits: Sequence[Audit | str | Path],
    definition: str = "bmp-r",
    *,
    side: str | None = None,
    variant: str | None = None,
) -> Comparison:
    """Compares finished audits with the first of them.

    Args:
        audits: Audits or their folders, at least two.
        definition: Which posterior to compare.
        side: `right` or `left`: which ε of `bmp`, and which e of the nodes; the definition's own if not given.
        variant: Which attack, such as `full_clean_strong`; each audit's main one if not given.

    Raises:
        InputError: if there are fewer than two, or one has no such posterior.
        DataError: if one is not a finished audit.
    """
    first, *others = compared = compared_audits(audits, definition, side, variant)
    parameter = first.parameter
    chosen = side or ("left" if parameter == "epsilon_left" else "right")
    differences = []
    for other in others:
        marginal = DifferenceMarginal(first.posterior.marginal(parameter), other.posterior.marginal(parameter))
        p5, p50, p95 = (float(value) for value in marginal.quantile(PERCENTILES))
        differences.append(Difference(other.label, marginal, p5, p50, p95, marginal.probability_above()))
    above_floor = not first.posterior.definition.uses_prior
    return Comparison(
        audits=compared,
        definition=definition,
        parameter=parameter,
        differences=tuple(differences),
        nodes=tuple(compare_nodes(first, other, chosen, above_floor=above_floor) for other in others),
        settings=differing_settings(compared),
    )


def _audit_row(audit: ComparedAudit) -> dict[str, Any]:
    p5, p50, p95 = audit.posterior.quantile(PERCENTILES, audit.parameter)
    return {
        "label": audit.label,
        "folder": audit.path,
        "title": audit.title,
        "fingerprint": audit.fingerprint,
        "graph": audit.graph_hash,
        "variant": audit.variant,
        "p5": p5,
        "p50": p50,
        "p95": p95,
        "mean": audit.posterior.mean(audit.parameter),
        "floor": audit.floor,
        "proven": audit.proven,
        "num_nodes": audit.posterior.num_nodes,
        "prior_share": audit.prior_share,
        "is_prior_dominated": audit.is_prior_dominated,
        "is_leakage_found": audit.is_leakage_found,
        "status": audit.posterior.status,
    }
