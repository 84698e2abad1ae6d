"""What is inferred about one released model: its inputs, scores, hits, and whether it fits its plan."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from bmpaudit.attack import Evidence, NotAuditable, Strong, challenge
from bmpaudit.attack.challenges import check_attack
from bmpaudit.attack.evidence import can_be_attacked, node_label
from bmpaudit.attack.performance import roc_within_models
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.graph import Graph
from bmpaudit.graph.graph import node_ids
from bmpaudit.interfaces import Attack
from bmpaudit.io.readers import SUFFIXES, archive_names, read_archive, read_array, read_table, read_text
from bmpaudit.proof.calibration import NodeRecalibration
from bmpaudit.proof.exposure import LeftOut, recalibrate_nodes
from bmpaudit.proof.guesses import Source, sources_of
from bmpaudit.util.errors import DataError, InputError, thread_count
from bmpaudit.util.matrices import FloatMatrix, Rows, new_matrix, node_blocks
from bmpaudit.util.values import AnyFloats, Flags, Floats, Floats32

MEMBER, NODE, MEMBERSHIPS = "member", "node", "memberships"


def declared_prior(prior: Any, graph: Graph) -> Floats:
    """Declared prior probabilities of membership, shape (N,).

    It is one number in (0, 1) for all nodes; one for each node; or a file: `.npy`, or a table, `.csv` or `.parquet`,
    with `prior_prob` and, unless it has all nodes in order, `node` by name or number.
    """
    place = ""
    if isinstance(prior, str):
        with suppress(ValueError):
            prior = float(prior)
    if isinstance(prior, (str, Path)):
        path = Path(prior)
        place = f"{path}: "
        if path.suffix.lower() not in (*SUFFIXES, ".npy"):
            raise DataError(f"{path}: priors must be a number, or a file .npy, .csv or .parquet")
        values = read_array(path) if path.suffix.lower() == ".npy" else _node_column(path, "prior_prob", graph)
    else:
        values = np.asarray(prior)
        if values.ndim == 0:
            if values.dtype.kind not in "fiu" or not 0 < float(values) < 1:
                raise InputError(f"prior must be in (0, 1), got {prior}")
            return np.full(graph.num_nodes, float(values))
    if values.shape != (graph.num_nodes,) or values.dtype.kind not in "fiu":
        raise InputError(
            f"{place}priors must be numbers of shape ({graph.num_nodes},), one for each node, got {values.dtype} of "
            f"shape {values.shape}"
        )
    probs = values.astype(np.float64)
    is_prob = (probs >= 0) & (probs <= 1)
    if not is_prob.all():
        node = int(is_prob.argmin())
        name = node_label(node, graph.node_names[node] if graph.node_names else None)
        raise InputError(f"{place}priors must be in [0, 1], got {probs[node]:g} for {name}")
    return probs


def known_members(truth: Any, graph: Graph) -> Flags:
    """Who was in the training sample, shape (N,).

    Given are a flag for each node, or the members' numbers or names; or a file: `.npy`, or `.npz` with one array or
    `memberships`, of either; `.txt` with a member in each line; or a table, `.csv` or `.parquet`, with `node` (the
    members) or `member` (a flag for each node) or both.
    """
    values, place = np.asarray(truth), "truth"
    if isinstance(truth, (str, Path)):
        values, place = _told_by(Path(truth), graph), str(Path(truth))
    members = _members(values, graph, place)
    if members.all() or not members.any():
        raise InputError(f"{place}: there must be members and non-members, got {members.sum():,} of {members.size:,}")
    return members


def _told_by(path: Path, graph: Graph) -> npt.NDArray[Any]:
    """What a file says of who was in: flags, or the members themselves."""
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return _table_members(path, graph)
    if suffix == ".txt":
        lines = [line.strip() for line in read_text(path, encoding="utf-8-sig").splitlines()]
        return np.array([line for line in lines if line], dtype=object)
    if suffix == ".npy":
        return read_array(path)
    if suffix != ".npz":
        raise DataError(f"{path}: who was in must be told by a file .npy, .npz, .csv, .parquet or .txt")
    names = archive_names(path)
    if len(names) != 1 and MEMBERSHIPS not in names:
        raise DataError(f"{path}: must hold one array, or {MEMBERSHIPS}, got {', '.join(names) or 'nothing'}")
    chosen = MEMBERSHIPS if MEMBERSHIPS in names else names[0]
    return read_archive(path, required=[chosen])[chosen]


def _members(values: npt.NDArray[Any], graph: Graph, place: str) -> Flags:
    if values.ndim == 2 and len(values) == 1:  # one row of the memberships of many models
        values = values[0]
    if values.ndim != 1:
        raise InputError(
            f"{place}: must be a flag for each of {graph.num_nodes:,} nodes, or the members, got shape {values.shape}"
        )
    if len(values) == graph.num_nodes and values.dtype.kind in "bfiu" and np.isin(values, (0, 1)).all():
        return values.astype(np.bool_)
    if values.dtype.kind == "b":
        raise InputError(f"{place}: must have a flag for each of {graph.num_nodes:,} nodes, got {len(values):,}")
    members = np.zeros(graph.num_nodes, dtype=np.bool_)
    members[node_ids(values.tolist(), graph, place)] = True
    return members


def _table_members(path: Path, graph: Graph) -> npt.NDArray[Any]:
    table = read_table(path, text=[NODE])
    if MEMBER not in table:
        if NODE not in table:
            raise DataError(f"{path}: must have a column node or member, got {', '.join(map(str, table.columns[:8]))}")
        return table[NODE].to_numpy(dtype=object)
    flags = _node_column(path, MEMBER, graph)
    if flags.dtype.kind == "O":
        flags = np.array([{"true": 1, "false": 0, "1": 1, "0": 0}.get(str(v).lower(), -1) for v in flags])
    if not np.isin(flags, (0, 1)).all():
        raise DataError(f"{path}: member must be 0 or 1, or true or false")
    return flags.astype(np.bool_)


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


# Does one model behave like the shadow models? Ranks among them, which need no assumption about any distribution.

LEVEL = 0.01  # share of the models trained as the plan says that may fail the check
MAX_LEVEL = 0.05  # the same where there are too few models for that: only the oddest of all can fail then
POSITIVE = "share of positive margins"


@dataclass(frozen=True)
class Standing:
    """One quantity of a released model among those of the shadow models of its group."""

    name: str  # what it is
    value: float  # that of the released model
    low: float  # 1 % quantile of the shadow models
    high: float  # 99 % quantile of the shadow models
    p_value: float  # twice the share of models, this one among them, that are at least as low, or as high
    # Distance from the median in units of the distance from the median to the 5 % or 95 % quantile, whichever is on the
    # same side.
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
    """

    standings: tuple[Standing, ...]  # each quantity, the largest deviation first
    p_value: float  # share of models, this one among them, that deviate at least as much, as described above
    smallest_p: float  # smallest p-value that there can be with so many models
    num_models: int  # J

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
        names = ("is_like_shadows", "p_value", "level", "num_models")
        return {**{name: getattr(self, name) for name in names}, "standings": list(map(asdict, self.standings))}


