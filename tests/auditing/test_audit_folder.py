"""An audit on disk: what is written, what a later run does with it, and one step after the other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_audit import (
    QUIET,
    contents,
    leaky_graph,
    pipeline,
    run_audit,
    run_step,
    small_plan,
    summary_of,
    times,
    tiny_plan,
    without_timings,
)

from bmpaudit import Audit, DataError, ErrorCounts, InputError, Pipeline, Posterior, Subject, Workspace, audit
from bmpaudit.attack import Gaussian
from bmpaudit.auditing import report_step, stamps
from bmpaudit.auditing.plan_file import read_plan
from bmpaudit.auditing.stored import read_nodes, read_runs, stored_subject
from bmpaudit.auditing.variant import variants
from bmpaudit.shadow import MLP

SUMMARY_KEYS = {
    "format": int,
    "bmpaudit": str,
    "fingerprint": str,
    "title": str,
    "verdict": str,
    "is_leakage_found": bool,
    "answer": dict,
    "next": list,
    "releases": dict,
    "headline": list,
    "cautions": list,
    "is_not": list,
    "graph": dict,
    "plan": dict,
    "shadow_models": dict,
    "priors": dict,
    "nodes": dict,
    "permutation_test": dict,
    "variants": dict,
    "drivers": dict,
    "notes": list,
    "timings": dict,
}
NAMES = [f"{view}_{rule}" for view in ("full_clean", "none_clean") for rule in ("strong", "weak")]
DOCUMENTED = Path(__file__).parents[2] / "docs" / "audit-folder.md"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished audit, to look at or to copy."""
    path = tmp_path_factory.mktemp("audits") / "finished"
    run_audit(path, pictures=True)
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(finished, tmp_path / "copied"))


# What is there


def test_all_documented_files_are_there_and_no_other(finished: Path) -> None:
    names = {name for name in times(finished) if not name.startswith(("shadows/", "figures/"))}
    assert names == {
        *("manifest.json", "plan.toml", "graph.npz", "shadows.json", "priors.parquet", "attack.json", "nodes.parquet"),
        *("summary.json", "tables.md", "tables.tex", "report.html"),
        *(f"counts/{variant}.parquet" for variant in (*NAMES, "half")),
        "proof/clean.npz",
        *(f"posteriors/{variant}_{definition}.npz" for variant in NAMES for definition in ("bmp-r", "mp")),
    }
    pictures = {path.stem for path in (finished / "figures").iterdir()}
    assert {"posteriors", "prior_against_epsilon", "roc", "variants", "permutation_test"} <= pictures
    for name in pictures:
        assert (finished / "figures" / f"{name}.pdf").stat().st_size > 1000
        assert (finished / "figures" / f"{name}.png").stat().st_size > 1000


def test_summary_is_json_with_all_documented_keys(finished: Path) -> None:
    summary = summary_of(finished)
    assert {name: type(part) for name, part in summary.items()} == SUMMARY_KEYS
    assert summary["format"] == 3
    assert {name: len(part) for name, part in summary["variants"].items()} == dict.fromkeys(NAMES, 5)
    page = DOCUMENTED.read_text()
    inner = ("answer", "graph", "shadow_models", "nodes", "permutation_test")
    variant = summary["variants"]["full_clean_strong"]
    for key in (
        *(*summary, *(key for name in inner for key in summary[name]), *summary["headline"][0]),
        *(*variant, *variant["errors"], *summary["releases"]["clean"]),
    ):
        assert f"`{key}`" in page, f"docs/audit-folder.md says nothing of {key}"


def test_infinite_values_are_texts(tmp_path: Path) -> None:
    """A node that is in every sample has infinite prior odds, which JSON has no number for."""
    run_audit(tmp_path, small_plan(sampler=always_the_first, prior_draws=50, definitions="mp"))
    assert summary_of(tmp_path)["nodes"]["not_auditable"] >= 1


