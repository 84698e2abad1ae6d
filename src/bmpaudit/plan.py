"""What an audit is to do: one plan, its TOML file, its gate and its keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import tomli_w
from pydantic import BeforeValidator, Field, ValidationInfo

from bmpaudit import registry
from bmpaudit.attack import DecisionSettings
from bmpaudit.estimation import NormalPrior
from bmpaudit.io.readers import read_toml
from bmpaudit.models import Training
from bmpaudit.proof.exposure import PRECISIONS
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
    STRICT,
    UntrustedPart,
    explain,
    make,
    unknown_key,
)
from bmpaudit.shadow import ShadowPlan, View
from bmpaudit.shadow.plan import engine_of
from bmpaudit.util.errors import DataError, InputError, UntrustedCodeError

__all__ = ["AuditPlan", "Gate"]

LARGEST = 100.0  # e^100 : 1 is beyond anything that can be proven or estimated


@dataclass(frozen=True)
class ExposureLimit:
    """At most so many nodes may be named correctly from one released model, at a precision.

    Attributes:
        nodes: Number of nodes, on average over models.
        precision: How sure the adversary wants to be, one of the exposure curve's precisions.
    """

    nodes: float
    precision: float

    @classmethod
    def parse(cls, text: str) -> ExposureLimit:
        """From `N@P`.

        >>> ExposureLimit.parse("10@0.99")
        ExposureLimit(nodes=10.0, precision=0.99)

        Raises:
            InputError: if it is not of that form.
        """
        try:
            nodes, precision = map(float, text.split("@"))
        except ValueError:
            raise InputError(f"must be N@P, such as 10@0.99, got {text!r}") from None
        return cls(nodes, precision)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.nodes) and self.nodes >= 0):
            raise InputError(f"must allow a number of nodes of at least 0, got {self.nodes:g}")
        if self.precision not in PRECISIONS:
            listed = ", ".join(f"{precision:g}" for precision in PRECISIONS)
            raise InputError(f"must have a precision of the exposure curve ({listed}), got {self.precision:g}")

    def __str__(self) -> str:
        return f"{self.nodes:g}@{self.precision:g}"


def _limits(value: Any, info: ValidationInfo) -> tuple[ExposureLimit, ...]:
    try:
        limits = tuple(map(_limit, value if isinstance(value, (list, tuple)) else (value,)))
    except InputError as wrong:
        raise InputError(f"gate.{info.field_name} {wrong}") from None
    precisions = [limit.precision for limit in limits]
    for precision in precisions:
        if precisions.count(precision) > 1:
            raise InputError(f"gate.{info.field_name} must name each precision once, got {precision:g} twice")
    return limits


def _limit(value: Any) -> ExposureLimit:
    if isinstance(value, ExposureLimit):
        return value
    if not isinstance(value, str):
        raise InputError(f"must be N@P, such as 10@0.99, got {value!r}")
    return ExposureLimit.parse(value)


# Odds may be limited to less than 1 : 1; by how much they change, to a factor of at least 1.
Epsilon = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
MpEpsilon = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Limits = Annotated[tuple[ExposureLimit, ...], BeforeValidator(_limits)]


class Gate(pydantic.BaseModel):
    """Thresholds that `check` holds an audit against; docs/gate.md says which to choose.

    Attributes:
        release: Release that is checked, such as clean or noisy; the plan's first if empty.
        max_proven_right: Largest ε_R that may be proven.
        max_proven_left: Largest ε_L that may be proven.
        max_proven_mp: Largest ε of MP that may be proven.
        max_exposure: Most members named correctly per released model at a precision, N@P; or a list of these.
        max_exposure_non_members: Most non-members named correctly per released model at a precision, N@P; or a list.
        max_estimated_right: Largest ε_R that may be estimated.
        max_estimated_left: Largest ε_L that may be estimated.
        max_estimated_mp: Largest ε of MP that may be estimated.

    >>> Gate(max_proven_right=3, max_exposure="10@0.99").to_table()
    {'max_proven_right': 3.0, 'max_exposure': ['10@0.99']}
    """

    model_config = STRICT

    release: str = ""
    max_proven_right: Epsilon | None = None
    max_proven_left: Epsilon | None = None
    max_proven_mp: MpEpsilon | None = None
    max_exposure: Limits = ()
    max_exposure_non_members: Limits = ()
    max_estimated_right: Epsilon | None = None
    max_estimated_left: Epsilon | None = None
    max_estimated_mp: MpEpsilon | None = None

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except pydantic.ValidationError as wrong:
            raise InputError(explain("gate", wrong, list(type(self).model_fields))) from None

    def replace(self, **changes: Any) -> Gate:
        """The gate with other values, checked again."""
        return Gate(**{**dict(self), **changes})

    @property
    def has_thresholds(self) -> bool:
        """Whether there is anything to check."""
        return bool(self.replace(release="").to_table())

    def to_table(self) -> dict[str, Any]:
        """The values of a plan file's section `[gate]`; what is not limited is left out."""
        return {
            name: list(map(str, value)) if isinstance(value, tuple) else value
            for name, value in self
            if value not in (None, (), "")
        }


# The plan of an audit: everything that changes its answer, nothing that only changes its speed, and a gate.


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


# The plan as a TOML file: unknown keys and impossible values are refused, naming the key and what is allowed.


HEADING = (
    "# The plan of an audit: everything that changes its answer.",
    "# Run it with: bmpaudit audit --plan FILE --out DIR",
    "",
)
GRAPH_HELP = "Name of a data set, .npz archive, folder with nodes and edges tables, or module:function"
COMMENT_COLUMN = 44
GATE_HELP = "Thresholds for bmpaudit check (docs/gate.md); they change no answer"
EXAMPLE_GATE = Gate(max_proven_right=3.0, max_exposure="10@0.99")


