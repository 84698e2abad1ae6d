"""What an attack sees of some models: their statistics under one release, and who was in their training samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit import _native
from bmpaudit.releases import LABELS, SCORES
from bmpaudit.util import matrices
from bmpaudit.util.errors import InputError, check_at_least_one
from bmpaudit.util.matrices import (
    FlagMatrix,
    FloatMatrix,
    LazyMatrix,
    Rows,
    ScratchMatrix,
    columns,
    count_in,
    take_rows,
)
from bmpaudit.util.values import Flags, Floats, Ints

if TYPE_CHECKING:
    from bmpaudit.graph import Graph
    from bmpaudit.shadow import ShadowRuns

NUM_FOLDS = 10
CHANCE_OF_REPEATS = 1e-4
SHADOW_FREQUENCY: Literal["shadow-frequency"] = "shadow-frequency"
Scalar = TypeVar("Scalar", bound=np.generic)
Value = TypeVar("Value")
Scope = Literal["models", "targets", "samples"]


@dataclass(frozen=True)
class NotAuditable:
    """A node on which no attack is possible, and why."""

    node: int
    reason: str  # why not, as a phrase
    name: str | None = None  # of the node, if the graph has names

    def __str__(self) -> str:
        return f"{node_label(self.node, self.name)}: {self.reason}"


def node_label(node: int, name: str | None) -> str:
    """What messages call a node: by its name if it has one.

    >>> node_label(7, None), node_label(7, "alice")
    ('node 7', "node 'alice'")
    """
    return f"node {node}" if name is None else f"node {name!r}"


def can_be_attacked(nodes: Ints, reasons: Iterable[NotAuditable]) -> Flags:
    """Which of the nodes are not among those that cannot be attacked, shape (K,)."""
    return ~np.isin(nodes, [left.node for left in reasons])


@dataclass(frozen=True, eq=False)
class Scores:
    """What an attack returns: a score for each model and each node that it was asked about."""

    # Log-likelihood ratio of "member" against "non-member", shape (num_models, num_targets): higher means more likely a
    # member, ±∞ is allowed. The columns are those of `Evidence.nodes`.
    log_likelihood_ratio: Floats
    # Nodes that the attack cannot score, and why; their columns are ignored.
    not_auditable: tuple[NotAuditable, ...] = ()


def neighbour_means(statistics: FloatMatrix, graph: Graph, num_threads: int) -> FloatMatrix:
    """Mean over the neighbours of each node, 0 without neighbours, from shape (J, N) to (J, N).

    Takes some models at a time, with all nodes, so that work and memory do not depend on who the neighbours are.
    """
    means = matrices.new_matrix(*statistics.shape)
    indptr, indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    for rows in matrices.model_blocks(*statistics.shape):
        values = np.ascontiguousarray(statistics[rows])
        block = np.empty_like(values)
        _native.neighbour_means(indptr, indices, values, num_threads, block)
        means[rows, :] = block
    return means


@dataclass(frozen=True, eq=False)
class Evidence:
    """Statistics and memberships of J models on N nodes, under one release.

    Two releases are two mechanisms and are never mixed. The queries of one release are questions of one adversary: an
    attack may use them all. Validated when made; arrays that already fit are not copied.

    The tables of many models on many nodes are not in memory (`matrices.LazyMatrix`). An attack reads of them what it
    needs for the nodes that it is to score: `evidence.at_targets(table)`, or `table[:, nodes]` for other nodes.

    Raises:
        InputError: if shapes do not fit or a statistic is not finite.
    """

    statistics: Mapping[str, FloatMatrix]  # by query label, the statistic of every node under every model, shape (J, N)
    # Whether each node was in each model's training sample, shape (J, N). An attack is given models to score without
    # them: reading them then raises `InputError`.
    memberships: FlagMatrix
    indices: Ints  # number of each model in its plan, shape (J,)
    graph: Graph | None = None  # graph of the N nodes, for attacks that look at neighbours, and for the names of nodes
    targets: Ints | None = None  # ids of the K nodes to score, shape (K,); None for all. All statistics stay visible.
    # Whether the models are known to be independent draws of a sample and a training. If not, proofs and tests refuse
    # samples that repeat (`check_samples`).
    are_independent: bool = False
    rows: Rows | None = None  # what the models say of each single feature, for attacks that ask for it
    _whole: Mapping[str, FloatMatrix] = field(init=False, repr=False)  # statistics of all models there were at first
    _rows: slice | Ints = field(init=False, repr=False)  # which of these the models are
    _means: dict[str, tuple[Graph, FloatMatrix]] = field(init=False, repr=False)  # of all of them, over neighbours
    _kept: dict[Scope, dict[Hashable, Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        memberships = self.memberships
        if not isinstance(memberships, LazyMatrix):
            flags = np.asarray(memberships)
            if flags.ndim != 2 or (flags.dtype != np.bool_ and not np.isin(flags, (0, 1)).all()):
                raise InputError(
                    f"memberships must be booleans of shape (num_models, num_nodes), got {flags.dtype} of shape "
                    f"{flags.shape}"
                )
            memberships = np.ascontiguousarray(flags, dtype=np.bool_)
        if not len(memberships):
            raise InputError("there must be at least one model, got none")
        indices = np.asarray(self.indices, dtype=np.int64)
        if indices.shape != memberships.shape[:1]:
            raise InputError(f"indices must have shape ({len(memberships)},) as memberships have, got {indices.shape}")
        if self.graph is not None and self.graph.num_nodes != memberships.shape[1]:
            raise InputError(f"graph must have {memberships.shape[1]} nodes as memberships, got {self.graph.num_nodes}")
        if self.rows is not None and self.rows.shape[0] != len(memberships):
            raise InputError(f"rows must be of {len(memberships)} models as memberships, got {self.rows.shape[0]}")
        if self.rows is not None and self.graph is not None:
            wanted = self.graph.num_features, self.graph.num_classes
            if self.rows.shape[1:] != wanted:
                raise InputError(f"rows must be of {wanted} features and classes as graph, got {self.rows.shape[1:]}")
        if not self.statistics:
            raise InputError("there must be statistics of at least one query, got none")
        vars(self).update(memberships=memberships, indices=indices)
        vars(self).update(statistics={query: self._checked(query) for query in self.statistics})
        vars(self).update(targets=self._as_targets(self.targets), _whole=self.statistics, _rows=slice(None))
        vars(self).update(_means={}, _kept={scope: {} for scope in get_args(Scope)})

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "memberships":
                raise InputError("memberships of the models to score are withheld from the attack")
            raise AttributeError(name)

    def __getstate__(self) -> dict[str, Any]:
        """Without means that only this process can read, or that nobody will ask for."""
        means = {
            query: known
            for query, known in self._means.items()
            if query in self._whole and (not isinstance(known[1], ScratchMatrix) or known[1].is_shared)
        }
        kept = {
            scope: {
                key: value
                for key, value in values.items()
                if not isinstance(value, SplitModels) and all(each.is_shared for each in _scratch_in(value))
            }
            for scope, values in self._kept.items()
        }
        return {**vars(self), "_means": means, "_kept": kept}

    @classmethod
    def of_runs(
        cls, runs: ShadowRuns, release: str, queries: Sequence[str], graph: Graph | None = None, access: str = SCORES
    ) -> Evidence:
        """What an adversary sees of shadow models, by the labels of a release and of queries (`full`, `none`).

        With more access than to scores there are class rows, too; of labels it is seen whether they are right.
        """
        for query in queries:
            if f"{query}_{release}" not in runs.statistics:
                raise InputError(f"view must be one of {', '.join(runs.statistics)}, got {query}_{release}")
        tables = runs.is_right if access == LABELS else runs.statistics
        statistics = {query: tables[f"{query}_{release}"] for query in queries}
        rows = runs.rows.get(f"{access}_{release}")
        rows = rows and Rows(rows.values, rows.norms)  # what is worked out about them goes with the evidence
        models = statistics, runs.memberships, runs.indices, graph
        evidence = cls(*models, are_independent=runs.are_independent, rows=rows)
        if access == LABELS:
            return evidence
        # What is worked out about the models is kept with them, for other steps.
        return evidence._with(_means=runs.neighbour_means.setdefault(release, {}))

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
        """The statistic of the single query, shape (J, N); `InputError` if there are several."""
        if len(self.statistics) != 1:
            raise InputError(f"an attack that does not fuse queries takes one at a time, got {', '.join(self.queries)}")
        return next(iter(self.statistics.values()))

    def take(self, models: slice | npt.ArrayLike) -> Evidence:
        """Some of the models, at least one, in the order given: a slice, row numbers, or flags for all rows."""
        rows = models if isinstance(models, slice) else np.asarray(models)
        part = self._with(
            ("models", "targets", "samples"),
            statistics={query: take_rows(values, rows) for query, values in self.statistics.items()},
            memberships=take_rows(self.memberships, rows),
            indices=self.indices[rows],
            rows=None if self.rows is None else self.rows.take(rows),
            _rows=np.arange(len(next(iter(self._whole.values()))))[self._rows][rows],
        )
        if not part.num_models:
            raise InputError("there must be at least one model, got none")
        return part

    def about(self, targets: npt.ArrayLike | None) -> Evidence:
        """The same models, with the nodes to score given as distinct ids, as flags for all N nodes, or None for all."""
        return self._with(("targets",), targets=self._as_targets(targets))

    def asked(self, *queries: str) -> Evidence:
        """The same models with some of their queries."""
        if queries == self.queries and self.rows is not None:  # what was worked out about rows is dear
            return self
        statistics = {query: self.statistics[query] for query in queries}
        return self._with(("models", "targets", "samples"), statistics=statistics)

    def with_statistics(self, statistics: Mapping[str, FloatMatrix]) -> Evidence:
        """The same models with other statistics, shape (J, N) each, and nothing worked out about them yet."""
        changed = self._with(("models", "targets", "samples"), statistics=statistics, _whole=statistics)
        vars(changed).update(_rows=slice(None), _means={})
        return changed

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
        """Mean statistic of each node's neighbours, shape (J, N), 0 without any; worked out once for all models."""
        if self.graph is None:
            raise InputError("a graph is needed to look at neighbours, got none")
        known, table = self._means.get(query, (None, None))
        if table is None or known is not self.graph:
            table = neighbour_means(self._whole[query], self.graph, num_threads)
            self._means[query] = self.graph, table
        return take_rows(table, self._rows)

    def share_neighbour_means(self) -> None:
        """Lets processes that read the statistics from a folder read what has been worked out of them so far, too."""
        for query, (_, table) in self._means.items():
            folder = getattr(self._whole.get(query), "folder", None)
            if isinstance(table, ScratchMatrix) and isinstance(folder, Path):
                table.share(folder)
        for value in [value for values in self._kept.values() for value in values.values()]:
            for table in _scratch_in(value) if self.folders else ():
                table.share(min(self.folders))

    @property
    def folders(self) -> set[Path]:
        """Folders that the statistics are read from."""
        folders = (getattr(table, "folder", None) for table in self._whole.values())
        return {folder for folder in folders if isinstance(folder, Path)}

    def kept(self, scope: Scope, key: Hashable, make: Callable[[], Value]) -> Value:
        """What an attack has worked out, made when it is first asked for, by a key within a scope.

        The scope says how long it is right: about the statistics of these "models", whatever the memberships and the
        nodes to score; about the statistics of the "targets", whatever the memberships; or about the "samples" of these
        models, whatever the nodes to score. What is about models or samples is sent to workers.
        """
        kept = self._kept[scope]
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def label(self, node: int) -> str:
        """What messages call a node: by its name if it has one."""
        return node_label(node, self._name(node))

    def too_few_models(self, needed: int) -> tuple[NotAuditable, ...]:
        """The nodes to score that fewer than `needed` of the models hold, or fewer do not."""

        @cache  # of many nodes, few numbers of models differ
        def reason(num_in: int) -> str:
            where, count = ("in", num_in) if num_in < needed else ("missing from", self.num_models - num_in)
            return f"{where} the samples of {count:,} of {self.num_models:,} models, at least {needed} are needed"

        is_left = np.minimum(self.num_in, self.num_models - self.num_in) < needed
        rows = zip(self.nodes[is_left].tolist(), self.num_in[is_left].tolist(), strict=True)
        return tuple(self.not_auditable(node, reason(num_in)) for node, num_in in rows)

    def not_auditable(self, node: int, reason: str) -> NotAuditable:
        """A node that an attack cannot score, for `Scores.not_auditable`."""
        return NotAuditable(int(node), reason, self._name(node))

    def _name(self, node: int) -> str | None:
        return self.graph.node_names[node] if self.graph is not None and self.graph.node_names else None

    def __str__(self) -> str:
        return f"{self.num_models:,} models of {self.num_nodes:,} nodes, queries {', '.join(self.queries)}"

    def _with(self, forgotten: Sequence[Scope] = (), **changes: Any) -> Evidence:
        """A changed copy: parts of what was validated need not be validated again."""
        changed = object.__new__(type(self))
        changes["_kept"] = {scope: {} if scope in forgotten else kept for scope, kept in self._kept.items()}
        vars(changed).update({**vars(self), **changes})
        vars(changed).pop("num_in", None)
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


