"""A scikit-learn estimator as the plain values of a plan, and back."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.errors import InputError, one_line
from bmpaudit.shadow.models.torch_model import function_name, has_own_name

RANDOM_STATE = "random_state"
SPEED_ONLY = ("n_jobs",)
LITERAL, FUNCTION, NAME = "literal", "function", "name"
"""Keys of tables that stand for a Python literal (None, a tuple, a dictionary), a function, and an estimator."""


def is_estimator(part: Any) -> bool:
    """Whether something is a scikit-learn estimator or the class of one, by its methods."""
    return hasattr(part, "fit") and hasattr(part, "get_params") and hasattr(part, "set_params")


def estimator_table(estimator: Any) -> dict[str, Any]:
    """`name` and those settings that are not the defaults, from which `make_estimator` makes it again.

    What has no effect on the models is left out: `random_state`, which each model has its own of, and `n_jobs`.

    Raises:
        InputError: if a plan cannot hold a setting.
    """
    cls = type(estimator)
    defaults = {name: each.default for name, each in inspect.signature(cls).parameters.items()}
    table: dict[str, Any] = {NAME: _public_name(cls)}
    for key, value in estimator.get_params(deep=False).items():
        if key not in (RANDOM_STATE, *SPEED_ONLY) and not _is_same(value, defaults.get(key, inspect.Parameter.empty)):
            table[key] = plain_setting(f"{cls.__name__}: {key}", value)
    return table


def make_estimator(cls: Any, settings: Mapping[str, Any]) -> Any:
    """An estimator from its class and plain settings.

    Raises:
        InputError: naming the class and what it said of the settings.
    """
    try:
        return cls(**{key: _value_of(value) for key, value in settings.items()})
    except (TypeError, ValueError) as failure:
        raise InputError(f"model {function_name(cls)}: {one_line(failure)}") from failure


def plain_setting(what: str, value: Any) -> Any:
    """A setting as a plan file can hold it.

    Raises:
        InputError: if it cannot.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (bool, int, float, str)):
        return value
    if is_estimator(value) or (hasattr(value, "get_params") and not isinstance(value, type)):
        return estimator_table(value)
    if isinstance(value, list):  # such as the steps of a pipeline, which are pairs
        return [
            [plain_setting(what, each) for each in item] if isinstance(item, tuple) else plain_setting(what, item)
            for item in value
        ]
    if callable(value) and has_own_name(value):
        return {FUNCTION: function_name(value)}
    if _is_literal(value):
        return {LITERAL: repr(value)}
    raise InputError(
        f"{what}={value!r} cannot be written to a plan: name a function that returns the classifier, as in "
        "model='my_module:my_function'"
    )


def _value_of(value: Any) -> Any:
    if isinstance(value, list):
        return [tuple(map(_value_of, item)) if isinstance(item, list) else _value_of(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {LITERAL}:
        return ast.literal_eval(value[LITERAL])
    if set(value) == {FUNCTION}:
        return registry.import_target(value[FUNCTION])
    if NAME not in value:
        raise ValueError(f"a table must have {NAME}, {FUNCTION} or {LITERAL}, got {', '.join(value)}")
    settings = dict(value)
    return make_estimator(registry.import_target(settings.pop(NAME)), settings)


def _public_name(cls: type) -> str:
    """`sklearn.ensemble:RandomForestClassifier` for a class of the private module `sklearn.ensemble._forest`."""
    module = cls.__module__
    package, _, last = module.rpartition(".")
    if last.startswith("_") and getattr(sys.modules.get(package), cls.__name__, None) is cls:
        module = package
    return f"{module}:{cls.__qualname__}"


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and isinstance(value, (bool, int, float, str, tuple)) and value == default


def _is_literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError):
        return False
