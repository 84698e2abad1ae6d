"""Every model is challenged about every node: the one way from an attack to its errors."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Flags, Floats, Ints
from bmpaudit.attack.counting import CountErrors, Scored, count_errors
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.attack.evidence import Evidence
from bmpaudit.attack.inputs import check_fitting_models, prior_probs
from bmpaudit.attack.not_auditable import NotAuditable, can_be_attacked, with_certain_priors
from bmpaudit.attack.rules import RuleErrors, log_prior_odds
from bmpaudit.attack.scores import ChallengeScores
from bmpaudit.attack.settings import DEFAULT_SETTINGS, DecisionSettings
from bmpaudit.checks import thread_count
from bmpaudit.errors import InputError
from bmpaudit.interfaces import Attack, DecisionRule, Progress
from bmpaudit.tables import columns


@dataclass(frozen=True, eq=False)
class Challenges:
    """Outcome of all challenges (model, node) of one attack.

    Attributes:
        node: Ids of the K target nodes, shape (K,).
        num_out: n_0, number of challenged models without each of them, shape (K,).
        num_in: n_1, number of challenged models with each of them, shape (K,).
        errors: By rule, the errors on each target.
        prior_prob: γ(1), shape (K,).
        is_counted: Which of the targets go into the counts, shape (K,).
        not_auditable: The targets that could not be attacked, and why.
        scores: Scores of the counted targets, if they were asked for.
    """

    node: Ints
    num_out: Ints
    num_in: Ints
    errors: Mapping[str, RuleErrors]
    prior_prob: Floats
    is_counted: Flags
    not_auditable: tuple[NotAuditable, ...]
    scores: ChallengeScores | None = None

    def error_counts(self, rule: str) -> ErrorCounts:
        """Errors of one rule, by its name.

        Raises:
            InputError: if there is no such rule, or no node could be attacked.
        """
        if rule not in self.errors:
            raise InputError(f"rule must be one of {', '.join(self.errors)}, got rule={rule!r}")
        counted, errors = self.is_counted, self.errors[rule]
        return ErrorCounts(
            node=self.node[counted],
            num_out=self.num_out[counted],
            num_in=self.num_in[counted],
            false_positives=errors.false_positives[counted],
            false_negatives=errors.false_negatives[counted],
            prior_prob=self.prior_prob[counted],
            not_auditable=self.not_auditable,
        )


def challenge(
    attack: Attack,
    models: Evidence,
    prior_prob: npt.ArrayLike | str,
    rules: Mapping[str, DecisionRule],
    *,
    fitting: Evidence | None = None,
    settings: DecisionSettings = DEFAULT_SETTINGS,
    targets: npt.ArrayLike | None = None,
    with_scores: bool = False,
    most_scores: int | None = None,
    num_threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda _: None,
) -> Challenges:
    """Challenges each model about each target node, and counts the errors of each rule.

    No model is in its own fit. With `fitting`, all models are challenged with a fit on those (Algorithm 4). Without,
    each model is challenged with a fit on all others (Algorithm 1) if the attack can leave models out, else with a fit
    on the nine tenths of the models that it is not part of.

    Nodes are taken in blocks, so that memory stays bounded. The Gaussian attack with the built-in rules takes one
    native pass that keeps no scores; both ways give the same counts.

    Args:
        attack: Any attack; one that does not fuse queries takes evidence of a single query.
        models: Models to challenge.
        prior_prob: γ(1) of all nodes of the graph, or "shadow-frequency": how often each node is in the samples of the
            models that are fitted on.
        rules: Decision rules by name.
        fitting: Other models to fit on.
        settings: Costs of errors, and what to do about nodes that cannot be attacked.
        targets: The target set 𝒯 as node ids, or flags for all nodes; those of `models` if None.
        with_scores: Whether to keep the scores, 8 bytes per challenge.
        most_scores: If there are more challenges, the scores of evenly spaced nodes are kept, so many that there are no
            more than that.
        num_threads: Number of threads; the result does not depend on it.
        executor: Workers that count the errors in blocks of nodes, if there is more than one block; the result does not
            depend on it.
        progress: Called with the number of target nodes done so far.

    Raises:
        InputError: if the inputs do not fit together, or scores are asked for and no node can be attacked.
    """
    _check(attack, models, rules)
    if targets is not None:
        models = models.about(targets)
    if fitting is not None:
        check_fitting_models(fitting, models)
        fitting = fitting.about(models.targets)
    nodes = models.nodes
    prior = prior_probs(prior_prob, models if fitting is None else fitting)[nodes]
    log_odds = log_prior_odds(prior)
    log_odds[np.isinf(log_odds)] = 0.0  # nothing to decide there, see below
    keep = np.zeros(0, dtype=np.int64)
    if with_scores:
        keep = thinned(len(nodes), models.num_models, most_scores)
    job = CountErrors(attack, models, fitting, rules, log_odds, settings.threshold, keep)
    scored = count_errors(job, num_threads=thread_count(num_threads), executor=executor, progress=progress)
    reasons = with_certain_priors(scored.not_auditable, nodes, prior, models.node_names)
    is_scored = can_be_attacked(nodes, reasons)
    is_counted = is_scored | (settings.unfittable == "non-member")
    challenges = Challenges(
        node=nodes,
        num_out=models.num_models - models.num_in,
        num_in=models.num_in,
        errors={name: _where_scored(errors, is_scored, models.num_in) for name, errors in scored.errors.items()},
        prior_prob=prior,
        is_counted=is_counted,
        not_auditable=reasons,
    )
    if not with_scores:
        return challenges
    if not is_counted.any():
        challenges.error_counts(next(iter(rules)))  # raises, and says why
    return replace(challenges, scores=_scores(challenges, models, keep, is_scored, scored, settings.threshold))


def thinned(num_nodes: int, num_models: int, most_challenges: int | None) -> Ints:
    """Positions of evenly spaced nodes, so many that there are no more challenges than that; of all nodes if None."""
    most = num_nodes if most_challenges is None else max(1, most_challenges // num_models)
    return np.arange(num_nodes) if num_nodes <= most else np.linspace(0, num_nodes - 1, most).astype(np.int64)


def _scores(
    made: Challenges, models: Evidence, keep: Ints, is_scored: Flags, scored: Scored, threshold: float
) -> ChallengeScores:
    """Scores of those of the kept targets that are counted."""
    values, is_counted, nodes = scored.log_likelihood_ratio, made.is_counted[keep], made.node[keep]
    values[:, ~is_scored[keep]] = -np.inf
    if not is_counted.all():
        values, keep, nodes = values[:, is_counted], keep[is_counted], nodes[is_counted]
    memberships = columns(models.memberships, nodes)
    return ChallengeScores(nodes, values, memberships, made.prior_prob[keep], is_scored[keep], threshold)


def _check(attack: Attack, models: Evidence, rules: Mapping[str, DecisionRule]) -> None:
    if not isinstance(attack, Attack):
        raise InputError(f"attack must have fuses_queries and score(...), got {attack!r}")
    if not attack.fuses_queries and len(models.queries) != 1:
        name = type(attack).__name__
        raise InputError(
            f"attack {name} does not fuse queries and takes one at a time, got {', '.join(models.queries)}"
        )
    if not rules:
        raise InputError("there must be at least one decision rule, got none")
    for name, rule in rules.items():
        if not isinstance(rule, DecisionRule):
            raise InputError(f"rule {name} must have decision_score(...), got {rule!r}")


def _where_scored(errors: RuleErrors, is_scored: Flags, num_in: Ints) -> RuleErrors:
    """Every decision about a node that could not be attacked is "non-member"."""
    return RuleErrors(
        np.where(is_scored, errors.false_positives, 0), np.where(is_scored, errors.false_negatives, num_in)
    )
