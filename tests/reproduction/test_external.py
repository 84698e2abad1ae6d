"""Published results of others: the figures, the protocol, and the whole on a small graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reproduction import external as workflow
from reproduction.external import (
    EXPERIMENTS,
    KEY,
    POOL,
    Experiment,
    attack_targets,
    balanced_nodes,
    halves,
    judge,
    make_page,
    published_figures,
    read_figures,
    run_external,
)

from bmpaudit import datasets
from bmpaudit.auditing import Runtime
from bmpaudit.util.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"
QUIET = Runtime(num_threads=1, quiet=True)


def test_published_figures_have_a_source_and_a_plan() -> None:
    figures = published_figures()
    assert not figures.duplicated(list(KEY)).any()
    assert figures["file"].str.startswith("results/").all()
    assert (figures["spread"] > 0).mean() > 0.95
    assert set(zip(figures["dataset"], figures["model"], strict=True)) == {(e.dataset, e.model) for e in EXPERIMENTS}
    lira = figures[(figures["attack"] == "gaussian") & (figures["measure"] == "auc") & (figures["num_shadows"] == 128)]
    assert lira.set_index("dataset")["published"].to_dict() == {"cora": 0.8923, "citeseer": 0.916}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_plans_have_the_published_settings(experiment: Experiment) -> None:
    plan = experiment.plan(POOL)
    assert (plan.model.hidden, plan.model.dropout, plan.model.dropout_on, plan.model.activation) == (
        64,
        0.5,
        ("hidden",),
        "relu",
    )
    assert (plan.sampler.train_fraction, plan.training.learning_rate, plan.shadows) == (0.5, 0.001, POOL)
    assert [view.name for view in plan.views] == ["none_clean"]


def test_each_node_is_in_half_of_its_shadow_models() -> None:
    memberships = np.random.default_rng(0).random((40, 30)) < 0.5
    chosen, is_in = halves(memberships, 8)
    assert (np.take_along_axis(memberships, chosen, axis=0) == is_in).all()
    assert (is_in.sum(axis=0) == 4).all()
    assert all(len(set(column)) == 8 for column in chosen.T)
    memberships[:, 3] = False
    with pytest.raises(InputError, match="each node must be in 4 models and not in 4 others, got 0 for one"):
        halves(memberships, 8)


def test_figures_are_over_as_many_members_as_others() -> None:
    is_member = np.arange(41) < 20
    nodes = balanced_nodes(is_member, np.random.default_rng(0))
    assert len(set(nodes)) == len(nodes) == 20
    assert is_member[nodes].sum() == 10


def test_attacks_find_members_that_stand_out_and_nothing_in_noise() -> None:
    stream = np.random.default_rng(1)
    memberships = stream.random((60, 200)) < 0.5
    noise = stream.normal(size=(60, 200)).astype(np.float32)
    labels = np.zeros(200, dtype=np.int64)
    loud = attack_targets(memberships, noise + 3 * memberships, labels, 8, 50)
    silent = attack_targets(memberships, noise, labels, 8, 50)
    for attack in ("gaussian", "rmia", "base", "confidence"):
        assert len(loud[attack]["auc"]) == 10
        assert np.mean(loud[attack]["auc"]) > 0.9
        assert abs(np.mean(silent[attack]["auc"]) - 0.5) < 0.05
        assert np.mean(loud[attack]["tpr_at_1e-2"]) >= np.mean(loud[attack]["tpr_at_1e-3"])


def test_a_figure_agrees_within_two_standard_deviations() -> None:
    published = published_figures()
    ours = published[list(KEY)].assign(ours=published["published"] + 1.9 * published["spread"], ours_spread=0.1)
    assert judge(ours)["agrees"].all()
    ours["ours"] = published["published"] - 2.1 * published["spread"]
    is_known = published["spread"] > 0
    assert not judge(ours)["agrees"][is_known].any()


def test_the_whole_on_a_small_graph_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = datasets.load("demo")
    monkeypatch.setattr(datasets, "load", lambda _: graph)
    monkeypatch.setattr(workflow, "EXPERIMENTS", (Experiment("cora", "gcn", 2, 1e-5),))
    summary = run_external(tmp_path, QUIET, quick=True)
    assert summary.num_figures == 9
    assert "9 published figures agree with ours" in str(summary)
    page = summary.page.read_text()
    assert "{{" not in page
    assert "| Cora | GCN | 8 | LiRA |" in page
    assert not list(tmp_path.rglob("audit"))

    def refuse(*_: Any) -> None:
        raise AssertionError("computed twice")

    monkeypatch.setattr(workflow, "attack_targets", refuse)
    assert run_external(tmp_path, QUIET, quick=True) == summary
    monkeypatch.setattr(workflow, "build_id", lambda: "another")
    with pytest.raises(InputError, match="holds results of another plan or version of bmpaudit: use a new folder"):
        run_external(tmp_path, QUIET, quick=True)
    assert run_external(tmp_path, QUIET, quick=True, page_only=True) == summary


def test_page_is_made_from_the_tables() -> None:
    figures = read_figures(DOCS / "external")
    assert (DOCS / "external.md").read_text(encoding="utf-8") == make_page(figures)
    assert figures["agrees"].mean() >= 0.8
    again = judge(figures[[*KEY, "ours", "ours_spread", "num_targets"]])
    assert again["agrees"].tolist() == figures["agrees"].tolist()


def test_a_page_of_nothing_is_still_a_page() -> None:
    columns = [*KEY, "published", "spread", "ours", "ours_spread", "difference", "agrees"]
    empty = pd.DataFrame({name: pd.Series(dtype=bool if name == "agrees" else float) for name in columns})
    assert "Nothing was run." in make_page(empty)
