"""What an audit is to do: one plan, its TOML file, its gate and its keys."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, ValidationInfo

from bmpaudit import estimation, models, registry, shadow
from bmpaudit.attack import DecisionSettings
from bmpaudit.io.readers import read_toml
from bmpaudit.proof.exposure import PRECISIONS
from bmpaudit.registry import ENTRIES, STRICT, UntrustedPart
from bmpaudit.releases import ACCESSES, LABELS, QUERIES, SCORES, WEIGHTS, gives_embeddings, gives_labels_only
from bmpaudit.shadow.plan import engine_of
from bmpaudit.util.errors import DataError, InputError, UntrustedCodeError

__all__ = ["AuditPlan", "Gate"]

LARGEST = 100.0  # e^100 : 1 is beyond anything that can be proven or estimated


@dataclass(frozen=True)
class ExposureLimit:
    """At most so many nodes may be named correctly from one released model, on average, at one of the precisions."""

    nodes: float
    precision: float

    @classmethod
    def parse(cls, text: Any) -> Self:
        """From `N@P`; anything else is an InputError.

        >>> ExposureLimit.parse("10@0.99")
        ExposureLimit(nodes=10.0, precision=0.99)
        """
        try:
            nodes, precision = map(float, str(text).split("@"))
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
    given = value if isinstance(value, (list, tuple)) else (value,)
    try:
        limits = tuple(each if isinstance(each, ExposureLimit) else ExposureLimit.parse(each) for each in given)
    except InputError as wrong:
        raise InputError(f"gate.{info.field_name} {wrong}") from None
    precisions = [limit.precision for limit in limits]
    for precision in precisions:
        if precisions.count(precision) > 1:
            raise InputError(f"gate.{info.field_name} must name each precision once, got {precision:g} twice")
    return limits


# Odds may be limited to less than 1 : 1; by how much they change, to a factor of at least 1.
Epsilon = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
MpEpsilon = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
Limits = Annotated[tuple[ExposureLimit, ...], BeforeValidator(_limits)]


class Gate(BaseModel):
    """Thresholds that `check` holds an audit against; docs/gate.md says which to choose.

    Attributes:
        release: Release that is checked, such as clean or noisy; the plan's first if empty.
        access: What the adversary sees of it: labels, scores, queries or weights; as it is released if empty.
        max_proven_right: Largest ε_R that may be proven.
        max_proven_left: Largest ε_L that may be proven.
        max_proven_mp: Largest ε of MP that may be proven.
        max_exposure: Most members named correctly per released model at a precision, N@P; or a list of these.
        max_exposure_non_members: Most non-members named correctly per released model at a precision, N@P; or a list.
        max_node_exposure: Largest share of the models with a node that may name it with 99 % certainty, for any node.
        max_leaking_nodes: Most nodes that may be proven to leak.
        max_estimated_right: Largest ε_R that may be estimated.
        max_estimated_left: Largest ε_L that may be estimated.
        max_estimated_mp: Largest ε of MP that may be estimated.

    >>> Gate(max_proven_right=3, max_exposure="10@0.99").to_table()
    {'max_proven_right': 3.0, 'max_exposure': ['10@0.99']}
    """

    model_config = STRICT

    release: str = ""
    access: Literal["", "labels", "scores", "queries", "weights"] = ""
    max_proven_right: Epsilon | None = None
    max_proven_left: Epsilon | None = None
    max_proven_mp: MpEpsilon | None = None
    max_exposure: Limits = ()
    max_exposure_non_members: Limits = ()
    max_node_exposure: Annotated[float, Field(ge=0, lt=1)] | None = None
    max_leaking_nodes: Annotated[int, Field(ge=0)] | None = None
    max_estimated_right: Epsilon | None = None
    max_estimated_left: Epsilon | None = None
    max_estimated_mp: MpEpsilon | None = None

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as wrong:
            raise InputError(registry.explain("gate", wrong, list(type(self).model_fields))) from None

    def replace(self, **changes: Any) -> "Gate":
        """The gate with other values, checked again."""
        return Gate(**{**dict(self), **changes})

    @property
    def has_thresholds(self) -> bool:
        """Whether there is anything to check."""
        return bool(self.replace(release="", access="").to_table())

    def to_table(self) -> dict[str, Any]:
        """The values of a plan file's section `[gate]`; what is not limited is left out."""
        return {
            name: list(map(str, value)) if isinstance(value, tuple) else value
            for name, value in self
            if value not in (None, (), "")
        }


