"""A node that gives itself away among a thousand that do not: it is named, or listed, and nothing reassures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit
from slow_strata import SlowStrata
from small_audit import QUIET

from bmpaudit import datasets
from bmpaudit.attack import Evidence, Gaussian, Strong, challenge
from bmpaudit.auditing.context import Runtime, Subject
from bmpaudit.auditing.workspace import Workspace
from bmpaudit.inference.infer import Inference, infer, render_inference_page
from bmpaudit.inference.released import Calibration, attack_released, calibrate
from bmpaudit.pipeline.outside_runs import import_runs
from bmpaudit.plan import AuditPlan
from bmpaudit.proof import calibration
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.util import matrices
from bmpaudit.util.values import to_json

GRAPH = datasets.load("demo")
SHIFT = 10.0
"""Standard deviations that node 0 is told apart by."""


def margins(memberships: np.ndarray, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=memberships.shape)
    values[..., 0] += SHIFT * memberships[..., 0]
    return values.astype(np.float32)


def outside(path: Path, num_models: int) -> Path:
    """An audit folder with models from a file: all answers are noise, but those about node 0."""
    memberships = draw_memberships(GRAPH, Uniform(0.25), num_models, 5)
    np.savez(path / "runs.npz", memberships=memberships, full_clean=margins(memberships, 11))
    subject = Subject(GRAPH, "demo", AuditPlan(sampler=Uniform(0.25), attack="gaussian", shadows=num_models, seed=5))
    import_runs(subject, Workspace(path / "audit"), path / "runs.npz", QUIET)
    return path / "audit"


def released(number: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Outputs with such answers, and who was in."""
    members = draw_memberships(GRAPH, Uniform(0.25), 1, 99, first=number)[0]
    logits = np.zeros((GRAPH.num_nodes, GRAPH.num_classes))
    answers = margins(members, 1_000 + number) + np.log(GRAPH.num_classes - 1)
    logits[np.arange(GRAPH.num_nodes), GRAPH.labels] = answers
    return {"full": logits}, members


def inferred(folder: Path, num_wanted: int, *, is_in: bool) -> list[Inference]:
    """What is inferred of models with node 0 in their samples, or without."""
    chosen = [outputs for outputs, members in map(released, range(60)) if members[0] == is_in]
    return [infer(folder, outputs, runtime=Runtime(num_threads=1)) for outputs in chosen[:num_wanted]]


@pytest.mark.parametrize(("num_models", "certainty"), [(64, 0.95), (128, 0.95), (1_000, 0.99)])
def test_it_is_named_as_surely_as_the_models_allow(num_models: int, certainty: float, tmp_path: Path) -> None:
    folder = outside(tmp_path, num_models)
    for found in inferred(folder, 6, is_in=True):
        row = found.table.set_index("node").loc[0]
        assert row["beyond"] == "non-member"
        assert found.table.iloc[0]["node"] == 0
        assert found.at(certainty).members == 1
        assert row[f"named_{100 * certainty:g}"] == "member"
        assert found.verdict.startswith(
            f"From this model an adversary can name one of its training nodes with {100 * certainty:g} % certainty. "
        )
        # Of noise nothing can be said, and that is what is said.
        assert found.at(certainty).members_undecidable == 999
        shown = "any node was" if certainty < 0.99 else "999 of 1,000 nodes were"
        assert (
            f"With {num_models:,} shadow models it cannot be decided with 99 % certainty whether {shown} in its "
            "training sample." in found.verdict
        )
        assert not any("none" in text for text in (str(found), found._repr_html_()))
        assert "none of" not in render_inference_page(found, 5)
        if certainty < 0.99:
            assert "1 node answers like a member, beyond every non-member of the shadow models: 0." in found.verdict
        assert ("0" in found.beyond("non-member", only_unnamed=True)) == (certainty < 0.99)


def test_without_it_the_verdict_has_an_upper_end(tmp_path: Path) -> None:
    folder = outside(tmp_path, 64)
    for found in inferred(folder, 5, is_in=False):
        row = found.table.set_index("node").loc[0]
        assert row["posterior_prob"] < 0.25
        assert found.at(0.95).members == 0
        assert found.verdict.startswith(
            "With 64 shadow models it cannot be decided with 95 % certainty whether 999 of 1,000 nodes were in its "
            "training sample. The most likely member is node "
        )
        assert f", at {100 * found.table['posterior_prob'].max():.1f} %." in found.verdict


def test_what_is_undecidable_and_beyond_is_in_table_json_and_page(tmp_path: Path) -> None:
    (found,) = inferred(outside(tmp_path, 64), 1, is_in=True)
    values = json.loads(to_json(found.to_plain()))
    assert "0" in values["beyond_non_members"]
    assert values["beyond_non_members"] == [row["name"] for row in values["nodes"] if row["beyond"] == "non-member"]
    assert values["beyond_members"] == [row["name"] for row in values["nodes"] if row["beyond"] == "member"]
    assert [each["members_undecidable"] for each in values["named"]] == [999, 1_000]
    head, rows = found.named_cells()
    assert [row[head.index("cannot be decided")] for row in rows[:2]] == ["999", "1,000"]
    page = render_inference_page(found, 5)
    assert found.verdict in page
    for text in ("cannot be decided", "beyond every"):
        assert f">{text}</th>" in page
    # With a declared prior, what can be reached moves with the odds.
    surer = infer(tmp_path / "audit", released(0)[0], prior=0.9)
    assert surer.at(0.99).members_undecidable < 1_000
    certain = np.full(1_000, 0.25)
    certain[0] = 0.0
    known = infer(tmp_path / "audit", released(0)[0], prior=certain)
    assert known.at(0.99).members_undecidable == 999
    assert "0" not in known.beyond("non-member")


