"""An audit on disk: what is written, and how one enters and leaves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_audit import contents, leaky_graph, small_plan, small_subject, stamps

from bmpaudit import DataError, ErrorCounts, InputError, Posterior
from bmpaudit.auditing import audit, report_step, steps
from bmpaudit.auditing.folder import AuditFolder
from bmpaudit.auditing.steps import (
    Subject,
    attack_step,
    estimate_step,
    read_runs_file,
    run_audit,
    sample_step,
    train_step,
)
from bmpaudit.plan import AttackSettings, Runtime, read_plan
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow import ALL_VIEWS, MLP, ShadowRuns

QUIET = Runtime()
SUMMARY_KEYS = {
    "format": int,
    "bmpaudit": str,
    "fingerprint": str,
    "title": str,
    "verdict": str,
    "headline": list,
    "cautions": list,
    "is_not": list,
    "graph": dict,
    "plan": dict,
    "shadow_models": dict,
    "nodes": dict,
    "null_control": dict,
    "variants": dict,
    "drivers": dict,
    "timings": dict,
}


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def summary_of(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "summary.json").read_text(), parse_constant=refuse_constant)
    return told


def without_timings(told: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in told.items() if name != "timings"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished audit, to look at or to copy."""
    path = tmp_path_factory.mktemp("audits") / "finished"
    run_audit(small_subject(path), QUIET)
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to change."""
    return Path(shutil.copytree(finished, tmp_path / "copied"))


# What is there


def test_all_documented_files_are_there_and_no_other(finished: Path) -> None:
    names = {name for name in stamps(finished) if not name.startswith(("shadows/", "figures/"))}
    variants = [f"{view}_{decision}" for view in ("full_clean", "none_noisy") for decision in ("strong", "weak")]
    assert names == {
        *("plan.toml", "graph.npz", "shadows.json", "priors.parquet", "attack.json", "nodes.parquet", "summary.json"),
        *("tables.md", "tables.tex", "report.html"),
        *(f"counts/{variant}{split}.parquet" for variant in variants for split in ("", "_split")),
        *(f"counts/null_{name}.parquet" for name in ("control", "00", "01", "02")),
        *(f"posteriors/{variant}_{definition}.npz" for variant in variants for definition in ("bmp-r", "mp")),
    }
    pictures = {path.stem for path in (finished / "figures").iterdir()}
    assert {"posteriors", "prior_against_epsilon", "roc", "variants", "null_control"} <= pictures
    for name in pictures:
        assert (finished / "figures" / f"{name}.pdf").stat().st_size > 1000
        assert (finished / "figures" / f"{name}.png").stat().st_size > 1000


def test_summary_is_json_with_all_documented_keys(finished: Path) -> None:
    told = summary_of(finished)
    assert {name: type(part) for name, part in told.items()} == SUMMARY_KEYS
    assert told["format"] == 1
    assert {name: len(part) for name, part in told["variants"].items()} == dict.fromkeys(
        ("full_clean_strong", "full_clean_weak", "none_noisy_strong", "none_noisy_weak"), 6
    )
    page = (Path(__file__).parents[2] / "docs" / "audit-folder.md").read_text()
    for key in documented_keys(told):
        assert f"`{key}`" in page, f"docs/audit-folder.md says nothing of {key}"


def documented_keys(told: dict[str, Any]) -> list[str]:
    """Of all levels that have names of their own."""
    inner = ["graph", "shadow_models", "nodes", "null_control"]
    keys = [*told, *(key for name in inner for key in told[name]), *told["headline"][0]]
    variant = next(iter(told["variants"].values()))
    return [*keys, *variant, *variant["errors"], *variant["proven"]]


def test_infinite_values_are_texts(tmp_path: Path) -> None:
    """A node that is in every sample has infinite prior odds, which JSON has no number for."""
    subject = small_subject(tmp_path, sampler=always_the_first, prior_draws=50, definitions=("mp",))
    assert summary_of_after(subject)["nodes"]["not_auditable"] >= 1


def summary_of_after(subject: Subject) -> dict[str, Any]:
    run_audit(subject, QUIET, pictures=False)
    return summary_of(subject.folder.path)


def always_the_first(graph: Any, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([[0], 1 + rng.permutation(graph.num_nodes - 1)[: graph.num_nodes // 2]])


def test_nodes_table_is_that_of_the_audit(finished: Path) -> None:
    expected = audit(leaky_graph(), small_plan()).nodes
    pd.testing.assert_frame_equal(AuditFolder(finished).read_nodes(), expected, check_dtype=False)
    page = (Path(__file__).parents[2] / "docs" / "audit-folder.md").read_text()
    for name in expected:
        assert f"`{name}`" in page, f"docs/audit-folder.md says nothing of {name}"


def test_tables_hold_the_quantiles_of_the_posteriors(finished: Path) -> None:
    markdown = [line.strip("| ").split(" | ") for line in (finished / "tables.md").read_text().splitlines()]
    latex = [line.removesuffix(r" \\").split(" & ") for line in (finished / "tables.tex").read_text().splitlines()]
    assert markdown[0] == ["attack", "bmp-r ε_R", "mp ε"]
    assert latex[2] == ["attack", r"bmp-r $\varepsilon_R$", r"mp $\varepsilon$"]
    for number, variant in enumerate(small_plan().variants):
        cells = []
        for definition in ("bmp-r", "mp"):
            posterior = Posterior.load(finished / "posteriors" / f"{variant.name}_{definition}.npz")
            cells.append("/".join(f"{quantile:.1f}" for quantile in posterior.quantile([0.05, 0.5, 0.95])))
        assert markdown[2 + number] == latex[4 + number] == [variant.label, *cells]


def test_posteriors_and_counts_load(finished: Path) -> None:
    told = summary_of(finished)
    for variant, found in told["variants"].items():
        counts = ErrorCounts.from_table(finished / "counts" / f"{variant}.parquet")
        assert found["errors"]["false_positives"] == counts.false_positives.sum()
        assert found["errors"]["num_in"] == counts.num_in.sum()
        posterior = Posterior.load(finished / "posteriors" / f"{variant}_mp.npz")
        assert posterior.summary()["epsilon"]["p50"] == found["posteriors"]["mp"]["epsilon"]["p50"]


def test_plan_and_graph_come_back(finished: Path) -> None:
    subject = Subject.read(finished)
    assert subject.plan == small_plan()
    assert subject.graph.content_hash == leaky_graph().content_hash


# Again, more, and others


def test_again_is_a_no_op(finished: Path) -> None:
    before = stamps(finished)
    for subject in (small_subject(finished), Subject.read(finished)):
        told = run_audit(subject, QUIET)
        assert told == summary_of(finished)
        run_audit(subject, QUIET, pictures=False)
    assert stamps(finished) == before


def test_more_shadows_extend_and_keep_the_first(copied: Path) -> None:
    first = AuditFolder(copied).read_runs(leaky_graph(), small_plan())
    told = run_audit(small_subject(copied, num_shadows=50), QUIET, pictures=False)
    runs = AuditFolder(copied).read_runs(leaky_graph(), small_plan(num_shadows=50))
    assert told["shadow_models"]["trained"] == runs.num_models == 50
    np.testing.assert_array_equal(runs.memberships[:40], first.memberships)
    for view, margins in first.statistics.items():
        np.testing.assert_array_equal(runs.statistics[view][:40], margins)
    assert read_plan(copied / "plan.toml").plan.num_shadows == 50
    assert told["fingerprint"] in (copied / "report.html").read_text()
    # Pictures of 40 models beside a page of 50 would deceive.
    assert list((copied / "figures").iterdir()) == []


def test_extending_gives_what_all_at_once_gives(copied: Path, tmp_path: Path) -> None:
    extended = run_audit(small_subject(copied, num_shadows=44), QUIET, pictures=False)
    at_once = run_audit(small_subject(tmp_path / "new", num_shadows=44), QUIET, pictures=False)
    assert without_timings(extended) == without_timings(at_once)


def test_other_estimates_of_the_same_models_leave_nothing_behind(copied: Path) -> None:
    run_audit(small_subject(copied, definitions=("bmp-l",), decisions=("weak",)), QUIET, pictures=False)
    assert sorted(path.name for path in (copied / "posteriors").iterdir()) == [
        "full_clean_weak_bmp-l.npz",
        "none_noisy_weak_bmp-l.npz",
    ]
    assert not (copied / "counts" / "full_clean_strong.parquet").exists()


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"seed": 1}, "seed is 0 there and 1 here"), ({"model": MLP(hidden=9)}, "model.hidden is 8 there and 9 here")],
)
@pytest.mark.parametrize("step", [run_audit, train_step, sample_step])
def test_another_plan_is_refused_and_nothing_changes(
    finished: Path, step: Callable[[Subject, Runtime], Any], settings: dict[str, Any], told: str
) -> None:
    before = stamps(finished), contents(finished)
    with pytest.raises(InputError, match=f"holds shadow models of another plan: {told}"):
        step(small_subject(finished, **settings), QUIET)
    assert (stamps(finished), contents(finished)) == before


def test_another_graph_is_refused(finished: Path) -> None:
    before = stamps(finished)
    with pytest.raises(InputError, match=r"holds shadow models of another plan: graph.content_hash"):
        run_audit(replace(small_subject(finished), graph=leaky_graph(47)), QUIET)
    assert stamps(finished) == before


@pytest.mark.parametrize("step", [run_audit, train_step, sample_step])
def test_foreign_files_are_refused(tmp_path: Path, step: Callable[[Subject, Runtime], Any]) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds files that are not an audit's; use a new folder"):
        step(small_subject(tmp_path), QUIET)
    assert list(stamps(tmp_path)) == ["letter.txt"]
    with pytest.raises(InputError, match=r"letter.txt is a file, not a folder"):
        step(small_subject(tmp_path / "letter.txt"), QUIET)


def test_samples_of_another_plan_are_refused(tmp_path: Path) -> None:
    sample_step(small_subject(tmp_path), QUIET)
    before = stamps(tmp_path)
    for step in (run_audit, train_step, sample_step):
        with pytest.raises(InputError, match="holds samples of another graph, sampler or seed; use a new folder"):
            step(small_subject(tmp_path, seed=3), QUIET)
    assert stamps(tmp_path) == before
    sample_step(small_subject(tmp_path, num_shadows=60), QUIET)
    with np.load(tmp_path / "memberships.npz") as archive:
        assert archive["memberships"].shape == (60, 48)


# Step by step


def test_steps_give_what_the_whole_gives(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "steps"
    sample_step(small_subject(path), QUIET)
    runs = train_step(Subject.read(path), QUIET)
    with np.load(path / "memberships.npz") as archive:
        np.testing.assert_array_equal(archive["memberships"], runs.memberships)
    attack_step(Subject.read(path), QUIET)
    assert not (path / "summary.json").exists()
    estimate_step(Subject.read(path), QUIET)
    page = report_step_of(path)
    assert page == path / "report.html"
    told, expected = summary_of(path), summary_of(finished)
    # A graph given as an object has no source; once on disk it has.
    assert (expected["graph"].pop("source"), told["graph"].pop("source")) == ("", "graph.npz")
    assert (expected["plan"].pop("graph"), told["plan"].pop("graph")) == ("", "graph.npz")
    assert without_timings(told) == without_timings(expected)
    names = ("counts", "posteriors", "nodes.parquet", "priors.parquet", "tables.md", "tables.tex", "attack.json")
    mine, theirs = contents(path), contents(finished)
    for name in theirs:
        if name.startswith(names):
            assert mine[name] == theirs[name], name


def report_step_of(path: Path) -> Path:
    return steps.report_step(Subject.read(path), QUIET, pictures=False)


@pytest.mark.parametrize("broken", ["run_attacks", "run_estimates", "page"])
def test_interrupted_between_steps_it_goes_on(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if broken == "page":
            patch.setattr(report_step, "render_page", stop)
        else:
            patch.setattr(import_module("bmpaudit.auditing.audit"), broken, stop)
        with pytest.raises(KeyboardInterrupt):
            run_audit(small_subject(tmp_path), QUIET, pictures=False)
    assert not (tmp_path / "report.html").exists()
    kept = {name: stamp for name, stamp in stamps(tmp_path).items() if name.startswith("shadows")}
    told = run_audit(small_subject(tmp_path), QUIET, pictures=False)
    assert without_timings(told) == without_timings(summary_of(finished))
    assert {name: stamps(tmp_path)[name] for name in kept} == kept
    assert told["fingerprint"] in (tmp_path / "report.html").read_text()


def test_a_page_of_fewer_models_is_written_anew(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the new summary and before the new page."""
    old = (copied / "report.html").read_text()

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(report_step, "render_page", stop)
        with pytest.raises(KeyboardInterrupt):
            run_audit(small_subject(copied, num_shadows=44), QUIET, pictures=False)
    assert (copied / "report.html").read_text() == old
    told = run_audit(small_subject(copied, num_shadows=44), QUIET, pictures=False)
    assert told["fingerprint"] in (copied / "report.html").read_text()


