"""Any scikit-learn classifier as a shadow model. Importing this does not import scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bmpaudit.errors import InputError
from bmpaudit.shadow.models.estimator_table import (
    RANDOM_STATE,
    SPEED_ONLY,
    estimator_table,
    is_estimator,
    plain_setting,
)
from bmpaudit.shadow.models.torch_model import function_name, has_own_name

MAX_RANDOM_STATE = 2**31 - 1  # also for estimators that keep it in 32 bits with a sign


@dataclass(frozen=True, eq=False)
class SklearnModel:
    """A classifier with `fit` and `predict_proba`, which sees the features of each node and no edges.

    Each shadow model is a clone of it. Its `random_state`, and that of every estimator within it, comes from the shadow
    model's own random stream, whatever it was; `n_jobs` is 1, since whole models are trained at the same time.

    Attributes:
        estimator: The classifier, which is not fitted.
        factory: The function that has made it, if a plan is to name that instead of the classifier's settings.
        settings: What the function was called with.
    """

    estimator: Any
    factory: Callable[..., Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.factory is not None and not has_own_name(self.factory):
            raise InputError(
                f"model: {function_name(self.factory)} may stand for many functions; use one that is defined by name "
                "in a module, or pass the classifier itself"
            )
        if not hasattr(self.estimator, "predict_proba"):
            hint = "SVC(probability=True)" if type(self.estimator).__name__ == "SVC" else "CalibratedClassifierCV"
            raise InputError(f"model {self} must have a method predict_proba; scikit-learn's {hint} adds one")
        self.registry_table()  # what a plan cannot hold is refused now

    def __str__(self) -> str:
        named = type(self.estimator) if self.factory is None else self.factory
        return function_name(named).rpartition(":")[2].rpartition(".")[2]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SklearnModel) and self.registry_table() == other.registry_table()

    def __hash__(self) -> int:
        return hash(str(self))

    def registry_table(self) -> dict[str, Any]:
        """See `registry.table_of`: name and settings of the classifier, or of the function that makes it."""
        if self.factory is None:
            return estimator_table(self.estimator)
        settings = {key: plain_setting(f"{self}: {key}", value) for key, value in self.settings.items()}
        return {"name": function_name(self.factory), **settings}

    def own_code(self) -> list[Any]:
        """What the answer depends on that is neither bmpaudit's nor scikit-learn's."""
        parts = [part for part in self.estimator.get_params(deep=True).values() if is_estimator(part)]
        classes = {type(part) for part in (self.estimator, *parts)}
        own = sorted((each for each in classes if not each.__module__.startswith("sklearn.")), key=function_name)
        return own if self.factory is None else [self.factory, *own]

    def new_estimator(self, rng: np.random.Generator) -> Any:
        """A clone that is not fitted, with random states from `rng`."""
        from sklearn.base import clone

        estimator = clone(self.estimator)
        settings: dict[str, Any] = {}
        for key, value in sorted(estimator.get_params(deep=True).items()):
            last = key.rpartition("__")[2]
            if last == RANDOM_STATE:
                settings[key] = int(rng.integers(MAX_RANDOM_STATE))
            elif last in SPEED_ONLY and value is not None:  # None is 1, and the only value where it is deprecated
                settings[key] = 1
        return estimator.set_params(**settings)
