"""The state of a PyTorch module as one array of single precision, and back."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError


def flat_weights(module: nn.Module) -> Floats32:
    """All numbers of a module's state dict, in its order.

    Raises:
        InputError: if single precision cannot hold one of them.
    """
    parts = [np.zeros(0, dtype=np.float32)]
    for name, tensor in module.state_dict().items():
        values = tensor.detach().cpu()
        single = values.to(torch.float32)
        if not bool(((single.to(values.dtype) == values) | (values != values)).all()):
            raise InputError(f"weights are kept in single precision, which cannot hold {name} of {values.dtype}")
        parts.append(single.numpy().ravel())
    return np.concatenate(parts)


@torch.no_grad()
def load_weights(module: nn.Module, flat: Floats32) -> None:
    """Puts the numbers of `flat_weights` back."""
    start = 0
    for tensor in module.state_dict().values():
        values = torch.from_numpy(flat[start : start + tensor.numel()].copy())
        tensor.copy_(values.view(tensor.shape).to(tensor.dtype))
        start += tensor.numel()