def test_steps_refuse_what_is_of_other_models(copied: Path) -> None:
    train_step(small_subject(copied, num_shadows=44), QUIET)
    with pytest.raises(DataError, match="the errors there are of another plan or other models: bmpaudit attack"):
        estimate_step(Subject.read(copied), QUIET)
    with pytest.raises(DataError, match="the estimates there are of another plan or other models: bmpaudit estimate"):
        report_step_of(copied)
    attack_step(Subject.read(copied), QUIET)
    with pytest.raises(DataError, match="the estimates there are of another plan or other models: bmpaudit estimate"):
        report_step_of(copied)
    estimate_step(Subject.read(copied), QUIET)
    report_step_of(copied)


def test_steps_that_come_too_early_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is no folder of an audit: it has no plan.toml"):
        Subject.read(tmp_path)
    subject = small_subject(tmp_path)
    with pytest.raises(DataError, match="has no shadow models yet: bmpaudit train"):
        attack_step(subject, QUIET)
    with pytest.raises(DataError, match=r"has no attack.json yet: bmpaudit attack"):
        estimate_step(subject, QUIET)
    with pytest.raises(DataError, match=r"has no summary.json yet: bmpaudit estimate"):
        report_step_of_subject(subject)
    with pytest.raises(DataError, match=r"has no nodes.parquet yet: bmpaudit estimate"):
        subject.folder.read_nodes()
    train_step(subject, QUIET)
    with pytest.raises(DataError, match="has 40 of 60 shadow models: bmpaudit train"):
        attack_step(small_subject(tmp_path, num_shadows=60), QUIET)
    with pytest.raises(InputError, match=r"was attacked with other variants|has no attack.json yet"):
        estimate_step(subject, QUIET)


