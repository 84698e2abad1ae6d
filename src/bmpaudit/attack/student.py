"""All queries of a release and the neighbours, in a multivariate Student t distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from bmpaudit import _native
from bmpaudit.arrays import Floats, Floats32, Ints
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.not_auditable import NotAuditable
from bmpaudit.attack.scores import Scores
from bmpaudit.attack.student_features import NodeGroup, evenly_spaced, independent_features, node_features, node_groups
from bmpaudit.attack.student_prior import StudentPrior, learn_priors
from bmpaudit.errors import InputError

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
        groups = node_groups(fitting, self.neighbours)
        for group in groups:
            columns = np.flatnonzero(np.isin(asked.nodes, group.nodes))
            if not len(columns):
                continue
            if not _score_group(group, columns, fitting, challenged, num_threads, llr):
                reason = f"{fitting.num_models:,} models leave nothing to learn the prior of the Student attack from"
                reasons += [asked.not_auditable(node, reason) for node in asked.nodes[columns]]
        return Scores(llr, tuple(reasons))


def _score_group(
    group: NodeGroup,
    columns: Ints,
    fitting: Evidence,
    challenged: Evidence | None,
    num_threads: int,
    llr: Floats,
) -> bool:
    """Fills columns of the scores; False if there is nothing to learn a prior from."""
    some = _spread(group.nodes, fitting.num_models)
    features = node_features(fitting, some, group.with_neighbours)
    is_kept = independent_features(features)
    num_features = int(is_kept.sum())
    if num_features == 0:  # no statistic varies between models: they all look alike
        return fitting.num_models > 1
    if num_features > MAX_FEATURES:
        raise InputError(f"the Student attack takes at most {MAX_FEATURES} features, got {num_features}")
    if not group.with_neighbours and len(group.nodes) < fitting.num_nodes:  # all nodes have statistics of their own
        some = _spread(np.arange(fitting.num_nodes), fitting.num_models)
        features = node_features(fitting, some, with_neighbours=False)
    folds = _folds(fitting.num_models) if challenged is None else [slice(None)]
    learnt = learn_priors(features[is_kept], fitting.memberships[:, some], folds)
    priors = [prior for prior in learnt if prior is not None]
    if len(priors) < len(learnt):
        return False
    nodes = (fitting if challenged is None else challenged).nodes[columns]

    def kept_features(models: Evidence) -> Floats32:
        return node_features(models, nodes, group.with_neighbours, is_kept)

    scores = np.empty((len(llr), len(columns)))
    set_of = np.zeros(len(llr), dtype=np.int64)
    for number, rows in enumerate(folds):
        set_of[rows] = number
    _native.student_scores(
        kept_features(fitting),
        np.ascontiguousarray(fitting.memberships[:, nodes]).view(np.uint8),
        None if challenged is None else kept_features(challenged),
        set_of,
        **_stacked(priors, fitting.num_models),
        num_threads=num_threads,
        scores=scores,
    )
    llr[:, columns] = scores
    return True


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
    """The nodes that a prior is learnt from: so many that the work stays bounded."""
    return evenly_spaced(nodes, min(max(2**19 // num_models, 256), 2**12))
