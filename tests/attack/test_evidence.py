"""What an attack sees: parts of it, what is withheld, and what is refused."""

from typing import Any

import numpy as np
import pytest
from slow_attack import random_memberships

from bmpaudit.attack import Evidence
from bmpaudit.graph.graph import Graph
from bmpaudit.shadow import ShadowRuns
from bmpaudit.util.errors import InputError

MEMBERS = random_memberships(12, 5, seed=1)
FULL, NONE = np.random.default_rng(1).normal(size=(2, 12, 5)).astype(np.float32)
MODELS = Evidence({"full": FULL, "none": NONE}, MEMBERS, np.arange(100, 112))


def test_views_of_one_release() -> None:
    views: dict[str, Any] = {"full_clean": FULL, "none_clean": NONE, "full_noisy-0.5": FULL + 1}
    runs = ShadowRuns.from_arrays(MEMBERS, views, np.zeros(5))
    models = Evidence.of_runs(runs, "clean", ["none", "full"])
    assert models.queries == ("none", "full")
    assert models.statistics["full"] is runs.statistics["full_clean"]  # not copied
    assert models.memberships is runs.memberships
    assert models.indices.tolist() == list(range(12))
    assert np.array_equal(Evidence.of_runs(runs, "noisy-0.5", ["full"]).only_statistic, FULL + 1)
    message = r"^view must be one of full_clean, none_clean, full_noisy-0.5, got none_noisy$"
    with pytest.raises(InputError, match=message):
        Evidence.of_runs(runs, "noisy", ["none"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"statistics": {}}, "there must be statistics of at least one query, got none"),
        (
            {"statistics": {"full": FULL[:, :4]}},
            "query full: statistics must have shape (12, 5) as memberships, got (12, 4)",
        ),
        (
            {"statistics": {"full": np.where(np.arange(60).reshape(12, 5) == 17, 1e300, 0.0)}},
            "query full: statistics must be finite, got inf for model 103, node 2",
        ),
        (
            {"memberships": MEMBERS[0]},
            "memberships must be booleans of shape (num_models, num_nodes), got bool of shape (5,)",
        ),
        (
            {"memberships": MEMBERS * 2},
            "memberships must be booleans of shape (num_models, num_nodes), got int64 of shape (12, 5)",
        ),
        ({"memberships": MEMBERS[:0]}, "there must be at least one model, got none"),
        ({"indices": np.arange(3)}, "indices must have shape (12,) as memberships have, got (3,)"),
        (
            {"graph": Graph.from_edges([[0, 1]], np.eye(3), [0, 1, 0])},
            "graph must have 5 nodes as memberships, got 3",
        ),
        ({"targets": [5]}, "targets must be in [0, 5), got 5"),
    ],
)
def test_impossible_inputs_are_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    fields = {"statistics": MODELS.statistics, "memberships": MEMBERS, "indices": MODELS.indices}
    with pytest.raises(InputError) as refused:
        Evidence(**fields | change)
    assert str(refused.value) == message


@pytest.mark.parametrize("rows", [slice(2, 7), [7, 3, 5], np.isin(np.arange(12), [3, 5])])
def test_some_of_the_models(rows: Any) -> None:
    part = MODELS.take(rows)
    assert np.array_equal(part.indices, MODELS.indices[rows])
    assert np.array_equal(part.memberships, MEMBERS[rows])
    assert np.array_equal(part.statistics["none"], NONE[rows])
    assert str(part) == f"{len(MODELS.indices[rows])} models of 5 nodes, queries full, none"


def test_all_statistics_stay_visible_when_some_nodes_are_asked_about() -> None:
    some = MODELS.about([4, 0])
    assert some.nodes.tolist() == [4, 0]
    assert some.statistics["full"].shape == (12, 5)
    assert np.array_equal(some.at_targets(some.statistics["full"]), FULL[:, [4, 0]])
    assert MODELS.nodes.tolist() == [0, 1, 2, 3, 4]
    assert np.shares_memory(MODELS.at_targets(FULL), FULL)
    assert some.about(None).nodes.tolist() == [0, 1, 2, 3, 4]
    assert MODELS.about(np.arange(5) > 2).nodes.tolist() == [3, 4]


def test_nodes_to_score_by_their_positions() -> None:
    some = MODELS.about([4, 1, 3])
    assert [MODELS.num_targets, some.num_targets] == [5, 3]
    assert [MODELS.nodes.tolist(), some.nodes.tolist()] == [[0, 1, 2, 3, 4], [4, 1, 3]]
    assert [MODELS.nodes_in(slice(1, 3)).tolist(), some.nodes_in(slice(1, 3)).tolist()] == [[1, 2], [1, 3]]


def test_models_with_a_node_are_counted() -> None:
    assert np.array_equal(MODELS.num_in, MEMBERS.sum(axis=0))
    assert np.array_equal(MODELS.about([3, 1]).num_in, MEMBERS.sum(axis=0)[[3, 1]])
    assert np.array_equal(MODELS.take([2]).num_in, MEMBERS[2])


def test_memberships_can_be_withheld() -> None:
    assert MODELS.num_in.sum() == MEMBERS.sum()  # known by now, and withheld all the same
    withheld = MODELS.without_memberships()
    with pytest.raises(InputError, match=r"^memberships of the models to score are withheld from the attack$"):
        _ = withheld.num_in
    with pytest.raises(InputError, match=r"^memberships of the models to score are withheld from the attack$"):
        _ = withheld.memberships
    with pytest.raises(InputError, match=r"^memberships of the models to score are withheld from the attack$"):
        _ = withheld.about([1]).memberships
    assert withheld.num_models == 12
    assert withheld.num_nodes == 5
    assert np.array_equal(MODELS.memberships, MEMBERS)  # only withheld there
    nothing: Any = MODELS
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = nothing.no_such_thing


def test_one_query_or_several() -> None:
    with pytest.raises(InputError, match=r"^an attack that does not fuse queries takes one at a time, got full, none$"):
        _ = MODELS.only_statistic


def test_nodes_are_called_by_their_names() -> None:
    names = ("alice", "bob", "carol", "dave", "erin")
    graph = Graph.from_edges([[0, 1]], np.eye(5), [0, 1, 0, 1, 0], node_names=names)
    named = Evidence(MODELS.statistics, MEMBERS, MODELS.indices, graph)
    assert (named.label(1), MODELS.label(1)) == ("node 'bob'", "node 1")
    assert str(named.not_auditable(3, "it has no neighbours")) == "node 'dave': it has no neighbours"
    assert str(MODELS.not_auditable(3, "it has no neighbours")) == "node 3: it has no neighbours"
