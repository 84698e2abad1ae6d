"""An audit of a graph convolutional network on Cora, as the paper does it.

    bmpaudit data get cora
    python examples/audit_cora.py [--models 1000] [--out cora-audit]

With --out, the folder has a page, and more models can be added later.
"""

import argparse
from typing import Any

from bmpaudit.auditing.finished import Audit
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.samplers import Snowball


def audit_cora(graph: Any = "cora", num_models: int = 1_000, **settings: Any) -> Audit:
    """Audits models that are trained on a quarter of the nodes, found along the edges from a random one."""
    return audit(graph, sampler=Snowball(0.25), model="gcn", shadows=num_models, **settings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--out")
    options = parser.parse_args()
    print(audit_cora(num_models=options.models, folder=options.out))