# The plan of an audit: everything that changes its answer, nothing that only changes its speed, and a gate.


FEWEST_SHADOWS = 8
FEWEST_PERMUTATIONS = 199  # with fewer, no node can be proven to leak
METHODS = {"attack": "score", "rules": "decision_score", "definitions": "epsilons"}  # that later steps call
PARTS = {
    **{kind: kind for kind in (registry.ENGINE, registry.SAMPLER, registry.MODEL, registry.STATISTIC, registry.ATTACK)},
    "releases": registry.RELEASE,
    "queries": registry.QUERY,
    "rules": registry.RULE,
    "definitions": registry.DEFINITION,
}
"""The fields of a plan that take parts, with their kind; those in the plural take several."""
SECTIONS = {
    **{name: (name,) for name in ("sampler", "model", "training")},
    "views": ("releases", "release_as", "queries", "statistic"),
    "attack": ("attack",),
    "decision": ("rules", "cost_false_positive", "cost_false_negative", "unfittable", "prior_source", "prior_draws"),
    "estimation": ("definitions", "prior_mean", "prior_variance", "strength", "level"),
    "proof": ("proof_level", "proof_method"),
    "gate": ("gate",),
}
"""The tables of a plan file, with the fields of the plan that stand in each; the others stand outside of tables."""

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
    """What a field of the plan is in one line, its table in a file, the kind of the parts it takes; "" for neither."""

    about: str
    section: str
    kind: str
    is_list: bool


def _built(value: Any, info: ValidationInfo) -> Any:
    """A part, or several as a tuple, from what a plan file or a caller has in their place."""
    name = str(info.field_name)
    key, may_run_code = plan_keys()[name], _may_run_code.get()
    if not key.is_list:
        return registry.build(key.kind, value, trust_code=may_run_code)
    values = value if isinstance(value, (list, tuple)) else (value,)
    parts = tuple(registry.build(key.kind, each, trust_code=may_run_code) for each in values)
    labels = [registry.label(key.kind, part) for part in parts]
    if not parts or len(set(labels)) < len(labels):
        raise InputError(f"{name} must name at least one, each once, got {', '.join(labels) or 'none'}")
    return parts


def _engine(value: Any) -> Any:
    """A plan holds the name of its engine, which is built when it is first needed."""
    is_code = isinstance(value, str) and value not in ENTRIES[registry.ENGINE] and registry.is_code(value)
    return UntrustedPart(registry.ENGINE, value) if is_code and not _may_run_code.get() else value


def _from_table(make: Callable[[dict[str, Any]], Any]) -> BeforeValidator:
    return BeforeValidator(lambda value: make(value) if isinstance(value, dict) else value)


Share = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[Any, BeforeValidator(_built), Field(validate_default=True)]
Parts = Annotated[tuple[Any, ...], BeforeValidator(_built), Field(validate_default=True)]


def _defaults_for(model: Any) -> dict[str, Any]:
    """Fields whose default follows the model, where it is not that of most models."""
    engine = engine_of(model)
    of_tables = {"releases": ("clean",), "queries": ("full",)} if engine == "sklearn" else {}
    return {} if engine == "native" else {"engine": engine, **of_tables}


