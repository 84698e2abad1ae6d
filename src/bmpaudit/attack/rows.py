"""What a model says of every single feature gives its members away: the attack on weights and on unit queries.

The first layer of a model is a sum over what it was trained on. What it has learnt about feature f is close to

    Y_f = Σ_m x_mf·M_m·b_m + noise_f

over the nodes m, with features x_m, memberships M_m and directions b_m in class space, which are nearly the same in
every model that has m as a member. Where memberships are known, as of shadow models, directions can be learnt; where
directions are known, memberships can be inferred. From top to bottom:

1. Inference. All memberships of a model at once, by mean-field sweeps in native code. It leaves one number for each
   model and node, e = b̂·mean/|mean|: how much of the node's direction is in the rows.
2. Scores. e is one more query for the Student attack. That, the Student attack on the statistics alone and a regression
   on both are candidates; the fitting models decide, by true positive rates at low false positive rates.
3. What is certain (`certain.py`) is beyond all scores.

Nothing of a model enters what it is scored with: neither its memberships nor its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import scipy.sparse
from scipy.special import expit

from bmpaudit import _native
from bmpaudit.attack.certain import MEMBER, NON_MEMBER, Gap, Holders, learnt_gap
from bmpaudit.attack.evidence import Evidence, NotAuditable, Scores, folds, neighbour_means
from bmpaudit.attack.student import Student
from bmpaudit.graph import Graph
from bmpaudit.util.errors import InputError
from bmpaudit.util.matrices import (
    FlagMatrix,
    FloatMatrix,
    Rows,
    count_in,
    evenly_spaced,
    model_blocks,
    new_flags,
    new_matrix,
    node_blocks,
    row_digests,
    take_rows,
)
from bmpaudit.util.values import AnyFloats, Bytes, Flags, Floats, Floats32, Ints, as_bytes

# Learning.
MOST_LEARNT_FROM = 64  # models that directions are learnt from
MOST_COEFFICIENTS = 2**25  # numbers that are kept meanwhile
ROUNDS, SWEEPS_PER_ROUND = 4, 3
FIRST_SHARE, FIRST_VARIANCE = 0.5, 0.3  # of the label's direction, and about it, where learning begins
PRIOR_MODELS = 4.0  # that the mean over nodes is worth in a node's direction and variance
LEAST_NOISE = 0.05  # of a feature, as a share of the median
LEAST_VARIANCE = 0.1  # of a node's direction, as a share of what is observed
# Inference.
TEMPERATURES = np.geomspace(0.1, 1.0, 10, dtype=np.float32)
RIDGE = 0.01  # of the covariance of features, as a share of their mean variance
# Parts of the models.
FEWEST_MODELS = 4  # to learn anything from rows
ENOUGH_FOR_HALVES = 32  # from which on two parts do, to learn from one what the other is asked
ENOUGH_TO_HOLD_OUT = 128  # from which on those learnt from are left out of what follows
ENOUGH_FOR_FIRST = 5  # times as many models as are learnt from, that those learnt from are scored by
FEW_FOLDS = 5  # if there are not enough
# Scores.
MOST_STACKED = 2**17  # challenges that scores are compared on
MOST_REGRESSED = 2**15  # of these that the regression is learnt from
SIZE_RANGE = (0.1, 0.9)  # quantiles of fitting models between which the size of a sample counts
LEAST_SIZE = 3e-3  # share of the nodes
MOST_NEIGHBOURS = 3.0  # that are members and count
BEND = 8.0  # scores beyond which, and below minus which, have slopes of their own
LOW_RATES = (1e-4, 1e-3, 1e-2)  # false positive rates at which the best score is chosen
MIN_FALSE_POSITIVES = 10.0  # expected at a rate for it to count
SETTLED = 50.0  # what is certain is so much beyond all else


@dataclass(frozen=True)
class RowAttack:
    """Reads memberships off the rows of the model's weights, or off its answers about single features.

    Needs `Evidence.rows` and the graph. The statistic that the rows come to goes into a Student attack, together with
    the query without edges. Beside it stand the Student attack on all statistics with neighbours, which needs no rows,
    and a logistic regression on both scores, on the neighbours' posteriors and on the size that the sample seems to
    have. The one of the three with the highest true positive rates at low false positive rates on the fitting models,
    each left out of its own fit, is taken; where the rows tell nothing, this is the Student attack.

    Nodes that are certain by logic are beyond all others. About a node that no model of the fit has as a member, or as
    a non-member, no more is said than the number of models allows: its score stays within log(J + 1) on that side.
    """

    fuses_queries: ClassVar[bool] = True

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
        """Scores models with a fit on others."""
        _check(fitting)
        _check(challenged)
        key = (self, fitting.kept("samples", "digest", partial(_digest, fitting)))
        made = challenged.kept("models", key, lambda: _Fit(fitting, num_threads).table(challenged.about(None)))
        return made.about(challenged)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
        """Scores each model with a fit on others: on those outside of its fold, if models are few.

        With many, directions are learnt from the first models for all others, and from the next ones for these. The
        Student fits are on all models but the challenged one and those that directions were learnt from; the choice
        of a score is learnt in either half of the models for the other.
        """
        _check(models)
        return models.kept("samples", self, lambda: _left_out(models.about(None), num_threads)).about(models)


class _Table(NamedTuple):
    """Scores of all nodes, shape (J, N), and why some have none."""

    scores: FloatMatrix
    reasons: tuple[NotAuditable, ...]

    def about(self, models: Evidence) -> Scores:
        """Those of the nodes to score."""
        nodes = set(models.nodes.tolist()) if self.reasons else set()
        scores = np.asarray(models.at_targets(self.scores), dtype=np.float64)
        return Scores(scores, tuple(reason for reason in self.reasons if reason.node in nodes))


def _check(models: Evidence) -> None:
    for part, is_there in (("rows", models.rows is not None), ("graph", models.graph is not None)):
        if not is_there:
            raise InputError(
                f"the row attack needs what the models say of single features, and the graph; got no {part}"
            )


def _digest(models: Evidence) -> bytes:
    """Tells the memberships of one fit from those of another."""
    digest = hashlib.blake2b(models.indices.tobytes())
    for block in model_blocks(*models.memberships.shape):
        digest.update(b"".join(row_digests(models.memberships[block])))
    return digest.digest()


def _left_out(models: Evidence, num_threads: int) -> _Table:
    num_models, every = models.num_models, np.arange(models.num_models)
    if num_models < 2:
        raise InputError(f"there must be at least 2 models to fit on others, got {num_models}")
    table, reasons = new_matrix(num_models, models.num_nodes), dict[int, NotAuditable]()

    def fill(rows: Ints, made: _Table) -> None:
        for place, model in enumerate(rows.tolist()):
            table[model : model + 1, :] = made.scores[place : place + 1]
        reasons.update({reason.node: reason for reason in made.reasons})

    if num_models < ENOUGH_TO_HOLD_OUT:
        for part in folds(num_models, FEW_FOLDS):
            fit = _Fit(models.take(np.delete(every, part)), num_threads)
            fill(every[part], fit.table(models.take(part).without_memberships()))
        return _Table(table, tuple(reasons.values()))
    fit = _Fit(models, num_threads)
    size = fit.num_held_out
    fill(every[size:], fit.table_left_out())
    if size:
        first, second, others = every[:size], every[size : 2 * size], every[2 * size : ENOUGH_FOR_FIRST * size]
        fill(first, _Fit(models.take(np.concatenate([second, first, others])), num_threads).table_left_out())
    return _Table(table, tuple(reasons.values()))


# 1. Inference: how much of each node's direction is in the rows.


class RowStatistic(Protocol):
    """What makes one number for each node of the rows of a model, higher for members."""

    def of(self, rows: Floats32, states: Bytes, num_threads: int) -> Floats32:
        """From normalised rows, shape (J, F, C), and what is certain about the nodes, shape (J, N), to shape (J, N)."""


@dataclass(frozen=True, eq=False)
class Directions:
    """The model of rows that `native/attack/rows.hpp` describes, for features that few members share."""

    features: scipy.sparse.csr_array  # x, shape (N, F)
    noise: Floats32  # shape (F,)
    mean: Floats32  # of b, shape (N, C)
    variance: Floats32  # of b, shape (N,)
    log_odds: Floats32  # prior, shape (N,)

    def of(self, rows: Floats32, states: Bytes, num_threads: int) -> Floats32:
        """The statistic e of each node, by sweeps at rising temperatures over nodes that are not certain to be out."""
        statistic = np.empty(states.shape, dtype=np.float32)
        self.sweep(rows, states, TEMPERATURES, num_threads, statistic=statistic)
        return statistic

    def sweep(
        self,
        rows: Floats32,
        states: Bytes,
        temperatures: Floats32,
        num_threads: int,
        *,
        with_spread: bool = True,
        statistic: Floats32 | None = None,
        coefficient: Floats32 | None = None,
        residual: Floats32 | None = None,
    ) -> None:
        """One sweep for each temperature; fills the arrays that are given."""
        x = self.features
        sparse = x.indptr.astype(np.int64), x.indices.astype(np.int32), x.data
        prior = self.noise, self.mean, self.variance, self.log_odds
        _native.infer_members(
            *sparse, rows, states, *prior, temperatures, with_spread, num_threads, statistic, coefficient, residual
        )


def learn_directions(graph: Graph, rows: Rows, memberships: FlagMatrix, num_threads: int) -> Directions:
    """Learns directions, their variances and the noise of features from models whose members are known.

    With all memberships known, each round takes a few sweeps, on from where the last round came to. They yield b̂ of the
    n_m members m over the models, from which

        mean_m      (Σ b̂ + 4·a·t_m)/(n_m + 4), with t_m = onehot(y_m) - 1/C and a the mean share of t_m in all b̂
        variance_m  d_m - 1/κ_m, at least d_m/10, with d_m the mean square of b̂ - mean_m, shrunk to all nodes' alike
        noise_f     mean square of what is left of row f, plus a twentieth of its median

    At most `MOST_LEARNT_FROM` models are taken, of large graphs fewer, so that work and memory stay bounded.
    """
    features = scipy.sparse.csr_array(graph.features, dtype=np.float32, copy=True)
    label = np.eye(graph.num_classes)[graph.labels] - 1 / graph.num_classes
    most = min(MOST_LEARNT_FROM, max(MOST_COEFFICIENTS // label.size, 2 * FEWEST_MODELS))
    models = evenly_spaced(np.arange(len(memberships)), most)
    values, members = normalised(rows.values_of(models)), memberships[models]
    count, label_square = members.sum(axis=0, dtype=np.float64), (label**2).sum(axis=1)
    holders = np.maximum(np.bincount(features.indices, minlength=features.shape[1]), 1)
    log_odds = shrunk_log_odds(memberships)
    made = _directions(features, holders * np.mean(1 / holders), FIRST_SHARE * label, FIRST_VARIANCE, log_odds)
    coefficient = np.repeat(made.mean[None], len(models), axis=0)
    residual = np.empty((len(models), features.shape[1]), dtype=np.float32)
    once = np.ones(SWEEPS_PER_ROUND, dtype=np.float32)
    into = {"coefficient": coefficient, "residual": residual}
    for _ in range(ROUNDS):
        made.sweep(values, as_bytes(members), once, num_threads, with_spread=False, **into)
        left = residual.mean(axis=0, dtype=np.float64) + 1e-4
        noise = left + LEAST_NOISE * np.median(left)
        total = coefficient.sum(axis=0, dtype=np.float64)
        share = (total * label).sum() / max(float(count @ label_square), 1e-9)
        mean = (total + PRIOR_MODELS * share * label) / (count + PRIOR_MODELS)[:, None]
        square = np.einsum("jnc,jnc->n", coefficient, coefficient, dtype=np.float64)
        off = np.maximum(square - 2 * (mean * total).sum(axis=1) + count * (mean**2).sum(axis=1), 0) / label.shape[1]
        off = (off + PRIOR_MODELS * off.sum() / max(count.sum(), 1)) / (count + PRIOR_MODELS) + 1e-9
        kappa = np.asarray(features.power(2) @ (1 / noise)).ravel()
        variance = np.maximum(off - 1 / np.maximum(kappa, 1e-9), LEAST_VARIANCE * off)
        made = _directions(features, noise, mean, variance, log_odds)
    return made


def _directions(
    features: scipy.sparse.csr_array, noise: Floats, mean: Floats, variance: Floats | float, log_odds: Floats
) -> Directions:
    spread = np.broadcast_to(variance, log_odds.shape)
    return Directions(
        features, *(np.ascontiguousarray(each, dtype=np.float32) for each in (noise, mean, spread, log_odds))
    )


class LinearMap:
    """The best linear estimate of directions, for where members outnumber features; needs nothing to learn.

    w_i = F·[X̄(X̄ᵀX̄ + r·I)⁻¹ Y]_i · t_i with X̄ the features less their means and t_i = onehot(y_i) - 1/C.
    """

    def __init__(self, graph: Graph) -> None:
        features = graph.features
        center = np.asarray(features.mean(axis=0), dtype=np.float64).ravel()
        squares: Any = features.T @ features
        product = (squares.toarray() if scipy.sparse.issparse(squares) else squares).astype(np.float64)
        product = product - graph.num_nodes * np.outer(center, center)
        unit = np.eye(len(product))
        ridge = RIDGE * max(float(np.trace(product)), 1e-12) / len(product)
        self._graph, self._center = graph, center.astype(np.float32)
        self._inverse = (len(product) * np.linalg.inv(product + ridge * unit)).astype(np.float32)

    def of(self, rows: Floats32, states: Bytes, num_threads: int) -> Floats32:  # noqa: ARG002
        """The statistic w of each node. Rows are centered over classes, so that onehot(y_i) does for t_i."""
        statistic = np.empty(states.shape, dtype=np.float32)
        solved = np.tensordot(self._inverse, rows, axes=(1, 1))  # (F, J, C)
        for label in range(rows.shape[2]):
            nodes, direction = np.flatnonzero(self._graph.labels == label), np.ascontiguousarray(solved[:, :, label])
            statistic[:, nodes] = (self._graph.features[nodes] @ direction - self._center @ direction).T
        return statistic


def normalised(values: Floats32) -> Floats32:
    """Rows less their mean over classes, with a root mean square of 1 in every model; shape (J, F, C)."""
    centered = values - values.mean(axis=2, keepdims=True)
    size = np.sqrt(np.mean(centered**2, axis=(1, 2), keepdims=True))
    return np.ascontiguousarray(centered / np.where(size > 0, size, 1), dtype=np.float32)


def shrunk_log_odds(memberships: FlagMatrix) -> Floats:
    """Prior log-odds of all nodes by how often they are members, shrunk as far as chance explains it, shape (N,).

    Frequencies of independent coins vary by γ(1 - γ)/J. What they vary beyond that is taken for a beta distribution.
    """
    num_models, num_in = len(memberships), count_in(memberships)
    mean = np.clip(num_in.mean() / num_models, 1e-6, 1 - 1e-6)
    frequency = num_in / num_models
    chance = np.mean(frequency * (1 - frequency)) / max(num_models - 1, 1)
    excess = max(float(np.mean((frequency - mean) ** 2) - chance), 1e-9)
    weight = max(mean * (1 - mean) / excess - 1, 1.0)
    prob = (num_in + weight * mean) / (num_models + weight)
    return np.asarray(np.log(prob) - np.log1p(-prob))


# 2. Scores.


class _Reader:
    """What some models teach about rows. It reads each model once, for all fits that learn from the same models."""

    def __init__(self, key: bytes, statistic: RowStatistic, gap: Gap | None, holders: Holders) -> None:
        self._key, self._statistic, self._gap, self.holders = key, statistic, gap, holders

    @classmethod
    def learnt(cls, models: Evidence, num_threads: int) -> _Reader:
        """Learns directions, and what untouched rows look like."""

        def learn(key: bytes, graph: Graph, holders: Holders) -> _Reader:
            rows, memberships = _rows(models), models.memberships
            directions = learn_directions(graph, rows, memberships, num_threads)
            return cls(key, directions, learnt_gap(rows, memberships, holders), holders)

        return cls._shared(_digest(models), models, learn)

    @classmethod
    def linear(cls, models: Evidence) -> _Reader:
        """Nothing is learnt where members outnumber features; then none is left untouched, either."""
        return cls._shared(b"linear", models, lambda key, graph, holders: cls(key, LinearMap(graph), None, holders))

    @staticmethod
    def _shared(key: bytes, models: Evidence, make: Callable[[bytes, Graph, Holders], _Reader]) -> _Reader:
        shared, graph = _rows(models).shared, models.graph
        assert graph is not None  # noqa: S101 - checked
        if key not in shared:
            holders = shared["holders"] = shared.get("holders") or Holders(graph)
            shared[key] = make(key, graph, holders)
        reader: _Reader = shared[key]
        return reader

    def read(self, models: Evidence, num_threads: int) -> _Read:
        """What the rows of models say of all nodes."""
        rows, key = _rows(models), (self._key, "read")
        if key not in rows.shared:
            shape = len(rows.values), models.num_nodes
            whole = _Read(new_matrix(*shape), new_flags(*shape), new_flags(*shape))
            rows.shared[key] = whole, np.zeros(shape[0], dtype=np.bool_)
        whole, is_read = rows.shared[key]
        unread = np.flatnonzero(~is_read[rows.models])
        for block in model_blocks(len(unread), max(rows.shape[1] * rows.shape[2], models.num_nodes)):
            some = unread[block]
            states = self.holders.states(rows.norms_of(some), self._gap)
            statistics = self._statistic.of(normalised(rows.values_of(some)), states, num_threads)
            for place, model in enumerate(rows.models[some].tolist()):
                here = slice(place, place + 1)
                whole.statistic[model : model + 1, :] = statistics[here]
                whole.are_out[model : model + 1] = states[here] == NON_MEMBER
                whole.are_in[model : model + 1] = states[here] == MEMBER
            is_read[rows.models[some]] = True
        return whole.take(rows.models)


class _Read(NamedTuple):
    """What the rows of models say of all nodes, shape (J, N) each."""

    statistic: FloatMatrix
    are_out: FlagMatrix  # non-members for certain
    are_in: FlagMatrix  # members for certain

    def take(self, rows: Ints) -> _Read:
        """What those of some of the models say."""
        return _Read(*(take_rows(table, rows) for table in self))


class _Fit:
    """All that fitting models teach: the first of many about rows, all others about scores."""

    def __init__(self, fitting: Evidence, num_threads: int) -> None:
        assert fitting.graph is not None  # noqa: S101 - checked
        self._graph, self._num_threads = fitting.graph, num_threads
        num_models, num_members = fitting.num_models, count_in(fitting.memberships).sum() / fitting.num_models
        self.num_held_out = 0
        """Number of models that directions were learnt from, if the Student fits are to be without them."""
        if self._graph.num_features < num_members:
            self._reader = _Reader.linear(fitting)
            read = self._reader.read(fitting, num_threads)
        elif num_models < ENOUGH_TO_HOLD_OUT:
            self._reader = _Reader.learnt(fitting, num_threads)
            read = self._cross_fitted(fitting)
        else:
            self.num_held_out = min(MOST_LEARNT_FROM, num_models // 4)
            self._reader = _Reader.learnt(fitting.take(slice(self.num_held_out)), num_threads)
            fitting = fitting.take(slice(self.num_held_out, None))
            read = self._reader.read(fitting, num_threads)
        self._fitting, self._read, self._with_rows = fitting, read, self._evidence(fitting, read)

    @cached_property
    def _scored(self) -> _Scored:
        """The fitting models, each left out of its own fit."""
        return self._student_scores(None, self._fitting, self._with_rows)

    def table(self, challenged: Evidence) -> _Table:
        """Scores of other models."""
        log_odds = shrunk_log_odds(self._fitting.memberships)
        rule = _Rule("margins", np.zeros(0), (0.0, 0.0))
        if self._fitting.num_models >= FEWEST_MODELS:
            sides = self._sides(self._read, self._scored, log_odds)
            rule = _Rule.learnt(self._fitting.memberships, sides, log_odds)
        read = self._reader.read(challenged, self._num_threads)
        fits = self._fitting, self._with_rows
        scored = self._student_scores(fits, challenged, self._evidence(challenged, read))
        table = new_matrix(*scored.both.shape)
        for block, scores in self._decided(rule, self._sides(read, scored, log_odds)):
            table[block, :] = scores
        return _Table(table, scored.reasons)

    def table_left_out(self) -> _Table:
        """Scores of the fitting models that are not held out, each left out of the Student fits."""
        memberships, scored = self._fitting.memberships, self._scored
        table, every = new_matrix(*scored.both.shape), np.arange(self._fitting.num_models)
        for asked, others in ((every[0::2], every[1::2]), (every[1::2], every[0::2])):
            log_odds = shrunk_log_odds(take_rows(memberships, others))
            sides = self._sides(self._read, scored, log_odds)
            rule = _Rule.learnt(take_rows(memberships, others), sides.take(others), log_odds)
            for block, scores in self._decided(rule, sides.take(asked)):
                for place, model in enumerate(asked[block].tolist()):
                    table[model : model + 1, :] = scores[place : place + 1]
        return _Table(table, scored.reasons)

    def _cross_fitted(self, fitting: Evidence) -> _Read:
        """What others teach to read of each fitting model; nothing if there are too few."""
        num_models, shape = fitting.num_models, (fitting.num_models, fitting.num_nodes)
        read = _Read(new_matrix(*shape), new_flags(*shape), new_flags(*shape))
        if num_models < FEWEST_MODELS:
            read.statistic[:, :] = np.zeros(shape)
            return read
        for part in folds(num_models, 2 if num_models >= ENOUGH_FOR_HALVES else FEWEST_MODELS):
            reader = _Reader.learnt(fitting.take(np.delete(np.arange(num_models), part)), self._num_threads)
            made = reader.read(fitting.take(part), self._num_threads)
            read.statistic[part, :], read.are_out[part], read.are_in[part] = (each[:, :] for each in made)
        return read

    def _evidence(self, models: Evidence, read: _Read) -> Evidence:
        """The models with the statistic of their rows, and the query that is asked in the same way: without edges."""
        queries = [query for query in models.queries if query == "none"] or models.queries
        return models.with_statistics({"rows": read.statistic} | {query: models.statistics[query] for query in queries})

    def _student_scores(
        self, fitting: tuple[Evidence, Evidence] | None, models: Evidence, with_rows: Evidence
    ) -> _Scored:
        """By the statistics alone and with the rows; each model is left out of its own fit if there are no others."""
        fits = fitting or (None, None)
        margins, reasons = _student_scores(Student(), fits[0], models, self._num_threads)
        both, unscored = _student_scores(Student(neighbours=False), fits[1], with_rows, self._num_threads)
        is_bare = self._reader.holders.num_features == 0  # a node without features is in no row
        is_bare[[each.node for each in unscored]] = True
        for block in model_blocks(*both.shape):
            scores = both[block]
            scores[:, is_bare] = margins[block][:, is_bare]
            both[block, :] = scores
        fitted = self._fitting
        left_out = models.memberships if fitting is None else None
        return _Scored(margins, both, _Counts(count_in(fitted.memberships), fitted.num_models, left_out), reasons)

    def _sides(self, read: _Read, scored: _Scored, log_odds: Floats) -> _Sides:
        """All that is known of models, by prior log-odds that owe nothing to those to be scored."""
        both = scored.both
        posterior, size = new_matrix(*both.shape), np.empty(len(both))
        for block in model_blocks(*both.shape):
            probs = np.where(read.are_out[block], 0.0, expit(both[block] + log_odds))
            probs[read.are_in[block]] = 1.0
            posterior[block, :], size[block] = probs, np.log(probs.mean(axis=1) + LEAST_SIZE)
        near = neighbour_means(posterior, self._graph, self._num_threads)
        return _Sides(scored.margins, both, near, np.diff(self._graph.indptr), size, read, scored.counts)

    def _decided(self, rule: _Rule, sides: _Sides) -> Iterator[tuple[slice, Floats]]:
        every = slice(0, self._graph.num_nodes)
        for block in model_blocks(*sides.both.shape):
            scores = sides.counts.supported(rule.scores(sides, block, every), block, every)
            scores = np.where(sides.read.are_out[block], np.minimum(scores, 0) - SETTLED, scores)
            yield block, np.where(sides.read.are_in[block], np.maximum(scores, 0) + SETTLED, scores)


def _rows(models: Evidence) -> Rows:
    assert models.rows is not None  # noqa: S101 - checked
    return models.rows


def _student_scores(
    student: Student, fitting: Evidence | None, models: Evidence, num_threads: int
) -> tuple[FloatMatrix, tuple[NotAuditable, ...]]:
    """Scores of all nodes, a block at a time; each model is left out of its own fit if there are no others."""
    table, reasons = new_matrix(models.num_models, models.num_nodes), list[NotAuditable]()
    asked = models if fitting is None else models.without_memberships()
    for block in node_blocks(models.num_nodes, models.num_models + (fitting.num_models if fitting else 0)):
        nodes = np.arange(block.start, block.stop)
        if fitting is None:
            made = student.score_left_out(asked.about(nodes), num_threads=num_threads)
        else:
            made = student.score(fitting.about(nodes), asked.about(nodes), num_threads=num_threads)
        table[:, block] = made.log_likelihood_ratio
        reasons += made.not_auditable
    return table, tuple(reasons)


class _Counts(NamedTuple):
    """How many models the Student fits have with each node."""

    num_in: Ints  # shape (N,)
    num_models: int
    left_out: FlagMatrix | None  # memberships of the models to score, if these are among the models of their fits

    def supported(self, scores: AnyFloats, block: slice, nodes: Ints | slice) -> Floats:
        """Scores within what so many models allow, on a side of which there is none."""
        num_in, num_out = self.num_in[nodes], self.num_models - self.num_in[nodes]
        if self.left_out is not None:
            members = self.left_out[block, nodes]
            num_in, num_out = num_in - members, num_out - ~members
        most = np.log(self.num_models + 1)
        scores = np.where(num_in <= 0, np.minimum(scores, most), scores)
        return np.where(num_out <= 0, np.maximum(scores, -most), scores)


class _Scored(NamedTuple):
    """Student scores; tables have shape (J, N)."""

    margins: FloatMatrix  # by the statistics alone
    both: FloatMatrix  # and with the rows
    counts: _Counts
    reasons: tuple[NotAuditable, ...]


class _Sides(NamedTuple):
    """What is known of challenges; tables have shape (J, N)."""

    margins: FloatMatrix  # Student scores by the statistics alone
    both: FloatMatrix  # and with the rows
    near: FloatMatrix  # mean posterior of the neighbours, by the latter
    degree: Ints  # shape (N,)
    size: Floats  # log of the mean posterior, shape (J,)
    read: _Read  # what is certain, too
    counts: _Counts

    def take(self, rows: Ints) -> _Sides:
        """What is known of some of the models."""
        margins, both, near = (take_rows(table, rows) for table in (self.margins, self.both, self.near))
        left_out = None if self.counts.left_out is None else take_rows(self.counts.left_out, rows)
        counts = self.counts._replace(left_out=left_out)
        return _Sides(margins, both, near, self.degree, self.size[rows], self.read.take(rows), counts)

    def features(self, block: slice, nodes: Ints | slice, sizes: tuple[float, float]) -> Iterator[Floats32]:
        """What the regression is on, one table of some models and nodes after the other."""
        rows, margins, near = (table[block, nodes] for table in (self.both, self.margins, self.near))
        yield np.ones_like(near)
        yield np.broadcast_to(np.clip(self.size[block], *sizes).astype(np.float32)[:, None], near.shape)
        yield near
        yield np.minimum(near * self.degree[nodes].astype(np.float32), MOST_NEIGHBOURS)
        for scores in (rows, margins):
            squashed = np.copysign(np.log1p(np.abs(scores)), scores)
            yield squashed
            yield np.clip(scores, -BEND, BEND)
            yield np.clip(scores - BEND, 0, 5 * BEND)
            yield np.clip(scores + BEND, -5 * BEND, 0)
            if scores is rows:
                yield near * squashed


class _Rule(NamedTuple):
    """Which score is taken, and what the regression has learnt."""

    name: str
    weights: Floats
    sizes: tuple[float, float]

    @classmethod
    def learnt(cls, memberships: FlagMatrix, sides: _Sides, log_odds: Floats) -> _Rule:
        """Learns the regression, and compares it, on either half of the models by the other, with both scores."""
        num_models, num_nodes = sides.both.shape
        low, high = np.quantile(sides.size, SIZE_RANGE).tolist()
        nodes, whole = evenly_spaced(np.arange(num_nodes), max(1, MOST_STACKED // num_models)), slice(0, num_models)
        features = np.stack(list(sides.features(whole, nodes, (low, high))))
        members = memberships[whole, nodes]
        is_open = ~(sides.read.are_out[whole, nodes] | sides.read.are_in[whole, nodes])
        offset = np.broadcast_to(log_odds[nodes], members.shape)
        stacked, is_odd = np.zeros(members.shape), np.arange(num_models) % 2 == 1
        for half in (is_odd, ~is_odd):
            used = is_open & ~half[:, None]
            weights = _logistic(features[:, used], members[used], offset[used])
            stacked[half] = np.tensordot(weights, features[:, half], axes=1)
        tables = {"rows": sides.both, "margins": sides.margins}
        candidates = {name: np.asarray(table[whole, nodes], dtype=np.float64) for name, table in tables.items()}
        quality = {
            name: _low_rates((sides.counts.supported(scores, whole, nodes) + offset)[is_open], members[is_open])
            for name, scores in (candidates | {"regression": stacked}).items()
        }
        best = max(quality, key=lambda name: quality[name])
        if best == "regression":
            weights = _logistic(features[:, is_open], members[is_open], offset[is_open])
        return cls(best, weights, (low, high))

    def scores(self, sides: _Sides, block: slice, nodes: slice) -> Floats:
        """The score that was chosen."""
        if self.name != "regression":
            table = sides.margins if self.name == "margins" else sides.both
            return np.asarray(table[block, nodes], dtype=np.float64)
        total = np.zeros(sides.both[block, nodes].shape)
        for weight, values in zip(self.weights.tolist(), sides.features(block, nodes, self.sizes), strict=True):
            total += np.float32(weight) * values
        return total


def _logistic(features: Floats32, members: Flags, offset: Floats) -> Floats:
    """Weights of a logistic regression beside fixed offsets, with a little ridge, by Newton's method; shape (V,)."""
    if not len(members):  # all nodes are certain
        return np.zeros(len(features))
    some = evenly_spaced(np.arange(len(members)), MOST_REGRESSED)
    features, members, offset = features[:, some], members[some], offset[some].astype(np.float32)
    scale = np.sqrt(np.mean(features**2, axis=1, dtype=np.float64)) + 1e-3
    values, weights = (features / scale[:, None]).astype(np.float32), np.zeros(len(features))
    for _ in range(25):
        probs = expit(offset + (weights.astype(np.float32) @ values)).astype(np.float32)
        slope = values @ (members - probs) - weights
        curvature = (values * (probs * (1 - probs))) @ values.T + np.eye(len(values))
        step = np.linalg.solve(curvature, slope)
        weights += step * min(1.0, 4 / max(np.abs(step).max(), 1e-9))  # steps far out would overshoot
        if np.abs(step).max() < 1e-3:
            break
    return np.asarray(weights / scale)


def _low_rates(scores: Floats, members: Flags) -> float:
    """Mean log of the true positive rates at those low false positive rates that so many challenges can tell."""
    others, mine = np.sort(scores[~members]), scores[members]
    rates = [rate for rate in LOW_RATES if rate * len(others) >= MIN_FALSE_POSITIVES] or LOW_RATES[-1:]
    if not len(others):
        return 0.0
    thresholds = [others[len(others) - 1 - int(rate * len(others))] for rate in rates]
    return float(np.mean([np.log((np.count_nonzero(mine > each) + 1) / (len(mine) + 1)) for each in thresholds]))
