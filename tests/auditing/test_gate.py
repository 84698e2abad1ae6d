"""Gates: what is decided from a summary, and what a gate may say."""

from __future__ import annotations

import copy
import json
import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from payload_module import MODULE, PARTS, Payload
from small_audit import NUM_NODES, pipeline, run_audit, small_plan, summary_of, times, tiny_plan

from bmpaudit import gate as gate_module
from bmpaudit.attack.permutation import largest_z
from bmpaudit.auditing.context import fingerprint, plan_hash
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.result import read_result
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.gate import CheckedThreshold, GateResult, check
from bmpaudit.plan import AuditPlan, ExposureLimit, Gate, format_plan, plan_template, read_plan
from bmpaudit.proof import default_num_fitting, epsilon_bound, models_to_prove_more, provable
from bmpaudit.proof.prove import FIRST_FIT
from bmpaudit.util.errors import DataError, InputError

PLAN = small_plan(definitions=("bmp", "mp"), releases=("clean", "noisy"), shadows=40)
PARAMETERS = {"right": "epsilon_right", "left": "epsilon_left", "mp": "mp"}
LEVEL = 0.99


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate") / "audit"
    run_audit(path, PLAN)
    return path


@pytest.fixture
def summary(folder: Path) -> dict[str, Any]:
    """A summary to change: nothing proven or certified, leakage found, no floor in the way, and enough models.

    A node that every model gives away would have proven 4; the guesses leave 2 possible.
    """
    changed = copy.deepcopy(summary_of(folder))
    changed["is_leakage_found"] = True
    changed["releases"]["clean"]["certified"] = None
    for parameter in PARAMETERS.values():
        bound = {"proven": None, "floor": 0.0, "level": LEVEL, "num_guesses": 600, "num_hits": 240}
        changed["releases"]["clean"]["proof"][parameter] |= bound
    changed["releases"]["clean"]["power"] = {
        "provable": dict.fromkeys(PARAMETERS.values(), 4.0),
        "possible": dict.fromkeys(PARAMETERS.values(), 2.0),
        "node_share_low": 0.1,
        "node_share_high": 0.3,
    }
    changed["nodes"] |= {"fewest_in": 300, "fewest_out": 300, "rarest_prior": 0.4, "commonest_prior": 0.4}
    changed["permutation_test"] |= {"num_leaking": 2, "num_hidden": 0, "num_nodes": NUM_NODES}
    for row in changed["headline"]:
        row |= {"warnings": [], "p5": 2.5, "p50": 3.0, "p95": 3.5}
    return changed


def decide(summary: dict[str, Any], gate: Gate) -> GateResult:
    return gate_module.decide(read_result(summary), gate)


def proven(summary: dict[str, Any], side: str, **values: Any) -> None:
    summary["releases"]["clean"]["proof"][PARAMETERS[side]] |= values


def power(summary: dict[str, Any], name: str, side: str, value: Any) -> None:
    summary["releases"]["clean"]["power"][name][PARAMETERS[side]] = value


def exposed(summary: dict[str, Any], curve: str, precision: float, **values: Any) -> None:
    (row,) = (row for row in summary["releases"]["clean"]["exposure"][curve] if row["precision"] == precision)
    row |= values


def outcome(summary: dict[str, Any], **thresholds: Any) -> str:
    return decide(summary, Gate(**thresholds)).outcome


def only(summary: dict[str, Any], **threshold: Any) -> CheckedThreshold:
    (found,) = decide(summary, Gate(**threshold)).thresholds
    return found


# Proven


@pytest.mark.parametrize("side", PARAMETERS)
def test_what_is_proven_exceeds_passes_or_cannot_be_decided(summary: dict[str, Any], side: str) -> None:
    name = f"max_proven_{side}"
    proven(summary, side, proven=3.5)
    assert outcome(summary, **{name: 3.499}) == "exceeded"
    assert outcome(summary, **{name: 3.5}) == "passed"  # exactly as much as is allowed
    assert outcome(summary, **{name: 3.999}) == "passed"
    assert outcome(summary, **{name: 4.0}) == "undecided"
    proven(summary, side, proven=None)
    assert outcome(summary, **{name: 3.0}) == "passed"


