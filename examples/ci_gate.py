"""A gate for CI: fails if models trained this way name too many of their training nodes.

    python examples/ci_gate.py [--data demo] [--models 400] || echo "do not release"

The same from a plan file, without Python: docs/gate.md.
"""

import argparse
import sys
from typing import Any

from bmpaudit.gate import GateResult, check
from bmpaudit.pipeline.pipeline import audit


def gate(data: Any = "demo", num_models: int = 400, max_exposure: str = "10@0.99", **settings: Any) -> GateResult:
    """Audits, and holds the audit against a threshold: at most so many correct names per model, at a certainty."""
    done = audit(data, shadows=num_models, definitions="bmp-r", releases="clean", **settings)
    return check(done, max_exposure=max_exposure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="demo")
    parser.add_argument("--models", type=int, default=400)
    options = parser.parse_args()
    result = gate(options.data, options.models)
    for threshold in result.thresholds:
        print(f"{threshold.outcome}: {threshold.label}, {threshold.explanation}")
    sys.exit(result.exit_code)
