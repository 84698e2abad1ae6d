"""What is inferred about one released model: its inputs, scores, hits, and whether it fits its plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.attack import Evidence, NotAuditable, Strong, challenge
from bmpaudit.attack.evidence import node_label
from bmpaudit.attack.performance import roc_within_models
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.graph import Graph
from bmpaudit.graph.graph import node_ids
from bmpaudit.interfaces import Attack
from bmpaudit.io.readers import SUFFIXES, archive_names, read_archive, read_array, read_table, read_text
from bmpaudit.proof import Recalibration, recalibrate
from bmpaudit.proof.guesses import Source, sources_of
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.matrices import FloatMatrix, node_blocks
from bmpaudit.util.values import Flags, Floats, Floats32, Ints

PRIOR, MEMBER, NODE, MEMBERSHIPS = "prior_prob", "member", "node", "memberships"


def declared_prior(prior: Any, graph: Graph) -> Floats:
    """Declared prior probabilities of membership, shape (N,).

    Args:
        prior: One number in (0, 1) for all nodes; one for each node; or a file: `.npy`, or a table, `.csv` or
            `.parquet`, with `prior_prob` and, unless it has all nodes in order, `node` by name or number.
        graph: The graph.

    Raises:
        DataError: if a file is missing, damaged or lacks a node.
        InputError: if a probability is impossible; the message names the node and the value.
    """
    if isinstance(prior, (str, Path)) and not _is_number(str(prior)):
        path = Path(prior)
        if path.suffix.lower() in SUFFIXES:
            return _checked_prior(_node_column(path, PRIOR, graph), graph, f"{path}: ")
        if path.suffix.lower() != ".npy":
            raise DataError(f"{path}: priors must be a number, or a file .npy, .csv or .parquet")
        return _checked_prior(read_array(path), graph, f"{path}: ")
    values = np.asarray(float(prior) if isinstance(prior, str) else prior)
    if values.ndim == 0:
        if values.dtype.kind not in "fiu" or not 0 < float(values) < 1:
            raise InputError(f"prior must be in (0, 1), got {prior}")
        return np.full(graph.num_nodes, float(values))
    return _checked_prior(values, graph, "")


def _checked_prior(values: npt.NDArray[Any], graph: Graph, place: str) -> Floats:
    if values.shape != (graph.num_nodes,) or values.dtype.kind not in "fiu":
        raise InputError(
            f"{place}priors must be numbers of shape ({graph.num_nodes},), one for each node, got {values.dtype} of "
            f"shape {values.shape}"
        )
    probs = values.astype(np.float64)
    is_prob = (probs >= 0) & (probs <= 1)
    if not is_prob.all():
        node = int(is_prob.argmin())
        raise InputError(f"{place}priors must be in [0, 1], got {probs[node]:g} for {_label(node, graph)}")
    return probs


def known_members(truth: Any, graph: Graph) -> Flags:
    """Who was in the training sample, shape (N,).

    Args:
        truth: A flag for each node, or the members' numbers or names; or a file: `.npy`, or `.npz` with one array or
            `memberships`, of either; `.txt` with a member in each line; or a table, `.csv` or `.parquet`, with `node`
            (the members) or `member` (a flag for each node) or both.
        graph: The graph.

    Raises:
        DataError: if a file is missing or damaged, or a node is unknown or there twice.
        InputError: if there is no member, or no other node.
    """
    if not isinstance(truth, (str, Path)):
        return _checked_members(_members(np.asarray(truth), graph, "truth"), "truth")
    path = Path(truth)
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        members = _table_members(path, graph)
    elif suffix == ".txt":
        lines = [line.strip() for line in read_text(path, encoding="utf-8-sig").splitlines()]
        members = _members(np.array([line for line in lines if line], dtype=object), graph, str(path))
    elif suffix == ".npy":
        members = _members(read_array(path), graph, str(path))
    elif suffix == ".npz":
        names = archive_names(path)
        if len(names) != 1 and MEMBERSHIPS not in names:
            raise DataError(f"{path}: must hold one array, or {MEMBERSHIPS}, got {', '.join(names) or 'nothing'}")
        chosen = MEMBERSHIPS if MEMBERSHIPS in names else names[0]
        members = _members(read_archive(path, required=[chosen])[chosen], graph, str(path))
    else:
        raise DataError(f"{path}: who was in must be told by a file .npy, .npz, .csv, .parquet or .txt")
    return _checked_members(members, str(path))


def _members(values: npt.NDArray[Any], graph: Graph, place: str) -> Flags:
    """Flags for all nodes, or the members themselves."""
    if values.ndim == 2 and len(values) == 1:  # one row of the memberships of many models
        values = values[0]
    if values.ndim != 1:
        raise InputError(
            f"{place}: must be a flag for each of {graph.num_nodes:,} nodes, or the members, got shape {values.shape}"
        )
    is_flags = len(values) == graph.num_nodes and values.dtype.kind in "bfiu" and bool(np.isin(values, (0, 1)).all())
    if is_flags:
        return values.astype(np.bool_)
    if values.dtype.kind == "b":
        raise InputError(f"{place}: must have a flag for each of {graph.num_nodes:,} nodes, got {len(values):,}")
    members = np.zeros(graph.num_nodes, dtype=np.bool_)
    members[node_ids(values.tolist(), graph, place)] = True
    return members


def _table_members(path: Path, graph: Graph) -> Flags:
    table = read_table(path, text=[NODE])
    if MEMBER not in table:
        if NODE not in table:
            raise DataError(f"{path}: must have a column node or member, got {', '.join(map(str, table.columns[:8]))}")
        return _members(table[NODE].to_numpy(dtype=object), graph, str(path))
    flags = _node_column(path, MEMBER, graph)
    if flags.dtype.kind == "O":
        flags = np.array([{"true": 1, "false": 0, "1": 1, "0": 0}.get(str(v).lower(), -1) for v in flags])
    if not np.isin(flags, (0, 1)).all():
        raise DataError(f"{path}: member must be 0 or 1, or true or false")
    return flags.astype(np.bool_)


def _checked_members(members: Flags, place: str) -> Flags:
    if members.all() or not members.any():
        raise InputError(f"{place}: there must be members and non-members, got {members.sum():,} of {members.size:,}")
    return members


def _node_column(path: Path, name: str, graph: Graph) -> npt.NDArray[Any]:
    """A column with a value for each node, in the graph's order."""
    table = read_table(path, text=[NODE], required=[name])
    values = table[name].to_numpy()
    if len(values) != graph.num_nodes:
        raise DataError(f"{path}: must have a row for each of {graph.num_nodes:,} nodes, got {len(values):,}")
    if NODE not in table:
        return values
    ordered = np.empty_like(values)
    ordered[node_ids(table[NODE].tolist(), graph, str(path))] = values
    return ordered


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def _label(node: int, graph: Graph) -> str:
    return node_label(node, graph.node_names[node] if graph.node_names else None)


