"""An audit: its stages, its result, and the folder it lives in."""

from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.result import AuditResult, summary_schema
from bmpaudit.auditing.workspace import Workspace

__all__ = ["Audit", "AuditResult", "Runtime", "Subject", "Workspace", "summary_schema"]
