"""Any PyTorch model as a shadow model. Importing this does not import torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
            graph, all of whose nodes are in its `train_mask`; trains the module in place. The seed is below 2³², so
            that any library takes it. Without `train` the plan's `Training` is carried out.
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
        table = {"name": function_name(self.factory)}
        if self.train is not None:
            table["train"] = function_name(self.train)
        return table | ({"version": self.version} if self.version else {})


def check_call(function: Any, name: str, *arguments: str) -> None:
    """Refuses a function that cannot be called with these arguments, by their places.

    >>> check_call(lambda module, data: None, "train my:train", "module", "data", "seed")
    Traceback (most recent call last):
    bmpaudit.errors.InputError: train my:train must take (module, data, seed), got (module, data)
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
    'bmpaudit.shadow.models.torch_model:TorchModel'
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def has_own_name(function: Any) -> bool:
    """Whether a function can be told by its name: not a lambda, a partial, or one defined inside another."""
    return "<" not in getattr(function, "__qualname__", "<")
