"""The plan of an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bmpaudit import registry
from bmpaudit.attack import AttackSettings, Decision
from bmpaudit.checks import check_at_least_one
from bmpaudit.errors import InputError
from bmpaudit.estimation import NormalPrior
from bmpaudit.samplers import AnySampler, Uniform
from bmpaudit.shadow import ALL_VIEWS, GCN, QueryView, ShadowPlan, TorchModel, Training
from bmpaudit.shadow.models import BuiltInModel

PriorSource = Literal["exact", "shadow-frequency"]
FEWEST_SHADOWS = 8


@dataclass(frozen=True)
class Variant:
    """One way of attacking: what the adversary sees, and how they decide."""

    view: QueryView
    decision: Decision

    @property
    def name(self) -> str:
        """`full_clean_strong`, and so on."""
        return f"{self.view.name}_{self.decision}"

    @property
    def short_label(self) -> str:
        """In three words, for legends."""
        return f"{self.view.edges}, {self.view.output}, {self.decision}"

    @property
    def label(self) -> str:
        """In words."""
        edges = "full edges" if self.view.edges == "full" else "no edges"
        return f"{edges}, {self.view.output} output, {self.decision} decision"


@dataclass(frozen=True)
class AuditPlan:
    """Everything that changes the answer of an audit, and nothing that only changes its speed.

    Attributes:
        sampler: Who is in the training sample.
        model: What is trained.
        training: How.
        num_shadows: Shadow models; may be raised later, and the first ones are kept.
        views: How the trained models are asked; the first one is the main one.
        noise_std: Standard deviation of the noise of noisy views.
        engine: `native` or `torch`.
        decisions: With the prior (`strong`), without (`weak`), or both; the first one is the main one.
        attack: How decisions are made, and on which nodes.
        prior_source: `exact`: by formula, or from `prior_draws` extra samples; `shadow-frequency`: the paper's way.
        prior_draws: Samples for priors without a formula.
        null_permutations: Exchanges of memberships in the null control.
        definitions: What is estimated: `bmp`, which has two parameters, of the main variant, all others of every one.
        epsilon_prior: Prior of each ε.
        strength: Attack strength s that is assumed.
        level: Of credible intervals.
        proof_level: Confidence of the proven bound.
        seed: Of all random numbers.
    """

    sampler: AnySampler = field(default_factory=lambda: Uniform(0.25))
    model: BuiltInModel | TorchModel = field(default_factory=GCN)
    training: Training = field(default_factory=Training)
    num_shadows: int = 1_000
    views: tuple[QueryView, ...] = ALL_VIEWS
    noise_std: float = 0.25
    engine: Literal["native", "torch"] = "native"
    decisions: tuple[Decision, ...] = ("strong", "weak")
    attack: AttackSettings = field(default_factory=AttackSettings)
    prior_source: PriorSource = "exact"
    prior_draws: int = 100_000
    null_permutations: int = 19
    definitions: tuple[str, ...] = ("bmp", "bmp-r", "bmp-l", "mp")
    epsilon_prior: NormalPrior = field(default_factory=NormalPrior)
    strength: float = 0.0
    level: float = 0.9
    proof_level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least_one(prior_draws=self.prior_draws, null_permutations=self.null_permutations)
        if not isinstance(self.num_shadows, int) or self.num_shadows < FEWEST_SHADOWS:
            raise InputError(f"num_shadows must be at least {FEWEST_SHADOWS}, got num_shadows={self.num_shadows}")
        for decision in self.decisions:
            if decision not in get_args(Decision):
                raise InputError(f"decisions must be {' or '.join(get_args(Decision))}, got {decision!r}")
        for name in ("decisions", "definitions"):
            given = getattr(self, name)
            if not given or len(set(given)) != len(given):
                raise InputError(f"{name} must name at least one, each once, got {list(given)}")
        for definition in self.definitions:
            registry.load(registry.DEFINITION, definition)
        if self.prior_source not in get_args(PriorSource):
            raise InputError(
                f"prior_source must be {' or '.join(get_args(PriorSource))}, got prior_source={self.prior_source!r}"
            )
        if not 0 <= self.strength < 1:
            raise InputError(f"strength must be in [0, 1), got strength={self.strength}")
        for name in ("level", "proof_level"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} must be in (0, 1), got {name}={getattr(self, name)}")
        self.shadow_plan  # noqa: B018 - checks the rest

    @property
    def shadow_plan(self) -> ShadowPlan:
        """The part that determines the shadow models."""
        return ShadowPlan(
            sampler=self.sampler,
            model=self.model,
            training=self.training,
            views=self.views,
            noise_std=self.noise_std,
            seed=self.seed,
            engine=self.engine,
        )

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All ways of attacking, the main one first."""
        return tuple(Variant(view, decision) for view in self.views for decision in self.decisions)

    @property
    def main_variant(self) -> Variant:
        """The one that the headline is about."""
        return self.variants[0]

    @property
    def title(self) -> str:
        """Sampler and model in a few words."""
        fraction: Any = getattr(self.sampler, "train_fraction", None)
        share = "" if fraction is None else f" {100 * fraction:g} %"
        sampler = type(self.sampler).__name__ if hasattr(self.sampler, "sample") else "own sampler"
        return f"{sampler}{share}, {type(self.model).__name__}"