def report_step_of_subject(subject: Subject) -> Path:
    return steps.report_step(subject, QUIET, pictures=False)


# Models trained elsewhere


def test_models_trained_elsewhere(finished: Path, tmp_path: Path) -> None:
    graph, plan = leaky_graph(), small_plan()
    sample_step(small_subject(tmp_path), QUIET)
    with np.load(tmp_path / "memberships.npz") as archive:
        memberships = archive["memberships"]
    runs = AuditFolder(finished).read_runs(graph, plan)
    arrays: dict[str, Any] = {"memberships": memberships.astype(np.uint8), **runs.statistics}
    np.savez(tmp_path / "runs.npz", **arrays)
    path = tmp_path / "runs.npz"
    attack_step(Subject.read(tmp_path), QUIET, path)
    estimate_step(Subject.read(tmp_path), QUIET, path)
    page = steps.report_step(Subject.read(tmp_path), QUIET, path, pictures=False)
    told, expected = summary_of(tmp_path), summary_of(finished)
    for name in ("headline", "variants", "null_control", "nodes", "fingerprint"):
        assert told[name] == expected[name]
    assert told["shadow_models"]["train_accuracy"] is None
    assert told["fingerprint"] in page.read_text()
    # Other models of the same size are not taken for these.
    np.savez(tmp_path / "others.npz", **(arrays | {"full_clean": arrays["full_clean"] + 1}))
    with pytest.raises(DataError, match="the errors there are of another plan or other models"):
        estimate_step(Subject.read(tmp_path), QUIET, tmp_path / "others.npz")


