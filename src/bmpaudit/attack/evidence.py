"""What an attack sees of some models: their statistics under one release, and who was in their training samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from bmpaudit import _native
from bmpaudit.attack.rules import as_rule, log_prior_odds
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.matrices import (
    FlagMatrix,
    FloatMatrix,
    LazyMatrix,
    ScratchMatrix,
    columns,
    count_in,
    model_blocks,
    new_matrix,
    take_rows,
)
from bmpaudit.util.values import Flags, Floats, Ints

if TYPE_CHECKING:
    from bmpaudit.graph import Graph
    from bmpaudit.interfaces import DecisionRule
    from bmpaudit.shadow import ShadowRuns


class NeighbourMeans:
    """Tables of means, each made when it is first asked for.

    Args:
        statistics: By query, the statistic of every node under every model, shape (J, N).
        kept: Where to keep the tables, by query, with the graph that they are about.
    """

    def __init__(self, statistics: Mapping[str, FloatMatrix], kept: dict[str, tuple[Graph, FloatMatrix]]) -> None:
        self._statistics, self._kept = statistics, kept

    @property
    def num_models(self) -> int:
        """J."""
        return len(next(iter(self._statistics.values())))

    @property
    def folders(self) -> set[Path]:
        """Folders that the statistics are read from."""
        found = (getattr(table, "folder", None) for table in self._statistics.values())
        return {folder for folder in found if isinstance(folder, Path)}

    def share(self) -> None:
        """Moves tables from temporary files to the folder that the statistics are read from, if they are."""
        for query, (_, table) in self._kept.items():
            folder = getattr(self._statistics.get(query), "folder", None)
            if isinstance(table, ScratchMatrix) and isinstance(folder, Path):
                table.share(folder)

    def __getstate__(self) -> dict[str, Any]:
        """Without tables that only this process can read, or that nobody will ask for."""
        kept = {
            query: (graph, table)
            for query, (graph, table) in self._kept.items()
            if query in self._statistics and not (isinstance(table, ScratchMatrix) and not table.is_shared)
        }
        return {"_statistics": self._statistics, "_kept": kept}

    def get(self, query: str, graph: Graph, num_threads: int) -> FloatMatrix:
        """The means under one query, shape (J, N)."""
        known, table = self._kept.get(query, (None, None))
        if table is None or known is not graph:
            table = neighbour_means(self._statistics[query], graph, num_threads)
            self._kept[query] = graph, table
        return table


def neighbour_means(statistics: FloatMatrix, graph: Graph, num_threads: int) -> FloatMatrix:
    """Mean over the neighbours of each node, 0 without neighbours, from shape (J, N) to (J, N).

    Takes some models at a time, with all nodes, so that work and memory do not depend on who the neighbours are.
    """
    means = new_matrix(*statistics.shape)
    indptr, indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    for rows in model_blocks(*statistics.shape):
        values = np.ascontiguousarray(statistics[rows])
        block = np.empty_like(values)
        _native.neighbour_means(indptr, indices, values, num_threads, block)
        means[rows, :] = block
    return means


# Nodes on which no attack is possible, and why.


@dataclass(frozen=True)
class NotAuditable:
    """A node on which no attack is possible, and why.

    Attributes:
        node: Node id.
        reason: Why not, as a phrase.
        name: Name of the node, if the graph has names.
    """

    node: int
    reason: str
    name: str | None = None

    def __str__(self) -> str:
        return f"{node_label(self.node, self.name)}: {self.reason}"


def node_label(node: int, name: str | None) -> str:
    """What messages call a node: by its name if it has one.

    >>> node_label(7, None), node_label(7, "alice")
    ('node 7', "node 'alice'")
    """
    return f"node {node}" if name is None else f"node {name!r}"


def too_few_models(
    nodes: Ints, num_out: Ints, num_in: Ints, needed: int, names: Sequence[str] | None = None
) -> tuple[NotAuditable, ...]:
    """Nodes with fewer than `needed` models on one side.

    Args:
        nodes: Ids of the K nodes to look at, shape (K,).
        num_out: Number of models trained without each of them, shape (K,).
        num_in: Number of models trained with each of them, shape (K,).
        needed: Minimum number of models on either side.
        names: Names of all nodes of the graph, if they have names.
    """

    @cache  # of many nodes, few numbers of models differ
    def reason(number_in: int, number_out: int) -> str:
        where, count = ("in", number_in) if number_in < needed else ("missing from", number_out)
        total = number_out + number_in
        return f"{where} the samples of {count:,} of {total:,} models, at least {needed} are needed"

    is_left = np.minimum(num_out, num_in) < needed
    rows = zip(nodes[is_left].tolist(), num_in[is_left].tolist(), num_out[is_left].tolist(), strict=True)
    return tuple(NotAuditable(node, reason(*numbers), names[node] if names else None) for node, *numbers in rows)


def with_certain_priors(
    reasons: Iterable[NotAuditable], nodes: Ints, prior_prob: Floats, names: Sequence[str] | None = None
) -> tuple[NotAuditable, ...]:
    """Adds nodes whose prior is 0 or 1, which leaves nothing to infer; one reason per node, in the order of `nodes`."""
    by_node: dict[int, NotAuditable] = {}
    for left in reasons:
        by_node.setdefault(left.node, left)
    for i in np.flatnonzero((prior_prob <= 0) | (prior_prob >= 1)):
        node = int(nodes[i])
        reason = f"its prior probability is {prior_prob[i]:g}"
        by_node.setdefault(node, NotAuditable(node, reason, names[node] if names else None))
    return tuple(by_node[node] for node in nodes.tolist() if node in by_node)


def can_be_attacked(nodes: Ints, reasons: Iterable[NotAuditable]) -> Flags:
    """Which of the nodes are not among those that cannot be attacked, shape (K,)."""
    return ~np.isin(nodes, [left.node for left in reasons])


# Scores of challenges: what an attack returns, and what is kept of it together with the truth.


@dataclass(frozen=True, eq=False)
class Scores:
    """What an attack returns: a score for each model and each node that it was asked about.

    Attributes:
        log_likelihood_ratio: Log-likelihood ratio of "member" against "non-member", shape (num_models, num_targets);
            higher means more likely a member, ±∞ is allowed. The columns are those of `Evidence.nodes`.
        not_auditable: Nodes that the attack cannot score, and why; their columns are ignored.
    """

    log_likelihood_ratio: Floats
    not_auditable: tuple[NotAuditable, ...] = ()


@dataclass(frozen=True, eq=False)
class ChallengeScores:
    """Scores of all challenges (model, node), with the truth.

    Attributes:
        node: Ids of the K nodes, shape (K,).
        log_likelihood_ratio: The attack's scores, shape (J, K); -∞ for nodes that it could not score.
        memberships: The truth, shape (J, K).
        prior_prob: γ(1), shape (K,).
        is_scored: Whether a node could be attacked, shape (K,); others are only here if they were to be kept.
        threshold: log(c_0/c_1): a decision score above it means "member".
    """

    node: Ints
    log_likelihood_ratio: Floats
    memberships: Flags
    prior_prob: Floats
    is_scored: Flags
    threshold: float

    def of(self, rule: str | DecisionRule) -> Floats:
        """Decision scores of a rule, shape (J, K); -∞ for nodes that could not be attacked."""
        # A node that was kept may have a prior of 0 or 1; it is never decided to be a member.
        log_odds = np.where(self.is_scored, log_prior_odds(self.prior_prob), 0.0)
        values = as_rule(rule).decision_score(self.log_likelihood_ratio, log_odds)
        return values if self.is_scored.all() else np.where(self.is_scored, values, -np.inf)


# What an attack sees of some models: their statistics under one release, and who was in their training samples.


Scalar = TypeVar("Scalar", bound=np.generic)
Value = TypeVar("Value")
Scope = Literal["models", "targets", "samples"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Statistics and memberships of J models on N nodes, under one release.

    Two releases are two mechanisms and are never mixed. The queries of one release are questions of one adversary: an
    attack may use them all. Validated when made; arrays that already fit are not copied.

    The tables of many models on many nodes are not in memory (`matrices.LazyMatrix`). An attack reads of them what it
    needs for the nodes that it is to score: `evidence.at_targets(table)`, or `table[:, nodes]` for other nodes.

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

    statistics: Mapping[str, FloatMatrix]
    memberships: FlagMatrix
    indices: Ints
    graph: Graph | None = None
    targets: Ints | None = None
    _whole: NeighbourMeans = field(init=False, repr=False)
    _rows: slice | Ints = field(init=False, repr=False)
    _kept: dict[Scope, dict[Hashable, Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        memberships = _checked_memberships(self.memberships)
        if not len(memberships):
            raise InputError("there must be at least one model, got none")
        indices = np.asarray(self.indices, dtype=np.int64)
        if indices.shape != memberships.shape[:1]:
            raise InputError(f"indices must have shape ({len(memberships)},) as memberships have, got {indices.shape}")
        if self.graph is not None and self.graph.num_nodes != memberships.shape[1]:
            raise InputError(f"graph must have {memberships.shape[1]} nodes as memberships, got {self.graph.num_nodes}")
        if not self.statistics:
            raise InputError("there must be statistics of at least one query, got none")
        object.__setattr__(self, "memberships", memberships)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "statistics", {query: self._checked(query) for query in self.statistics})
        object.__setattr__(self, "targets", self._as_targets(self.targets))
        object.__setattr__(self, "_whole", NeighbourMeans(self.statistics, {}))
        object.__setattr__(self, "_rows", slice(None))
        object.__setattr__(self, "_kept", {scope: {} for scope in get_args(Scope)})

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
        evidence = cls(statistics, runs.memberships, runs.indices, graph)
        # What is worked out about the models is kept with them, for other steps.
        kept = runs.neighbour_means.setdefault(release, {})
        return evidence._with(_whole=NeighbourMeans(evidence.statistics, kept))

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
        return self.nodes_in(slice(0, self.num_targets))

    @property
    def num_targets(self) -> int:
        """K, the number of nodes to score."""
        return self.num_nodes if self.targets is None else len(self.targets)

    def nodes_in(self, block: slice) -> Ints:
        """Ids of some of the nodes to score, by their positions: those of all are not listed for the sake of a few."""
        return np.arange(block.start, block.stop) if self.targets is None else self.targets[block]

    @cached_property
    def num_in(self) -> Ints:
        """Number of models trained with each of the nodes to score, shape (K,)."""
        if self.targets is None:
            return count_in(self.memberships)
        return self.at_targets(self.memberships).sum(axis=0, dtype=np.int64)

    @property
    def only_statistic(self) -> FloatMatrix:
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
        part = self._with(
            ("models", "targets", "samples"),
            statistics={query: take_rows(values, rows) for query, values in self.statistics.items()},
            memberships=take_rows(self.memberships, rows),
            indices=self.indices[rows],
            _rows=np.arange(self._whole.num_models)[self._rows][rows],
        )
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
        return self._with(("samples",), memberships=take_rows(self.memberships, rows))

    def about(self, targets: npt.ArrayLike | None) -> Evidence:
        """The same models, with the nodes to score given as node ids, as flags for all N nodes, or None for all.

        Raises:
            InputError: if the ids are not distinct or there are no such nodes.
        """
        return self._with(("targets",), targets=self._as_targets(targets))

    def asked(self, *queries: str) -> Evidence:
        """The same models with some of their queries."""
        statistics = {query: self.statistics[query] for query in queries}
        return self._with(("models", "targets", "samples"), statistics=statistics)

    def without_memberships(self) -> Evidence:
        """The same models as an attack gets them to score: reading their memberships raises `InputError`."""
        withheld = self._with(("samples",))
        vars(withheld).pop("memberships", None)
        return withheld

    def without_targets(self) -> Evidence:
        """The same models without what attacks have worked out about the nodes to score, to be sent to workers."""
        return self._with(("targets",))

    def at_targets(self, values: npt.NDArray[Scalar] | LazyMatrix[Scalar]) -> npt.NDArray[Scalar]:
        """The columns of the nodes to score, from shape (J, N) to (J, K); not copied if these are all nodes."""
        return values[:, :] if self.targets is None else columns(values, self.targets)

    def neighbour_means(self, query: str, num_threads: int) -> FloatMatrix:
        """Mean statistic of each node's neighbours, shape (J, N), 0 without any; worked out once for all models.

        Raises:
            InputError: if there is no graph.
        """
        if self.graph is None:
            raise InputError("a graph is needed to look at neighbours, got none")
        return take_rows(self._whole.get(query, self.graph, num_threads), self._rows)

    def share_neighbour_means(self) -> None:
        """Lets processes that read the statistics from a folder read the means that there are so far, too."""
        self._whole.share()

    @property
    def folders(self) -> set[Path]:
        """Folders that the statistics are read from."""
        return self._whole.folders

    def kept(self, scope: Scope, key: Hashable, make: Callable[[], Value]) -> Value:
        """What an attack has worked out, made when it is first asked for.

        Args:
            scope: How long it is right: about the statistics of these "models", whatever the memberships and the nodes
                to score; about the statistics of the "targets", whatever the memberships; or about the "samples" of
                these models, whatever the nodes to score. What is about models or samples is sent to workers.
            key: What tells it from other things of this scope.
            make: Works it out.
        """
        kept = self._kept[scope]
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def label(self, node: int) -> str:
        """What messages call a node: by its name if it has one."""
        return node_label(node, self.node_names[node] if self.node_names else None)

    def not_auditable(self, node: int, reason: str) -> NotAuditable:
        """A node that an attack cannot score, for `Scores.not_auditable`."""
        return NotAuditable(int(node), reason, self.node_names[node] if self.node_names else None)

    def __str__(self) -> str:
        return f"{self.num_models:,} models of {self.num_nodes:,} nodes, queries {', '.join(self.queries)}"

    def _with(self, forgotten: Sequence[Scope] = (), **changes: Any) -> Evidence:
        """A changed copy: parts of what was validated need not be validated again."""
        changed = copy(self)
        vars(changed).pop("num_in", None)
        changes["_kept"] = {scope: {} if scope in forgotten else kept for scope, kept in self._kept.items()}
        for name, value in changes.items():
            object.__setattr__(changed, name, value)
        return changed

    def _checked(self, query: str) -> FloatMatrix:
        table = self.statistics[query]
        if not isinstance(table, LazyMatrix):
            table = np.asarray(table)
        if table.shape != self.memberships.shape:
            raise InputError(
                f"query {query}: statistics must have shape {self.memberships.shape} as memberships, got {table.shape}"
            )
        if isinstance(table, LazyMatrix):  # checked when it is read
            return table
        with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
            values = np.ascontiguousarray(table, dtype=np.float32)
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
        if (np.diff(ids) <= 0).any() and len(np.unique(ids)) != len(ids):
            raise InputError("targets must be distinct")
        return ids.astype(np.int64)


def _checked_memberships(memberships: Any) -> FlagMatrix:
    if isinstance(memberships, LazyMatrix):
        return memberships
    flags = np.asarray(memberships)
    if flags.ndim != 2 or (flags.dtype != np.bool_ and not np.isin(flags, (0, 1)).all()):
        raise InputError(
            f"memberships must be booleans of shape (num_models, num_nodes), got {flags.dtype} of shape {flags.shape}"
        )
    return np.ascontiguousarray(flags, dtype=np.bool_)


# Priors of the attacked nodes, and whether two sets of models may be used together.


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


# Dividing models into those that are fitted on and those that are challenged (Algorithm 4).


@dataclass(frozen=True, eq=False)
class SplitModels:
    """Two disjoint sets of models of one plan.

    Attributes:
        fitting: The first J^(1) models, which hypotheses are fitted on.
        challenged: All others.
    """

    fitting: Evidence
    challenged: Evidence


def split_models(models: Evidence, num_fitting: int | None = None) -> SplitModels:
    """Divides models by their order: the first `num_fitting` are fitted on, half of them if None.

    Models of a plan are independent of each other, so any division that does not look at them will do.

    Raises:
        InputError: if one of the sets would be empty.
    """
    if num_fitting is None:
        num_fitting = models.num_models // 2
    check_at_least_one(num_fitting=num_fitting)
    if num_fitting >= models.num_models:
        raise InputError(
            f"num_fitting must be below the number of models, {models.num_models}, got num_fitting={num_fitting}"
        )
    return SplitModels(models.take(slice(num_fitting)), models.take(slice(num_fitting, None)))
