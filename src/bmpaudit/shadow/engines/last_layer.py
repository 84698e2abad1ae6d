"""Noise on the last layer of a PyTorch module, with the native engine's random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from bmpaudit.arrays import Floats
from bmpaudit.errors import InputError
from bmpaudit.shadow.models.layered_module import LayeredModule

# Of PyTorch Geometric's GCNConv and GATConv, as the native engine lists them.
CONVOLUTION_PARAMETERS = ("lin.weight", "att_src", "att_dst", "bias")


@contextmanager
def noisy_last_layer(module: nn.Module, noise_std: float, rng: np.random.Generator) -> Iterator[None]:
    """Adds noise to the last layer within a block, and restores the layer afterwards; 0 means no noise.

    Raises:
        InputError: if there are no parameters for the noise.
    """
    parameters = last_layer_parameters(module) if noise_std > 0 else []
    if noise_std > 0 and not parameters:
        raise InputError(
            f"a release with noise of {noise_std:g} on the last layer needs one with parameters, and the model "
            f"{type(module).__name__} has none"
        )
    trained = [parameter.detach().clone() for parameter in parameters]
    add_noise(parameters, noise_std, rng)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, values in zip(parameters, trained, strict=True):
                parameter.copy_(values)


@torch.no_grad()
def add_noise(parameters: list[torch.Tensor], noise_std: float, rng: np.random.Generator) -> None:
    """Adds Gaussian noise to parameters, the same as the native engine does."""
    noise = noise_std * box_muller(rng, sum(parameter.numel() for parameter in parameters))
    start = 0
    for parameter in parameters:
        values = torch.from_numpy(noise[start : start + parameter.numel()].astype(np.float32))
        parameter.add_(values.view_as(parameter).to(parameter.device))
        start += parameter.numel()


def last_layer_parameters(module: nn.Module) -> list[torch.Tensor]:
    """What the noise goes on, in the order in which it is drawn."""
    if isinstance(module, LayeredModule):
        return module.last_layer_parameters()
    named = dict(last_layer(module).named_parameters())
    if "lin.weight" in named and set(named) <= set(CONVOLUTION_PARAMETERS):
        return [named[name] for name in CONVOLUTION_PARAMETERS if name in named]
    return list(named.values())


def last_layer(module: nn.Module) -> nn.Module:
    """The layer that noise goes on: the module's own `last_layer` if it has one, else the last part with parameters.

    The last child that has parameters, and of a list or sequence of layers the last of them, and so on.
    """
    own = getattr(module, "last_layer", None)
    if isinstance(own, nn.Module):
        return own
    children = [child for child in module.children() if any(True for _ in child.parameters())]
    if not children:
        return module
    last = children[-1]
    return last_layer(last) if isinstance(last, (nn.ModuleList, nn.Sequential)) else last


def box_muller(rng: np.random.Generator, count: int) -> Floats:
    """Standard normal numbers, made from the stream's uniform ones as in `native/random.hpp`."""
    uniform = rng.random((count + 1) // 2 * 2).reshape(-1, 2)
    radius, angle = np.sqrt(-2.0 * np.log(1.0 - uniform[:, 0])), 2.0 * np.pi * uniform[:, 1]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).ravel()[:count]
