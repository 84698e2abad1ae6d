"""The result of an audit: one tree, written as `summary.json`, of which everything that people see is a view.

Terminal, page, tables, gate, comparison and sweep format these numbers and compute none: a number has one name, one
meaning, one interval, and one rule for being shown. Infinite numbers are texts in JSON, and what is unknown is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from bmpaudit.io.codec import Number, Record, decode, json_schema
from bmpaudit.util.errors import InputError

FORMAT: Literal[6] = 6

Parameter = Literal["epsilon_right", "epsilon_left", "mp"]
PARAMETERS: tuple[Parameter, ...] = ("epsilon_right", "epsilon_left", "mp")

Level = Literal["none", "traces", "leak", "strong"]
LEVELS: dict[Level, str] = {
    "none": "No leakage found",
    "traces": "Traces of leakage",
    "leak": "Leak",
    "strong": "Strong leak",
}
HEADLINE_CERTAINTY = 0.99


@dataclass(frozen=True)
class BoundResult(Record):
    """What is proven of one parameter."""

    proven: Annotated[float | None, "The lower bound; null if nothing is proven"]
    is_shown: Annotated[bool, "Whether it is shown: leakage is proven, and the bound is beyond what the sampling gives"]
    is_ceiling: Annotated[bool, "Whether every guess was right: it is the most that so many guesses can show"]
    floor: Annotated[Number, "What the sampling alone gives away, at least (Prop. 1)"]
    level: Annotated[float, "Confidence of the bound"]
    method: Annotated[str, "Method of the proof"]
    num_fitting: Annotated[int, "Number of models that the rule was fitted on"]
    num_challenged: Annotated[int, "Number of models that could be guessed about"]
    num_guesses: Annotated[int, "Number of models about which something was guessed"]
    num_hits: Annotated[int, "Number of correct guesses"]
    source: Annotated[str, "Attack and queries that the guesses were made by"]

    @property
    def shown(self) -> float | None:
        """What is proven, if it is to be shown."""
        return self.proven if self.is_shown else None

    @property
    def is_at_ceiling(self) -> bool:
        """Whether what is shown is the most that so many guesses can show: nothing is ranked by that."""
        return self.is_shown and self.is_ceiling


@dataclass(frozen=True)
class ProofResult(Record):
    """What is proven of a release."""

    is_leakage_proven: Annotated[bool, "Whether models give away more than the sampling, with 99 % confidence"]
    epsilon_right: Annotated[BoundResult, "Bound on ε_R"]
    epsilon_left: Annotated[BoundResult, "Bound on ε_L"]
    mp: Annotated[BoundResult, "Bound on the ε of MP"]

    @property
    def bounds(self) -> Mapping[str, BoundResult]:
        """All three, by parameter."""
        return {"epsilon_right": self.epsilon_right, "epsilon_left": self.epsilon_left, "mp": self.mp}


@dataclass(frozen=True)
class CertificateResult(Record):
    """So many names per model, of which at least such a share is right, with the confidence that is shown."""

    certainty: Annotated[float, "Share of the names that is right, at least"]
    names: Annotated[float, "Number of names per model, at least; 0 if nothing is certified"]
    by_prior: Annotated[int, "Number of names that the priors alone allow with that share, without any model"]
    mean_names: Annotated[float, "Number of names per challenged model"]
    share_correct: Annotated[float | None, "Share of them that were right; null without any"]
    most_names: Annotated[int, "Number of names about one model, at most"]

    @property
    def by_model(self) -> float:
        """Number of names that only the model gives away."""
        return max(self.names - self.by_prior, 0.0)


@dataclass(frozen=True)
class CertifiedResult(Record):
    """What one released model provably gives away, on average over models."""

    level: Annotated[float, "Confidence of each side by itself, for all certainties together"]
    num_fitting: Annotated[int, "Number of models that rules were learnt on"]
    num_challenged: Annotated[int, "Number of models about which nodes were named"]
    source: Annotated[str, "Attack and queries that nodes were named by"]
    members: Annotated[list[CertificateResult], "Names of members, by certainty"]
    non_members: Annotated[list[CertificateResult], "Names of non-members, by certainty"]

    def named(self, certainty: float, side: str = "members") -> CertificateResult | None:
        """The certificate of most names that are right with at least a certainty; None if there is none."""
        rows: list[CertificateResult] = getattr(self, side)
        some = (row for row in rows if row.certainty >= certainty and row.names > 0)
        return max(some, key=lambda row: row.names, default=None)

    def leading(self, side: str = "members") -> CertificateResult | None:
        """The certificate of a side to lead with: of 99 % if there is one beyond the prior, else of less."""
        rows: list[CertificateResult] = getattr(self, side)
        chosen = (row for row in rows if row.certainty <= HEADLINE_CERTAINTY and row.by_model > 0)
        return max(chosen, key=lambda row: row.certainty, default=None)


@dataclass(frozen=True)
class NamedResult(Record):
    """How many nodes of one model are named with one certainty, as estimated."""

    precision: Annotated[float, "Posterior probability from which on a node is named"]
    correct: Annotated[float, "Number of nodes that are named correctly, per model"]
    correct_low: Annotated[float, "Lower limit of it"]
    correct_high: Annotated[float, "Upper limit of it, for an adversary with any number of shadow models"]
    at_most: Annotated[float, "Upper limit of it with 99.5 % confidence"]
    named: Annotated[float, "Number of nodes that are named, rightly or wrongly"]
    share_correct: Annotated[float | None, "Share of the names that are right; null if nobody is named"]
    by_prior: Annotated[float, "How many the priors alone name correctly, without any model"]
    is_settled: Annotated[bool, "Whether there are enough models to say"]


@dataclass(frozen=True)
class ReliabilityResult(Record):
    """Stated against observed probabilities of membership."""

    edges: Annotated[list[float], "Edges of the bins of stated probability"]
    num_challenges: Annotated[list[int], "Number of challenges in each bin"]
    stated: Annotated[list[float | None], "Mean stated probability in each bin; null in an empty one"]
    observed: Annotated[list[float | None], "Share of members in each bin; null in an empty one"]
    expected_calibration_error: Annotated[float, "Mean |stated - observed| over challenges"]


@dataclass(frozen=True)
class ExposureResult(Record):
    """What one released model exposes."""

    at_risk: Annotated[float, "Certainty that the statement, and the exposure of single nodes, are about"]
    num_models: Annotated[int, "Number of models behind it"]
    num_fitting: Annotated[int, "Number of models that each model's attack was fitted on"]
    num_nodes: Annotated[int, "Number of nodes that can be named"]
    num_left_out: Annotated[int, "Number of nodes that cannot"]
    level: Annotated[float, "Confidence of each pair of limits"]
    total_members: Annotated[float, "Members per model"]
    total_non_members: Annotated[float, "Non-members per model"]
    members: Annotated[list[NamedResult], "Members named, by certainty"]
    non_members: Annotated[list[NamedResult], "Non-members named, by certainty"]
    mean_auc: Annotated[float | None, "Mean over models of the area under the ROC curve within the model"]
    reliability: Annotated[ReliabilityResult, "How well stated certainties agree with the truth"]
    statement: Annotated[str, "What can be named, in a sentence"]

    def named(self, precision: float, side: str = "members") -> NamedResult:
        """How many are named with one certainty; `InputError` if it is not among those that were counted."""
        rows: list[NamedResult] = getattr(self, side)
        for row in rows:
            if abs(row.precision - precision) < 1e-12:
                return row
        raise InputError(f"precision must be one of {', '.join(f'{row.precision:g}' for row in rows)}, got {precision}")


@dataclass(frozen=True)
class PowerResult(Record):
    """What the shadow models leave open: what a gate needs to know before it passes a threshold."""

    provable: Annotated[
        dict[str, float | None],
        "By parameter, what would have been proven at least of a mechanism that gives away one node in every "
        "model, whichever node it is; null if guesses about some node prove nothing",
    ]
    possible: Annotated[
        dict[str, Number | None],
        "By parameter, what the guesses that were made leave possible, an upper confidence limit: infinite if all "
        "were right; null without a proof",
    ]
    node_share_low: Annotated[
        float,
        "Largest lower limit of a node's exposure, the share of the models with it that name it, with 99.5 % "
        "confidence for all nodes together",
    ]
    node_share_high: Annotated[float, "Largest upper limit of a node's exposure, likewise"]


@dataclass(frozen=True)
class AccessResult(Record):
    """What is known of one access to a release."""

    proof: Annotated[ProofResult | None, "What is proven; null if there are too few models"]
    certified: Annotated[CertifiedResult | None, "What one released model provably gives away; null likewise"]
    not_proven: Annotated[str, "Why there is no proof; empty if there is one"]
    exposed_by: Annotated[str, "Attack and queries that the exposure was found by"]
    exposure: Annotated[ExposureResult, "What one released model exposes, as estimated"]
    power: Annotated[PowerResult, "What the shadow models leave open"]

    @property
    def is_leakage_proven(self) -> bool:
        """Whether the guesses prove that models give away more than the sampling."""
        return self.proof is not None and self.proof.is_leakage_proven

    def shown(self, parameter: str) -> float | None:
        """What is proven of a parameter, if it is to be shown."""
        return None if self.proof is None else self.proof.bounds[parameter].shown

    def is_at_ceiling(self, parameter: str) -> bool:
        """Whether that is the most that so many guesses can show."""
        return self.proof is not None and self.proof.bounds[parameter].is_at_ceiling


@dataclass(frozen=True)
class ReleaseResult(AccessResult):
    """What is known of one release, as it is released."""

    access: Annotated[str, "What the adversary sees of it: labels, scores, queries or weights"]
    lesser: Annotated[dict[str, AccessResult], "The same for lesser access, the least first"]
    attack: Annotated[str, "The plan's attack on it"]
    queries: Annotated[list[str], "Queries of the strongest variant"]
    variant: Annotated[str, "Name of the strongest variant"]
    auc: Annotated[float, "Area under its ROC curve"]
    tpr_at_fpr: Annotated[dict[str, float], "Its true positive rates, by false positive rate"]
    train_accuracy: Annotated[float | None, "Mean accuracy on training nodes; null if unknown"]
    held_out_accuracy: Annotated[float | None, "Mean accuracy on other nodes; null if unknown"]

    @property
    def ladder(self) -> Mapping[str, AccessResult]:
        """Every access, the least first."""
        return {**self.lesser, self.access: self}


@dataclass(frozen=True)
class EpsilonResult(Record):
    """One estimated ε of the main variant."""

    name: Annotated[str, "Its symbol"]
    meaning: Annotated[str, "In words"]
    definition: Annotated[str, "The definition it is a parameter of"]
    parameter: Annotated[str, "Which of the definition's parameters"]
    multiplies_odds: Annotated[bool, "Whether ε bounds by how much the odds change, as in MP, not the odds themselves"]
    p5: Annotated[Number, "5th percentile of the posterior"]
    p50: Annotated[Number, "Median of the posterior"]
    p95: Annotated[Number, "95th percentile of the posterior"]
    mean: Annotated[Number, "Mean of the posterior"]
    mean_without_constant: Annotated[Number, "Mean without the nodes whose decision never varies"]
    half_median: Annotated[Number | None, "Median with half of the models; null if that is too few"]
    tail_prior_share: Annotated[float, "How much of the upper tail is the prior's"]
    floor: Annotated[Number, "What the sampling alone gives away, at least (Prop. 1)"]
    floor_is_exact: Annotated[bool, "Whether the floor comes from a formula"]
    floor_level: Annotated[float | None, "Confidence of the floor otherwise"]
    proven: Annotated[float | None, "What is shown as proven of it; null if nothing, or if no proof is about it"]
    proof_level: Annotated[float, "Confidence of what is proven"]
    warnings: Annotated[list[str], "Why not to trust the estimate, in words"]


@dataclass(frozen=True)
class ParameterResult(Record):
    """The posterior of one parameter."""

    symbol: Annotated[str, "How it is written"]
    p5: Annotated[Number, "5th percentile"]
    p50: Annotated[Number, "Median"]
    p95: Annotated[Number, "95th percentile"]
    mean: Annotated[Number, "Mean"]
    tail_prior_share: Annotated[float | None, "How much of the upper tail is the prior's; null for other parameters"]
    floor: Annotated[Number | None, "What the sampling alone gives away, at least; null likewise"]


@dataclass(frozen=True)
class PosteriorResult(Record):
    """The posterior of one definition, from the errors of one variant."""

    method: Annotated[str, "How it was computed"]
    status: Annotated[str, "Whether to believe it"]
    num_nodes: Annotated[int, "Number of nodes that count"]
    num_left_out: Annotated[int, "Number of nodes that do not"]
    num_constant: Annotated[int, "Number of nodes whose decision never varies"]
    prior: Annotated[Any, "The prior of ε"]
    strength: Annotated[float | None, "The attack's strength, if it is fixed"]
    strength_prior: Annotated[dict[str, float] | None, "Its prior otherwise"]
    parameters: Annotated[dict[str, ParameterResult], "What it says of each parameter"]


@dataclass(frozen=True)
class ErrorTotals(Record):
    """Errors over all nodes and models."""

    false_positives: Annotated[int, "Non-members taken for members"]
    num_out: Annotated[int, "Challenges about non-members"]
    false_negatives: Annotated[int, "Members taken for non-members"]
    num_in: Annotated[int, "Challenges about members"]


@dataclass(frozen=True)
class VariantResult(Record):
    """One attack and decision rule."""

    label: Annotated[str, "What it is called"]
    errors: Annotated[ErrorTotals, "How often it erred"]
    accuracy: Annotated[float, "Share of its decisions that are right"]
    auc: Annotated[float, "Area under its ROC curve"]
    tpr_at_fpr: Annotated[dict[str, float], "Its true positive rates, by false positive rate"]
    posteriors: Annotated[dict[str, PosteriorResult], "What its errors say about ε, by definition"]


@dataclass(frozen=True)
class AnswerResult(Record):
    """What to tell people, in this order."""

    level: Annotated[Level, "How much leaks: none, traces, leak or strong (docs/numbers.md has the condition of each)"]
    verdict: Annotated[str, "One sentence for the reader in a hurry"]
    proven: Annotated[str, "Odds that an adversary provably reaches"]
    guaranteed: Annotated[str, "What the model guarantees by a proof, and the range that is left; empty if nothing"]
    exposure: Annotated[str, "How many training nodes can be named from one released model"]
    floor: Annotated[str, "What the sampling alone gives away"]
    estimated: Annotated[str, "The paper's ε; empty where no leakage was found, since it means nothing there"]
    warnings: Annotated[list[str], "Why not to trust the estimate"]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What stands below the verdict, each with its name."""
        names = ("proven", "guaranteed", "exposure", "floor", "estimated")
        return [(name, getattr(self, name)) for name in names if getattr(self, name)]


