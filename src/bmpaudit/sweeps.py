"""Many audits from one plan: a grid or a list of points, audited, ranked, and as a table and a picture."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property, reduce
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit import registry
from bmpaudit.auditing import Audit, Runtime, Subject, Workspace, context
from bmpaudit.auditing.result import Level
from bmpaudit.comparison.sides import HELD_OUT_ACCURACY, NAMED_90, NAMED_99, ComparedAudit, Mean, show_value
from bmpaudit.graph import Graph
from bmpaudit.io.codec import filled
from bmpaudit.io.readers import read_toml
from bmpaudit.pipeline.pipeline import Pipeline, given_graph
from bmpaudit.plan import AuditPlan, parse_plan, plan_keys, trusting_code
from bmpaudit.releases import ACCESSES, is_computed_from
from bmpaudit.report.drawing import DEFAULT_PICTURES, NO_PICTURES, picture_formats
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write, folder_lock, write_text
from bmpaudit.util.values import Flags, plain, to_json
from bmpaudit.util.words import count, duration

if TYPE_CHECKING:
    import pandas as pd
__all__ = ["Sweep", "sweep"]


MOST_POINTS = 10_000
HASH_DIGITS, SLUG_LENGTH = 8, 60  # of the name of a folder


@dataclass(frozen=True, eq=False)
class SweptAudit:
    """One audit of a sweep: each of its releases is a point, and all of them share its shadow models."""

    settings: Mapping[str, Any]  # what sets it apart from the other audits: dotted keys of the plan and their values
    plan: AuditPlan

    @property
    def label(self) -> str:
        """What sets it apart in a few words, such as `gat, epochs 50`."""
        return ", ".join(_shown(key, value) for key, value in self.settings.items()) or self.plan.title

    @property
    def folder(self) -> str:
        """Name of its folder: its label, and a hash of everything but what can be added to an audit.

        Models can always be added, releases if weights are kept.
        """
        words = re.sub(r"[^a-z0-9.]+", "-", self.label.lower())[:SLUG_LENGTH].strip("-.")
        addable = {"shadows", "releases"} if self.plan.keep_weights else {"shadows"}
        return f"{words}-{context.plan_hash(self.plan, only=plan_keys().keys() - addable)[:HASH_DIGITS]}"


def read_sweep(path: str | Path, *, trust_code: bool = False) -> tuple[str, list[SweptAudit]]:
    """The graph's source and the audits of a plan file with a table `sweep`."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file; `bmpaudit plan init` writes a plan, to which a table [sweep] is added")
    table = read_toml(path)
    sweep = table.pop("sweep", None)
    try:
        if not isinstance(sweep, Mapping):
            raise InputError("a table [sweep] is missing, with [sweep.grid], [[sweep.points]] or both")
        if unknown := sweep.keys() - {"grid", "points"}:
            raise InputError(registry.unknown_key("sweep", min(unknown), ("grid", "points")))
        base = parse_plan(table, trust_code=trust_code)
        if not base.graph:
            raise InputError("graph is missing")
        grid, points = sweep.get("grid", {}), sweep.get("points", [])
        if not isinstance(grid, Mapping) or not isinstance(points, list):
            raise InputError("sweep.grid must be a table, as in [sweep.grid], and sweep.points a list of tables")
        for point in points:
            if not isinstance(point, Mapping):
                raise InputError(f"sweep.points must be a list of tables, as in [[sweep.points]], got {point!r}")
        with trusting_code(trust_code):
            audits = swept_audits(base.plan, dict(_flat(grid)), [dict(_flat(point)) for point in points])
    except InputError as wrong:
        raise type(wrong)(f"{path}: {wrong}") from None
    for audit in audits:
        context.check_trusted(audit.plan, plan_keys())
    return base.graph, audits


def swept_audits(
    base: AuditPlan, grid: Mapping[str, Sequence[Any]], points: Sequence[Mapping[str, Any]]
) -> list[SweptAudit]:
    """The audits of a sweep. Plans that differ in nothing but their releases become one, with the releases of all."""
    for key, alternatives in grid.items():
        if not isinstance(alternatives, (list, tuple)) or not alternatives:
            raise InputError(f"{key} must be a list of alternatives, got {alternatives!r}")
    combinations = itertools.product(*grid.values()) if grid else ()
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.islice(combinations, MOST_POINTS + 1)]
    settings += [dict(point) for point in points]
    if not 0 < len(settings) <= MOST_POINTS:
        raise InputError(f"a sweep must have 1 to {MOST_POINTS:,} points, got {len(settings):,} or more")
    audits: dict[str, SweptAudit] = {}
    for each in settings:
        plan = changed_plan(base, each)
        key = context.plan_hash(plan, only=plan_keys().keys() - {"releases"})
        apart = {name: value for name, value in each.items() if name.rpartition(".")[2] != "releases"}
        if key in audits:
            there = audits[key]
            labels = {registry.label(registry.RELEASE, part) for part in there.plan.releases}
            added = [part for part in plan.releases if registry.label(registry.RELEASE, part) not in labels]
            apart, plan = dict(there.settings), there.plan.replace(releases=(*there.plan.releases, *added))
        audits[key] = SweptAudit(apart, plan)
    return list(audits.values())


