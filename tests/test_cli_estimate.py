"""The command `bmpaudit estimate`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("bmpaudit")
HEADER = "node,num_out,num_in,false_positives,false_negatives,prior_prob\n"


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(SCRIPT), "estimate", *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEADER}a,100,100,20,30,0.5\n")
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
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["definition"], told["method"], told["status"]) == (definition, "exact", "exact")
    assert (told["num_nodes"], told["num_left_out"]) == (1, 0)
    assert told["prior"] == "normal, mean 0, variance 10"
    for parameter in parameters:
        assert list(told[parameter]) == ["p5", "p50", "p95", "mean"]
        assert told[parameter]["p5"] < told[parameter]["p50"] < told[parameter]["p95"]
    assert [name for name in told if name.startswith("epsilon")] == parameters


def test_prints_a_small_table(counts: Path) -> None:
    done = run(counts, "--definition", "mp")
    assert done.stdout.splitlines()[1].split()[:4] == ["epsilon", "1.253", "2.664", "6.436"]


def test_mhaar_agrees_with_exact(counts: Path) -> None:
    exact = json.loads(run(counts, "--definition", "mp", "--json").stdout)["epsilon"]
    chains = json.loads(run(counts, "--definition", "mp", "--method", "mhaar", "--json").stdout)
    assert chains["method"] == "mhaar"
    assert chains["status"] == "converged"
    assert chains["epsilon"]["p50"] == pytest.approx(exact["p50"], abs=0.15)


def test_any_counts_are_taken_and_certain_nodes_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEADER}a,0,1,0,0,0.5\nb,1,0,1,0,0.2\nc,10,0,3,0,1.0\n")
    told = json.loads(run(path, "--definition", "bmp-r", "--json").stdout)
    assert (told["num_nodes"], told["num_left_out"]) == (2, 1)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("a,10,10,11,0,0.5", "line 2: false_positives must be at most num_out, got false_positives=11, num_out=10"),
        ("a,10,10,-1,0,0.5", "line 2: "),
        ("a,10,10,1.5,0,0.5", "line 2: "),
        ("a,10,10,1,0,1.5", "line 2: "),
        ("a,10,10,1,,0.5", "line 2: "),
    ],
)
def test_impossible_counts_are_told_in_one_line(row: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEADER}{row}\n")
    done = run(path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"bmpaudit: {path}: {told}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--prior-variance", 0), "the prior's variance must be positive, got variance=0.0"),
        (("--strength", 1), "strength must be in [0, 1), got strength=1.0"),
        (("--method", "mhaar", "--chains", 0), "num_chains must be a whole number of at least 1, got num_chains=0"),
    ],
)
def test_settings_out_of_bounds_are_told_in_one_line(options: tuple[object, ...], told: str, counts: Path) -> None:
    done = run(counts, *options)
    assert (done.returncode, done.stderr) == (2, f"bmpaudit: {told}\n")
