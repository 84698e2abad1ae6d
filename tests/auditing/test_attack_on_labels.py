"""Released labels are attacked by what is made for them, whatever the plan's attack."""

from __future__ import annotations

from small_audit import QUIET, leaky_graph, tiny_plan

from bmpaudit.attack import Gaussian, RightOrWrong
from bmpaudit.auditing.context import attack_on, variants
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan


class OwnAttack(Gaussian):
    """An attack of the user's own."""


def test_built_in_attacks_on_scores_give_way() -> None:
    plan = AuditPlan(releases=("clean", "label-only"), attack="gaussian", rules="weak")
    assert attack_on(plan, "clean") == plan.attack
    assert attack_on(plan, "label-only") == RightOrWrong()
    for chosen in (OwnAttack(), RightOrWrong(min_models=5)):
        assert attack_on(plan.replace(attack=chosen), "label-only") is chosen
    names = [each.name for each in variants(plan)]
    assert names == ["full_clean_weak", "full+none_label-only_weak", "none_clean_weak"]


def test_an_audit_of_both() -> None:
    plan = tiny_plan(releases=("clean", "label-only"))
    both = audit(leaky_graph(), plan, runtime=QUIET)
    alone = audit(leaky_graph(), plan.replace(releases="label-only", attack="right-or-wrong"), runtime=QUIET)
    releases = both.summary["releases"]
    assert [releases[name]["attack"] for name in releases] == ["gaussian", "right-or-wrong"]
    assert releases["label-only"] == alone.summary["releases"]["label-only"]
