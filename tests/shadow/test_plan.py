import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from bmpaudit import Graph, InputError, datasets
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.shadow import GAT, QueryView, ShadowPlan, TorchModel


def every_node(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    return np.arange(graph.num_nodes)[rng.random(graph.num_nodes) < 0.5]


def test_a_plan_describes_itself_in_plain_values() -> None:
    graph = datasets.load("demo")
    told = ShadowPlan(Snowball(0.25), GAT(), seed=4).describe(graph)
    assert json.loads(json.dumps(told)) == told
    assert told["graph"]["content_hash"] == graph.content_hash
    assert told["sampler"] == {"kind": "Snowball", "train_fraction": 0.25, "fan_out": 5, "restart": False}
    assert told["model"]["heads"] == 8
    assert told["views"] == ["full_clean", "full_noisy", "none_clean", "none_noisy"]


def test_functions_are_known_by_name() -> None:
    told = ShadowPlan(every_node).describe(datasets.load("demo"))
    assert told["sampler"] == {"kind": "function", "name": f"{every_node.__module__}.every_node"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ShadowPlan("uniform"), "sampler must have a method sample or be a function, got 'uniform'"),  # type: ignore[arg-type]
        (lambda: ShadowPlan(Uniform(0.5), noise_std=-1), "noise_std must be at least 0, got noise_std=-1"),
        (lambda: ShadowPlan(Uniform(0.5), views=()), "views must name at least one view, each once"),
        (lambda: ShadowPlan(Uniform(0.5), views=(QueryView(), QueryView())), "views must name at least one view"),
        (lambda: ShadowPlan(Uniform(0.5), seed=-1), "seed must be a whole number"),
        (lambda: ShadowPlan(Uniform(0.5), engine="jax"), "engine must be native or torch, got engine='jax'"),  # type: ignore[arg-type]
        (lambda: ShadowPlan(Uniform(0.5), TorchModel(lambda _f, _c: None)), "a TorchModel needs engine='torch'"),
        (
            lambda: ShadowPlan(Uniform(0.5), TorchModel(lambda _f, _c: None), engine="torch"),
            "may stand for many functions; tell them apart by version=",
        ),
        (
            lambda: ShadowPlan(Uniform(0.5), TorchModel(partial(print, 1)), engine="torch"),
            "may stand for many functions; tell them apart by version=",
        ),
        (lambda: QueryView("some"), "edges full or none and output clean or noisy, got edges='some'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_carried_out_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
