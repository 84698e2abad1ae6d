"""What an audit does: everything that changes its answer, as one value and as a file."""

from bmpaudit.plan.audit_plan import AttackSettings, AuditPlan, Variant
from bmpaudit.plan.plan_file import PlanFile, format_plan, plan_template, read_plan
from bmpaudit.plan.runtime import Runtime

__all__ = ["AttackSettings", "AuditPlan", "PlanFile", "Runtime", "Variant", "format_plan", "plan_template", "read_plan"]