# The calibration behind it, on nodes of every strength.


def mixture(num_models: int, seed: int, num_nodes: int = 60) -> tuple[Evidence, np.ndarray]:
    """Nodes told apart by 0 to 6 standard deviations, and their priors."""
    rng = np.random.default_rng(seed)
    prior = rng.choice([0.2, 0.5, 0.7], num_nodes)
    memberships = rng.random((num_models, num_nodes)) < prior
    values = rng.normal(size=memberships.shape) + np.linspace(0, 6, num_nodes) * memberships
    return Evidence({"full": values.astype(np.float32)}, memberships, np.arange(num_models)), prior


def left_out_scores(models: Evidence, prior: np.ndarray) -> np.ndarray:
    scores = challenge(Gaussian(), models, prior, {"strong": Strong()}, with_scores=True).scores
    assert scores is not None
    return scores.of("strong").astype(np.float32)


def test_strata_maps_and_extremes_are_those_of_a_slow_reference() -> None:
    models, prior = mixture(90, 0)
    learnt = calibrate(Gaussian(), models, prior, 1)
    slow = SlowStrata(left_out_scores(models, prior), models.memberships, prior)
    assert sorted(slow.maps) == [0, 1, 2]
    assert min(np.bincount(slow.stratum)) >= 5
    assert learnt.recalibration.stratum.tolist() == slow.stratum
    answers = mixture(1, 1)[0].statistics["full"]
    found = attack_released(learnt, models, {"full": answers[0]}, prior, 1)
    assert found.calibrated == pytest.approx(slow.calibrated(found.score))
    beyond = np.select([found.is_above, found.is_below], ["non-member", "member"], "").tolist()
    assert beyond == slow.beyond(found.score)
    assert {"non-member", "member"} <= set(beyond)
    lowest, highest = found.reachable
    assert highest.tolist() == [slow.maps[stratum].log_odds[-1] for stratum in slow.stratum]
    assert lowest.tolist() == [slow.maps[stratum].log_odds[0] for stratum in slow.stratum]


def test_all_nodes_are_worked_through_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a scratch file, some nodes at a time, and with maps that are learnt from a part of them."""
    models, prior = mixture(90, 0)

    def learnt() -> Calibration:
        return calibrate(Gaussian(), models, prior, 1)

    whole = learnt()
    monkeypatch.setattr(matrices, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(matrices, "MAX_BLOCK", 90 * 8)
    blocks = learnt()
    assert isinstance(blocks.left_out.table, matrices.ScratchMatrix)
    assert blocks.recalibration.stratum.tolist() == whole.recalibration.stratum.tolist()
    for name in ("lowest_member", "highest_non_member"):
        assert getattr(blocks.recalibration, name).tolist() == getattr(whole.recalibration, name).tolist()
    for one, other in zip(blocks.recalibration.maps, whole.recalibration.maps, strict=True):
        assert one.log_odds == pytest.approx(other.log_odds)
    assert blocks.log_loss == pytest.approx(whole.log_loss)
    monkeypatch.setattr(calibration, "MAX_CHALLENGES", 90 * 10)
    thinned = learnt().recalibration
    assert len(thinned.stratum) == 60
    assert all(each.num_challenges < 90 * 20 for each in thinned.maps)
    assert thinned.highest_non_member.tolist() == whole.recalibration.highest_non_member.tolist()


@pytest.mark.parametrize("num_models", [12, 64])
def test_among_noise_hardly_any_non_member_is_listed(num_models: int) -> None:
    """At most about one model in J + 1 for each stratum has one beyond all non-members by chance."""
    rng, repeats, num_nodes = np.random.default_rng(3), 150, 40
    prior, listed = np.full(num_nodes, 0.4), 0
    for _ in range(repeats):
        members = rng.random((num_models + 1, num_nodes)) < 0.4
        values = rng.normal(size=members.shape).astype(np.float32)
        models = Evidence({"full": values[:-1]}, members[:-1], np.arange(num_models))
        found = attack_released(calibrate(Gaussian(), models, prior, 1), models, {"full": values[-1]}, prior, 1)
        listed += bool((found.is_above & ~members[-1]).any())
        assert (expit(found.calibrated) < 0.95).all()
    share = 3 / (num_models + 1)
    assert listed <= repeats * share + 4 * np.sqrt(repeats * share * (1 - share))


def test_few_strong_nodes_are_as_right_as_they_are_said_to_be() -> None:
    """Strata are told by other models than maps are learnt from: chance makes nobody too sure."""
    expected, right, spread, prior = 0.0, 0, 0.0, np.full(200, 0.4)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        members = rng.random((41, 200)) < 0.4
        shifts = np.append([6.0, 3.0, 2.0], np.full(197, 0.3))
        values = (rng.normal(size=members.shape) + shifts * members).astype(np.float32)
        models = Evidence({"full": values[:-1]}, members[:-1], np.arange(40))
        found = attack_released(calibrate(Gaussian(), models, prior, 1), models, {"full": values[-1]}, prior, 1)
        chosen = found.calibrated > logit(0.7)
        prob = expit(found.calibrated[chosen])
        expected, right = expected + prob.sum(), right + members[-1, chosen].sum()
        spread += (prob * (1 - prob)).sum()
    assert expected > 20
    assert right > expected - 4 * np.sqrt(spread)
