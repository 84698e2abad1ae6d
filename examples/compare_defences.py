"""Does a defence help, and what does it cost? Two audits of the same samples, compared in pairs of models.

    python examples/compare_defences.py [--data demo] [--models 300]

The defence is strong weight decay; anything else that a plan can say would do.
"""

import argparse
from typing import Any

from bmpaudit.comparison.compare import Comparison, compare
from bmpaudit.pipeline.pipeline import audit

DEFENCE = {"weight_decay": 0.05}


def compare_defences(data: Any = "demo", num_models: int = 300, **settings: Any) -> Comparison:
    """Compares training with strong weight decay with training without; the same seed draws the same samples."""
    plain, defended = (
        audit(data, shadows=num_models, definitions="bmp-r", releases="clean", training=training, **settings)
        for training in ({}, DEFENCE)
    )
    return compare([plain, defended])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="demo")
    parser.add_argument("--models", type=int, default=300)
    options = parser.parse_args()
    print(compare_defences(options.data, options.models))
