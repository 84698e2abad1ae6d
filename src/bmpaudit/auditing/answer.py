"""What an audit found, in words and figures: from what its stages left to the one result that everything shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit import registry
from bmpaudit.auditing.context import attack_on, fingerprint, models_hash
from bmpaudit.auditing.nodes import ranked_nodes
from bmpaudit.auditing.result import (
    FORMAT,
    AnswerResult,
    AuditResult,
    BoundResult,
    DriverResult,
    EpsilonResult,
    ErrorTotals,
    ExposureResult,
    GraphResult,
    GuaranteeResult,
    ModelsResult,
    NamedResult,
    NodesResult,
    Parameter,
    ParameterResult,
    PosteriorResult,
    PriorsResult,
    ProofResult,
    ReleaseResult,
    ReliabilityResult,
    TestResult,
    VariantResult,
)
from bmpaudit.auditing.stages import SIDES, headline_parameters
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import StoredDefinition, smallest_values
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Definition
from bmpaudit.io.codec import normal
from bmpaudit.plan import AuditPlan, plan_table
from bmpaudit.proof import ExposureCurve, Proof, ProvenBound, ReleaseExposure, models_to_prove_more, provable
from bmpaudit.proof.exposure import HARDLY_ANY, MIN_MODELS
from bmpaudit.proof.prove import LEAKAGE_LEVEL
from bmpaudit.registry import ATTACK, DEFINITION, ENTRIES
from bmpaudit.releases import gives_labels_only
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.runs import ViewAccuracy
from bmpaudit.util.values import Floats32
from bmpaudit.util.words import TABLE_WORDS, confidence, count, factor, in_other_words, listed, number, odds, percent

if TYPE_CHECKING:
    from bmpaudit.auditing.finished import Audit

MAX_SHIFT = 0.1  # nats that the median may move by without a warning
MAX_DRIVEN = 0.5  # nats by which nodes of constant decision may raise the mean before a warning is due
PRIOR_SHARE = 0.9  # of a posterior's upper tail from which on it is the prior's
MANY = 0.01  # share of the members
FEW_MODELS = 3  # of one side, below which the Gaussian attack leaves a node out
CALIBRATED = 0.02  # expected calibration error up to which stated certainties are taken at their word
OVERFITTED = 0.05  # by how much training accuracy may exceed held-out accuracy
HELPS = 0.8  # a release helps if it exposes less than this share of what the main one does
SAMPLING_SHARE = 0.5  # of the proven log-odds

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


def release_accuracy(plan: AuditPlan, runs: ShadowRuns, release: str) -> ViewAccuracy:
    """Accuracy of what a release gives out of each model, asked with the plan's first query; NaN where unknown."""
    view = f"{plan.views[0].query_name}_{release}"
    unknown = np.full(runs.num_models, np.nan, dtype=np.float32)
    return runs.view_accuracy.get(view, ViewAccuracy(unknown, unknown))


def known_mean(values: Floats32) -> float | None:
    """Mean of the numbers that are known; None if none is."""
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else None


# The result, part by part


