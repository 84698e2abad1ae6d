"""Graphs made by a function of the user's own."""

from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.registry import import_target


def graph_from_function(name: str) -> Graph:
    """Imports and calls `module:function`, which is searched for in the current folder too.

    Raises:
        DataError: if it does not exist, fails, or does not return a `Graph`.
    """
    try:
        function = import_target(name)
    except InputError as failure:
        raise DataError(_one_line(failure)) from failure
    try:
        graph = function()
    except (Exception, SystemExit) as failure:  # the user's code may raise anything
        raise DataError(f"{name}: {type(failure).__name__}: {_one_line(failure)}") from failure
    if not isinstance(graph, Graph):
        raise DataError(f"{name} must return a bmpaudit.Graph, got {type(graph).__name__}")
    return graph


def _one_line(failure: BaseException) -> str:
    return " ".join(str(failure).split())