@pytest.mark.parametrize("side", PARAMETERS)
def test_what_one_node_cannot_show_is_never_passed(summary: dict[str, Any], side: str) -> None:
    power(summary, "provable", side, None)
    found = only(summary, **{f"max_proven_{side}": 9})
    assert (found.outcome, "would prove nothing" in found.reason) == ("undecided", True)


@pytest.mark.parametrize("side", PARAMETERS)
def test_guesses_that_leave_more_possible_decide_nothing(summary: dict[str, Any], side: str) -> None:
    name = f"max_proven_{side}"
    assert outcome(summary, **{name: 1.9}) == "undecided"
    assert outcome(summary, **{name: 2.0}) == "passed"
    power(summary, "possible", side, "inf")  # every guess was right
    proven(summary, side, num_hits=600)
    found = only(summary, **{name: 3.5})
    assert (found.outcome, found.models_needed) == ("undecided", None)
    assert "no number of shadow models is known to decide it" in found.explanation


def test_a_threshold_below_the_floor_cannot_be_met(summary: dict[str, Any]) -> None:
    proven(summary, "left", floor=1.0986)
    found = only(summary, max_proven_left=1)
    assert (found.outcome, found.low) == ("exceeded", None)
    assert found.reason == "the sampling alone gives ε_L ≥ 1.099: no model trained this way stays below"
    proven(summary, "right", floor="inf")  # some node is in every sample
    assert outcome(summary, max_proven_right=50) == "exceeded"


def likely_bound(num_models: int, prior: float) -> float:
    """What the guesses about the rarest of all nodes prove with a probability of 99 % or more."""
    num_challenged = num_models - default_num_fitting(num_models)
    fewest = int(scipy.stats.binom.ppf(0.01 / NUM_NODES, num_challenged, prior))
    bound = epsilon_bound(fewest, fewest, LEVEL)
    return -math.inf if bound is None else bound


@pytest.mark.parametrize(("side", "prior"), [("right", 0.1), ("right", 0.25), ("left", 0.6)])
def test_undecided_says_how_many_models_are_enough(summary: dict[str, Any], side: str, prior: float) -> None:
    summary["nodes"] |= {"rarest_prior": prior, "commonest_prior": prior}
    power(summary, "provable", side, 2.5)
    found = only(summary, **{f"max_proven_{side}": 3})
    needed = found.models_needed
    assert found.outcome == "undecided"
    assert needed is not None
    share = prior if side == "right" else 1 - prior
    assert likely_bound(needed, share) > 3 >= likely_bound(needed - 1, share)
    assert f"about {needed:,} shadow models are enough" in found.explanation


def test_a_rare_node_has_to_be_in_enough_fitting_models(summary: dict[str, Any]) -> None:
    summary["nodes"] |= {"rarest_prior": 0.05, "commonest_prior": 0.05}
    power(summary, "provable", "right", None)
    needed = only(summary, max_proven_right=3).models_needed
    assert needed is not None
    fewest = [scipy.stats.binom.ppf(0.01 / NUM_NODES, default_num_fitting(needed - k), 0.05) for k in (0, 1)]
    assert fewest[0] >= 10 > fewest[1]


def test_for_mp_the_better_side_of_the_worst_prior_counts(summary: dict[str, Any]) -> None:
    def needed(rarest: float, commonest: float) -> int:
        summary["nodes"] |= {"rarest_prior": rarest, "commonest_prior": commonest}
        power(summary, "provable", "mp", None)
        number = only(summary, max_proven_mp=3).models_needed
        assert number is not None
        shift = math.log(commonest / (1 - commonest))
        if rarest == commonest:
            reached = [
                max(likely_bound(n, rarest) - shift, likely_bound(n, 1 - rarest) + shift) for n in (number, number - 1)
            ]
            assert reached[0] > 3 >= reached[1]
        return number

    assert needed(0.25, 0.25) == needed(0.75, 0.75) < needed(0.5, 0.5) == needed(0.25, 0.75)


def test_without_a_proof_it_is_undecided(summary: dict[str, Any]) -> None:
    summary["releases"]["clean"] |= {"proof": None, "not_proven": "there must be at least 8 models, got 7"}
    summary["releases"]["clean"]["power"] |= {"possible": dict.fromkeys(PARAMETERS.values(), None)}
    found = only(summary, max_proven_right=1)
    assert (found.outcome, found.reason) == ("undecided", "there must be at least 8 models, got 7")
    assert found.models_needed is not None


