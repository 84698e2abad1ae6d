"""The result of an audit: one tree, written as `summary.json`, of which everything that people see is a view.

Terminal, page, tables, gate, comparison and sweep format these numbers and compute none: a number has one name, one
meaning, one interval, and one rule for being shown. Infinite numbers are texts in JSON, and what is unknown is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bmpaudit.io.codec import Number, Record, decode, json_schema
from bmpaudit.util.errors import InputError

FORMAT: Literal[4] = 4

Parameter = Literal["epsilon_right", "epsilon_left", "mp"]
PARAMETERS: tuple[Parameter, ...] = ("epsilon_right", "epsilon_left", "mp")


@dataclass(frozen=True)
class BoundResult(Record):
    """What is proven of one parameter.

    Attributes:
        proven: The lower bound; null if nothing is proven.
        is_shown: Whether it is shown as proven: leakage is, and the bound is beyond what the sampling gives away.
        floor: What the sampling alone gives away, at least (Prop. 1).
        level: Confidence of the bound.
        method: Method of the proof.
        num_fitting: Number of models that the rule was fitted on.
        num_challenged: Number of models that could be guessed about.
        num_guesses: Number of models about which something was guessed.
        num_hits: Number of correct guesses.
        source: Attack and queries that the guesses were made by.
    """

    proven: float | None
    is_shown: bool
    floor: Number
    level: float
    method: str
    num_fitting: int
    num_challenged: int
    num_guesses: int
    num_hits: int
    source: str

    @property
    def shown(self) -> float | None:
        """What is proven, if it is to be shown."""
        return self.proven if self.is_shown else None


@dataclass(frozen=True)
class ProofResult(Record):
    """What is proven of a release.

    Attributes:
        is_leakage_proven: Whether the guesses show with 99 % confidence that models give away more than the sampling.
        epsilon_right: Bound on ε_R.
        epsilon_left: Bound on ε_L.
        mp: Bound on the ε of MP.
    """

    is_leakage_proven: bool
    epsilon_right: BoundResult
    epsilon_left: BoundResult
    mp: BoundResult

    @property
    def bounds(self) -> Mapping[Parameter, BoundResult]:
        """All three, by parameter."""
        return {"epsilon_right": self.epsilon_right, "epsilon_left": self.epsilon_left, "mp": self.mp}


@dataclass(frozen=True)
class NamedResult(Record):
    """How many nodes of one model are named with one certainty.

    Attributes:
        precision: Posterior probability from which on a node is named.
        correct: Number of nodes that are named correctly, per model.
        correct_low: Lower limit of it.
        correct_high: Upper limit of it, for an adversary with any number of shadow models.
        correct_high_so_far: Upper limit of it, for an adversary with as many shadow models as here.
        named: Number of nodes that are named, rightly or wrongly.
        named_low: Lower limit of it.
        named_high: Upper limit of it, for as many shadow models as here.
        named_high_with_more: Upper limit of it, for any number of shadow models.
        share_correct: Share of the names that are right; null if nobody is named.
        still_to_come: How many more may be named with any number of shadow models.
        by_prior: How many the priors alone name correctly, without any model.
        is_settled: Whether there are enough models to say.
        models_needed: About how many models would settle it.
    """

    precision: float
    correct: float
    correct_low: float
    correct_high: float
    correct_high_so_far: float
    named: float
    named_low: float
    named_high: float
    named_high_with_more: float
    share_correct: float | None
    still_to_come: float
    by_prior: float
    is_settled: bool
    models_needed: int


@dataclass(frozen=True)
class ReliabilityResult(Record):
    """Stated against observed probabilities of membership.

    Attributes:
        edges: Edges of the bins of stated probability.
        num_challenges: Number of challenges in each bin.
        stated: Mean stated probability in each bin; null in an empty one.
        observed: Share of members in each bin; null in an empty one.
        expected_calibration_error: Mean |stated - observed| over challenges.
    """

    edges: list[float]
    num_challenges: list[int]
    stated: list[float | None]
    observed: list[float | None]
    expected_calibration_error: float


@dataclass(frozen=True)
class ExposureResult(Record):
    """What one released model exposes.

    Attributes:
        at_risk: Certainty that the statement, and the exposure of single nodes, are about.
        num_models: Number of models behind it.
        num_fitting: Number of models that each model's attack was fitted on.
        num_nodes: Number of nodes that can be named.
        num_left_out: Number of nodes that cannot.
        level: Confidence of each pair of limits.
        total_members: Members per model.
        total_non_members: Non-members per model.
        members: Members named, by certainty.
        non_members: Non-members named, by certainty.
        mean_auc: Mean over models of the area under the ROC curve within the model.
        reliability: How well stated certainties agree with the truth.
        statement: What can be named, in a sentence.
    """

    at_risk: float
    num_models: int
    num_fitting: int
    num_nodes: int
    num_left_out: int
    level: float
    total_members: float
    total_non_members: float
    members: list[NamedResult]
    non_members: list[NamedResult]
    mean_auc: float | None
    reliability: ReliabilityResult
    statement: str

    def named(self, precision: float, side: str = "members") -> NamedResult:
        """How many are named with one certainty.

        Raises:
            InputError: if that certainty is not among those that were counted.
        """
        rows: list[NamedResult] = getattr(self, side)
        for row in rows:
            if abs(row.precision - precision) < 1e-12:
                return row
        raise InputError(f"precision must be one of {', '.join(f'{row.precision:g}' for row in rows)}, got {precision}")


@dataclass(frozen=True)
class ReleaseResult(Record):
    """What is known of one release.

    Attributes:
        attack: The attack on it.
        queries: Queries of the strongest variant, which the exposure is about.
        variant: Name of the strongest variant.
        auc: Area under its ROC curve.
        tpr_at_fpr: Its true positive rates, by false positive rate.
        train_accuracy: Mean accuracy on training nodes; null if unknown.
        held_out_accuracy: Mean accuracy on other nodes; null if unknown.
        proof: What is proven; null if there are too few models.
        not_proven: Why there is no proof; empty if there is one.
        exposure: What one released model exposes.
    """

    attack: str
    queries: list[str]
    variant: str
    auc: float
    tpr_at_fpr: dict[str, float]
    train_accuracy: float | None
    held_out_accuracy: float | None
    proof: ProofResult | None
    not_proven: str
    exposure: ExposureResult

    @property
    def is_leakage_proven(self) -> bool:
        """Whether the guesses prove that models give away more than the sampling."""
        return self.proof is not None and self.proof.is_leakage_proven

    def shown(self, parameter: Parameter) -> float | None:
        """What is proven of a parameter, if it is to be shown."""
        return None if self.proof is None else self.proof.bounds[parameter].shown


@dataclass(frozen=True)
class EpsilonResult(Record):
    """One estimated ε of the main variant.

    Attributes:
        name: Its symbol.
        meaning: In words.
        definition: The definition it is a parameter of.
        parameter: Which of the definition's parameters.
        multiplies_odds: Whether ε bounds by how much the odds change, as in MP, and not the odds themselves.
        p5: 5th percentile of the posterior.
        p50: Median of the posterior.
        p95: 95th percentile of the posterior.
        mean: Mean of the posterior.
        mean_without_constant: Mean without the nodes whose decision never varies.
        half_median: Median with half of the models; null if that is too few.
        tail_prior_share: How much of the upper tail is the prior's.
        floor: What the sampling alone gives away, at least (Prop. 1).
        floor_is_exact: Whether the floor comes from a formula.
        floor_level: Confidence of the floor otherwise.
        proven: What is shown as proven of it; null if nothing, or if no proof is about this definition.
        proof_level: Confidence of what is proven.
        warnings: Why not to trust the estimate, in words.
    """

    name: str
    meaning: str
    definition: str
    parameter: str
    multiplies_odds: bool
    p5: Number
    p50: Number
    p95: Number
    mean: Number
    mean_without_constant: Number
    half_median: Number | None
    tail_prior_share: float
    floor: Number
    floor_is_exact: bool
    floor_level: float | None
    proven: float | None
    proof_level: float
    warnings: list[str]


@dataclass(frozen=True)
class ParameterResult(Record):
    """The posterior of one parameter.

    Attributes:
        symbol: How it is written.
        p5: 5th percentile.
        p50: Median.
        p95: 95th percentile.
        mean: Mean.
        tail_prior_share: How much of the upper tail is the prior's; null for what is no parameter of the definition.
        floor: What the sampling alone gives away, at least; null likewise.
    """

    symbol: str
    p5: Number
    p50: Number
    p95: Number
    mean: Number
    tail_prior_share: float | None
    floor: Number | None


@dataclass(frozen=True)
class PosteriorResult(Record):
    """The posterior of one definition, from the errors of one variant.

    Attributes:
        method: How it was computed.
        status: Whether to believe it.
        num_nodes: Number of nodes that count.
        num_left_out: Number of nodes that do not.
        num_constant: Number of nodes whose decision never varies.
        prior: The prior of ε.
        strength: The attack's strength, if it is fixed.
        strength_prior: Its prior otherwise.
        parameters: What it says of each parameter.
    """

    method: str
    status: str
    num_nodes: int
    num_left_out: int
    num_constant: int
    prior: Any
    strength: float | None
    strength_prior: dict[str, float] | None
    parameters: dict[str, ParameterResult]


@dataclass(frozen=True)
class ErrorTotals(Record):
    """Errors over all nodes and models.

    Attributes:
        false_positives: Non-members taken for members.
        num_out: Challenges about non-members.
        false_negatives: Members taken for non-members.
        num_in: Challenges about members.
    """

    false_positives: int
    num_out: int
    false_negatives: int
    num_in: int


@dataclass(frozen=True)
class VariantResult(Record):
    """One attack and decision rule.

    Attributes:
        label: What it is called.
        errors: How often it erred.
        accuracy: Share of its decisions that are right.
        auc: Area under its ROC curve.
        tpr_at_fpr: Its true positive rates, by false positive rate.
        posteriors: What its errors say about ε, by definition.
    """

    label: str
    errors: ErrorTotals
    accuracy: float
    auc: float
    tpr_at_fpr: dict[str, float]
    posteriors: dict[str, PosteriorResult]


@dataclass(frozen=True)
class AnswerResult(Record):
    """What to tell people, in this order.

    Attributes:
        verdict: One sentence for the reader in a hurry.
        proven: Odds that an adversary provably reaches.
        guaranteed: What the model guarantees by a proof, and the range that is left; empty if it guarantees nothing.
        exposure: How many training nodes can be named from one released model.
        floor: What the sampling alone gives away.
        estimated: The paper's ε; empty where no leakage was found, since it means nothing there.
        warnings: Why not to trust the estimate.
    """

    verdict: str
    proven: str
    guaranteed: str
    exposure: str
    floor: str
    estimated: str
    warnings: list[str]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What stands below the verdict, each with its name."""
        names = ("proven", "guaranteed", "exposure", "floor", "estimated")
        return [(name, getattr(self, name)) for name in names if getattr(self, name)]