@dataclass(frozen=True)
class PlanFile:
    """What a plan file says.

    Attributes:
        graph: Name of a data set, path, or module:function; empty if the file does not say.
        plan: Everything else.
    """

    graph: str
    plan: AuditPlan


def read_plan(path: str | Path, *, trust_code: bool = False) -> PlanFile:
    """Reads a plan file.

    Args:
        path: The file.
        trust_code: Whether to import the parts that it names `module:Name`. If not, such a part is an `UntrustedPart`,
            which cannot be used.

    Raises:
        DataError: if there is no such file or it is not TOML.
        InputError: naming the file, the key and what is allowed, if it says something impossible.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file; `bmpaudit plan init` writes one")
    table = read_toml(path)
    try:
        return parse_plan(table, trust_code=trust_code)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None


def parse_plan(table: Mapping[str, Any], *, trust_code: bool = True) -> PlanFile:
    """From nested values, as TOML has them, to a plan."""
    keys = plan_keys()
    graph = table.get("graph", "")
    if not isinstance(graph, str):
        raise InputError(f"graph must be a string, got {graph!r}")
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "graph":
            continue
        if name == "sweep":
            raise InputError("it has a table [sweep]: run it with bmpaudit sweep")
        if name not in _sections(keys):
            if name not in keys or keys[name].section:
                raise InputError(unknown_key("", name, _top_level(keys)))
            values[name] = value
        elif not isinstance(value, Mapping):
            raise InputError(f"{name} must be a table, as in [{name}], got {value!r}")
        elif name in keys:  # a section that is one part
            values[name] = _with_name(keys[name], name, value)
        else:
            values |= _section_values(name, value, keys)
    with trusting_code(trust_code):
        return PlanFile(graph, AuditPlan(**values))


def _with_name(key: PlanKey, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A part's table; without a name it is the default part with other settings."""
    if not key.kind or "name" in value:
        return dict(value)
    return {"name": AuditPlan.model_fields[name].default, **value}


def _section_values(section: str, table: Mapping[str, Any], keys: Mapping[str, PlanKey]) -> dict[str, Any]:
    allowed = [name for name, key in keys.items() if key.section == section]
    for name in table:
        if name not in allowed:
            raise InputError(unknown_key(section, name, allowed))
    return dict(table)


def _sections(keys: Mapping[str, PlanKey]) -> list[str]:
    return list(dict.fromkeys(key.section for key in keys.values() if key.section))


def _top_level(keys: Mapping[str, PlanKey]) -> list[str]:
    return ["graph", *(name for name, key in keys.items() if not key.section), *_sections(keys)]


def plan_table(plan: AuditPlan, graph: str) -> dict[str, Any]:
    """The nested values of a plan file, from which `parse_plan` makes the same plan again."""
    table: dict[str, Any] = {"graph": graph}
    for name, key in plan_keys().items():
        if name == "training" and plan.shadow_plan.training is None:
            continue  # the model brings its own, or was trained elsewhere: nothing is claimed about how
        if name == "gate" and plan.gate == Gate():
            continue
        value = plain_value(key, getattr(plan, name))
        if key.section in ("", name):
            table[name] = value
        else:
            table.setdefault(key.section, {})[name] = value
    return table


def plain_value(key: PlanKey, value: Any) -> Any:
    """A field of a plan as a file holds it."""
    if isinstance(value, Training):
        return registry.settings_of(value)
    if isinstance(value, Gate):
        return value.to_table()
    if not key.kind or isinstance(value, str):
        return float(value) if isinstance(value, float) else value
    if key.is_list:
        return [_name_or_table(key.kind, part) for part in value]
    return registry.table_of(key.kind, value) if key.section == key.kind else _name_or_table(key.kind, value)


def _name_or_table(kind: str, part: Any) -> Any:
    table = registry.table_of(kind, part)
    return table["name"] if len(table) == 1 else table


def format_plan(plan: AuditPlan, graph: str) -> str:
    """The plan as TOML, from which `read_plan` makes the same plan again."""
    return tomli_w.dumps(plan_table(plan, graph))


def plan_template(plan: AuditPlan, graph: str) -> str:
    """The plan as TOML with a comment on every key."""
    lines = [*HEADING]
    for key, value in plan_table(plan, graph).items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]"]
            lines += [_line(name, part, _comment(plan, key, name)) for name, part in value.items()]
        else:
            lines.append(_line(key, value, GRAPH_HELP if key == "graph" else _comment(plan, "", key)))
    if plan.gate == Gate():
        example = EXAMPLE_GATE.to_table()
        lines += ["", f"# {'[gate]':<{COMMENT_COLUMN}} # {GATE_HELP}"]
        lines += [f"# {_line(name, value, _comment(plan, 'gate', name))}" for name, value in example.items()]
    return "\n".join(lines) + "\n"


def _comment(plan: AuditPlan, section: str, name: str) -> str:
    keys = plan_keys()
    is_part = section in keys  # [sampler], [model], [training], [attack]
    if is_part and name != "name":
        part = getattr(plan, section)
        return "" if isinstance(part, UntrustedPart) else registry.field_help(type(part)).get(name, "")
    about = AuditPlan.model_fields[section if is_part else name].description or ""
    kind = keys[section if is_part else name].kind
    return f"{about}: {', '.join(ENTRIES[kind])}, or module:Name" if kind else about


def _line(key: str, value: Any, comment: str) -> str:
    # Through an inline table: everything stays on one line.
    text = f"{key} = {_inline(value)}"
    return f"{text:<{COMMENT_COLUMN}} # {comment}".rstrip(" #")


def _inline(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_inline(part)}' for name, part in value.items())}}}"
    return tomli_w.dumps({"item": value}).strip().removeprefix("item = ")