def compare_with_shadows(
    shadows: Mapping[str, Floats], released: Mapping[str, float], has_learnt_little: Flags | None = None
) -> BehaviourCheck:
    """Ranks a released model among J shadow models, by the names of quantities.

    `has_learnt_little` is the group of each shadow model and of the released one, which comes last, shape (J + 1,).

    >>> rng = np.random.default_rng(0)
    >>> shadows = {"loss": rng.normal(size=99), "accuracy": rng.normal(size=99)}
    >>> check = compare_with_shadows(shadows, {"loss": 0.2, "accuracy": 7.0})
    >>> check.standings[0].name, check.p_value, check.is_like_shadows
    ('accuracy', 0.01, False)
    """
    everyone = np.stack([np.append(shadows[name], released[name]) for name in shadows], axis=1)
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
    for k, name in enumerate(shadows):
        others = group[:-1, k] if len(group) > 1 else everyone[:-1, k]
        values = (mine[k], *np.quantile(others, (0.01, 0.99)), min(1.0, 2 * min(below[k], above[k])), deviations[-1, k])
        standings.append(Standing(name, *map(float, values)))
    return BehaviourCheck(
        standings=tuple(sorted(standings, key=lambda each: -each.deviation)),
        p_value=min(1.0, factor * float((largest >= largest[-1]).sum()) / num_ranked),
        smallest_p=factor / num_ranked,
        num_models=len(everyone) - 1,
    )