class AuditPlan(BaseModel):
    """Everything that changes the answer of an audit, and the gate that the answer has to pass.

    Parts are given as objects, by name (`sampler="snowball"`), as tables (`{"name": "snowball", "fan_out": 3}`), or as
    `module:Name` for your own. What is said of the fields here is what help texts and the comments of a plan file say.

    Attributes:
        shadows: Number of shadow models; can be raised later.
        seed: Random seed.
        engine: What trains the models.
        keep_weights: Keep the models' weights, so that releases and queries can be added later.
        permutations: Shuffles of memberships in the permutation test.
        sampler: How the training sample is drawn.
        model: Model that is trained.
        training: How it is trained.
        releases: What is given out, main one first.
        release_as: What the adversary sees of a model: labels, scores, queries of any input, or weights; lesser access
            is audited too.
        queries: How the adversary asks; the first is the main one.
        statistic: Number per node that attacks look at.
        attack: Attack on the shadow models.
        rules: How scores become decisions; the first is the main one.
        cost_false_positive: Cost c0 of a false positive (Theorem 7).
        cost_false_negative: Cost c1 of a false negative (Theorem 7).
        unfittable: Nodes that cannot be attacked are left out, or count as non-members as in the paper.
        prior_source: Priors from a formula or many draws, or from the shadow samples as in the paper.
        prior_draws: Samples drawn for priors that have no formula.
        definitions: Privacy definitions to estimate; bmp for the main variant only.
        prior_mean: Mean of the normal prior of ε.
        prior_variance: Variance of the normal prior of ε.
        strength: Assumed attack strength s, in [0, 1).
        level: Probability of credible intervals.
        proof_level: Confidence of what is proven.
        proof_method: Fixed split of the models, or the form that holds whenever you stop adding models.
        gate: What `bmpaudit check` holds the answer against.

    >>> plan = AuditPlan(sampler="snowball", shadows=64, definitions="bmp-r")
    >>> plan.sampler, plan.title
    (Snowball(train_fraction=0.25, fan_out=5, restart=False, any_order=False, walked_edges=False), 'Snowball 25 %, GCN')
    """

    model_config = STRICT

    shadows: Annotated[int, Field(ge=FEWEST_SHADOWS)] = 1_000
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    engine: Annotated[str | UntrustedPart, BeforeValidator(_engine)] = "native"
    keep_weights: bool = False
    permutations: Annotated[int, Field(ge=FEWEST_PERMUTATIONS)] = 199
    sampler: Part = "uniform"
    model: Part = "gcn"
    training: Annotated[
        models.Training, _from_table(lambda table: registry.make(models.Training, table, "training", ()))
    ] = models.Training()
    releases: Parts = ("clean", "noisy")
    release_as: Literal["labels", "scores", "queries", "weights"] = "weights"
    queries: Parts = ("full", "none")
    statistic: Part = "margin"
    attack: Part = "student"
    rules: Parts = ("strong", "weak")
    cost_false_positive: Positive = 1.0
    cost_false_negative: Positive = 1.0
    unfittable: Literal["leave-out", "non-member"] = "leave-out"
    prior_source: Literal["exact", "shadow-frequency"] = "exact"
    prior_draws: Annotated[int, Field(ge=1)] = 100_000
    definitions: Parts = ("bmp-r", "bmp-l", "mp")
    prior_mean: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    prior_variance: Positive = 10.0
    strength: Annotated[float, Field(ge=0, lt=1)] = 0.0
    level: Share = 0.9
    proof_level: Share = 0.95
    proof_method: Literal["one-guess", "prequential"] = "one-guess"
    gate: Annotated[Gate, _from_table(lambda table: Gate(**table))] = Gate()

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
            follow = {name: value for name, value in _defaults_for(self.model).items() if name not in values}
            if follow:
                super().__init__(**values, **follow)
                object.__setattr__(self, "__pydantic_fields_set__", set(values))
        except ValidationError as wrong:
            raise InputError(registry.explain("", wrong, list(type(self).model_fields))) from None
        with suppress(UntrustedCodeError):
            self.shadow_plan  # noqa: B018 - checks what its parts have to agree on
        if registry.name_of(registry.ATTACK, self.attack) == "rows":
            raise InputError("attack rows needs more than scores: with release_as queries or weights it runs by itself")
        for name, method in METHODS.items():
            value = getattr(self, name)
            for part in value if isinstance(value, tuple) else (value,):
                if not isinstance(part, UntrustedPart) and not callable(getattr(part, method, None)):
                    raise InputError(f"the {PARTS[name]} must have a method {method}, got {part!r}")

    def replace(self, **changes: Any) -> "AuditPlan":
        """The plan with other values, checked again."""
        values = {name: getattr(self, name) for name in self.model_fields_set}  # others may follow the model
        if "model" in changes and self.engine in ENTRIES[registry.ENGINE]:
            values.pop("engine", None)  # the one that fits the new model
        return AuditPlan(**{**values, **changes})

    @property
    def without_gate(self) -> Self:
        """All that the answer depends on."""
        return self.model_copy(update={"gate": Gate()})

    @property
    def shadow_plan(self) -> shadow.ShadowPlan:
        """The part that determines the shadow models."""
        names = [field.name for field in fields(shadow.ShadowPlan) if field.name != "rows"]
        seen = ACCESSES[: ACCESSES.index(self.release_as) + 1]
        rows = tuple(access for access in (QUERIES, WEIGHTS) if access in seen)
        return shadow.ShadowPlan(**{name: getattr(self, name) for name in names}, rows=rows)

    def accesses(self, release: Any) -> tuple[str, ...]:
        """What of a release is attacked by itself, the least first: as far as the models' answers are kept."""
        kept = {each.access for each in self.shadow_plan.row_sets if each.release == release}
        is_built_in = registry.name_of(registry.RELEASE, release) in ENTRIES[registry.RELEASE]
        if is_built_in and self.shadow_plan.keeps_labels and not gives_embeddings(release):
            kept.add(LABELS)
            if self.release_as == LABELS or gives_labels_only(release):
                return (LABELS,)
        return tuple(access for access in ACCESSES if access == SCORES or access in kept)

    @property
    def decision_settings(self) -> DecisionSettings:
        """How decisions are made, and what becomes of nodes that cannot be attacked."""
        return DecisionSettings(self.cost_false_positive, self.cost_false_negative, self.unfittable)

    @property
    def epsilon_prior(self) -> estimation.NormalPrior:
        """The prior of each ε."""
        return estimation.NormalPrior(self.prior_mean, self.prior_variance)

    @property
    def views(self) -> tuple[shadow.View, ...]:
        """Every query of every release."""
        return self.shadow_plan.views

    @cached_property
    def rules_by_name(self) -> dict[str, Any]:
        """The decision rules by their labels."""
        return {registry.label(registry.RULE, rule): rule for rule in self.rules}

    @cached_property
    def definitions_by_name(self) -> dict[str, Any]:
        """The definitions by their labels."""
        return {registry.label(registry.DEFINITION, definition): definition for definition in self.definitions}

    @property
    def title(self) -> str:
        """Sampler and model in a few words."""
        fraction = registry.table_of(registry.SAMPLER, self.sampler).get("train_fraction")
        share = f" {100 * fraction:g} %" if isinstance(fraction, float) else ""
        return f"{registry.title(self.sampler)}{share}, {registry.title(self.model)}"


