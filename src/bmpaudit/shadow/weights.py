"""Weights of a built-in model under anybody's names, in the order in which C++ has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bmpaudit.arrays import Floats32
from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.shadow.models import NativeModel
from bmpaudit.shadow.models.layer_spec import Shape

# A layer's name, then the parameter's: PyTorch Geometric has lin.weight, before 2.5 lin_src.weight in GATConv, and
# lin_l and lin_r, for a node's neighbours and itself, in SAGEConv.
_NAME = re.compile(
    r"(?:(?P<layer>.*?)\.)??(?:(?P<root>lin_r\.)|(?:lin|lin_src|lin_l)\.)?(?P<parameter>weight|bias|att_src|att_dst|"
    r"running_mean|running_var)"
)
MOST_NAMES_SHOWN = 12


class LayerShapes(NamedTuple):
    """Shapes of a layer's parameters, by their short names, in the order in which C++ has them."""

    shapes: Mapping[str, Shape]

    def fit(self, arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
        """Whether arrays by short name are just these parameters."""
        return {name: _without_ones(array.shape) for name, array in arrays.items()} == {
            name: _without_ones(shape) for name, shape in self.shapes.items()
        }


def flat_weights(arrays: Mapping[str, npt.NDArray[Any]], model: NativeModel, graph: Graph) -> Floats32:
    """All parameters of a model on a graph in one array, as C++ takes them.

    Names are those of a state dict: the layer's name, which can be anything, then the parameter's: `conv1.lin.weight`,
    `layers.0.bias`, `2.weight`. Layers are recognised by their shapes; those of the same shapes are taken in the order
    of the numbers in their names.

    Raises:
        InputError: if the arrays are not this model's parameters, or it is unclear which is which, or one is not
            finite; the message says what was expected and what was found.
    """
    expected = layer_shapes(model, graph)
    arrays = {name: array for name, array in arrays.items() if not _is_beside(name, array)}
    known = {parameter for layer in expected for parameter in layer.shapes}
    layers: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for name, array in arrays.items():
        match = _NAME.fullmatch(name)
        parameter = "" if match is None else f"root_{match['parameter']}" if match["root"] else match["parameter"]
        if match is None or parameter not in known:
            raise _misfit(arrays, expected, model, f"{name} is not one of them")
        parts = layers.setdefault(match["layer"] or "", {})
        if parameter in parts:
            raise _misfit(arrays, expected, model, f"{match['layer']} has {parameter} twice")
        parts[parameter] = array
    ordered = _in_order(layers, expected)
    if ordered is None:
        raise _misfit(arrays, expected, model, "")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise InputError(f"weights must be finite numbers, got {_first_bad(array)} in {name}")
    with np.errstate(over="ignore"):
        flat = np.concatenate(
            [layers[name][part].astype(np.float32).ravel() for name, shapes in ordered for part in shapes.shapes]
        )
    if not np.isfinite(flat).all():
        raise InputError("weights must be finite in single precision, got a larger one")
    return flat


def _is_beside(name: str, array: npt.NDArray[Any]) -> bool:
    """Whether an array is no parameter: a counter of batches, or the ε of a GINConv where it is 0."""
    return name.endswith("num_batches_tracked") or (name.rpartition(".")[2] == "eps" and not array.any())


def layer_shapes(model: NativeModel, graph: Graph) -> list[LayerShapes]:
    """What parameters a model on a graph has, layer by layer, in PyTorch's shapes."""
    layers, inputs = [], graph.num_features
    for layer in model.native_layers(graph.num_classes):
        layers += [LayerShapes(shapes) for shapes in layer.parameter_shapes(inputs)]
        inputs = layer.units
    return layers


def _in_order(
    layers: Mapping[str, Mapping[str, npt.NDArray[Any]]], expected: list[LayerShapes]
) -> list[tuple[str, LayerShapes]] | None:
    """The name of each expected layer; None if they are not these layers."""
    if len(layers) != len(expected):
        return None
    left, ordered = sorted(layers, key=_numbers), []
    for shapes in expected:
        fitting = [name for name in left if shapes.fit(layers[name])]
        if not fitting:
            return None
        if len(fitting) > 1 and _numbers(fitting[0]) == _numbers(fitting[1]):
            raise InputError(
                f"layers of the same shape must have numbers in their names that tell their order, got "
                f"{fitting[0]} and {fitting[1]}"
            )
        left.remove(fitting[0])
        ordered.append((fitting[0], shapes))
    return ordered


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]


def _without_ones(shape: Shape) -> Shape:
    """Some versions of PyTorch Geometric have attention vectors of shape (1, heads, channels), some without the 1."""
    return shape[1:] if len(shape) == 3 and shape[0] == 1 else shape


def _misfit(
    arrays: Mapping[str, npt.NDArray[Any]], expected: list[LayerShapes], model: NativeModel, why: str
) -> InputError:
    wanted = [f"{name} {shape}" for layer in expected for name, shape in layer.shapes.items()]
    found = [f"{name} {array.shape}" for name, array in arrays.items()]
    return InputError(
        f"the weights must be those of the plan's {type(model).__name__} with {model.layers} layers on this graph: "
        f"{_listed(wanted)}; got {_listed(found) or 'nothing'}" + (f"; {why}" if why else "")
    )


def _listed(items: list[str]) -> str:
    more = len(items) - MOST_NAMES_SHOWN
    return ", ".join(items[:MOST_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _first_bad(array: npt.NDArray[Any]) -> str:
    if array.dtype.kind not in "fiu":
        return f"values of type {array.dtype}"
    return str(array[~np.isfinite(array)][0])
