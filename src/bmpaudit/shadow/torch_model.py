"""Any PyTorch model as a shadow model. Importing this does not import torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TorchModel:
    """A user's own model and, if they wish, their own training.

    A folder of shadow models recognises this by the names of the two functions and by `version`: change `version` when
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