@dataclass(frozen=True)
class GuaranteeResult(Record):
    """What the model guarantees by a proof."""

    mechanism: Annotated[str, "What gives the guarantee"]
    epsilon: Annotated[float, "ε of MDP"]
    delta: Annotated[float, "δ of MDP; 0 for a pure guarantee"]
    distance: Annotated[int, "How many memberships may change with one under the plan's sampler"]
    epsilon_right: Annotated[Number, "ε_R is at most this"]
    epsilon_left: Annotated[Number, "ε_L is at most this"]
    mp: Annotated[Number, "The ε of MP is at most this"]


@dataclass(frozen=True)
class GraphResult(Record):
    """The graph that was audited."""

    name: Annotated[str, "What it is called"]
    source: Annotated[str, "Where it came from; empty if it was given as an object"]
    content_hash: Annotated[str, "Hash of its content"]
    num_nodes: Annotated[int, "Number of nodes"]
    num_edges: Annotated[int, "Number of edges"]
    num_features: Annotated[int, "Number of features"]
    num_classes: Annotated[int, "Number of classes"]


@dataclass(frozen=True)
class ModelsResult(Record):
    """The shadow models."""

    trained: Annotated[int, "Number of models"]
    failed: Annotated[list[int], "Numbers of those that failed"]
    train_accuracy: Annotated[float | None, "Mean accuracy on training nodes; null if unknown"]
    held_out_accuracy: Annotated[float | None, "Mean accuracy on other nodes; null if unknown"]


