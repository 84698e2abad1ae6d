"""Attacks on target models by the published protocol: each node is in half of the shadow models, exactly."""

from __future__ import annotations

import numpy as np

from bmpaudit import registry
from bmpaudit.arrays import Flags, Floats32, Ints
from bmpaudit.attack import Evidence
from bmpaudit.attack.performance import roc_within_models
from bmpaudit.errors import InputError
from bmpaudit.paper.external.experiments import ATTACKS, QUERY, RELEASE
from bmpaudit.registry import ATTACK
from bmpaudit.shadow import ShadowRuns

FALSE_POSITIVE_RATES = {"tpr_at_1e-2": 0.01, "tpr_at_1e-3": 0.001}
TARGET_SHARE = 0.5


def attack_targets(
    memberships: Flags, margins: Floats32, labels: Ints, num_shadows: int, num_pool: int, num_threads: int | None = None
) -> dict[str, dict[str, list[float]]]:
    """Attacks each target model with shadow models of its own choice.

    For each target model and node, half of the shadow models are the first with the node, and half the first without
    it, of the pool in an order drawn for the target. Figures are over a quarter of the nodes from each side.

    Args:
        memberships: Of the pool and then the target models, shape (J, N).
        margins: Label margins of the same, shape (J, N).
        labels: Class of each node, shape (N,).
        num_shadows: Number of shadow models, even.
        num_pool: Number of models in the pool.
        num_threads: Number of threads.

    Returns:
        By attack and measure, a value for each target model.
    """
    figures: dict[str, dict[str, list[float]]] = {}
    for target in range(num_pool, len(memberships)):
        stream = np.random.default_rng([target, num_shadows])
        order = stream.permutation(num_pool)
        chosen, is_in = halves(memberships[:num_pool][order], num_shadows)
        shadows = _evidence(is_in, np.take_along_axis(margins[:num_pool][order], chosen, axis=0), labels)
        challenged = _evidence(memberships[target : target + 1], margins[target : target + 1], labels)
        nodes = balanced_nodes(memberships[target], stream)
        members = memberships[target : target + 1, nodes]
        scores = {"confidence": challenged.only_statistic[:, nodes].astype(np.float64)}
        for name, attack in ATTACKS.items():
            made = registry.build(ATTACK, attack).score(shadows, challenged, num_threads=num_threads or 1)
            scores[name] = made.log_likelihood_ratio[:, nodes]
        for name, values in scores.items():
            of_attack = figures.setdefault(name, {"auc": [], **{measure: [] for measure in FALSE_POSITIVE_RATES}})
            for measure, rate in FALSE_POSITIVE_RATES.items():
                roc = roc_within_models(values, members, rate, num_threads=num_threads)
                of_attack[measure].append(float(roc.true_positive_rate[0]))
            of_attack["auc"].append(float(roc.auc[0]))
    return figures


def halves(memberships: Flags, num_shadows: int) -> tuple[Ints, Flags]:
    """For each node the first K/2 models with it, then the first K/2 without it, and which they are, shape (K, N).

    Raises:
        InputError: if a node has fewer.
    """
    half, num_in = num_shadows // 2, memberships.sum(axis=0)
    fewest = int(np.minimum(num_in, len(memberships) - num_in).min())
    if fewest < half:
        raise InputError(f"each node must be in {half} models and not in {half} others, got {fewest} for one")
    with_node, without = (np.argsort(~flags, axis=0, kind="stable")[:half] for flags in (memberships, ~memberships))
    is_in = np.zeros((num_shadows, memberships.shape[1]), dtype=np.bool_)
    is_in[:half] = True
    return np.concatenate([with_node, without]), is_in


def balanced_nodes(is_member: Flags, stream: np.random.Generator) -> Ints:
    """As many members as non-members, together half of the nodes, drawn at random."""
    half = int(TARGET_SHARE * len(is_member)) // 2
    sides = (np.flatnonzero(is_member), np.flatnonzero(~is_member))
    return np.concatenate([stream.permutation(side)[:half] for side in sides])


def _evidence(memberships: Flags, margins: Floats32, labels: Ints) -> Evidence:
    runs = ShadowRuns.from_arrays(memberships, {f"{QUERY}_{RELEASE}": margins}, labels)
    return Evidence.of_runs(runs, RELEASE, (QUERY,))
