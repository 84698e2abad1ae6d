"""What an audit found, in words and figures: from what its stages left to the one result that everything shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from bmpaudit import registry
from bmpaudit.attack import PermutationTest
from bmpaudit.auditing import result as tree
from bmpaudit.auditing.context import Variant, attack_on, fingerprint, models_hash
from bmpaudit.auditing.nodes import ranked_nodes
from bmpaudit.auditing.stages import SIDES, AccessFindings, bound_level, headline_parameters
from bmpaudit.estimation import Posterior
from bmpaudit.estimation.definitions import StoredDefinition, smallest_values
from bmpaudit.graph import Graph
from bmpaudit.io.codec import filled, normal
from bmpaudit.plan import AuditPlan, plan_table
from bmpaudit.proof import (
    Certificate,
    CertifiedExposure,
    ExposureCurve,
    Proof,
    ReleaseExposure,
    models_to_prove_more,
    provable,
)
from bmpaudit.proof.exposure import LEVEL_OF_GATES
from bmpaudit.proof.guesses import PriorOdds
from bmpaudit.proof.prove import LEAKAGE_LEVEL, provable_about_each
from bmpaudit.releases import QUERIES, SCORES, WEIGHTS
from bmpaudit.samplers import Priors
from bmpaudit.shadow import ShadowRuns
from bmpaudit.shadow.runs import ViewAccuracy
from bmpaudit.util import words
from bmpaudit.util.matrices import count_in
from bmpaudit.util.values import Flags, Floats32
from bmpaudit.util.words import MISSING, confidence, count, interval, listed, number, odds, percent

if TYPE_CHECKING:
    from bmpaudit.auditing.finished import Audit

MAX_SHIFT = 0.1  # nats that the median may move by without a warning
MAX_DRIVEN = 0.5  # nats by which nodes of constant decision may raise the mean before a warning is due
PRIOR_SHARE = 0.9  # of a posterior's upper tail from which on it is the prior's
HARDLY_BELOW_1 = 0.995  # an AUC that is shown as 1.00
STRONG = ((0.99, 0.01), (0.95, 0.1))  # certainties, and the share of the training nodes that has to be named
FEW_MODELS = 3  # of one side, below which the Gaussian attack leaves a node out
CALIBRATED = 0.02  # expected calibration error up to which stated certainties are taken at their word
OVERFITTED = 0.05  # by how much training accuracy may exceed held-out accuracy
HELPS = 0.8  # a release helps if it exposes less than this share of what the main one does
SAMPLING_SHARE = 0.5  # of the proven log-odds

SEEN = {
    "labels": "the labels that one released model gives",
    "scores": "one released model",
    "queries": "the answers of one released model",
    "weights": "the weights of one released model",
}
GIVEN = {"labels": "labels", "scores": "scores", "queries": "answers to any query", "weights": "the weights"}
MORE_ACCESS = (
    "This is about scores. If you give out the model itself, or answer any query, audit that: --release-as weights, or "
    "queries."
)
TABLE_NOTE = "The data are a table without edges: where pictures and files say node, they mean a row."


def words_of(graph: Graph) -> Mapping[str, str]:
    """What the usual words are replaced by: none if there are edges."""
    return {} if graph.num_edges else words.TABLE_WORDS


def in_words_of(graph: Graph, text: str) -> str:
    """A sentence as it fits the data: about nodes, or about rows if there are no edges.

    >>> from bmpaudit.graph import Graph
    >>> table = Graph.from_table([[0.5], [0.1]], [0, 1])
    >>> in_words_of(table, "2 nodes of the training graph: bmpaudit nodes DIR")
    '2 rows of the training data: bmpaudit nodes DIR'
    """
    return words.in_other_words(text, words_of(graph))


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


def make_result(audit: Audit) -> tree.AuditResult:
    """Everything of interest that the stages of an audit found out."""
    attacks, estimates, graph, plan, runs = audit.attacks, audit.estimates, audit.graph, audit.plan, audit.runs
    counts, prob, floor, promised = attacks.main_counts, audit.priors.prob, audit.priors.floor, audit.guaranteed
    is_open = (prob > 0) & (prob < 1)
    num_in = count_in(runs.memberships)[is_open]
    releases = {release: _release(audit, release, is_open) for release in attacks.releases}
    main = releases[attacks.releases[0]]
    tested = _test(attacks.permutation_test, is_open)
    level = leakage_level(tested, main)
    is_found = level != "none"
    headline = _headline(audit, main)
    priors = tree.PriorsResult(audit.priors.num_draws, floor.right, floor.left, floor.level)
    models = tree.ModelsResult(
        trained=runs.num_models,
        failed=list(runs.failed),
        train_accuracy=known_mean(runs.train_accuracy),
        held_out_accuracy=known_mean(runs.held_out_accuracy),
    )
    fitting = partial(in_words_of, graph)
    return normal(
        tree.AuditResult(
            format=tree.FORMAT,
            bmpaudit=version("bmpaudit"),
            fingerprint=fingerprint(plan, graph.content_hash, models_hash(runs, audit.priors)),
            title=audit.title,
            is_leakage_found=is_found,
            answer=_answer(audit, level, tested, main, priors, headline),
            next=list(map(fitting, _advice(plan, is_found, models, releases, priors))),
            cautions=[*audit.notes, *map(fitting, _cautions(audit, main)), *([] if graph.num_edges else [TABLE_NOTE])],
            is_not=list(map(fitting, IS_NOT)),
            guarantee=None if promised is None else filled(tree.GuaranteeResult, promised.guarantee, **promised.limits),
            releases=releases,
            headline=headline,
            graph=filled(tree.GraphResult, graph, name=audit.graph_name, source=audit.source),
            plan=plan_table(plan.without_gate, audit.source),
            proof_level=plan.proof_level,
            proof_method=plan.proof_method,
            priors=priors,
            shadow_models=models,
            nodes=tree.NodesResult(
                audited=counts.num_nodes,
                not_auditable=len(counts.not_auditable),
                constant_decision=int(counts.is_constant.sum()),
                level=estimates.leakage.level,
                most_exposed=ranked_nodes(audit.nodes)["node"].head(20).tolist(),
                rarest_prior=float(prob[is_open].min()),
                commonest_prior=float(prob[is_open].max()),
                fewest_in=int(num_in.min()),
                fewest_out=int(runs.num_models - num_in.max()),
            ),
            permutation_test=tested,
            variants={variant.name: _variant(audit, variant) for variant in attacks.variants},
            main_variant=attacks.main,
            drivers={
                f"{definition} {parameter}": [tree.DriverResult(**vars(node)) for node in influence.drivers(5)]
                for (definition, parameter), influence in estimates.influences.items()
            },
            notes=list(audit.notes),
            timings=audit.timings,
        )
    )


def _release(audit: Audit, release: str, is_open: Flags) -> tree.ReleaseResult:
    variant, accuracy = audit.attacks.strongest(release), release_accuracy(audit.plan, audit.runs, release)
    ladder = {
        access: _access(
            findings, audit.priors, _provable_about_any(audit, bound_level(audit.plan, release, access), is_open)
        )
        for access, findings in audit.findings.ladders[release].items()
    }
    access, released = ladder.popitem()
    return filled(
        tree.ReleaseResult,
        released,
        audit.attacks.performance[variant.name],
        access=access,
        lesser=ladder,
        attack=registry.label(registry.ATTACK, attack_on(audit.plan, release)),
        queries=variant.queries,
        variant=variant.name,
        train_accuracy=known_mean(accuracy.train),
        held_out_accuracy=known_mean(accuracy.held_out),
    )


def _access(findings: AccessFindings, priors: Priors, provable: Mapping[str, float | None]) -> tree.AccessResult:
    proof, nodes = findings.proof, findings.exposure.exposure.member_nodes
    bounds = {} if proof is None else {bound.parameter: bound for bound in proof.bounds}
    nodes = replace(nodes, level=1 - (1 - LEVEL_OF_GATES) / len(nodes.node))
    return filled(
        tree.AccessResult,
        findings,  # why nothing is proven, and what exposes
        proof=proof and _proof(proof),
        certified=findings.certified and _certified(findings.certified, priors),
        exposure=_exposure(findings.exposure),
        power=tree.PowerResult(
            provable=dict(provable),
            possible={name: bounds[name].possible if name in bounds else None for name in tree.PARAMETERS},
            node_share_low=float(nodes.low.max()),
            node_share_high=float(nodes.high.max()),
        ),
    )


def _provable_about_any(audit: Audit, level: float, is_open: Flags) -> dict[str, float | None]:
    """What guesses about any single node would prove at least, if all were right; None if nothing."""
    priors = audit.priors
    odds = PriorOdds.of(priors.prob, len(priors.prob), priors.num_draws, 1 - level)
    about_each = provable_about_each(audit.runs.memberships, odds, level, audit.plan.proof_method)
    least = {parameter: float(each[is_open].min()) for parameter, each in about_each.items()}
    return {str(each): bound if math.isfinite(bound) else None for each, bound in least.items()}


def _proof(proof: Proof) -> tree.ProofResult:
    bounds = {
        bound.parameter: filled(
            tree.BoundResult,
            bound,
            is_shown=bound.parameter in proof.shown,
            is_ceiling=0 < bound.num_hits == bound.num_guesses,
            source=bound.choice.source,
        )
        for bound in proof.bounds
    }
    return filled(tree.ProofResult, proof, **bounds)


def _names(row: Certificate) -> float:
    return row.names


def _certified(exposure: CertifiedExposure, priors: Priors) -> tree.CertifiedResult:
    sides: dict[str, list[tree.CertificateResult]] = {}
    for side, prob in (("members", priors.prob), ("non_members", 1 - priors.prob)):
        # The surest nodes by the prior alone, as many as are right often enough on average.
        share = np.sort(prob)[::-1].cumsum() / np.arange(1, len(prob) + 1)
        rows: Sequence[Certificate] = getattr(exposure, side)
        # What is right often enough for more is so for less.
        best = [max((more for more in rows if more.certainty >= each.certainty), key=_names) for each in rows]
        sides[side] = [
            filled(
                tree.CertificateResult,
                row,
                certainty=each.certainty,
                by_prior=int(np.searchsorted(-share, -each.certainty, side="right")),
            )
            for each, row in zip(rows, best, strict=True)
        ]
    return filled(tree.CertifiedResult, exposure, **sides)


def _test(test: PermutationTest, is_open: Flags) -> tree.TestResult:
    could_be = test.can_be_found & ~test.is_leaking
    return filled(
        tree.TestResult,
        test,
        num_nodes=len(test.node),
        num_hidden=int(np.count_nonzero(~test.can_be_found & is_open[test.node])),
        missed_auc=float(np.median(test.missed_auc[could_be])) if could_be.any() else None,
        statistic=float(test.largest[0]),
        null_statistics=list(test.largest[1:]),
    )


def leakage_level(test: tree.TestResult, main: tree.ReleaseResult) -> tree.Level:
    """How much leaks; where nothing does, "leak" or more with a probability of at most 1 %, if bounds hold with 95 %.

    - strong: it leaks, and at least 1 % of a model's training nodes can be named beyond those that the sampling tells,
      99 % of the names being right, or 10 % of them, 95 % being right; certified.
    - leak: a node is proven to leak, or MP's ε is proven to be above 0, each with 99.5 % confidence.
    - traces: the permutation test has a p-value of at most 0.01.
    - none: none of these.
    """
    if test.num_leaking or main.is_leakage_proven:
        for certainty, share in STRONG:
            row = None if main.certified is None else main.certified.named(certainty)
            if row is not None and row.by_model >= share * main.exposure.total_members:
                return "strong"
        return "leak"
    return "traces" if test.is_leakage_found else "none"


def _exposure(of_release: ReleaseExposure) -> tree.ExposureResult:
    exposure = of_release.exposure
    return filled(
        tree.ExposureResult,
        of_release,
        exposure.members,  # as many models and the same level on both sides
        at_risk=exposure.at_risk,
        total_members=exposure.members.total,
        total_non_members=exposure.non_members.total,
        members=_named(exposure.members),
        non_members=_named(exposure.non_members),
        mean_auc=float(np.nanmean(of_release.models.auc)),
        reliability=filled(tree.ReliabilityResult, of_release.reliability),
        statement=exposure.statement(),
    )


def _named(curve: ExposureCurve) -> list[tree.NamedResult]:
    band = curve.correct
    columns = filled(tree.NamedResult, curve, correct=band.mean, correct_low=band.low, correct_high=band.high)
    return [tree.NamedResult(*row) for row in zip(*vars(columns).values(), strict=True)]


def _headline(audit: Audit, main: tree.ReleaseResult) -> list[tree.EpsilonResult]:
    """The ε of the main variant, and why not to trust them."""
    attacks, estimates, floor = audit.attacks, audit.estimates, audit.priors.floor
    posteriors = estimates.posteriors[attacks.main]
    rows = []
    for name, parameter_name in headline_parameters(posteriors):
        posterior, place = posteriors[name], (name, parameter_name)
        definition = posterior.definition
        kind = registry.name_of(registry.DEFINITION, definition)
        title = kind.upper() if kind in registry.ENTRIES[registry.DEFINITION] else kind.rpartition(":")[2]
        parameter = next(each for each in definition.parameters if each.name == parameter_name)
        p5, p50, p95 = posterior.quantile([0.05, 0.5, 0.95], parameter_name).tolist()
        is_bmp = parameter_name in SIDES and definition.uses_prior
        row = filled(
            tree.EpsilonResult,
            estimates.influences[place],  # its mean, with and without constant decisions
            name=parameter.symbol if parameter_name in SIDES else f"{title} {parameter.symbol}",
            meaning=in_words_of(audit.graph, parameter.meaning),
            definition=name,
            parameter=parameter_name,
            multiplies_odds=not definition.uses_prior,
            p5=p5,
            p50=p50,
            p95=p95,
            half_median=estimates.half_medians.get(place),
            tail_prior_share=posterior.tail_prior_share(parameter_name),
            floor=floor_of(posterior, parameter_name, audit.priors),
            floor_is_exact=floor.level is None or not definition.uses_prior,
            floor_level=floor.level if definition.uses_prior else None,
            proven=main.shown(parameter_name) if is_bmp else main.shown("mp") if kind == "mp" else None,
            proof_level=audit.plan.proof_level,
            warnings=[],
        )
        row.warnings.extend(_row_warnings(row, int(attacks.main_counts.is_constant.sum()), posterior))
        rows.append(row)
    return rows


def _row_warnings(row: tree.EpsilonResult, num_constant: int, posterior: Posterior) -> list[str]:
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


def floor_of(posterior: Posterior, parameter: str, priors: Priors) -> float:
    """What the sampler alone gives away of a parameter: the smallest value that its floor leaves possible."""
    definition, floor = posterior.definition, priors.floor
    if not definition.uses_prior or isinstance(definition, StoredDefinition):
        return posterior.lows[parameter]
    left, right = smallest_values(definition, np.array([floor.left]), np.array([floor.right]))
    if len(definition.parameters) > 1:
        return floor.left if parameter == definition.parameters[0].name else floor.right
    return float(max(left[0], right[0]))


def _variant(audit: Audit, variant: Variant) -> tree.VariantResult:
    counts = audit.attacks.counts[variant.name]
    totals = ("false_positives", "num_out", "false_negatives", "num_in")
    return filled(
        tree.VariantResult,
        audit.attacks.performance[variant.name],
        variant,
        errors=tree.ErrorTotals(**{each: int(getattr(counts, each).sum()) for each in totals}),
        posteriors={
            definition: _posterior(posterior, audit.priors)
            for definition, posterior in audit.estimates.posteriors[variant.name].items()
        },
    )


def _posterior(posterior: Posterior, priors: Priors) -> tree.PosteriorResult:
    summary = posterior.summary()
    symbols = {each.name: each.symbol for each in posterior.definition.parameters}
    parameters = {
        name: tree.ParameterResult(
            symbol=symbols.get(name, name),
            floor=floor_of(posterior, name, priors) if name in symbols else None,
            tail_prior_share=summary[name].get("tail_prior_share"),
            **{key: summary[name][key] for key in ("p5", "p50", "p95", "mean")},
        )
        for name in posterior.marginals
    }
    names = ("method", "status", "num_nodes", "num_left_out", "num_constant", "prior", "strength", "strength_prior")
    return tree.PosteriorResult(parameters=parameters, **{name: summary[name] for name in names})


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


def _answer(
    audit: Audit,
    level: tree.Level,
    test: tree.TestResult,
    main: tree.ReleaseResult,
    priors: tree.PriorsResult,
    headline: Sequence[tree.EpsilonResult],
) -> tree.AnswerResult:
    fitting, promised = partial(in_words_of, audit.graph), audit.guaranteed
    least = "" if priors.level is None else "at least "
    estimated, warnings = "", list[str]()
    if level != "none":  # else an estimate means nothing
        parts = [f"{row.name} = {number(row.p50, 1)} ({interval(row.p5, row.p95, 1)})" for row in headline]
        estimated = (
            f"{', '.join(parts)}: medians and 90 % intervals under the paper's model, from the errors of this attack."
        )
        warnings += [_sentence(warning) for row in headline for warning in row.warnings]
        of_the_prior = [row.name for row in headline if row.tail_prior_share > PRIOR_SHARE]
        if of_the_prior:
            end, come = ("end", "comes") if len(of_the_prior) == 1 else ("ends", "come")
            warnings.append(f"The upper {end} of {listed(of_the_prior)} {come} from the prior, not from the data.")
    return tree.AnswerResult(
        level=level,
        verdict=fitting(_verdict(level, test, main, audit.plan)),
        proven=fitting(_proven(main, priors, audit.plan)),
        guaranteed=fitting("" if promised is None else promised.sentence(audit.main_findings.proof)),
        exposure=fitting(_sentence(main.exposure.statement)),
        floor=fitting(
            f"The sampling alone gives odds of {least}{odds(priors.floor_right)} that some node was in, and of {least}"
            f"{odds(priors.floor_left)} that some node was not."
        ),
        estimated=estimated,
        warnings=list(map(fitting, warnings)),
    )


def _verdict(level: tree.Level, test: tree.TestResult, main: tree.ReleaseResult, plan: AuditPlan) -> str:
    """What was found, or what could have been missed."""
    row = main.exposure.named(tree.HEADLINE_CERTAINTY)
    by_attack, estimate = f"The attack is {main.exposed_by}.", ""
    if row.correct_low - row.by_prior >= 1:
        estimate = (
            f" From {SEEN[main.access]} an adversary can name an estimated {count_interval(row)} of its "
            f"{main.exposure.total_members:,.0f} training nodes with 99 % certainty; certificates take more shadow "
            "models."
        )
    if level in ("none", "traces"):
        found = "The answers of models depend on who was in their training graph"
        found += "." if estimate else ", but nothing shows whom they expose."
        if level == "none":
            found = f"No leakage found by the attack {main.exposed_by}, nor by testing every node."
            found = "No leakage is proven." if estimate else found
        return f"{found}{estimate} {missed_in_words(test)}"
    certificate = None if main.certified is None else main.certified.leading()
    if certificate is None:
        if not test.num_leaking:
            proven = "That models give away more than the sampling is proven."
            return f"{proven}{estimate or ' No name is certified.'} {by_attack}"
        leaking = f"{test.num_leaking:,} of {count(test.num_nodes, 'node')}"
        is_or_are = "is" if test.num_leaking == 1 else "are"
        return f"{leaking} {is_or_are} proven to leak.{estimate or ' No name is certified.'} {by_attack}"
    beyond = "" if certificate.by_prior < 1 else f", {certificate.by_prior:,} of them by the sampling alone"
    number_named = names(certificate.names)
    nodes = "node as a training node" if number_named == "1" else "nodes as training nodes"
    return (
        f"From {SEEN[main.access]} an adversary can name at least {number_named} {nodes}{beyond}, and "
        f"at least {percent(certificate.certainty)} of the names are right "
        f"({confidence(plan.proof_level)} confidence; there are {main.exposure.total_members:,.0f})."
    )


def count_interval(row: tree.NamedResult) -> str:
    """Limits of a number of nodes."""
    return interval(row.correct_low, row.correct_high, 0 if row.correct_low >= 10 else 1)


def certificate_cell(number: float | None, certainty: float | None) -> str:
    """How many names are certified, and which share of them is right at least.

    >>> certificate_cell(31.97, 0.99), certificate_cell(None, None)
    ('31 (99 %)', '–')
    """
    return MISSING if number is None or certainty is None else f"{names(number)} ({percent(certainty)})"


def names(number: float) -> str:
    """A number of names that is not rounded up.

    >>> names(31.97), names(0.2468)
    ('31', '0.24')
    """
    return f"{math.floor(number):,}" if number >= 1 else f"{math.floor(100 * number) / 100:g}"


def missed_in_words(test: tree.TestResult) -> str:
    """The smallest leak that could have been missed."""
    parts = []
    if test.missed_auc is not None:
        parts.append(
            f"A single node whose answers give its membership away with an AUC of {number(test.missed_auc, 2)} or more "
            "would have been found with a probability of 95 %, a weaker leak may have been missed"
            if test.missed_auc < HARDLY_BELOW_1
            else "Only a node that every model gives away would have been found, a weaker leak may have been missed"
        )
    if test.num_hidden:
        parts.append(
            f"of {count(test.num_hidden, 'node')} no leak could have been found with so few models that hold them, or "
            "do not"
        )
    return _sentence("; ".join(parts)) if parts else ""


def _proven(release: tree.ReleaseResult, priors: tree.PriorsResult, plan: AuditPlan) -> str:
    proof = release.proof
    if proof is None:
        return f"Nothing: {release.not_proven}."
    shown = [_bound_in_words(name, bound) for name, bound in proof.bounds.items() if bound.is_shown]
    if shown:
        level = confidence(plan.proof_level)
        return _sentence(f"with {level} confidence for all that is proven here, an adversary {listed(shown)}.")
    bound = proof.epsilon_right
    most, least = provable(bound.num_challenged, bound.level, plan.proof_method), priors.floor_right
    if most <= least:
        return (
            f"Nothing beyond what the sampling alone gives away: {bound.num_challenged:,} guesses prove odds of "
            f"{odds(most)} at most, the sampling gives {odds(least)}."
        )
    sure = "" if proof.is_leakage_proven else f" with {percent(LEAKAGE_LEVEL)} confidence"
    return f"Nothing beyond what the sampling alone gives away{sure}."


def _bound_in_words(parameter: str, bound: tree.BoundResult) -> str:
    assert bound.proven is not None  # noqa: S101 - it is shown
    what = {
        "epsilon_right": f"reaches odds of at least {odds(bound.proven)} that a node was in the training graph (ε_R",
        "epsilon_left": f"reaches odds of at least {odds(bound.proven)} that a node was not in it (ε_L",
        "mp": f"changes the odds about a node by at least {words.factor(bound.proven)} (MP ε",
    }[parameter]
    hits = f"{bound.num_hits:,} of {bound.num_guesses:,} guesses right"
    if bound.is_ceiling:
        hits = f"every guess right: the most that {bound.num_guesses:,} guesses can show"
    return f"{what} ≥ {number(bound.proven, 2)}; {hits})"


def _sentence(text: str) -> str:
    if text[:1].isascii():  # ε_R stays as it is
        text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


# What a reader must know before trusting an audit, and what to do next


def _cautions(audit: Audit, main: tree.ReleaseResult) -> list[str]:
    counts = audit.attacks.main_counts
    messages: list[str] = []
    if audit.guaranteed is not None:
        messages += audit.guaranteed.contradictions(audit.findings)
    if main.access != audit.plan.release_as:
        messages.append(
            f"The plan releases access to {audit.plan.release_as}; what was attacked is access to {main.access}, which "
            "is all that these models show: with more access more nodes may be named."
        )
    if counts.not_auditable:
        is_or_are = "is" if len(counts.not_auditable) == 1 else "are"
        fate = f"{is_or_are} {'counted as non-members' if counts.is_kept.any() else 'left out'}"
        nodes = count(len(counts.not_auditable), "node")
        messages.append(f"{nodes} could not be audited and {fate}, such as {counts.not_auditable[0]}.")
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
    models: tree.ModelsResult,
    releases: Mapping[str, tree.ReleaseResult],
    priors: tree.PriorsResult,
) -> list[str]:
    """Short instructions, the most useful first."""
    steps = _more_models(next(iter(releases.values())), is_found, models.trained)
    if plan.release_as == SCORES and replace(plan.shadow_plan, rows=(QUERIES, WEIGHTS)).row_sets:
        steps.append(MORE_ACCESS)
    if is_found:
        steps = [*_defences(plan, models, releases, priors), *steps, "See who is at risk: bmpaudit nodes DIR."]
    return [*steps, "Before you release a model, look at that very model: bmpaudit infer DIR --model FILE."]


def _defences(
    plan: AuditPlan, models: tree.ModelsResult, releases: Mapping[str, tree.ReleaseResult], priors: tree.PriorsResult
) -> list[str]:
    steps = []
    train, held_out = models.train_accuracy, models.held_out_accuracy
    if train is not None and held_out is not None and train - held_out > OVERFITTED:
        # What names fewer nodes in docs/defences.md. Weight decay hides from scores, and gives rare features away.
        remedy = "more weight decay or early stopping"
        if next(iter(releases.values())).access in (QUERIES, WEIGHTS):
            remedy = "early stopping, or fewer features (some principal components of them)"
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
    main = next(iter(releases.values()))
    if main.lesser:
        named = [
            f"{GIVEN[access]} {number(found.exposure.named(tree.HEADLINE_CERTAINTY).correct, 1)}"
            for access, found in reversed(main.lesser.items())
        ]
        steps.append(
            f"Give out no more than is needed: {GIVEN[main.access]} name "
            f"{number(main.exposure.named(tree.HEADLINE_CERTAINTY).correct, 1)} with 99 % certainty, {listed(named)}."
        )
    return steps


def _better_release(releases: Mapping[str, tree.ReleaseResult]) -> list[str]:
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


def _more_models(main: tree.ReleaseResult, is_found: bool, num_models: int) -> list[str]:
    """Why more models would say more; how many are named only where that is known."""
    more = "--proof-method prequential adds models without spoiling what is proven"
    row = main.exposure.named(tree.HEADLINE_CERTAINTY)
    if not is_found:
        return [f"More shadow models find smaller leaks: {more}."]
    if not row.is_settled:
        return [f"{count(num_models, 'shadow model')} leave the exposure open; more narrow it down: {more}."]
    bound = None if main.proof is None else main.proof.epsilon_right
    if bound is None or bound.proven is None or bound.num_hits < bound.num_challenged:
        return []
    epsilon = math.floor(bound.proven + 1.0)
    needed = models_to_prove_more(epsilon, bound.level, "prequential")
    return [
        f"Every guess was right, so more models prove more: --until-proven {epsilon} takes about {needed:,} of them."
    ]
