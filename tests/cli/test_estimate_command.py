"""The command `bmpaudit estimate`."""

import json
from pathlib import Path

import pytest
from command_line import Outcome, run_here

from bmpaudit.attack import ErrorCounts
from bmpaudit.estimation import Posterior, StrengthPrior, estimate

HEADER = "node,num_out,num_in,false_positives,false_negatives,prior_prob\n"


def run(*arguments: object) -> Outcome:
    return run_here("estimate", *arguments)


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEADER}a,100,100,20,30,0.5\n")
    return path


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Some nodes that leak, one of constant decision, and one that is in for certain."""
    path = tmp_path / "many.csv"
    rows = ["a,100,100,20,30,0.5", "b,90,110,10,70,0.5", "c,95,105,40,50,0.5", "d,120,30,0,30,0.2", "e,80,20,2,3,1.0"]
    path.write_text(HEADER + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("definition", "parameters"),
    [
        ("mp", ["epsilon"]),
        ("bmp-s", ["epsilon"]),
        ("bmp-r", ["epsilon_right"]),
        ("bmp-l", ["epsilon_left"]),
        ("bmp", ["epsilon_left", "epsilon_right"]),
    ],
)
def test_json_holds_percentiles_and_settings(counts: Path, definition: str, parameters: list[str]) -> None:
    done = run(counts, "--definition", definition, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    assert (summary["definition"], summary["method"], summary["status"]) == (definition, "exact", "exact")
    assert (summary["num_nodes"], summary["num_left_out"], summary["num_constant"]) == (1, 0, 0)
    assert summary["prior"] == "normal, mean 0, variance 10"
    assert summary["strength"] == 0
    for parameter in parameters:
        values = summary[parameter]
        assert set(values) == {"p5", "p50", "p95", "mean", "proven_if_split", "tail_prior_share", "interval"}
        assert values["p5"] < values["p50"] < values["p95"]
        assert values["interval"] == pytest.approx({"level": 0.9, "low": values["p5"], "high": values["p95"]})
    assert [name for name in summary if name.startswith("epsilon")] == parameters
    assert list(summary["drivers"]) == parameters


def test_json_names_the_driving_nodes(many: Path) -> None:
    summary = json.loads(run(many, "--json").stdout)
    expected = estimate(ErrorCounts.from_table(many), "bmp-r").influence().drivers()
    assert [node["node"] for node in summary["drivers"]["epsilon_right"]] == [node.node for node in expected]
    assert {node["node"]: node["is_constant"] for node in summary["drivers"]["epsilon_right"]} == {
        "a": False,
        "b": False,
        "c": False,
        "d": True,
    }
    assert summary["drivers"]["epsilon_right"][0]["shift"] == pytest.approx(expected[0].shift)


def test_json_has_no_infinity(many: Path) -> None:
    """MP does not ask for priors, so the certain node counts; the floor of ε_R that it sets is infinite."""
    done = run(many, "--definition", "mp", "--json")

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not JSON")

    summary = json.loads(done.stdout, parse_constant=refuse)
    assert (summary["num_nodes"], summary["floor"]["right"]) == (5, "inf")


def test_prints_a_small_table(counts: Path) -> None:
    lines = run(counts, "--definition", "mp").stdout.splitlines()
    assert lines[:3] == str(estimate(ErrorCounts.from_table(counts), "mp")).splitlines()
    assert lines[2].split() == ["epsilon", "1.253", "2.664", "6.436"]
    assert "  proven*        epsilon ≥  0.653" in lines
    shown = [line.split("  ")[1] for line in lines[3:]]
    assert shown[:-1] == ["floor", "proven*", "upper tail", "driven by"]
    assert "100% of the top 5 % has the shape of the prior" in lines[5]


def test_table_shows_which_nodes_drive_it_and_which_were_left_out(many: Path) -> None:
    lines = run(many).stdout.splitlines()
    posterior = estimate(ErrorCounts.from_table(many), "bmp-r")
    assert "left out       1 node whose membership is certain: e" in "\n".join(lines)
    (driven,) = (line for line in lines if "driven by" in line)
    for node in posterior.influence().drivers(3):
        assert f"{node.node} ({node.shift:+.3f}{', never varies' if node.is_constant else ''})" in driven
    assert driven.count("(") == 3


def test_table_says_that_a_constant_attack_is_uninformative(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(HEADER + "".join(f"{node},750,250,0,250,0.25\n" for node in range(40)))
    printed = run(path, "--definition", "mp").stdout
    assert "status: exact; the attack is uninformative" in printed
    assert "0 (" in printed
    assert printed.count("never varies") == 3


def test_joint_table_has_both_sides(many: Path) -> None:
    printed = run(many, "--definition", "bmp").stdout
    assert printed.count("driven by") == 2
    assert "of the top 5 % of epsilon_left has the shape of the prior" in printed


def test_level_of_the_interval(counts: Path) -> None:
    expected = estimate(ErrorCounts.from_table(counts), "mp").interval(0.99)
    shown = f"99 % interval  epsilon from {expected.low:.3f} to {expected.high:.3f}"
    assert shown in run(counts, "--definition", "mp", "--level", 0.99).stdout
    summary = json.loads(run(counts, "--definition", "mp", "--level", 0.99, "--json").stdout)
    assert summary["epsilon"]["interval"] == pytest.approx({"level": 0.99, "low": expected.low, "high": expected.high})


def test_strength_is_fixed_or_estimated(counts: Path) -> None:
    table = ErrorCounts.from_table(counts)
    fixed = json.loads(run(counts, "--definition", "mp", "--strength", 0.5, "--json").stdout)
    assert fixed["strength"] == 0.5
    assert fixed["epsilon"]["p50"] == pytest.approx(float(estimate(table, "mp", strength=0.5).quantile(0.5)))
    summary = json.loads(run(counts, "--definition", "mp", "--strength-prior", 2, 3, "--json").stdout)
    assert summary["strength_prior"] == {"a": 2, "b": 3}
    expected = estimate(table, "mp", strength=StrengthPrior(2, 3))
    for parameter in ("epsilon", "strength"):
        assert summary[parameter]["p50"] == pytest.approx(float(expected.quantile(0.5, parameter)))


def test_save_keeps_the_posterior(counts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.npz"
    summary = json.loads(run(counts, "--definition", "mp", "--save", kept, "--json").stdout)
    assert float(Posterior.load(kept).quantile(0.95)) == summary["epsilon"]["p95"]


def test_mhaar_agrees_with_exact(counts: Path) -> None:
    exact = json.loads(run(counts, "--definition", "mp", "--json").stdout)["epsilon"]
    chains = json.loads(run(counts, "--definition", "mp", "--method", "mhaar", "--json").stdout)
    assert chains["method"] == "mhaar"
    assert chains["status"] == "converged"
    assert chains["epsilon"]["p50"] == pytest.approx(exact["p50"], abs=0.15)
    assert "  status: converged" in run(counts, "--definition", "mp", "--method", "mhaar").stdout.splitlines()


def test_options_of_the_chains_are_passed_on(counts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.npz"
    options = ("--iterations", 60, "--chains", 3, "--auxiliary", 7, "--seed", 5, "--correlated")
    done = run(counts, "--method", "mhaar", *options, "--save", kept, "--json")
    run_of = Posterior.load(kept).run
    assert run_of is not None
    settings = run_of.settings
    assert (settings.num_iterations, settings.num_chains, settings.num_auxiliary, settings.seed) == (60, 3, 7, 5)
    assert settings.tau_variance is not None
    assert {"tau", "rho"} < set(json.loads(done.stdout))


@pytest.mark.parametrize(("options", "is_shown"), [((), True), (("--quiet",), False), (("--method", "exact"), False)])
def test_progress_is_shown_where_somebody_watches(
    options: tuple[str, ...], is_shown: bool, counts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # stderr passes for a terminal
    done = run(counts, "--method", "mhaar", "--json", *options)
    assert json.loads(done.stdout)["definition"] == "bmp-r"
    assert ("iterations" in done.stderr) == is_shown


def test_progress_is_silent_in_a_pipe(counts: Path) -> None:
    assert run(counts, "--method", "mhaar", "--iterations", 100).stderr == ""


def test_help_has_examples() -> None:
    lines = [line.strip() for line in run("-h").stdout.splitlines()]
    assert "bmpaudit estimate counts.csv --definition bmp --json" in lines[lines.index("Examples:") :]


def test_any_counts_are_taken_and_certain_nodes_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEADER}a,0,1,0,0,0.5\nb,1,0,1,0,0.2\nc,10,0,3,0,1.0\n")
    summary = json.loads(run(path, "--definition", "bmp-r", "--json").stdout)
    assert (summary["num_nodes"], summary["num_left_out"]) == (2, 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,10,10,11,0,0.5", "line 2: false_positives must be at most num_out, got false_positives=11, num_out=10"),
        ("a,10,10,-1,0,0.5", "line 2: "),
        ("a,10,10,1.5,0,0.5", "line 2: "),
        ("a,10,10,1,0,1.5", "line 2: "),
        ("a,10,10,1,,0.5", "line 2: "),
    ],
)
def test_impossible_counts_are_reported_in_one_line(row: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEADER}{row}\n")
    done = run(path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"bmpaudit: {path}: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prior-variance", 0), "the prior's variance must be positive, got variance=0.0"),
        (("--strength", 1), "strength must be in [0, 1), got strength=1.0"),
        (("--strength-prior", 0, 1), "the strength prior's a must be positive, got a=0.0"),
        (("--strength-prior", 1), "Option '--strength-prior' requires 2 arguments."),
        (
            ("--strength", 0, "--strength-prior", 1, 1),
            "--strength fixes what --strength-prior estimates: give one of the two",
        ),
        (
            ("--definition", "bmp", "--strength-prior", 1, 1),
            "strength can be estimated for one-parameter definitions only, got definition='bmp'",
        ),
        (("--correlated",), "--correlated is for --method mhaar, got --method exact"),
        (("--auxiliary", 20), "--auxiliary is for --method mhaar, got --method exact"),
        (("--chains", 2), "--chains is for --method mhaar, got --method exact"),
        (("--iterations", 0), "--iterations is for --method mhaar, got --method exact"),
        (("--method", "mhaar", "--chains", 0), "num_chains must be a whole number of at least 1, got num_chains=0"),
        (("--method", "mhaar", "--auxiliary", 1), "num_auxiliary must be at least 2, got num_auxiliary=1"),
        (("--level", 1), "Invalid value for '--level': 1.0 is not in the range 0<x<1."),
        (("--save", "p.json"), "Invalid value for '--save': the name must end in .npz, got p.json"),
        (("--save", "no-such-folder/p.npz"), "Invalid value for '--save': no such folder: no-such-folder"),
    ],
)
def test_wrong_use_is_reported_in_one_line(options: tuple[object, ...], message: str, counts: Path) -> None:
    done = run(counts, *options)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"bmpaudit: {message}\n")
