"""An audit whose shadow models are trained on a Dask cluster.

    python examples/on_dask.py [--address tcp://scheduler:8786] [--models 1000]

Without an address it starts a cluster of two processes on this machine. What is found is the same, to the byte, as
without a cluster.
"""

import argparse
from typing import Any

from distributed import Client

from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit
from bmpaudit.pipeline.pipeline import audit


def audit_on_dask(client: Client, data: Any = "demo", num_models: int = 1_000, **settings: Any) -> Audit:
    """Audits with the workers of a cluster."""
    runtime = Runtime(executor=client.get_executor(), quiet=True)
    return audit(data, shadows=num_models, runtime=runtime, **settings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address")
    parser.add_argument("--models", type=int, default=1_000)
    options = parser.parse_args()
    with Client(options.address) if options.address else Client(n_workers=2, threads_per_worker=1) as cluster:
        print(audit_on_dask(cluster, num_models=options.models))
