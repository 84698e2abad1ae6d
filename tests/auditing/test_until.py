"""More and more shadow models, until ε is known well enough or enough is proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audit import QUIET, leaky_graph, small_plan, summary_of

from bmpaudit.attack import Evidence
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.auditing.context import Subject
from bmpaudit.auditing.stages import bound_level, proof_attacks
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.estimation.estimate import estimate
from bmpaudit.models import Training
from bmpaudit.pipeline import pipeline as until
from bmpaudit.pipeline.outside_runs import ProofSettings, prove_folder
from bmpaudit.pipeline.pipeline import Pipeline, Stopped, audit_until
from bmpaudit.plan import AuditPlan, read_plan
from bmpaudit.proof import prove
from bmpaudit.util.errors import InputError

# Hardly trained: no node is told apart without error.
WEAK: dict[str, Any] = {
    "queries": "full",
    "rules": "weak",
    "definitions": "mp",
    "training": Training(epochs=2, learning_rate=0.01),
}


def run(path: Path, width: float, max_shadows: int = 90, plan: AuditPlan | None = None) -> Stopped:
    subject = Subject(leaky_graph(), "", plan or small_plan(**WEAK))
    return audit_until(subject, Workspace(path), QUIET, width=width, max_shadows=max_shadows, pictures="none")


def test_rates_with_endless_models() -> None:
    """Both kinds of error never made: so it stays. One kind never made: it may just be rare."""
    counts = ErrorCounts.from_arrays(
        num_out=[20, 20, 20, 20],
        num_in=10,
        false_positives=[0, 20, 0, 5],
        false_negatives=[0, 10, 10, 5],
        prior_prob=0.4,
    )
    scaled = until._scaled(counts)
    assert scaled.num_out.tolist() == [200_000] * 4
    np.testing.assert_allclose(scaled.false_positives / scaled.num_out, [0, 1, 0.5 / 21, 5.5 / 21], atol=1e-5)
    np.testing.assert_allclose(scaled.false_negatives / scaled.num_in, [0, 1, 10.5 / 11, 0.5], atol=1e-5)


def test_a_wide_target_is_reached_at_once(tmp_path: Path) -> None:
    reached = run(tmp_path, 50.0)
    assert reached.is_reached
    assert reached.shadows == 40
    assert reached.audit.summary == summary_of(tmp_path)
    row = reached.audit.headline[0]
    assert reached.message == f"the 90 % interval of mp is {row.p95 - row.p5:.2f} wide with 40 models"


def narrower_with_more(pipeline: Pipeline, *_: object) -> tuple[float, float]:
    """As the interval would be if it shrank with the root of the number of models."""
    return 10 / np.sqrt(pipeline.runs.num_models), 0.1


def test_models_are_added_until_it_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(until, "_widths", narrower_with_more)
    reached = run(tmp_path, 1.2)
    assert (reached.is_reached, reached.shadows) == (True, 90)  # 40, 60, 90
    assert reached.message == "the 90 % interval of mp is 1.05 wide with 90 models"
    assert read_plan(tmp_path / "plan.toml").plan.shadows == 90
    assert reached.audit.summary["shadow_models"]["trained"] == 90
    # Again: the models that are there count, whatever the plan starts with.
    again = run(tmp_path, 1.2)
    assert (again.shadows, again.audit.summary) == (90, reached.audit.summary)


def test_the_limit_is_kept_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(until, "_widths", narrower_with_more)
    reached = run(tmp_path, 1.2, max_shadows=50)
    assert (reached.is_reached, reached.shadows) == (False, 50)
    assert reached.message == (
        "stopped at the limit of 50 models: the 90 % interval of mp is 1.41 wide with 50 models, not 1.2"
    )
    assert reached.audit.summary["shadow_models"]["trained"] == 50


def test_it_stops_at_once_where_endless_models_would_not_do(tmp_path: Path) -> None:
    """Every node is told apart without error: only the prior says how large ε is at most."""
    plan = small_plan(queries="full", rules="weak", definitions="mp", training=Training(epochs=150, learning_rate=0.3))
    reached = run(tmp_path, 0.5, plan=plan)
    counts = reached.audit.attacks.main_counts
    assert ((counts.false_positives == 0) & (counts.false_negatives == 0)).any()
    assert not reached.is_reached
    assert reached.shadows == 40
    row, endless = reached.audit.headline[0], estimate(until._scaled(counts), "mp").interval(0.9).width
    assert endless > 0.5
    assert reached.message == (
        f"stopped: at the present error rates the 90 % interval of mp would be {endless:.2f} wide even with endless "
        f"models (now {row.p95 - row.p5:.2f}), not 0.5: what remains is the prior's"
    )


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan])
def test_impossible_widths(width: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="until_width must be positive, got until_width="):
        run(tmp_path, width)
    with pytest.raises(InputError, match="max_shadows must be"):
        run(tmp_path, 1.0, max_shadows=0)
    assert list(tmp_path.iterdir()) == []


def test_stopping_when_it_looks_good_is_proven_by_the_method_that_allows_for_it(tmp_path: Path) -> None:
    reached = run(tmp_path, 50.0, plan=small_plan(**WEAK, shadows=80))
    assert reached.audit.plan.proof_method == "prequential"
    proof = reached.audit.main_findings.proof
    assert proof is not None
    assert {bound.method for bound in proof.bounds} == {"prequential"}


def test_models_are_added_until_enough_is_proven(tmp_path: Path) -> None:
    subject = Subject(leaky_graph(), "", small_plan(shadows=50, queries="full"))
    reached = audit_until(subject, Workspace(tmp_path), QUIET, proven=1.0, max_shadows=1_000, pictures="none")
    assert reached.is_reached
    proof = reached.audit.main_findings.proof
    assert proof is not None
    assert proof.epsilon_right.proven is not None
    assert proof.epsilon_right.proven >= 1.0
    assert proof.epsilon_right.method == "prequential"
    assert reached.shadows in (75, 113, 170, 255, 383, 575)
    assert reached.message == (
        f"ε_R ≥ {proof.epsilon_right.proven:.2f} is proven with {reached.shadows} models, "
        f"{proof.epsilon_right.num_hits} of {proof.epsilon_right.num_guesses} guesses right"
    )
    # Proving again does not forget that the number of models depended on what was seen.
    assert prove_folder(tmp_path, ProofSettings(("gaussian",)), QUIET).epsilon_right.method == "prequential"
    # By the level with which all bounds of an audit hold together: 95 % for five bounds of scores and five of labels.
    assert bound_level(reached.audit.plan, "clean", "scores") == proof.epsilon_right.level == pytest.approx(0.995)

    def proven(num_models: int, level: float) -> float:
        bound = prove(
            proof_attacks(reached.audit.plan, "clean"),
            Evidence.of_runs(reached.audit.runs, "clean", ["full"], reached.audit.graph).take(slice(num_models)),
            reached.audit.priors.prob,
            method="prequential",
            level=level,
        ).epsilon_right.proven
        return -np.inf if bound is None else bound

    # With fewer models it was not: otherwise there would have been no reason to go on.
    assert proven(int(np.floor(reached.shadows / 1.5)), 0.99) < 1.0
    # What is proven at 95 % by itself is not enough to stop.
    by_itself = proven(reached.shadows, 0.95)
    assert by_itself > proof.epsilon_right.proven
    again = audit_until(
        subject, Workspace(tmp_path), QUIET, proven=by_itself, max_shadows=reached.shadows, pictures="none"
    )
    assert (again.is_reached, again.shadows) == (False, reached.shadows)


def test_the_limit_is_kept_when_nothing_is_proven(tmp_path: Path) -> None:
    plan = small_plan(queries="full", training=Training(epochs=1, learning_rate=1e-9))
    subject = Subject(leaky_graph(), "", plan)
    reached = audit_until(subject, Workspace(tmp_path), QUIET, proven=6.0, max_shadows=100, pictures="none")
    assert (reached.is_reached, reached.shadows) == (False, 100)
    assert reached.message.startswith("stopped at the limit of 100 models: ")
    assert reached.message.endswith(": not ε_R ≥ 6")


@pytest.mark.parametrize("epsilon", [np.inf, np.nan])
def test_impossible_epsilons(epsilon: float, tmp_path: Path) -> None:
    subject = Subject(leaky_graph(), "", small_plan())
    with pytest.raises(InputError, match="until_proven must be a number, got until_proven="):
        audit_until(subject, Workspace(tmp_path), QUIET, proven=epsilon, max_shadows=100)
    assert list(tmp_path.iterdir()) == []
