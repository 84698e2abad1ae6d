"""Models that were trained elsewhere: what is recorded of them, checked and refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audit import (
    QUIET,
    contents,
    leaky_graph,
    page_texts,
    pipeline,
    run_audit,
    run_step,
    small_plan,
    summary_of,
    times,
)

from bmpaudit.auditing.context import variants
from bmpaudit.auditing.finished import Audit, stored_subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.pipeline.outside_runs import import_runs, read_runs_file
from bmpaudit.plan import read_plan
from bmpaudit.registry import ENTRIES
from bmpaudit.report.page_data import page_data
from bmpaudit.samplers import draw_memberships
from bmpaudit.shadow import ProbabilitiesConvertedWarning, ShadowRuns
from bmpaudit.util.errors import DataError, InputError

ALL_VIEWS = [f"{query}_{release}" for query in ENTRIES["query"] for release in ENTRIES["release"]]


@pytest.fixture(scope="module")
def own_models(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """What bmpaudit finds with models that it trains itself."""
    return run_audit(tmp_path_factory.mktemp("own"))


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    """A folder with samples for training elsewhere."""
    steps = pipeline(tmp_path / "audit", small_plan(model="gcn"))
    with steps.prepared():
        steps.sample()
    return tmp_path / "audit"


@pytest.fixture
def runs_file(own_models: Audit, sampled: Path, tmp_path: Path) -> Path:
    """The same models again, as somebody else's."""
    with np.load(sampled / "memberships.npz") as archive:
        memberships = archive["memberships"]
    arrays: dict[str, Any] = {"memberships": memberships.astype(np.uint8), **own_models.runs.statistics}
    np.savez(tmp_path / "runs.npz", **arrays)
    return tmp_path / "runs.npz"


def bring_in(folder: Path, path: Path, *, allow_misfit: bool = False) -> None:
    """As `bmpaudit attack --runs` does it."""
    workspace = Workspace(folder)
    subject = import_runs(stored_subject(workspace), workspace, path, QUIET, allow_misfit=allow_misfit)
    steps = pipeline(folder, subject.plan, may_run=("attack",), allow_misfit=allow_misfit)
    with steps.prepared():
        steps.findings  # noqa: B018


@pytest.fixture
def outside(sampled: Path, runs_file: Path) -> Path:
    """A finished audit of models that were trained elsewhere."""
    bring_in(sampled, runs_file)
    run_step(sampled, "estimate")
    run_step(sampled, "report")
    return sampled


