"""What an audit found in words and figures: headline, answer, cautions, advice, and the summary that holds them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit import registry
from bmpaudit.attack import PermutationTest
from bmpaudit.auditing.context import attack_on, fingerprint, models_hash
from bmpaudit.auditing.nodes import ranked_nodes
from bmpaudit.auditing.stages import (
    SIDES,
    Attacks,
    Estimates,
    Findings,
    Guaranteed,
    ReleaseFindings,
    headline_parameters,
)
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import StoredDefinition, smallest_values
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Definition
from bmpaudit.plan import AuditPlan, plan_table
from bmpaudit.proof import Proof, ProvenBound, models_to_prove_more, provable
from bmpaudit.proof.exposure import HARDLY_ANY, MIN_MODELS
from bmpaudit.proof.guesses import SURE
from bmpaudit.proof.prove import Method
from bmpaudit.registry import ATTACK, DEFINITION, ENTRIES
from bmpaudit.releases import gives_labels_only
from bmpaudit.report.words import TABLE_WORDS, confidence, count, factor, in_other_words, listed, number, odds, percent
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.runs import ViewAccuracy
from bmpaudit.util.values import Floats32, plain

if TYPE_CHECKING:
    from bmpaudit.auditing.finished import Audit


TABLE_NOTE = "The data are a table without edges: where pictures and files say node, they mean a row."


def words_of(graph: Graph) -> Mapping[str, str]:
    """What the usual words are replaced by: none if there are edges."""
    return {} if graph.num_edges else TABLE_WORDS


def in_words_of(graph: Graph, text: str) -> str:
    """A sentence as it fits the data: about nodes, or about rows if there are no edges.

    >>> from bmpaudit.graph import Graph
    >>> table = Graph.from_table([[0.5], [0.1]], [0, 1])
    >>> in_words_of(table, "2 nodes of the training graph: bmpaudit nodes DIR")
    '2 rows of the training data: bmpaudit nodes DIR'
    """
    return in_other_words(text, words_of(graph))


# What is estimated: the paper's ε of the main variant, and where not to trust it.


MOVED = 0.1  # nats that the median may move by without a warning
DRIVEN = 0.5  # nats by which nodes of constant decision may raise the mean before a warning is due


@dataclass(frozen=True)
class HeadlineRow:
    """One estimated ε.

    Attributes:
        name: Its symbol.
        meaning: In words.
        definition: The definition it is a parameter of.
        parameter: Which of the definition's parameters.
        multiplies_odds: Whether ε bounds by how much the odds change, as in MP, and not the odds themselves.
        p5: 5th percentile of the posterior.
        p50: Median of the posterior.
        p95: 95th percentile of the posterior.
        floor: What the sampler alone gives away, at least (Prop. 1).
        floor_is_exact: Whether the floor comes from a formula.
        floor_level: Confidence of the floor otherwise.
        proven: What is proven of it; None if nothing, or if the definition is none that a proof is about.
        proof_level: Confidence of what is proven.
        half_median: Median with half of the models; None if that is too few.
        mean: Mean of the posterior.
        mean_without_constant: Mean without the nodes whose decision never varies.
        tail_prior_share: How much of the upper tail is the prior's.
        warnings: Why not to trust the estimate, in words.
    """

    name: str
    meaning: str
    definition: str
    parameter: str
    multiplies_odds: bool
    p5: float
    p50: float
    p95: float
    floor: float
    floor_is_exact: bool
    floor_level: float | None
    proven: float | None
    proof_level: float
    half_median: float | None
    mean: float
    mean_without_constant: float
    tail_prior_share: float
    warnings: tuple[str, ...] = ()


def headline(
    priors: Priors, attacks: Attacks, findings: Findings, estimates: Estimates, proof_level: float
) -> tuple[HeadlineRow, ...]:
    """The ε of the main variant."""
    posteriors, proof = estimates.posteriors[attacks.main], findings[attacks.releases[0]].proof
    rows = []
    for place in headline_parameters(posteriors):
        name, parameter_name = place
        posterior = posteriors[name]
        definition = posterior.definition
        parameter = next(each for each in definition.parameters if each.name == parameter_name)
        p5, p50, p95 = (float(value) for value in posterior.quantile([0.05, 0.5, 0.95], parameter_name))
        influence = estimates.influences[place]
        values: dict[str, Any] = {
            "name": parameter.symbol if parameter_name in SIDES else f"{_short_title(definition)} {parameter.symbol}",
            "p5": p5,
            "p50": p50,
            "p95": p95,
            "proven": proven_of(proof, posterior, parameter_name),
            "half_median": estimates.half_medians.get(place),
            "mean": influence.mean,
            "mean_without_constant": influence.mean_without_constant,
        }
        rows.append(
            HeadlineRow(
                meaning=parameter.meaning,
                definition=name,
                parameter=parameter_name,
                multiplies_odds=not definition.uses_prior,
                floor=floor_of(posterior, parameter_name, priors),
                floor_is_exact=priors.floor.is_exact or not definition.uses_prior,
                floor_level=priors.floor.level if definition.uses_prior else None,
                proof_level=proof_level,
                tail_prior_share=posterior.tail_prior_share(parameter_name),
                warnings=_row_warnings(int(attacks.main_counts.is_constant.sum()), posterior, **values),
                **values,
            )
        )
    return tuple(rows)


def _row_warnings(
    num_constant: int,
    posterior: Posterior,
    *,
    name: str,
    p5: float,
    p50: float,
    p95: float,
    proven: float | None,
    half_median: float | None,
    mean: float,
    mean_without_constant: float,
) -> tuple[str, ...]:
    messages = []
    if proven is not None and proven > p95:
        messages.append(f"{name} lies below what is proven, {number(proven, 1)}: trust the proof")
    if num_constant == posterior.num_nodes:
        messages.append(f"{name} means nothing: the decision about every node is the same for every model")
    elif mean - mean_without_constant > DRIVEN:
        messages.append(
            f"{name} is driven by {num_constant:,} nodes whose decision never varies; without them it is "
            f"{number(mean_without_constant, 1)} on average, not {number(mean, 1)}"
        )
    if half_median is not None and not p5 <= half_median <= p95 and abs(half_median - p50) > MOVED:
        messages.append(
            f"{name} moves with the number of models: with half of them its median is {number(half_median, 1)}, not "
            f"{number(p50, 1)}"
        )
    if posterior.run is not None and not posterior.status.startswith("converged"):
        messages.append(f"{name}: {posterior.status}")
    return tuple(messages)


def stored_headline(summary: Mapping[str, Any]) -> tuple[HeadlineRow, ...]:
    """The headline as a summary has it, which needs none of the code that made it."""
    # Infinite numbers are texts there.
    numbers = ("p5", "p50", "p95", "floor", "proven", "half_median", "mean", "mean_without_constant")
    return tuple(
        HeadlineRow(
            **row
            | {name: None if row[name] is None else float(row[name]) for name in numbers}
            | {"warnings": tuple(row["warnings"])}
        )
        for row in summary["headline"]
    )


def proven_of(proof: Proof | None, posterior: Posterior, parameter: str) -> float | None:
    """What a proof says about a parameter of a definition; None if nothing."""
    if proof is None:
        return None
    if parameter in SIDES and posterior.definition.uses_prior:
        return proof.epsilon_right.proven if parameter == "epsilon_right" else proof.epsilon_left.proven
    is_mp = registry.name_of(DEFINITION, posterior.definition) == "mp"
    return proof.mp.proven if is_mp else None


def _short_title(definition: Definition) -> str:
    name = registry.name_of(DEFINITION, definition)
    return name.upper() if name in ENTRIES[DEFINITION] else name.rpartition(":")[2]


def floor_of(posterior: Posterior, parameter: str, priors: Priors) -> float:
    """What the sampler alone gives away of a parameter: the smallest value that its floor leaves possible."""
    definition, floor = posterior.definition, priors.floor
    if not definition.uses_prior or isinstance(definition, StoredDefinition):
        return posterior.lows[parameter]
    left, right = smallest_values(definition, np.array([floor.left]), np.array([floor.right]))
    if len(definition.parameters) > 1:
        return floor.left if parameter == definition.parameters[0].name else floor.right
    return float(max(left[0], right[0]))


def driving_nodes(estimates: Estimates, num_nodes: int = 5) -> dict[str, list[dict[str, Any]]]:
    """The nodes that move each ε of the headline most, as plain values."""
    return {
        f"{definition} {parameter}": [vars(node) for node in influence.drivers(num_nodes)]
        for (definition, parameter), influence in estimates.influences.items()
    }


# The answer in plain words, what is certain first: verdict, proven, exposure, floor, estimated.


IS_NOT = (
    "The answer is about models trained this way. No released model was looked at; bmpaudit infer looks at one.",
    "What is proven is a lower bound for the worst case: some node, some model. It says nothing about how large ε is "
    "at most. Exposure and estimates are about the attack that was run; a better attack may find more.",
    "That no leakage was found does not prove that there is none. Only a mechanism with a proof can guarantee that.",
    "The interval of an estimated ε is calibrated under the paper's model: ε from its prior, error rates uniform on "
    "the region that ε allows. It is not a confidence statement about a mechanism whose attack behaves otherwise.",
    "A decision about a node that never varies looks like a strong attack to the estimator, and is none.",
)
MANY = 0.01  # share of the members
TELLING = 0.05  # nats: ε ≥ 0.01 is a change of the odds by ×1
PRIOR_SHARE = 0.9  # of a posterior's upper tail from which on it is the prior's


@dataclass(frozen=True)
class Answer:
    """What to tell people, in this order.

    Attributes:
        verdict: One sentence for the reader in a hurry.
        proven: Odds that an adversary provably reaches.
        exposure: How many training nodes can be named from one released model.
        floor: What the sampling alone gives away.
        estimated: The paper's ε; empty where no leakage was found, since it means nothing there.
        warnings: Why not to trust the estimate.
        guaranteed: What the model guarantees by a proof, and the range that is left; empty if it guarantees nothing.
    """

    verdict: str
    proven: str
    exposure: str
    floor: str
    estimated: str
    warnings: tuple[str, ...]
    guaranteed: str = ""

    def in_words_of(self, graph: Graph) -> Answer:
        """The same about rows, if the data are a table."""
        fitting = partial(in_words_of, graph)
        texts: dict[str, Any] = {
            name: tuple(map(fitting, value)) if name == "warnings" else fitting(value)
            for name, value in vars(self).items()
        }
        return Answer(**texts)

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """What stands below the verdict, each with its name."""
        names = ("proven", "guaranteed", "exposure", "floor", "estimated")
        return tuple((name, getattr(self, name)) for name in names if getattr(self, name))


def make_answer(
    findings: ReleaseFindings,
    rows: tuple[HeadlineRow, ...],
    priors: Priors,
    test: PermutationTest,
    method: Method,
    guaranteed: Guaranteed | None = None,
) -> Answer:
    """The answer about the main release; `method` is that of the proof."""
    is_found = is_leakage_found(findings, test)
    return Answer(
        verdict=_verdict(findings, is_found),
        proven=_proven(findings, priors, method),
        exposure=_exposure(findings, is_found),
        floor=_floor(priors),
        estimated=_estimated(rows) if is_found else "",
        warnings=_warnings(rows) if is_found else (),
        guaranteed="" if guaranteed is None else guaranteed.sentence(findings.proof),
    )


def stored_answer(summary: dict[str, Any]) -> Answer:
    """The answer as a summary has it."""
    return Answer(**summary["answer"] | {"warnings": tuple(summary["answer"]["warnings"])})


def is_leakage_found(findings: ReleaseFindings, test: PermutationTest) -> bool:
    """Whether the permutation test found leakage, or the guesses prove it."""
    return test.is_leakage_found or _is_proven(findings.proof)


def _is_proven(proof: Proof | None) -> bool:
    return proof is not None and proof.is_leakage_proven


def _verdict(findings: ReleaseFindings, is_found: bool) -> str:
    if not is_found:
        return (
            "No leakage found: this attack could not tell the training nodes of models trained this way from other "
            "nodes any better than after shuffling who was in which model."
        )
    certain = "That they leak is proven."
    if not _is_proven(findings.proof):
        certain = "The permutation test detects it, but no bound on how much is proven."
    return f"Models trained this way leak who is in their training graph, {_consequence(findings)}. {certain}"


def _consequence(findings: ReleaseFindings) -> str:
    exposure = findings.exposure.exposure
    curve, certainty = exposure.members, f"with {percent(exposure.at_risk)} certainty"
    k = curve.at(exposure.at_risk)
    by_model, sure = curve.correct.mean[k] - curve.by_prior[k], curve.correct.low[k] - curve.by_prior[k]
    more = "" if curve.by_prior[k] < 1 else ", beyond those that the sampling tells"
    if not curve.is_settled[k]:
        if curve.num_models < MIN_MODELS or sure < 1:
            return "though it takes more shadow models to say how many training nodes can be named"
        return f"and {sure:,.0f} or more of a model's training nodes can be named {certainty}{more}"
    if by_model < HARDLY_ANY:
        return f"though hardly any training node can be named {certainty}{more}"
    if by_model < MANY * curve.total:
        return f"and a few training nodes can be named {certainty}{more}"
    return f"and about {percent(by_model / curve.total)} of a model's training nodes can be named {certainty}{more}"


def _exposure(findings: ReleaseFindings, is_found: bool) -> str:
    """What can be named; where nothing leaks, chance is not extrapolated."""
    exposure = findings.exposure.exposure
    curve = exposure.members
    k = curve.at(exposure.at_risk)
    if not is_found and curve.correct.mean[k] - curve.by_prior[k] < HARDLY_ANY:
        beyond = "" if curve.by_prior[k] < 1 else " beyond those that the sampling alone tells"
        return f"Hardly any training node can be named with {percent(exposure.at_risk)} certainty{beyond}."
    return _sentence(exposure.statement())


def _proven(findings: ReleaseFindings, priors: Priors, method: Method) -> str:
    proof = findings.proof
    if proof is None:
        return f"Nothing: {findings.not_proven}."
    beyond = [bound for bound in proof.bounds if _is_telling(bound)]
    if not beyond:
        bound = proof.epsilon_right
        most, least = provable(bound.num_challenged, bound.level, method), max(bound.floor, priors.floor.right)
        if most <= least:
            return (
                f"Nothing beyond what the sampling alone gives away: {bound.num_challenged:,} guesses prove odds of "
                f"{odds(most)} at most, the sampling gives {odds(least)}."
            )
        return "Nothing beyond what the sampling alone gives away."
    text = f"with {confidence(beyond[0].level)} confidence each, an adversary {listed([_bound(b) for b in beyond])}."
    if not proof.is_leakage_proven:
        return f"Nothing beyond what the sampling alone gives away with {percent(SURE)} confidence; {text}"
    return _sentence(text)


def _is_telling(bound: ProvenBound) -> bool:
    """Whether more is proven than the sampling alone gives away, by so much that a reader sees it."""
    return bound.proven is not None and bound.proven >= bound.floor_high + TELLING


def _bound(bound: ProvenBound) -> str:
    assert bound.proven is not None  # noqa: S101 - it is beyond the floor
    what = {
        "epsilon_right": f"reaches odds of at least {odds(bound.proven)} that a node was in the training graph (ε_R",
        "epsilon_left": f"reaches odds of at least {odds(bound.proven)} that a node was not in it (ε_L",
        "mp": f"changes the odds about a node by at least {factor(bound.proven)} (MP ε",
    }[bound.parameter]
    return f"{what} ≥ {number(bound.proven, 2)}; {bound.num_hits:,} of {bound.num_guesses:,} guesses right)"


def _floor(priors: Priors) -> str:
    floor = priors.floor
    least = "at least " if not floor.is_exact else ""
    return (
        f"The sampling alone gives odds of {least}{odds(floor.right)} that some node was in, and of {least}"
        f"{odds(floor.left)} that some node was not."
    )


def _estimated(rows: tuple[HeadlineRow, ...]) -> str:
    parts = [f"{row.name} = {number(row.p50, 1)} ({number(row.p5, 1)} to {number(row.p95, 1)})" for row in rows]
    return f"{', '.join(parts)}: medians and 90 % intervals under the paper's model, from the errors of this attack."


def _warnings(rows: tuple[HeadlineRow, ...]) -> tuple[str, ...]:
    messages = [_sentence(warning) for row in rows for warning in row.warnings]
    of_the_prior = [row.name for row in rows if row.tail_prior_share > PRIOR_SHARE]
    if of_the_prior:
        messages.append(
            f"The upper {'end' if len(of_the_prior) == 1 else 'ends'} of {listed(of_the_prior)} "
            f"{'comes' if len(of_the_prior) == 1 else 'come'} from the prior, not from the data."
        )
    return tuple(messages)


def _sentence(text: str) -> str:
    if text[:1].isascii():  # ε_R stays as it is
        text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


# What a reader must know before trusting an audit.


FEW_MODELS = 3  # of one side, below which the Gaussian attack leaves a node out
CALIBRATED = 0.02  # expected calibration error up to which stated certainties are taken at their word


def cautions(audit: Audit) -> tuple[str, ...]:
    """One sentence each."""
    counts = audit.attacks.main_counts
    messages: list[str] = []
    if audit.guaranteed is not None:
        messages += audit.guaranteed.contradictions(audit.findings)
    if counts.not_auditable:
        fate = "counted as non-members" if counts.is_kept.any() else "left out"
        messages.append(
            f"{count(len(counts.not_auditable), 'node')} could not be audited and "
            f"{'is' if len(counts.not_auditable) == 1 else 'are'} {fate}, such as {counts.not_auditable[0]}."
        )
    fewest = np.minimum(counts.num_in, counts.num_out)
    num_few = int(np.count_nonzero((fewest < FEW_MODELS) & ~counts.is_kept))
    if num_few:
        messages.append(
            f"{count(num_few, 'node')} {'is' if num_few == 1 else 'are'} in the samples of fewer than {FEW_MODELS} "
            f"models, or in all but that many: what is said of {'it' if num_few == 1 else 'them'} rests on what the "
            "attack learnt from other nodes."
        )
    error = audit.main_findings.exposure.reliability.expected_calibration_error
    if error > CALIBRATED:
        messages.append(
            f"Stated certainties are off by {percent(error, 1)} on average (expected calibration error "
            f"{number(error, 3)}): more shadow models would calibrate them better."
        )
    messages += [f"{reason}." for reason in audit.estimates.not_estimated]
    messages = [in_words_of(audit.graph, message) for message in messages]
    return (*messages, *(() if audit.graph.num_edges else (TABLE_NOTE,)))


# How accurate each release is: what a defence costs.


def release_accuracy(plan: AuditPlan, runs: ShadowRuns, release: str) -> ViewAccuracy:
    """Accuracy of what a release gives out of each model, asked with the plan's first query; NaN where unknown."""
    view = f"{plan.views[0].query_name}_{release}"
    unknown = np.full(runs.num_models, np.nan, dtype=np.float32)
    return runs.view_accuracy.get(view, ViewAccuracy(unknown, unknown))


