"""The plan as a TOML file: unknown keys and impossible values are refused with the key's name and what is allowed."""

from __future__ import annotations

import dataclasses
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import tomli_w

from bmpaudit.attack import RuleName as Decision
from bmpaudit.errors import DataError, InputError
from bmpaudit.estimation import NormalPrior
from bmpaudit.plan.audit_plan import AttackSettings, AuditPlan, PriorSource
from bmpaudit.plan.comments import COMMENTS, HEADING
from bmpaudit.samplers import Bernoulli, DegreeWeighted, RandomWalk, Snowball, Stratified, Uniform
from bmpaudit.shadow import ALL_VIEWS, GAT, GCN, MLP, QueryView, Training

STRICT = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)

SAMPLERS: dict[str, type[Any]] = {
    "uniform": Uniform,
    "snowball": Snowball,
    "bernoulli": Bernoulli,
    "stratified": Stratified,
    "degree-weighted": DegreeWeighted,
    "random-walk": RandomWalk,
}
MODELS: dict[str, type[Any]] = {"gcn": GCN, "gat": GAT, "mlp": MLP}


@dataclass(frozen=True)
class Queries:
    """The section on how trained models are asked: all edges with all outputs, or the views by name."""

    edges: tuple[typing.Literal["full", "none"], ...] = ("full", "none")
    output: tuple[typing.Literal["clean", "noisy"], ...] = ("clean", "noisy")
    views: tuple[typing.Literal["full_clean", "full_noisy", "none_clean", "none_noisy"], ...] = ()
    noise_std: float = 0.25

    def query_views(self) -> tuple[QueryView, ...]:
        """What is asked, in order."""
        if self.views:
            known = {view.name: view for view in ALL_VIEWS}
            return tuple(known[name] for name in self.views)
        return tuple(QueryView(edges, output) for edges in self.edges for output in self.output)


@dataclass(frozen=True)
class Decisions:
    """What the section on the attack has beside `AttackSettings`."""

    decisions: tuple[Decision, ...] = ("strong", "weak")
    prior_source: PriorSource = "exact"
    prior_draws: int = 100_000
    null_permutations: int = 19


@dataclass(frozen=True)
class Estimation:
    """The section on estimation."""

    definitions: tuple[typing.Literal["bmp", "bmp-r", "bmp-l", "bmp-s", "mp"], ...] = ("bmp", "bmp-r", "bmp-l", "mp")
    prior_mean: float = 0.0
    prior_variance: float = 10.0
    strength: float = 0.0
    level: float = 0.9
    proof_level: float = 0.95


@dataclass(frozen=True)
class TopLevel:
    """The keys outside of sections."""

    graph: str = ""
    shadows: int = 1_000
    seed: int = 0
    engine: typing.Literal["native", "torch"] = "native"


@dataclass(frozen=True)
class PlanFile:
    """What a plan file says.

    Attributes:
        graph: A data set's name, a path, or module:function; empty if the file does not say.
        plan: The rest.
    """

    graph: str
    plan: AuditPlan


def read_plan(path: str | Path) -> PlanFile:
    """Reads a plan file.

    Raises:
        DataError: if there is no such file or it is not TOML.
        InputError: naming the file, the key and what is allowed, if it says something impossible.
    """
    path = Path(path)
    given = read_table(path)
    try:
        return parse_plan(given)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None