def make_result(audit: Audit) -> AuditResult:
    """Everything of interest that the stages of an audit found out."""
    attacks, estimates, graph, plan, runs = audit.attacks, audit.estimates, audit.graph, audit.plan, audit.runs
    test, counts = attacks.permutation_test, attacks.main_counts
    releases = {release: _release(audit, release) for release in attacks.releases}
    main = releases[attacks.releases[0]]
    is_found = test.is_leakage_found or main.is_leakage_proven
    headline = _headline(audit, main)
    floor = audit.priors.floor
    priors = PriorsResult(audit.priors.num_draws, floor.right, floor.left, None if floor.is_exact else floor.level)
    models = ModelsResult(
        trained=runs.num_models,
        failed=list(runs.failed),
        train_accuracy=known_mean(runs.train_accuracy),
        held_out_accuracy=known_mean(runs.held_out_accuracy),
    )
    promised = audit.guaranteed
    limits: dict[str, Any] = {} if promised is None else {**asdict(promised.guarantee), **promised.limits}
    sizes = {name: getattr(graph, name) for name in ("num_nodes", "num_edges", "num_features", "num_classes")}

    def fitting(sentences: Sequence[str]) -> list[str]:
        return [in_words_of(graph, sentence) for sentence in sentences]

    return normal(
        AuditResult(
            format=FORMAT,
            bmpaudit=version("bmpaudit"),
            fingerprint=fingerprint(plan, graph.content_hash, models_hash(runs, audit.priors)),
            title=audit.title,
            is_leakage_found=is_found,
            answer=AnswerResult(
                verdict=in_words_of(graph, _verdict(main, is_found)),
                proven=in_words_of(graph, _proven(main, priors, plan)),
                guaranteed=in_words_of(graph, "" if promised is None else promised.sentence(audit.main_findings.proof)),
                exposure=in_words_of(graph, _exposed(main.exposure, is_found)),
                floor=in_words_of(graph, _floor(priors)),
                estimated=_estimated(headline) if is_found else "",
                warnings=fitting(_warnings(headline) if is_found else []),
            ),
            next=fitting(_advice(plan, is_found, models, releases, priors)),
            cautions=[*audit.notes, *fitting(_cautions(audit, main)), *([] if graph.num_edges else [TABLE_NOTE])],
            is_not=fitting(IS_NOT),
            guarantee=GuaranteeResult(**limits) if limits else None,
            releases=releases,
            headline=headline,
            graph=GraphResult(audit.graph_name, audit.source, graph.content_hash, **sizes),
            plan=plan_table(plan.without_gate, audit.source),
            proof_level=plan.proof_level,
            proof_method=plan.proof_method,
            priors=priors,
            shadow_models=models,
            nodes=NodesResult(
                audited=counts.num_nodes,
                not_auditable=len(counts.not_auditable),
                constant_decision=int(counts.is_constant.sum()),
                level=estimates.leakage.level,
                most_exposed=ranked_nodes(audit.nodes)["node"].head(20).tolist(),
            ),
            permutation_test=TestResult(
                test.is_leakage_found, test.p_value, test.statistic, list(test.null_statistics)
            ),
            variants={variant.name: _variant(audit, variant.name, variant.label) for variant in attacks.variants},
            main_variant=attacks.main,
            drivers={
                f"{definition} {parameter}": [DriverResult(**vars(node)) for node in influence.drivers(5)]
                for (definition, parameter), influence in estimates.influences.items()
            },
            notes=list(audit.notes),
            timings=audit.timings,
        )
    )


def _release(audit: Audit, release: str) -> ReleaseResult:
    findings, variant = audit.findings[release], audit.attacks.strongest(release)
    figures = audit.attacks.performance[variant.name]
    accuracy = release_accuracy(audit.plan, audit.runs, release)
    return ReleaseResult(
        attack=registry.label(ATTACK, attack_on(audit.plan, release)),
        queries=list(findings.queries),
        variant=variant.name,
        auc=figures.auc,
        tpr_at_fpr=_by_text(figures.tpr_at_fpr),
        train_accuracy=known_mean(accuracy.train),
        held_out_accuracy=known_mean(accuracy.held_out),
        proof=None if findings.proof is None else _proof(findings.proof),
        not_proven=findings.not_proven,
        exposure=_exposure(findings.exposure),
    )


def _by_text(rates: Mapping[float, float]) -> dict[str, float]:
    return {f"{rate:g}": value for rate, value in rates.items()}


def _proof(proof: Proof) -> ProofResult:
    bounds: dict[str, Any] = {bound.parameter: _bound(bound, bound.parameter in proof.shown) for bound in proof.bounds}
    return ProofResult(is_leakage_proven=proof.is_leakage_proven, **bounds)


def _bound(bound: ProvenBound, is_shown: bool) -> BoundResult:
    names = ("proven", "floor", "level", "method", "num_fitting", "num_challenged", "num_guesses", "num_hits")
    values: dict[str, Any] = {name: getattr(bound, name) for name in names}
    return BoundResult(is_shown=is_shown, source=bound.choice.source, **values)


