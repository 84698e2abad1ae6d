"""The accuracy of each release in the answer."""

import numpy as np
import pytest
from small_audit import leaky_graph, tiny_plan

from bmpaudit.auditing.answer import release_accuracy
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.report.page_data import markdown_table


def test_the_summary_has_the_accuracy_of_each_release() -> None:
    plan = tiny_plan(releases=("clean", {"name": "noisy", "noise_std": 3.0}, "label-only"), shadows=12)
    result = audit(leaky_graph(), plan, pictures="none")
    releases = result.summary["releases"]
    for name, release in releases.items():
        accuracy = release_accuracy(result.plan, result.runs, name)
        assert release["held_out_accuracy"] == pytest.approx(float(np.mean(accuracy.held_out)), abs=1e-6)
        assert release["train_accuracy"] == pytest.approx(float(np.mean(accuracy.train)), abs=1e-6)
    models = result.summary["shadow_models"]
    assert releases["clean"]["held_out_accuracy"] == models["held_out_accuracy"]
    assert releases["label-only"]["train_accuracy"] == releases["clean"]["train_accuracy"]
    assert releases["noisy-3.0"]["train_accuracy"] < models["train_accuracy"]
    assert "held-out accuracy" in markdown_table(result)


def test_what_lesser_access_hides_is_told_with_its_numbers() -> None:
    for release, told in (("clean", 1), ("label-only", 0)):
        result = audit(leaky_graph(), tiny_plan(releases=release, shadows=24), pictures="none")
        assert result.is_leakage_found
        steps = [step for step in result.summary["next"] if step.startswith("Give out no more than is needed: ")]
        assert len(steps) == told
        if steps:
            main = result.result.main
            assert f": scores name {main.exposure.named(0.99).correct:.1f} with 99 % certainty" in steps[0]
            assert steps[0].endswith(f"labels {main.lesser['labels'].exposure.named(0.99).correct:.1f}.")
