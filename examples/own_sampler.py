"""An audit of models whose training nodes were chosen in a way of one's own.

    python examples/own_sampler.py [--data demo] [--models 300]

A study invites the neighbourhoods of a few people: whoever knows that knows beforehand that the well-connected are
more likely to be in. The priors, which come from many draws of the sampler, say how likely.
"""

import argparse
from typing import Any

import numpy as np

from bmpaudit.auditing.finished import Audit
from bmpaudit.graph.graph import Graph
from bmpaudit.pipeline.pipeline import audit

NUM_INVITED = 60


def neighbourhoods(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """Everybody within one step of some invited people; all chance comes from `rng`."""
    invited = rng.choice(graph.num_nodes, size=min(NUM_INVITED, graph.num_nodes // 4), replace=False)
    friends = [graph.indices[graph.indptr[node] : graph.indptr[node + 1]] for node in invited]
    return np.unique(np.concatenate([invited, *friends]))


def audit_own_sampler(data: Any = "demo", num_models: int = 300, **settings: Any) -> Audit:
    """Audits models that are trained on such samples."""
    return audit(data, sampler=neighbourhoods, shadows=num_models, **settings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="demo")
    parser.add_argument("--models", type=int, default=300)
    options = parser.parse_args()
    done = audit_own_sampler(options.data, options.models)
    print(done)
    print(f"priors from {done.priors.prob.min():.3f} to {done.priors.prob.max():.3f}")