# Does one model behave like the shadow models? Ranks among them, which need no assumption about any distribution.


LEVEL = 0.01
"""Share of the models trained as the plan says that may fail the check."""
MAX_LEVEL = 0.05
"""The same where there are too few models for that: only the oddest of all can fail then."""
QUANTILES = (0.05, 0.95)
SHOWN = (0.01, 0.99)
POSITIVE = "share of positive margins"


@dataclass(frozen=True)
class Standing:
    """One quantity of a released model among those of the shadow models of its group.

    Attributes:
        name: What it is.
        value: That of the released model.
        low: 1 % quantile of the shadow models.
        high: 99 % quantile of the shadow models.
        p_value: Twice the share of models, this one among them, that are at least as low, or as high.
        deviation: Distance from the median in units of the distance from the median to the 5 % or 95 % quantile,
            whichever is on the same side.
    """

    name: str
    value: float
    low: float
    high: float
    p_value: float
    deviation: float


@dataclass(frozen=True)
class BehaviourCheck:
    """Whether a model can be one more of the shadow models.

    The released model and the J shadow models are treated alike: the deviation of each quantity is measured within the
    J + 1 of them, and each model counts with its largest deviation. If the released model was trained as the plan says,
    they are exchangeable, and all ranks are equally likely. Some samplers now and then draw a sample that teaches
    hardly anything, and such models differ from the others in every respect. So there are two groups: a model that has
    learnt as usual is ranked among its like; one that has learnt little is ranked among all, its group first. Where
    both groups have models, p-values are doubled.

    Formal guarantee: of models trained as the plan says, at most a share a has `p_value` ≤ a, for every a, whatever the
    quantities and however they depend on each other. (Given the J + 1 models without their order, each is equally
    likely to be the released one. So it is a usual one with a rank of at most a/2 with probability at most a/2, and one
    that has learnt little with a rank of at most a/2 with probability at most a/2.) No correction for the number of
    quantities is needed, as their largest deviation is ranked.

    What it does not promise: a model that passes may have been trained otherwise, in ways these quantities do not show.

    Attributes:
        standings: Each quantity, the largest deviation first.
        p_value: Share of models, this one among them, that deviate at least as much, as described above.
        smallest_p: Smallest p-value that there can be with so many models.
        num_models: J.
    """

    standings: tuple[Standing, ...]
    p_value: float
    smallest_p: float
    num_models: int

    @property
    def level(self) -> float:
        """Share of the models trained as the plan says that fail; 0 if there are too few to tell."""
        return max(LEVEL, self.smallest_p) if self.smallest_p <= MAX_LEVEL else 0.0

    @property
    def is_like_shadows(self) -> bool:
        """Whether nothing speaks against it."""
        return self.p_value > self.level

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        return {
            "is_like_shadows": self.is_like_shadows,
            "p_value": self.p_value,
            "level": self.level,
            "num_models": self.num_models,
            "standings": [asdict(each) for each in self.standings],
        }


