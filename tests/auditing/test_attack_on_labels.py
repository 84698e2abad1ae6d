"""Released labels are attacked by what is made for them, whatever the plan's attack."""

from __future__ import annotations

from typing import Any

import pytest
from small_audit import QUIET, leaky_graph, tiny_plan

from bmpaudit.attack import Gaussian, RightOrWrong
from bmpaudit.auditing.context import attack_on, variants
from bmpaudit.auditing.stages import bound_level
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


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """All numbers and texts in plain values, by their places."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: leaf for name, part in parts for key, leaf in flat(part, f"{place}.{name}").items()}
    return {place: value}


def test_an_audit_of_both() -> None:
    plan = tiny_plan(releases=("clean", "label-only"))
    both = audit(leaky_graph(), plan, runtime=QUIET)
    # What is proven of labels, of scores and of their labels holds together: of labels alone with a quarter of the
    # failures, but for the exposure.
    own = plan.replace(releases="label-only", attack="right-or-wrong")
    alone, surer = (audit(leaky_graph(), own.replace(proof_level=level), runtime=QUIET) for level in (0.95, 0.9875))
    of_labels = ("label-only", "labels")
    assert bound_level(both.plan, *of_labels) == pytest.approx(bound_level(surer.plan, *of_labels), abs=1e-12)
    releases, wanted = both.summary["releases"], alone.summary["releases"]["label-only"]
    wanted |= {name: surer.summary["releases"]["label-only"][name] for name in ("proof", "certified", "power")}
    assert [releases[name]["attack"] for name in releases] == ["gaussian", "right-or-wrong"]
    found, wanted = flat(releases["label-only"]), flat(wanted)
    assert found.keys() == wanted.keys()
    for place, value in wanted.items():
        is_number = isinstance(value, float)
        assert found[place] == (pytest.approx(value, rel=1e-9) if is_number else value), place  # levels are rounded
