"""scikit-learn classifiers as shadow models."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_estimators import Careless, WrongShape, forest, of_sizes
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from bmpaudit.auditing.context import Runtime
from bmpaudit.auditing.finished import Audit
from bmpaudit.graph.graph import Graph
from bmpaudit.inference.infer import infer
from bmpaudit.models import as_model
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.releases import Clean, FullEdges, label_margin
from bmpaudit.samplers import Bernoulli, RandomWalk, Snowball, Uniform, draw_memberships
from bmpaudit.shadow import ModelState, ShadowPlan, train_shadows
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.shadow.engines.sklearn import SklearnEngine
from bmpaudit.shadow.runs import log_votes
from bmpaudit.util.errors import InputError

QUIET = Runtime(quiet=True, num_threads=1)
PATIENCE = 120.0


def small_table(num_rows: int = 40, num_classes: int = 3) -> Graph:
    rng = np.random.default_rng(0)
    return Graph.from_table(rng.normal(size=(num_rows, 4)), np.arange(num_rows) % num_classes)


TABLE = small_table()


def plan_of(model: Any, **settings: Any) -> ShadowPlan:
    parts = {"releases": (Clean(),), "queries": (FullEdges(),), "engine": "sklearn"}
    return ShadowPlan(Uniform(0.5), model, **parts | settings)


def fill(table: Graph, plan: ShadowPlan, memberships: np.ndarray) -> ShadowBatch:
    batch = ShadowBatch.empty(table, plan, np.arange(len(memberships)), memberships, keep_logits=True)
    SklearnEngine(table, plan).fill(batch, 1, lambda _: None)
    return batch


def test_models_differ_by_their_samples_and_random_states_and_are_asked_about_every_row() -> None:
    plan = plan_of(DecisionTreeClassifier(max_depth=2, splitter="random"))
    member = draw_memberships(TABLE, plan.sampler, 1, 0)[0]
    batch = fill(TABLE, plan, np.array([member, member]))
    assert batch.logits is not None
    assert not np.array_equal(batch.logits[0, 0], batch.logits[0, 1]), "same sample, another random state"
    np.testing.assert_array_equal(batch.statistics[0], label_margin(batch.logits[0], TABLE.labels))
    for row in range(2):
        right = batch.logits[0, row].argmax(axis=1) == TABLE.labels
        assert batch.train_accuracy[row] == np.float32(right[member].mean())
        assert batch.held_out_accuracy[row] == np.float32(right[~member].mean())


def test_a_classifier_without_randomness_is_the_reference_to_the_last_bit() -> None:
    plan = plan_of(make_pipeline(StandardScaler(), LogisticRegression()))
    memberships = draw_memberships(TABLE, plan.sampler, 3, 0)
    batch = fill(TABLE, plan, memberships)
    assert batch.logits is not None
    for row, member in enumerate(memberships):
        reference = make_pipeline(StandardScaler(), LogisticRegression())
        reference.fit(TABLE.dense_features[member], TABLE.labels[member])
        logits = np.log(reference.predict_proba(TABLE.dense_features).astype(np.float64)).astype(np.float32)
        np.testing.assert_array_equal(batch.logits[0, row], logits)


def test_classes_that_a_sample_lacks_have_a_small_probability() -> None:
    memberships = (TABLE.labels != 1)[None]
    batch = fill(TABLE, plan_of(DecisionTreeClassifier()), memberships)
    assert batch.logits is not None
    np.testing.assert_allclose(np.exp(batch.logits[0, 0, :, 1]), 0.01, rtol=1e-5)
    known = np.exp(batch.logits[0, 0])[:, [0, 2]]
    np.testing.assert_allclose(np.sort(known, axis=1), [[0.01, 1.0]] * 40, rtol=1e-5)
    assert np.isfinite(batch.statistics).all()
    assert batch.train_accuracy[0] == 1.0


def test_a_probability_of_zero_counts_as_a_quarter_of_the_smallest_other() -> None:
    np.testing.assert_allclose(np.exp(log_votes(np.array([[1.0, 0.0], [0.996, 0.004]]))[0]), [1.0, 0.001], rtol=1e-6)
    np.testing.assert_allclose(np.exp(log_votes(np.array([[1.0, 0.0]]))[0]), [1.0, 0.01], rtol=1e-6)
    assert np.isfinite(log_votes(np.array([[1.0, 5e-324, 0.0]]))).all()


def test_samples_of_nobody_or_of_one_class_leave_a_failed_model() -> None:
    memberships = np.array([np.zeros(40, dtype=bool), TABLE.labels == 1, TABLE.labels < 2])
    batch = fill(TABLE, plan_of(LogisticRegression()), memberships)
    assert batch.state.tolist() == [ModelState.FAILED, ModelState.FAILED, ModelState.TRAINED]
    one_class = fill(TABLE, plan_of(DecisionTreeClassifier()), memberships)
    assert one_class.state.tolist() == [ModelState.FAILED, ModelState.TRAINED, ModelState.TRAINED]


def test_probabilities_as_small_as_numbers_get_are_finite() -> None:
    table = Graph.from_table(1e3 * np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2)
    batch = fill(table, plan_of(GaussianNB(var_smoothing=0.0)), draw_memberships(table, Uniform(0.5), 2, 0))
    assert (batch.state == ModelState.TRAINED).all()


def test_global_generators_are_seeded_for_each_model_and_left_as_they_were() -> None:
    plan = plan_of(Careless())
    memberships = draw_memberships(TABLE, plan.sampler, 2, 0)
    random.seed(1)
    before, numpy_before = random.getstate(), np.random.get_state()  # noqa: NPY002
    first = fill(TABLE, plan, memberships)
    assert random.getstate() == before
    assert str(np.random.get_state()) == str(numpy_before)  # noqa: NPY002
    random.seed(2)
    assert first.statistics.tobytes() == fill(TABLE, plan, memberships).statistics.tobytes()
    assert not np.array_equal(first.statistics[0, 0], first.statistics[0, 1])
    other = fill(TABLE, replace(plan, seed=1), memberships)
    assert not np.array_equal(first.statistics, other.statistics)


@pytest.mark.parametrize("model", [RandomForestClassifier(40), Careless()], ids=["forest", "careless"])
def test_two_processes_give_the_same_bytes_as_one(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmpaudit.shadow.engines.processes.SECONDS_ALONE", 0.0)
    plan = plan_of(model)
    memberships = draw_memberships(TABLE, plan.sampler, 6, 0)
    batch, engine = ShadowBatch.empty(TABLE, plan, np.arange(6), memberships), SklearnEngine(TABLE, plan)

    def wait(_: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while not engine.processes:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    try:
        engine.fill(batch, 2, wait)
        assert len(engine.processes) == 1
        assert engine.processes[0] != os.getpid()
    finally:
        engine.close()
    assert batch.statistics.tobytes() == fill(TABLE, plan, memberships).statistics.tobytes()


def test_workers_resuming_and_adding_models_give_the_same_bytes(tmp_path: Path) -> None:
    plan = plan_of(forest())
    whole = train_shadows(TABLE, plan, 6, tmp_path / "whole", num_threads=1)
    train_shadows(TABLE, plan, 2, tmp_path / "parts", num_threads=1)
    with ThreadPoolExecutor(2) as executor:
        parts = train_shadows(TABLE, plan, 6, tmp_path / "parts", executor=executor)
    assert parts.statistics["full_clean"].tobytes() == whole.statistics["full_clean"].tobytes()
    with pytest.raises(InputError, match="n_estimators"):
        train_shadows(TABLE, replace(plan, model=RandomForestClassifier(4)), 6, tmp_path / "whole")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (as_model(WrongShape()), r"shadow model 0: predict_proba must give shape \(40, 3\) .*, got \(39, 3\)"),
        (as_model(RandomForestClassifier(n_estimators=-1)), "shadow model 0: InvalidParameterError: .*n_estimators"),
    ],
)
def test_a_classifier_that_cannot_be_used_ends_in_one_line(model: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        train_shadows(TABLE, plan_of(model), 2, tmp_path, num_threads=1)
    assert "\n" not in str(caught.value)


def test_a_function_of_sizes_that_makes_a_classifier_is_told_apart(tmp_path: Path) -> None:
    plan = plan_of(of_sizes, engine="torch")
    with pytest.raises(
        InputError, match=r"of_sizes must make an nn\.Module, got DecisionTreeClassifier; .*no arguments"
    ):
        train_shadows(TABLE, plan, 2, tmp_path)


@pytest.mark.parametrize("sampler", [Snowball(0.5), RandomWalk(0.5)])
def test_samplers_that_follow_edges_refuse_a_table(sampler: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sampling follows edges, and there are none: use uniform"):
        train_shadows(TABLE, replace(plan_of(forest()), sampler=sampler), 2, tmp_path)
    assert not (tmp_path / "shadows").exists()


def audit_of(model: Any, shadows: int = 60, **settings: Any) -> Audit:
    features, labels = load_breast_cancer(return_X_y=True)
    table = (features[:200], labels[:200])
    return audit(table, model=model, shadows=shadows, definitions="bmp-r", runtime=QUIET, **settings)


def test_a_forest_that_memorises_leaks_and_a_constant_does_not() -> None:
    leaking = audit_of(DecisionTreeClassifier(), sampler=Bernoulli(0.5))
    assert leaking.is_leakage_found
    assert " of 200 rows are proven to leak." in leaking.verdict
    assert leaking.title == "table, Bernoulli 50 %, DecisionTreeClassifier"
    constant = audit_of(DummyClassifier(strategy="uniform"), sampler=Uniform(0.5))
    assert not constant.is_leakage_found
    assert constant.main_findings.proof is None or not constant.main_findings.proof.is_leakage_proven
    texts = [*vars(constant.answer).values(), *leaking.summary["next"], *leaking.summary["cautions"]]
    words = " ".join(" ".join(text) if isinstance(text, list) else text for text in texts)
    assert "graph" not in words
    assert "node" not in words.replace("bmpaudit nodes", "").replace("say node, they mean a row", "")
    assert "epochs" not in words


def test_a_released_classifier_is_looked_at(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"sampler": Uniform(0.5), "folder": tmp_path / "audit", "pictures": "none"}
    done = audit_of(RandomForestClassifier(10), 24, release_as="scores", **settings)
    features, labels = done.graph.dense_features, done.graph.labels
    member = np.zeros(200, dtype=bool)
    member[::2] = True
    released = RandomForestClassifier(10, random_state=0).fit(features[member], labels[member])
    found = infer(done, released, truth=member, runtime=Runtime(num_threads=1))
    np.save(tmp_path / "probabilities.npy", released.predict_proba(features))
    from_file = infer(tmp_path / "audit", tmp_path / "probabilities.npy", truth=member, runtime=Runtime(num_threads=1))
    pd.testing.assert_frame_equal(found.table, from_file.table)
    assert Audit.load(tmp_path / "audit").title == done.title
