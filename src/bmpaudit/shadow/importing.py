"""Models trained elsewhere, stored like our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bmpaudit.errors import InputError
from bmpaudit.files import folder_lock
from bmpaudit.graph import Graph
from bmpaudit.shadow.batch import ModelState, ShadowBatch
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ShadowRuns
from bmpaudit.shadow.store import ShadowStore
from bmpaudit.tables import MODELS_PER_CHUNK, FlagTable, FloatTable, model_blocks, take_rows


def import_runs(graph: Graph, plan: ShadowPlan, runs: ShadowRuns, folder: str | Path) -> ShadowRuns:
    """Stores models that were trained elsewhere in a folder, from which later steps read them.

    A call that was interrupted can be repeated, and models can be added after the last one.

    Args:
        graph: The whole graph.
        plan: Its model must be `TrainedElsewhere()`; its views are those that `runs` has.
        runs: The models, from `ShadowRuns.from_arrays`.
        folder: A new folder, or one to which the same models were imported before.

    Returns:
        The models as the folder has them.

    Raises:
        InputError: if the models do not fit the plan, the graph or what is in the folder already.
    """
    _check(graph, plan, runs)
    with folder_lock(Path(folder)):
        store = ShadowStore(folder, graph, plan)
        _check_nothing_else_is_there(store, runs)
        length = int(runs.indices[-1]) + 1
        store.extend(length)
        for start in range(0, length, MODELS_PER_CHUNK):
            rows = np.flatnonzero((runs.indices >= start) & (runs.indices < start + MODELS_PER_CHUNK))
            if len(rows):
                store.write(_as_batch(plan, runs, rows))
        return store.read()


def _check(graph: Graph, plan: ShadowPlan, runs: ShadowRuns) -> None:
    if not plan.is_trained_elsewhere:
        raise InputError(f"models trained elsewhere need a plan with the model TrainedElsewhere(), got {plan.model}")
    if runs.memberships.shape[1] != graph.num_nodes:
        raise InputError(
            f"the models must be of the graph's {graph.num_nodes:,} nodes, got {runs.memberships.shape[1]:,}"
        )
    wanted = [view.name for view in plan.views]
    if set(wanted) != set(runs.statistics):
        raise InputError(
            f"statistics must be of every combination of the plan's queries and releases: {', '.join(wanted)}, "
            f"got {', '.join(runs.statistics) or 'none'}"
        )
    for rows in model_blocks(*runs.memberships.shape):
        is_empty = ~runs.memberships[rows].any(axis=1)
        if is_empty.any():
            model = runs.indices[rows][is_empty][0]
            raise InputError(f"every model must have at least one member, got none for model {model}")


def _check_nothing_else_is_there(store: ShadowStore, runs: ShadowRuns) -> None:
    there = store.read()
    common = np.isin(runs.indices, there.indices)
    pairs: list[tuple[FlagTable | FloatTable, FlagTable | FloatTable]] = [(runs.memberships, there.memberships)]
    pairs += [(runs.statistics[name], there.statistics[name]) for name in there.statistics]
    is_same = np.array_equal(runs.indices[common], there.indices)
    for new, old in ((take_rows(table, common), stored) for table, stored in pairs if is_same):
        is_same &= all(np.array_equal(new[rows], old[rows]) for rows in model_blocks(*old.shape))
    if not is_same:
        raise InputError(
            f"{store.folder} holds {there.num_models:,} models trained elsewhere that are not among these; "
            "use a new folder"
        )


def _as_batch(plan: ShadowPlan, runs: ShadowRuns, rows: np.ndarray) -> ShadowBatch:
    return ShadowBatch(
        indices=runs.indices[rows],
        memberships=runs.memberships[rows],
        statistics=np.stack([runs.statistics[view.name][rows] for view in plan.views]),
        logits=None,
        state=np.full(len(rows), ModelState.TRAINED, dtype=np.uint8),
        train_accuracy=runs.train_accuracy[rows],
        held_out_accuracy=runs.held_out_accuracy[rows],
        view_train_accuracy=np.stack([runs.view_accuracy[view.name].train[rows] for view in plan.views]),
        view_held_out_accuracy=np.stack([runs.view_accuracy[view.name].held_out[rows] for view in plan.views]),
    )
