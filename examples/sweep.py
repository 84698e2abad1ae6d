"""Which defence exposes least for the accuracy it leaves? A small sweep, and its front again with fresh models.

    python examples/sweep.py [--data demo] [--models 100] [--out DIR]

Ways of training a GCN, each released in three ways. With --out every audit has a folder with a page, and a second run
uses what is there. docs/defences.md has the same of Cora and CiteSeer.
"""

import argparse
from pathlib import Path
from typing import Any

from bmpaudit.auditing.context import Runtime
from bmpaudit.graph.graph import Graph
from bmpaudit.plan import AuditPlan
from bmpaudit.releases import Clean, LabelOnly, Rounded
from bmpaudit.sweeps import Sweep, sweep

GRID = {"training.weight_decay": [0.0005, 0.01, 0.05]}
POINTS: list[dict[str, Any]] = [{"training.validation_share": 0.2}, {"model.hidden": 4}]


def search(data: Graph | str, num_models: int, folder: Path | None = None) -> Sweep:
    """Audits every point, and those that no other beats once more."""
    plan = AuditPlan(shadows=num_models, definitions="bmp-r", releases=(Clean(), Rounded(1), LabelOnly()))
    return sweep(data, plan, grid=GRID, points=POINTS, folder=folder, confirm=True, runtime=Runtime(quiet=True))


def main() -> None:
    """Prints the front."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="demo")
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = search(options.data, options.models, options.out)
    table = found.table[found.table["on_front"]].sort_values("named_90")
    for row in table.to_dict("records"):
        print(
            f"{row['label']}: accuracy {row['accuracy']:.3f}, {row['named_90']:.1f} named with 90 % certainty; with "
            f"fresh models {row['confirmed_accuracy']:.3f}, {row['confirmed_named_90']:.1f}"
        )


if __name__ == "__main__":
    main()
