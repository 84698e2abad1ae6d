"""The audit: the only place that knows the whole line from graph to report."""

from bmpaudit.auditing.audit import Audit, audit

__all__ = ["Audit", "audit"]
