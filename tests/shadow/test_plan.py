import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from own_parts import Rounded, Sage, SageOfWidth, SomeEdges, Thirds, first_class, train_by_hand, wide_sage

from bmpaudit import datasets, registry
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GAT, GCN, TorchModel, TrainedElsewhere, Training
from bmpaudit.registry import MODEL, QUERY, RELEASE, SAMPLER, STATISTIC, UntrustedPart
from bmpaudit.releases import Clean, FullEdges, NoEdges, NoisyLastLayer
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.shadow import ShadowPlan, View
from bmpaudit.util.errors import InputError


def every_node(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    return np.arange(graph.num_nodes)[rng.random(graph.num_nodes) < 0.5]


def test_a_plan_describes_itself_in_plain_values() -> None:
    graph = datasets.load("demo")
    description = ShadowPlan(Snowball(0.25), GAT(), seed=4).describe(graph)
    assert json.loads(json.dumps(description)) == description
    assert description["graph"]["content_hash"] == graph.content_hash
    assert description["sampler"] == {
        "name": "snowball",
        "train_fraction": 0.25,
        "fan_out": 5,
        "restart": False,
        "any_order": False,
        "walked_edges": False,
    }
    assert description["model"]["name"] == "gat"
    assert description["model"]["heads"] == 8
    assert description["training"]["epochs"] == 100
    assert description["releases"] == [{"name": "clean"}, {"name": "noisy", "noise_std": 0.25}]
    assert description["queries"] == [{"name": "full"}, {"name": "none"}]
    assert description["statistic"] == {"name": "margin"}
    assert description["engine"] == "native"


def test_views_are_all_combinations_query_by_query() -> None:
    plan = ShadowPlan(Uniform(0.5))
    assert [view.name for view in plan.views] == ["full_clean", "full_noisy", "none_clean", "none_noisy"]
    levels = replace(plan, releases=(NoisyLastLayer(0.5), Rounded(2)), queries=(SomeEdges(10),))
    assert [view.name for view in levels.views] == ["someedges-10_noisy-0.5", "someedges-10_rounded-2"]
    assert (levels.views[0].query_name, levels.views[0].release_name) == ("someedges-10", "noisy-0.5")
    assert View(FullEdges(), Clean()).name == "full_clean"


def test_functions_are_known_by_name() -> None:
    plan = ShadowPlan(every_node, statistic=first_class)
    description = plan.describe(datasets.load("demo"))
    assert description["sampler"] == {"name": f"{every_node.__module__}:every_node"}
    assert description["statistic"] == {"name": "own_parts:first_class"}


def test_settings_that_are_arrays_are_known_by_content() -> None:
    from dataclasses import make_dataclass

    weighted = make_dataclass("Weighted", [("weights", Any)], namespace={"sample": every_node}, frozen=True)
    graph = datasets.load("demo")
    first, same, other = (ShadowPlan(weighted(np.full(3, value))).describe(graph) for value in (1.0, 1.0, 2.0))
    assert first == same
    assert first != other
    json.dumps(first)


@pytest.mark.parametrize(
    "model",
    [
        GCN(hidden=8),
        TorchModel(Sage),
        TorchModel(Sage, train_by_hand, "2"),
        TorchModel(wide_sage, version="x"),
        SageOfWidth(7),
        TrainedElsewhere(),
    ],
    ids=str,
)
def test_a_plan_of_parts_that_were_not_run_is_described_as_the_plan_itself(model: Any) -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(
        Thirds(1), model, releases=(Clean(), Rounded(2)), queries=(SomeEdges(3),), statistic=first_class, engine="torch"
    )

    def by_name(kind: str, part: Any) -> Any:
        return registry.build(kind, json.loads(json.dumps(registry.table_of(kind, part))), trust_code=False)

    named = replace(
        plan,
        sampler=by_name(SAMPLER, plan.sampler),
        model=by_name(MODEL, plan.model),
        releases=tuple(by_name(RELEASE, part) for part in plan.releases),
        queries=tuple(by_name(QUERY, part) for part in plan.queries),
        statistic=by_name(STATISTIC, plan.statistic),
    )
    assert isinstance(named.sampler, UntrustedPart)
    assert named.describe(graph) == plan.describe(graph)
    assert [view.name for view in named.views] == [view.name for view in plan.views]
    with pytest.raises(InputError, match="is code that a file names"):
        named.check_trusted()
    plan.check_trusted()


def test_training_is_recorded_as_it_is() -> None:
    """A training function of one's own has no epochs, and nothing is known of models trained elsewhere."""
    graph = datasets.load("demo")
    own = ShadowPlan(Uniform(0.5), TorchModel(Sage, train_by_hand), engine="torch")
    assert own.training is None
    assert own.describe(graph)["training"] == {"name": "own_parts:train_by_hand"}
    elsewhere = ShadowPlan(Uniform(0.5), TrainedElsewhere())
    assert elsewhere.training is None
    described = elsewhere.describe(graph)
    assert (described["model"], described["training"]) == ({"name": "elsewhere"}, "trained elsewhere")
    assert described["engine"] is None
    assert replace(elsewhere, model=GCN()).training == Training()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ShadowPlan("uniform"), "sampler must have a method sample or be a function, got 'uniform'"),  # type: ignore[arg-type]
        (lambda: NoisyLastLayer(-1), "noise_std must be at least 0, got noise_std=-1"),
        (lambda: NoisyLastLayer(float("nan")), "noise_std must be at least 0, got noise_std=nan"),
        (lambda: ShadowPlan(Uniform(0.5), releases=()), "a plan needs at least one release, each of its own name"),
        (
            lambda: ShadowPlan(Uniform(0.5), queries=(NoEdges(), NoEdges())),
            "a plan needs at least one query, each of its own name, got none, none",
        ),
        (lambda: ShadowPlan(Uniform(0.5), releases=("clean",)), "a release must have a method outputs, got 'clean'"),  # type: ignore[arg-type]
        (lambda: ShadowPlan(Uniform(0.5), seed=-1), "seed must be a whole number"),
        (
            lambda: ShadowPlan(Uniform(0.5), engine="jax"),
            "engine must be one of native, torch, sklearn, or module:Name of your own, got 'jax'",
        ),
        (lambda: ShadowPlan(Uniform(0.5), TorchModel(Sage)), "the native engine cannot train Sage: .*engine='torch'"),
        (
            lambda: ShadowPlan(Uniform(0.5), "gcn"),
            "model must be a model, a scikit-learn classifier, or a function of .*, got 'gcn'",
        ),
        (
            lambda: ShadowPlan(Uniform(0.5), TorchModel(lambda _f, _c: None), engine="torch"),
            "may stand for many functions; tell them apart by version=",
        ),
        (
            lambda: ShadowPlan(Uniform(0.5), TorchModel(partial(print, 1)), engine="torch"),
            "TorchModel: functools:partial may stand for many functions; tell them apart by version=",
        ),
        (
            lambda: ShadowPlan(Uniform(0.5), statistic=lambda outputs, _: outputs[..., 0]),
            "statistic: .*<lambda> may stand for many functions",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