def _exposure(of_release: ReleaseExposure) -> ExposureResult:
    exposure, reliability = of_release.exposure, of_release.reliability
    return ExposureResult(
        at_risk=exposure.at_risk,
        num_models=exposure.members.num_models,
        num_fitting=of_release.num_fitting,
        num_nodes=of_release.num_nodes,
        num_left_out=of_release.num_left_out,
        level=exposure.members.level,
        total_members=exposure.members.total,
        total_non_members=exposure.non_members.total,
        members=_named(exposure.members),
        non_members=_named(exposure.non_members),
        mean_auc=float(np.nanmean(of_release.models.auc)),
        reliability=ReliabilityResult(
            edges=list(reliability.edges),
            num_challenges=list(reliability.num_challenges),
            stated=list(reliability.stated),
            observed=list(reliability.observed),
            expected_calibration_error=reliability.expected_calibration_error,
        ),
        statement=exposure.statement(),
    )


def _named(curve: ExposureCurve) -> list[NamedResult]:
    columns = {
        "precision": curve.precision,
        "correct": curve.correct.mean,
        "correct_low": curve.correct.low,
        "correct_high": curve.reach.high,
        "correct_high_so_far": curve.correct.high,
        "named": curve.named.mean,
        "named_low": curve.named.low,
        "named_high": curve.named.high,
        "named_high_with_more": curve.interval.high,
        "share_correct": curve.share_correct.mean,
        "still_to_come": curve.still_to_come,
        "by_prior": curve.by_prior,
        "is_settled": curve.is_settled,
        "models_needed": curve.models_needed,
    }
    return [NamedResult(**{name: column[k] for name, column in columns.items()}) for k in range(len(curve.precision))]


def _headline(audit: Audit, main: ReleaseResult) -> list[EpsilonResult]:
    """The ε of the main variant, and why not to trust them."""
    attacks, estimates, floor = audit.attacks, audit.estimates, audit.priors.floor
    posteriors = estimates.posteriors[attacks.main]
    rows = []
    for place in headline_parameters(posteriors):
        name, parameter_name = place
        posterior = posteriors[name]
        definition = posterior.definition
        parameter = next(each for each in definition.parameters if each.name == parameter_name)
        p5, p50, p95 = (float(value) for value in posterior.quantile([0.05, 0.5, 0.95], parameter_name))
        influence = estimates.influences[place]
        row = EpsilonResult(
            name=parameter.symbol if parameter_name in SIDES else f"{_short_title(definition)} {parameter.symbol}",
            meaning=in_words_of(audit.graph, parameter.meaning),
            definition=name,
            parameter=parameter_name,
            multiplies_odds=not definition.uses_prior,
            p5=p5,
            p50=p50,
            p95=p95,
            mean=influence.mean,
            mean_without_constant=influence.mean_without_constant,
            half_median=estimates.half_medians.get(place),
            tail_prior_share=posterior.tail_prior_share(parameter_name),
            floor=floor_of(posterior, parameter_name, audit.priors),
            floor_is_exact=floor.is_exact or not definition.uses_prior,
            floor_level=floor.level if definition.uses_prior else None,
            proven=_proven_of(main, posterior, parameter_name),
            proof_level=audit.plan.proof_level,
            warnings=[],
        )
        row.warnings.extend(_row_warnings(row, int(attacks.main_counts.is_constant.sum()), posterior))
        rows.append(row)
    return rows


def _row_warnings(row: EpsilonResult, num_constant: int, posterior: Posterior) -> list[str]:
    messages = []
    if row.proven is not None and row.proven > row.p95:
        messages.append(f"{row.name} lies below what is proven, {number(row.proven, 1)}: trust the proof")
    if num_constant == posterior.num_nodes:
        messages.append(f"{row.name} means nothing: the decision about every node is the same for every model")
    elif row.mean - row.mean_without_constant > MAX_DRIVEN:
        messages.append(
            f"{row.name} is driven by {num_constant:,} nodes whose decision never varies; without them it is "
            f"{number(row.mean_without_constant, 1)} on average, not {number(row.mean, 1)}"
        )
    half = row.half_median
    if half is not None and not row.p5 <= half <= row.p95 and abs(half - row.p50) > MAX_SHIFT:
        messages.append(
            f"{row.name} moves with the number of models: with half of them its median is {number(half, 1)}, not "
            f"{number(row.p50, 1)}"
        )
    if posterior.run is not None and not posterior.status.startswith("converged"):
        messages.append(f"{row.name}: {posterior.status}")
    return messages