def _deviations(values: Floats) -> Floats:
    """Distances from the median, each side in its own units: samplers make some models odd in one direction only.

    Where the quantile is the median, as among small counts, the unit is the largest distance on that side.
    """
    middle = np.median(values, axis=0)
    distance = values - middle
    low, high = np.quantile(values, (0.05, 0.95), axis=0)
    below = np.where(middle > low, middle - low, -distance.min(axis=0))
    above = np.where(high > middle, high - middle, distance.max(axis=0))
    unit = np.where(distance < 0, below, above)
    return np.abs(distance) / np.where(unit > 0, unit, 1.0)


class Behaviour(NamedTuple):
    """How a released model and the shadow models behave, memberships unseen."""

    check: BehaviourCheck
    has_learnt_little: Flags  # which have fewer than half as many positive margins as the median, the released one last


def behaviour(shadows: Mapping[str, FloatMatrix], released: Mapping[str, Floats32]) -> Behaviour:
    """Compares the statistics by query of a released model, shape (N,), with those of shadow models, shape (J, N)."""
    quantities: dict[str, Floats] = {}
    is_little: Flags = np.zeros(1, dtype=np.bool_)
    for query, statistics in shadows.items():
        summary = _quantities(statistics, released[query])
        is_little = is_little | (summary[POSITIVE] < np.median(summary[POSITIVE]) / 2)
        quantities |= {f"{name} (query {query})": values for name, values in summary.items()}
    check = compare_with_shadows(
        {name: values[:-1] for name, values in quantities.items()},
        {name: float(values[-1]) for name, values in quantities.items()},
        is_little,
    )
    return Behaviour(check, is_little)


