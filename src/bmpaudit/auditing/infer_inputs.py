"""What is known of a released model beside its outputs: declared priors, and who was in."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats
from bmpaudit.attack.not_auditable import node_label
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.graph.node_ids import node_ids
from bmpaudit.reading.archive import archive_names, read_archive, read_array
from bmpaudit.reading.table import SUFFIXES, read_table
from bmpaudit.reading.text import read_text

PRIOR, MEMBER, NODE, MEMBERSHIPS = "prior_prob", "member", "node", "memberships"


def declared_prior(prior: Any, graph: Graph) -> Floats:
    """Declared prior probabilities of membership, shape (N,).

    Args:
        prior: One number in (0, 1) for all nodes; one for each node; or a file: `.npy`, or a table, `.csv` or
            `.parquet`, with `prior_prob` and, unless it has all nodes in order, `node` by name or number.
        graph: The graph.

    Raises:
        DataError: if a file is missing, damaged or lacks a node.
        InputError: if a probability is impossible; the message names the node and the value.
    """
    if isinstance(prior, (str, Path)) and not _is_number(str(prior)):
        path = Path(prior)
        if path.suffix.lower() in SUFFIXES:
            return _checked_prior(_node_column(path, PRIOR, graph), graph, f"{path}: ")
        if path.suffix.lower() != ".npy":
            raise DataError(f"{path}: priors must be a number, or a file .npy, .csv or .parquet")
        return _checked_prior(read_array(path), graph, f"{path}: ")
    values = np.asarray(float(prior) if isinstance(prior, str) else prior)
    if values.ndim == 0:
        if values.dtype.kind not in "fiu" or not 0 < float(values) < 1:
            raise InputError(f"prior must be in (0, 1), got {prior}")
        return np.full(graph.num_nodes, float(values))
    return _checked_prior(values, graph, "")


def _checked_prior(values: npt.NDArray[Any], graph: Graph, place: str) -> Floats:
    if values.shape != (graph.num_nodes,) or values.dtype.kind not in "fiu":
        raise InputError(
            f"{place}priors must be numbers of shape ({graph.num_nodes},), one for each node, got {values.dtype} of "
            f"shape {values.shape}"
        )
    probs = values.astype(np.float64)
    is_prob = (probs >= 0) & (probs <= 1)
    if not is_prob.all():
        node = int(is_prob.argmin())
        raise InputError(f"{place}priors must be in [0, 1], got {probs[node]:g} for {_label(node, graph)}")
    return probs


def known_members(truth: Any, graph: Graph) -> Flags:
    """Who was in the training sample, shape (N,).

    Args:
        truth: A flag for each node, or the members' numbers or names; or a file: `.npy`, or `.npz` with one array or
            `memberships`, of either; `.txt` with a member in each line; or a table, `.csv` or `.parquet`, with `node`
            (the members) or `member` (a flag for each node) or both.
        graph: The graph.

    Raises:
        DataError: if a file is missing or damaged, or a node is unknown or there twice.
        InputError: if there is no member, or no other node.
    """
    if not isinstance(truth, (str, Path)):
        return _checked_members(_members(np.asarray(truth), graph, "truth"), "truth")
    path = Path(truth)
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        members = _table_members(path, graph)
    elif suffix == ".txt":
        lines = [line.strip() for line in read_text(path, encoding="utf-8-sig").splitlines()]
        members = _members(np.array([line for line in lines if line], dtype=object), graph, str(path))
    elif suffix == ".npy":
        members = _members(read_array(path), graph, str(path))
    elif suffix == ".npz":
        names = archive_names(path)
        if len(names) != 1 and MEMBERSHIPS not in names:
            raise DataError(f"{path}: must hold one array, or {MEMBERSHIPS}, got {', '.join(names) or 'nothing'}")
        chosen = MEMBERSHIPS if MEMBERSHIPS in names else names[0]
        members = _members(read_archive(path, required=[chosen])[chosen], graph, str(path))
    else:
        raise DataError(f"{path}: who was in must be told by a file .npy, .npz, .csv, .parquet or .txt")
    return _checked_members(members, str(path))


def _members(values: npt.NDArray[Any], graph: Graph, place: str) -> Flags:
    """Flags for all nodes, or the members themselves."""
    if values.ndim == 2 and len(values) == 1:  # one row of the memberships of many models
        values = values[0]
    if values.ndim != 1:
        raise InputError(
            f"{place}: must be a flag for each of {graph.num_nodes:,} nodes, or the members, got shape {values.shape}"
        )
    is_flags = len(values) == graph.num_nodes and values.dtype.kind in "bfiu" and bool(np.isin(values, (0, 1)).all())
    if is_flags:
        return values.astype(np.bool_)
    if values.dtype.kind == "b":
        raise InputError(f"{place}: must have a flag for each of {graph.num_nodes:,} nodes, got {len(values):,}")
    members = np.zeros(graph.num_nodes, dtype=np.bool_)
    members[node_ids(values.tolist(), graph, place)] = True
    return members


def _table_members(path: Path, graph: Graph) -> Flags:
    table = read_table(path, text=[NODE])
    if MEMBER not in table:
        if NODE not in table:
            raise DataError(f"{path}: must have a column node or member, got {', '.join(map(str, table.columns[:8]))}")
        return _members(table[NODE].to_numpy(dtype=object), graph, str(path))
    flags = _node_column(path, MEMBER, graph)
    if flags.dtype.kind == "O":
        flags = np.array([{"true": 1, "false": 0, "1": 1, "0": 0}.get(str(v).lower(), -1) for v in flags])
    if not np.isin(flags, (0, 1)).all():
        raise DataError(f"{path}: member must be 0 or 1, or true or false")
    return flags.astype(np.bool_)


def _checked_members(members: Flags, place: str) -> Flags:
    if members.all() or not members.any():
        raise InputError(f"{place}: there must be members and non-members, got {members.sum():,} of {members.size:,}")
    return members


def _node_column(path: Path, name: str, graph: Graph) -> npt.NDArray[Any]:
    """A column with a value for each node, in the graph's order."""
    table = read_table(path, text=[NODE], required=[name])
    values = table[name].to_numpy()
    if len(values) != graph.num_nodes:
        raise DataError(f"{path}: must have a row for each of {graph.num_nodes:,} nodes, got {len(values):,}")
    if NODE not in table:
        return values
    ordered = np.empty_like(values)
    ordered[node_ids(table[NODE].tolist(), graph, str(path))] = values
    return ordered


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def _label(node: int, graph: Graph) -> str:
    return node_label(node, graph.node_names[node] if graph.node_names else None)
