"""Outputs of one query as a Parquet table: a row for each node, a column for each class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.errors import DataError
from bmpaudit.graph import Graph
from bmpaudit.graph.node_ids import node_ids
from bmpaudit.reading.table import read_table

NODE = "node"


def read_output_table(path: Path, graph: Graph) -> npt.NDArray[Any]:
    """Outputs of shape (rows, classes); with a column `node` of names or numbers, rows are put in the graph's order.

    Raises:
        DataError: if the file is missing or damaged, or a node is unknown, missing or there twice.
    """
    columns = dict(read_table(path).items())
    nodes = columns.pop(NODE, None)
    if not columns:
        raise DataError(f"{path}: a table of outputs must have a column for each class, got none")
    try:
        outputs = np.column_stack([np.array(column, dtype=np.float64) for column in columns.values()])
    except (TypeError, ValueError) as failure:
        raise DataError(f"{path}: a table of outputs must hold numbers: {failure}") from None
    if nodes is None or len(nodes) != graph.num_nodes:
        return outputs
    ordered = np.empty_like(outputs)
    ordered[node_ids(nodes.tolist(), graph, str(path))] = outputs
    return ordered