def _quantities(shadows: FloatMatrix, released: Floats32) -> dict[str, Floats]:
    """Summaries of each model, the released one last, shape (J + 1,), which treat all models alike."""
    num_models, num_nodes = shadows.shape
    shares, means, variances, positives, deviations, num_varying = [], [], [], [], [], 0
    for block in node_blocks(num_nodes, num_models + 1):
        margins = np.concatenate([shadows[:, block], released[None, block]]).astype(np.float64)
        shares.append(margins.shape[1] / num_nodes)
        means.append(margins.mean(axis=1))
        variances.append(margins.var(axis=1))
        positives.append((margins > 0).mean(axis=1))
        num_here, deviation = _squared_deviation(margins)
        num_varying += num_here
        deviations.append(deviation)
    weights = np.array(shares)[:, None]
    mean = (weights * means).sum(axis=0)
    return {
        "mean margin": mean,
        "spread of margins": np.sqrt((weights * (variances + (means - mean) ** 2)).sum(axis=0)),
        POSITIVE: (weights * positives).sum(axis=0),
        "squared deviation from the others": np.sum(deviations, axis=0) / max(num_varying, 1),
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


# Who is named, and how right that is.

CERTAINTIES = (0.95, 0.99)
FALSE_POSITIVE_RATE = 0.01


@dataclass(frozen=True)
class Named:
    """The nodes that are named at one certainty, and of non-members likewise."""

    certainty: float  # posterior probability from which on a node is named
    members: int  # number of nodes named as members
    expected_members: float  # expected number of members among them
    members_by_prior: int  # number of nodes that the prior alone would name as members
    # Number of other nodes that no answer of a model would name as members: with so many shadow models, or by this
    # attack, so much certainty is out of reach.
    members_undecidable: int
    non_members: int
    expected_non_members: float
    non_members_by_prior: int
    non_members_undecidable: int
    members_right: int | None = None  # number of the nodes named as members that are; None if that is not known
    non_members_right: int | None = None


def count_named(
    certainty: float, log_odds: Floats, log_prior_odds: Floats, reachable: tuple[Floats, Floats], truth: Flags | None
) -> Named:
    """Counts who is named; all arrays of shape (N,). A node named as a non-member is not open as a member."""
    threshold, prob = scipy.special.logit(certainty), scipy.special.expit(log_odds)
    values: dict[str, Any] = {}
    both = ("members", 1, prob, reachable[1]), ("non_members", -1, 1 - prob, reachable[0])
    for side, sign, probs, farthest in both:
        is_named, is_other = sign * log_odds >= threshold, sign * log_odds <= -threshold
        values[side] = int(is_named.sum())
        values[f"expected_{side}"] = float(probs[is_named].sum())
        values[f"{side}_by_prior"] = int((sign * log_prior_odds >= threshold).sum())
        values[f"{side}_undecidable"] = int((~is_other & (sign * farthest < threshold)).sum())
        values[f"{side}_right"] = None if truth is None else int((is_named & (truth == (sign > 0))).sum())
    return Named(certainty=certainty, **values)


@dataclass(frozen=True)
class InferenceScore:
    """How well an inference did, where it is known who was in."""

    num_members: int  # number of members
    auc: float  # probability that a member's odds exceed a non-member's
    tpr_at_1_percent: float  # largest share of members found with at most 1 % of the non-members taken for one
    # How this compares with the shadow models, each scored by a fit on the others, under the sampler's prior. Of models
    # trained as the plan says, approximately a share a at most has a p-value ≤ a. The formal guarantee of
    # `BehaviourCheck` does not hold here, as the models are not treated quite alike: with J of them, a shadow model is
    # scored by a fit on J - 1 and recalibrated by a map that was learnt from it too; the released model by a fit on J
    # and a map that was not.
    standing: BehaviourCheck

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        return {**asdict(self), "standing": self.standing.to_plain()}


# The attack on one released model, fitted on the shadow models and recalibrated on them.


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the shadow models say about an attack, each scored by a fit on the others."""

    source: Source  # the attack, and the queries that it sees
    left_out: LeftOut  # posterior log-odds of the shadow models about the K nodes that can be attacked, and the truth
    recalibration: NodeRecalibration  # of these nodes, learnt from them

    @property
    def log_loss(self) -> float:
        """Mean of -log of the probability that was given to the truth."""
        total, number = 0.0, 0
        for places, values, truth in self.left_out.blocks():
            log_odds = self.recalibration(values, places)
            total += float(np.logaddexp(0.0, np.where(truth, -log_odds, log_odds)).sum())
            number += truth.size
        return total / number


def calibrate(attack: Attack, models: Evidence, prior_prob: Floats, num_threads: int | None) -> Calibration:
    """Scores the shadow models; of an attack that takes one query at a time, under the query that tells most.

    Which query that is, is found on the shadow models alone: the one with the smallest log-loss.
    """
    log_odds, tried, threads = log_prior_odds(prior_prob), list[Calibration](), thread_count(num_threads)
    for source in sources_of(attack, models.queries):
        seen = source.seen(models)
        check_attack(attack, seen.queries)
        open_nodes = seen.nodes[np.isfinite(log_odds[seen.nodes])]
        if not len(open_nodes):
            raise InputError("no node can be attacked, as all priors are 0 or 1")
        table = new_matrix(models.num_models, len(open_nodes))
        left_out = LeftOut.score(attack, seen.about(open_nodes), log_odds, table, threads, None, lambda _: None)
        if not left_out.is_scored.any():
            raise InputError(f"attack {source.name}: no node can be attacked with {models.num_models} models")
        if (missing := left_out.missing_side()) is not None:
            raise InputError(f"memberships must hold both sides, got no {missing}")
        tried.append(Calibration(source, left_out, recalibrate_nodes(left_out)))
    return min(tried, key=lambda each: each.log_loss)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What an attack says of one model under the sampler's prior; each array has a value for every node, shape (N,).

    Where there was no attack, log-odds are those of the prior.
    """

    score: Floats  # log-odds as the attack has them
    calibrated: Floats  # log-odds that can be believed
    reachable: tuple[Floats, Floats]  # the lowest and the highest that any model could get
    is_above: Flags  # whether the score is beyond those of all non-members of equal strength among the shadow models
    is_below: Flags  # whether it is beyond those of all members
    is_attacked: Flags
    not_auditable: tuple[NotAuditable, ...]  # the other nodes, and why


def attack_released(
    calibration: Calibration,
    models: Evidence,
    released: Mapping[str, Floats32],
    prior_prob: Floats,
    num_threads: int | None,
    rows: Rows | None = None,
) -> Posterior:
    """Scores a released model, given by the statistics of all nodes by query, with a fit on all shadow models.

    The attack may need its class rows, too.
    """
    source, learnt = calibration.source, calibration.recalibration
    # Its memberships are unknown; the attack does not see them, and the errors are not looked at.
    nobody = np.zeros((1, models.num_nodes), dtype=np.bool_)
    statistics = {query: released[query][None] for query in models.queries}
    challenged = Evidence(statistics, nobody, models.indices[-1:] + 1, models.graph, rows=rows)
    seen, fitted = source.seen(challenged), source.seen(models)
    rules = {"strong": Strong()}
    made = challenge(source.attack, seen, prior_prob, rules, fitting=fitted, with_scores=True, num_threads=num_threads)
    if made.scores is None:
        raise InputError(f"attack {source.name}: no node can be attacked with {models.num_models} models")
    everyone, nodes = np.arange(models.num_nodes), calibration.left_out.nodes
    can_be_scored = can_be_attacked(everyone, made.not_auditable)
    # A fit without one of the shadow models may be impossible where one on all of them is not.
    is_attacked = can_be_scored & np.isin(everyone, nodes)
    reasons = [
        models.not_auditable(node, "too few shadow models hold it, or lack it, to calibrate its odds")
        for node in np.flatnonzero(can_be_scored & ~is_attacked).tolist()
    ]
    prior = log_prior_odds(prior_prob)
    score, calibrated, lowest, highest = np.tile(prior, (4, 1))
    is_above, is_below = np.zeros((2, models.num_nodes), dtype=np.bool_)
    score[made.scores.node] = made.scores.of("strong")[0]
    calibrated[nodes] = learnt(score[nodes])
    lowest[nodes], highest[nodes] = learnt.reachable()
    is_above[nodes], is_below[nodes] = learnt.beyond(score[nodes])
    for values in (score, calibrated, lowest, highest):
        values[~is_attacked] = prior[~is_attacked]
    not_auditable = tuple(sorted((*made.not_auditable, *reasons), key=lambda left: left.node))
    beyond = is_above & is_attacked, is_below & is_attacked
    return Posterior(score, calibrated, (lowest, highest), *beyond, is_attacked, not_auditable)


# How right an inference is where it is known who was in, and whether the shadow models give away as much.


def score_inference(
    calibration: Calibration, posterior: Posterior, prior_shift: Floats, members: Flags, has_learnt_little: Flags
) -> InferenceScore:
    """Scores an inference and ranks it among those about the shadow models, on the nodes that could be attacked.

    `prior_shift` is what the declared prior adds to the log-odds, shape (N,); `has_learnt_little` is the group of each
    shadow model and of the released one, which comes last, shape (J + 1,).
    """
    nodes, truth = calibration.left_out.nodes, members[calibration.left_out.nodes]
    if truth.all() or not truth.any():
        raise InputError(
            f"of the {truth.size:,} nodes that can be attacked there must be members and non-members, got "
            f"{truth.sum():,} members"
        )
    score = posterior.score[nodes].astype(np.float32)  # as the shadow models have them
    result = _results(score[None], posterior.calibrated[nodes][None], truth[None])
    whole_models = calibration.left_out.whole_models()
    parts = [_results(values, calibration.recalibration(values), flags) for values, flags in whole_models]
    theirs = {name: np.concatenate([part[name] for part in parts]) for name in result}
    is_mixed = ~np.isnan(theirs["AUC"])
    standing = compare_with_shadows(
        {name: values[is_mixed] for name, values in theirs.items()},
        {name: float(values[0]) for name, values in result.items()},
        has_learnt_little[np.append(is_mixed, True)],
    )
    roc = roc_within_models((posterior.score + prior_shift)[nodes][None], truth[None], FALSE_POSITIVE_RATE)
    return InferenceScore(int(truth.sum()), float(roc.auc[0]), float(roc.true_positive_rate[0]), standing)


def _results(scores: AnyFloats, calibrated: Floats, truth: Flags) -> dict[str, Floats]:
    """What is found out about each of some models; all arrays of shape (number of models, K)."""
    roc = roc_within_models(scores, truth, FALSE_POSITIVE_RATE)
    results = {"AUC": roc.auc, "TPR at 1 %": roc.true_positive_rate}
    for certainty in CERTAINTIES:
        is_named = calibrated >= scipy.special.logit(certainty)
        for word, is_so in (("rightly", truth), ("wrongly", ~truth)):
            numbers = np.count_nonzero(is_named & is_so, axis=1).astype(np.float64)
            results[f"members named {word} at {100 * certainty:g} %"] = numbers
    return results
