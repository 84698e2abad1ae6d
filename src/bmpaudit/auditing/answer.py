"""The answer in plain words, what is certain first: verdict, proven, exposure, floor, estimated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from bmpaudit.attack import PermutationTest
from bmpaudit.auditing.guaranteed import Guaranteed
from bmpaudit.auditing.headline import HeadlineRow
from bmpaudit.auditing.proof_step import ReleaseFindings
from bmpaudit.auditing.table_words import in_words_of
from bmpaudit.graph import Graph
from bmpaudit.proof import Proof, ProvenBound, provable
from bmpaudit.proof.exposure import HARDLY_ANY, MIN_MODELS
from bmpaudit.proof.prove import Method
from bmpaudit.proof.result import SURE
from bmpaudit.report.words import confidence, factor, listed, number, odds, percent
from bmpaudit.samplers import Priors

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
