"""The audit: the pipeline from graph to report, and the folder it lives in."""

from bmpaudit.auditing.comparison import Comparison, compare
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.pipeline import Pipeline
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.run import audit
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.workspace import Workspace

__all__ = ["Audit", "AuditPlan", "Comparison", "Pipeline", "Runtime", "Subject", "Workspace", "audit", "compare"]
