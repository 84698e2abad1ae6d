"""The plan of an audit: everything that changes its answer, nothing that only changes its speed, and a gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BeforeValidator, Field, ValidationInfo

from bmpaudit import registry
from bmpaudit.attack import DecisionSettings
from bmpaudit.auditing.gate import Gate
from bmpaudit.errors import InputError, UntrustedCodeError
from bmpaudit.estimation import NormalPrior
from bmpaudit.registry import (
    ATTACK,
    DEFINITION,
    ENGINE,
    ENTRIES,
    MODEL,
    QUERY,
    RELEASE,
    RULE,
    SAMPLER,
    STATISTIC,
    UntrustedPart,
)
from bmpaudit.settings import STRICT, explain, make
from bmpaudit.shadow import ShadowPlan, Training, View
from bmpaudit.shadow.plan import engine_of

FEWEST_SHADOWS = 8
FEWEST_PERMUTATIONS = 19  # with fewer, no p-value is as small as 0.05
METHODS = {ATTACK: "score", RULE: "decision_score", DEFINITION: "epsilons"}  # that later steps call

# Whether code that a plan names may be imported: always, except while a file is read that nobody vouched for.
_may_run_code: ContextVar[bool] = ContextVar("may_run_code", default=True)


@contextmanager
def trusting_code(trust_code: bool) -> Iterator[None]:
    """Within the block, plans import parts named `module:Name`, or hold an `UntrustedPart` in their place."""
    token = _may_run_code.set(trust_code)
    try:
        yield
    finally:
        _may_run_code.reset(token)


@dataclass(frozen=True)
class PlanKey:
    """Where a field of the plan stands in a plan file, and which parts it takes.

    Attributes:
        section: Its table in the file; empty for keys outside of tables.
        kind: The kind of the parts it takes, if it takes parts.
        is_list: Whether it takes several of them.
    """

    section: str = ""
    kind: str = ""
    is_list: bool = False


def _build(kind: str) -> BeforeValidator:
    def build(value: Any) -> Any:
        return registry.build(kind, value, trust_code=_may_run_code.get())

    return BeforeValidator(build)


def _build_all(kind: str) -> BeforeValidator:
    def build(value: Any, info: ValidationInfo) -> tuple[Any, ...]:
        values = value if isinstance(value, (list, tuple)) else (value,)
        parts = tuple(registry.build(kind, each, trust_code=_may_run_code.get()) for each in values)
        labels = [registry.label(kind, part) for part in parts]
        if not parts or len(set(labels)) < len(labels):
            raise InputError(f"{info.field_name} must name at least one, each once, got {', '.join(labels) or 'none'}")
        return parts

    return BeforeValidator(build)


def _engine(value: Any) -> Any:
    """A plan holds the name of its engine, which is built when it is first needed."""
    if isinstance(value, str) and value not in ENTRIES[ENGINE] and registry.is_code(value) and not _may_run_code.get():
        return UntrustedPart(ENGINE, value)
    return value


def _training(value: Any) -> Any:
    return make(Training, value, "training", also=()) if isinstance(value, dict) else value


def _gate(value: Any) -> Any:
    return Gate(**value) if isinstance(value, dict) else value


Share = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _defaults_for(model: Any) -> dict[str, Any]:
    """Fields whose default follows the model, where it is not that of most models."""
    engine = engine_of(model)
    of_tables = {"releases": ("clean",), "queries": ("full",)} if engine == "sklearn" else {}
    return {} if engine == "native" else {"engine": engine, **of_tables}


class AuditPlan(pydantic.BaseModel):
    """Everything that changes the answer of an audit, and the gate that the answer has to pass.

    Parts are given as objects, by name (`sampler="snowball"`), as tables (`{"name": "snowball", "fan_out": 3}`), or as
    `module:Name` for your own. The descriptions of the fields are the help texts of the command line and the comments
    of a plan file.

    >>> plan = AuditPlan(sampler="snowball", shadows=64, definitions="bmp-r")
    >>> plan.sampler, plan.title
    (Snowball(train_fraction=0.25, fan_out=5, restart=False, any_order=False, walked_edges=False), 'Snowball 25 %, GCN')
    """

    model_config = STRICT

    shadows: Annotated[
        int, PlanKey(), Field(ge=FEWEST_SHADOWS, description="Number of shadow models; can be raised later")
    ] = 1_000
    seed: Annotated[int, PlanKey(), Field(ge=0, lt=2**63, description="Random seed")] = 0
    engine: Annotated[
        str | UntrustedPart, PlanKey(kind=ENGINE), Field(description="What trains the models"), BeforeValidator(_engine)
    ] = "native"
    keep_weights: Annotated[
        bool, PlanKey(), Field(description="Keep the models' weights, so that releases and queries can be added later")
    ] = False
    permutations: Annotated[
        int,
        PlanKey(),
        Field(ge=FEWEST_PERMUTATIONS, description="Shuffles of memberships in the permutation test"),
    ] = 19
    sampler: Annotated[
        Any,
        PlanKey("sampler", SAMPLER),
        Field(description="How the training sample is drawn", validate_default=True),
        _build(SAMPLER),
    ] = "uniform"
    model: Annotated[
        Any, PlanKey("model", MODEL), Field(description="Model that is trained", validate_default=True), _build(MODEL)
    ] = "gcn"
    training: Annotated[Training, PlanKey("training"), BeforeValidator(_training)] = Training()
    releases: Annotated[
        tuple[Any, ...],
        PlanKey("views", RELEASE, is_list=True),
        Field(description="What is given out, main one first", validate_default=True),
        _build_all(RELEASE),
    ] = ("clean", "noisy")
    queries: Annotated[
        tuple[Any, ...],
        PlanKey("views", QUERY, is_list=True),
        Field(description="How the adversary asks; the first is the main one", validate_default=True),
        _build_all(QUERY),
    ] = ("full", "none")
    statistic: Annotated[
        Any,
        PlanKey("views", STATISTIC),
        Field(description="Number per node that attacks look at", validate_default=True),
        _build(STATISTIC),
    ] = "margin"
    attack: Annotated[
        Any,
        PlanKey("attack", ATTACK),
        Field(description="Attack on the shadow models", validate_default=True),
        _build(ATTACK),
    ] = "student"
    rules: Annotated[
        tuple[Any, ...],
        PlanKey("decision", RULE, is_list=True),
        Field(description="How scores become decisions; the first is the main one", validate_default=True),
        _build_all(RULE),
    ] = ("strong", "weak")
    cost_false_positive: Annotated[
        Positive, PlanKey("decision"), Field(description="Cost c0 of a false positive (Theorem 7)")
    ] = 1.0
    cost_false_negative: Annotated[
        Positive, PlanKey("decision"), Field(description="Cost c1 of a false negative (Theorem 7)")
    ] = 1.0
    unfittable: Annotated[
        Literal["leave-out", "non-member"],
        PlanKey("decision"),
        Field(description="Nodes that cannot be attacked are left out, or count as non-members as in the paper"),
    ] = "leave-out"
    prior_source: Annotated[
        Literal["exact", "shadow-frequency"],
        PlanKey("decision"),
        Field(description="Priors from a formula or many draws, or from the shadow samples as in the paper"),
    ] = "exact"
    prior_draws: Annotated[
        int, PlanKey("decision"), Field(ge=1, description="Samples drawn for priors that have no formula")
    ] = 100_000
    definitions: Annotated[
        tuple[Any, ...],
        PlanKey("estimation", DEFINITION, is_list=True),
        Field(description="Privacy definitions to estimate; bmp for the main variant only", validate_default=True),
        _build_all(DEFINITION),
    ] = ("bmp-r", "bmp-l", "mp")
    prior_mean: Annotated[
        float, PlanKey("estimation"), Field(allow_inf_nan=False, description="Mean of the normal prior of ε")
    ] = 0.0
    prior_variance: Annotated[
        Positive, PlanKey("estimation"), Field(description="Variance of the normal prior of ε")
    ] = 10.0
    strength: Annotated[
        float, PlanKey("estimation"), Field(ge=0, lt=1, description="Assumed attack strength s, in [0, 1)")
    ] = 0.0
    level: Annotated[Share, PlanKey("estimation"), Field(description="Probability of credible intervals")] = 0.9
    proof_level: Annotated[Share, PlanKey("proof"), Field(description="Confidence of what is proven")] = 0.95
    proof_method: Annotated[
        Literal["one-guess", "prequential"],
        PlanKey("proof"),
        Field(description="Fixed split of the models, or the form that holds whenever you stop adding models"),
    ] = "one-guess"
    gate: Annotated[Gate, PlanKey("gate"), BeforeValidator(_gate)] = Gate()

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
            follow = {name: value for name, value in _defaults_for(self.model).items() if name not in values}
            if follow:
                super().__init__(**values, **follow)
                object.__setattr__(self, "__pydantic_fields_set__", set(values))
        except pydantic.ValidationError as wrong:
            raise InputError(explain("", wrong, list(type(self).model_fields))) from None
        with suppress(UntrustedCodeError):
            self.shadow_plan  # noqa: B018 - checks what its parts have to agree on
        for kind, parts in ((ATTACK, (self.attack,)), (RULE, self.rules), (DEFINITION, self.definitions)):
            for part in parts:
                if not isinstance(part, UntrustedPart) and not callable(getattr(part, METHODS[kind], None)):
                    raise InputError(f"the {kind} must have a method {METHODS[kind]}, got {part!r}")

    def replace(self, **changes: Any) -> AuditPlan:
        """The plan with other values, checked again."""
        values = {name: getattr(self, name) for name in self.model_fields_set}  # others may follow the model
        if "model" in changes and self.engine in ENTRIES[ENGINE]:
            values.pop("engine", None)  # the one that fits the new model
        return AuditPlan(**{**values, **changes})

    @property
    def without_gate(self) -> AuditPlan:
        """All that the answer depends on."""
        return self.model_copy(update={"gate": Gate()})

    @property
    def shadow_plan(self) -> ShadowPlan:
        """The part that determines the shadow models."""
        return ShadowPlan(
            sampler=self.sampler,
            model=self.model,
            training=self.training,
            releases=self.releases,
            queries=self.queries,
            statistic=self.statistic,
            seed=self.seed,
            engine=self.engine,
        )

    @property
    def decision_settings(self) -> DecisionSettings:
        """How decisions are made, and what becomes of nodes that cannot be attacked."""
        return DecisionSettings(self.cost_false_positive, self.cost_false_negative, self.unfittable)

    @property
    def epsilon_prior(self) -> NormalPrior:
        """The prior of each ε."""
        return NormalPrior(self.prior_mean, self.prior_variance)

    @property
    def views(self) -> tuple[View, ...]:
        """Every query of every release."""
        return self.shadow_plan.views

    @cached_property
    def rules_by_name(self) -> dict[str, Any]:
        """The decision rules by their labels."""
        return {registry.label(RULE, rule): rule for rule in self.rules}

    @cached_property
    def definitions_by_name(self) -> dict[str, Any]:
        """The definitions by their labels."""
        return {registry.label(DEFINITION, definition): definition for definition in self.definitions}

    @property
    def title(self) -> str:
        """Sampler and model in a few words."""
        fraction = registry.table_of(SAMPLER, self.sampler).get("train_fraction")
        share = f" {100 * fraction:g} %" if isinstance(fraction, float) else ""
        return f"{registry.title(self.sampler)}{share}, {registry.title(self.model)}"


def plan_keys() -> dict[str, PlanKey]:
    """Every field of the plan, and where it stands in a file."""
    return {
        name: next(item for item in info.metadata if isinstance(item, PlanKey))
        for name, info in AuditPlan.model_fields.items()
    }
