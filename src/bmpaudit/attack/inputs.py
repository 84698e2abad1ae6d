"""Which models are asked about which nodes, with which prior; and what speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from bmpaudit.attack.counts import NotAuditable
from bmpaudit.errors import InputError

if TYPE_CHECKING:
    from bmpaudit.shadow import ShadowRuns

SHADOW_FREQUENCY: Literal["shadow-frequency"] = "shadow-frequency"


def target_nodes(targets: npt.ArrayLike | None, num_nodes: int) -> npt.NDArray[np.int64]:
    """The target set 𝒯 as node ids; all nodes if None, and flags for all nodes stand for those that are set."""
    if targets is None:
        return np.arange(num_nodes)
    given = np.asarray(targets)
    if given.dtype == np.bool_ and given.shape == (num_nodes,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or len(given) == 0 or given.dtype.kind not in "iu":
        raise InputError(f"targets must be a list of node ids, at least one, got {given.dtype} of shape {given.shape}")
    outside = (given < 0) | (given >= num_nodes)
    if outside.any():
        raise InputError(f"targets must be in [0, {num_nodes}), got {given[outside.argmax()]}")
    if len(np.unique(given)) != len(given):
        raise InputError("targets must be distinct")
    return given.astype(np.int64)


def prior_probs(prior_prob: npt.ArrayLike | str, fitting: ShadowRuns) -> npt.NDArray[np.float64]:
    """γ(1) of all nodes, shape (num_nodes,): as given, or the frequency over the models that are fitted on."""
    if isinstance(prior_prob, str):
        if prior_prob != SHADOW_FREQUENCY:
            raise InputError(f"prior_prob must be an array or {SHADOW_FREQUENCY!r}, got {prior_prob!r}")
        return fitting.memberships.mean(axis=0)
    num_nodes = fitting.memberships.shape[1]
    probs = np.asarray(prior_prob, dtype=np.float64)
    if probs.shape != (num_nodes,):
        raise InputError(
            f"prior_prob must have shape ({num_nodes},), one for each node of the graph, got {probs.shape}"
        )
    fits = (probs >= 0) & (probs <= 1)
    if not fits.all():
        node = int(fits.argmin())
        raise InputError(f"prior_prob must be in [0, 1], got prior_prob={probs[node]} for node {node}")
    return probs


def find_not_auditable(
    nodes: npt.NDArray[np.int64],
    num_out: npt.NDArray[np.int64],
    num_in: npt.NDArray[np.int64],
    prior_prob: npt.NDArray[np.float64],
    needed: int,
) -> tuple[NotAuditable, ...]:
    """Nodes with fewer than `needed` models on a side, or with a prior that leaves nothing to find out."""
    wrong = np.flatnonzero((np.minimum(num_out, num_in) < needed) | (prior_prob <= 0) | (prior_prob >= 1))
    found = []
    for i in wrong:
        total = num_out[i] + num_in[i]
        if num_in[i] < needed:
            reason = f"in the samples of {num_in[i]:,} of {total:,} models, at least {needed} are needed"
        elif num_out[i] < needed:
            reason = f"missing from the samples of {num_out[i]:,} of {total:,} models, at least {needed} are needed"
        else:
            reason = f"its prior probability is {prior_prob[i]:g}"
        found.append(NotAuditable(int(nodes[i]), reason))
    return tuple(found)


def target_columns(
    runs: ShadowRuns, view: str, columns: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Statistics and memberships of the target nodes as the kernel takes them; not copied if all are."""
    if view not in runs.statistics:
        raise InputError(f"view must be one of {', '.join(runs.statistics)}, got view={view!r}")
    if not runs.num_models:
        raise InputError("there must be at least one model, got none")
    statistics, memberships = runs.statistics[view], runs.memberships
    if statistics.shape != memberships.shape:
        raise InputError(f"view {view}: must have shape {memberships.shape} as memberships, got {statistics.shape}")
    if columns is not None:
        statistics, memberships = statistics[:, columns], memberships[:, columns]
    if not np.isfinite(statistics).all():
        model, node = np.argwhere(~np.isfinite(statistics))[0]
        where = f"model {runs.indices[model]}, node {node if columns is None else columns[node]}"
        raise InputError(f"view {view}: must be finite, got {statistics[model, node]} for {where}")
    return (
        np.ascontiguousarray(statistics, dtype=np.float32),
        np.ascontiguousarray(memberships, dtype=np.bool_).view(np.uint8),
    )


def check_disjoint(fitting: ShadowRuns, challenged: ShadowRuns, view: str) -> None:
    """Refuses a model that is challenged with hypotheses fitted on itself.

    Numbers alone do not tell: models of two plans may share them. The same answers to everything do.
    """
    _, in_fitting, in_challenged = np.intersect1d(fitting.indices, challenged.indices, return_indices=True)
    for mine, theirs in zip(in_fitting, in_challenged, strict=True):
        same_statistics = np.array_equal(fitting.statistics[view][mine], challenged.statistics[view][theirs])
        if same_statistics and np.array_equal(fitting.memberships[mine], challenged.memberships[theirs]):
            raise InputError(f"model {fitting.indices[mine]} is among both the fitting and the challenged models")
