"""Graph convolution of one hop trained by DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass

from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.shadow.models.bounded_degree import bound_degrees
from bmpaudit.shadow.models.dp_model import DPModel

MOST_NEIGHBOURS = 200


@dataclass(frozen=True)
class DPGCN(DPModel):
    """A graph convolution of one hop that is (ε, δ)-MDP by a proof, in the manner of Daigavane et al. (2022).

    A node's row is the mean of its own features and its neighbours', scaled to length 1, on a graph of bounded degree.
    A node is in its own row and in those of at most d neighbours, for which the noise accounts.

    Formal guarantees:
        - As `DPMLP`, with the loss of a step from docs/guarantees.md: the node's own row and the rows of its neighbours
          are drawn into a batch independently of each other.
        - The degree bound holds for the whole graph, which is public: it does not depend on the sample.

    Attributes:
        max_degree: Degree bound d: edges beyond it are left out of the training graph.
    """

    max_degree: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_one(max_degree=self.max_degree)
        if self.max_degree > MOST_NEIGHBOURS:
            raise InputError(f"max_degree must be at most {MOST_NEIGHBOURS}, got max_degree={self.max_degree}")

    @property
    def rows_changed(self) -> int:
        """See `DPModel.rows_changed`: those of its neighbours."""
        return self.max_degree

    def training_graph(self, graph: Graph) -> Graph:
        """The graph with bounded degrees; samples induce their training graph in it."""
        return bound_degrees(super().training_graph(graph), self.max_degree)
