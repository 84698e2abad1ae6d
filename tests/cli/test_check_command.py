"""The command `bmpaudit check`: one outcome and one exit code, whatever is printed."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command_line import TRAINING, contents, run_here, run_well, run_wrong
from small_graph import small_graph

from bmpaudit.auditing.workspace import Workspace
from bmpaudit.util.values import to_json

EXIT_CODES = {"passed": 0, "exceeded": 1, "undecided": 3}
# With 3.5 proven, 8 (6 to 10) named, 2 nodes leaking, 2 to 4 estimated, and models that could have proven 4.5.
THRESHOLDS: dict[str, dict[str, object]] = {
    **{f"--max-proven-{side}": {"passed": 4, "exceeded": 3, "undecided": 20} for side in ("right", "left", "mp")},
    **{
        f"--max-exposure{side}": {"passed": "10@0.99", "exceeded": "5@0.99", "undecided": "7@0.99"}
        for side in ("", "-non-members")
    },
    "--max-node-exposure": {"passed": 0.4, "exceeded": 0.1, "undecided": 0.3},
    "--max-leaking-nodes": {"exceeded": 1, "undecided": 2},
    **{f"--max-estimated-{side}": {"passed": 4, "exceeded": 1, "undecided": 3.6} for side in ("right", "left", "mp")},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit as it comes."""
    path = tmp_path_factory.mktemp("check")
    small_graph().to_npz(path / 'a<b&"c|d.npz')
    settings = (*TRAINING, "--train-fraction", 0.4, "--shadows", 40, "--definition", "bmp", "--definition", "mp")
    run_well("audit", path / 'a<b&"c|d.npz', "--out", path / "audit", *settings, "--pictures=none", "--quiet")
    return path / "audit"


