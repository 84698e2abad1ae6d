"""Releases of several models that are trained on the same sample."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import fill, random_graph

from bmpaudit.models import GCN, Training
from bmpaudit.releases import Clean, Ensemble, NoisyLastLayer, label_margin
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.shadow.engines.torch import TorchEngine
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import repeat_index

PLAN = ShadowPlan(Uniform(0.5), GCN(dropout=0.5), Training(epochs=8), releases=(Clean(), Ensemble(3)), seed=3)
ENGINES = [("native", NativeEngine), ("torch", TorchEngine)]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine[0])
def test_an_ensemble_is_the_mean_of_models_of_one_sample(engine: Any) -> None:
    """Against models that are trained one by one, with the streams of each repeat and the same sample."""
    graph = random_graph()
    plan = replace(PLAN, engine=engine[0])
    batch: Any = fill(engine[1](graph, plan), graph, plan, [0, 5], keep_logits=True)
    assert batch.is_done.all()
    alone = replace(plan, releases=(Clean(),))
    for row, index in enumerate((0, 5)):
        repeats = []
        for repeat in range(3):
            one = fill(engine[1](graph, alone), graph, alone, [index], keep_logits=True).part(slice(0, 1))
            again: Any = replace(
                one, indices=np.array([repeat_index(index, repeat)]), state=np.zeros(1, dtype=np.uint8)
            )
            engine[1](graph, alone).fill(again, 1, lambda _: None)
            repeats.append(again.logits[:, 0].astype(np.float64))
        assert not np.array_equal(repeats[0], repeats[1])
        names = [view.name for view in plan.views]
        for number, query in enumerate(("full", "none")):
            clean, ensemble = (names.index(f"{query}_{release}") for release in ("clean", "ensemble-3"))
            assert np.array_equal(batch.logits[clean, row], repeats[0][number].astype(np.float32))
            weights = [np.exp(each[number]) for each in repeats]
            mean = sum(each / each.sum(axis=1, keepdims=True) for each in weights) / 3
            assert batch.logits[ensemble, row] == pytest.approx(np.log(mean), abs=1e-5)
            margins = label_margin(batch.logits[ensemble, row], graph.labels)
            assert np.array_equal(batch.statistics[ensemble, row], margins)


def test_other_releases_are_the_same_beside_an_ensemble() -> None:
    graph = random_graph()
    without = replace(PLAN, releases=(Clean(), NoisyLastLayer()))
    plan = replace(PLAN, releases=(Clean(), NoisyLastLayer(), Ensemble(2)))
    alone, beside = (fill(NativeEngine(graph, each), graph, each, [0, 1, 2], 2) for each in (without, plan))
    assert alone.statistics.tobytes() == beside.statistics[[0, 1, 3, 4]].tobytes()
    assert alone.train_accuracy.tobytes() == beside.train_accuracy.tobytes()


def test_models_do_not_depend_on_their_number_or_on_threads() -> None:
    graph = random_graph()
    together = fill(NativeEngine(graph, PLAN), graph, PLAN, list(range(40)), 2)
    alone = fill(NativeEngine(graph, PLAN), graph, PLAN, [37], 1)
    assert together.statistics[:, [37]].tobytes() == alone.statistics.tobytes()


def test_an_ensemble_has_at_least_two_models() -> None:
    with pytest.raises(InputError, match="ensemble_size must be from 2 to 1,000, got 1"):
        Ensemble(1)
