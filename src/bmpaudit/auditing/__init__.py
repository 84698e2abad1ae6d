"""The audit: the pipeline from graph to report, and the folder it lives in."""

from bmpaudit.auditing.answer import summary_schema
from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.pipeline import Pipeline, audit
from bmpaudit.auditing.workspace import Workspace

__all__ = ["Audit", "Pipeline", "Runtime", "Subject", "Workspace", "audit", "summary_schema"]