def _proven_of(release: ReleaseResult, posterior: Posterior, parameter: str) -> float | None:
    """What is shown as proven about a parameter of a definition."""
    sides: dict[str, Parameter] = {"epsilon_right": "epsilon_right", "epsilon_left": "epsilon_left"}
    if parameter in sides and posterior.definition.uses_prior:
        return release.shown(sides[parameter])
    return release.shown("mp") if registry.name_of(DEFINITION, posterior.definition) == "mp" else None


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


def _variant(audit: Audit, name: str, label: str) -> VariantResult:
    counts, figures = audit.attacks.counts[name], audit.attacks.performance[name]
    totals = ("false_positives", "num_out", "false_negatives", "num_in")
    return VariantResult(
        label=label,
        errors=ErrorTotals(**{each: int(getattr(counts, each).sum()) for each in totals}),
        accuracy=figures.accuracy,
        auc=figures.auc,
        tpr_at_fpr=_by_text(figures.tpr_at_fpr),
        posteriors={
            definition: _posterior(posterior, audit.priors)
            for definition, posterior in audit.estimates.posteriors[name].items()
        },
    )


def _posterior(posterior: Posterior, priors: Priors) -> PosteriorResult:
    summary = posterior.summary()
    symbols = {each.name: each.symbol for each in posterior.definition.parameters}
    parameters = {
        name: ParameterResult(
            symbol=symbols.get(name, name),
            floor=floor_of(posterior, name, priors) if name in symbols else None,
            tail_prior_share=summary[name].get("tail_prior_share"),
            **{key: summary[name][key] for key in ("p5", "p50", "p95", "mean")},
        )
        for name in posterior.marginals
    }
    names = ("method", "status", "num_nodes", "num_left_out", "num_constant", "prior", "strength", "strength_prior")
    return PosteriorResult(parameters=parameters, **{name: summary[name] for name in names})


# The answer in plain words, what is certain first


IS_NOT = (
    "The answer is about models trained this way. No released model was looked at; bmpaudit infer looks at one.",
    "What is proven is a lower bound for the worst case: some node, some model. It says nothing about how large ε is "
    "at most. Exposure and estimates are about the attack that was run; a better attack may find more.",
    "That no leakage was found does not prove that there is none. Only a mechanism with a proof can guarantee that.",
    "The interval of an estimated ε is calibrated under the paper's model: ε from its prior, error rates uniform on "
    "the region that ε allows. It is not a confidence statement about a mechanism whose attack behaves otherwise.",
    "A decision about a node that never varies looks like a strong attack to the estimator, and is none.",
)


def _verdict(release: ReleaseResult, is_found: bool) -> str:
    if not is_found:
        return (
            "No leakage found: this attack could not tell the training nodes of models trained this way from other "
            "nodes any better than after shuffling who was in which model."
        )
    certain = "That they leak is proven."
    if not release.is_leakage_proven:
        certain = "The permutation test detects it, but no bound on how much is proven."
    return f"Models trained this way leak who is in their training graph, {_consequence(release.exposure)}. {certain}"


def _consequence(exposure: ExposureResult) -> str:
    row, certainty = exposure.named(exposure.at_risk), f"with {percent(exposure.at_risk)} certainty"
    by_model, sure = row.correct - row.by_prior, row.correct_low - row.by_prior
    more = "" if row.by_prior < 1 else ", beyond those that the sampling tells"
    if not row.is_settled:
        if exposure.num_models < MIN_MODELS or sure < 1:
            return "though it takes more shadow models to say how many training nodes can be named"
        return f"and {sure:,.0f} or more of a model's training nodes can be named {certainty}{more}"
    if by_model < HARDLY_ANY:
        return f"though hardly any training node can be named {certainty}{more}"
    if by_model < MANY * exposure.total_members:
        return f"and a few training nodes can be named {certainty}{more}"
    share = percent(by_model / exposure.total_members)
    return f"and about {share} of a model's training nodes can be named {certainty}{more}"


