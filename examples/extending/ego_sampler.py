"""A sampler of your own: the neighbourhoods of a few nodes drawn at random.

bmpaudit audit demo --sampler ego_sampler:EgoNetworks --set sampler.num_egos=60 --out ego-audit
"""

from dataclasses import dataclass

import numpy as np

from bmpaudit.graph.graph import Graph


@dataclass(frozen=True)
class EgoNetworks:
    """Everybody within one step of `num_egos` nodes, which are drawn uniformly without replacement.

    Attributes:
        num_egos: Number of nodes whose neighbourhoods are taken.
    """

    num_egos: int = 50

    def sample(self, graph: Graph, rng: np.random.Generator) -> np.ndarray:
        """One sample, as node ids."""
        egos = rng.choice(graph.num_nodes, size=min(self.num_egos, graph.num_nodes), replace=False)
        neighbours = [graph.indices[graph.indptr[ego] : graph.indptr[ego + 1]] for ego in egos]
        return np.unique(np.concatenate([egos, *neighbours]))
