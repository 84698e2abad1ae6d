"""Which rows of a table was a scikit-learn classifier trained on? An audit of three of them.

    python examples/scikit_learn.py [--models 200] [--out DIR]

The table is scikit-learn's own of 569 tumours; each shadow model is trained on a random half. With --out each audit
has a folder with a page.
"""

import argparse
from pathlib import Path
from typing import Any

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.samplers import Uniform

CLASSIFIERS: dict[str, Any] = {
    "forest": RandomForestClassifier(n_estimators=30),
    "forest-of-large-leaves": RandomForestClassifier(n_estimators=30, min_samples_leaf=20),
    "logistic-regression": make_pipeline(StandardScaler(), LogisticRegression()),
}


def audit_classifier(classifier: Any, num_models: int = 200, folder: Path | None = None) -> Audit:
    """Audits a classifier on the table."""
    table = load_breast_cancer(return_X_y=True)
    return audit(
        table, model=classifier, sampler=Uniform(0.5), shadows=num_models, folder=folder, runtime=Runtime(quiet=True)
    )


def main() -> None:
    """Audits all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for name, classifier in CLASSIFIERS.items():
        done = audit_classifier(classifier, options.models, None if options.out is None else options.out / name)
        accuracy, auc = done.runs.held_out_accuracy.mean(), done.summary["releases"]["clean"]["auc"]
        print(f"{name}: held-out accuracy {accuracy:.3f}, AUC of the attack {auc:.3f}. {done.verdict}", flush=True)


if __name__ == "__main__":
    main()
