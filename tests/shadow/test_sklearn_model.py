"""scikit-learn classifiers in plans: found by name, written down, recognised."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from own_estimators import Careless, forest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from bmpaudit import registry
from bmpaudit.io.readers import parse_toml
from bmpaudit.models import SklearnModel, as_model
from bmpaudit.plan import AuditPlan, format_plan, parse_plan
from bmpaudit.registry import MODEL, UntrustedPart
from bmpaudit.releases import Clean, FullEdges, NoEdges, NoisyLastLayer
from bmpaudit.samplers import Uniform
from bmpaudit.shadow import ShadowPlan
from bmpaudit.util.errors import InputError

PIPELINE = make_pipeline(StandardScaler(), LogisticRegression(C=10.0, class_weight={0: 1.0, 1: 5.0}))
CLASSIFIERS = [
    RandomForestClassifier(7, max_features=None, max_depth=3),
    PIPELINE,
    MLPClassifier(hidden_layer_sizes=(5, 3)),
    make_pipeline(MinMaxScaler((-1, 1)), FunctionTransformer(np.log1p), GradientBoostingClassifier(n_estimators=2)),
    VotingClassifier([("a", LogisticRegression()), ("b", forest())], voting="soft"),
    GaussianProcessClassifier(RBF(0.5)),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    Careless(),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda each: type(each).__name__)
def test_a_classifier_is_written_to_a_plan_file_and_made_again(classifier: Any) -> None:
    plan = AuditPlan(model=classifier)
    assert plan.engine == "sklearn"
    again = parse_plan(parse_toml(format_plan(plan, "demo"))).plan
    assert again == plan
    assert repr(again.model.estimator) == repr(classifier)
    unread = parse_plan(parse_toml(format_plan(plan, "demo")), trust_code=False).plan
    assert isinstance(unread.model, UntrustedPart)
    assert format_plan(unread, "demo") == format_plan(plan, "demo")


def test_names_are_public_and_only_settings_that_matter_are_kept() -> None:
    model = as_model(RandomForestClassifier(7, n_jobs=-1, random_state=3))
    assert model.registry_table() == {"name": "sklearn.ensemble:RandomForestClassifier", "n_estimators": 7}
    assert model == as_model(RandomForestClassifier(7))
    assert model != as_model(RandomForestClassifier(8))
    assert model == as_model(RandomForestClassifier(np.int64(7)))
    assert str(model) == "RandomForestClassifier"
    assert str(as_model(PIPELINE)) == "StandardScaler + LogisticRegression"


@pytest.mark.parametrize(
    ("table", "n_estimators"),
    [
        ({"name": "own_estimators:forest"}, 3),
        ({"name": "own_estimators:forest", "n_estimators": 5}, 5),
        ({"name": "sklearn.ensemble:RandomForestClassifier", "n_estimators": 9}, 9),
    ],
)
def test_a_class_or_function_is_found_by_name_and_takes_settings(table: dict[str, Any], n_estimators: int) -> None:
    model = registry.build(MODEL, table)
    assert isinstance(model, SklearnModel)
    assert model.estimator.n_estimators == n_estimators
    assert model.registry_table() == table


def test_random_states_at_every_depth_come_from_the_stream_and_one_thread_is_used() -> None:
    nested = VotingClassifier([("a", RandomForestClassifier(random_state=0, n_jobs=2)), ("b", PIPELINE)])
    nested.set_params(n_jobs=2, voting="soft")
    model = as_model(nested)
    first, again, other = (model.new_estimator(np.random.default_rng(seed)).get_params() for seed in (1, 1, 2))
    states = [key for key in first if key.endswith("random_state")]
    assert len(states) == 2
    assert all(first[key] == again[key] != other[key] for key in states)
    assert len({first[key] for key in states}) == 2
    assert (first["n_jobs"], first["a__n_jobs"]) == (1, 1)
    assert nested.get_params()["a__random_state"] == 0, "the user's own is as it was"


def test_what_the_plan_does_by_default_follows_the_model() -> None:
    plan = AuditPlan().replace(model=forest())
    assert (plan.engine, plan.releases, plan.queries) == ("sklearn", (Clean(),), (FullEdges(),))
    assert plan.shadow_plan.training is None
    back = plan.replace(model="gcn")
    assert back == AuditPlan()
    kept = AuditPlan(model=forest(), releases=("clean", "rounded")).replace(shadows=50)
    assert [registry.label(registry.RELEASE, each) for each in kept.releases] == ["clean", "rounded"]


def plan(**settings: Any) -> ShadowPlan:
    parts = {"model": forest(), "releases": (Clean(),), "queries": (FullEdges(),), "engine": "sklearn"}
    return ShadowPlan(Uniform(0.5), **parts | settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: plan(releases=(Clean(), NoisyLastLayer())), "release noisy puts noise on a last layer, and Rand"),
        (lambda: plan(queries=(FullEdges(), NoEdges())), "Random.* sees no edges, .* got queries full, none"),
        (lambda: plan(engine="native"), "the native engine cannot train RandomForest.*: it needs engine='sklearn'"),
        (lambda: as_model(SVC()), r"SVC must have a method predict_proba; .*SVC\(probability=True\) adds one"),
        (lambda: as_model(RidgeClassifier()), "must have a method predict_proba; .*CalibratedClassifierCV adds one"),
        (lambda: as_model(RandomForestClassifier, depth=3), "RandomForestClassifier: TypeError: .*'depth'"),
        (lambda: as_model(forest, depth=3), "model own_estimators:forest: TypeError: .*'depth'"),
        (lambda: as_model(forest(), train=print), "train is for PyTorch modules; RandomForestClassifier is trained by"),
        (lambda: as_model(lambda: forest()), "<lambda> may stand for many functions"),
        (
            lambda: as_model(GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=StratifiedKFold(3))),
            "GridSearchCV: cv=StratifiedKFold.* cannot be written to a plan: name a function that returns",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
