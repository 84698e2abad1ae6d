"""Many audits from one plan: a grid or a list of points, audited, ranked, and as a table and a picture."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bmpaudit import registry
from bmpaudit.auditing.context import Runtime, Subject, plan_hash
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.comparison.sides import HELD_OUT_ACCURACY, NAMED_90, NAMED_99, ComparedAudit, Mean, show_value
from bmpaudit.graph import Graph
from bmpaudit.io.readers import read_toml
from bmpaudit.pipeline.pipeline import Pipeline, given_graph
from bmpaudit.plan import AuditPlan, PlanKey, parse_plan, plan_keys, trusting_code
from bmpaudit.registry import RELEASE, UntrustedPart, make, unknown_key
from bmpaudit.releases import gives_labels_only
from bmpaudit.report.drawing import DEFAULT_PICTURES, NO_PICTURES, picture_formats
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.files import atomic_write, folder_lock, write_text
from bmpaudit.util.values import Flags, plain, to_json
from bmpaudit.util.words import count, duration

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bmpaudit.report.figures.style import Width

__all__ = ["Sweep", "sweep"]


MOST_POINTS = 10_000
HASH_DIGITS = 8
SLUG_LENGTH = 60


@dataclass(frozen=True, eq=False)
class SweptAudit:
    """One audit of a sweep: each of its releases is a point, and all of them share its shadow models.

    Attributes:
        settings: What sets it apart from the other audits: dotted keys of the plan and their values.
        plan: Its plan.
    """

    settings: Mapping[str, Any]
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
        return f"{words}-{plan_hash(self.plan, only=plan_keys().keys() - addable)[:HASH_DIGITS]}"


def read_sweep(path: str | Path, *, trust_code: bool = False) -> tuple[str, list[SweptAudit]]:
    """Reads a plan file with a table `sweep`.

    Args:
        path: The file.
        trust_code: Whether to import the parts that it names `module:Name`.

    Returns:
        The graph's source, and the audits.

    Raises:
        DataError: if there is no such file or it is not TOML.
        InputError: naming the file, the key and what is allowed, if it says something impossible.
        UntrustedCodeError: if it names code, and that is not trusted.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file; `bmpaudit plan init` writes a plan, to which a table [sweep] is added")
    table = read_toml(path)
    sweep = table.pop("sweep", None)
    try:
        if not isinstance(sweep, Mapping):
            raise InputError("a table [sweep] is missing, with [sweep.grid], [[sweep.points]] or both")
        if unknown := sweep.keys() - {"grid", "points"}:
            raise InputError(unknown_key("sweep", min(unknown), ("grid", "points")))
        base = parse_plan(table, trust_code=trust_code)
        if not base.graph:
            raise InputError("graph is missing")
        grid, points = sweep.get("grid", {}), sweep.get("points", [])
        if not isinstance(grid, Mapping) or not isinstance(points, list):
            raise InputError("sweep.grid must be a table, as in [sweep.grid], and sweep.points a list of tables")
        with trusting_code(trust_code):
            audits = swept_audits(base.plan, dict(_flat(grid)), [_point_of_table(each) for each in points])
    except InputError as wrong:
        raise type(wrong)(f"{path}: {wrong}") from None
    for audit in audits:
        _refuse_untrusted(audit.plan)
    return base.graph, audits


def swept_audits(
    base: AuditPlan, grid: Mapping[str, Sequence[Any]], points: Sequence[Mapping[str, Any]]
) -> list[SweptAudit]:
    """The audits of a sweep. Plans that differ in nothing but their releases become one, with the releases of all.

    Args:
        base: What all audits share.
        grid: Alternatives by dotted key, such as `{"training.epochs": [50, 200]}`; every combination is audited.
        points: Further points, each the dotted keys in which it differs from the base.

    Raises:
        InputError: if a key is unknown, a value impossible, or there are too many points.
    """
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
        key = plan_hash(plan, only=plan_keys().keys() - {"releases"})
        apart = {name: value for name, value in each.items() if name.rpartition(".")[2] != "releases"}
        if key in audits:
            there = audits[key]
            labels = {registry.label(RELEASE, part) for part in there.plan.releases}
            added = [part for part in plan.releases if registry.label(RELEASE, part) not in labels]
            apart, plan = dict(there.settings), there.plan.replace(releases=(*there.plan.releases, *added))
        audits[key] = SweptAudit(apart, plan)
    return list(audits.values())


