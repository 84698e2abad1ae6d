"""Exposure and calibration of real shadow models: what holds with many models is not denied with few."""

from pathlib import Path

import numpy as np
import pytest
import scipy.special

from bmpaudit import datasets, registry
from bmpaudit.attack import Evidence, Strong, challenge
from bmpaudit.attack.rules import log_prior_odds
from bmpaudit.interfaces import Attack
from bmpaudit.models import GCN, Training
from bmpaudit.proof import expose, reliability
from bmpaudit.proof.exposure import LeftOut, recalibrate_nodes
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.samplers.priors import prior_probabilities
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.matrices import new_matrix
from bmpaudit.util.values import Floats

LEVELS = (0.9, 0.95, 0.99)
SAMPLERS = {"uniform": Uniform(0.25), "snowball": Snowball(0.25)}


@pytest.fixture(scope="module", params=list(SAMPLERS))
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, Floats]:
    graph, sampler = datasets.load("demo"), SAMPLERS[request.param]
    folder: Path = tmp_path_factory.mktemp("runs")
    runs = train_shadows(graph, ShadowPlan(sampler, GCN(), Training(), seed=5), 320, folder)
    return Evidence.of_runs(runs, "clean", ["full", "none"], graph), prior_probabilities(graph, sampler).prob


def test_fresh_models_are_calibrated(models: tuple[Evidence, Floats]) -> None:
    evidence, prior_prob = models
    attack: Attack = registry.build(registry.ATTACK, "student")
    fitting, fresh = evidence.take(slice(64)), evidence.take(slice(192, None))
    table = new_matrix(64, fitting.num_nodes)
    known = LeftOut.score(attack, fitting, log_prior_odds(prior_prob), table, 1, None, lambda _: None)
    learnt = recalibrate_nodes(known)
    scores = challenge(attack, fresh, prior_prob, {"strong": Strong()}, fitting=fitting, with_scores=True).scores
    assert scores is not None
    assert np.array_equal(scores.node, known.nodes)
    mapped = learnt(scores.of("strong"))
    assert reliability(mapped, scores.memberships).expected_calibration_error <= 0.02
    for level in (0.9, 0.95):
        assert scores.memberships[mapped >= scipy.special.logit(level)].mean() >= level


def test_intervals_of_few_and_of_more_models_overlap(models: tuple[Evidence, Floats]) -> None:
    evidence, prior_prob = models
    attack: Attack = registry.build(registry.ATTACK, "student")
    few, more = (expose(attack, evidence.take(slice(number)), prior_prob).exposure.members for number in (48, 192))
    for k in map(few.at, LEVELS):
        assert few.correct.low[k] <= more.correct.high[k]
        assert more.correct.low[k] <= few.correct.high[k]
    k = few.at(0.99)
    assert not few.is_settled[k]


def test_nodes_that_rank_first_are_named_in_other_models(models: tuple[Evidence, Floats]) -> None:
    evidence, prior_prob = models
    attack: Attack = registry.build(registry.ATTACK, "student")
    first, second = (
        expose(attack, evidence.take(rows), prior_prob).exposure.member_nodes for rows in (slice(160), slice(160, 320))
    )
    top = first.ranked()[:20]
    assert np.nanmean(second.share[top]) > 5 * np.nanmean(second.share)
    assert np.nanmin(second.share_correct[top]) > 0.5
