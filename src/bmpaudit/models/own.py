"""Models of the user's own: PyTorch modules, scikit-learn classifiers, and what was trained elsewhere.

Importing this imports neither torch nor scikit-learn.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.util.errors import InputError, one_line

RANDOM_STATE = "random_state"
MAX_RANDOM_STATE = 2**31 - 1  # also for estimators that keep it in 32 bits with a sign
SPEED_ONLY = ("n_jobs",)
# Keys of tables that stand for a Python literal (None, a tuple, a dictionary), a function, and an estimator.
LITERAL, FUNCTION, NAME = "literal", "function", "name"


@dataclass(frozen=True)
class TrainedElsewhere:
    """Models trained outside of bmpaudit: their memberships and statistics are known, and nothing else."""

    def __str__(self) -> str:
        return "trained elsewhere"


@dataclass(frozen=True)
class TorchModel:
    """A user's own model and, if they wish, their own training.

    A folder of shadow models recognises it by the names of the two functions and by `version`: change `version` when
    what they do changes.

    Attributes:
        factory: Called with (num_features, num_classes), returns an `nn.Module` with `forward(x, edge_index)` that
            gives logits.
        train: Called with (module, data, seed), where `data` is the PyTorch Geometric `Data` of the induced training
            graph, all of whose nodes are in its `train_mask`; trains the module in place. The seed is below 2³², so
            that any library takes it. Without `train` the plan's `Training` is carried out.
        version: Any text that tells this model from others of the same name.
    """

    factory: Callable[[int, int], Any]
    train: Callable[[Any, Any, int], None] | None = None
    version: str = ""

    def __post_init__(self) -> None:
        for function in self.own_code():
            if not self.version and not has_own_name(function):
                name = function_name(function)
                raise InputError(f"TorchModel: {name} may stand for many functions; tell them apart by version='…'")
        check_call(self.factory, f"model {function_name(self.factory)}", "num_features", "num_classes")
        if self.train is not None:
            check_call(self.train, f"train {function_name(self.train)}", "module", "data", "seed")

    def __str__(self) -> str:
        return function_name(self.factory).rpartition(":")[2].rpartition(".")[2]

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """A new, untrained module."""
        return self.factory(num_features, num_classes)

    def own_code(self) -> list[Any]:
        """What the answer depends on that is not bmpaudit's."""
        return [self.factory] if self.train is None else [self.factory, self.train]

    def registry_table(self) -> dict[str, Any]:
        """See `registry.table_of`: the factory is the name, the rest are settings."""
        train = None if self.train is None else function_name(self.train)
        table = {"name": function_name(self.factory), "train": train, "version": self.version}
        return {key: value for key, value in table.items() if value}


def check_call(function: Any, name: str, *arguments: str) -> None:
    """Refuses a function that cannot be called with these arguments, by their places.

    >>> check_call(lambda module, data: None, "train my:train", "module", "data", "seed")
    Traceback (most recent call last):
    bmpaudit.util.errors.InputError: train my:train must take (module, data, seed), got (module, data)
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables do not tell
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InputError(f"{name} must take ({', '.join(arguments)}), got {signature}") from None


def function_name(function: Any) -> str:
    """`module:Name` of a function or class; of any other callable, that of its class.

    >>> function_name(TorchModel)
    'bmpaudit.models.own:TorchModel'
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def has_own_name(function: Any) -> bool:
    """Whether a function can be told by its name: not a lambda, a partial, or one defined inside another."""
    return "<" not in getattr(function, "__qualname__", "<")


def is_estimator(part: Any) -> bool:
    """Whether something is a scikit-learn estimator or the class of one, by its methods."""
    return hasattr(part, "fit") and hasattr(part, "get_params") and hasattr(part, "set_params")


def estimator_table(estimator: Any) -> dict[str, Any]:
    """`name` and those settings that are not the defaults and matter to the models, for `make_estimator`."""
    cls = type(estimator)
    # The public name of a class of a private module: `sklearn.ensemble`, and not `sklearn.ensemble._forest`.
    package, _, last = cls.__module__.rpartition(".")
    is_public = last.startswith("_") and getattr(sys.modules.get(package), cls.__name__, None) is cls
    table: dict[str, Any] = {NAME: f"{package if is_public else cls.__module__}:{cls.__qualname__}"}
    defaults = {name: each.default for name, each in inspect.signature(cls).parameters.items()}
    for key, value in estimator.get_params(deep=False).items():
        default = defaults.get(key, inspect.Parameter.empty)
        is_default = value is default or (
            type(value) is type(default) and isinstance(value, (bool, int, float, str, tuple)) and value == default
        )
        if key not in (RANDOM_STATE, *SPEED_ONLY) and not is_default:
            table[key] = plain_setting(f"{cls.__name__}: {key}", value)
    return table


