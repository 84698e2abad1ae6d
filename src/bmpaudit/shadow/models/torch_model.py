"""Any PyTorch model as a shadow model. Importing this does not import torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bmpaudit import registry
from bmpaudit.errors import InputError


@dataclass(frozen=True)
class TorchModel:
    """A user's own model and, if they wish, their own training.

    A folder of shadow models recognises it by the names of the two functions and by `version`: change `version` when
    what they do changes.

    Attributes:
        factory: Called with (num_features, num_classes), returns an `nn.Module` with `forward(x, edge_index)` that
            gives logits.
        train: Called with (module, data, seed), where `data` is the PyTorch Geometric `Data` of the induced training
            graph; trains the module in place. Without it the plan's `Training` is carried out.
        version: Any text that tells this model from others of the same name.
    """

    factory: Callable[[int, int], Any]
    train: Callable[[Any, Any, int], None] | None = None
    version: str = ""

    def __post_init__(self) -> None:
        for function in (self.factory, self.train):
            if function is not None and not self.version and not has_own_name(function):
                name = function_name(function)
                raise InputError(f"TorchModel: {name} may stand for many functions; tell them apart by version='…'")

    def __str__(self) -> str:
        return function_name(self.factory).rpartition(":")[2].rpartition(".")[2]

    def torch_module(self, num_features: int, num_classes: int) -> Any:
        """A new, untrained module."""
        return self.factory(num_features, num_classes)

    def registry_table(self) -> dict[str, Any]:
        """See `registry.table_of`: the factory is the name, the rest are settings."""
        table = {"name": function_name(self.factory)}
        if self.train is not None:
            table["train"] = function_name(self.train)
        return table | ({"version": self.version} if self.version else {})


def as_model(part: Any, *, train: Any = None, version: str = "", **unknown: Any) -> Any:
    """A model that an engine can train, from what `module:Name` names in a plan.

    Args:
        part: A model, which is returned as it is; or an `nn.Module` class or another function of
            (num_features, num_classes), which becomes a `TorchModel`.
        train: As for `TorchModel`, or its `module:Name`.
        version: As for `TorchModel`.
        unknown: Further settings, which are refused.

    Raises:
        InputError: if it can be neither, or does not take these settings.
    """
    if dataclasses.is_dataclass(part) or hasattr(part, "torch_module"):
        return part() if isinstance(part, type) else part
    if not callable(part):
        raise InputError(f"model must be a model, or a function of (num_features, num_classes), got {part!r}")
    if unknown:
        raise InputError(f"model {function_name(part)} takes the settings train and version, got {', '.join(unknown)}")
    return TorchModel(part, registry.import_target(train) if isinstance(train, str) else train, version)


def function_name(function: Any) -> str:
    """`module:Name` of a function or class; of any other callable, that of its class.

    >>> function_name(as_model)
    'bmpaudit.shadow.models.torch_model:as_model'
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def has_own_name(function: Any) -> bool:
    """Whether a function can be told by its name: not a lambda, a partial, or one defined inside another."""
    return "<" not in getattr(function, "__qualname__", "<")