def known_mean(values: Floats32) -> float | None:
    """Mean of the numbers that are known; None if none is."""
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None


# What to do next, derived from what an audit found.


OVERFITTED = 0.05  # by how much training accuracy may exceed held-out accuracy
HELPS = 0.8  # a release helps if it exposes less than this share of what the main one does
SAMPLING_SHARE = 0.5  # of the proven log-odds
# What names fewer nodes in docs/defences.md; more dropout and fewer epochs do not.
_USUAL_REGULARISATION = "more weight decay or early stopping"
_REGULARISATION = {"sklearn": "a simpler model (shallower trees, larger leaves, more neighbours, a stronger penalty)"}


def advice(audit: Audit) -> tuple[str, ...]:
    """Short instructions, the most useful first."""
    is_found = audit.is_leakage_found
    steps = _defences(audit) if is_found else []
    steps += _more_models(audit)
    if is_found:
        steps.append("See who is at risk: bmpaudit nodes DIR.")
    steps.append("Before you release a model, look at that very model: bmpaudit infer DIR --model FILE.")
    return tuple(in_words_of(audit.graph, step) for step in steps)


def _defences(audit: Audit) -> list[str]:
    steps = []
    train, held_out = (
        float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
        for values in (audit.runs.train_accuracy, audit.runs.held_out_accuracy)
    )
    if train - held_out > OVERFITTED:
        steps.append(
            f"The models fit their training nodes better than others ({percent(train)} against {percent(held_out)} "
            f"accuracy): try {_REGULARISATION.get(audit.plan.shadow_plan.engine_name, _USUAL_REGULARISATION)}, and see "
            "what it hides and what it costs (bmpaudit sweep)."
        )
    steps += _better_release(audit)
    proof, floor = audit.main_findings.proof, audit.priors.floor.right
    proven = None if proof is None else proof.epsilon_right.proven
    if proven is not None and 0 < SAMPLING_SHARE * proven < floor < proven:
        steps.append(
            f"Much of it is the sampling's doing ({odds(floor)} without any model): try another sampler or fraction; "
            "bmpaudit priors shows what each gives away."
        )
    if any(map(gives_labels_only, audit.plan.releases)):
        steps.append("Release nothing where the model is not needed.")
    else:
        steps.append("Release only labels where scores are not needed, and nothing where the model is not needed.")
    return steps


