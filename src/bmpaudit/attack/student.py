"""All queries of a release and the neighbours, in a multivariate Student t distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Flags, Floats, Floats32, Ints, as_bytes
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import NotAuditable
from bmpaudit.attack.scores import Scores
from bmpaudit.attack.student_features import have_neighbours, independent_features, node_features
from bmpaudit.attack.student_prior import StudentPrior, learn_priors
from bmpaudit.errors import InputError
from bmpaudit.tables import evenly_spaced

MAX_FEATURES = 16
"""Largest number of features that the kernel takes."""

NUM_FOLDS = 10
"""Parts of the models that a prior is learnt without, where each model is left out in turn."""


@dataclass(frozen=True)
class Student:
    """Fuses the queries of a release and the neighbours' statistics in a multivariate Student t predictive.

    The features of a node are its statistic under each query and the mean over its neighbours under each: a member
    changes the answers about its neighbours too. A node without neighbours has its own statistics only, and a feature
    that is a linear function of others is dropped. Of each node and side ("member" or not) the V features are normal,
    with a normal-inverse-Wishart prior whose parameters are learnt from all nodes (empirical Bayes). So the features of
    one more model follow a multivariate Student t distribution on each side, and the score is the log of the ratio of
    the two densities. With many models this becomes the ratio of two normal densities; with few, the prior steadies it.

    The prior of a side of a node, with n' models, mean x̄' and scatter S' on the *other* side:

        mean    (a·level' + n'·x̄')/(a + n') ± shift, worth 1/(1/b + 1/(a + n')) models
        scale   (dof - V - 1)·((1-s)·scale + s·(2·scale' + S')/(2 + n')), the latter brought to the side's variances

    `level`, `shift` and `scale` are means over nodes, the weights a and b follow from the variance between nodes (by
    moments), `dof` and s maximise the marginal likelihood; see `student_prior.py`. So a node needs no models on a side:
    what is known of it then rests on its other side and on the other nodes. Nodes cannot be scored only if no fitting
    model has a member, or none has a non-member, or no node has two models on a side.

    Leaving out each model in turn is exact for the node's own models, by rank-one downdates in O(models · nodes). The
    prior is learnt without the tenth of the models that a model belongs to, so that nothing about its memberships
    enters its score.

    Attributes:
        neighbours: Whether the mean statistic of a node's neighbours is used.
    """

    fuses_queries: ClassVar[bool] = True

    neighbours: bool = True

    def score(self, fitting: Evidence, challenged: Evidence, *, num_threads: int) -> Scores:
        """Scores models with a fit on others."""
        return self._scores(fitting, challenged, num_threads)

    def score_left_out(self, models: Evidence, *, num_threads: int) -> Scores:
        """Scores each model with a fit on all others."""
        return self._scores(models, None, num_threads)

    def _scores(self, fitting: Evidence, challenged: Evidence | None, num_threads: int) -> Scores:
        if challenged is None and fitting.num_models < 2:
            raise InputError(f"there must be at least 2 models to fit on others, got {fitting.num_models}")
        asked = fitting if challenged is None else challenged
        llr = np.zeros((asked.num_models, len(asked.nodes)))
        reasons: list[NotAuditable] = []
        is_connected = have_neighbours(fitting, asked.nodes, self.neighbours)
        for with_neighbours in (True, False):
            columns = np.flatnonzero(is_connected == with_neighbours)
            if not len(columns):
                continue
            task = _GroupTask(self, with_neighbours, fitting, challenged, num_threads)
            if not task.score(columns, llr):
                reason = f"{fitting.num_models:,} models leave nothing to learn the prior of the Student attack from"
                reasons += [asked.not_auditable(node, reason) for node in asked.nodes[columns]]
        return Scores(llr, tuple(reasons))


@dataclass(frozen=True, eq=False)
class _Basis:
    """What the prior of a group is learnt from, whatever the memberships.

    Attributes:
        nodes: Ids of M nodes.
        features: Their features, shape (V, J, M); None on a worker, which is sent the priors that were learnt instead.
        is_kept: Which of all features these are.
    """

    nodes: Ints
    features: Floats32 | None
    is_kept: Flags

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "features": None}


class _GroupTask(NamedTuple):
    """Scores of nodes that have the same features."""

    attack: Student
    with_neighbours: bool
    fitting: Evidence
    challenged: Evidence | None
    num_threads: int

    @property
    def key(self) -> tuple[Student, bool]:
        """What tells these nodes from others."""
        return self.attack, self.with_neighbours

    def score(self, columns: Ints, llr: Floats) -> bool:
        """Fills columns of the scores; False if there is nothing to learn a prior from."""
        fitting, challenged, num_models = self.fitting, self.challenged, self.fitting.num_models
        basis = fitting.kept("models", self.key, self._basis)
        num_features = int(basis.is_kept.sum())
        if num_features == 0:  # no statistic varies between models: they all look alike
            return num_models > 1
        if num_features > MAX_FEATURES:
            raise InputError(f"the Student attack takes at most {MAX_FEATURES} features, got {num_features}")
        folds = _folds(num_models) if challenged is None else [slice(None)]
        learnt = fitting.kept(
            "samples",
            (*self.key, len(folds)),
            lambda: self._learn_priors(basis if basis.features is not None else self._basis(), folds),
        )
        priors = [prior for prior in learnt if prior is not None]
        if len(priors) < len(learnt):
            return False
        set_of = np.zeros(len(llr), dtype=np.int64)
        for number, rows in enumerate(folds):
            set_of[rows] = number
        nodes = (fitting if challenged is None else challenged).nodes[columns]

        def features_of(models: Evidence) -> Floats32:
            return node_features(models, nodes, self.with_neighbours, self.num_threads, basis.is_kept)

        if challenged is None:
            features, asked = fitting.kept("targets", self.key, lambda: features_of(fitting)), None
        else:
            features, asked = features_of(fitting), features_of(challenged)
        scores = llr if len(columns) == llr.shape[1] else np.empty((len(llr), len(columns)))
        members = as_bytes(fitting.memberships[:, nodes])
        _native.student_scores(
            features,
            members,
            asked,
            set_of,
            **_stacked(priors, num_models),
            num_threads=self.num_threads,
            scores=scores,
        )
        if scores is not llr:
            llr[:, columns] = scores
        return True

    def _learn_priors(self, basis: _Basis, folds: Sequence[slice]) -> list[StudentPrior | None]:
        assert basis.features is not None  # noqa: S101 - they were just made, if need be
        return learn_priors(basis.features, self.fitting.memberships[:, basis.nodes], folds, self.num_threads)

    def _basis(self) -> _Basis:
        with_neighbours, fitting = self.with_neighbours, self.fitting
        every_node = np.arange(fitting.num_nodes)
        group = every_node[have_neighbours(fitting, every_node, self.attack.neighbours) == with_neighbours]
        some = _spread(group, fitting.num_models)
        features = node_features(fitting, some, with_neighbours, self.num_threads)
        is_kept = independent_features(features)
        if not with_neighbours and len(group) < fitting.num_nodes:  # all nodes have statistics of their own
            some = _spread(every_node, fitting.num_models)
            features = node_features(fitting, some, with_neighbours, self.num_threads)
        return _Basis(some, features[is_kept], is_kept)


def _stacked(priors: Sequence[StudentPrior], num_models: int) -> dict[str, Floats]:
    return {
        "level": np.stack([prior.level for prior in priors]),
        "shift": np.stack([prior.shift for prior in priors]),
        "weights": np.array([[prior.level_weight, prior.shift_weight] for prior in priors]),
        "dof": np.stack([prior.dof for prior in priors]),
        "other_share": np.stack([prior.other_share for prior in priors]),
        "scale": np.stack([prior.scale for prior in priors]),
        "log_gamma": np.stack([prior.log_gamma(num_models) for prior in priors]),
    }


def _folds(num_models: int) -> list[slice]:
    num_folds = min(NUM_FOLDS, num_models)
    return [slice(*bounds) for bounds in pairwise(num_models * fold // num_folds for fold in range(num_folds + 1))]


def _spread(nodes: Ints, num_models: int) -> Ints:
    """The nodes that a prior is learnt from."""
    return evenly_spaced(nodes, num_learnt_from(len(nodes), num_models))


def num_learnt_from(num_nodes: int, num_models: int) -> int:
    """How many nodes a prior is learnt from: so many that the work stays bounded."""
    return min(num_nodes, max(2**19 // num_models, 256), 2**12)