@dataclass(frozen=True)
class GuaranteeResult(Record):
    """What the model guarantees by a proof.

    Attributes:
        mechanism: What gives the guarantee.
        epsilon: ε of MDP.
        delta: δ of MDP; 0 for a pure guarantee.
        distance: How many memberships may change with one under the plan's sampler.
        epsilon_right: ε_R is at most this.
        epsilon_left: ε_L is at most this.
        mp: The ε of MP is at most this.
    """

    mechanism: str
    epsilon: float
    delta: float
    distance: int
    epsilon_right: Number
    epsilon_left: Number
    mp: Number


@dataclass(frozen=True)
class GraphResult(Record):
    """The graph that was audited.

    Attributes:
        name: What it is called.
        source: Where it came from; empty if it was given as an object.
        content_hash: Hash of its content.
        num_nodes: Number of nodes.
        num_edges: Number of edges.
        num_features: Number of features.
        num_classes: Number of classes.
    """

    name: str
    source: str
    content_hash: str
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int


@dataclass(frozen=True)
class ModelsResult(Record):
    """The shadow models.

    Attributes:
        trained: Number of models.
        failed: Numbers of those that failed.
        train_accuracy: Mean accuracy on training nodes; null if unknown.
        held_out_accuracy: Mean accuracy on other nodes; null if unknown.
    """

    trained: int
    failed: list[int]
    train_accuracy: float | None
    held_out_accuracy: float | None


