"""What an audit is about."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.graph import Graph


@dataclass(frozen=True, eq=False)
class Subject:
    """What is audited, and how.

    Attributes:
        graph: The graph.
        source: Where it came from: the name of a data set, a path, or module:function; empty for an object.
        plan: The plan.
    """

    graph: Graph
    source: str
    plan: AuditPlan