def compare_with_shadows(
    shadows: Mapping[str, Floats], released: Mapping[str, float], has_learnt_little: Flags | None = None
) -> BehaviourCheck:
    """Ranks a released model among shadow models.

    Args:
        shadows: By name of a quantity, its value for each of J shadow models, shape (J,).
        released: The same for the released model.
        has_learnt_little: Group of each shadow model and of the released one, which comes last, shape (J + 1,).

    >>> rng = np.random.default_rng(0)
    >>> shadows = {"loss": rng.normal(size=99), "accuracy": rng.normal(size=99)}
    >>> check = compare_with_shadows(shadows, {"loss": 0.2, "accuracy": 7.0})
    >>> check.standings[0].name, check.p_value, check.is_like_shadows
    ('accuracy', 0.01, False)
    """
    names = list(shadows)
    everyone = np.stack([np.append(shadows[name], released[name]) for name in names], axis=1)
    num_models = len(everyone) - 1
    is_little = np.zeros(len(everyone), dtype=np.bool_) if has_learnt_little is None else has_learnt_little
    is_like = is_little == is_little[-1]
    group = everyone[is_like]
    deviations = _deviations(everyone)[is_like] if is_little[-1] else _deviations(group)
    largest = deviations.max(axis=1)
    num_ranked = len(everyone) if is_little[-1] else len(group)
    factor = 2 if is_little.any() and not is_little.all() else 1
    mine = group[-1]
    below, above = (group <= mine).mean(axis=0), (group >= mine).mean(axis=0)
    standings = []
    for k, name in enumerate(names):
        others = group[:-1, k] if len(group) > 1 else everyone[:-1, k]
        low, high = np.quantile(others, SHOWN)
        p_value = min(1.0, 2 * min(below[k], above[k]))
        standings.append(
            Standing(name, float(mine[k]), float(low), float(high), float(p_value), float(deviations[-1, k]))
        )
    standings.sort(key=lambda each: -each.deviation)
    return BehaviourCheck(
        standings=tuple(standings),
        p_value=min(1.0, factor * float((largest >= largest[-1]).sum()) / num_ranked),
        smallest_p=factor / num_ranked,
        num_models=num_models,
    )


def _deviations(values: Floats) -> Floats:
    """Distances from the median, each side in its own units: samplers make some models odd in one direction only.

    Where the quantile is the median, as among small counts, the unit is the largest distance on that side.
    """
    middle = np.median(values, axis=0)
    distance = values - middle
    low, high = np.quantile(values, QUANTILES, axis=0)
    below = np.where(middle > low, middle - low, -distance.min(axis=0))
    above = np.where(high > middle, high - middle, distance.max(axis=0))
    unit = np.where(distance < 0, below, above)
    return np.abs(distance) / np.where(unit > 0, unit, 1.0)


@dataclass(frozen=True, eq=False)
class Behaviour:
    """How a released model and the shadow models behave, memberships unseen.

    Attributes:
        check: Whether they behave alike.
        has_learnt_little: Which of them have fewer than half as many positive margins as the median, the released one
            last, shape (J + 1,).
    """

    check: BehaviourCheck
    has_learnt_little: Flags


