"""action.yml: its shell steps audit by a plan, fail by its gate, and take no input for a part of their text."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import bmpaudit

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
# Few models that learn little. The sampling alone gives ε_L ≥ log 3, and so few models prove hardly anything.
PLAN = """
graph = "demo"
shadows = 12
[model]
name = "mlp"
hidden = 4
[training]
epochs = 2
[views]
releases = ["clean"]
queries = ["full"]
[decision]
rules = ["weak"]
[estimation]
definitions = ["bmp-r"]
[gate]
max_proven_left = 1.0
"""


def steps() -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in ACTION["runs"]["steps"]}


def run_step(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """A step as GitHub runs it: in bash that stops at errors, with the values of expressions in its environment."""
    step = steps()[name]
    values = {key: inputs.get(key, about["default"]) for key, about in ACTION["inputs"].items()}
    variables = {key: INPUT.sub(lambda found: values[found[1]], text) for key, text in step["env"].items()}
    files = {name: str(folder / name) for name in ("RUNNER_TEMP", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    Path(files["RUNNER_TEMP"]).mkdir(exist_ok=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **variables, **files, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_audit_fails_by_the_gate_of_its_plan(tmp_path: Path) -> None:
    inputs = {"plan": "my plan.toml", "out": "$(touch a)`touch b`; touch c"}
    (tmp_path / inputs["plan"]).write_text(PLAN)
    done = run_step("Audit", tmp_path, **inputs)
    assert (done.returncode, done.stderr) == (0, "")
    assert run_step("Check", tmp_path, **inputs).returncode == 1
    assert "max\\_proven\\_left 1 | exceeded" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    junit = f"{inputs['out']}-gate.xml"
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == f"outcome=exceeded\njunit={junit}\n"
    assert "<failure" in (tmp_path / junit).read_text()

    plan = tmp_path / inputs["out"] / "plan.toml"
    plan.write_text(plan.read_text().replace("max_proven_left = 1.0", "max_proven_left = 50.0"))
    assert run_step("Check", tmp_path, **inputs).returncode == 3
    assert "outcome=undecided" in (tmp_path / "GITHUB_OUTPUT").read_text()
    kept = {"RUNNER_TEMP", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", *inputs.values(), junit}
    assert {path.name for path in tmp_path.iterdir()} == kept


@pytest.mark.parametrize(("trust", "option"), [("true", True), ("True; --trust-code", False)])
def test_code_is_trusted_only_where_that_is_said(trust: str, option: bool, tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text('graph = "no_such_module:graph"\n')
    done = run_step("Audit", tmp_path, **{"trust-code": trust})
    assert done.returncode == 2
    assert ("--trust-code" not in done.stderr) is option


def test_no_audit_ends_in_an_error_of_its_own(tmp_path: Path) -> None:
    done = run_step("Check", tmp_path)
    assert done.returncode == 4
    assert "outcome=\n" in (tmp_path / "GITHUB_OUTPUT").read_text()


def test_inputs_reach_the_shell_only_through_the_environment() -> None:
    assert ACTION["runs"]["using"] == "composite"
    used = {name for step in steps().values() for text in step["env"].values() for name in INPUT.findall(text)}
    assert used == set(ACTION["inputs"])
    for step in steps().values():
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"


def test_it_installs_the_version_that_it_belongs_to() -> None:
    assert ACTION["inputs"]["package"]["default"] == f"bmpaudit=={bmpaudit.__version__}"
