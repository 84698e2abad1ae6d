"""`bmpaudit sweep`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import run_here, run_wrong

from bmpaudit.cli.show import print_sweep
from bmpaudit.sweeps import Sweep, SweepPoint

PLAN = """graph = "demo"
shadows = 16
[views]
releases = ["clean"]
[estimation]
definitions = ["bmp-r"]
[sweep.grid]
training.epochs = [5, 50]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "defences.toml"
    path.write_text(PLAN)
    return path


def test_table_picture_and_json(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    first = run_here("sweep", plan, "--out", out, "--pictures", "png", "--threads", 1)
    assert first.exit_code == 0, first.stderr
    assert "2 points from 2 audits, 32 shadow models in all" in first.stderr
    assert "audit 2 of 2: epochs 50, about" in first.stderr
    assert "epochs 5, clean" in first.stdout
    assert "Audit the winner again" in " ".join(first.stdout.split())
    assert f"picture: {out / 'frontier.png'}" in first.stdout.splitlines()
    assert "ε_R ≤" not in first.stdout
    assert (out / "frontier.png").read_bytes().startswith(b"\x89PNG")
    again = run_here("sweep", plan, "--out", out, "--json", "--quiet", "--confirm")
    assert again.stderr == ""
    found = json.loads(again.stdout)
    assert [point["settings"] for point in found["points"]] == [{"training.epochs": 5}, {"training.epochs": 50}]
    assert found["is_confirmed"]


def test_a_guarantee_has_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = dict.fromkeys(("accuracy", "named_90", "named_99", "certified_names", "certified_share", "level"))
    unknown |= dict.fromkeys(("proven_right", "proven_left", "guaranteed_right", "num_leaking"))
    known = {"is_settled": True, "exposed_by": "student, full", "is_ceiling_right": False, "is_ceiling_left": False}
    plain = SweepPoint(0, "gcn", {}, "clean", "", 16, access="scores", named_90_from={}, auc=0.5, **known, **unknown)  # type: ignore[arg-type]
    private = replace(plain, label="private-sgc", guaranteed_right=0.9, on_front=True, confirmed=plain)
    private = replace(private, certified_names=31.97, certified_share=0.95, proven_right=0.5, is_ceiling_right=True)
    print_sweep(Sweep((replace(plain, confirmed=None), private)))
    first, again = capsys.readouterr().out.split("Again, with fresh models:")
    assert first.splitlines()[1].split()[-6:] == ["certified", "ε_R", "≥", "ε_R", "≤", "front"]
    row = next(line for line in first.splitlines() if "private-sgc" in line)
    assert row.split()[-6:] == ["31", "(95", "%)", "0.50^", "0.90", "yes"]
    assert "ε_R ≤" in again
    assert "front" not in again
    assert "^ every guess was right: the most that so many guesses can show" in again


def test_errors(plan: Path, tmp_path: Path) -> None:
    refused = run_wrong("audit", "--plan", plan, "--out", tmp_path / "audit")
    assert refused.endswith("it has a table [sweep]: run it with bmpaudit sweep")
    missing = run_wrong("sweep", tmp_path / "no.toml", "--out", tmp_path / "out")
    assert "no such file; `bmpaudit plan init` writes a plan" in missing
    plan.write_text(PLAN.replace("epochs", "epoch"))
    wrong = run_wrong("sweep", plan, "--out", tmp_path / "out")
    assert "defences.toml: unknown key training.epoch; allowed in [training]: epochs" in wrong
    assert not (tmp_path / "out").exists()