def behaviour(shadows: Mapping[str, FloatMatrix], released: Mapping[str, Floats32]) -> Behaviour:
    """Compares the statistics of a released model with those of the shadow models.

    Args:
        shadows: By query, the statistic of every node under every shadow model, shape (J, N).
        released: By query, that under the released model, shape (N,).
    """
    quantities: dict[str, Floats] = {}
    num_models = len(next(iter(shadows.values())))
    is_little = np.zeros(num_models + 1, dtype=np.bool_)
    for query, statistics in shadows.items():
        summary = _quantities(statistics, released[query])
        is_little |= summary[POSITIVE] < np.median(summary[POSITIVE]) / 2
        quantities |= {f"{name} (query {query})": values for name, values in summary.items()}
    check = compare_with_shadows(
        {name: values[:-1] for name, values in quantities.items()},
        {name: float(values[-1]) for name, values in quantities.items()},
        is_little,
    )
    return Behaviour(check, is_little)


class _Part(NamedTuple):
    """Some nodes: their number, and of each model the mean, variance and share of positive margins about them.

    Attributes:
        num_varying: Number of nodes whose margin varies, whichever model is left out.
        deviation: Sum over these of squared deviations, shape (J + 1,).
    """

    num_nodes: int
    mean: Floats
    variance: Floats
    positive: Floats
    num_varying: int
    deviation: Floats


def _quantities(shadows: FloatMatrix, released: Floats32) -> dict[str, Floats]:
    """Summaries of each model, the released one last, shape (J + 1,), which treat all models alike."""
    num_models, num_nodes = shadows.shape
    parts = []
    for block in node_blocks(num_nodes, num_models + 1):
        margins = np.concatenate([shadows[:, block], released[None, block]]).astype(np.float64)
        num_varying, deviation = _squared_deviation(margins)
        parts.append(
            _Part(
                margins.shape[1],
                margins.mean(axis=1),
                margins.var(axis=1),
                (margins > 0).mean(axis=1),
                num_varying,
                deviation,
            )
        )
    weights = [part.num_nodes / num_nodes for part in parts]

    def weighted(values: Iterable[Floats]) -> Floats:
        return np.sum([weight * each for weight, each in zip(weights, values, strict=True)], axis=0)

    mean = weighted(part.mean for part in parts)
    variance = weighted(part.variance + (part.mean - mean) ** 2 for part in parts)
    return {
        "mean margin": mean,
        "spread of margins": np.sqrt(variance),
        POSITIVE: weighted(part.positive for part in parts),
        "squared deviation from the others": np.sum([part.deviation for part in parts], axis=0)
        / max(sum(part.num_varying for part in parts), 1),
    }


def _squared_deviation(statistics: Floats) -> tuple[int, Floats]:
    """Sum over nodes of ((z - mean)/sd)², with mean and standard deviation of all other models, and of how many."""
    num_others = len(statistics) - 1
    centred = statistics - statistics.mean(axis=0)  # so that sums of squares lose no digits
    squares = (centred**2).sum(axis=0)
    mean = -centred / num_others
    variance = (squares - centred**2) / num_others - mean**2
    varies: Flags = (variance > 0).all(axis=0)
    total: Floats = ((centred - mean)[:, varies] ** 2 / variance[:, varies]).sum(axis=1)
    return int(varies.sum()), total


# How right an inference is, where it is known who was in, and whether the shadow models give away as much.


CERTAINTIES = (0.95, 0.99)
FALSE_POSITIVE_RATE = 0.01


@dataclass(frozen=True)
class Named:
    """The nodes that are named at one certainty.

    Attributes:
        certainty: Posterior probability from which on a node is named.
        members: Number of nodes named as members.
        expected_members: Expected number of members among them.
        members_by_prior: Number of nodes that the prior alone would name as members.
        non_members: Number of nodes named as non-members.
        expected_non_members: Expected number of non-members among them.
        non_members_by_prior: Number of nodes that the prior alone would name as non-members.
        members_right: Number of the nodes named as members that are; None if that is not known.
        non_members_right: Number of the nodes named as non-members that are; None if that is not known.
    """

    certainty: float
    members: int
    expected_members: float
    members_by_prior: int
    non_members: int
    expected_non_members: float
    non_members_by_prior: int
    members_right: int | None = None
    non_members_right: int | None = None