def test_no_number_of_models_proves_everything(summary: dict[str, Any]) -> None:
    found = only(summary, max_proven_right=99)
    assert (found.outcome, found.models_needed) == ("undecided", None)
    assert "no number of shadow models is known to decide it" in found.explanation


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


@pytest.mark.parametrize(("level", "said"), [(0.95, "95 %"), (0.999, "99.9 %"), (0.99999, "99.999 %")])
def test_nothing_is_proven_with_certainty(summary: dict[str, Any], level: float, said: str) -> None:
    proven(summary, "right", proven=5.1, level=level)
    assert only(summary, max_proven_right=4).reason == f"ε_R ≥ 5.100 is proven with {said} confidence"


# Exposure


@pytest.mark.parametrize(("name", "curve"), [("max_exposure", "members"), ("max_exposure_non_members", "non_members")])
def test_exposure_is_decided_by_its_limits(summary: dict[str, Any], name: str, curve: str) -> None:
    exposed(summary, curve, 0.99, correct=8.0, correct_low=6.0, correct_high=9.0, at_most=10.0)
    assert outcome(summary, **{name: "10@0.99"}) == "passed"
    assert outcome(summary, **{name: "9.9@0.99"}) == "undecided"
    assert outcome(summary, **{name: "6@0.99"}) == "undecided"
    assert outcome(summary, **{name: "5.9@0.99"}) == "exceeded"


@pytest.mark.parametrize(("precision", "needed"), [(0.5, 10), (0.95, 10), (0.99, 49), (0.999, 499)])
def test_a_node_that_could_not_be_named_leaves_it_undecided(
    summary: dict[str, Any], precision: float, needed: int
) -> None:
    assert needed == 10 or (needed + 0.5) / (needed + 1) >= precision - 1e-12 > (needed - 0.5) / needed
    exposed(summary, "members", precision, correct=0.0, correct_low=0.0, correct_high=0.1, at_most=0.2)
    summary["nodes"]["fewest_in"] = needed
    limit = f"0.5@{precision}"
    assert outcome(summary, max_exposure=limit) == "passed"
    summary["nodes"]["fewest_in"] = needed - 1
    found = only(summary, max_exposure=limit)
    assert found.outcome == "undecided"
    assert found.models_needed is not None
    fewest = [scipy.stats.binom.ppf(0.01 / NUM_NODES, found.models_needed - k, 0.4) for k in (0, 1)]
    assert fewest[0] >= needed > fewest[1]
    exposed(summary, "non_members", precision, correct=0.0, correct_low=0.0, correct_high=0.1, at_most=0.2)
    assert outcome(summary, max_exposure_non_members=limit) == ("passed" if needed <= 300 else "undecided")
    exposed(summary, "members", precision, correct_low=0.6)
    assert outcome(summary, max_exposure=limit) == "exceeded"  # it is at least that much anyway


def test_what_is_certified_exceeds(summary: dict[str, Any]) -> None:
    exposed(summary, "members", 0.99, correct=0.0, correct_low=0.0, correct_high=0.1, at_most=0.2)
    row = {"by_prior": 0, "mean_names": 30.0, "share_correct": 1.0, "most_names": 40}
    rows = [row | {"certainty": certainty, "names": names} for certainty, names in ((0.9, 30.0), (0.99, 20.0))]
    sides = {"members": rows, "non_members": []}
    about = {"level": LEVEL, "num_fitting": 13, "num_challenged": 27, "source": "student, full"}
    summary["releases"]["clean"]["certified"] = about | sides
    found = only(summary, max_exposure="19@0.99")
    assert found.outcome == "exceeded"
    assert found.low == pytest.approx(0.99 * 20)
    assert found.reason == "19.80 members or more are named correctly per model, with 99 % confidence"
    assert outcome(summary, max_exposure="20@0.99") == "passed"


def test_every_precision_is_checked(summary: dict[str, Any]) -> None:
    for precision, named in ((0.9, 60.0), (0.99, 8.0)):
        exposed(summary, "members", precision, correct=named, correct_low=named, at_most=named)
    result = decide(summary, Gate(max_exposure=["50@0.9", "10@0.99"]))
    assert [(each.label, each.outcome) for each in result.thresholds] == [
        ("max_exposure 50@0.9", "exceeded"),
        ("max_exposure 10@0.99", "passed"),
    ]


