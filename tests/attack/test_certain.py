"""Certain members and non-members of one model, by hand and on trained models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from bmpaudit import samplers
from bmpaudit.attack import Rows, certain_nodes
from bmpaudit.attack.certain import MEMBER, NON_MEMBER, Gap, Holders, count_certain, learnt_gap
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GCN, Training
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.shadow.released import first_layer_norms
from bmpaudit.util.errors import InputError

GAP = Gap(0.01, 0.1)
#             feature: 0  1  2  3  4
FEATURES = np.array(
    [
        [1, 1, 0, 0, 0],  # has 0, which nobody touched: out
        [0, 1, 1, 0, 0],  # alone can have touched 1: in
        [0, 0, 1, 1, 0],  # 2 and 3 have other holders too: unknown
        [0, 0, 0, 1, 0],  # unknown
        [0, 0, 0, 0, 0],  # no features: unknown
        [1, 0, 0, 0, 1],  # has 0: out
    ],
    dtype=np.float32,
)
GRAPH = Graph.from_edges([(0, 1)], FEATURES, [0, 1, 0, 1, 0, 1])


def test_exclusion_and_elimination_by_hand() -> None:
    found = certain_nodes(np.array([0.001, 0.5, 0.4, 0.3, 0.05], dtype=np.float32), GRAPH, GAP)
    assert found.non_members.tolist() == [0, 5]
    assert found.untouched.tolist() == [0, 0]
    assert found.members.tolist() == [1]
    assert found.touched.tolist() == [1]


def test_the_feature_that_gives_most_away_is_named() -> None:
    found = certain_nodes(np.array([0.009, 0.004, 0.5, 0.6, 0.0], dtype=np.float32), GRAPH, GAP)
    assert dict(zip(found.non_members.tolist(), found.untouched.tolist(), strict=True)) == {0: 1, 1: 1, 5: 4}
    # Node 2 alone can have touched feature 2; feature 3 it shares with node 3.
    assert (found.members.tolist(), found.touched.tolist()) == ([2], [2])


def test_from_rows_within_the_gap_nothing_follows() -> None:
    found = certain_nodes(np.full(5, 0.05, dtype=np.float32), GRAPH, GAP)
    assert len(found.non_members) == len(found.members) == 0


def models_of(touched: float, untouched: float, *, num_models: int = 30, seed: int = 0) -> tuple[Graph, Any, Any]:
    """A graph of many rare features, memberships, and norms: multiples of one number or the other."""
    rng = np.random.default_rng(seed)
    features = (rng.random((80, 200)) < 0.03).astype(np.float32)
    graph = Graph.from_edges([(0, 1)], features, np.arange(80) % 2)
    members = rng.random((num_models, 80)) < 0.3
    size = np.where(members @ features > 0, touched, untouched)
    return graph, members, (size * rng.uniform(1, 1.6, size.shape)).astype(np.float32)


def assert_right(graph: Graph, members: Any, norms: Any) -> int:
    """The number of nodes that are certain."""
    num_certain = 0
    for mine, row in zip(members, norms, strict=True):
        found = certain_nodes(row, graph)
        assert not mine[found.non_members].any()
        assert mine[found.members].all()
        num_certain += len(found.non_members) + len(found.members)
    return num_certain


def test_a_models_own_gap_is_found_where_there_is_one() -> None:
    graph, members, norms = models_of(1.0, 0.01)
    assert assert_right(graph, members, norms) > 30 * 20
    gap = learnt_gap(Rows(norms[:, :, None], norms), members, Holders(graph))
    assert gap is not None
    assert 0.016 <= gap.untouched <= gap.touched <= 1.0
    learnt = [certain_nodes(row, graph, gap) for row in norms]
    own = [certain_nodes(row, graph) for row in norms]
    assert [each.non_members.tolist() for each in learnt] == [each.non_members.tolist() for each in own]


def test_without_weight_decay_nothing_is_certain() -> None:
    """Untouched rows stay where they began, and some touched ones are as short."""
    graph, members, norms = models_of(1.0, 1.1)
    assert assert_right(graph, members, norms) == 0
    assert learnt_gap(Rows(norms[:, :, None], norms), members, Holders(graph)) is None


def test_a_touched_row_among_the_untouched_forbids_conclusions_over_models() -> None:
    graph, members, norms = models_of(1.0, 0.01)
    is_touched = members @ graph.dense_features > 0
    model, feature = np.argwhere(is_touched)[0]
    norms[model, feature] = 0.012
    assert learnt_gap(Rows(norms[:, :, None], norms), members, Holders(graph)) is None


def test_a_weakly_touched_row_does_not_pass_for_untouched() -> None:
    graph, members, norms = models_of(1.0, 0.01)
    is_touched = members @ graph.dense_features > 0
    for model in range(len(norms)):  # the widest gap is then above it
        norms[model, np.flatnonzero(is_touched[model])[0]] = 0.06
        gap = certain_nodes(norms[model], graph).gap
        assert gap is not None
        assert gap.untouched < 0.03
        assert gap.touched == pytest.approx(0.06)
    assert assert_right(graph, members, norms) > 30 * 20


def test_a_gap_that_leaves_nobody_to_touch_a_row_is_none() -> None:
    graph, _, _ = models_of(1.0, 0.01)
    norms = np.where(np.arange(200) < 40, 0.01, 1.0).astype(np.float32)  # short for another reason
    assert certain_nodes(norms, graph).gap is None


def test_one_feature_or_none_gives_nothing_away() -> None:
    graph, members, norms = models_of(1.0, 0.01)
    everything = np.ones_like(members)
    assert learnt_gap(Rows(norms[:, :, None], norms), everything, Holders(graph)) is None  # no row is untouched
    few = certain_nodes(np.array([0.001, 0.5, 0.4, 0.3, 0.5], dtype=np.float32), GRAPH)
    assert few.gap is None
    assert len(few.non_members) == len(few.members) == 0


@pytest.mark.parametrize("weight_decay", [5e-4, 0.0])
def test_nothing_that_is_certain_about_a_trained_model_is_wrong(weight_decay: float, tmp_path: Path) -> None:
    graph, _, _ = models_of(1.0, 0.01)
    model, num_models = GCN(), 20
    plan = ShadowPlan(samplers.Uniform(0.3), model, Training(weight_decay=weight_decay), seed=1)
    runs = train_shadows(graph, plan, num_models, tmp_path, keep_weights=True, num_threads=2)
    weights: Any = zarr.open_group(tmp_path / "shadows", mode="r")["weights_0"]
    num_first = model.hidden * graph.num_features
    first = np.asarray(weights[:num_models])[:, :num_first].reshape(num_models, model.hidden, graph.num_features)
    num_certain = assert_right(graph, runs.memberships, np.linalg.norm(first, axis=1).astype(np.float32))
    assert (num_certain > 20 * num_models) == (weight_decay > 0)


def test_certain_nodes_of_known_models_are_counted() -> None:
    graph, members, norms = models_of(1.0, 0.001)
    rows = Rows(np.zeros((*norms.shape, 2), dtype=np.float32), norms)
    counts, holders = count_certain(rows, members, graph), Holders(graph)
    states = np.concatenate([holders.states(each[None], learnt_gap(rows, members, holders)) for each in norms])
    assert counts.num_in.tolist() == ((states == MEMBER) & members).sum(axis=0).tolist()
    assert counts.num_out.tolist() == ((states == NON_MEMBER) & ~members).sum(axis=0).tolist()
    assert counts.num_out.sum() > 0
    assert counts.num_wrong.sum() == 0
    wrong = count_certain(rows, ~members, graph)  # memberships that the norms contradict leave no gap
    assert sum(each.sum() for each in wrong) == 0
    assert holders.rarest_feature()[:6].tolist() == [
        min(np.flatnonzero(row), key=lambda f: (graph.dense_features[:, f].sum(), f)) if row.any() else -1
        for row in graph.dense_features[:6]
    ]
    assert Holders(GRAPH).rarest_feature().tolist() == [0, 1, 2, 3, -1, 4]


def test_norms_are_those_of_the_first_layer_in_any_form(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    own, neighbours, last = rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), rng.normal(size=(2, 3))
    expected = np.sqrt((own**2).sum(axis=0) + (neighbours**2).sum(axis=0))
    arrays = {"conv1.lin_l.weight": neighbours, "conv1.lin_r.weight": own, "conv2.weight": last, "bias": np.ones(5)}
    np.testing.assert_allclose(first_layer_norms(arrays, GRAPH), expected, rtol=1e-6)
    np.savez(tmp_path / "model.npz", **arrays)  # type: ignore[arg-type]
    np.testing.assert_allclose(first_layer_norms(tmp_path / "model.npz", GRAPH), expected, rtol=1e-6)
    turned = {"w0": own.T, "w1": last.T}
    np.testing.assert_allclose(first_layer_norms(turned, GRAPH), np.linalg.norm(own, axis=0), rtol=1e-6)
    with pytest.raises(InputError, match=r"no weights of a first layer for the graph's 5 features, got w \(2, 3\)"):
        first_layer_norms({"w": last}, GRAPH)
    with pytest.raises(InputError, match="must be finite"):
        first_layer_norms({"w": np.full((3, 5), np.nan)}, GRAPH)
