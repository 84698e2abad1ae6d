"""An audit on disk: what is written, and what a later run does with it."""

from __future__ import annotations

import shutil
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_audit import (
    QUIET,
    always_the_first,
    contents,
    leaky_graph,
    run_audit,
    run_step,
    small_plan,
    start,
    summary_of,
    times,
    without_timings,
)

from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.auditing.context import Subject, variants
from bmpaudit.auditing.finished import Audit, read_nodes, read_runs, stored_subject
from bmpaudit.auditing.result import FORMAT, AuditResult
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.estimation.posterior import Posterior
from bmpaudit.models import MLP
from bmpaudit.pipeline.pipeline import Pipeline, audit
from bmpaudit.plan import read_plan
from bmpaudit.util import build
from bmpaudit.util.errors import InputError

NAMES = [f"{view}_{rule}" for view in ("full_clean", "none_clean") for rule in ("strong", "weak")]
DOCUMENTED = Path(__file__).parents[2] / "docs" / "audit-folder.md"


# What is there


def test_all_documented_files_are_there_and_no_other(finished: Path) -> None:
    names = {name for name in times(finished) if not name.startswith(("shadows/", "figures/"))}
    assert names == {
        *("manifest.json", "plan.toml", "graph.npz", "shadows.json", "priors.parquet", "attack.json", "nodes.parquet"),
        *("summary.json", "tables.md", "tables.tex", "report.html"),
        *(f"counts/{variant}.parquet" for variant in (*NAMES, "half")),
        *("permutation_test.npz", "proof/clean.npz", "proof/clean@labels.npz"),
        *(f"posteriors/{variant}_{definition}.npz" for variant in NAMES for definition in ("bmp-r", "mp")),
    }
    pictures = {path.stem for path in (finished / "figures").iterdir()}
    assert {"posteriors", "prior_against_epsilon", "roc", "variants", "permutation_test"} <= pictures
    for name in pictures:
        assert (finished / "figures" / f"{name}.pdf").stat().st_size > 1000
        assert (finished / "figures" / f"{name}.png").stat().st_size > 1000


def test_summary_is_json_with_all_documented_keys(finished: Path) -> None:
    summary = summary_of(finished)
    assert list(summary) == [each.name for each in fields(AuditResult)]
    assert summary["format"] == FORMAT
    assert list(summary["variants"]) == NAMES
    page = DOCUMENTED.read_text()
    inner = ("answer", "graph", "shadow_models", "nodes", "permutation_test", "priors")
    variant, release = summary["variants"]["full_clean_strong"], summary["releases"]["clean"]
    for key in (
        *(*summary, *(key for name in inner for key in summary[name]), *summary["headline"][0]),
        *(*variant, *variant["errors"], *release, *release["proof"], *release["proof"]["mp"]),
        *(*release["exposure"]["members"][0], *variant["posteriors"]["mp"]["parameters"]["epsilon"]),
    ):
        assert f"`{key}`" in page, f"docs/audit-folder.md says nothing of {key}"


def test_infinite_values_are_texts(tmp_path: Path) -> None:
    """A node that is in every sample has infinite prior odds, which JSON has no number for."""
    run_audit(tmp_path, small_plan(sampler=always_the_first, prior_draws=50, definitions="mp"))
    assert summary_of(tmp_path)["nodes"]["not_auditable"] >= 1


def test_nodes_table_is_that_of_the_audit(finished: Path) -> None:
    expected = audit(leaky_graph(), small_plan(), runtime=QUIET).nodes
    pd.testing.assert_frame_equal(read_nodes(Workspace(finished)), expected, check_dtype=False)
    page = DOCUMENTED.read_text()
    for name in expected:
        assert f"`{name}`" in page, f"docs/audit-folder.md says nothing of {name}"