def estimated(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The headline, but for what is proven: of our own models labels are known too, and share the confidence."""
    return [{name: value for name, value in row.items() if name != "proven"} for row in summary["headline"]]


def test_the_answer_is_that_of_our_own_models(outside: Path, own_models: Audit) -> None:
    summary, expected = summary_of(outside), own_models.summary
    for name in ("variants", "permutation_test", "nodes"):
        assert summary[name] == expected[name]
    assert estimated(summary) == estimated(expected)
    assert summary["shadow_models"]["train_accuracy"] is None
    assert summary["notes"] == []


def test_nothing_is_said_about_training_that_is_not_known(outside: Path) -> None:
    loaded = Audit.load(outside)
    assert loaded.title == "graph, Uniform 40 %, trained elsewhere"
    table = tomllib.loads((outside / "plan.toml").read_text())
    assert table["model"] == {"name": "elsewhere"}
    assert "training" not in table
    assert loaded.summary["plan"]["model"] == {"name": "elsewhere"}
    assert "training" not in loaded.summary["plan"]
    assert "trained elsewhere" in page_texts(outside)
    shown = json.dumps(page_data(loaded)).lower()
    for claim in ("gcn", "epochs", "learning_rate"):
        assert claim not in shown


@pytest.mark.parametrize("model", ["gcn", "mlp"])
def test_they_are_not_replaced_by_models_of_our_own(outside: Path, model: str) -> None:
    before = times(outside), contents(outside)
    for plan in (small_plan(model=model), small_plan(model=model, shadows=80)):
        with pytest.raises(InputError, match="holds models that were trained elsewhere; training others would replace"):
            run_audit(outside, plan)
    assert (times(outside), contents(outside)) == before


def test_a_finished_audit_of_them_is_left_alone(outside: Path) -> None:
    before = times(outside)
    subject = stored_subject(Workspace(outside))
    assert run_audit(outside, subject.plan).summary == summary_of(outside)
    assert times(outside) == before
    with pytest.raises(DataError, match="holds 40 models trained elsewhere; bmpaudit cannot train more of them"):
        run_audit(outside, subject.plan.replace(shadows=60))


def test_others_are_not_taken_for_them(outside: Path, runs_file: Path, tmp_path: Path) -> None:
    with np.load(runs_file) as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "others.npz", **arrays | {"full_clean": arrays["full_clean"] + 1})
    before = contents(outside)
    with pytest.raises(InputError, match="models trained elsewhere that are not among these; use a new folder"):
        bring_in(outside, tmp_path / "others.npz")
    assert contents(outside) == before
    bring_in(outside, runs_file)  # the same again
    assert contents(outside) == before


def test_a_folder_with_models_of_its_own_takes_no_others(runs_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    run_audit(folder)
    before = times(folder)
    with pytest.raises(InputError, match="holds shadow models with model mlp"):
        bring_in(folder, runs_file)
    assert times(folder) == before
    Audit.load(folder)


def test_memberships_that_do_not_fit_the_sampler_are_refused(sampled: Path, tmp_path: Path) -> None:
    """Half of the nodes where the sampler takes 40 %."""
    rng = np.random.default_rng(3)
    memberships = rng.random((40, 48)) < 0.5
    np.savez(tmp_path / "half.npz", memberships=memberships, full_clean=rng.normal(size=(40, 48)))
    before = times(sampled), contents(sampled)
    with pytest.raises(InputError, match=r"^the memberships do not fit the sampler \(p = .*\): .*; --allow-misfit"):
        bring_in(sampled, tmp_path / "half.npz")
    assert (times(sampled), contents(sampled)) == before
    bring_in(sampled, tmp_path / "half.npz", allow_misfit=True)
    run_step(sampled, "estimate")
    run_step(sampled, "report")
    (note,) = Audit.load(sampled).notes
    assert note.startswith("The memberships do not fit the sampler (p = ")
    assert summary_of(sampled)["cautions"][0] == note
    assert "The memberships do not fit the sampler" in page_texts(sampled)


def test_probabilities_are_converted_with_a_notice(sampled: Path, tmp_path: Path) -> None:
    memberships = draw_memberships(leaky_graph(), small_plan().sampler, 40, seed=9)
    logits = np.random.default_rng(0).normal(size=(40, 48, 3))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.savez(tmp_path / "runs.npz", memberships=memberships, full_clean=probabilities)
    with pytest.warns(ProbabilitiesConvertedWarning, match="view full_clean: the outputs are probabilities"):
        bring_in(sampled, tmp_path / "runs.npz")
    expected = ShadowRuns.from_arrays(memberships, {"full_clean": logits}, leaky_graph())
    loaded = run_step(sampled, "estimate").runs
    np.testing.assert_allclose(loaded.statistics["full_clean"], expected.statistics["full_clean"], atol=1e-4)


def test_logits_and_views_of_ones_own_choice(sampled: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    memberships = draw_memberships(leaky_graph(), small_plan().sampler, 30, seed=9)
    arrays: dict[str, Any] = {"none_noisy": rng.normal(size=(30, 48, 3)), "full_noisy": rng.normal(size=(30, 48))}
    np.savez(tmp_path / "runs.npz", memberships=memberships, **arrays)
    bring_in(sampled, tmp_path / "runs.npz")
    plan = read_plan(sampled / "plan.toml").plan
    assert [view.name for view in plan.views] == ["full_noisy", "none_noisy"]
    assert plan.shadows == 30
    result = run_step(sampled, "estimate")
    assert set(result.summary["variants"]) == {variant.name for variant in variants(plan)}
    expected = ShadowRuns.from_arrays(memberships, {"none_noisy": arrays["none_noisy"]}, leaky_graph().labels)
    np.testing.assert_array_equal(result.runs.statistics["none_noisy"], expected.statistics["none_noisy"])
    np.savez(
        tmp_path / "odd.npz", memberships=memberships, none_noisy=arrays["none_noisy"], full_clean=arrays["full_noisy"]
    )
    with pytest.raises(
        InputError, match="every release must be asked with every query: full_noisy, none_clean is missing"
    ):
        bring_in(sampled, tmp_path / "odd.npz")


def test_the_same_figures_without_a_folder_of_samples(outside: Path, own_models: Audit) -> None:
    assert estimated(Audit.load(outside).summary) == estimated(own_models.summary)


IN = np.ones((5, 48), dtype=np.bool_)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"full_clean": IN}, "key 'memberships' is missing; the archive has full_clean"),
        ({"memberships": IN}, f"no view; at least one of {', '.join(ALL_VIEWS)} is needed"),
        ({"memberships": IN, "full": IN}, "unknown array 'full'; there may be memberships, full_clean, "),
        ({"memberships": IN[:, :40], "full_clean": IN}, "memberships are of 40 nodes, the graph has 48"),
        (
            {"memberships": IN[0], "full_clean": IN},
            r"memberships must have shape \(num_models, num_nodes\), got \(48,\)",
        ),
        ({"memberships": 2 * IN, "full_clean": IN}, "memberships must be booleans, or 0 and 1"),
        ({"memberships": IN, "full_clean": np.zeros((4, 48))}, "view full_clean: must have shape "),
        ({"memberships": IN, "full_clean": np.where(IN, np.nan, 0)}, "view full_clean: must be finite, got nan"),
    ],
)
def test_wrong_files_of_models_are_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=f"^{path}: {message}"):
        read_runs_file(path, leaky_graph())


def test_missing_or_damaged_files_of_models_are_refused(tmp_path: Path) -> None:
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