@cache
def plan_keys() -> dict[str, PlanKey]:
    """Every field of the plan, and where it stands in a file."""
    about = registry.field_help(AuditPlan)
    section_of = {name: section for section, names in SECTIONS.items() for name in names}
    return {
        name: PlanKey(about[name], section_of.get(name, ""), PARTS.get(name, ""), PARTS.get(name, name) != name)
        for name in AuditPlan.model_fields
    }


# The plan as a TOML file: unknown keys and impossible values are refused, naming the key and what is allowed.


HEADING = """# The plan of an audit: everything that changes its answer.
# Run it with: bmpaudit audit --plan FILE --out DIR
"""
GRAPH_HELP = "Name of a data set, .npz archive, folder with nodes and edges tables, or module:function"
COMMENT_COLUMN = 44
GATE_HELP = "Thresholds for bmpaudit check (docs/gate.md); they change no answer"
EXAMPLE_GATE = Gate(max_proven_right=3.0, max_exposure="10@0.99")


@dataclass(frozen=True)
class PlanFile:
    """What a plan file says: the graph (a data set, path or module:function; may be empty), and everything else."""

    graph: str
    plan: AuditPlan


def read_plan(path: str | Path, *, trust_code: bool = False) -> PlanFile:
    """Reads a plan file; without `trust_code` a part that it names `module:Name` is an `UntrustedPart`.

    If it says something impossible, an `InputError` names the file, the key and what is allowed.
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
    top_level = [name for name, key in keys.items() if not key.section]
    graph = table.get("graph", "")
    if not isinstance(graph, str):
        raise InputError(f"graph must be a string, got {graph!r}")
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "sweep":
            raise InputError("it has a table [sweep]: run it with bmpaudit sweep")
        if name in top_level:
            values[name] = value
        elif name in SECTIONS:
            if not isinstance(value, Mapping):
                raise InputError(f"{name} must be a table, as in [{name}], got {value!r}")
            if name in keys:  # a section that is one part; without a name it is the default part with other settings
                default = {"name": AuditPlan.model_fields[name].default} if keys[name].kind else {}
                values[name] = {**default, **value}
                continue
            for field in value:
                if field not in SECTIONS[name]:
                    raise InputError(registry.unknown_key(name, field, SECTIONS[name]))
            values |= value
        elif name != "graph":
            raise InputError(registry.unknown_key("", name, ["graph", *top_level, *SECTIONS]))
    with trusting_code(trust_code):
        return PlanFile(graph, AuditPlan(**values))


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
    if isinstance(value, models.Training):
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
    lines = [HEADING]
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
    key = keys[section if is_part else name]
    return f"{key.about}: {', '.join(ENTRIES[key.kind])}, or module:Name" if key.kind else key.about


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