def test_the_most_exposed_node_is_decided_by_its_limits(summary: dict[str, Any]) -> None:
    assert outcome(summary, max_node_exposure=0.09) == "exceeded"
    assert outcome(summary, max_node_exposure=0.1) == "undecided"
    assert outcome(summary, max_node_exposure=0.3) == "passed"
    summary["nodes"]["fewest_in"] = 48
    found = only(summary, max_node_exposure=0.3)
    assert (found.outcome, found.models_needed is None) == ("undecided", False)
    # Where nothing is known of a node but that no model named it.
    summary["releases"]["clean"]["power"] |= {"node_share_low": 0.0, "node_share_high": 1.0}
    found = only(summary, max_node_exposure=0.05)
    needed = math.ceil(math.log(0.005 / NUM_NODES) / math.log(0.95))
    assert f"some node is in only 48 models, and it takes {needed}" in found.reason
    assert outcome(summary, max_node_exposure=0) == "undecided"


def test_nodes_proven_to_leak_are_counted(summary: dict[str, Any]) -> None:
    assert outcome(summary, max_leaking_nodes=1) == "exceeded"
    assert outcome(summary, max_leaking_nodes=2) == "passed"
    summary["permutation_test"] |= {"num_hidden": 3, "null_statistics": [3.0, 4.0]}
    found = only(summary, max_leaking_nodes=2)
    assert found.outcome == "undecided"
    assert "a leak of 3 nodes could not have been found" in found.reason
    needed = found.models_needed
    assert needed is not None
    critical = max(4.0, scipy.stats.norm.isf(0.0025 / NUM_NODES))
    fewest = [scipy.stats.binom.ppf(0.01 / NUM_NODES, number, 0.4) for number in (needed, needed - 1)]
    assert largest_z(fewest[0], needed) > critical >= largest_z(fewest[1], needed - 1)
    assert outcome(summary, max_leaking_nodes=1) == "exceeded"


# Estimated


@pytest.mark.parametrize("side", PARAMETERS)
def test_estimates_are_decided_by_their_interval(summary: dict[str, Any], side: str) -> None:
    name = f"max_estimated_{side}"
    assert outcome(summary, **{name: 3.5}) == "passed"
    assert outcome(summary, **{name: 3.0}) == "undecided"
    assert outcome(summary, **{name: 2.4}) == "exceeded"
    assert outcome(summary, **{name: 4.0}) == "undecided"  # which one node could not have shown
    power(summary, "possible", side, 3.6)
    assert outcome(summary, **{name: 3.5}) == "undecided"


def test_an_estimate_in_doubt_decides_nothing_unless_it_is_low(summary: dict[str, Any]) -> None:
    for row in summary["headline"]:
        row["warnings"] = ["ε_R is driven by 12 nodes"]
    found = only(summary, max_estimated_right=1)
    assert (found.outcome, found.models_needed) == ("undecided", None)
    assert "which decides nothing: ε_R is driven by 12 nodes" in found.reason
    assert outcome(summary, max_estimated_right=3.5) == "passed"


def test_an_estimate_without_leakage_decides_nothing(summary: dict[str, Any]) -> None:
    summary["is_leakage_found"] = False
    found = only(summary, max_estimated_mp=1)
    assert found.outcome == "undecided"
    assert "no leakage was found, so the estimate is uninformative" in found.reason


def test_a_proof_exceeds_or_refutes_a_lower_estimate(summary: dict[str, Any]) -> None:
    proven(summary, "right", proven=3.8)
    found = only(summary, max_estimated_right=3.7)
    assert (found.outcome, found.reason) == ("exceeded", "ε_R ≥ 3.800 is proven with 99 % confidence")
    found = only(summary, max_estimated_right=9)  # an estimate that is wrong passes nothing
    assert (found.outcome, found.reason) == (
        "exceeded",
        "the estimate, 2.500 to 3.500, is refuted: ε_R ≥ 3.800 is proven",
    )


def test_an_infinite_estimate_exceeds(summary: dict[str, Any]) -> None:
    for row in summary["headline"]:
        row |= {"p5": "inf", "p50": "inf", "p95": "inf"}
    assert outcome(summary, max_estimated_left=50) == "exceeded"