def test_tables_hold_the_quantiles_of_the_posteriors(finished: Path) -> None:
    markdown = [line.strip("| ").split(" | ") for line in (finished / "tables.md").read_text().splitlines()]
    latex = [line.removesuffix(r" \\").split(" & ") for line in (finished / "tables.tex").read_text().splitlines()]
    first, first_latex = (next(k for k, line in enumerate(table) if line[0] == "attack") for table in (markdown, latex))
    assert markdown[first] == ["attack", "bmp-r ε_R", "mp ε"]
    assert latex[first_latex] == ["attack", r"bmp-r $\varepsilon_R$", r"mp $\varepsilon$"]
    for number, variant in enumerate(variants(small_plan())):
        cells = []
        for definition in ("bmp-r", "mp"):
            posterior = Posterior.load(finished / "posteriors" / f"{variant.name}_{definition}.npz")
            cells.append("/".join(f"{quantile:.1f}" for quantile in posterior.quantile([0.05, 0.5, 0.95])))
        assert markdown[first + 2 + number] == latex[first_latex + 2 + number] == [variant.label, *cells]


def test_posteriors_and_counts_load(finished: Path) -> None:
    for name, row in summary_of(finished)["variants"].items():
        counts = ErrorCounts.from_table(finished / "counts" / f"{name}.parquet")
        assert row["errors"]["false_positives"] == counts.false_positives.sum()
        assert row["errors"]["num_in"] == counts.num_in.sum()
        posterior = Posterior.load(finished / "posteriors" / f"{name}_mp.npz")
        assert posterior.summary()["epsilon"]["p50"] == row["posteriors"]["mp"]["parameters"]["epsilon"]["p50"]


def test_plan_and_graph_come_back(finished: Path) -> None:
    subject = stored_subject(Workspace(finished))
    assert subject.plan == small_plan()
    assert subject.graph.content_hash == leaky_graph().content_hash


# Again, more, and others


def test_again_is_a_no_op(copied: Path) -> None:
    before = times(copied)
    for pictures in (True, False):
        assert run_audit(copied, pictures=pictures).summary == summary_of(copied)
        run_step(copied, "report", pictures=pictures)
    for step in ("train", "attack", "estimate"):
        run_step(copied, step)
    Audit.load(copied)
    assert times(copied) == before