def test_logits_and_views_of_ones_own_choice(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sample_step(small_subject(tmp_path), QUIET)
    memberships = draw_memberships(leaky_graph(), small_plan().sampler, 30, seed=9)
    logits = rng.normal(size=(30, 48, 3))
    np.savez(tmp_path / "runs.npz", memberships=memberships, none_noisy=logits, full_clean=rng.normal(size=(30, 48)))
    attack_step(Subject.read(tmp_path), QUIET, tmp_path / "runs.npz")
    plan = read_plan(tmp_path / "plan.toml").plan
    assert [view.name for view in plan.views] == ["full_clean", "none_noisy"]
    assert plan.num_shadows == 30
    told = estimate_step(Subject.read(tmp_path), QUIET, tmp_path / "runs.npz").summary
    assert set(told["variants"]) == {variant.name for variant in plan.variants}
    expected = ShadowRuns.from_arrays(memberships, {"none_noisy": logits}, leaky_graph().labels)
    found = read_runs_file(tmp_path / "runs.npz", leaky_graph())
    np.testing.assert_array_equal(found.statistics["none_noisy"], expected.statistics["none_noisy"])


def test_a_folder_with_models_of_its_own_takes_no_others(copied: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "runs.npz", memberships=np.ones((5, 48)), full_clean=np.ones((5, 48)))
    before = stamps(copied)
    with pytest.raises(InputError, match="has shadow models of its own; attack others in a new folder"):
        attack_step(Subject.read(copied), QUIET, tmp_path / "runs.npz")
    assert stamps(copied) == before


IN = np.ones((5, 48), dtype=np.bool_)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"full_clean": IN}, "memberships is missing; found full_clean"),
        ({"memberships": IN}, f"no view; at least one of {', '.join(view.name for view in ALL_VIEWS)} is needed"),
        ({"memberships": IN, "full": IN}, "unknown view 'full'; views are full_clean, "),
        ({"memberships": IN[:, :40], "full_clean": IN}, "memberships are of 40 nodes, the graph has 48"),
        (
            {"memberships": IN[0], "full_clean": IN},
            r"memberships must have shape \(num_models, num_nodes\), got \(48,\)",
        ),
        ({"memberships": 2 * IN, "full_clean": IN}, "memberships must be booleans, or 0 and 1"),
        ({"memberships": IN, "full_clean": IN[:4]}, "view full_clean: must have shape "),
        ({"memberships": IN, "full_clean": np.where(IN, np.nan, 0)}, "view full_clean: must be finite, got nan"),
    ],
)
def test_wrong_files_of_models_are_told(arrays: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=f"^{path}: {told}"):
        read_runs_file(path, leaky_graph())


