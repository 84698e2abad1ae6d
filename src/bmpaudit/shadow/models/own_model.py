"""Models of the user's own, from what a plan is given or names."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from bmpaudit import registry
from bmpaudit.errors import InputError, one_line
from bmpaudit.shadow.models.estimator_table import is_estimator, make_estimator
from bmpaudit.shadow.models.sklearn_model import SklearnModel
from bmpaudit.shadow.models.torch_model import TorchModel, function_name


def as_model(part: Any, *, train: Any = None, version: str = "", **settings: Any) -> Any:
    """A model that an engine can train, from an object, or from what `module:Name` names in a plan.

    Args:
        part: A model, which is returned as it is; a scikit-learn classifier, its class, or a function without
            arguments that returns one, which become a `SklearnModel`; or an `nn.Module` class or another function of
            (num_features, num_classes), which becomes a `TorchModel`.
        train: As for `TorchModel`, or its `module:Name`.
        version: As for `TorchModel`.
        settings: Of a scikit-learn class, or of a function that makes a classifier; others are refused.

    Raises:
        InputError: if it can be neither, or does not take these settings.
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
        raise InputError(
            "model must be a model, a scikit-learn classifier, or a function of (num_features, num_classes), "
            f"got {part!r}"
        )
    made = _made_without_arguments(part, settings)
    if made is not None:
        _refuse_training(made, train)
        return SklearnModel(made, part, settings)
    if settings:
        raise InputError(f"model {function_name(part)} takes the settings train and version, got {', '.join(settings)}")
    return TorchModel(part, registry.import_target(train) if isinstance(train, str) else train, version)


def _made_without_arguments(function: Any, settings: dict[str, Any]) -> Any:
    """The classifier that a function returns if it can be called without arguments; None if it makes no classifier."""
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
