"""Many audits, and the points that no other beats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from small_audit import QUIET, leaky_graph, times, tiny_plan

import bmpaudit
from bmpaudit.comparison.sides import Mean
from bmpaudit.models import GAT, MLP
from bmpaudit.plan import AuditPlan
from bmpaudit.registry import RELEASE, label
from bmpaudit.sweeps import (
    SEARCHED,
    Sweep,
    changed_plan,
    pareto_front,
    read_sweep,
    sweep,
    swept_audits,
    with_front,
    with_inherited,
)
from bmpaudit.util.errors import InputError, UntrustedCodeError

GRID = {"training.epochs": [2, 15], "model.hidden": [4, 8]}


def run(folder: Path | None, **options: Any) -> Sweep:
    plan = options.pop("plan", tiny_plan(releases=("clean", "label-only")))
    return sweep(leaky_graph(), plan, folder=folder, runtime=QUIET, pictures="none", **({"grid": GRID} | options))


def test_every_combination_and_every_release_is_a_point(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert [
        (point.settings["training.epochs"], point.settings["model.hidden"], point.release) for point in found.points
    ] == [(epochs, hidden, release) for epochs in (2, 15) for hidden in (4, 8) for release in ("clean", "label-only")]
    assert found.points[1].label == "epochs 2, hidden 4, label-only"
    # The figures are those of the audits.
    for point in found.points:
        audit = bmpaudit.Audit.load(point.folder)
        assert audit.plan.training.epochs == point.settings["training.epochs"]
        curve = audit.findings[point.release].exposure.exposure.members
        assert point.exposed_by == audit.result.releases[point.release].exposed_by
        assert point.named_90 is not None
        assert point.named_90.mean == pytest.approx(curve.correct.mean[curve.at(0.9)])
        assert point.auc == audit.summary["releases"][point.release]["auc"]
        assert (Path(point.folder) / "report.html").exists()
    assert len(list((tmp_path / "audits").iterdir())) == 4  # releases share their models


def test_a_second_run_trains_nothing_and_more_models_are_added(tmp_path: Path) -> None:
    first = run(tmp_path)
    before = {name: time for name, time in times(tmp_path).items() if name.startswith("audits/")}
    assert run(tmp_path).to_dict() == first.to_dict()
    assert {name: time for name, time in times(tmp_path).items() if name.startswith("audits/")} == before
    wider = run(tmp_path, grid=GRID | {"training.epochs": [2, 15, 30]})
    assert [point.to_plain() for point in wider.points if point.settings["training.epochs"] < 30] == [
        point.to_plain() for point in first.points
    ]
    longer = tiny_plan(releases=("clean", "label-only"), shadows=14)
    more = run(tmp_path, plan=longer)
    assert {point.num_models for point in more.points} == {14}
    assert len(list((tmp_path / "audits").iterdir())) == 6  # the same folders


def test_the_front_is_audited_again_with_fresh_models(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert not found.is_confirmed
    assert SEARCHED in found.cautions
    again = run(tmp_path, confirm=True)
    assert again.is_confirmed
    assert SEARCHED not in again.cautions
    assert again.front
    for point in again.points:
        assert (point.confirmed is not None) == point.on_front
        if point.confirmed is not None:
            fresh, searched = (bmpaudit.Audit.load(each.folder) for each in (point.confirmed, point))
            assert (fresh.plan.seed, searched.plan.seed) == (1, 0)
            assert not np.array_equal(fresh.runs.memberships, searched.runs.memberships)
            assert point.release in fresh.attacks.releases
    stored = json.loads((tmp_path / "sweep.json").read_text())
    assert stored == json.loads(json.dumps(again.to_dict()))
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 1 + len(again.points)


def test_nothing_is_kept_without_a_folder() -> None:
    found = run(None, grid={"model.hidden": [4]})
    assert [point.folder for point in found.points] == ["", ""]


def test_plans_that_differ_in_releases_alone_share_their_models() -> None:
    base = AuditPlan(releases="clean")
    releases = [["clean"], ["noisy"], [{"name": "rounded", "digits": 1}, "clean"]]
    (audit,) = swept_audits(base, {"views.releases": releases}, [])
    assert [type(part).__name__ for part in audit.plan.releases] == ["Clean", "NoisyLastLayer", "Rounded"]
    assert audit.label == "Uniform 25 %, GCN"
    two = swept_audits(base, {"views.releases": releases, "seed": [0, 1]}, [{"views.releases": "top", "seed": 1}])
    assert [len(each.plan.releases) for each in two] == [3, 4]


def test_settings_of_parts() -> None:
    base = AuditPlan(model=MLP(hidden=32), releases="clean")
    assert changed_plan(base, {"model.dropout": 0.1}).model == MLP(hidden=32, dropout=0.1)
    assert changed_plan(base, {"model.name": "mlp", "model.layers": 3}).model == MLP(hidden=32, layers=3)
    assert changed_plan(base, {"model.name": "gat", "model.heads": 2}).model == GAT(heads=2)
    assert changed_plan(base, {"model": GAT(heads=3)}).model == GAT(heads=3)
    assert changed_plan(base, {"model": "gat", "model.heads": 2}).model == GAT(heads=2)
    assert changed_plan(base, {"estimation.prior_variance": 2.0}).prior_variance == 2
    labels = [each.label for each in swept_audits(base, {"model": [GAT(heads=3), "gcn"], "training.epochs": [7]}, [])]
    assert labels == ["gat-3, epochs 7", "gcn, epochs 7"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"training.epoch": 5}, "unknown key training.epoch; allowed in .training.: epochs"),
        ({"training.epochs": -5}, "epochs must be"),
        ({"epoch": 5}, "unknown key epoch; a sweep is over keys of a plan"),
        ({"model.layer.width": 5}, "unknown key model.layer.width"),
        ({"gate.max_proven_right": 5}, "unknown key gate.max_proven_right"),
        ({"model.name": "gnn"}, "model must be one of gcn"),
        ({"model.heads": 3}, "unknown key model.heads"),
        ({"views.releases": ["quiet"]}, "release must be one of clean"),
    ],
)
def test_impossible_settings(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        changed_plan(AuditPlan(), values)


def test_a_sweep_must_have_points() -> None:
    with pytest.raises(InputError, match=r"training\.epochs must be a list of alternatives, got 5"):
        swept_audits(AuditPlan(), {"training.epochs": 5}, [])  # type: ignore[dict-item]
    with pytest.raises(InputError, match="a sweep must have 1 to 10,000 points, got 0"):
        swept_audits(AuditPlan(), {}, [])
    many = {"seed": list(range(200)), "training.epochs": list(range(1, 200))}
    with pytest.raises(InputError, match="a sweep must have 1 to 10,000 points, got 10,001 or more"):
        swept_audits(AuditPlan(), many, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph = 'demo'", r"a table \[sweep\] is missing"),
        ("graph = 'demo'\n[sweep]\ngird = 3", r"unknown key sweep.gird; allowed in \[sweep\]: grid, points"),
        ("[sweep.grid]\nseed = [1]", "graph is missing"),
        ("graph = 'demo'\n[sweep]\ngrid = 3", "sweep.grid must be a table"),
        ("graph = 'demo'\n[sweep]\npoints = [3]", "sweep.points must be a list of tables"),
        ("graph = 'demo'\n[sweep.grid]\ntraining.epochs = 3", "training.epochs must be a list of alternatives, got 3"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"sweep.toml: {message}"):
        read_sweep(path)


def test_a_file_runs_no_code_unless_it_is_trusted(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text("graph = 'demo'\n[sweep.grid]\nsampler.name = ['uniform', 'small_audit:always_the_first']\n")
    with pytest.raises(UntrustedCodeError, match="small_audit:always_the_first"):
        read_sweep(path)
    _, audits = read_sweep(path, trust_code=True)
    assert [each.label for each in audits] == ["uniform", "small_audit:always_the_first"]


def test_front_against_its_definition() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        gains, costs = rng.integers(0, 6, size=(2, 12)).astype(float)
        beaten = [
            any(
                (gains[j] >= gains[i] and costs[j] < costs[i]) or (gains[j] > gains[i] and costs[j] <= costs[i])
                for j in range(12)
            )
            for i in range(12)
        ]
        assert pareto_front(gains, costs).tolist() == [not each for each in beaten]


def test_a_release_is_added_to_kept_models(tmp_path: Path) -> None:
    plan = tiny_plan(keep_weights=True, model=MLP(hidden=4))
    first = run(tmp_path, plan=plan, grid={"training.epochs": [5]})
    both = run(tmp_path, plan=plan.replace(releases=("clean", "label-only")), grid={"training.epochs": [5]})
    assert [point.folder for point in both.points] == 2 * [first.points[0].folder]
    fresh = run(None, plan=plan.replace(releases=("clean", "label-only")), grid={"training.epochs": [5]})
    assert [point.auc for point in both.points] == [point.auc for point in fresh.points]


def mean_of(value: float) -> Mean:
    return Mean(value, value - 1, value + 1)


def test_what_is_found_at_a_point_holds_for_what_it_is_computed_from() -> None:
    audits = swept_audits(
        tiny_plan(releases=("clean", "label-only")),
        {"model.hidden": [4, 8]},
        [{"model.hidden": 4, "views.queries": "none"}, {"model.hidden": 4, "seed": 1, "attack.name": "student"}],
    )
    found = run(None, grid={"model.hidden": [4]}).points[0]
    # Each audit's own finding on its clean release and on its labels, before anything is inherited.
    named = {(0, "clean"): 3, (0, "label-only"): 9, (1, "clean"): 2, (1, "label-only"): 1}
    named |= {(2, "clean"): 11, (2, "label-only"): 1, (3, "clean"): 5, (3, "label-only"): 7}
    points = [
        replace(
            found,
            audit=number,
            label=f"{number}, {release}",
            release=release,
            named_90=mean_of(value),
            exposed_by=f"attack {number}",
            certified_names=float(value),
            certified_share=0.9 if release == "clean" else 0.95,
            proven_right=float(value),
            is_ceiling_right=release == "clean",
        )
        for (number, release), value in named.items()
    ]
    inherited = with_inherited(points, audits)
    assert [each.named_90 for each in inherited if each.named_90] == [
        # The audit with other queries is of the same models, but what it finds needs a query that others do not allow.
        *(mean_of(9), mean_of(9), mean_of(2), mean_of(1), mean_of(11), mean_of(1), mean_of(9), mean_of(9)),
    ]
    assert [each.exposed_by for each in inherited[:3]] == ["attack 0, at 0, label-only", "attack 0", "attack 1"]
    # The surer certificate counts, and of equally sure ones that of more names.
    certified = [(each.certified_share, each.certified_names) for each in inherited]
    assert certified == [(0.95, 9), (0.95, 9), (0.95, 1), (0.95, 1), (0.95, 1), (0.95, 1), (0.95, 9), (0.95, 9)]
    assert [each.proven_right for each in inherited] == [9, 9, 2, 1, 11, 1, 9, 9]
    assert [each.is_ceiling_right for each in inherited] == [False, False, True, False, True, False, False, False]


def test_a_weak_attack_puts_no_point_on_the_front() -> None:
    """The labels of `noisy` models expose 9 nodes; an attack on their noisy scores that finds none is too weak."""
    audits = swept_audits(tiny_plan(releases=({"name": "noisy-outputs", "output_noise": 0.5}, "clean")), {}, [{}])
    found = run(None, grid={"model.hidden": [4]}).points[0]
    weaker = replace(found, release="clean", named_90=mean_of(0), accuracy=mean_of(0.9))
    coarser = replace(
        found, release=label(RELEASE, audits[0].plan.releases[0]), named_90=mean_of(9), accuracy=mean_of(0.9)
    )
    points = with_front(with_inherited([weaker, coarser], audits))
    assert [point.named_90 for point in points] == [mean_of(9), mean_of(9)]
    assert [point.on_front for point in points] == [True, True]  # neither beats the other
    alone = with_front([weaker, coarser])
    assert [point.on_front for point in alone] == [True, False]


def test_bounds_do_not_rank() -> None:
    found = run(None, grid={"model.hidden": [4]}).points[0]
    points = [replace(found, named_90=mean_of(5), accuracy=mean_of(0.9), proven_right=bound) for bound in (5.0, None)]
    assert [point.on_front for point in with_front(points)] == [True, True]
    less_named = replace(points[0], named_90=mean_of(4), is_ceiling_right=True)
    assert [point.on_front for point in with_front([less_named, points[1]])] == [True, False]


def test_what_a_point_inherits_from_is_confirmed_with_it(tmp_path: Path) -> None:
    found = run(tmp_path, grid={"model.hidden": [4]}, confirm=True)
    assert found.front
    for point in found.front:
        assert point.confirmed is not None
        fresh = bmpaudit.Audit.load(point.confirmed.folder)
        assert "label-only" in fresh.attacks.releases
        assert point.confirmed.named_90 is not None
        assert point.confirmed.named_90.mean >= fresh.result.releases["label-only"].exposure.named(0.9).correct


def test_parts_of_one_name_are_confirmed_apart() -> None:
    plan = tiny_plan()
    found = run(None, plan=plan, grid={"model": [MLP(hidden=4, dropout=0.0), MLP(hidden=8, dropout=0.0)]}, confirm=True)
    assert len({point.label for point in found.points}) == 2
    for point in found.front:
        assert point.confirmed is not None
        assert point.confirmed.settings == point.settings


def test_a_table_and_scikit_learn_classifiers() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    found = sweep(
        table,
        AuditPlan(shadows=12, definitions="bmp-r"),
        grid={"model": [DecisionTreeClassifier(), LogisticRegression()]},
        points=[{"model": DecisionTreeClassifier(), "model.max_depth": 1}],
        runtime=QUIET,
    )
    assert [point.release for point in found.points] == 3 * ["clean"]
    assert found.points[0].auc > found.points[2].auc  # a whole tree learns rows by heart
