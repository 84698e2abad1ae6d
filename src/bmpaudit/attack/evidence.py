"""What an attack sees of some models: their statistics under one release, and who was in their training samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats32, Ints
from bmpaudit.attack.not_auditable import NotAuditable, node_label
from bmpaudit.errors import InputError

if TYPE_CHECKING:
    from bmpaudit.graph import Graph
    from bmpaudit.shadow import ShadowRuns

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])


@dataclass(frozen=True, eq=False)
class Evidence:
    """Statistics and memberships of J models on N nodes, under one release.

    Two releases are two mechanisms and are never mixed. The queries of one release are questions of one adversary: an
    attack may use them all. Validated when made; arrays that already fit are not copied.

    Attributes:
        statistics: By query label, the statistic of every node under every model, shape (J, N).
        memberships: Whether each node was in each model's training sample, shape (J, N). An attack is given models to
            score without them: reading them then raises `InputError`.
        indices: Number of each model in its plan, shape (J,).
        graph: Graph of the N nodes, for attacks that look at neighbours, and for the names of nodes.
        targets: Ids of the K nodes to score, shape (K,); None for all. All statistics stay visible.

    Raises:
        InputError: if shapes do not fit or a statistic is not finite.
    """

    statistics: Mapping[str, Floats32]
    memberships: Flags
    indices: Ints
    graph: Graph | None = None
    targets: Ints | None = None

    def __post_init__(self) -> None:
        memberships = np.asarray(self.memberships)
        if memberships.ndim != 2 or (memberships.dtype != np.bool_ and not np.isin(memberships, (0, 1)).all()):
            raise InputError(
                f"memberships must be booleans of shape (num_models, num_nodes), got {memberships.dtype} of shape "
                f"{memberships.shape}"
            )
        if not len(memberships):
            raise InputError("there must be at least one model, got none")
        indices = np.asarray(self.indices, dtype=np.int64)
        if indices.shape != memberships.shape[:1]:
            raise InputError(f"indices must have shape ({len(memberships)},) as memberships have, got {indices.shape}")
        if self.graph is not None and self.graph.num_nodes != memberships.shape[1]:
            raise InputError(f"graph must have {memberships.shape[1]} nodes as memberships, got {self.graph.num_nodes}")
        if not self.statistics:
            raise InputError("there must be statistics of at least one query, got none")
        object.__setattr__(self, "memberships", np.ascontiguousarray(memberships, dtype=np.bool_))
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "statistics", {query: self._checked(query) for query in self.statistics})
        object.__setattr__(self, "targets", self._as_targets(self.targets))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "memberships":
                raise InputError("memberships of the models to score are withheld from the attack")
            raise AttributeError(name)

    @classmethod
    def of_runs(cls, runs: ShadowRuns, release: str, queries: Sequence[str], graph: Graph | None = None) -> Evidence:
        """What an adversary sees of shadow models.

        Args:
            runs: The shadow models.
            release: Label of the release, such as `clean`.
            queries: Labels of the queries, such as `full` and `none`.
            graph: Graph of the models.

        Raises:
            InputError: if the models have no such view.
        """
        for query in queries:
            if f"{query}_{release}" not in runs.statistics:
                raise InputError(f"view must be one of {', '.join(runs.statistics)}, got {query}_{release}")
        statistics = {query: runs.statistics[f"{query}_{release}"] for query in queries}
        return cls(statistics, runs.memberships, runs.indices, graph)

    @property
    def num_models(self) -> int:
        """J."""
        return len(self.indices)

    @property
    def num_nodes(self) -> int:
        """N, the number of nodes of the graph."""
        return int(next(iter(self.statistics.values())).shape[1])

    @property
    def queries(self) -> tuple[str, ...]:
        """Labels of the queries."""
        return tuple(self.statistics)

    @property
    def nodes(self) -> Ints:
        """Ids of the nodes to score, shape (K,)."""
        return np.arange(self.num_nodes) if self.targets is None else self.targets

    @cached_property
    def num_in(self) -> Ints:
        """Number of models trained with each of the nodes to score, shape (K,)."""
        return self.at_targets(self.memberships).sum(axis=0, dtype=np.int64)

    @property
    def only_statistic(self) -> Floats32:
        """The statistic of the single query, shape (J, N).

        Raises:
            InputError: if there are several queries.
        """
        if len(self.statistics) != 1:
            raise InputError(f"an attack that does not fuse queries takes one at a time, got {', '.join(self.queries)}")
        return next(iter(self.statistics.values()))

    @property
    def node_names(self) -> tuple[str, ...] | None:
        """Names of all nodes, if the graph is known and has names."""
        return None if self.graph is None else self.graph.node_names

    def take(self, models: slice | npt.ArrayLike) -> Evidence:
        """Some of the models, in the order given: a slice, row numbers, or flags for all rows.

        Raises:
            InputError: if none is left.
        """
        rows = models if isinstance(models, slice) else np.asarray(models)
        statistics = {query: values[rows] for query, values in self.statistics.items()}
        part = self._with(statistics=statistics, memberships=self.memberships[rows], indices=self.indices[rows])
        if not part.num_models:
            raise InputError("there must be at least one model, got none")
        return part

    def permuted(self, order: npt.ArrayLike) -> Evidence:
        """The same models with memberships shuffled between them: model j gets the sample of model `order[j]`.

        Whole rows are moved, so the dependence between nodes stays.

        Raises:
            InputError: if `order` is not a permutation of the J models.
        """
        rows = np.asarray(order)
        if not np.array_equal(np.sort(rows), np.arange(self.num_models)):
            raise InputError(f"order must be a permutation of {self.num_models} models")
        return self._with(memberships=self.memberships[rows])

    def about(self, targets: npt.ArrayLike | None) -> Evidence:
        """The same models, with the nodes to score given as node ids, as flags for all N nodes, or None for all.

        Raises:
            InputError: if the ids are not distinct or there are no such nodes.
        """
        return self._with(targets=self._as_targets(targets))

    def asked(self, *queries: str) -> Evidence:
        """The same models with some of their queries."""
        return self._with(statistics={query: self.statistics[query] for query in queries})

    def without_memberships(self) -> Evidence:
        """The same models as an attack gets them to score: reading their memberships raises `InputError`."""
        withheld = self._with()
        vars(withheld).pop("memberships", None)
        return withheld

    def at_targets(self, values: AnyArray) -> AnyArray:
        """The columns of the nodes to score, from shape (J, N) to (J, K); not copied if these are all nodes."""
        return values if self.targets is None else np.take(values, self.targets, axis=1)  # type: ignore[return-value]

    def label(self, node: int) -> str:
        """What messages call a node: by its name if it has one."""
        return node_label(node, self.node_names[node] if self.node_names else None)

    def not_auditable(self, node: int, reason: str) -> NotAuditable:
        """A node that an attack cannot score, for `Scores.not_auditable`."""
        return NotAuditable(int(node), reason, self.node_names[node] if self.node_names else None)

    def __str__(self) -> str:
        return f"{self.num_models:,} models of {self.num_nodes:,} nodes, queries {', '.join(self.queries)}"

    def _with(self, **changes: Any) -> Evidence:
        """A changed copy: parts of what was validated need not be validated again."""
        changed = copy(self)
        vars(changed).pop("num_in", None)
        for name, value in changes.items():
            object.__setattr__(changed, name, value)
        return changed

    def _checked(self, query: str) -> Floats32:
        array = np.asarray(self.statistics[query])
        if array.shape != self.memberships.shape:
            raise InputError(
                f"query {query}: statistics must have shape {self.memberships.shape} as memberships, got {array.shape}"
            )
        with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
            values = np.ascontiguousarray(array, dtype=np.float32)
        is_finite = np.isfinite(values)
        if not is_finite.all():
            model, node = np.unravel_index(int(is_finite.argmin()), values.shape)
            raise InputError(
                f"query {query}: statistics must be finite, got {values[model, node]} for model {self.indices[model]}, "
                f"{self.label(int(node))}"
            )
        return values

    def _as_targets(self, targets: npt.ArrayLike | None) -> Ints | None:
        if targets is None:
            return None
        ids, num_nodes = np.asarray(targets), self.num_nodes
        if ids.dtype == np.bool_ and ids.shape == (num_nodes,):
            ids = np.flatnonzero(ids)
        if ids.ndim != 1 or len(ids) == 0 or ids.dtype.kind not in "iu":
            raise InputError(f"targets must be a list of node ids, at least one, got {ids.dtype} of shape {ids.shape}")
        is_outside = (ids < 0) | (ids >= num_nodes)
        if is_outside.any():
            raise InputError(f"targets must be in [0, {num_nodes}), got {ids[is_outside.argmax()]}")
        if len(np.unique(ids)) != len(ids):
            raise InputError("targets must be distinct")
        return ids.astype(np.int64)
