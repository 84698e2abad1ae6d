"""A graph from a function of the user's own."""

import importlib
import sys
from pathlib import Path

from bmpaudit.errors import DataError
from bmpaudit.graph import Graph


def is_function_name(name: str) -> bool:
    """Whether a text reads as `module:function`."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def graph_from_function(name: str) -> Graph:
    """Calls `module:function`, which is looked for as Python does, and in the current folder.

    Raises:
        DataError: if there is none, it fails, or it does not return a `Graph`.
    """
    module_name, _, function_name = name.partition(":")
    here = str(Path.cwd())
    is_new = here not in sys.path
    if is_new:
        sys.path.insert(0, here)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
        graph = function()
    except (Exception, SystemExit) as failure:  # the user's code may raise anything
        raise DataError(f"{name}: {type(failure).__name__}: {failure}") from failure
    finally:
        if is_new:
            sys.path.remove(here)
    if not isinstance(graph, Graph):
        raise DataError(f"{name} must return a bmpaudit.Graph, got {type(graph).__name__}")
    return graph