@dataclass(frozen=True)
class NodesResult(Record):
    """The nodes.

    Attributes:
        audited: Number of nodes that the main variant decides about.
        not_auditable: Number of nodes that it cannot decide about.
        constant_decision: Number of nodes whose decision never varies.
        level: Level of the intervals of a node's ε.
        most_exposed: Numbers of the twenty most exposed.
    """

    audited: int
    not_auditable: int
    constant_decision: int
    level: float
    most_exposed: list[int]


@dataclass(frozen=True)
class TestResult(Record):
    """The permutation test.

    Attributes:
        is_leakage_found: Whether it found leakage.
        p_value: Its p-value.
        statistic: The attack's statistic.
        null_statistics: The same with permuted memberships.
    """

    __test__ = False  # nothing for pytest to collect

    is_leakage_found: bool
    p_value: float
    statistic: float
    null_statistics: list[float]


@dataclass(frozen=True)
class PriorsResult(Record):
    """What the sampling alone gives away.

    Attributes:
        num_draws: Number of draws behind the priors; 0 if they come from a formula.
        floor_right: Log-odds that some node was in, at least.
        floor_left: Log-odds that some node was not in, at least.
        level: Confidence of both; null if they come from a formula.
    """

    num_draws: int
    floor_right: Number
    floor_left: Number
    level: float | None


