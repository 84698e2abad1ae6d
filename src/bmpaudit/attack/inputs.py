"""Priors of the attacked nodes, and whether two sets of models may be used together."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats
from bmpaudit.attack.evidence import Evidence
from bmpaudit.errors import InputError
from bmpaudit.tables import count_in

SHADOW_FREQUENCY: Literal["shadow-frequency"] = "shadow-frequency"


def prior_probs(prior_prob: npt.ArrayLike | str, fitting: Evidence) -> Floats:
    """γ(1) of all nodes, shape (N,): as given, or how often each node is in the samples of the models fitted on."""
    if isinstance(prior_prob, str):
        if prior_prob != SHADOW_FREQUENCY:
            raise InputError(f"prior_prob must be an array or {SHADOW_FREQUENCY!r}, got {prior_prob!r}")
        return count_in(fitting.memberships) / fitting.num_models
    num_nodes = fitting.num_nodes
    probs = np.asarray(prior_prob, dtype=np.float64)
    if probs.shape != (num_nodes,):
        raise InputError(
            f"prior_prob must have shape ({num_nodes},), one for each node of the graph, got {probs.shape}"
        )
    is_prob = (probs >= 0) & (probs <= 1)
    if not is_prob.all():
        node = int(is_prob.argmin())
        raise InputError(f"prior_prob must be in [0, 1], got prior_prob={probs[node]} for {fitting.label(node)}")
    return probs


def check_fitting_models(fitting: Evidence, challenged: Evidence) -> None:
    """Refuses fitting models of another graph or other queries, and models that are challenged themselves.

    Numbers alone do not tell whether two models are the same, as models of two plans may share them. Identical
    memberships and statistics do.

    Raises:
        InputError: naming what differs, or the model that is on both sides.
    """
    if fitting.num_nodes != challenged.num_nodes:
        raise InputError(
            f"fitting models must be of the same graph: {challenged.num_nodes} nodes, got {fitting.num_nodes}"
        )
    if fitting.queries != challenged.queries:
        raise InputError(
            f"fitting models must have the same queries: {', '.join(challenged.queries)}, got "
            f"{', '.join(fitting.queries)}"
        )
    _, in_fitting, in_challenged = np.intersect1d(fitting.indices, challenged.indices, return_indices=True)
    for mine, theirs in zip(in_fitting, in_challenged, strict=True):
        if np.array_equal(fitting.memberships[mine], challenged.memberships[theirs]) and all(
            np.array_equal(fitting.statistics[query][mine], challenged.statistics[query][theirs])
            for query in fitting.queries
        ):
            raise InputError(f"model {fitting.indices[mine]} is among both the fitting and the challenged models")
