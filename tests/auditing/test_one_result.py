"""Everything that people see of an audit shows the same numbers: page, terminal, tables, gate, comparison, sweep."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from small_audit import QUIET, leaky_graph, page_texts, run_audit, small_plan, summary_of

from bmpaudit.auditing.answer import missed_in_words, names
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.result import LEVELS, PARAMETERS, NamedResult, read_result
from bmpaudit.cli.show import print_result
from bmpaudit.comparison.compare import compare
from bmpaudit.gate import check
from bmpaudit.io.codec import encode
from bmpaudit.models import GCN, Training
from bmpaudit.plan import AuditPlan, Gate, plan_keys
from bmpaudit.samplers import Snowball
from bmpaudit.sweeps import sweep
from bmpaudit.util.words import CEILING_NOTE, SYMBOLS, interval, number, percent

PLAN = small_plan(
    sampler=Snowball(0.4),
    prior_draws=2_000,
    shadows=120,
    releases=("clean", "noisy"),
    definitions=("bmp", "bmp-r", "mp"),
)
SHOWN = (0.9, 0.95, 0.99)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("views") / "audit"
    run_audit(path, PLAN)
    return path


@pytest.fixture(scope="module")
def audit(folder: Path) -> Audit:
    return Audit.load(folder)


def limits(row: NamedResult) -> tuple[float, float, float]:
    return row.correct, row.correct_low, row.correct_high


def test_the_summary_is_the_result(folder: Path, audit: Audit) -> None:
    assert summary_of(folder) == encode(audit.result) == audit.summary
    assert read_result(audit.summary) == audit.result
    assert audit.result.is_leakage_found
    assert audit.result.main.proof is not None


def test_the_page_shows_the_result(folder: Path, audit: Audit) -> None:
    data = json.loads(page_texts(folder))
    summary = json.loads(json.dumps(audit.summary))
    for name in ("answer", "headline", "cautions", "next", "permutation_test", "graph", "proof_level"):
        assert data[name] == finite(summary[name]), name
    for release in data["releases"]:
        assert release == finite({"name": release["name"], **summary["releases"][release["name"]]})
    variants = {row["id"]: row for row in data["variants"]}
    assert {name: row["auc"] for name, row in variants.items()} == {
        name: each.auc for name, each in audit.result.variants.items()
    }
    for row in data["posteriors"]:
        figures = audit.result.variants[row["variant"]].posteriors[row["definition"]].parameters[row["parameter"]]
        assert [row[name] for name in ("p5", "p50", "p95")] == [figures.p5, figures.p50, figures.p95]


def test_the_page_shows_level_certified_names_and_who_leaks(folder: Path, audit: Audit) -> None:
    page, data, result = (folder / "report.html").read_text(), json.loads(page_texts(folder)), audit.result
    assert f'<p id="leak-level">{LEVELS[result.answer.level]}</p>' in page
    assert data["answer"]["level"] == result.answer.level != "none"
    for release in data["releases"]:
        certified = result.releases[release["name"]].certified
        assert certified is not None
        for side in ("members", "non_members"):
            shown = [(row["certainty"], row["names"], row["by_prior"]) for row in release["certified"][side]]
            assert shown == [(row.certainty, row.names, row.by_prior) for row in getattr(certified, side)]
    headline = result.main.certified and result.main.certified.leading()
    assert headline
    assert f"name at least {names(headline.names)} nodes as training nodes" in data["answer"]["verdict"]
    test = result.permutation_test
    assert data["permutation_test"]["p_value"] == test.p_value == audit.attacks.permutation_test.p_value
    assert data["permutation_test"]["num_leaking"] == test.num_leaking == sum(data["nodes"]["is_leaking"]) > 0
    assert data["missed"] == missed_in_words(test)
    p_values = [p for p, leaks in zip(data["nodes"]["p_value"], data["nodes"]["is_leaking"], strict=True) if leaks]
    assert max(p_values) <= 0.005 * (1 + 1e-5)  # six digits


def finite(value: Any) -> Any:
    """The page knows no infinity."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return None if value in ("inf", "-inf") else value