@pytest.fixture(scope="module")
def folder(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with results from which every outcome can be had."""
    path = tmp_path_factory.mktemp("known") / "audit"
    shutil.copytree(made, path)
    summary = json.loads((path / "summary.json").read_text())
    summary["is_leakage_found"] = True
    clean = summary["releases"]["clean"]
    parameters = ("epsilon_right", "epsilon_left", "mp")
    for parameter in parameters:
        clean["proof"][parameter] |= {"proven": 3.5, "floor": 0.0, "level": 0.95}
    clean["certified"] = None
    summary["releases"]["clean"]["power"] = {
        "provable": dict.fromkeys(parameters, 4.5),
        "possible": dict.fromkeys(parameters, 2.0),
        "node_share_low": 0.2,
        "node_share_high": 0.35,
    }
    summary["nodes"] |= {"fewest_in": 200, "fewest_out": 400, "rarest_prior": 0.4, "commonest_prior": 0.4}
    summary["permutation_test"] |= {"num_leaking": 2, "num_hidden": 3}
    for row in clean["exposure"]["members"] + clean["exposure"]["non_members"]:
        row |= {"correct": 8.0, "correct_low": 6.0, "correct_high": 10.0, "at_most": 10.0}
    for row in summary["headline"]:
        row |= {"p5": 2.0, "p50": 3.0, "p95": 4.0, "warnings": []}
    workspace = Workspace(path)
    workspace.publish(
        "estimate", workspace.stamp("estimate"), {"summary.json": lambda place: _write(place, to_json(summary))}
    )
    return path


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def outcomes_by_format(folder: Path, junit: Path, *options: object) -> dict[str, tuple[int, list[str]]]:
    """Exit code and the outcomes of all thresholds, as each format has them."""
    text, as_json, markdown = (
        run_here("check", folder, *options, *more) for more in ((), ("--json",), ("--markdown", "--junit", junit))
    )
    assert {each.stderr for each in (text, as_json, markdown)} == {""}
    result = json.loads(as_json.stdout)
    assert result["exit_code"] == as_json.exit_code
    (suite,) = ET.parse(junit).getroot()
    elements = {"failure": "exceeded", "error": "undecided", "system-out": "passed"}
    cases = [elements[child.tag] for case in suite.iter("testcase") for child in case]
    counts = [suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")]
    assert counts == [str(len(cases)), str(cases.count("exceeded")), str(cases.count("undecided")), "0"]
    wanted = max(result["thresholds"], key=lambda each: ["passed", "undecided", "exceeded"].index(each["outcome"]))
    (of_suite,) = (each.get("value") for each in suite.iter("property") if each.get("name") == "outcome")
    lines = text.stdout.splitlines()
    assert {result["outcome"], of_suite, lines[-1].removeprefix("gate: ")} == {wanted["outcome"]}
    assert f"**Membership inference: {wanted['outcome']}**" in markdown.stdout
    return {
        "text": (text.exit_code, [line.split()[0] for line in lines[1:-1]]),
        "json": (as_json.exit_code, [each["outcome"] for each in result["thresholds"]]),
        "markdown": (markdown.exit_code, re.findall(r"^\| max.* \| (\w+) \|", markdown.stdout, re.MULTILINE)),
        "junit": (markdown.exit_code, cases),
    }


@pytest.mark.parametrize(
    ("option", "outcome"), [(option, outcome) for option, limits in THRESHOLDS.items() for outcome in limits]
)
def test_every_format_has_the_same_outcome(folder: Path, tmp_path: Path, option: str, outcome: str) -> None:
    limit = THRESHOLDS[option][outcome]
    formats = outcomes_by_format(folder, tmp_path / "junit.xml", option, limit)
    assert set(map(str, formats.values())) == {str((EXIT_CODES[outcome], [outcome]))}


def test_several_thresholds_make_one_outcome(folder: Path, tmp_path: Path) -> None:
    options = ("--max-proven-right", 4, "--max-proven-left", 20, "--max-exposure", "5@0.99", "--max-exposure", "10@0.9")
    formats = outcomes_by_format(folder, tmp_path / "junit.xml", *options)
    assert set(map(str, formats.values())) == {str((1, ["passed", "undecided", "exceeded", "passed"]))}
    formats = outcomes_by_format(folder, tmp_path / "junit.xml", *options[:4])
    assert set(map(str, formats.values())) == {str((3, ["passed", "undecided"]))}


def test_an_audit_as_it_comes_is_checked_and_not_changed(made: Path) -> None:
    before = contents(made)
    outcome = run_here("check", made, "--max-proven-right", -1, "--json")
    result = json.loads(outcome.stdout)
    summary = json.loads(before["summary.json"])
    assert (outcome.exit_code, result["num_models"], result["release"]) == (result["exit_code"], 40, "clean")
    assert result["thresholds"][0]["low"] == summary["releases"]["clean"]["proof"]["epsilon_right"]["proven"]
    assert result["fingerprint"] == summary["fingerprint"]
    assert contents(made) == before


def test_the_plans_gate_is_used_and_options_override_it(folder: Path, tmp_path: Path) -> None:
    gated = tmp_path / "audit"
    shutil.copytree(folder, gated)
    plan = (gated / "plan.toml").read_text()
    (gated / "plan.toml").write_text(f'{plan}\n[gate]\nmax_proven_right = 3\nmax_exposure = ["10@0.99", "10@0.9"]\n')
    assert run_here("check", gated).exit_code == 1
    overridden = run_here("check", gated, "--max-proven-right", 4, "--max-exposure", "7@0.95", "--json")
    assert overridden.exit_code == 3
    labels = [(each["name"], each["limit"], each["precision"]) for each in json.loads(overridden.stdout)["thresholds"]]
    assert labels == [("max_proven_right", 4, None), ("max_exposure", 7, 0.95)]
    (gated / "plan.toml").write_text(f"{plan}\n[gate]\nmax_proven = 3\n")
    assert run_wrong("check", gated).startswith(
        f"{gated / 'plan.toml'}: unknown key gate.max_proven; allowed in [gate]: "
    )


def test_nothing_to_check_is_wrong_use(folder: Path) -> None:
    message = "there is no threshold to check: give one, such as --max-proven-right 3, or a [gate] in plan.toml"
    assert run_wrong("check", folder) == message
    assert run_wrong("check", folder, "--release", "noisy") == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-proven-right", "nan"), "gate.max_proven_right must be a finite number, got nan"),
        (("--max-proven-right", "much"), "Invalid value for '--max-proven-right': 'much' is not a valid float."),
        (("--max-exposure", "-3@0.99"), "gate.max_exposure must allow a number of nodes of at least 0, got -3"),
        (("--max-exposure", "3@0.98"), "gate.max_exposure must have a precision of the exposure curve (0.5, 0.75, "),
        (("--max-node-exposure", "2"), "gate.max_node_exposure must be less than 1, got 2"),
        (("--max-leaking-nodes", "2.5"), "Invalid value for '--max-leaking-nodes': '2.5' is not a valid integer."),
        (("--max-exposure", "3"), "gate.max_exposure must be N@P, such as 10@0.99, got '3'"),
        (("--max-proven-right", 3, "--release", "labels"), "release must be one of clean, noisy, got 'labels'"),
        (("--max-proven-right", 3, "--json", "--markdown"), "check prints JSON or Markdown, got --json and --markdown"),
    ],
)
def test_wrong_use_is_told_in_one_line(folder: Path, options: tuple[object, ...], message: str) -> None:
    assert run_wrong("check", folder, *options).startswith(message)


def test_a_folder_that_cannot_be_read_exits_with_4(made: Path, tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        return run_wrong("check", path, "--max-proven-right", 3, exit_code=4)

    assert refused(tmp_path / "none") == f"{tmp_path / 'none'} is not an audit folder: it has no plan.toml"
    damaged = tmp_path / "audit"
    shutil.copytree(made, damaged)
    with (damaged / "summary.json").open("a") as file:
        file.write(" ")
    assert refused(damaged) == f"{damaged / 'summary.json'} is missing or damaged: run bmpaudit estimate again"
    (damaged / "manifest.json").write_bytes(b"\xff")
    assert refused(damaged).startswith(f"{damaged / 'manifest.json'}: damaged")
    (damaged / "manifest.json").unlink()
    (damaged / "summary.json").unlink()
    assert refused(damaged) == f"{damaged} has no estimate step yet: run bmpaudit estimate"
    (damaged / "plan.toml").write_text("[gate\n")
    assert refused(damaged).startswith(f"{damaged / 'plan.toml'}: damaged or not a TOML file")


def test_results_of_another_plan_exit_with_4(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "audit"
    shutil.copytree(made, other)
    plan = (other / "plan.toml").read_text()
    (other / "plan.toml").write_text(plan.replace("proof_level = 0.95", "proof_level = 0.9"))
    message = run_wrong("check", other, "--max-proven-right", 3, exit_code=4)
    assert message == f"{other}: its estimate step was made with another plan: run bmpaudit estimate again"


def test_a_file_that_cannot_be_written_exits_with_4(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = ("--max-proven-right", 4, "--junit", tmp_path / "file" / "junit.xml")
    assert "file" in run_wrong("check", folder, *options, exit_code=4)


def test_names_are_escaped(folder: Path, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    markdown = run_here("check", folder, "--max-proven-right", 3, "--markdown", "--junit", junit).stdout
    assert markdown.startswith(
        '**Membership inference: exceeded** (a&lt;b&amp;"c\\|d, Uniform 40 %, MLP; clean release, scores;'
    )
    case = next(ET.parse(junit).getroot().iter("testcase"))
    assert case.get("classname") == 'a<b&"c|d, Uniform 40 %, MLP'
    assert case.get("name") == "max_proven_right 3"
    assert case[0].get("message") == "ε_R ≥ 3.500 is proven with 95 % confidence"
    assert [path.name for path in tmp_path.iterdir()] == ["junit.xml"]
