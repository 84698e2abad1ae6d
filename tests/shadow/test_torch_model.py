"""Models of one's own, from their name to their name."""

from typing import Any

import pytest
from own_parts import Sage, SageOfWidth, train_by_hand, wide_sage

from bmpaudit import datasets, registry
from bmpaudit.models import GCN, TorchModel, Training, as_model
from bmpaudit.registry import MODEL
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.errors import InputError


@pytest.mark.parametrize(
    ("table", "model"),
    [
        ({"name": "own_parts:Sage"}, TorchModel(Sage)),
        ({"name": "own_parts:wide_sage"}, TorchModel(wide_sage)),
        (
            {"name": "own_parts:Sage", "train": "own_parts:train_by_hand", "version": "2"},
            TorchModel(Sage, train_by_hand, "2"),
        ),
        ({"name": "own_parts:SageOfWidth", "width": 3}, SageOfWidth(3)),
        ({"name": "gcn", **registry.settings_of(GCN(hidden=3))}, GCN(hidden=3)),
    ],
)
def test_a_model_is_found_by_name_and_gives_its_name_back(table: dict[str, Any], model: Any) -> None:
    built = registry.build(MODEL, table)
    assert built == model
    assert registry.table_of(MODEL, built) == table
    assert registry.name_of(MODEL, built) == table["name"]


def test_titles_name_the_factory() -> None:
    assert str(TorchModel(Sage)) == "Sage"
    assert registry.label(MODEL, TorchModel(wide_sage)) == "wide-sage"
    assert str(TorchModel(lambda _f, _c: None, version="1")) == "<lambda>"


def test_a_plan_takes_a_module_class_a_factory_or_a_model() -> None:
    assert as_model(Sage) == TorchModel(Sage)
    assert as_model(GCN(hidden=3)) == GCN(hidden=3)
    assert as_model(GCN) == GCN()
    assert ShadowPlan(Uniform(0.5), wide_sage, engine="torch").model == TorchModel(wide_sage)


def test_settings_that_a_factory_does_not_take_are_refused() -> None:
    with pytest.raises(InputError, match="model own_parts:Sage takes the settings train and version, got hidden"):
        registry.build(MODEL, {"name": "own_parts:Sage", "hidden": 3})
    with pytest.raises(InputError, match=r"unknown key model\.hidden"):
        registry.build(MODEL, {"name": "own_parts:SageOfWidth", "hidden": 3})


def test_a_model_named_in_a_plan_trains_and_resumes(tmp_path: Any) -> None:
    graph = datasets.load("demo")
    first, again = (
        ShadowPlan(Uniform(0.1), registry.build(MODEL, "own_parts:Sage"), Training(epochs=2), engine="torch")
        for _ in range(2)
    )
    one = train_shadows(graph, first, 2, tmp_path)
    two = train_shadows(graph, again, 3, tmp_path)
    assert two.statistics["none_noisy"][:2].tobytes() == one.statistics["none_noisy"].tobytes()