def _better_release(audit: Audit) -> list[str]:
    main, *others = (
        (release, part.exposure.exposure.members.correct.mean[part.exposure.exposure.members.at(0.99)])
        for release, part in audit.findings.items()
    )
    better = [(named, release) for release, named in others if named < HELPS * main[1] and main[1] >= 1]
    if not better:
        return []
    named, release = min(better)
    return [
        f"The {release} release exposes {named:.0f} training nodes with 99 % certainty, the {main[0]} one "
        f"{main[1]:.0f}; {_cost(audit, release)}."
    ]


def _cost(audit: Audit, release: str) -> str:
    """What a release costs in accuracy, beside the main one."""
    here, main = (
        known_mean(release_accuracy(audit.plan, audit.runs, name).held_out)
        for name in (release, audit.attacks.releases[0])
    )
    if here is None or main is None:
        return "weigh that against what it costs in accuracy"
    return f"its accuracy on other nodes is {percent(here, 1)}, against {percent(main, 1)}"


def _more(shadows: int) -> str:
    """How to add models without spoiling what is proven."""
    return f"try --shadows {shadows} --proof-method prequential"


def _more_models(audit: Audit) -> list[str]:
    main = audit.main_findings
    curve, num_models = main.exposure.exposure.members, audit.runs.num_models
    k = curve.at(0.99)
    if not curve.is_settled[k] and (audit.is_leakage_found or curve.num_models < MIN_MODELS):
        needed = int(curve.models_needed[k])
        return [f"{count(num_models, 'shadow model')} are too few to settle the exposure: {_more(needed)}."]
    if not audit.is_leakage_found:
        return [f"More shadow models find smaller leaks: {_more(2 * num_models)}."]
    bound = None if main.proof is None else main.proof.epsilon_right
    if bound is None or bound.proven is None or bound.num_hits < bound.num_challenged:
        return []
    more = math.floor(bound.proven + 1.0)
    needed = models_to_prove_more(more, bound.level, "prequential")
    return [f"Every guess was right, so more models prove more: --until-proven {more} takes about {needed:,} of them."]


