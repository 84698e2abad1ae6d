"""In which way a folder's shadow models are not those of a plan, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIZES = {"num_nodes": "nodes", "num_edges": "edges", "num_features": "features", "num_classes": "classes"}


def difference(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """What a folder holds instead of what a plan asks for, or None if they are the same.

    Args:
        stored: `ShadowPlan.describe` as the folder has it.
        wanted: `ShadowPlan.describe` of the plan, of the same types.

    >>> difference({"format": 2, "seed": 1}, {"format": 2, "seed": 2})
    'shadow models with seed 1; this plan has seed 2'
    """
    if stored.get("format") != wanted.get("format"):
        return f"shadow models in format {stored.get('format')}; this version of bmpaudit reads {wanted['format']}"
    for name in [*wanted, *(name for name in stored if name not in wanted)]:
        there, here = stored.get(name), wanted.get(name)
        if there != here:
            return _graphs(there, here) if name == "graph" else _parts(name, there, here)
    return None


def _graphs(there: Any, here: Any) -> str:
    if not isinstance(there, Mapping) or not isinstance(here, Mapping):
        return "shadow models of another graph"
    apart = [name for name in SIZES if there.get(name) != here.get(name)]
    if not apart:
        return "shadow models of a graph of the same size with other edges, features or labels"
    shown = [name for name in SIZES if name in ("num_nodes", "num_edges", *apart)]
    return f"shadow models of a graph with {_sizes(there, shown)}; this one has {_sizes(here, shown)}"


def _sizes(graph: Mapping[str, Any], shown: list[str]) -> str:
    *first, last = (f"{graph.get(name, 0):,} {SIZES[name]}" for name in shown)
    return f"{', '.join(first)} and {last}"


def _parts(name: str, there: Any, here: Any) -> str:
    if there == "trained elsewhere" or (isinstance(there, Mapping) and there.get("name") == "elsewhere"):
        return f"models that were trained elsewhere; this plan has {name} {_words(here)}"
    if isinstance(there, Mapping) and isinstance(here, Mapping) and there.get("name") == here.get("name"):
        keys = [key for key in {**here, **there} if there.get(key) != here.get(key)]
        part = f"{name} {there['name']}, " if "name" in there else f"{name} "
        return f"shadow models with {part}{_settings(there, keys)}; this plan has {_settings(here, keys)}"
    return f"shadow models with {name} {_words(there)}; this plan has {name} {_words(here)}"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        settings = _settings(value, [key for key in value if key != "name"])
        return f"{value['name']} ({settings})" if "name" in value and settings else str(value.get("name", settings))
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return str(value)


def _settings(table: Mapping[str, Any], keys: list[str]) -> str:
    return ", ".join(f"{key}={table[key]!r}" if key in table else f"no {key}" for key in keys)