@dataclass(frozen=True)
class NodesResult(Record):
    """The nodes."""

    audited: Annotated[int, "Number of nodes that the main variant decides about"]
    not_auditable: Annotated[int, "Number of nodes that it cannot decide about"]
    constant_decision: Annotated[int, "Number of nodes whose decision never varies"]
    level: Annotated[float, "Level of the intervals of a node's ε"]
    most_exposed: Annotated[list[int], "Numbers of the twenty most exposed"]
    rarest_prior: Annotated[float, "Smallest prior of a node that is neither in every sample nor in none"]
    commonest_prior: Annotated[float, "Largest prior of such a node"]
    fewest_in: Annotated[int, "Number of models that hold the one of these nodes that fewest hold"]
    fewest_out: Annotated[int, "Number of models without the one of these nodes that most hold"]


@dataclass(frozen=True)
class TestResult(Record):
    """The permutation test."""

    __test__ = False  # nothing for pytest to collect

    is_leakage_found: Annotated[bool, "Whether its p-value is at most 0.01"]
    p_value: Annotated[float, "Its p-value"]
    num_shuffles: Annotated[int, "Number of shuffles of memberships"]
    num_nodes: Annotated[int, "Number of nodes that were tested"]
    num_leaking: Annotated[int, "Number of nodes that are proven to leak"]
    num_hidden: Annotated[
        int,
        "Number of nodes that could not have been found, however much they leak; nodes that are in every sample, "
        "or in none, do not count",
    ]
    missed_auc: Annotated[
        float | None,
        "AUC of a node's answers above which a leak of that node alone is found with a probability of 95 %, for "
        "the median of the other nodes; null without any",
    ]
    statistic: Annotated[float, "Largest statistic of any node"]
    null_statistics: Annotated[list[float], "The same with permuted memberships"]


