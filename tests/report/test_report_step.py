"""The files of a report: in the formats asked for, part by part."""

from __future__ import annotations

from concurrent.futures import as_completed
from pathlib import Path

import pytest
from small_graph import small_graph

from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.finished import Audit
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.models import MLP, Training
from bmpaudit.pipeline import pipeline as pipeline_module
from bmpaudit.pipeline.pipeline import Pipeline, audit
from bmpaudit.plan import AuditPlan
from bmpaudit.report.drawing import Drawing
from bmpaudit.report.page_data import num_parts, report_files
from bmpaudit.report.plots import AuditPlots
from bmpaudit.samplers import Uniform
from bmpaudit.util.errors import InputError

PLAN = AuditPlan(
    sampler=Uniform(0.4),
    model=MLP(hidden=8, dropout=0.0),
    training=Training(epochs=5),
    shadows=12,
    releases=("clean",),
    release_as="scores",
    definitions=("bmp-r", "bmp"),
)


@pytest.fixture(scope="module")
def audited() -> Audit:
    return audit(small_graph(), PLAN, runtime=Runtime(quiet=True, num_threads=1))


def few_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AuditPlots, "names", lambda _: ["permutation_test", "posteriors"])
    monkeypatch.setattr(pipeline_module, "pictures_of_attacks", lambda _: {})
    monkeypatch.setattr(pipeline_module, "pictures_of_findings", lambda *_: {})


def test_progress_moves_with_every_part(audited: Audit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    few_pictures(monkeypatch)
    done: list[int] = []
    with Drawing(("svg",), 2) as drawing:
        drawing.start()
        files = report_files(audited, drawing, progress=done.append)
    assert done == list(range(1, num_parts(audited, drawing) + 1))
    assert len(done) > 6
    texts = ["report.html", "tables.md", "tables.tex"]
    assert list(files) == [*texts, "figures/permutation_test.svg", "figures/posteriors.svg"]
    for name, write in files.items():
        write(tmp_path / "file")
        assert (tmp_path / "file").stat().st_size > 100, name
    done.clear()
    with Drawing((), 2) as drawing:
        assert list(report_files(audited, drawing, progress=done.append)) == texts
    assert done == list(range(1, num_parts(audited, drawing) + 1))


def test_every_picture_can_be_drawn_by_another_process(audited: Audit) -> None:
    pictures = audited.plot.pictures()
    assert list(pictures) == audited.plot.names()
    with Drawing(("svg",), 2) as drawing, Drawing(("svg",), 0) as here:
        drawing.start()
        for each in (drawing, here):
            each.draw(pictures)
        assert len(drawing._sent) == len(pictures)
        for drawn in as_completed(drawing._sent, timeout=120):  # with nobody here to help
            assert drawn.exception() is None
        assert drawing.finish() == here.finish()
    figure = audited.plot.roc(width="two")
    assert figure.get_size_inches()[0] == 6.9


def test_only_what_is_asked_for_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_pictures(monkeypatch)
    subject = Subject(small_graph(), "", PLAN.replace(definitions="bmp-r"))
    pipeline = Pipeline(subject, Workspace(tmp_path), Runtime(quiet=True, num_threads=1))

    def report(pictures: str) -> set[str]:
        with pipeline.prepared():
            pipeline.report(pictures=pictures)
        return {path.name for path in (tmp_path / "figures").glob("*")}

    assert report("none") == set()
    assert report("svg") == {"permutation_test.svg", "posteriors.svg"}
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert report("none") == report("svg")  # pictures of the same answer stay
    assert {path: path.stat().st_mtime_ns for path in times if path.name != ".lock"} == {
        path: time for path, time in times.items() if path.name != ".lock"
    }
    assert report("png,svg") == {
        f"{name}.{suffix}" for name in ("permutation_test", "posteriors") for suffix in ("png", "svg")
    }


def test_unknown_formats_are_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="pictures must be png, pdf, svg"):
        audit(small_graph(), PLAN, pictures="jpeg")
