"""Gates: what is decided from a summary, and what a gate may say."""

from __future__ import annotations

import copy
import json
import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from payload_module import MODULE, PARTS, Payload
from small_audit import pipeline, run_audit, small_plan, summary_of, times, tiny_plan

from bmpaudit import gate as gate_module
from bmpaudit.auditing.context import fingerprint, plan_hash
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.result import read_result
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.gate import GateResult, check
from bmpaudit.plan import AuditPlan, ExposureLimit, Gate, format_plan, plan_template, read_plan
from bmpaudit.proof import AnytimeBound, default_num_fitting, epsilon_bound, models_to_prove_more, mp_bound, provable
from bmpaudit.proof.guesses import PriorOdds
from bmpaudit.proof.prove import FIRST_FIT
from bmpaudit.util.errors import DataError, InputError

PLAN = small_plan(permutations=19, definitions=("bmp", "mp"), releases=("clean", "noisy"), shadows=40)
PARAMETERS = {"right": "epsilon_right", "left": "epsilon_left", "mp": "mp"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate") / "audit"
    run_audit(path, PLAN)
    return path


@pytest.fixture
def summary(folder: Path) -> dict[str, Any]:
    """A summary to change: nothing proven, 667 models challenged, leakage found, no floor in the way."""
    changed = copy.deepcopy(summary_of(folder))
    changed["is_leakage_found"] = True
    for parameter in PARAMETERS.values():
        changed["releases"]["clean"]["proof"][parameter] |= {"proven": None, "num_challenged": 667, "floor": 0.0}
    for row in changed["headline"]:
        row |= {"warnings": [], "p5": 2.0, "p50": 3.0, "p95": 4.0}
    return changed


def decide(summary: dict[str, Any], gate: Gate) -> GateResult:
    return gate_module.decide(read_result(summary), gate)


def proven(summary: dict[str, Any], side: str, **values: Any) -> None:
    summary["releases"]["clean"]["proof"][PARAMETERS[side]] |= values


def exposed(summary: dict[str, Any], curve: str, precision: float, **values: Any) -> None:
    (row,) = (row for row in summary["releases"]["clean"]["exposure"][curve] if row["precision"] == precision)
    row |= {"is_settled": True, "models_needed": 40} | values


def outcome(summary: dict[str, Any], **thresholds: Any) -> str:
    return decide(summary, Gate(**thresholds)).outcome


# Proven


@pytest.mark.parametrize("side", PARAMETERS)
def test_what_is_proven_exceeds_passes_or_cannot_be_decided(summary: dict[str, Any], side: str) -> None:
    name = f"max_proven_{side}"
    proven(summary, side, proven=3.5)
    assert outcome(summary, **{name: 3.499}) == "exceeded"
    assert outcome(summary, **{name: 3.5}) == "passed"  # exactly as much as is allowed
    ceiling = provable(667) + (abs(math.log(_members(summary))) if side == "mp" else 0)
    assert outcome(summary, **{name: ceiling - 0.1}) == "passed"
    assert outcome(summary, **{name: ceiling}) == "undecided"
    proven(summary, side, proven=None)
    assert outcome(summary, **{name: 3.0}) == "passed"


def _members(summary: dict[str, Any]) -> float:
    exposure = summary["releases"]["clean"]["exposure"]
    return float(exposure["total_members"] / exposure["total_non_members"])


def test_a_threshold_below_the_floor_cannot_be_met(summary: dict[str, Any]) -> None:
    proven(summary, "left", floor=1.0986)
    (found,) = decide(summary, Gate(max_proven_left=1)).thresholds
    assert (found.outcome, found.low) == ("exceeded", None)
    assert found.reason == "the sampling alone gives ε_L ≥ 1.099: no model trained this way stays below"
    proven(summary, "right", floor="inf")  # some node is in every sample
    assert outcome(summary, max_proven_right=50) == "exceeded"


def test_undecided_says_how_many_models_would_do(summary: dict[str, Any]) -> None:
    proven(summary, "right", num_challenged=20)
    (found,) = decide(summary, Gate(max_proven_right=3)).thresholds
    assert found.outcome == "undecided"
    needed = found.models_needed
    assert needed is not None
    challenged = needed - default_num_fitting(needed)
    all_right, fewer = (epsilon_bound(number, number, 0.95) for number in (challenged, challenged - 1))
    assert all_right is not None
    assert fewer is not None
    assert all_right > 3 >= fewer
    proven(summary, "right", num_challenged=challenged)
    assert outcome(summary, max_proven_right=3) == "passed"
    assert f"about {needed:,} shadow models would do" in found.explanation


def test_without_a_proof_it_is_undecided(summary: dict[str, Any]) -> None:
    summary["releases"]["clean"] |= {"proof": None, "not_proven": "there must be at least 8 models, got 7"}
    (found,) = decide(summary, Gate(max_proven_right=1)).thresholds
    assert (found.outcome, found.reason) == ("undecided", "there must be at least 8 models, got 7")
    assert found.models_needed == models_to_prove_more(1.0)


def test_no_number_of_models_proves_everything(summary: dict[str, Any]) -> None:
    (found,) = decide(summary, Gate(max_proven_right=99)).thresholds
    assert (found.outcome, found.models_needed) == ("undecided", None)
    assert "no number of shadow models is known to decide it" in found.explanation


def test_the_prequential_method_has_a_ceiling_of_its_own(summary: dict[str, Any]) -> None:
    summary["proof_method"] = "prequential"
    bound = AnytimeBound()
    bound.update_all(np.ones(667))
    assert bound.value is not None
    between = (bound.value + provable(667)) / 2
    assert outcome(summary, max_proven_right=between) == "undecided"
    assert outcome(summary, max_proven_right=bound.value - 0.01) == "passed"


@pytest.mark.parametrize("level", [0.05, 0.95, 0.999])
@pytest.mark.parametrize("epsilon", [-2.0, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("method", ["one-guess", "prequential"])
def test_models_to_prove_more_are_enough_and_no_fewer_are(method: Any, epsilon: float, level: float) -> None:
    def most(num_models: int) -> float:
        fitting = FIRST_FIT if method == "prequential" else default_num_fitting(num_models)
        return provable(max(num_models - fitting, 0), level, method)

    needed = models_to_prove_more(epsilon, level, method)
    assert most(needed) > epsilon
    assert needed == 8 or most(needed - 1) <= epsilon + 1e-5  # bounds are found to 1e-6


def test_best_guesses_about_mp_reach_its_ceiling() -> None:
    # Each of 100 guesses names a member whose prior is the share of members, and is right.
    prior = 0.2
    log_odds = math.log(prior / (1 - prior))
    assert mp_bound(100, np.full(100, log_odds)) == pytest.approx(provable(100) + abs(log_odds), abs=1e-5)


def test_only_priors_from_draws_cost_confidence(summary: dict[str, Any]) -> None:
    """As in the proof itself: `PriorOdds.mp_level`."""
    shift = abs(math.log(_members(summary)))
    exact, drawn = (
        PriorOdds.of(np.full(4, 0.5), 4, draws, 0.05).mp_level(summary["proof_level"]) for draws in (0, 1_000)
    )
    between = shift + (provable(667, exact) + provable(667, drawn)) / 2
    assert summary["priors"]["num_draws"] == 0
    assert outcome(summary, max_proven_mp=between) == "passed"
    assert outcome(summary, max_proven_mp=shift + provable(667, exact)) == "undecided"
    summary["priors"]["num_draws"] = 1_000
    (found,) = decide(summary, Gate(max_proven_mp=between)).thresholds
    assert (found.outcome, found.models_needed) == ("undecided", models_to_prove_more(between - shift, drawn))
    assert outcome(summary, max_proven_mp=shift + provable(667, drawn) - 1e-3) == "passed"
    assert outcome(summary, max_proven_right=provable(667) - 1e-3) == "passed"  # priors are not in it


@pytest.mark.parametrize(("level", "said"), [(0.95, "95 %"), (0.999, "99.9 %"), (0.99999, "99.999 %")])
def test_nothing_is_proven_with_certainty(summary: dict[str, Any], level: float, said: str) -> None:
    proven(summary, "right", proven=5.1, level=level)
    (found,) = decide(summary, Gate(max_proven_right=4)).thresholds
    assert found.reason == f"ε_R ≥ 5.100 is proven with {said} confidence"


# Exposure


@pytest.mark.parametrize(("name", "curve"), [("max_exposure", "members"), ("max_exposure_non_members", "non_members")])
def test_exposure_is_decided_by_its_limits(summary: dict[str, Any], name: str, curve: str) -> None:
    exposed(summary, curve, 0.99, correct=8.0, correct_low=6.0, correct_high=10.0)
    assert outcome(summary, **{name: "10@0.99"}) == "passed"
    assert outcome(summary, **{name: "5.9@0.99"}) == "exceeded"
    assert outcome(summary, **{name: "6@0.99"}) == "undecided"
    exposed(summary, curve, 0.99, is_settled=False, models_needed=56)
    (found,) = decide(summary, Gate(**{name: "10@0.99"})).thresholds
    assert (found.outcome, found.models_needed) == ("undecided", 56)
    assert outcome(summary, **{name: "5.9@0.99"}) == "exceeded"  # it is at least that much all the same


def test_models_needed_narrow_the_limits_until_they_leave_out_the_threshold(summary: dict[str, Any]) -> None:
    # Limits of ±2 with 40 models have to become ±1, which takes 4 times as many.
    exposed(summary, "members", 0.9, correct=8.0, correct_low=6.0, correct_high=10.0)
    assert decide(summary, Gate(max_exposure="9@0.9")).models_needed == 160
    assert decide(summary, Gate(max_exposure="7@0.9")).models_needed == 160
    assert decide(summary, Gate(max_exposure="8@0.9")).models_needed is None
    exposed(summary, "members", 0.9, is_settled=False, models_needed=500)
    assert decide(summary, Gate(max_exposure="9@0.9")).models_needed == 500


def test_every_precision_is_checked(summary: dict[str, Any]) -> None:
    for precision, named in ((0.9, 60.0), (0.99, 8.0)):
        exposed(summary, "members", precision, correct=named, correct_low=named, correct_high=named)
    result = decide(summary, Gate(max_exposure=["50@0.9", "10@0.99"]))
    assert [(each.label, each.outcome) for each in result.thresholds] == [
        ("max_exposure 50@0.9", "exceeded"),
        ("max_exposure 10@0.99", "passed"),
    ]


# Estimated


@pytest.mark.parametrize("side", PARAMETERS)
def test_estimates_are_decided_by_their_interval(summary: dict[str, Any], side: str) -> None:
    name = f"max_estimated_{side}"
    assert outcome(summary, **{name: 4.0}) == "passed"
    assert outcome(summary, **{name: 3.0}) == "undecided"
    assert outcome(summary, **{name: 1.9}) == "exceeded"


def test_an_estimate_in_doubt_decides_nothing_unless_it_is_low(summary: dict[str, Any]) -> None:
    for row in summary["headline"]:
        row["warnings"] = ["ε_R is driven by 12 nodes"]
    (found,) = decide(summary, Gate(max_estimated_right=1)).thresholds
    assert (found.outcome, found.models_needed) == ("undecided", None)
    assert "which decides nothing: ε_R is driven by 12 nodes" in found.reason
    assert outcome(summary, max_estimated_right=4) == "passed"


def test_an_estimate_without_leakage_decides_nothing(summary: dict[str, Any]) -> None:
    summary["is_leakage_found"] = False
    (found,) = decide(summary, Gate(max_estimated_mp=1)).thresholds
    assert found.outcome == "undecided"
    assert "no leakage was found, so the estimate means nothing" in found.reason


def test_what_is_proven_exceeds_a_lower_estimate(summary: dict[str, Any]) -> None:
    proven(summary, "right", proven=5.1)
    (found,) = decide(summary, Gate(max_estimated_right=4.5)).thresholds
    assert (found.outcome, found.reason) == ("exceeded", "ε_R ≥ 5.100 is proven with 95 % confidence")


def test_an_infinite_estimate_exceeds(summary: dict[str, Any]) -> None:
    for row in summary["headline"]:
        row |= {"p5": "inf", "p50": "inf", "p95": "inf"}
    assert outcome(summary, max_estimated_left=50) == "exceeded"


# All thresholds together


def test_exceeded_wins_over_undecided_which_wins_over_passed(summary: dict[str, Any]) -> None:
    proven(summary, "right", proven=3.5)
    passed, exceeded, undecided = {"max_estimated_mp": 9}, {"max_proven_right": 1}, {"max_proven_left": 20}
    codes = {
        "passed": decide(summary, Gate(**passed)).exit_code,
        "exceeded": decide(summary, Gate(**passed, **undecided, **exceeded)).exit_code,
        "undecided": decide(summary, Gate(**passed, **undecided)).exit_code,
    }
    assert codes == {"passed": 0, "exceeded": 1, "undecided": 3}


def test_the_release_is_the_first_or_the_one_named(summary: dict[str, Any]) -> None:
    summary["releases"]["noisy"]["proof"] = copy.deepcopy(summary["releases"]["clean"]["proof"])
    summary["releases"]["noisy"]["proof"]["epsilon_right"]["proven"] = 2.5
    assert outcome(summary, max_proven_right=2) == "passed"
    assert outcome(summary, max_proven_right=2, release="noisy") == "exceeded"


def test_plain_values_and_text_say_the_same(summary: dict[str, Any]) -> None:
    result = decide(summary, Gate(max_proven_right=3, max_estimated_left=3))
    plain = json.loads(json.dumps(result.to_plain(), allow_nan=False))
    assert (plain["outcome"], plain["exit_code"]) == (result.outcome, result.exit_code)
    lines = str(result).splitlines()
    assert lines[0].endswith("clean release; 40 shadow models")
    assert [line.split()[:2] for line in lines[1:-1]] == [
        [each["outcome"], each["name"]] for each in plain["thresholds"]
    ]
    assert lines[-1] == f"gate: {result.outcome}"


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({}, "there is no threshold to check: give one, such as --max-proven-right 3, or a [gate] in plan.toml"),
        ({"release": "noisy"}, "there is no threshold to check"),
        ({"max_proven_right": 3, "release": "labels"}, "release must be one of clean, noisy, got 'labels'"),
        (
            {"max_estimated_right": 3, "release": "noisy"},
            "max_estimated_right is about the plan's first release, clean, got release 'noisy'",
        ),
    ],
)
def test_what_an_audit_does_not_have_is_refused(
    summary: dict[str, Any], thresholds: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refused:
        decide(summary, Gate(**thresholds))
    assert str(refused.value).startswith(message)


def test_an_epsilon_that_was_not_estimated_is_refused(summary: dict[str, Any]) -> None:
    summary["headline"] = [row for row in summary["headline"] if row["definition"] != "mp"]
    with pytest.raises(InputError, match="max_estimated_mp: the audit did not estimate MP ε"):
        decide(summary, Gate(max_estimated_mp=3))


# Gates and plans


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_provenright": 3}, "unknown key gate.max_provenright; allowed in [gate]: release, max_proven_right, "),
        ({"max_proven_right": math.nan}, "gate.max_proven_right must be a finite number, got nan"),
        ({"max_proven_right": math.inf}, "gate.max_proven_right must be "),
        ({"max_proven_right": "3"}, "gate.max_proven_right must be a number, got '3'"),
        ({"max_proven_right": True}, "gate.max_proven_right must be a number, got True"),
        ({"max_proven_right": 1000}, "gate.max_proven_right must be less than or equal to 100, got 1000"),
        ({"max_proven_mp": -1}, "gate.max_proven_mp must be greater than or equal to 0, got -1"),
        ({"release": 3}, "gate.release must be a string, got 3"),
        ({"max_exposure": 10}, "gate.max_exposure must be N@P, such as 10@0.99, got 10"),
        ({"max_exposure": "10"}, "gate.max_exposure must be N@P, such as 10@0.99, got '10'"),
        ({"max_exposure": "10@0.9@0.99"}, "gate.max_exposure must be N@P, such as 10@0.99, got '10@0.9@0.99'"),
        ({"max_exposure": "-1@0.99"}, "gate.max_exposure must allow a number of nodes of at least 0, got -1"),
        ({"max_exposure": "nan@0.99"}, "gate.max_exposure must allow a number of nodes of at least 0, got nan"),
        (
            {"max_exposure_non_members": "1@0.98"},
            "gate.max_exposure_non_members must have a precision of the exposure curve (0.5, 0.75, 0.9, 0.95, 0.99, "
            "0.995, 0.999), got 0.98",
        ),
        ({"max_exposure": ["1@0.99", "2@0.99"]}, "gate.max_exposure must name each precision once, got 0.99 twice"),
    ],
)
def test_a_gate_that_cannot_be_is_refused_in_one_line(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        Gate(**values)
    assert str(refused.value).startswith(message)
    path = tmp_path / "plan.toml"
    lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
    path.write_text("\n".join(["[gate]", *lines]))
    with pytest.raises(InputError) as refused:
        read_plan(path)
    assert str(refused.value).startswith(f"{path}: {message}")


def _toml(value: Any) -> str:
    return str(value) if isinstance(value, float) else json.dumps(value)


GATE = Gate(release="noisy", max_proven_right=3, max_exposure=("10@0.99", ExposureLimit(50, 0.9)), max_estimated_mp=0)


def test_a_plan_with_a_gate_is_written_and_read(tmp_path: Path) -> None:
    plan, path = AuditPlan(gate=GATE), tmp_path / "plan.toml"
    for text in (format_plan(plan, "demo"), plan_template(plan, "demo")):
        path.write_text(text)
        assert read_plan(path).plan == plan
    assert "[gate]" not in format_plan(AuditPlan(), "demo")


def test_the_template_shows_a_gate_that_can_be_used(tmp_path: Path) -> None:
    text = plan_template(AuditPlan(), "demo")
    start = text.index("# [gate]")
    path = tmp_path / "plan.toml"
    path.write_text(text[:start] + "\n".join(line.removeprefix("# ") for line in text[start:].splitlines()))
    assert read_plan(path).plan.gate == Gate(max_proven_right=3, max_exposure="10@0.99")


def test_a_gate_changes_no_answer(folder: Path, tmp_path: Path) -> None:
    assert plan_hash(AuditPlan(gate=GATE)) == plan_hash(AuditPlan())
    assert fingerprint(AuditPlan(gate=GATE), "", "") == fingerprint(AuditPlan(), "", "")
    copied, gated = tmp_path / "copy", PLAN.replace(gate=Gate(max_proven_right=99))
    shutil.copytree(folder, copied)
    before = times(copied)
    steps = pipeline(copied, gated)
    with steps.prepared():
        steps.report(pictures="none")
    assert [name for name, written in times(copied).items() if written != before[name]] == ["plan.toml"]
    assert Audit.load(copied).plan.gate == gated.gate
    assert check(copied).outcome == "undecided"


def test_a_gate_is_in_the_plan_but_not_in_the_summary(folder: Path, tmp_path: Path) -> None:
    run_audit(tmp_path / "gated", PLAN.replace(gate=GATE))
    assert read_plan(tmp_path / "gated" / "plan.toml").plan.gate == GATE
    # From which comparisons take the settings in which audits differ.
    assert summary_of(tmp_path / "gated")["plan"] == summary_of(folder)["plan"]


def test_options_override_the_plans_gate(folder: Path) -> None:
    def labels(result: GateResult) -> list[str]:
        return [each.label for each in result.thresholds]

    audit = Audit.load(folder)
    audit.plan = PLAN.replace(gate=Gate(max_proven_right=9, max_exposure=["10@0.99", "50@0.9"]))
    assert labels(check(audit)) == ["max_proven_right 9", "max_exposure 10@0.99", "max_exposure 50@0.9"]
    assert labels(check(audit, max_exposure="1@0.5")) == ["max_proven_right 9", "max_exposure 1@0.5"]
    assert labels(check(audit, Gate(max_proven_mp=2))) == ["max_proven_mp 2"]
    assert check(audit, release="noisy").release == "noisy"


def test_a_folder_and_its_audit_give_the_same_result(folder: Path) -> None:
    gate = Gate(max_proven_right=1, max_exposure="3@0.9")
    assert check(folder, gate) == check(Audit.load(folder), gate)


def test_no_code_of_others_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = Payload(tmp_path / "modules", monkeypatch)
    run_audit(tmp_path / "theirs", tiny_plan(permutations=19, definitions=f"{MODULE}:{PARTS['definitions']}"))
    assert payload.was_run()
    payload.forget()
    assert check(tmp_path / "theirs", max_proven_right=20).outcome == "undecided"
    assert not payload.was_run()


def test_a_summary_that_is_none_is_damaged(folder: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "copied"))
    summary = summary_of(copied)
    del summary["releases"]["clean"]["exposure"]
    workspace = Workspace(copied)
    stamp, others = workspace.stamp("estimate"), [name for name in workspace.files("estimate") if "summary" not in name]
    files: dict[str, Any] = {name: partial(_copy, folder / name) for name in others}
    files["summary.json"] = lambda path: path.write_text(json.dumps(summary))
    workspace.publish("estimate", stamp, files)
    with pytest.raises(DataError, match=r"summary.json: damaged .*releases.clean.exposure: "):
        check(copied, max_exposure="3@0.9")


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
