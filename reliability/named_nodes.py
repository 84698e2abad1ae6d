"""Whether nodes that are called members with some certainty are members that often, on real models."""

from __future__ import annotations

from section import Section, table

from bmpaudit.auditing.context import Runtime
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan

NUM_MODELS = 400
LARGEST_ERROR = 0.005  # mean difference between stated and observed probability
CERTAINTIES = (0.5, 0.9, 0.99)
SETTINGS = (("cora", "uniform"), ("cora", "snowball"), ("citeseer", "uniform"), ("citeseer", "snowball"))


def run(scale: float, seed: int) -> Section:
    """Audits of real graphs; every model is scored with what was learnt from others."""
    rows, passed = [], True
    for graph, sampler in SETTINGS:
        number = max(int(NUM_MODELS * scale), 40)
        plan = AuditPlan().replace(sampler=sampler, shadows=number, definitions="bmp-r", seed=seed)
        found = audit(graph, plan, runtime=Runtime(), pictures="none")
        for release, result in found.summary["releases"].items():
            exposure = result["exposure"]
            error = exposure["reliability"]["expected_calibration_error"]
            passed &= error <= LARGEST_ERROR
            shares = {each["precision"]: each["share_correct"] for each in exposure["members"]}
            right = [_percent(shares.get(certainty)) for certainty in CERTAINTIES]
            rows.append([f"{graph}, {sampler}", release, number, *right, f"{error:.4f}"])
    head = ["graph", "release", "models", *(f"named at {each:.0%}: right" for each in CERTAINTIES), "calibration error"]
    text = f"""GCNs on real graphs, each scored with what was learnt from the others: how many of the nodes that are
named as members with at least some certainty are members. The calibration error is the mean difference between stated
and observed probability.

{table(head, rows)}

A calibration error above {LARGEST_ERROR:g} would be too much."""
    return Section(text, passed)


def _percent(share: float | None) -> str:
    return "none named" if share is None else f"{100 * share:.1f} %"