def read_table(path: Path) -> dict[str, Any]:
    """The nested values of a TOML file, unchecked.

    Raises:
        DataError: if there is no such file or it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; `bmpaudit plan init` writes one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as damage:
        raise DataError(f"{path}: not a TOML file: {damage}") from None


def parse_plan(given: Mapping[str, Any]) -> PlanFile:
    """From nested values, as TOML has them, to a plan."""
    sections = ("sampler", "model", "training", "queries", "attack", "estimation")
    top = _parse("", (TopLevel,), {key: value for key, value in given.items() if key not in sections}, extra=sections)
    tables = {name: given.get(name, {}) for name in sections}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise InputError(f"{name} must be a table, as in [{name}], got {table!r}")
    queries = _build("queries", Queries, tables["queries"])
    if queries.views and {"edges", "output"} & set(tables["queries"]):
        raise InputError("queries.views stands instead of queries.edges and queries.output, not beside them")
    attack = _parse("attack", (Decisions, AttackSettings), tables["attack"])
    estimation = _build("estimation", Estimation, tables["estimation"])
    mine = {field.name for field in dataclasses.fields(Decisions)}
    try:
        plan = AuditPlan(
            sampler=_choose("sampler", SAMPLERS, "uniform", _with_fraction(tables["sampler"])),
            model=_choose("model", MODELS, "gcn", tables["model"]),
            training=_build("training", Training, tables["training"]),
            num_shadows=top["shadows"],
            views=queries.query_views(),
            noise_std=queries.noise_std,
            engine=top["engine"],
            attack=_made("attack", AttackSettings, {key: attack[key] for key in attack if key not in mine}),
            epsilon_prior=_made(
                "estimation", NormalPrior, {"mean": estimation.prior_mean, "variance": estimation.prior_variance}
            ),
            strength=estimation.strength,
            definitions=estimation.definitions,
            level=estimation.level,
            proof_level=estimation.proof_level,
            seed=top["seed"],
            **{key: attack[key] for key in mine},
        )
    except InputError as wrong:
        told = str(wrong).replace("num_shadows", "shadows")
        raise InputError(told.replace("views must name", "queries: edges and output must name")) from None
    return PlanFile(top["graph"], plan)


def format_plan(plan: AuditPlan, graph: str) -> str:
    """The plan as TOML, from which `read_plan` makes the same plan again.

    A sampler or model of one's own stands there by name only, and cannot be read back.
    """
    return tomli_w.dumps(plan_table(plan, graph))


def plan_table(plan: AuditPlan, graph: str) -> dict[str, Any]:
    """The nested values of a plan file."""
    return {
        "graph": graph,
        "shadows": plan.num_shadows,
        "seed": plan.seed,
        "engine": plan.engine,
        "sampler": _named(SAMPLERS, plan.sampler),
        "model": _named(MODELS, plan.model),
        "training": _fields(plan.training),
        "queries": {**_views_table(plan.views), "noise_std": float(plan.noise_std)},
        "attack": {
            "decisions": list(plan.decisions),
            "prior_source": plan.prior_source,
            "prior_draws": plan.prior_draws,
            "null_permutations": plan.null_permutations,
            **_fields(plan.attack),
        },
        "estimation": {
            "definitions": list(plan.definitions),
            "prior_mean": float(plan.epsilon_prior.mean),
            "prior_variance": float(plan.epsilon_prior.variance),
            "strength": float(plan.strength),
            "level": plan.level,
            "proof_level": plan.proof_level,
        },
    }


def _views_table(views: tuple[QueryView, ...]) -> dict[str, Any]:
    edges = tuple(dict.fromkeys(view.edges for view in views))
    output = tuple(dict.fromkeys(view.output for view in views))
    if Queries(edges, output).query_views() == views:
        return {"edges": list(edges), "output": list(output)}
    return {"views": [view.name for view in views]}


def plan_template(plan: AuditPlan, graph: str) -> str:
    """The plan as TOML with a comment on every key."""
    lines = [*HEADING]
    for key, value in plan_table(plan, graph).items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]"]
            lines += [_line(f"{key}.{name}", name, part) for name, part in value.items()]
        else:
            lines.append(_line(key, key, value))
    return "\n".join(lines) + "\n"


def _line(place: str, key: str, value: Any) -> str:
    if isinstance(value, list):
        items = ", ".join(tomli_w.dumps({"item": item}).strip().removeprefix("item = ") for item in value)
        text = f"{key} = [{items}]"
    else:
        text = tomli_w.dumps({key: value}).strip()
    return f"{text:<44} # {COMMENTS.get(place, 'of your own; cannot be read back')}"


def _named(kinds: Mapping[str, type[Any]], part: Any) -> dict[str, Any]:
    for name, kind in kinds.items():
        if type(part) is kind:
            return {"name": name, **_fields(part)}
    from bmpaudit.shadow.plan import describe_part

    return {"name": "own", **{key: value for key, value in describe_part(part).items() if value is not None}}


def _fields(part: Any) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _with_fraction(table: Mapping[str, Any]) -> dict[str, Any]:
    """A quarter of the nodes if nothing is said, for the samplers that take a share of them."""
    default = {} if table.get("name") == "random-walk" else {"train_fraction": 0.25}
    return default | dict(table)


def _choose(section: str, kinds: Mapping[str, type[Any]], default: str, table: Mapping[str, Any]) -> Any:
    values = dict(table)
    name = values.pop("name", default)
    if not isinstance(name, str) or name not in kinds:
        raise InputError(f"{section}.name must be one of {', '.join(kinds)}, got {name!r}")
    return _build(section, kinds[name], values, extra=("name",))


def _build(section: str, kind: type[Any], table: Mapping[str, Any], extra: tuple[str, ...] = ()) -> Any:
    return _made(section, kind, _parse(section, (kind,), table, extra=extra))


def _made(section: str, kind: type[Any], values: Mapping[str, Any]) -> Any:
    try:
        return kind(**values)
    except InputError as wrong:
        raise InputError(f"[{section}] {wrong}") from None


def _parse(
    section: str, kinds: tuple[type[Any], ...], table: Mapping[str, Any], extra: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Checks keys and types against the fields of dataclasses, whose defaults it fills in."""
    wanted: dict[str, Any] = {}
    for kind in kinds:
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            default = ... if field.default is dataclasses.MISSING else field.default
            wanted[field.name] = (hints[field.name], default)
    model = pydantic.create_model("Section", __config__=STRICT, **wanted)
    # TOML has lists where we have tuples.
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    try:
        return dict(model(**values))
    except pydantic.ValidationError as wrong:
        raise InputError(_explain(section, wrong, [*extra, *wanted])) from None


def _explain(section: str, wrong: pydantic.ValidationError, allowed: list[str]) -> str:
    # A key that is not known comes first: it may be a misspelt one, which is then missing.
    first = min(wrong.errors(), key=lambda error: error["type"] != "extra_forbidden")
    key = f"{section}.{first['loc'][0]}" if section else str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"unknown key {key}; allowed {'in [' + section + ']' if section else 'here'}: {', '.join(allowed)}"
    if first["type"] == "missing":
        return f"{key} is missing"
    told = first["msg"].removeprefix("Input should be ").replace("a valid ", "a ").replace("a integer", "an integer")
    told = told.replace("a tuple", "a list")
    return f"{key} must be {told}, got {first['input']!r}"
