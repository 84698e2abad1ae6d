"""The check whether a model was trained as the plan says: its rate is nominal, and other trainings are noticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.attack import Evidence, Gaussian
from bmpaudit.inference.released import (
    BehaviourCheck,
    attack_released,
    behaviour,
    calibrate,
    compare_with_shadows,
    score_inference,
)
from bmpaudit.models import GCN, Training
from bmpaudit.releases import Clean
from bmpaudit.samplers import Snowball, Uniform, draw_memberships
from bmpaudit.shadow import ModelState, ShadowPlan
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.native import NativeEngine
from bmpaudit.util import matrices

Statistics = dict[str, np.ndarray]


def trained(num_models: int, seed: int, sampler: Any, model: Any = None, **training: Any) -> Statistics:
    """Statistics of real models of the demo graph, by query."""
    graph = datasets.load("demo")
    plan = ShadowPlan(sampler, model or GCN(), Training(**{"epochs": 40} | training), (Clean(),), seed=seed)
    memberships = draw_memberships(graph, sampler, num_models, seed)
    batch = ShadowBatch.empty(graph, plan, np.arange(num_models), memberships)
    NativeEngine(graph, plan).fill(batch, 2, lambda _: None)
    assert (batch.state == ModelState.TRAINED).all()
    return {view.query_name: batch.statistics[number] for number, view in enumerate(plan.views)}


def check_of(shadows: Statistics, models: Statistics, row: int) -> BehaviourCheck:
    return behaviour(shadows, {query: values[row] for query, values in models.items()}).check


def most_allowed(level: float, repeats: int) -> float:
    return level + 4 * np.sqrt(level * (1 - level) / repeats)


@pytest.mark.parametrize("share_of_odd", [0.0, 0.06, 0.5])
@pytest.mark.parametrize("num_models", [20, 60])
def test_p_values_are_valid_whatever_the_distribution(share_of_odd: float, num_models: int) -> None:
    """Heavy tails, quantities that depend on each other, ties, and a group that differs in every respect."""
    rng, repeats = np.random.default_rng(1), 1_500
    p_values = np.empty(repeats)
    for repeat in range(repeats):
        common = rng.standard_cauchy(num_models + 1)
        is_odd = rng.random(num_models + 1) < share_of_odd
        values = {
            "tails": common + 50 * is_odd,
            "dependent": common**2 + rng.normal(size=num_models + 1),
            "tied": rng.integers(0, 3, num_models + 1) - 9.0 * is_odd,
        }
        released = {name: float(each[-1]) for name, each in values.items()}
        p_values[repeat] = compare_with_shadows(
            {name: each[:-1] for name, each in values.items()}, released, is_odd
        ).p_value
    for level in (0.01, 0.05, 0.1, 0.3):
        assert (p_values <= level).mean() <= most_allowed(level, repeats)


def test_p_values_of_a_score_are_nominal_though_fits_differ_by_a_model() -> None:
    """The released model is scored by a fit on one model more than the others, and by a map that it is not in."""
    rng, repeats, num_models, num_nodes = np.random.default_rng(2), 500, 39, 60
    prior, p_values = np.full(num_nodes, 0.4), np.empty(repeats)
    for repeat in range(repeats):
        members = rng.random((num_models + 1, num_nodes)) < 0.4
        noise = rng.normal(size=members.shape) * rng.gamma(4, 0.25, size=(num_models + 1, 1))
        statistics = (noise + 1.5 * members + rng.normal(size=num_nodes)).astype(np.float32)
        models = Evidence({"none": statistics[:-1]}, members[:-1], np.arange(num_models))
        learnt = calibrate(Gaussian(), models, prior, 1)
        found = attack_released(learnt, models, {"none": statistics[-1]}, prior, 1)
        no_groups = np.zeros(num_models + 1, dtype=np.bool_)
        scored = score_inference(learnt, found, np.zeros(num_nodes), members[-1], no_groups)
        p_values[repeat] = scored.standing.p_value
    for level in (0.025, 0.05, 0.1, 0.3):
        assert (p_values <= level).mean() <= most_allowed(level, repeats)
    assert (p_values <= 0.5).mean() >= 0.4  # nor are they of no use


def test_without_groups_the_rank_is_exactly_uniform() -> None:
    rng, repeats, num_models = np.random.default_rng(2), 4_000, 19
    p_values = np.empty(repeats)
    for repeat in range(repeats):
        values = rng.normal(size=(2, num_models + 1))
        shadows = {"a": values[0, :-1], "b": values[1, :-1]}
        p_values[repeat] = compare_with_shadows(shadows, {"a": values[0, -1], "b": values[1, -1]}).p_value
    for level in (0.05, 0.25, 0.5):
        assert abs((p_values <= level + 1e-9).mean() - level) < 4 * np.sqrt(level * (1 - level) / repeats)


@pytest.mark.parametrize("sampler", [Uniform(0.25), Snowball(0.25, fan_out=3)], ids=str)
def test_real_models_that_were_held_out_pass_at_the_nominal_rate(sampler: Any) -> None:
    models, num_shadows, rng = trained(400, 1, sampler), 60, np.random.default_rng(3)
    p_values = []
    for row in range(400):
        others = rng.choice(np.delete(np.arange(400), row), num_shadows, replace=False)
        p_values.append(check_of({query: values[others] for query, values in models.items()}, models, row).p_value)
    for level in (0.02, 0.1, 0.3):
        assert np.mean(np.array(p_values) <= level) <= most_allowed(level, 400)


@pytest.mark.parametrize(
    "change",
    [{"epochs": 100}, {"epochs": 15}, {"model": GCN(hidden=4)}, {"sampler": Uniform(0.6)}, {"sampler": Uniform(0.08)}],
    ids=str,
)
def test_other_epochs_width_and_sample_size_are_noticed(change: dict[str, Any]) -> None:
    shadows = trained(120, 1, Uniform(0.25))
    sampler = change.pop("sampler", Uniform(0.25))
    others = trained(10, 2, sampler, **change)
    checks = [check_of(shadows, others, row) for row in range(10)]
    assert sum(not check.is_like_shadows for check in checks) >= 9
    for check in checks:
        most = check.standings[0]
        assert check.is_like_shadows or not most.low <= most.value <= most.high


def test_a_model_that_has_learnt_nothing_is_noticed() -> None:
    shadows = trained(120, 1, Uniform(0.25))
    noise = np.random.default_rng(0).normal(-3, 1, size=(1, 1000)).astype(np.float32)
    check = check_of(shadows, {"full": noise, "none": noise}, 0)
    assert (check.p_value, check.is_like_shadows) == (2 / 121, False)


def test_squared_deviation_is_that_from_all_other_models() -> None:
    rng = np.random.default_rng(4)
    statistics = rng.normal(3, 2, size=(9, 30)).astype(np.float32)
    statistics[:, 7] = 1.0  # does not vary
    found = behaviour({"full": statistics[:-1]}, {"full": statistics[-1]}).check
    (deviation,) = [each for each in found.standings if each.name.startswith("squared deviation")]
    others, varies = statistics[:-1].astype(np.float64), np.arange(30) != 7
    z = (statistics[-1] - others.mean(axis=0))[varies] / others.std(axis=0)[varies]
    assert deviation.value == pytest.approx((z**2).mean())


def test_too_few_models_tell_nothing() -> None:
    rng = np.random.default_rng(5)
    far = {"a": 1e6}
    assert compare_with_shadows({"a": rng.normal(size=18)}, far).is_like_shadows
    assert not compare_with_shadows({"a": rng.normal(size=19)}, far).is_like_shadows
    constant = compare_with_shadows({"a": np.ones(30)}, {"a": 1.0})
    assert (constant.p_value, constant.is_like_shadows) == (1.0, True)
    assert not compare_with_shadows({"a": np.ones(30)}, {"a": 1.5}).is_like_shadows


def test_blocks_of_nodes_give_what_all_nodes_give(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = np.random.default_rng(3).normal(size=(12, 300)).astype(np.float32)
    statistics[:, 40:60] = 1.5  # margins that do not vary
    whole = behaviour({"full": statistics[:-1]}, {"full": statistics[-1]})
    monkeypatch.setattr(matrices, "MAX_BLOCK", 12 * 32)
    blocks = behaviour({"full": statistics[:-1]}, {"full": statistics[-1]})
    assert len(list(matrices.node_blocks(300, 12))) == 10
    for one, other in zip(whole.check.standings, blocks.check.standings, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-13)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-13)