@dataclass(frozen=True)
class PriorsResult(Record):
    """What the sampling alone gives away."""

    num_draws: Annotated[int, "Number of draws behind the priors; 0 if they come from a formula"]
    floor_right: Annotated[Number, "Log-odds that some node was in, at least"]
    floor_left: Annotated[Number, "Log-odds that some node was not in, at least"]
    level: Annotated[float | None, "Confidence of both; null if they come from a formula"]


@dataclass(frozen=True)
class DriverResult(Record):
    """A node that a posterior depends on."""

    node: Annotated[int | str, "Its number or name"]
    shift: Annotated[Number | None, "How far it raises the posterior mean; null if unknown"]
    is_constant: Annotated[bool, "Whether the decision about it never varies"]


@dataclass(frozen=True)
class AuditResult(Record):
    """Everything that an audit found out, but for what is about single nodes and models."""

    format: Annotated[Literal[6], "Format of the file"]
    bmpaudit: Annotated[str, "Version of the program that made it"]
    fingerprint: Annotated[str, "Tells audits apart whose answers may differ"]
    title: Annotated[str, "What was audited, in a few words"]
    is_leakage_found: Annotated[bool, "Whether there are traces of leakage at least"]
    answer: Annotated[AnswerResult, "The answer in words"]
    next: Annotated[list[str], "What to do next"]
    cautions: Annotated[list[str], "What to know before trusting it"]
    is_not: Annotated[list[str], "What the answer does not say"]
    guarantee: Annotated[GuaranteeResult | None, "What the model guarantees by a proof; null if it guarantees nothing"]
    releases: Annotated[dict[str, ReleaseResult], "What is known of each release, by its label, the main one first"]
    headline: Annotated[list[EpsilonResult], "Every estimated ε of the main variant"]
    graph: Annotated[GraphResult, "The graph that was audited"]
    plan: Annotated[dict[str, Any], "What was done, as in the plan file"]
    proof_level: Annotated[float, "Confidence of all that is proven and certified together, of all releases"]
    proof_method: Annotated[Literal["one-guess", "prequential"], "Method of the proofs"]
    priors: Annotated[PriorsResult, "What the sampling alone gives away"]
    shadow_models: Annotated[ModelsResult, "The shadow models"]
    nodes: Annotated[NodesResult, "The nodes"]
    permutation_test: Annotated[TestResult, "The permutation test"]
    variants: Annotated[dict[str, VariantResult], "Each attack and decision rule, by name, the plan's first one first"]
    main_variant: Annotated[str, "The variant that the headline is about"]
    drivers: Annotated[dict[str, list[DriverResult]], "Nodes that move a posterior most, by `definition parameter`"]
    notes: Annotated[list[str], "What was overridden or is unusual"]
    timings: Annotated[dict[str, float], "Seconds that each step took"]

    @property
    def rungs(self) -> list[tuple[str, ReleaseResult, AccessResult]]:
        """Every access to every release, the main release first, by its label, and by the access if there are more."""
        return [
            (name if not release.lesser else f"{name}, {access}", release, part)
            for name, release in self.releases.items()
            for access, part in release.ladder.items()
        ]

    @property
    def main_release(self) -> str:
        """Label of the release that the answer is about."""
        return next(iter(self.releases))

    @property
    def main(self) -> ReleaseResult:
        """What is known of it."""
        return self.releases[self.main_release]


def summary_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `summary.json`, and of `Audit.summary`, made from `AuditResult`.

    >>> summary_schema()["title"]
    'summary.json of bmpaudit'
    """
    return json_schema(
        AuditResult,
        "summary.json of bmpaudit",
        "An audit in one object. JSON has neither infinity nor NaN: where a number may be infinite it is the text "
        '"inf" or "-inf", and what is unknown is null.',
    )


def read_result(summary: Any) -> AuditResult:
    """The result in a summary; a `ValueError` names the first key that is missing, unknown or of another kind."""
    result = decode(AuditResult, summary)
    if not result.releases or result.main_variant not in result.variants:
        raise ValueError("a summary must have a release, and its main variant")
    return result
