"""Samplers that follow edges."""

from bmpaudit.errors import InputError
from bmpaudit.graph import Graph


def check_edges(sampler: str, graph: Graph) -> None:
    """Raises `InputError` if a sampler that follows edges gets several nodes and no edge."""
    if not graph.num_edges and graph.num_nodes > 1:
        raise InputError(
            f"{sampler} sampling follows edges, and there are none: use uniform, bernoulli or stratified sampling"
        )