def test_terminal_and_tables_show_the_result(
    folder: Path, audit: Audit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    print_result(audit.result)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    terminal = {line.split()[0].rstrip(","): line for line in lines}  # of each release the last: as it is released
    tables = {
        line.split("|")[1].strip(): line for line in (folder / "tables.md").read_text().splitlines() if "|" in line
    }
    for name, release in audit.result.releases.items():
        for row in map(release.exposure.named, SHOWN):
            in_tables = tables[f"{name}, {release.access}" if release.lesser else name]
            assert f"{number(row.correct, 1)} ({interval(row.correct_low, row.correct_high, 1)})" in in_tables
        row = release.exposure.named(0.99)
        assert interval(row.correct_low, row.correct_high, 1) in terminal[name]
        for parameter in PARAMETERS:
            shown = release.shown(parameter)
            mark = "^" if release.is_at_ceiling(parameter) else " "
            assert (shown is None) or (f"≥ {number(shown)}" in in_tables and f"{number(shown)}{mark}" in terminal[name])
        hidden = sum(release.shown(parameter) is None for parameter in PARAMETERS)
        assert in_tables.count("nothing") == hidden
        assert release.certified is not None
        best = release.certified.leading()
        assert (f" {names(best.names)} ({percent(best.certainty)}) " if best else " – ") in terminal[name]


def test_the_terminal_leads_with_the_level_and_says_who_leaks(
    audit: Audit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    print_result(audit.result)
    lines, test = [line.rstrip() for line in capsys.readouterr().out.splitlines()], audit.result.permutation_test
    assert lines[1] == f"{LEVELS[audit.result.answer.level].upper()}  {audit.verdict}"
    assert str(audit).splitlines()[1] == f"{LEVELS[audit.result.answer.level]}. {audit.verdict}"
    assert test.num_leaking == int(audit.nodes["is_leaking"].sum()) == audit.attacks.permutation_test.num_leaking > 0
    assert test.num_nodes == int(audit.nodes["p_value"].notna().sum())
    assert (
        f"permutation test: p = {test.p_value:.2g} (beat all {test.num_shuffles} shuffles of memberships); "
        f"{test.num_leaking} of {test.num_nodes} nodes proven to leak"
    ) in lines
    has_ceiling = any(
        release.is_at_ceiling(parameter) for release in audit.result.releases.values() for parameter in PARAMETERS
    )
    assert (CEILING_NOTE in lines) == has_ceiling


def test_the_gate_holds_the_result_against_its_thresholds(audit: Audit) -> None:
    row, release = audit.result.main.exposure.named(0.99), audit.result.main
    found = check(audit, max_exposure="3@0.99", max_proven_right=1.0).thresholds
    by_name = {each.name: each for each in found}
    certificate = release.certified and release.certified.named(0.99)
    certified = certificate.certainty * certificate.names if certificate else 0.0
    found_range = by_name["max_exposure"].low, by_name["max_exposure"].high
    assert found_range == (max(row.correct_low, certified), row.at_most)
    assert release.proof is not None
    assert by_name["max_proven_right"].low == release.proof.epsilon_right.proven


def test_a_comparison_shows_the_result(audit: Audit) -> None:
    rows = compare([(audit, "clean"), (audit, "noisy")]).to_dict()["audits"]
    for row in rows:
        release = audit.result.releases[row["release"]]
        for certainty in (0.9, 0.99):
            shown = row["figures"][f"named_{100 * certainty:g}"]
            assert (shown["mean"], shown["low"], shown["high"]) == limits(release.exposure.named(certainty))
        assert row["proven"] == {parameter: release.shown(parameter) for parameter in PARAMETERS}
        assert row["at_ceiling"] == [parameter for parameter in PARAMETERS if release.is_at_ceiling(parameter)]
        assert release.certified is not None
        best = release.certified.leading()
        assert row["certified"] == (best and {"certainty": best.certainty, "names": best.names})
        is_tested, test = row["release"] == audit.result.main_release, audit.result.permutation_test
        told = (row["level"], row["p_value"], row["num_leaking"])
        assert told == (
            (audit.result.answer.level, test.p_value, test.num_leaking) if is_tested else (None, None, None)
        )
        priors = audit.result.priors
        assert (row["floor"]["epsilon_right"], row["floor"]["epsilon_left"]) == (priors.floor_right, priors.floor_left)


def test_a_sweep_shows_the_result(tmp_path: Path) -> None:
    found = sweep(
        leaky_graph(), PLAN.replace(shadows=40), grid={"training.epochs": [15]}, folder=tmp_path, runtime=QUIET
    )
    for point in found.points:
        result = Audit.load(point.folder).result
        release = result.releases[point.release]
        for mean, certainty in ((point.named_90, 0.9), (point.named_99, 0.99)):
            assert mean is not None
            assert (mean.mean, mean.low, mean.high) == limits(release.exposure.named(certainty))
        assert (point.proven_right, point.proven_left) == (
            release.shown("epsilon_right"),
            release.shown("epsilon_left"),
        )
        assert point.auc == release.auc
        assert point.exposed_by == release.exposed_by
        assert (point.is_ceiling_right, point.is_ceiling_left) == (
            release.is_at_ceiling("epsilon_right"),
            release.is_at_ceiling("epsilon_left"),
        )
        assert release.certified is not None
        best = release.certified.leading()
        assert (point.certified_names, point.certified_share) == (
            (best.names, best.certainty) if best else (None, None)
        )
        is_tested = point.release == result.main_release
        told = (result.answer.level, result.permutation_test.num_leaking)
        assert (point.level, point.num_leaking) == (told if is_tested else (None, None))


def test_the_text_of_the_findings_shows_the_result(audit: Audit) -> None:
    """What a notebook shows of the objects behind the result."""
    for name, findings in audit.findings.items():
        release = audit.result.releases[name]
        text = str(findings.exposure.exposure)
        lines = [" ".join(line.split()) for line in text.splitlines()]
        for row in release.exposure.members:  # at 50 %, many names are wrong: named and correct differ
            (line,) = (line for line in lines if line.startswith(f"{100 * row.precision:.1f} % "))
            assert f" {row.correct:.1f} ({row.correct_low:.1f} to {row.correct_high:.1f}) " in line
        first = release.exposure.members[0]
        assert round(first.named, 1) != round(first.correct, 1)
        assert findings.proof is not None
        assert release.proof is not None
        for bound in findings.proof.bounds:
            assert bound.floor == release.proof.bounds[bound.parameter].floor
            assert SYMBOLS[bound.parameter] in str(bound)
    priors = audit.result.priors
    assert audit.result.main.proof is not None
    floors = [audit.result.main.proof.bounds[parameter].floor for parameter in ("epsilon_right", "epsilon_left")]
    assert floors == [priors.floor_right, priors.floor_left]
    assert {row.parameter: row.floor for row in audit.headline if row.definition == "bmp-r"} == {
        "epsilon_right": priors.floor_right
    }


EVERYTHING: dict[str, Any] = {
    "shadows": 14,
    "seed": 5,
    "keep_weights": True,
    "permutations": 200,
    "sampler": Snowball(0.5, fan_out=2, any_order=True),
    "model": GCN(hidden=6, layers=3, dropout=0.1),
    "releases": ("noisy", "rounded"),
    "release_as": "queries",
    "queries": ("none",),
    "attack": "gaussian",
    "rules": ("weak",),
    "cost_false_positive": 2.0,
    "cost_false_negative": 3.0,
    "unfittable": "non-member",
    "prior_source": "shadow-frequency",
    "prior_draws": 500,
    "definitions": ("bmp-l", "bmp-s"),
    "prior_mean": 1.0,
    "prior_variance": 50.0,
    "strength": 0.7,
    "level": 0.8,
    "proof_level": 0.9,
    "proof_method": "prequential",
    "gate": Gate(max_proven_right=3, max_exposure="10@0.99"),
}
TRAINING: dict[str, Any] = {
    "epochs": 3,
    "learning_rate": 0.02,
    "weight_decay": 1e-3,
    "optimizer": "sgd",
    "schedule": "cosine",
    "label_smoothing": 0.05,
    "drop_edge": 0.1,
    "validation_share": 0.2,
    "patience": 2,
}
BATCHES: dict[str, Any] = {"epochs": 3, "schedule": "step", "batch_size": 8, "neighbors": (2, 2, 2)}


@pytest.mark.parametrize("training", [TRAINING, BATCHES], ids=["whole", "batches"])
def test_an_audit_with_every_key_changed_is_read_back(training: dict[str, Any], tmp_path: Path) -> None:
    plan, usual = AuditPlan(**EVERYTHING, training=Training(**training)), AuditPlan()
    same = {name for name in plan_keys() if getattr(plan, name) == getattr(usual, name)}
    assert same == {"engine", "statistic"}  # there is one statistic, and the engine follows from the model
    assert {*TRAINING, *BATCHES} == {each.name for each in fields(Training)}
    made = run_audit(tmp_path, plan)
    assert Audit.load(tmp_path).result == made.result
    assert run_audit(tmp_path, plan).result == made.result
    assert check(tmp_path).outcome in ("passed", "exceeded", "undecided")
    assert compare([(made, "noisy"), (made, "rounded")]).audits[0].audit.result.fingerprint == made.result.fingerprint
