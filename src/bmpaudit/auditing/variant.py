"""The ways in which a plan attacks its shadow models."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit import registry
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.registry import QUERY, RELEASE


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


def variants(plan: AuditPlan) -> tuple[Variant, ...]:
    """All ways of attacking, the first query, release and rule first."""
    queries = queries_of(plan)
    groups = (queries,) if plan.attack.fuses_queries else tuple((query,) for query in queries)
    releases = tuple(registry.label(RELEASE, release) for release in plan.releases)
    return tuple(
        Variant(release, group, rule) for group in groups for release in releases for rule in plan.rules_by_name
    )