@dataclass(frozen=True)
class DriverResult(Record):
    """A node that a posterior depends on.

    Attributes:
        node: Its number or name.
        shift: How far it raises the posterior mean; null if unknown.
        is_constant: Whether the decision about it never varies.
    """

    node: int | str
    shift: Number | None
    is_constant: bool


@dataclass(frozen=True)
class AuditResult(Record):
    """Everything that an audit found out, but for what is about single nodes and models.

    Attributes:
        format: Format of the file.
        bmpaudit: Version of the program that made it.
        fingerprint: Tells audits apart whose answers may differ.
        title: What was audited, in a few words.
        is_leakage_found: Whether the permutation test found leakage, or the guesses prove it.
        answer: The answer in words.
        next: What to do next.
        cautions: What to know before trusting it.
        is_not: What the answer does not say.
        guarantee: What the model guarantees by a proof; null if it guarantees nothing.
        releases: What is known of each release, by its label, the main one first.
        headline: Every estimated ε of the main variant.
        graph: The graph that was audited.
        plan: What was done, as in the plan file.
        proof_level: Confidence of what is proven.
        proof_method: Method of the proofs.
        priors: What the sampling alone gives away.
        shadow_models: The shadow models.
        nodes: The nodes.
        permutation_test: The permutation test.
        variants: Each attack and decision rule, by name, the plan's first one first.
        main_variant: The variant that the headline is about.
        drivers: By definition and parameter (`bmp epsilon_right`), the nodes that move the posterior most.
        notes: What was overridden or is unusual.
        timings: Seconds that each step took.
    """

    format: Literal[4]
    bmpaudit: str
    fingerprint: str
    title: str
    is_leakage_found: bool
    answer: AnswerResult
    next: list[str]
    cautions: list[str]
    is_not: list[str]
    guarantee: GuaranteeResult | None
    releases: dict[str, ReleaseResult]
    headline: list[EpsilonResult]
    graph: GraphResult
    plan: dict[str, Any]
    proof_level: float
    proof_method: Literal["one-guess", "prequential"]
    priors: PriorsResult
    shadow_models: ModelsResult
    nodes: NodesResult
    permutation_test: TestResult
    variants: dict[str, VariantResult]
    main_variant: str
    drivers: dict[str, list[DriverResult]]
    notes: list[str]
    timings: dict[str, float]

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
    """The result in a summary.

    Raises:
        ValueError: naming the first key that is missing, unknown or of another kind.
    """
    result = decode(AuditResult, summary)
    if not result.releases or result.main_variant not in result.variants:
        raise ValueError("a summary must have a release, and its main variant")
    return result