def _exposed(exposure: ExposureResult, is_found: bool) -> str:
    """What can be named; where nothing leaks, chance is not extrapolated."""
    row = exposure.named(exposure.at_risk)
    if not is_found and row.correct - row.by_prior < HARDLY_ANY:
        beyond = "" if row.by_prior < 1 else " beyond those that the sampling alone tells"
        return f"Hardly any training node can be named with {percent(exposure.at_risk)} certainty{beyond}."
    return _sentence(exposure.statement)


def _proven(release: ReleaseResult, priors: PriorsResult, plan: AuditPlan) -> str:
    proof = release.proof
    if proof is None:
        return f"Nothing: {release.not_proven}."
    shown = [_bound_in_words(name, bound) for name, bound in proof.bounds.items() if bound.is_shown]
    if shown:
        level = confidence(proof.epsilon_right.level)
        return _sentence(f"with {level} confidence each, an adversary {listed(shown)}.")
    bound = proof.epsilon_right
    most, least = provable(bound.num_challenged, bound.level, plan.proof_method), priors.floor_right
    if most <= least:
        return (
            f"Nothing beyond what the sampling alone gives away: {bound.num_challenged:,} guesses prove odds of "
            f"{odds(most)} at most, the sampling gives {odds(least)}."
        )
    sure = "" if proof.is_leakage_proven else f" with {percent(LEAKAGE_LEVEL)} confidence"
    return f"Nothing beyond what the sampling alone gives away{sure}."


def _bound_in_words(parameter: Parameter, bound: BoundResult) -> str:
    assert bound.proven is not None  # noqa: S101 - it is shown
    what = {
        "epsilon_right": f"reaches odds of at least {odds(bound.proven)} that a node was in the training graph (ε_R",
        "epsilon_left": f"reaches odds of at least {odds(bound.proven)} that a node was not in it (ε_L",
        "mp": f"changes the odds about a node by at least {factor(bound.proven)} (MP ε",
    }[parameter]
    return f"{what} ≥ {number(bound.proven, 2)}; {bound.num_hits:,} of {bound.num_guesses:,} guesses right)"


def _floor(priors: PriorsResult) -> str:
    least = "" if priors.level is None else "at least "
    return (
        f"The sampling alone gives odds of {least}{odds(priors.floor_right)} that some node was in, and of {least}"
        f"{odds(priors.floor_left)} that some node was not."
    )


def _estimated(rows: Sequence[EpsilonResult]) -> str:
    parts = [f"{row.name} = {number(row.p50, 1)} ({number(row.p5, 1)} to {number(row.p95, 1)})" for row in rows]
    return f"{', '.join(parts)}: medians and 90 % intervals under the paper's model, from the errors of this attack."


def _warnings(rows: Sequence[EpsilonResult]) -> list[str]:
    messages = [_sentence(warning) for row in rows for warning in row.warnings]
    of_the_prior = [row.name for row in rows if row.tail_prior_share > PRIOR_SHARE]
    if of_the_prior:
        end, come = ("end", "comes") if len(of_the_prior) == 1 else ("ends", "come")
        messages.append(f"The upper {end} of {listed(of_the_prior)} {come} from the prior, not from the data.")
    return messages


def _sentence(text: str) -> str:
    if text[:1].isascii():  # ε_R stays as it is
        text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


# What a reader must know before trusting an audit, and what to do next


def _cautions(audit: Audit, main: ReleaseResult) -> list[str]:
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
        are, them = ("is", "it") if num_few == 1 else ("are", "them")
        messages.append(
            f"{count(num_few, 'node')} {are} in the samples of fewer than {FEW_MODELS} models, or in all but that "
            f"many: what is said of {them} rests on what the attack learnt from other nodes."
        )
    error = main.exposure.reliability.expected_calibration_error
    if error > CALIBRATED:
        messages.append(
            f"Stated certainties are off by {percent(error, 1)} on average (expected calibration error "
            f"{number(error, 3)}): more shadow models would calibrate them better."
        )
    return messages + [f"{reason}." for reason in audit.estimates.not_estimated]


