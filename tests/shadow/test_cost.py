from pathlib import Path

from bmpaudit import datasets
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import GCN, ShadowPlan, Training, estimate_cost, train_shadows


def test_cost_scales_with_the_number_of_models_and_foretells_the_disk(tmp_path: Path) -> None:
    graph = datasets.load("demo")
    plan = ShadowPlan(Uniform(0.25), GCN(), Training(epochs=5))
    cost = estimate_cost(graph, plan, 64)
    assert cost.seconds > 0
    assert cost.disk_bytes == 64 * (4 * 4 * 1_000 + 125)
    train_shadows(graph, plan, 64, tmp_path)
    on_disk = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert 0.7 < on_disk / cost.disk_bytes < 1.1
    assert "64 models: about" in str(cost)
