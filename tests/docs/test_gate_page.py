"""docs/gate.md tells the truth: its plan is one, its workflow runs commands that exist, its tables are complete."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import scipy.stats
import yaml

import bmpaudit
from bmpaudit.auditing.stages import bound_level
from bmpaudit.cli.audit import Unusable, check_gate
from bmpaudit.gate import EXIT_CODES
from bmpaudit.plan import AuditPlan, Gate, parse_plan
from bmpaudit.proof import default_num_fitting, provable

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (code,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return str(code)


def test_the_plan_is_one() -> None:
    gate = parse_plan(tomllib.loads(block("toml"))).plan.gate
    assert gate == Gate(max_proven_right=3, max_exposure=["10@0.99", "50@0.9"], max_leaking_nodes=0, release="clean")


def test_every_threshold_and_exit_code_is_explained() -> None:
    for name in Gate.model_fields:
        assert name in TEXT
    codes = re.findall(r"^\| (\d) \|", TEXT, re.MULTILINE)
    assert sorted(map(int, codes)) == sorted([*EXIT_CODES.values(), 2, Unusable.exit_code])


def test_commands_have_the_options_that_the_page_gives_them() -> None:
    known = {option for parameter in check_gate.params for option in parameter.opts}
    lines = re.findall(r"^\$ (bmpaudit .*)$", TEXT, re.MULTILINE)
    checks = [shlex.split(line) for line in lines if line.startswith("bmpaudit check")]
    assert len(checks) == 3
    for words in checks:
        assert {word for word in words if word.startswith("--")} <= known


def test_the_action_is_as_the_page_says() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| `([a-z-]+)` \| `([^`]+)` \|", TEXT, re.MULTILINE)
    assert dict(rows) == {name: about["default"] for name, about in action["inputs"].items()}
    (gate,) = (step for step in yaml.safe_load(block("yaml"))["jobs"]["gate"]["steps"] if step.get("id") == "gate")
    assert gate["uses"] == f"OWNER/bmpaudit@v{bmpaudit.__version__}"
    assert set(gate["with"]) <= set(action["inputs"])
    for output in action["outputs"]:
        assert f"`{output}`" in TEXT


def test_what_models_would_have_shown_is_as_the_page_says() -> None:
    assert "ε_R = log(1/(a^(−1/n) − 1))" in TEXT
    for n in (1, 86, 667):
        assert abs(math.log(1 / (0.005 ** (-1 / n) - 1)) - provable(n, 0.995)) < 1e-9
    assert bound_level(AuditPlan(), "clean", "weights") == pytest.approx(0.995)
    fewest = int(scipy.stats.binom.ppf(0.01, 1_000 - default_num_fitting(1_000), 0.25))
    assert f"n = {fewest}, of 1,000 models with 25 % samples, prove {provable(fewest, 0.995):.2f}" in TEXT
    for n, certainty in ((49, 0.99), (499, 0.999)):
        assert (n + 0.5) / (n + 1) >= certainty - 1e-12 > (n - 0.5) / n
