"""What a release exposes is no less, in any number shown, than what is found on one that is computed from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bmpaudit.attack import Evidence, Student
from bmpaudit.auditing.context import Runtime
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.plan import AuditPlan
from bmpaudit.proof.exposure import ReleaseExposure, expose
from bmpaudit.releases import Clean, NoisyLastLayer
from bmpaudit.util.values import Flags

NUM_MODELS, NUM_NODES = 40, 12


def exposed(memberships: Flags, seed: int) -> ReleaseExposure:
    rng = np.random.default_rng(seed)
    answers = rng.normal(size=memberships.shape) + rng.exponential(3.0, NUM_NODES) * memberships
    models = Evidence({"full": answers.astype(np.float32)}, memberships, np.arange(NUM_MODELS))
    return expose(Student(), models, np.full(NUM_NODES, 0.4), num_threads=1)


def test_at_each_precision_and_of_each_node_what_names_more_counts() -> None:
    memberships = np.random.default_rng(0).random((NUM_MODELS, NUM_NODES)) < 0.4
    one, two = exposed(memberships, 1), exposed(memberships, 2)
    joined = one.joined(two)
    for side in ("members", "non_members"):
        curve, *parts = (getattr(each.exposure, side) for each in (joined, one, two))
        for name in ("mean", "low", "high"):
            assert (getattr(curve.correct, name) == np.maximum(*(getattr(each.correct, name) for each in parts))).all()
        assert (curve.at_most == np.maximum(parts[0].at_most, parts[1].at_most)).all()
        # The table of models is of the same names.
        assert np.allclose(curve.correct.mean, getattr(joined.models, f"{side}_correct").mean(axis=0))
        assert np.allclose(curve.named, getattr(joined.models, f"{side}_named").mean(axis=0))
    nodes, *tables = (each.exposure.member_nodes for each in (joined, one, two))
    assert (nodes.num_named == np.maximum(tables[0].num_named, tables[1].num_named)).all()
    assert (nodes.high == np.maximum(tables[0].high, tables[1].high)).all()
    assert (nodes.num_models == tables[0].num_models).all()


def test_a_node_that_one_of_them_lacks_is_that_of_the_other() -> None:
    memberships = np.random.default_rng(0).random((NUM_MODELS, NUM_NODES)) < 0.4
    nodes = exposed(memberships, 1).exposure.member_nodes
    some = replace(nodes, **{name: value[2:] for name, value in vars(nodes).items() if name != "level"})
    for joined in (nodes.joined(some), some.joined(nodes)):
        assert {name: np.array(value).tolist() for name, value in vars(joined).items()} == {
            name: np.array(value).tolist() for name, value in vars(nodes).items()
        }


def test_no_derived_release_is_shown_to_leak_more() -> None:
    plan = AuditPlan().replace(
        shadows=64, definitions="bmp-r", seed=5, releases=(Clean(), NoisyLastLayer(0.01), NoisyLastLayer(0.03))
    )
    result = audit("demo", plan, runtime=Runtime(quiet=True, num_threads=1), pictures="none").result
    clean, *others = (each.exposure for each in result.releases.values())
    for derived in others:
        for side in ("members", "non_members"):
            for less, more in zip(getattr(derived, side), getattr(clean, side), strict=True):
                for name in ("correct", "correct_low", "correct_high", "at_most"):
                    assert getattr(less, name) <= getattr(more, name), (side, less.precision, name)
    powers = [each.power for each in result.releases.values()]
    assert all(each.node_share_high <= powers[0].node_share_high for each in powers)
    assert all(each.node_share_low <= powers[0].node_share_low for each in powers)
