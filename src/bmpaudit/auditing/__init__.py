"""The audit: the pipeline from graph to report, and the folder it lives in."""

from bmpaudit.auditing.checking import check
from bmpaudit.auditing.comparison import Comparison, compare
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.gate import Gate
from bmpaudit.auditing.gate_result import GateResult
from bmpaudit.auditing.infer_model import infer
from bmpaudit.auditing.inference import Inference
from bmpaudit.auditing.pipeline import Pipeline
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.run import audit
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.summary_schema import summary_schema
from bmpaudit.auditing.sweep import Sweep, sweep
from bmpaudit.auditing.workspace import Workspace

__all__ = [
    "Audit",
    "AuditPlan",
    "Comparison",
    "Gate",
    "GateResult",
    "Inference",
    "Pipeline",
    "Runtime",
    "Subject",
    "Sweep",
    "Workspace",
    "audit",
    "check",
    "compare",
    "infer",
    "summary_schema",
    "sweep",
]