def test_missing_or_damaged_files_of_models_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"runs.npz: no such file$"):
        read_runs_file(tmp_path / "runs.npz", leaky_graph())
    np.savez_compressed(tmp_path / "whole.npz", memberships=IN, full_clean=np.random.default_rng(0).random((5, 48)))
    whole = (tmp_path / "whole.npz").read_bytes()
    np.save(tmp_path / "single.npy", IN)
    np.savez(tmp_path / "objects.npz", memberships=np.array([{}], dtype=object))
    for content in (
        b"",
        b"nonsense",
        whole[: len(whole) // 2],
        whole[:200] + bytes(50) + whole[250:],
        (tmp_path / "single.npy").read_bytes(),
        (tmp_path / "objects.npz").read_bytes(),
    ):
        (tmp_path / "runs.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"runs.npz: damaged or not an .npz archive: "):
            read_runs_file(tmp_path / "runs.npz", leaky_graph())


# Damage


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("attack.json", estimate_step),
        ("priors.parquet", estimate_step),
        ("counts/full_clean_strong.parquet", estimate_step),
        ("counts/null_01.parquet", estimate_step),
        ("summary.json", report_step_of_subject),
        ("posteriors/full_clean_weak_mp.npz", report_step_of_subject),
        ("graph.npz", lambda subject, _: Subject.read(subject.folder.path)),
        ("plan.toml", lambda subject, _: Subject.read(subject.folder.path)),
        ("nodes.parquet", lambda subject, _: subject.folder.read_nodes()),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"{}", b"nonsense"])
def test_damage_is_told_in_one_line(
    finished: Path, tmp_path: Path, name: str, step: Callable[..., Any], content: bytes | None
) -> None:
    path = tmp_path / "copied"
    shutil.copytree(finished, path, ignore=shutil.ignore_patterns("figures", "report.html"))
    if content is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content)
    subject = small_subject(path)
    if step is report_step_of_subject:
        step = report_only
    if (name, content) == ("plan.toml", b""):  # which would be the default plan
        (path / name).write_bytes(b"shadows = 0")
    with pytest.raises(InputError) as wrong:
        step(subject, QUIET)
    assert str(path) in str(wrong.value)
    assert "\n" not in str(wrong.value)


def report_only(subject: Subject, _: Runtime) -> Path:
    return report_step_of_subject(subject)


@pytest.mark.parametrize("name", ["attack.json", "summary.json", "posteriors/full_clean_weak_mp.npz", "report.html"])
def test_the_whole_audit_mends_damage(copied: Path, finished: Path, name: str) -> None:
    (copied / "report.html").unlink()
    (copied / name).write_bytes(b"nonsense")
    told = run_audit(small_subject(copied), QUIET, pictures=False)
    assert without_timings(told) == without_timings(summary_of(finished))
    assert told["fingerprint"] in (copied / "report.html").read_text()


def test_settings_of_the_attack_count(copied: Path) -> None:
    subject = small_subject(copied, attack=AttackSettings(min_models=4))
    with pytest.raises(DataError, match="of another plan or other models: bmpaudit attack"):
        estimate_step(subject, QUIET)