# The audit in one JSON object (docs/audit-folder.md).


FORMAT = 3


def graph_sizes(graph: Graph) -> dict[str, int]:
    """The four numbers that say how large a graph is."""
    return {name: getattr(graph, name) for name in ("num_nodes", "num_edges", "num_features", "num_classes")}


def summarise(audit: Audit) -> dict[str, Any]:
    """Everything of interest as plain values."""
    attacks, estimates, graph = audit.attacks, audit.estimates, audit.graph
    test, counts, leakage = attacks.permutation_test, attacks.main_counts, estimates.leakage
    return plain(
        {
            "format": FORMAT,
            "bmpaudit": version("bmpaudit"),
            "fingerprint": fingerprint(audit.plan, graph.content_hash, models_hash(audit.runs, audit.priors)),
            "title": audit.title,
            "verdict": audit.verdict,
            "is_leakage_found": audit.is_leakage_found,
            "answer": asdict(audit.answer),
            "next": advice(audit),
            "cautions": [*audit.notes, *cautions(audit)],
            "is_not": IS_NOT,
            "guarantee": None if audit.guaranteed is None else audit.guaranteed.to_plain(),
            "releases": {release: _release(audit, release) for release in attacks.releases},
            "headline": [asdict(row) for row in audit.headline],
            "graph": {"source": audit.source, "content_hash": graph.content_hash, **graph_sizes(graph)},
            "plan": plan_table(audit.plan.without_gate, audit.source),
            "priors": {"num_draws": audit.priors.num_draws},
            "shadow_models": {
                "trained": audit.runs.num_models,
                "failed": list(audit.runs.failed),
                "train_accuracy": known_mean(audit.runs.train_accuracy),
                "held_out_accuracy": known_mean(audit.runs.held_out_accuracy),
            },
            "nodes": {
                "audited": counts.num_nodes,
                "not_auditable": len(counts.not_auditable),
                "constant_decision": int(counts.is_constant.sum()),
                "level": leakage.level,
                "most_exposed": ranked_nodes(audit.nodes)["node"].head(20).tolist(),
            },
            "permutation_test": {
                "is_leakage_found": test.is_leakage_found,
                "p_value": test.p_value,
                "statistic": test.statistic,
                "null_statistics": test.null_statistics,
            },
            "variants": {variant.name: _variant(audit, variant.name) for variant in attacks.variants},
            "drivers": driving_nodes(estimates),
            "notes": list(audit.notes),
            "timings": audit.timings,
        }
    )