# All thresholds together


def test_exceeded_wins_over_undecided_which_wins_over_passed(summary: dict[str, Any]) -> None:
    proven(summary, "right", proven=3.5)
    passed, exceeded, undecided = {"max_estimated_mp": 3.6}, {"max_proven_right": 1}, {"max_proven_left": 20}
    codes = {
        "passed": decide(summary, Gate(**passed)).exit_code,
        "exceeded": decide(summary, Gate(**passed, **undecided, **exceeded)).exit_code,
        "undecided": decide(summary, Gate(**passed, **undecided)).exit_code,
    }
    assert codes == {"passed": 0, "exceeded": 1, "undecided": 3}


def test_the_release_is_the_first_or_the_one_named(summary: dict[str, Any]) -> None:
    summary["releases"]["noisy"]["proof"] = copy.deepcopy(summary["releases"]["clean"]["proof"])
    summary["releases"]["noisy"]["proof"]["epsilon_right"]["proven"] = 2.5
    summary["releases"]["noisy"]["power"] = summary["releases"]["clean"]["power"]
    assert outcome(summary, max_proven_right=2) == "passed"
    assert outcome(summary, max_proven_right=2, release="noisy") == "exceeded"


def test_the_access_is_as_released_or_the_one_named(summary: dict[str, Any]) -> None:
    clean = summary["releases"]["clean"]
    assert (clean["access"], list(clean["lesser"])) == ("scores", ["labels"])
    labels = clean["lesser"]["labels"]
    labels |= {"proof": copy.deepcopy(clean["proof"]), "power": copy.deepcopy(clean["power"]), "certified": None}
    labels["proof"]["epsilon_right"]["proven"] = 2.5
    labels["power"]["node_share_high"] = 0.1
    assert outcome(summary, max_proven_right=2) == outcome(summary, max_proven_right=2, access="scores") == "passed"
    assert outcome(summary, max_proven_right=2, access="labels") == "exceeded"
    assert outcome(summary, max_node_exposure=0.2, access="labels") == "passed"
    assert "clean release, labels;" in str(decide(summary, Gate(max_proven_right=2, access="labels")))
    with pytest.raises(InputError, match="access must be one of labels, scores, which the audit has, got 'weights'"):
        decide(summary, Gate(max_proven_right=2, access="weights"))
    for about in ("max_leaking_nodes", "max_estimated_right"):  # what was tested are the scores
        with pytest.raises(InputError, match=f"{about} is about scores, which access to labels does not show"):
            decide(summary, Gate(**{about: 3, "access": "labels"}))


def test_plain_values_and_text_say_the_same(summary: dict[str, Any]) -> None:
    result = decide(summary, Gate(max_proven_right=3, max_estimated_left=3))
    plain = json.loads(json.dumps(result.to_plain(), allow_nan=False))
    assert (plain["outcome"], plain["exit_code"]) == (result.outcome, result.exit_code)
    lines = str(result).splitlines()
    assert lines[0].endswith("clean release, scores; 40 shadow models")
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
        (
            {"max_leaking_nodes": 3, "release": "noisy"},
            "max_leaking_nodes is about the plan's first release, clean, got release 'noisy'",
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
        (
            {"max_provenright": 3},
            "unknown key gate.max_provenright; allowed in [gate]: release, access, max_proven_right, ",
        ),
        ({"max_proven_right": math.nan}, "gate.max_proven_right must be a finite number, got nan"),
        ({"max_proven_right": math.inf}, "gate.max_proven_right must be "),
        ({"max_proven_right": "3"}, "gate.max_proven_right must be a number, got '3'"),
        ({"max_proven_right": True}, "gate.max_proven_right must be a number, got True"),
        ({"max_proven_right": 1000}, "gate.max_proven_right must be less than or equal to 100, got 1000"),
        ({"max_proven_mp": -1}, "gate.max_proven_mp must be greater than or equal to 0, got -1"),
        ({"max_node_exposure": 1}, "gate.max_node_exposure must be less than 1, got 1"),
        ({"max_leaking_nodes": -1}, "gate.max_leaking_nodes must be greater than or equal to 0, got -1"),
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
    run_audit(tmp_path / "theirs", tiny_plan(definitions=f"{MODULE}:{PARTS['definitions']}"))
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