def changed_plan(base: AuditPlan, values: Mapping[str, Any]) -> AuditPlan:
    """The plan with other values of dotted keys, checked again.

    >>> changed_plan(AuditPlan(), {"model.name": "gat", "training.epochs": 50, "shadows": 64}).title
    'Uniform 25 %, GAT'

    Raises:
        InputError: if a key is unknown or a value impossible.
    """
    keys = plan_keys()
    changes: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if _is_part(keys, section):
            parts.setdefault(section, {})[name] = value
        elif name in keys and section in (keys[name].section, ""):
            changes[name] = list(value) if isinstance(value, tuple) else value
        else:
            raise InputError(f"unknown key {key}; a sweep is over keys of a plan, such as training.epochs")
    for section, settings in parts.items():
        part = changes.get(section, getattr(base, section))
        changes[section] = _changed_part(section, keys[section].kind, part, settings)
    return base.replace(**changes)


def _is_part(keys: Mapping[str, PlanKey], section: str) -> bool:
    """Whether a section of the plan file is one part: sampler, model, training, attack."""
    return section in keys and keys[section].section == section and section != "gate"


def _changed_part(section: str, kind: str, part: Any, settings: Mapping[str, Any]) -> Any:
    """A part with other settings; of another name, that part with its defaults otherwise."""
    if isinstance(part, str):
        part = {"name": part}
    if not kind:
        return make(type(part), {**vars(part), **settings}, section, also=())
    table = dict(part) if isinstance(part, Mapping) else registry.table_of(kind, part)
    if settings.get("name", table["name"]) != table["name"]:
        return dict(settings)
    return {**table, **settings}


