from pathlib import Path
from typing import Any

import pytest

from bmpaudit import datasets
from bmpaudit.models import GCN, Training
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan, estimate_cost, train_shadows
from bmpaudit.shadow import train as cost


def test_cost_scales_with_the_number_of_models_and_foretells_the_disk(tmp_path: Path) -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.25), GCN(), Training(epochs=5))
    price = estimate_cost(graph, plan, 64)
    assert price.seconds > 0
    assert price.disk_bytes == 64 * (4 * 4 * 1_000 + 125)
    train_shadows(graph, plan, 64, tmp_path)
    on_disk = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert 0.7 < on_disk / price.disk_bytes < 1.1
    assert "64 models: about" in str(price)


@pytest.mark.parametrize(("most_bytes", "num_stored"), [(2**28, 32), (10 * 16_000, 10), (0, 3)])
def test_opening_the_store_and_storing_models_count(
    most_bytes: int, num_stored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most a chunk is stored on trial, of so many bytes, but all models that were trained."""

    def store(_: Any, __: Any, ___: Any, num_models: int) -> tuple[float, float]:
        assert num_models == num_stored
        return 2.0, 0.5 * num_models

    monkeypatch.setattr(cost, "_time_storing", store)
    monkeypatch.setattr(cost, "MOST_STORED", most_bytes)
    plan = ShadowPlan(Uniform(0.25), GCN(), Training(epochs=1))
    price = estimate_cost(datasets.load("demo"), plan, 1_000, num_threads=1)  # 1,000 nodes, four views
    assert price.seconds == pytest.approx(2.0 + 1_000 * (price.seconds_per_model + 0.5))