def changed_plan(base: AuditPlan, values: Mapping[str, Any]) -> AuditPlan:
    """The plan with other values of dotted keys, checked again.

    >>> changed_plan(AuditPlan(), {"model.name": "gat", "training.epochs": 50, "shadows": 64}).title
    'Uniform 25 %, GAT'
    """
    keys = plan_keys()
    changes: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section in keys and keys[section].section == section != "gate":  # one part: sampler, model, training, attack
            parts.setdefault(section, {})[name] = value
        elif name in keys and section in (keys[name].section, ""):
            changes[name] = list(value) if isinstance(value, tuple) else value
        else:
            raise InputError(f"unknown key {key}; a sweep is over keys of a plan, such as training.epochs")
    for section, settings in parts.items():
        part = changes.get(section, getattr(base, section))
        changes[section] = _changed_part(section, keys[section].kind, part, settings)
    return base.replace(**changes)


def _changed_part(section: str, kind: str, part: Any, settings: Mapping[str, Any]) -> Any:
    """A part with other settings; of another name, that part with its defaults otherwise."""
    if isinstance(part, str):
        part = {"name": part}
    if not kind:
        return registry.make(type(part), {**vars(part), **settings}, section, also=())
    table = part if isinstance(part, Mapping) else registry.table_of(kind, part)
    if settings.get("name", table["name"]) != table["name"]:
        return dict(settings)
    return {**table, **settings}