def _release(audit: Audit, release: str) -> dict[str, Any]:
    findings, variant = audit.findings[release], audit.attacks.strongest(release)
    figures = audit.attacks.performance[variant.name]
    accuracy = release_accuracy(audit.plan, audit.runs, release)
    return {
        "attack": registry.label(ATTACK, attack_on(audit.plan, release)),
        "queries": list(findings.queries),
        "variant": variant.name,
        "auc": figures.auc,
        "tpr_at_fpr": figures.tpr_at_fpr,
        "train_accuracy": known_mean(accuracy.train),
        "held_out_accuracy": known_mean(accuracy.held_out),
        "proof": None if findings.proof is None else findings.proof.to_plain(),
        "not_proven": findings.not_proven,
        "exposure": findings.exposure.to_plain(),
    }


def _variant(audit: Audit, name: str) -> dict[str, Any]:
    counts, figures = audit.attacks.counts[name], audit.attacks.performance[name]
    return {
        "errors": {
            "false_positives": int(counts.false_positives.sum()),
            "num_out": int(counts.num_out.sum()),
            "false_negatives": int(counts.false_negatives.sum()),
            "num_in": int(counts.num_in.sum()),
        },
        "accuracy": figures.accuracy,
        "auc": figures.auc,
        "tpr_at_fpr": figures.tpr_at_fpr,
        "posteriors": {
            definition: _without_proof(posterior.summary()) | _of_parameters(audit, posterior)
            for definition, posterior in audit.estimates.posteriors[name].items()
        },
    }


def _without_proof(value: Any) -> Any:
    """These errors are Algorithm 1's, which prove nothing."""
    if not isinstance(value, dict):
        return value
    return {name: _without_proof(part) for name, part in value.items() if name != "proven_if_split"}


def _of_parameters(audit: Audit, posterior: Posterior) -> dict[str, dict[str, Any]]:
    parameters = posterior.definition.parameters
    return {
        "symbols": {each.name: each.symbol for each in parameters},
        "floors": {each.name: floor_of(posterior, each.name, audit.priors) for each in parameters},
    }


# The JSON Schema of summary.json, as data.


def summary_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `summary.json`, and of `Audit.summary`.

    It ships as `bmpaudit/auditing/summary_schema.json`.

    >>> summary_schema()["title"]
    'summary.json of bmpaudit'
    """
    text = files("bmpaudit.auditing").joinpath("summary_schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
