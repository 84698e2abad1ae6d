"""Code that a file names is run only by those who say that they trust it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from payload_module import MODULE, PARTS, Payload
from small_audit import QUIET, leaky_graph, run_audit, run_step, times, tiny_plan

from bmpaudit.auditing.finished import Audit, read_nodes, stored_graph, stored_subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.comparison.compare import compare
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan, format_plan, read_plan
from bmpaudit.registry import UntrustedPart
from bmpaudit.shadow.train import estimate_cost
from bmpaudit.util.errors import UntrustedCodeError

# Fields of the plan whose code each step has to run.
NEEDS = {
    "train": ("sampler", "model", "engine", "releases", "queries", "statistic"),
    "attack": ("attack", "rules"),
    "estimate": ("definitions",),
    "report": (),
}


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Payload]:
    module = Payload(tmp_path / "modules", monkeypatch)
    yield module
    module.forget()


def plan_with(field: str) -> AuditPlan:
    """Named in Python, so no flag is needed."""
    return tiny_plan(**{field: f"{MODULE}:{PARTS[field]}"}, prior_draws=200)


@pytest.fixture(params=PARTS)
def field(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[Path, Audit]]:
    """Audits of earlier tests, by field."""
    return {}


@pytest.fixture
def theirs(
    payload: Payload, field: str, tmp_path_factory: pytest.TempPathFactory, made: dict[str, tuple[Path, Audit]]
) -> tuple[Path, Audit]:
    """An audit whose plan names code of somebody else, in their folder, and nothing of it imported yet."""
    if field not in made:
        path = tmp_path_factory.mktemp("made") / "theirs"
        made[field] = path, run_audit(path, plan_with(field))
        assert payload.was_run()
        payload.forget()
    path, result = made[field]
    return Path(shutil.copytree(path, tmp_path_factory.mktemp("copied") / "theirs")), result


def test_reading_runs_nothing(theirs: tuple[Path, Audit], payload: Payload, field: str, tmp_path: Path) -> None:
    folder, result = theirs
    loaded = Audit.load(folder)
    assert (loaded.title, loaded.headline, loaded.summary) == (result.title, result.headline, result.summary)
    assert payload.target(field) in (folder / "plan.toml").read_text()
    assert loaded.graph.num_nodes == loaded.runs.memberships.shape[1]
    assert str(loaded) == str(result)
    read_nodes(Workspace(folder))
    shutil.copytree(folder, tmp_path / "copy")
    definition = next(iter(loaded.estimates.posteriors[loaded.attacks.main]))
    comparison = compare([folder, tmp_path / "copy"], definition)
    assert comparison.estimated is None or comparison.estimated.audits[0].floor == result.headline[0].floor
    assert comparison.to_dict()
    before = times(folder)
    run_step(folder, "report", pictures=True)
    assert set(before) <= set(times(folder))
    assert stored_subject(Workspace(folder)).plan == loaded.plan
    assert not payload.was_run()


def test_a_plan_read_from_a_file_runs_nothing(payload: Payload, field: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    plan = plan_with(field)
    path.write_text(format_plan(plan, "demo"))
    payload.forget()
    stored = read_plan(path).plan
    value = getattr(stored, field)
    part = value[0] if isinstance(value, tuple) else value
    assert isinstance(part, UntrustedPart)
    assert part.target == payload.target(field)
    assert format_plan(stored, "demo") == path.read_text()
    assert stored.title
    assert stored.replace(shadows=12).shadows == 12
    assert not payload.was_run()
    trusted = read_plan(path, trust_code=True).plan
    assert format_plan(trusted, "demo") == path.read_text()
    assert payload.was_run() or field == "engine"  # which is imported when models are trained


@pytest.mark.parametrize("step", NEEDS)
def test_steps_that_need_the_code_refuse_and_name_it(
    theirs: tuple[Path, Audit], payload: Payload, field: str, step: str
) -> None:
    folder, _ = theirs
    if step == "train":
        shutil.rmtree(folder / "shadows")
        (folder / "shadows.json").unlink()
    elif step == "attack":
        (folder / "attack.json").unlink()
    elif step == "estimate":
        (folder / "summary.json").unlink()
    if field not in NEEDS[step]:
        run_step(folder, step)
        assert not payload.was_run()
        return
    before = times(folder)
    with pytest.raises(UntrustedCodeError) as refusal:
        run_step(folder, step)
    assert f"'{payload.target(field)}' is code that a file names: --trust-code runs the module '{MODULE}'" in str(
        refusal.value
    )
    assert not payload.was_run()
    assert times(folder) == before
    run_step(folder, step, trust_code=True)
    assert payload.was_run()


def test_a_whole_audit_of_their_folder_refuses(theirs: tuple[Path, Audit], payload: Payload, field: str) -> None:
    """Whoever takes up the plan of a folder, as `bmpaudit audit --out` does, takes its code with it."""
    folder, result = theirs
    subject, before = stored_subject(Workspace(folder)), times(folder)
    with pytest.raises(UntrustedCodeError, match=f"the module '{MODULE}'"):
        audit(subject.graph, subject.plan, shadows=14, folder=folder, pictures="none", runtime=QUIET)
    with pytest.raises(UntrustedCodeError, match=f"the module '{MODULE}'"):
        estimate_cost_or_audit(field, subject.plan)
    assert not payload.was_run()
    assert times(folder) == before
    trusted = stored_subject(Workspace(folder), trust_code=True)
    again = audit(trusted.graph, trusted.plan, folder=folder, pictures="none", runtime=QUIET)
    assert again.headline == result.headline
    assert payload.was_run()


def estimate_cost_or_audit(field: str, plan: AuditPlan) -> None:
    if field in NEEDS["train"]:
        estimate_cost(leaky_graph(), plan.shadow_plan, plan.shadows)
    else:
        audit(leaky_graph(), plan, runtime=QUIET)


def test_a_graph_that_a_folder_names_is_not_run(payload: Payload, tmp_path: Path) -> None:
    audit(f"{MODULE}:run", tiny_plan(), folder=tmp_path / "audit", pictures="none", runtime=QUIET)
    assert payload.was_run()
    payload.forget()
    # Its own copy is there: nothing has to run.
    loaded = Audit.load(tmp_path / "audit")
    assert loaded.source == f"{MODULE}:run"
    assert loaded.graph.content_hash == leaky_graph().content_hash
    run_step(tmp_path / "audit", "report")
    assert not payload.was_run()
    # Without it the code would be all there is.
    (tmp_path / "audit" / "graph.npz").unlink()
    readers: list[Callable[[], Any]] = [
        lambda: Audit.load(tmp_path / "audit").graph,
        lambda: stored_subject(Workspace(tmp_path / "audit")),
        lambda: stored_graph(Workspace(tmp_path / "audit"), f"{MODULE}:run"),
    ]
    for read in readers:
        with pytest.raises(UntrustedCodeError, match=f"the graph '{MODULE}:run' is code .* the module '{MODULE}'"):
            read()
    assert not payload.was_run()
    assert stored_subject(Workspace(tmp_path / "audit"), trust_code=True).graph.num_nodes == 48
    assert payload.was_run()


def test_a_function_that_trains_is_code_too(tmp_path: Path, payload: Payload) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'engine = "torch"\n[model]\nname = "{MODULE}:make"\ntrain = "{MODULE}:train"\n')
    plan = read_plan(path).plan
    assert isinstance(plan.model, UntrustedPart)
    assert plan.shadow_plan.own_training == f"{MODULE}:train"
    path.write_text(f'[model]\nname = "gcn"\ntrain = "{MODULE}:train"\n')
    with pytest.raises(Exception, match=r"unknown key model.train"):
        read_plan(path)
    assert not payload.was_run()


def test_changed_code_is_noticed(theirs: tuple[Path, Audit], payload: Payload, field: str) -> None:
    """A finished audit is computed again if a module of one's own took part and has changed since."""
    folder, _ = theirs
    plan = plan_with(field)
    before = times(folder)
    run_audit(folder, plan)
    assert times(folder) == before
    with (payload.folder / f"{MODULE}.py").open("a") as source:
        source.write("\n# better now\n")
    payload.forget()
    run_audit(folder, plan_with(field))
    after = times(folder)
    assert after["attack.json"] > before["attack.json"]
    assert after["summary.json"] > before["summary.json"]