def count_named(certainty: float, log_odds: Floats, log_prior_odds: Floats, truth: Flags | None) -> Named:
    """Counts who is named; all arrays of shape (N,)."""
    threshold, prob = scipy.special.logit(certainty), scipy.special.expit(log_odds)
    is_in, is_out = log_odds >= threshold, log_odds <= -threshold
    return Named(
        certainty=certainty,
        members=int(is_in.sum()),
        expected_members=float(prob[is_in].sum()),
        members_by_prior=int((log_prior_odds >= threshold).sum()),
        non_members=int(is_out.sum()),
        expected_non_members=float((1 - prob[is_out]).sum()),
        non_members_by_prior=int((log_prior_odds <= -threshold).sum()),
        members_right=None if truth is None else int((is_in & truth).sum()),
        non_members_right=None if truth is None else int((is_out & ~truth).sum()),
    )


@dataclass(frozen=True)
class InferenceScore:
    """How well an inference did, where it is known who was in.

    Attributes:
        num_members: Number of members.
        auc: Probability that a member's odds exceed a non-member's.
        tpr_at_1_percent: Largest share of members found with at most 1 % of the non-members taken for one.
        standing: How this compares with the shadow models, each scored by a fit on the others, under the sampler's
            prior. Of models trained as the plan says, approximately a share a at most has a p-value ≤ a. The formal
            guarantee of `BehaviourCheck` does not hold here, as the models are not treated quite alike: with J of them,
            a shadow model is scored by a fit on J - 1 and recalibrated by a map that was learnt from it too; the
            released model by a fit on J and a map that was not.
    """

    num_members: int
    auc: float
    tpr_at_1_percent: float
    standing: BehaviourCheck

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        return {**asdict(self), "standing": self.standing.to_plain()}


@dataclass(frozen=True, eq=False)
class LogOdds:
    """Posterior log-odds of membership about one model, shape (K,), or about many, shape (J, K).

    Attributes:
        score: As the attack has them, which orders nodes most finely.
        calibrated: Recalibrated, so that they can be believed.
    """

    score: Floats
    calibrated: Floats


def score_inference(
    mine: LogOdds,
    truth: Flags,
    prior_shift: Floats,
    shadows: LogOdds,
    memberships: Flags,
    has_learnt_little: Flags,
) -> InferenceScore:
    """Scores an inference and ranks it among those about the shadow models.

    Args:
        mine: Log-odds about the released model under the sampler's prior.
        truth: Who was in, shape (K,).
        prior_shift: What the declared prior adds to the log-odds, shape (K,).
        shadows: Log-odds about each shadow model, by a fit on the others.
        memberships: Who was in each of them, shape (J, K).
        has_learnt_little: Group of each shadow model and of the released one, which comes last, shape (J + 1,).

    Raises:
        InputError: if the nodes that can be attacked are all members, or all not.
    """
    if truth.all() or not truth.any():
        raise InputError(
            f"of the {truth.size:,} nodes that can be attacked there must be members and non-members, got "
            f"{truth.sum():,} members"
        )
    is_mixed = memberships.any(axis=1) & ~memberships.all(axis=1)
    theirs = _results(shadows.score[is_mixed], shadows.calibrated[is_mixed], memberships[is_mixed])
    result = {
        name: float(values[0])
        for name, values in _results(mine.score[None], mine.calibrated[None], truth[None]).items()
    }
    standing = compare_with_shadows(theirs, result, has_learnt_little[np.append(is_mixed, True)])
    roc = roc_within_models((mine.score + prior_shift)[None], truth[None], FALSE_POSITIVE_RATE)
    return InferenceScore(int(truth.sum()), float(roc.auc[0]), float(roc.true_positive_rate[0]), standing)


def _results(scores: Floats, calibrated: Floats, truth: Flags) -> dict[str, Floats]:
    """What is found out about each of J models; all arrays of shape (J, K)."""
    roc = roc_within_models(scores, truth, FALSE_POSITIVE_RATE)
    results = {"AUC": roc.auc, "TPR at 1 %": roc.true_positive_rate}
    for certainty in CERTAINTIES:
        is_named = calibrated >= scipy.special.logit(certainty)
        for word, is_so in (("rightly", truth), ("wrongly", ~truth)):
            numbers = np.count_nonzero(is_named & is_so, axis=1).astype(np.float64)
            results[f"members named {word} at {100 * certainty:g} %"] = numbers
    return results