def _advice(
    plan: AuditPlan,
    is_found: bool,
    models: ModelsResult,
    releases: Mapping[str, ReleaseResult],
    priors: PriorsResult,
) -> list[str]:
    """Short instructions, the most useful first."""
    main = next(iter(releases.values()))
    steps = [*_defences(plan, models, releases, priors)] if is_found else []
    steps += _more_models(main, is_found, models.trained)
    if is_found:
        steps.append("See who is at risk: bmpaudit nodes DIR.")
    return [*steps, "Before you release a model, look at that very model: bmpaudit infer DIR --model FILE."]


def _defences(
    plan: AuditPlan, models: ModelsResult, releases: Mapping[str, ReleaseResult], priors: PriorsResult
) -> list[str]:
    steps = []
    train, held_out = models.train_accuracy, models.held_out_accuracy
    if train is not None and held_out is not None and train - held_out > OVERFITTED:
        # What names fewer nodes in docs/defences.md; more dropout and fewer epochs do not.
        remedy = "more weight decay or early stopping"
        if plan.shadow_plan.engine_name == "sklearn":
            remedy = "a simpler model (shallower trees, larger leaves, more neighbours, a stronger penalty)"
        steps.append(
            f"The models fit their training nodes better than others ({percent(train)} against {percent(held_out)} "
            f"accuracy): try {remedy}, and see what it hides and what it costs (bmpaudit sweep)."
        )
    steps += _better_release(releases)
    proof = next(iter(releases.values())).proof
    proven, floor = None if proof is None else proof.epsilon_right.proven, priors.floor_right
    if proven is not None and 0 < SAMPLING_SHARE * proven < floor < proven:
        steps.append(
            f"Much of it is the sampling's doing ({odds(floor)} without any model): try another sampler or fraction; "
            "bmpaudit priors shows what each gives away."
        )
    if any(map(gives_labels_only, plan.releases)):
        steps.append("Release nothing where the model is not needed.")
    else:
        steps.append("Release only labels where scores are not needed, and nothing where the model is not needed.")
    return steps


def _better_release(releases: Mapping[str, ReleaseResult]) -> list[str]:
    """The release that exposes least, if it helps, and what it costs in accuracy."""
    (main_name, main), *others = releases.items()
    most = main.exposure.named(0.99).correct
    named, name = min(((each.exposure.named(0.99).correct, name) for name, each in others), default=(math.inf, ""))
    if most < 1 or named >= HELPS * most:
        return []
    here, there = releases[name].held_out_accuracy, main.held_out_accuracy
    cost = "weigh that against what it costs in accuracy"
    if here is not None and there is not None:
        cost = f"its accuracy on other nodes is {percent(here, 1)}, against {percent(there, 1)}"
    return [
        f"The {name} release exposes {named:.0f} training nodes with 99 % certainty, the {main_name} one {most:.0f}; "
        f"{cost}."
    ]


def _more_models(main: ReleaseResult, is_found: bool, num_models: int) -> list[str]:
    row = main.exposure.named(0.99)
    more = "try --shadows {} --proof-method prequential"  # adds models without spoiling what is proven
    if not row.is_settled and (is_found or main.exposure.num_models < MIN_MODELS):
        too_few = f"{count(num_models, 'shadow model')} are too few to settle the exposure"
        return [f"{too_few}: {more.format(row.models_needed)}."]
    if not is_found:
        return [f"More shadow models find smaller leaks: {more.format(2 * num_models)}."]
    bound = None if main.proof is None else main.proof.epsilon_right
    if bound is None or bound.proven is None or bound.num_hits < bound.num_challenged:
        return []
    epsilon = math.floor(bound.proven + 1.0)
    needed = models_to_prove_more(epsilon, bound.level, "prequential")
    return [
        f"Every guess was right, so more models prove more: --until-proven {epsilon} takes about {needed:,} of them."
    ]