def test_another_build_computes_everything_again(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = times(copied)
    for module in ("pipeline.pipeline", "report.page_data"):
        monkeypatch.setattr(import_module(f"bmpaudit.{module}"), "build_id", lambda: "another")
    run_audit(copied)
    after = times(copied)
    for name in ("attack.json", "priors.parquet", "summary.json", "nodes.parquet", "report.html"):
        assert after[name] > before[name], name
    # The models are what they are: another build makes the same ones, and training is what takes long.
    assert {name: time for name, time in after.items() if name.startswith("shadows")} == {
        name: time for name, time in before.items() if name.startswith("shadows")
    }


def test_build_id_changes_with_any_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "bmpaudit"
    shutil.copytree(Path(build.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(build, "__file__", str(package / "util/build.py"))
    ids = {build.build_id.__wrapped__()}
    for path in (package / "estimation" / "lower_bound.py", next(package.glob("_native/*.so"))):
        with path.open("ab") as file:
            file.write(b"\n")
        ids.add(build.build_id.__wrapped__())
    assert len(ids) == 3


def test_more_shadows_extend_and_keep_the_first(copied: Path) -> None:
    first = read_runs(Workspace(copied), leaky_graph(), small_plan())
    stored = contents(copied / "shadows")
    more = small_plan(shadows=72)
    result = run_audit(copied, more)
    runs = read_runs(Workspace(copied), leaky_graph(), more)
    assert result.summary["shadow_models"]["trained"] == runs.num_models == 72
    np.testing.assert_array_equal(runs.memberships[:40], first.memberships)
    for view, statistics in first.statistics.items():
        assert runs.statistics[view][:40].tobytes() == statistics.tobytes()
    kept = contents(copied / "shadows")
    assert all(kept[name] == content for name, content in stored.items() if name.endswith("c/0/0"))
    assert read_plan(copied / "plan.toml").plan.shadows == 72
    # Pictures of 40 models beside a page of 72 would deceive.
    assert list((copied / "figures").iterdir()) == []


def test_extending_gives_what_all_at_once_gives(copied: Path, tmp_path: Path) -> None:
    extended = run_audit(copied, small_plan(shadows=44)).summary
    at_once = run_audit(tmp_path / "new", small_plan(shadows=44)).summary
    assert without_timings(extended) == without_timings(at_once)


def test_fewer_shadows_are_refused_and_nothing_is_lost(copied: Path) -> None:
    before = times(copied)
    with pytest.raises(InputError, match="holds results of 40 shadow models; 12 would replace them by fewer"):
        run_audit(copied, small_plan(shadows=12))
    assert times(copied) == before


def test_other_estimates_of_the_same_models_leave_nothing_behind(copied: Path) -> None:
    run_audit(copied, small_plan(definitions="bmp-l", rules="weak"))
    assert sorted(path.name for path in (copied / "posteriors").iterdir()) == [
        "full_clean_weak_bmp-l.npz",
        "none_clean_weak_bmp-l.npz",
    ]
    assert not (copied / "counts" / "full_clean_strong.parquet").exists()


@pytest.mark.parametrize("step", ["audit", "train", "sample"])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 1}, "with seed 0; this plan has seed 1"),
        ({"model": MLP(hidden=9, dropout=0.0)}, "with model mlp, hidden=8; this plan has hidden=9"),
    ],
)
def test_another_plan_is_refused_and_nothing_changes(
    copied: Path, step: str, settings: dict[str, Any], message: str
) -> None:
    before = times(copied), contents(copied)
    with pytest.raises(InputError, match=f"holds shadow models {message}"):
        start(step, copied, small_plan(**settings))
    assert (times(copied), contents(copied)) == before


def test_another_graph_is_refused(copied: Path) -> None:
    before = times(copied)
    other = Pipeline(Subject(leaky_graph(47), "", small_plan()), Workspace(copied), QUIET)
    with (
        pytest.raises(InputError, match=r"holds shadow models of a graph with 48 nodes and .*; this one has 47 nodes"),
        other.prepared(),
    ):
        other.report()
    assert times(copied) == before


@pytest.mark.parametrize("step", ["audit", "train", "sample"])
def test_folders_of_others_are_refused(tmp_path: Path, step: str) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds files that are not an audit's; use a new folder"):
        start(step, tmp_path, small_plan())
    assert list(times(tmp_path)) == ["letter.txt"]
    with pytest.raises(InputError, match=r"letter.txt is a file, not a folder"):
        start(step, tmp_path / "letter.txt", small_plan())


def test_samples_of_another_plan_are_refused(tmp_path: Path) -> None:
    start("sample", tmp_path, small_plan())
    before = times(tmp_path)
    for step in ("audit", "train", "sample"):
        with pytest.raises(InputError, match="holds samples of another graph, sampler or seed: use a new folder"):
            start(step, tmp_path, small_plan(seed=3))
    assert times(tmp_path) == before
    start("sample", tmp_path, small_plan(shadows=60))
    with np.load(tmp_path / "memberships.npz") as archive:
        assert archive["memberships"].shape == (60, 48)


def test_own_files_survive(copied: Path) -> None:
    own = ["thesis.tex", "counts/mine.parquet", "posteriors/mine.npz", "figures/mine.pdf", ".hidden"]
    for name in own:
        (copied / name).write_text("mine")
    run_audit(copied, small_plan(rules="weak", definitions="mp"), pictures=True)
    run_audit(copied, small_plan(rules="weak", definitions="mp", shadows=44))
    assert [(copied / name).read_text() for name in own] == ["mine"] * len(own)