# The attack on one released model, fitted on the shadow models and recalibrated on them.


RULES = {"strong": Strong()}

MOST_SCORES = 20_000_000
"""Challenges of shadow models that the calibration looks at; beyond that, nodes are thinned evenly."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the shadow models say about an attack, each scored by a fit on the others.

    Attributes:
        source: The attack, and the queries that it sees.
        node: Ids of the K nodes that can be attacked, shape (K,); evenly spaced ones of a large graph.
        log_odds: Posterior log-odds about each model, shape (J, K).
        memberships: The truth, shape (J, K).
        recalibration: The map that was learnt from them.
    """

    source: Source
    node: Ints
    log_odds: LogOdds
    memberships: Flags
    recalibration: Recalibration

    @property
    def log_loss(self) -> float:
        """Mean of -log of the probability that was given to the truth."""
        surprise = np.where(self.memberships, -self.log_odds.calibrated, self.log_odds.calibrated)
        return float(np.logaddexp(0.0, surprise).mean())


def _calibration(source: Source, models: Evidence, prior_prob: Floats, num_threads: int | None) -> Calibration:
    scores = challenge(
        source.attack,
        source.seen(models),
        prior_prob,
        RULES,
        with_scores=True,
        most_scores=MOST_SCORES,
        num_threads=num_threads,
    ).scores
    if scores is None:
        raise InputError(f"attack {source.name}: no node can be attacked with {models.num_models} models")
    values = scores.of("strong")
    learnt = recalibrate(values, scores.memberships)
    return Calibration(source, scores.node, LogOdds(values, learnt(values)), scores.memberships, learnt)


def calibrate(attack: Attack, models: Evidence, prior_prob: Floats, num_threads: int | None) -> Calibration:
    """Scores the shadow models; of an attack that takes one query at a time, under the query that tells most.

    Which query that is, is found on the shadow models alone: the one with the smallest log-loss.
    """
    sources = sources_of((attack,), models.queries)
    tried = [_calibration(source, models, prior_prob, num_threads) for source in sources]
    return min(tried, key=lambda each: each.log_loss)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What an attack says of one model under the sampler's prior.

    Attributes:
        log_odds: Posterior log-odds of every node, shape (N,); those of the prior where there was no attack.
        is_attacked: Which nodes could be attacked, shape (N,).
        not_auditable: The other nodes, and why.
    """

    log_odds: LogOdds
    is_attacked: Flags
    not_auditable: tuple[NotAuditable, ...]


def attack_released(
    calibration: Calibration,
    models: Evidence,
    released: Mapping[str, Floats32],
    prior_prob: Floats,
    num_threads: int | None,
) -> Posterior:
    """Scores a released model with a fit on all shadow models.

    Args:
        calibration: What was learnt from the shadow models.
        models: The shadow models.
        released: By query, the statistic of every node under the released model, shape (N,).
        prior_prob: The sampler's priors, shape (N,).
        num_threads: Number of threads.
    """
    source = calibration.source
    # Its memberships are unknown; the attack does not see them, and the errors are not looked at.
    nobody = np.zeros((1, models.num_nodes), dtype=np.bool_)
    challenged = Evidence(
        {query: released[query][None] for query in models.queries},
        nobody,
        models.indices[-1:] + 1,
        models.graph,
    )
    fitted = source.seen(models)
    made = challenge(
        source.attack,
        source.seen(challenged),
        prior_prob,
        RULES,
        fitting=fitted,
        with_scores=True,
        num_threads=num_threads,
    )
    if made.scores is None:
        raise InputError(f"attack {source.name}: no node can be attacked with {models.num_models} models")
    score = log_prior_odds(prior_prob)
    calibrated = score.copy()
    score[made.scores.node] = made.scores.of("strong")[0]
    calibrated[made.scores.node] = calibration.recalibration(score[made.scores.node])
    is_attacked = np.zeros(models.num_nodes, dtype=np.bool_)
    is_attacked[made.scores.node] = True
    return Posterior(LogOdds(score, calibrated), is_attacked, made.not_auditable)