def _flat(table: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield f"{section}{key}", value


def _point_of_table(table: Any) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise InputError(f"sweep.points must be a list of tables, as in [[sweep.points]], got {table!r}")
    return dict(_flat(table))


def _refuse_untrusted(plan: AuditPlan) -> None:
    for name in plan_keys():
        value = getattr(plan, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, UntrustedPart):
                raise registry.untrusted(part.kind, part.target)


def plain_setting(value: Any) -> Any:
    """A value of the plan as JSON can hold it; an object by its title."""
    if isinstance(value, Mapping):
        return {str(name): plain_setting(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_setting(each) for each in value]
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


CERTAINTY = 0.9


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """What one release of one audit exposes, and what it is worth.

    Attributes:
        audit: Number of its audit in the sweep, from 0.
        label: What sets it apart from the other points, in a few words.
        settings: The same as dotted keys of the plan and their values.
        release: Label of the release.
        folder: Path of the audit's folder; empty if it was not kept.
        num_models: Number of shadow models.
        accuracy: Held-out accuracy of what is released, with 95 % limits; None if it is not known.
        named_90: Training nodes of one released model that are named correctly with 90 % certainty, with 95 % limits.
        named_99: The same with 99 % certainty.
        is_settled: Whether there are enough models to say how many can be named with 90 % certainty.
        proven_right: What ε_R is proven to be at least; None if nothing is proven beyond the sampling.
        proven_left: The same of ε_L.
        guaranteed_right: What ε_R is guaranteed to be at most, by a proof about the model; None if there is none.
        auc: Area under the curve of the strongest attack.
        gives_labels_only: Whether the release is the predicted class and nothing else.
        on_exposure_front: Whether no other point is as accurate and exposes less, or exposes as little and is more
            accurate.
        on_proof_front: The same with what is proven of ε_R in place of what is exposed.
        confirmed: The same release audited again with fresh models; None if it was not.
    """

    audit: int
    label: str
    settings: Mapping[str, Any]
    release: str
    folder: str
    num_models: int
    accuracy: Mean | None
    named_90: Mean | None
    named_99: Mean | None
    is_settled: bool
    proven_right: float | None
    proven_left: float | None
    guaranteed_right: float | None
    auc: float
    gives_labels_only: bool = False
    on_exposure_front: bool = False
    on_proof_front: bool = False
    confirmed: SweepPoint | None = None

    @property
    def on_front(self) -> bool:
        """Whether it is on either front."""
        return self.on_exposure_front or self.on_proof_front

    def to_plain(self) -> dict[str, Any]:
        """Values as JSON can hold them."""
        values = asdict(replace(self, settings={}, confirmed=None))
        values["settings"] = plain_setting(self.settings)
        values["confirmed"] = None if self.confirmed is None else self.confirmed.to_plain()
        plain_values: dict[str, Any] = plain(values)
        return plain_values


def points_of(audit: Audit, number: int, swept: SweptAudit, folder: str) -> list[SweepPoint]:
    """A point for each release of an audit, the one of this number in its sweep."""
    return [_point_of_audit(audit, release, number, swept, folder) for release in audit.attacks.releases]


def _point_of_audit(audit: Audit, release: str, number: int, swept: SweptAudit, folder: str) -> SweepPoint:
    variant = audit.attacks.strongest(release)
    compared = ComparedAudit(swept.label, folder, audit, release, variant, "right")
    result = compared.result
    guaranteed = audit.guaranteed
    return SweepPoint(
        audit=number,
        label=f"{swept.label}, {release}",
        settings=swept.settings,
        release=release,
        folder=folder,
        num_models=audit.runs.num_models,
        accuracy=compared.mean(HELD_OUT_ACCURACY),
        named_90=compared.mean(NAMED_90),
        named_99=compared.mean(NAMED_99),
        is_settled=result.exposure.named(CERTAINTY).is_settled,
        proven_right=result.shown("epsilon_right"),
        proven_left=result.shown("epsilon_left"),
        guaranteed_right=None if guaranteed is None else guaranteed.limits["epsilon_right"],
        auc=result.auc,
        gives_labels_only=any(
            gives_labels_only(part) for part in audit.plan.releases if registry.label(RELEASE, part) == release
        ),
    )


def with_fronts(points: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    """The points, those on a front marked; one whose accuracy is not known is on neither."""
    gains = [-np.inf if point.accuracy is None else point.accuracy.mean for point in points]
    named = [np.inf if point.named_90 is None else point.named_90.mean for point in points]
    proven = [-np.inf if point.proven_right is None else point.proven_right for point in points]
    fronts = zip(points, pareto_front(gains, named), pareto_front(gains, proven), strict=True)
    return tuple(
        replace(point, on_exposure_front=bool(first), on_proof_front=bool(second)) for point, first, second in fronts
    )


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
FORMAT = 1
SAME_LABELS = 0.01  # difference in accuracy of releases that give out nearly the same labels
SEARCHED = (
    "The best of many points looks better than it is: chance had a part in its being best. Audit the winner again with "
    "fresh models (--confirm) before you rely on its figures."
)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The points of a sweep.

    Attributes:
        points: Every release of every audit, in the order of the plan.
    """

    points: tuple[SweepPoint, ...]

    @property
    def front(self) -> tuple[SweepPoint, ...]:
        """The points that no other beats, by what is exposed or by what is proven."""
        return tuple(point for point in self.points if point.on_front)

    @property
    def is_confirmed(self) -> bool:
        """Whether every point on a front was audited again with fresh models."""
        return bool(self.front) and all(point.confirmed is not None for point in self.front)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to beware of."""
        unsettled = [str(number) for number, point in enumerate(self.points, 1) if not point.is_settled]
        few = f"Too few models to say how many nodes can be named at points {', '.join(unsettled)}."
        return (*(() if self.is_confirmed else (SEARCHED,)), *self._blind_attacks(), *((few,) if unsettled else ()))

    def _blind_attacks(self) -> Iterator[str]:
        """Where released labels expose more than what they can be computed from."""
        labels = {point.audit: point for point in self.points if point.gives_labels_only}
        for number, point in enumerate(self.points, 1):
            only = labels.get(point.audit)
            if only is None or not only.named_90 or not point.named_90 or not only.accuracy or not point.accuracy:
                continue
            # As accurate: it is not noise that hides the labels.
            has_labels = abs(only.accuracy.mean - point.accuracy.mean) < SAME_LABELS
            if has_labels and only.named_90.low > point.named_90.high:
                yield (
                    f"Point {number} ({point.label}) seems to expose less than the labels alone, which can be read off "
                    f"it: the attack on it is too weak; take the {only.named_90.mean:.1f} nodes of {only.label}."
                )

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
        plan: What all audits share; the defaults if not given.
        grid: Alternatives by dotted key of the plan, such as `{"training.epochs": [50, 200]}`.
        points: Further points, each the dotted keys in which it differs from the plan.
        folder: Where to keep everything: a stopped sweep resumes, and points, releases and models can be added.
            Nothing is kept if not given.
        confirm: Whether to audit the points on a front again, with fresh models.
        pictures: Formats of the picture in the folder, separated by commas (`png`, `pdf`, `svg`), or `none`.
        runtime: Threads, workers and progress.

    Raises:
        InputError: if a key is unknown or a value impossible.

    >>> found = sweep("demo", AuditPlan(shadows=16, releases="clean"), grid={"training.epochs": [5, 50]})
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
            place = None if base is None else base / kind / each.folder
            audit = _run(Subject(graph, source, each.plan), place, runtime)
            found += points_of(audit, number, each, "" if place is None else str(place))
        return found

    with nullcontext() if base is None else folder_lock(base):
        result = Sweep(with_fronts(run_all(dict(enumerate(audits)), AUDITS)))
        if confirm:
            fresh = {(each.audit, each.release): each for each in run_all(_again(result, audits), CONFIRMED)}
            again = (replace(each, confirmed=fresh.get((each.audit, each.release))) for each in result.points)
            result = Sweep(tuple(again))
        if base is not None:
            write_sweep(result, base, formats)
    return result


def _run(subject: Subject, folder: Path | None, runtime: Runtime) -> Audit:
    """One audit with its page, but without pictures: there are many."""
    pipeline = Pipeline(subject, None if folder is None else Workspace(folder), runtime)
    with pipeline.prepared():
        pipeline.report(pictures=NO_PICTURES)
        return pipeline.audit


def _again(result: Sweep, audits: Sequence[SweptAudit]) -> dict[int, SweptAudit]:
    """The audits of the points on a front, with a seed that no point of the sweep has used, by their number."""
    seed = max(each.plan.seed for each in audits) + 1
    again = {}
    for number, each in enumerate(audits):
        labels = {point.release for point in result.front if point.audit == number}
        releases = tuple(part for part in each.plan.releases if registry.label(RELEASE, part) in labels)
        if releases:
            again[number] = SweptAudit(each.settings, each.plan.replace(releases=releases, seed=seed))
    return again


def describe(audits: Sequence[SweptAudit]) -> str:
    """How much there is to do."""
    points = sum(len(each.plan.releases) for each in audits)
    models = sum(each.plan.shadows for each in audits)
    return f"{count(points, 'point')} from {count(len(audits), 'audit')}, {models:,} shadow models in all"


def _row(number: int, point: SweepPoint) -> dict[str, Any]:
    row: dict[str, Any] = {"point": number, "label": point.label, "release": point.release}
    row |= {key: value if isinstance(value, (int, float, str)) else str(value) for key, value in point.settings.items()}
    row |= _figures(point, "")
    row |= {"on_exposure_front": point.on_exposure_front, "on_proof_front": point.on_proof_front}
    if point.confirmed is not None:
        row |= _figures(point.confirmed, "confirmed_")
    return row | {"folder": point.folder}


def _figures(point: SweepPoint, prefix: str) -> dict[str, Any]:
    row: dict[str, Any] = {"num_models": point.num_models}
    for name in ("accuracy", "named_90", "named_99"):
        mean = getattr(point, name)
        for end, suffix in (("mean", ""), ("low", "_low"), ("high", "_high")):
            row[f"{name}{suffix}"] = None if mean is None else getattr(mean, end)
    row |= {name: getattr(point, name) for name in ("proven_right", "proven_left", "guaranteed_right", "auc")}
    return {f"{prefix}{name}": value for name, value in row.items()}


# A sweep as a table, a picture, and values for other programs.


def write_sweep(result: Sweep, folder: Path, formats: Collection[str]) -> None:
    """Writes `sweep.csv`, `sweep.json` and `frontier.png`, or whichever formats are asked for."""
    from bmpaudit.report.figures.style import render

    for name, content in render(draw_frontier(result), formats).items() if formats else ():
        with atomic_write(folder / f"frontier.{name}") as temporary:
            temporary.write_bytes(content)
    write_text(folder / "sweep.csv", result.table.to_csv(index=False))
    write_text(folder / "sweep.json", to_json(result.to_dict()) + "\n")


def draw_frontier(result: Sweep, width: Width = "two") -> Figure:
    """Accuracy against what is exposed and against what is proven, as a matplotlib figure."""
    from bmpaudit.report.figures.comparisons import FrontierPoint, frontier

    points = [
        FrontierPoint(
            number=number,
            group=point.release,
            accuracy=(point.accuracy.mean, point.accuracy.low, point.accuracy.high),
            exposed=(point.named_90.mean, point.named_90.low, point.named_90.high),
            proven=point.proven_right,
            on_exposure_front=point.on_exposure_front,
            on_proof_front=point.on_proof_front,
        )
        for number, point in enumerate(result.points, 1)
        if point.accuracy is not None and point.named_90 is not None
    ]
    return frontier(points, width=width)