def _flat(table: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield f"{section}{key}", value


def plain_setting(value: Any) -> Any:
    """A value of the plan as JSON can hold it; an object by its title."""
    if isinstance(value, Mapping):
        return {str(name): plain_setting(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(plain_setting, value))
    return value if isinstance(value, (str, int, float, bool)) else registry.title(value)


def _shown(key: str, value: Any) -> str:
    """A setting in words: a part by its name, anything else with what it is.

    >>> _shown("model.name", "gat"), _shown("training.weight_decay", 0.01)
    ('gat', 'weight decay 0.01')
    """
    name = key.rpartition(".")[2]
    kind = plan_keys()[name].kind if name in plan_keys() else ""
    if kind and not isinstance(value, (str, Mapping, list, tuple)):
        return registry.label(kind, value)  # with its settings, which tell it from others
    text = show_value(plain_setting(value))
    return text if kind or name == "name" else f"{name.replace('_', ' ')} {text}"


# One point of a sweep: a release of an audit, by what it exposes and what it is worth.

RECIPE = ("sampler", "model", "training", "engine")
"""Keys of a plan that say how a model is made."""


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """What one release of one audit exposes, and what it is worth; means have 95 % limits."""

    audit: int  # number of its audit in the sweep, from 0
    label: str  # what sets it apart from the other points, in a few words
    settings: Mapping[str, Any]  # the same as dotted keys of the plan and their values
    release: str
    folder: str  # path of the audit's folder; empty if it was not kept
    num_models: int
    accuracy: Mean | None  # held-out, of what is released; None if it is not known
    named_90: Mean | None  # training nodes of one released model that are named correctly with 90 % certainty
    named_99: Mean | None
    access: str  # what the adversary sees of the model
    named_90_from: Mapping[str, Mean]  # by access, the least first, how many this audit finds with 90 % certainty
    is_settled: bool  # whether there are enough models to say how many can be named with 90 % certainty
    exposed_by: str  # attack and queries that they are named by, and what release or point that was on
    certified_names: float | None  # that one released model provably gives away on average; None if none are certified
    certified_share: float | None  # of them that is right, at least
    proven_right: float | None  # what ε_R is proven to be at least; None if nothing is proven beyond the sampling
    proven_left: float | None
    is_ceiling_right: bool  # whether that is the most that so many guesses can show
    is_ceiling_left: bool
    guaranteed_right: float | None  # what ε_R is at most, by a proof about the model; None if there is none
    auc: float  # of the plan's attack, with the strongest queries
    level: Level | None  # how much leaks; None for a release that was not tested for it
    num_leaking: int | None  # number of nodes that are proven to leak; None likewise
    on_front: bool = False  # no other point is as accurate and exposes less, or exposes as little and is more accurate
    confirmed: SweepPoint | None = None  # the same release audited again with fresh models

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        again = None if self.confirmed is None else self.confirmed.to_plain()
        values = asdict(replace(self, settings={}, confirmed=None))
        return dict(plain({**values, "settings": plain_setting(self.settings), "confirmed": again}))


def _point(audit: Audit, release: str, number: int, swept: SweptAudit, folder: str) -> SweepPoint:
    """A release of the audit of this number in its sweep."""
    compared = ComparedAudit(swept.label, folder, audit, audit.attacks.strongest(release), "right")
    result, guaranteed = compared.result, audit.guaranteed
    certificate = None if result.certified is None else result.certified.leading()
    return filled(
        SweepPoint,
        compared,
        result,
        swept,
        audit=number,
        label=f"{swept.label}, {release}",
        folder=folder,
        num_models=audit.runs.num_models,
        accuracy=compared.mean(HELD_OUT_ACCURACY),
        named_90=compared.mean(NAMED_90),
        named_99=compared.mean(NAMED_99),
        named_90_from=compared.named_from(0.9),
        is_settled=result.exposure.named(0.9).is_settled,
        certified_names=certificate and certificate.names,
        certified_share=certificate and certificate.certainty,
        proven_right=result.shown("epsilon_right"),
        proven_left=result.shown("epsilon_left"),
        is_ceiling_right=result.is_at_ceiling("epsilon_right"),
        is_ceiling_left=result.is_at_ceiling("epsilon_left"),
        guaranteed_right=guaranteed and guaranteed.limits["epsilon_right"],
        num_leaking=compared.test and compared.test.num_leaking,
    )


def with_inherited(points: Sequence[SweepPoint], audits: Sequence[SweptAudit]) -> list[SweepPoint]:
    """The points, each with what was found at it, or at another that is computed from it, whichever is more (Prop. 2).

    A weak attack at one of them makes neither of them safe.
    """
    return [
        reduce(_larger, (other for other in points if other is not point and _holds_for(other, point, audits)), point)
        for point in points
    ]


def _holds_for(other: SweepPoint, point: SweepPoint, audits: Sequence[SweptAudit]) -> bool:
    """Whether what is found at a point holds for another one.

    It is computed from that, of models made the same way, and asks no query that cannot be asked there.
    """
    theirs, mine = (audits[each.audit].plan for each in (other, point))
    return (
        context.plan_hash(theirs, only=RECIPE) == context.plan_hash(mine, only=RECIPE)
        and set(context.queries_of(theirs)) <= set(context.queries_of(mine))
        and ACCESSES.index(other.access) <= ACCESSES.index(point.access)
        and is_computed_from(
            context.release_of(theirs, other.release), context.release_of(mine, point.release), mine.release_as
        )
    )


def _larger(point: SweepPoint, other: SweepPoint) -> SweepPoint:
    """The point, with whatever is more at the other one."""
    least, changes = -np.inf, dict[str, Any]()
    together: dict[tuple[str, ...], Callable[[SweepPoint], Any]] = {
        ("is_settled", "exposed_by"): lambda each: named(each, least),
        ("certified_names", "certified_share"): lambda each: (each.certified_share or 0, each.certified_names or 0),
        ("proven_right", "is_ceiling_right"): lambda each: least if each.proven_right is None else each.proven_right,
        ("proven_left", "is_ceiling_left"): lambda each: least if each.proven_left is None else each.proven_left,
    }
    for fields, value in together.items():
        if value(other) > value(point):
            changes |= {name: getattr(other, name) for name in fields}
    for name in ("named_90", "named_99"):  # the higher one of each limit, too
        known = [vars(mean).values() for each in (point, other) if (mean := getattr(each, name)) is not None]
        changes[name] = Mean(*map(max, zip(*known, strict=True))) if known else None
    if "exposed_by" in changes and other.label != point.label:
        changes["exposed_by"] += f", at {other.label}"
    return replace(point, **changes)


def named(point: SweepPoint, unknown: float) -> float:
    """How many nodes are named with 90 % certainty, on average."""
    return unknown if point.named_90 is None else point.named_90.mean


def with_front(points: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    """The points, those on the front marked; one whose accuracy is not known is not on it."""
    gains = [-np.inf if point.accuracy is None else point.accuracy.mean for point in points]
    front = pareto_front(gains, [named(point, np.inf) for point in points])
    return tuple(replace(point, on_front=bool(is_on)) for point, is_on in zip(points, front, strict=True))


def pareto_front(gains: Sequence[float], costs: Sequence[float]) -> Flags:
    """Which points are not beaten: no other has at least the gain at no more cost, and is better in one of them.

    >>> pareto_front([0.9, 0.8, 0.7, -np.inf], [5, 2, 3, 0]).tolist()
    [True, True, False, False]
    """
    gain, cost = np.asarray(gains, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    is_no_worse = (gain[:, None] >= gain) & (cost[:, None] <= cost)
    is_better = (gain[:, None] > gain) | (cost[:, None] < cost)
    is_beaten = np.logical_or.reduce(is_no_worse & is_better, axis=0)
    return np.isfinite(gain) & ~is_beaten


# Many audits of one graph: which defence exposes least for the accuracy that is left?

AUDITS, CONFIRMED = "audits", "confirmed"
FIGURES = (
    *("access", "exposed_by", "certified_names", "certified_share", "proven_right", "proven_left"),
    *("is_ceiling_right", "is_ceiling_left", "guaranteed_right", "auc", "level", "num_leaking"),
)
FORMAT = 2
SEARCHED = (
    "The best of many points looks better than it is: chance had a part in its being best. Audit the winner again with "
    "fresh models (--confirm) before you rely on its figures."
)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The points of a sweep: every release of every audit, in the order of the plan."""

    points: tuple[SweepPoint, ...]

    @property
    def front(self) -> tuple[SweepPoint, ...]:
        """The points that no other beats."""
        return tuple(point for point in self.points if point.on_front)

    @property
    def is_confirmed(self) -> bool:
        """Whether every point on the front was audited again with fresh models."""
        return bool(self.front) and all(point.confirmed is not None for point in self.front)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to beware of."""
        unsettled = [str(number) for number, point in enumerate(self.points, 1) if not point.is_settled]
        few = f"How many nodes can be named is open at {', '.join(unsettled)}: more shadow models would narrow it down."
        return (*(() if self.is_confirmed else (SEARCHED,)), *((few,) if unsettled else ()))

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per point."""
        import pandas as pd

        return pd.DataFrame([_row(number, point) for number, point in enumerate(self.points, 1)])

    def to_dict(self) -> dict[str, Any]:
        """As plain values (docs/defences.md)."""
        return {
            "format": FORMAT,
            "bmpaudit": version("bmpaudit"),
            "is_confirmed": self.is_confirmed,
            "cautions": list(self.cautions),
            "points": [{"number": number, **point.to_plain()} for number, point in enumerate(self.points, 1)],
        }


def sweep(
    graph: Graph | str | Path | Any,
    plan: AuditPlan | None = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    points: Sequence[Mapping[str, Any]] = (),
    folder: str | Path | None = None,
    confirm: bool = False,
    pictures: str = DEFAULT_PICTURES,
    runtime: Runtime | None = None,
) -> Sweep:
    """Audits every combination of settings, and finds those that no other beats in accuracy and privacy.

    Every release of a plan is a point of its own; the releases of one plan share their shadow models.

    Args:
        graph: What `bmpaudit.audit` takes.
        plan: What all audits share.
        grid: Alternatives by dotted key of the plan, such as `{"training.epochs": [50, 200]}`.
        points: Further points, each the dotted keys in which it differs from the plan.
        folder: Where to keep everything: a stopped sweep resumes, and points, releases and models can be added.
        confirm: Whether to audit the points on the front again, with fresh models.
        pictures: Formats of the picture in the folder, separated by commas (`png`, `pdf`, `svg`), or `none`.
        runtime: Threads, workers and progress.

    >>> plan = AuditPlan(shadows=16, releases="clean", release_as="scores")
    >>> found = sweep("demo", plan, grid={"training.epochs": [5, 50]})
    >>> [point.label for point in found.points]
    ['epochs 5, clean', 'epochs 50, clean']
    """
    audits = swept_audits(plan or AuditPlan(), grid or {}, points)
    return run_sweep(
        *given_graph(graph), audits, folder, confirm=confirm, pictures=pictures, runtime=runtime or Runtime()
    )


def run_sweep(
    graph: Graph,
    source: str,
    audits: Sequence[SweptAudit],
    folder: str | Path | None,
    *,
    confirm: bool,
    pictures: str,
    runtime: Runtime,
) -> Sweep:
    """Runs the audits of a sweep, and writes its table and picture; see `sweep`."""
    formats = picture_formats(pictures)
    base = None if folder is None else Path(folder)

    def run_all(chosen: Mapping[int, SweptAudit], kind: str) -> list[SweepPoint]:
        start, found = time.monotonic(), list[SweepPoint]()
        for done, (number, each) in enumerate(chosen.items()):
            if not runtime.quiet:
                spent = time.monotonic() - start
                left = f", about {duration(spent / done * (len(chosen) - done))} left" if done else ""
                again = " again with fresh models" if kind == CONFIRMED else ""
                runtime.notice(f"audit {done + 1} of {len(chosen)}{again}: {each.label}{left}")
            workspace = None if base is None else Workspace(base / kind / each.folder)
            pipeline = Pipeline(Subject(graph, source, each.plan), workspace, runtime)
            with pipeline.prepared():
                pipeline.report(pictures=NO_PICTURES)  # with a page, but without pictures: there are many
                audit = pipeline.audit
            path = "" if workspace is None else str(workspace.path)
            found += [_point(audit, release, number, each, path) for release in audit.attacks.releases]
        return with_inherited(found, audits)

    with nullcontext() if base is None else folder_lock(base):
        result = Sweep(with_front(run_all(dict(enumerate(audits)), AUDITS)))
        if confirm:
            fresh = {(each.audit, each.release): each for each in run_all(_again(result, audits), CONFIRMED)}
            again = (
                replace(each, confirmed=fresh[each.audit, each.release] if each.on_front else None)
                for each in result.points
            )
            result = Sweep(tuple(again))
        if base is not None:
            write_sweep(result, base, formats)
    return result


def _again(result: Sweep, audits: Sequence[SweptAudit]) -> dict[int, SweptAudit]:
    """The audits of the points on the front, with a seed that no point of the sweep has used, by their number.

    With them go the points that are computed from them: what is found there holds for them too.
    """
    seed = max(each.plan.seed for each in audits) + 1
    again = {}
    for number, each in enumerate(audits):
        labels = {
            point.release
            for point in result.points
            if point.audit == number and any(_holds_for(point, best, audits) for best in result.front)
        }
        releases = tuple(part for part in each.plan.releases if registry.label(registry.RELEASE, part) in labels)
        if releases:
            again[number] = SweptAudit(each.settings, each.plan.replace(releases=releases, seed=seed))
    return again


def describe(audits: Sequence[SweptAudit]) -> str:
    """How much there is to do."""
    points, models = sum(len(each.plan.releases) for each in audits), sum(each.plan.shadows for each in audits)
    return f"{count(points, 'point')} from {count(len(audits), 'audit')}, {models:,} shadow models in all"


def _row(number: int, point: SweepPoint) -> dict[str, Any]:
    row: dict[str, Any] = {"point": number, "label": point.label, "release": point.release}
    row |= {key: value if isinstance(value, (int, float, str)) else str(value) for key, value in point.settings.items()}
    row |= {**_figures(point), "on_front": point.on_front}
    if point.confirmed is not None:
        row |= {f"confirmed_{name}": value for name, value in _figures(point.confirmed).items()}
    return {**row, "folder": point.folder}


def _figures(point: SweepPoint) -> dict[str, Any]:
    row: dict[str, Any] = {"num_models": point.num_models}
    for name in ("accuracy", "named_90", "named_99"):
        for end, suffix in (("mean", ""), ("low", "_low"), ("high", "_high")):
            row[f"{name}{suffix}"] = getattr(getattr(point, name), end, None)
    row |= {f"named_90_from_{access}": mean.mean for access, mean in point.named_90_from.items()}
    return row | {name: getattr(point, name) for name in FIGURES}


def write_sweep(result: Sweep, folder: Path, formats: Collection[str]) -> None:
    """Writes `sweep.csv`, `sweep.json` and `frontier.png`, or whichever formats are asked for."""
    if formats:
        from bmpaudit.report.figures.comparisons import frontier
        from bmpaudit.report.figures.style import render

        for name, content in render(frontier(result.table), formats).items():
            with atomic_write(folder / f"frontier.{name}") as temporary:
                temporary.write_bytes(content)
    write_text(folder / "sweep.csv", result.table.to_csv(index=False))
    write_text(folder / "sweep.json", to_json(result.to_dict()) + "\n")
