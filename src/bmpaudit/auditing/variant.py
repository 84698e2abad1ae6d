"""The ways in which a plan attacks its shadow models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bmpaudit import registry
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.registry import ATTACK, ENTRIES, QUERY, RELEASE
from bmpaudit.shadow.releases.base import gives_labels_only

LABEL_ATTACK = "right-or-wrong"


@dataclass(frozen=True)
class Variant:
    """One way of attacking: what is given out, what the adversary asks, and how they decide.

    Attributes:
        release: Label of the release.
        queries: Labels of the queries whose answers are used together.
        rule: Label of the decision rule.
    """

    release: str
    queries: tuple[str, ...]
    rule: str

    @property
    def name(self) -> str:
        """`full_clean_strong`, and so on."""
        return f"{'+'.join(self.queries)}_{self.release}_{self.rule}"

    @property
    def short_label(self) -> str:
        """In three words, for legends."""
        return f"{'+'.join(self.queries)}, {self.release}, {self.rule}"

    @property
    def label(self) -> str:
        """In words."""
        edges = {"full": "full edges", "none": "no edges"}
        return f"{' and '.join(edges.get(q, q) for q in self.queries)}, {self.release} output, {self.rule} decision"


def queries_of(plan: AuditPlan) -> tuple[str, ...]:
    """Labels of the plan's queries."""
    return tuple(registry.label(QUERY, query) for query in plan.queries)


def attack_on(plan: AuditPlan, release: str) -> Any:
    """The attack on a release: the plan's, or `right-or-wrong` where labels alone are given out.

    The other built-in attacks fit distributions to scores, and would miss most of what two values give away. An attack
    of the user's own is taken as it is.
    """
    is_of_scores = registry.name_of(ATTACK, plan.attack) in ENTRIES[ATTACK].keys() - {LABEL_ATTACK}
    part = next(each for each in plan.releases if registry.label(RELEASE, each) == release)
    return registry.build(ATTACK, LABEL_ATTACK) if is_of_scores and gives_labels_only(part) else plan.attack


def variants(plan: AuditPlan) -> tuple[Variant, ...]:
    """All ways of attacking, the first query, release and rule first."""
    queries = queries_of(plan)
    groups = {
        release: (queries,) if attack_on(plan, release).fuses_queries else tuple((query,) for query in queries)
        for release in (registry.label(RELEASE, part) for part in plan.releases)
    }
    return tuple(
        Variant(release, of_release[place], rule)
        for place in range(len(queries))
        for release, of_release in groups.items()
        if place < len(of_release)
        for rule in plan.rules_by_name
    )