def make_estimator(cls: Any, settings: Mapping[str, Any]) -> Any:
    """An estimator from its class and plain settings."""
    try:
        return cls(**{key: _value_of(value) for key, value in settings.items()})
    except (TypeError, ValueError) as failure:
        raise InputError(f"model {function_name(cls)}: {one_line(failure)}") from failure


def plain_setting(what: str, value: Any) -> Any:
    """A setting as a plan file can hold it, or an `InputError`."""
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
    with suppress(ValueError, SyntaxError, TypeError):
        if ast.literal_eval(repr(value)) == value:
            return {LITERAL: repr(value)}
    remedy = "name a function that returns the classifier, as in model='my_module:my_function'"
    raise InputError(f"{what}={value!r} cannot be written to a plan: {remedy}")


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


@dataclass(frozen=True, eq=False)
class SklearnModel:
    """A classifier with `fit` and `predict_proba`, which sees the features of each node and no edges.

    Each shadow model is a clone of it. Its `random_state`, and that of every estimator within it, comes from the shadow
    model's own random stream, whatever it was; `n_jobs` is 1, since whole models are trained at the same time.
    """

    estimator: Any  # which is not fitted
    factory: Callable[..., Any] | None = None  # has made it, if a plan is to name that instead of its settings
    settings: Mapping[str, Any] = field(default_factory=dict)  # what the factory was called with

    def __post_init__(self) -> None:
        if self.factory is not None and not has_own_name(self.factory):
            remedy = "use one that is defined by name in a module, or pass the classifier itself"
            raise InputError(f"model: {function_name(self.factory)} may stand for many functions; {remedy}")
        if not hasattr(self.estimator, "predict_proba"):
            name = type(self.estimator).__name__
            hint = "SVC(probability=True)" if name == "SVC" else "CalibratedClassifierCV"
            raise InputError(f"model {name} must have a method predict_proba; scikit-learn's {hint} adds one")
        self.registry_table()  # what a plan cannot hold is refused now

    def __str__(self) -> str:
        return registry.title_of_table(self.registry_table())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SklearnModel) and self.registry_table() == other.registry_table()

    def __hash__(self) -> int:
        return hash(str(self))

    def registry_table(self) -> dict[str, Any]:
        """See `registry.table_of`: name and settings of the classifier, or of the function that makes it."""
        if self.factory is None:
            return estimator_table(self.estimator)
        name = function_name(self.factory)
        return {"name": name, **{key: plain_setting(f"{name}: {key}", each) for key, each in self.settings.items()}}

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


def as_model(part: Any, *, train: Any = None, version: str = "", **settings: Any) -> Any:
    """A model that an engine can train, from an object, or from what `module:Name` names in a plan.

    A model is returned as it is. A scikit-learn classifier, its class, or a function without arguments that returns one
    becomes a `SklearnModel`; the class and the function can have settings. An `nn.Module` class, or another function of
    (num_features, num_classes), becomes a `TorchModel` with `train`, which can be its `module:Name`, and `version`.
    """
    if isinstance(part, registry.UntrustedPart):
        return part
    if is_estimator(part):
        _refuse_training(part, train)
        if isinstance(part, type):
            return SklearnModel(make_estimator(part, settings))
        if settings:
            raise InputError(f"model {type(part).__name__} has its settings already, got {', '.join(settings)}")
        return SklearnModel(part)
    if dataclasses.is_dataclass(part) or hasattr(part, "torch_module"):
        return part() if isinstance(part, type) else part
    if not callable(part):
        kinds = "a model, a scikit-learn classifier, or a function of (num_features, num_classes)"
        raise InputError(f"model must be {kinds}, got {part!r}")
    made = _made_without_arguments(part, settings)
    if made is not None:
        _refuse_training(made, train)
        return SklearnModel(made, part, settings)
    if settings:
        raise InputError(f"model {function_name(part)} takes the settings train and version, got {', '.join(settings)}")
    return TorchModel(part, registry.import_target(train) if isinstance(train, str) else train, version)


def _made_without_arguments(function: Any, settings: dict[str, Any]) -> Any:
    """The classifier that a function returns if it can be called without arguments; None if it makes none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some callables do not tell
        return None
    needed = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if needed or hasattr(function, "forward"):  # *args is needed too: it takes the two numbers that a module is made of
        return None
    try:
        made = function(**settings)
    except Exception as failure:  # the user's code may raise anything
        raise InputError(f"model {function_name(function)}: {one_line(failure)}") from failure
    return made if is_estimator(made) else None


def _refuse_training(estimator: Any, train: Any) -> None:
    if train is not None:
        raise InputError(f"train is for PyTorch modules; {type(estimator).__name__} is trained by its own method fit")
