"""The example finds what it says."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "scikit_learn.py"


def test_a_forest_leaks_more_than_one_of_large_leaves() -> None:
    names = runpy.run_path(str(EXAMPLE))
    done = {
        name: names["audit_classifier"](names["CLASSIFIERS"][name], 40) for name in ("forest", "forest-of-large-leaves")
    }
    auc = {name: each.summary["releases"]["clean"]["auc"] for name, each in done.items()}
    assert auc["forest"] > auc["forest-of-large-leaves"] + 0.05
    assert done["forest"].is_leakage_found
    assert done["forest"].plan.engine == "sklearn"