def _scratch_in(value: Any) -> list[ScratchMatrix]:
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, ScratchMatrix)]


def folds(num_models: int, num_folds: int = NUM_FOLDS) -> list[slice]:
    """So many contiguous parts of the models, or as many as there are models.

    Models of a plan are independent of each other, so any division that does not look at them will do.
    """
    num_folds = min(num_folds, num_models)
    return [slice(*ends) for ends in pairwise(num_models * fold // num_folds for fold in range(num_folds + 1))]


class SplitModels(NamedTuple):
    """Two disjoint sets of models of one plan: the first J^(1), which hypotheses are fitted on, and all others."""

    fitting: Evidence
    challenged: Evidence


def split_models(models: Evidence, num_fitting: int | None = None) -> SplitModels:
    """Divides models by their order (Algorithm 4): the first `num_fitting` are fitted on, half of them if None."""
    if num_fitting is None:
        num_fitting = models.num_models // 2
    check_at_least_one(num_fitting=num_fitting)
    if num_fitting >= models.num_models:
        raise InputError(
            f"num_fitting must be below the number of models, {models.num_models}, got num_fitting={num_fitting}"
        )
    parts = slice(num_fitting), slice(num_fitting, None)
    if models.rows is None:
        return SplitModels(*map(models.take, parts))
    # What is worked out about the rows of either part is kept with it, for other steps.
    return models.kept("samples", ("split", num_fitting), lambda: SplitModels(*map(models.take, parts)))


def check_fitting_models(fitting: Evidence, challenged: Evidence) -> None:
    """Raises `InputError` for fitting models of another graph or other queries, or that are challenged themselves.

    Numbers alone do not tell whether two models are the same, as models of two plans may share them. Identical
    memberships and statistics do.
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


def check_samples(*parts: Evidence | ShadowRuns) -> None:
    """Refuses models that share their samples, such as several seeds of one sample; all parts are taken together.

    Who knows one of such models knows who was in the others, so that counts over models prove nothing.

    Samplers may have reason to repeat small samples, such as those of a walk that dies out: only samples with at least
    half as many nodes as the average one count. Two samples of independent nodes, with the frequencies of the distinct
    samples, agree with probability Π(γ² + (1 - γ)²), and at most 2·√(π·Σγ(1 - γ)) times as often if all samples have
    one size. The number of pairs that agree must have a Poisson tail above 0.0001; if at least one pair is expected, as
    on a handful of nodes, nothing is refused. Of a sampler that has only few samples to draw from, however large, these
    must be said to be independent (`are_independent`).

    Raises:
        InputError: if samples repeat.
    """
    if all(part.are_independent for part in parts):
        return
    tables = [part.memberships for part in parts]
    number_of: dict[bytes, int] = {}
    blocks = [(table, rows) for table in tables for rows in matrices.model_blocks(*table.shape)]
    digests = (digest for table, rows in blocks for digest in matrices.row_digests(table[rows]))
    sample = np.array([number_of.setdefault(digest, len(number_of)) for digest in digests])
    size = np.concatenate([table[rows].sum(axis=1) for table, rows in blocks])
    _, first, copies = np.unique(sample, return_index=True, return_counts=True)
    copies = copies[(size[first] > 0) & (2 * size[first] >= size.mean())]
    num_pairs, num_models = int((copies * (copies - 1) // 2).sum()), len(sample)
    if not num_pairs:
        return
    starts = np.cumsum([0] + [len(table) for table in tables])
    distinct = [first[(first >= start) & (first < end)] - start for start, end in pairwise(starts)]
    num_in = sum(count_in(take_rows(table, rows)) for table, rows in zip(tables, distinct, strict=True))
    frequency = np.asarray(num_in) / len(first)
    spread = frequency * (1 - frequency)
    agree = np.exp(np.log1p(-2 * spread).sum()) * max(1.0, 2 * np.sqrt(np.pi * spread.sum()))
    expected = agree * num_models * (num_models - 1) / 2 if len(first) > 1 else 0.0
    if expected < 1 and scipy.special.pdtrc(num_pairs - 1, expected) <= CHANCE_OF_REPEATS:
        raise InputError(
            f"{copies[copies > 1].sum():,} of {num_models:,} models have the same sample as another one: models must "
            "be independent draws of a sample and a training; keep one model of each sample"
        )


def prior_probs(prior_prob: npt.ArrayLike | str, fitting: Evidence) -> Floats:
    """γ(1) of all nodes, shape (N,): as given, or how often each node is in the samples of the models fitted on."""
    if isinstance(prior_prob, str):
        if prior_prob != SHADOW_FREQUENCY:
            raise InputError(f"prior_prob must be an array or {SHADOW_FREQUENCY!r}, got {prior_prob!r}")
        return count_in(fitting.memberships) / fitting.num_models
    return check_priors(prior_prob, fitting.num_nodes, fitting.label)


def check_priors(
    prior_prob: npt.ArrayLike, num_nodes: int, label: Callable[[int], str] = lambda node: node_label(node, None)
) -> Floats:
    """Priors as an array, shape (N,); `InputError` if there is not one for each node, or one is not in [0, 1]."""
    probs = np.asarray(prior_prob, dtype=np.float64)
    if probs.shape != (num_nodes,):
        raise InputError(
            f"prior_prob must have shape ({num_nodes},), one for each node of the graph, got {probs.shape}"
        )
    is_prob = (probs >= 0) & (probs <= 1)
    if not is_prob.all():
        node = int(is_prob.argmin())
        raise InputError(f"prior_prob must be in [0, 1], got prior_prob={probs[node]} for {label(node)}")
    return probs
