"""Whether a finished audit passes a gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.gate import Gate
from bmpaudit.auditing.gate_decisions import decide
from bmpaudit.auditing.gate_result import GateResult
from bmpaudit.auditing.stamps import plan_hash
from bmpaudit.auditing.stored import read_summary, stored_plan
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.errors import DataError, InputError


def check(audit: Audit | str | Path, gate: Gate | None = None, **thresholds: Any) -> GateResult:
    """Holds a finished audit against thresholds.

    Everything is decided from the summary: no code that the plan names is run, and no shadow model is read.

    Args:
        audit: The audit, or its folder.
        gate: The thresholds; those of the plan's section `[gate]` if not given.
        **thresholds: Fields of the gate, such as `max_proven_right=3` or `max_exposure="10@0.99"`, which override it.

    Raises:
        InputError: if there is no threshold, or one about something that the audit does not have.
        DataError: if the folder is not a finished audit, or is damaged.

    >>> from bmpaudit import audit
    >>> finished = audit("demo", shadows=16, definitions="bmp-r")
    >>> print(check(finished, max_proven_right=3))
    demo, Uniform 25 %, GCN; clean release; 16 shadow models
    undecided  max_proven_right 3  ...
    gate: undecided
    """
    if isinstance(audit, Audit):
        chosen = audit.plan.gate if gate is None else gate
        return decide(audit.summary, chosen.replace(**thresholds))
    workspace = Workspace(audit)
    with workspace.unchanged():
        plan = stored_plan(workspace).plan
        workspace.stamp("estimate", plan_hash(plan))
        summary = read_summary(workspace)
    chosen = plan.gate if gate is None else gate
    try:
        return decide(summary, chosen.replace(**thresholds))
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, StopIteration) as damage:
        raise DataError(f"{workspace.path / 'summary.json'}: damaged: {damage!r}") from None