def always_the_first(graph: Any, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([[0], 1 + rng.permutation(graph.num_nodes - 1)[: graph.num_nodes // 2]])


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
        assert posterior.summary()["epsilon"]["p50"] == row["posteriors"]["mp"]["epsilon"]["p50"]


def test_plan_and_graph_come_back(finished: Path) -> None:
    subject = stored_subject(Workspace(finished))
    assert subject.plan == small_plan()
    assert subject.graph.content_hash == leaky_graph().content_hash


# Again, more, and others


def test_again_is_a_no_op(finished: Path) -> None:
    before = times(finished)
    for pictures in (True, False):
        assert run_audit(finished, pictures=pictures).summary == summary_of(finished)
        run_step(finished, "report", pictures=pictures)
    for step in ("train", "attack", "estimate"):
        run_step(finished, step)
    Audit.load(finished)
    assert times(finished) == before


def test_another_build_computes_everything_again(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = times(copied)
    monkeypatch.setattr(stamps, "build_id", lambda: "another")
    for module in ("pipeline", "page_data"):
        monkeypatch.setattr(import_module(f"bmpaudit.auditing.{module}"), "build_id", lambda: "another")
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
    shutil.copytree(Path(stamps.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(stamps, "__file__", str(package / "auditing" / "stamps.py"))
    ids = {stamps.build_id.__wrapped__()}
    for path in (package / "estimation" / "lower_bound.py", next(package.glob("_native/*.so"))):
        with path.open("ab") as file:
            file.write(b"\n")
        ids.add(stamps.build_id.__wrapped__())
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


def test_fewer_shadows_are_refused_and_nothing_is_lost(finished: Path) -> None:
    before = times(finished)
    with pytest.raises(InputError, match="holds results of 40 shadow models; 12 would replace them by fewer"):
        run_audit(finished, small_plan(shadows=12))
    assert times(finished) == before


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
    finished: Path, step: str, settings: dict[str, Any], message: str
) -> None:
    before = times(finished), contents(finished)
    with pytest.raises(InputError, match=f"holds shadow models {message}"):
        start(step, finished, small_plan(**settings))
    assert (times(finished), contents(finished)) == before


def start(step: str, path: Path, plan: Any) -> None:
    """A step that may begin a folder."""
    steps = pipeline(path, plan)
    with steps.prepared():
        actions: dict[str, Callable[[], Any]] = {
            "audit": steps.report,
            "train": lambda: steps.runs,
            "sample": steps.sample,
        }
        actions[step]()


def test_another_graph_is_refused(finished: Path) -> None:
    before = times(finished)
    other = Pipeline(Subject(leaky_graph(47), "", small_plan()), Workspace(finished), QUIET)
    with (
        pytest.raises(InputError, match=r"holds shadow models of a graph with 48 nodes, .*; this one has 47 nodes"),
        other.prepared(),
    ):
        other.report()
    assert times(finished) == before


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


# Step by step


def test_steps_give_what_the_whole_gives(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "steps"
    start("sample", path, small_plan())
    runs = run_step(path, "train")
    with np.load(path / "memberships.npz") as archive:
        np.testing.assert_array_equal(archive["memberships"], runs.memberships)
    run_step(path, "attack")
    assert not (path / "summary.json").exists()
    run_step(path, "estimate")
    assert run_step(path, "report") == path / "report.html"
    summary, expected = summary_of(path), summary_of(finished)
    # A graph given as an object has no source; once on disk it has.
    assert (expected["graph"].pop("source"), summary["graph"].pop("source")) == ("", "graph.npz")
    assert (expected["plan"].pop("graph"), summary["plan"].pop("graph")) == ("", "graph.npz")
    assert without_timings(summary) == without_timings(expected)
    names = ("counts", "posteriors", "nodes.parquet", "priors.parquet", "tables.md", "tables.tex", "attack.json")
    mine, theirs = contents(path), contents(finished)
    for name in theirs:
        if name.startswith(names):
            assert mine[name] == theirs[name], name


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("module", "function"), [("pipeline", "run_attacks"), ("pipeline", "run_estimates"), ("report_step", "render_page")]
)
def test_a_stopped_audit_resumes(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, function: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(import_module(f"bmpaudit.auditing.{module}"), function, stop)
        with pytest.raises(KeyboardInterrupt):
            run_audit(tmp_path)
    assert not (tmp_path / "report.html").exists()
    kept = {name: time for name, time in times(tmp_path).items() if name.startswith("shadows")}
    assert without_timings(run_audit(tmp_path).summary) == without_timings(summary_of(finished))
    assert {name: times(tmp_path)[name] for name in kept} == kept
    assert (tmp_path / "report.html").exists()


def test_a_page_of_fewer_models_does_not_stay(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the new summary and before the new page."""
    with monkeypatch.context() as patch:
        patch.setattr(report_step, "render_page", stop)
        with pytest.raises(KeyboardInterrupt):
            run_audit(copied, small_plan(shadows=44))
    assert not (copied / "report.html").exists()
    run_audit(copied, small_plan(shadows=44))
    assert "44, 0 failed" in (copied / "report.html").read_text()


def test_steps_refuse_what_is_of_other_models(copied: Path) -> None:
    start("train", copied, small_plan(shadows=44))
    for step, message in (("estimate", "attack"), ("report", "attack")):
        with pytest.raises(DataError, match=f"its attack step was made with another plan: run bmpaudit {message}"):
            run_step(copied, step)
    for read in (Audit.load, lambda path: read_nodes(Workspace(path))):
        with pytest.raises(DataError, match="its estimate step was made with another plan: run bmpaudit estimate"):
            read(copied)
    run_step(copied, "attack")
    with pytest.raises(DataError, match="has no estimate step yet: run bmpaudit estimate"):
        run_step(copied, "report")
    run_step(copied, "estimate")
    run_step(copied, "report")


def test_steps_refuse_models_that_were_exchanged(copied: Path, tmp_path: Path) -> None:
    """Whole, of the same plan by every name, but not the models that were attacked."""
    other = tmp_path / "other"
    run_audit(other, small_plan(sampler=always_the_first, prior_draws=50))
    for name in ("shadows", "shadows.json"):
        target = copied / name
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        source = other / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    text = (copied / "shadows.json").read_text()
    described = small_plan().shadow_plan.describe(leaky_graph())
    (copied / "shadows.json").write_text(json.dumps({**json.loads(text), "sampler": described["sampler"]}))
    for step in ("estimate", "report"):
        with pytest.raises(DataError, match="was made from another graph or other shadow models: run bmpaudit attack"):
            run_step(copied, step)
    with pytest.raises(DataError, match="its results are of other shadow models: run bmpaudit attack again"):
        Audit.load(copied).runs  # noqa: B018


def test_steps_that_come_too_early_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not an audit folder: it has no plan.toml"):
        stored_subject(Workspace(tmp_path))
    start("sample", tmp_path, small_plan())
    with pytest.raises(DataError, match="has no shadow models yet: run bmpaudit train"):
        run_step(tmp_path, "attack")
    run_step(tmp_path, "train")
    for step, missing, command in (("estimate", "attack", "attack"), ("report", "attack", "attack")):
        with pytest.raises(DataError, match=f"has no {missing} step yet: run bmpaudit {command}"):
            run_step(tmp_path, step)
    with pytest.raises(DataError, match="has no estimate step yet: run bmpaudit estimate"):
        read_nodes(Workspace(tmp_path))
    steps = pipeline(tmp_path, small_plan(shadows=60), may_run=("attack",))
    with pytest.raises(DataError, match="has 40 of 60 shadow models: run bmpaudit train"), steps.prepared():
        steps.attacks  # noqa: B018


def test_settings_of_the_attack_count(copied: Path) -> None:
    steps = pipeline(copied, small_plan(attack=Gaussian(min_models=4)), may_run=("estimate",))
    with pytest.raises(DataError, match="its attack step was made with another plan"), steps.prepared():
        steps.audit  # noqa: B018


# Damage


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("attack.json", "estimate"),
        ("priors.parquet", "estimate"),
        ("counts/full_clean_strong.parquet", "estimate"),
        ("counts/half.parquet", "estimate"),
        ("proof/clean.npz", "estimate"),
        ("summary.json", "report"),
        ("posteriors/full_clean_weak_mp.npz", "report"),
        ("graph.npz", "report"),
        ("plan.toml", "report"),
        ("nodes.parquet", "report"),
        ("manifest.json", "report"),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"{}", b"nonsense"])
def test_damage_is_reported_in_one_line(
    finished: Path, tmp_path: Path, name: str, step: str, content: bytes | None
) -> None:
    path = tmp_path / "copied"
    shutil.copytree(finished, path, ignore=shutil.ignore_patterns("figures", "report.html"))
    if content is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content)
    if (name, content) == ("plan.toml", b""):  # which would be the default plan
        (path / name).write_bytes(b"shadows = 0")
    readers: list[Callable[[], Any]] = [lambda: run_step(path, step), lambda: Audit.load(path)]
    if name == "graph.npz":
        readers[1] = lambda: Audit.load(path).graph
    for read in readers:
        with pytest.raises(InputError) as wrong:
            read()
        assert str(path) in str(wrong.value)
        assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("damage", ["removed", "changed"])
@pytest.mark.parametrize(
    "name",
    [
        *("graph.npz", "priors.parquet", "attack.json", "counts/none_clean_weak.parquet", "summary.json"),
        *(
            "counts/half.parquet",
            "proof/clean.npz",
            "nodes.parquet",
            "posteriors/full_clean_weak_mp.npz",
            "report.html",
        ),
        *("tables.tex", "figures/roc.pdf", "figures/posteriors.png"),
    ],
)
def test_the_next_run_restores_what_was_lost(copied: Path, finished: Path, name: str, damage: str) -> None:
    path, expected = copied / name, contents(finished)
    path.unlink() if damage == "removed" else path.write_bytes(b"nonsense")
    result = run_audit(copied, pictures=name.startswith("figures"))
    assert without_timings(result.summary) == without_timings(summary_of(finished))
    after = contents(copied)
    with_dates = ("summary.json", "report.html", "graph.npz", "figures/")
    if name.startswith(with_dates):
        assert path.stat().st_size > 1000
    else:
        assert after[name] == expected[name]
    assert Audit.load(copied).graph.content_hash == leaky_graph().content_hash


def test_a_folder_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"format": 1}')
    (tmp_path / "plan.toml").write_text("")
    with pytest.raises(DataError, match="was made by an earlier version of bmpaudit: use a new folder"):
        Audit.load(tmp_path)
    assert summary_of(tmp_path) == {"format": 1}


def test_without_its_manifest_everything_but_the_models_is_made_again(copied: Path, finished: Path) -> None:
    (copied / "manifest.json").unlink()
    with pytest.raises(DataError, match="has no estimate step yet"):
        Audit.load(copied)
    result = run_audit(copied)
    assert without_timings(result.summary) == without_timings(summary_of(finished))


def test_a_lock_alone_is_no_foreign_file(tmp_path: Path) -> None:
    """A process that was killed before it wrote anything leaves the lock, and perhaps a half-written file."""
    for name in (".lock", ".manifest.partial-abcd1234.json"):
        (tmp_path / name).touch()
    run_audit(tmp_path, tiny_plan())
    assert Audit.load(tmp_path).plan == tiny_plan()
    assert not (tmp_path / ".manifest.partial-abcd1234.json").exists()


def test_sampling_again_leaves_a_finished_audit_alone(tmp_path: Path) -> None:
    subject, workspace = Subject(leaky_graph(), "", small_plan()), Workspace(tmp_path)
    first = Pipeline(subject, workspace, QUIET)
    with first.prepared():
        first.sample()
        first.report(pictures=False)
    before = times(tmp_path)
    again = Pipeline(subject, workspace, QUIET)
    with again.prepared():
        again.sample()
    assert times(tmp_path) == before
