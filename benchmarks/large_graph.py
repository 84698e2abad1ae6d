"""A whole audit of a large graph: 170,000 nodes, 1.2 million edges, 128 dense features, 20 GCNs, pictures included.

python benchmarks/large_graph.py [--nodes 170000] [--models 20]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from scale import make_graph

from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.pipeline.pipeline import Pipeline
from bmpaudit.plan import AuditPlan

NUM_FEATURES = 128


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=170_000)
    parser.add_argument("--models", type=int, default=20)
    arguments = parser.parse_args()
    subject = Subject(make_graph(arguments.nodes, NUM_FEATURES), "", AuditPlan(shadows=arguments.models))
    with tempfile.TemporaryDirectory() as folder:
        start, processor = time.perf_counter(), time.process_time()
        pipeline = Pipeline(subject, Workspace(Path(folder)), Runtime(quiet=True))
        with pipeline.prepared():
            page = pipeline.report()
        whole = f"{time.perf_counter() - start:.1f} s ({time.process_time() - processor:.1f} s of processor time)"
        size = 0.0 if page is None else page.stat().st_size / 1e6
    print(subject.graph)
    for step, seconds in pipeline.timings.items():
        print(f"  {step:<18} {seconds:6.1f} s")
    print(f"{whole}, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB, page {size:.1f} MB")


if __name__ == "__main__":
    main()
