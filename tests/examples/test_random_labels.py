"""The example tells what models know of their samples from what they cannot know of others."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "random_labels.py"


def test_class_frequencies_give_members_away_and_other_samples_do_not() -> None:
    found = runpy.run_path(str(EXAMPLE))["examine"](seed=0, num_models=120, num_nodes=60)
    assert found.p_value == 1 / 200
    assert found.best_auc > found.auc > 0.55
    assert abs(found.null_auc - 0.5) < 0.02
    assert found.null_p_value > 0.05
