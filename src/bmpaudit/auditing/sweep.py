"""Many audits of one graph: which defence exposes least for the accuracy that is left?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bmpaudit import registry
from bmpaudit.auditing.finished_audit import Audit
from bmpaudit.auditing.pipeline import Pipeline
from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.run import given_graph
from bmpaudit.auditing.runtime import Runtime
from bmpaudit.auditing.subject import Subject
from bmpaudit.auditing.sweep_plan import SweptAudit, swept_audits
from bmpaudit.auditing.sweep_point import SweepPoint, points_of, with_fronts
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.files import folder_lock
from bmpaudit.graph import Graph
from bmpaudit.registry import RELEASE
from bmpaudit.report.picture_formats import DEFAULT_PICTURES, NO_PICTURES, picture_formats
from bmpaudit.report.words import count, duration

if TYPE_CHECKING:
    import pandas as pd

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
            from bmpaudit.auditing.sweep_report import write_sweep

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
