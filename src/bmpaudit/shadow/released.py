"""One released model, from weights, a module or outputs in a file, asked as the shadow models were."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.graph.graph import describe_node
from bmpaudit.io.readers import Arrays, damage_in, opened, parse_json, read_archive, read_array
from bmpaudit.models import NativeModel, TrainedElsewhere, Training
from bmpaudit.models.gnn import Shape
from bmpaudit.models.own import is_estimator
from bmpaudit.registry import QUERY, RELEASE, UntrustedPart
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.engines.scoring import shown_graphs
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import (
    ProbabilitiesConvertedWarning,
    class_probabilities,
    is_probabilities,
    log_probabilities,
    log_votes,
    read_output_table,
    table_features,
)
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.values import Floats32

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


# Files of named arrays that can be read without running anything: `.npz` and `.safetensors`.


PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".tar")
"""Endings of files that PyTorch writes with pickle."""

LENGTH_BYTES = 8
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"} | {
    **{f"I{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    "BOOL": "?",
}
"""Types of safetensors that NumPy has, and bfloat16, the upper half of a float32."""
METADATA = "__metadata__"
_SIZES = {"type": "array", "items": {"type": "integer", "minimum": 0}}
HEADER = {
    "type": "object",
    "properties": {METADATA: True},
    "additionalProperties": {
        "type": "object",
        "properties": {
            "dtype": {"enum": list(DTYPES)},
            "shape": _SIZES,
            "data_offsets": {**_SIZES, "minItems": 2, "maxItems": 2},
        },
        "required": ["dtype", "shape", "data_offsets"],
    },
}


def refuse_pickle(path: Path) -> None:
    """Raises `DataError` if a file's name says that PyTorch pickled it; the message says how to convert it."""
    if path.suffix.lower() in PICKLES:
        target = path.with_suffix(".npz").name
        raise DataError(
            f"{path}: a pickle, which can run code when it is read, and is never loaded; convert a state dict with "
            f"python -c \"import numpy, torch; numpy.savez('{target}', **{{name: value.numpy() for name, value in "
            f"torch.load('{path.name}', 'cpu', weights_only=True).items()}})\""
        )


def read_named_arrays(path: Path) -> Arrays:
    """The arrays of an `.npz` archive or a `.safetensors` file, in the order of the file.

    Raises:
        DataError: if the file is missing or damaged.
    """
    return read_safetensors(path) if path.suffix.lower() == ".safetensors" else read_archive(path)


def read_safetensors(path: Path) -> Arrays:
    """The arrays of a safetensors file.

    The format: eight bytes with the length of the header (little-endian), the header as JSON, then the arrays' bytes.
    For each name the header has `dtype`, `shape` and `data_offsets`, begin and end counted from the end of the header.

    Raises:
        DataError: if the file is damaged.
    """
    with damage_in(path, "a safetensors file"), opened(path) as file:
        content = file.read()
        start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
        if len(content) < LENGTH_BYTES or start > len(content):
            raise ValueError("it ends within its header")
        header = parse_json(content[LENGTH_BYTES:start].decode("utf-8"), HEADER)
        data = memoryview(content)[start:]
        return {name: _tensor(name, entry, data) for name, entry in header.items() if name != METADATA}


def _tensor(name: str, entry: dict[str, Any], data: memoryview) -> npt.NDArray[Any]:
    kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    dtype = np.dtype(DTYPES[kind])
    if end > len(data) or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} of shape {tuple(shape)} cannot be at bytes {begin} to {end} of {len(data)}")
    values = np.frombuffer(data[begin:end], dtype=dtype)
    if kind == "BF16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(shape)


# One released model: from its weights, its outputs or the module itself to what each query gives out.


NAMED = (".npz", ".safetensors")
UNNAMED = "outputs"
SINGLE = (UNNAMED, "arr_0")  # an array without a name, and what NumPy calls it in an archive
AnyArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """What one released model gives out.

    Attributes:
        came_as: In what form it was given: `weights`, `outputs`, `module` or `classifier`.
        statistics: By query label, in the plan's order, the plan's statistic of every node, shape (N,).
    """

    came_as: str
    statistics: Mapping[str, Floats32]


def read_released(model: Any, graph: Graph, plan: ShadowPlan, release: str) -> ReleasedModel:
    """What a released model gives out under each query.

    Args:
        model: Path of a file, arrays by name, one array, an `nn.Module` with `forward(x, edge_index)`, or a
            scikit-learn classifier that is fitted. A file is
            `.npz` or `.safetensors` with the weights of a built-in model or with outputs by query, or `.npy` or
            `.parquet` with the outputs of a plan's only query. Outputs have shape (nodes, classes). Weights and modules
            are taken as given out: noise of a noisy release is in them already.
        graph: The graph of the shadow models.
        plan: Their plan.
        release: Label of the release.

    Raises:
        DataError: if a file is missing, damaged or not of such a kind.
        InputError: if the model does not fit the plan or the graph.
    """
    if not isinstance(model, (str, Path)):
        return _as_released(model, graph, plan, release)
    path = Path(model)
    refuse_pickle(path)
    try:
        return _as_released(_read_file(path, graph), graph, plan, release)
    except DataError:
        raise
    except InputError as wrong:
        raise type(wrong)(f"{path}: {wrong}") from None


def _read_file(path: Path, graph: Graph) -> dict[str, AnyArray] | AnyArray:
    suffix = path.suffix.lower()
    if suffix in NAMED:
        return read_named_arrays(path)
    if suffix == ".parquet":
        return read_output_table(path, graph)
    if suffix != ".npy":
        raise DataError(
            f"{path}: a released model must be .npz or .safetensors (weights, or outputs by query), .npy or .parquet "
            "(outputs of one query)"
        )
    return read_array(path)


def _as_released(model: Any, graph: Graph, plan: ShadowPlan, release: str) -> ReleasedModel:
    for part in (plan.statistic, *plan.releases):
        if isinstance(part, UntrustedPart):
            raise registry.untrusted(part.kind, part.target)
    arrays: Mapping[str, AnyArray]
    if is_estimator(model):
        came_as, arrays = "classifier", _classifier_outputs(model, graph, plan, release)
    elif callable(model) and hasattr(model, "state_dict"):
        came_as, arrays = "module", _module_outputs(model, graph, plan, release)
    else:
        named = model if isinstance(model, Mapping) else {UNNAMED: model}
        arrays = {str(name): _as_array(value) for name, value in named.items()}
        came_as = "outputs" if _are_outputs(arrays, graph, plan, release) else "weights"
        if came_as == "outputs":
            arrays = _by_query(arrays, plan, release)
        else:
            arrays = _weight_outputs(arrays, graph, plan, release)
    statistics = {query: _statistic(query, values, graph, plan, release) for query, values in arrays.items()}
    return ReleasedModel(came_as, statistics)


def _queries(plan: ShadowPlan) -> list[str]:
    return [registry.label(QUERY, query) for query in plan.queries]


def _release_part(plan: ShadowPlan, release: str) -> Any:
    return next(part for part in plan.releases if registry.label(RELEASE, part) == release)


def _are_outputs(arrays: Mapping[str, AnyArray], graph: Graph, plan: ShadowPlan, release: str) -> bool:
    """Whether arrays are outputs by query rather than weights: by their names, else by their shapes."""
    if not arrays:
        raise InputError("a released model must hold weights, or outputs by query, got nothing")
    if set(arrays) & {name for query in _queries(plan) for name in (query, f"{query}_{release}")}:
        return True
    is_single = len(arrays) == 1 and next(iter(arrays)) in SINGLE
    return is_single or all(array.ndim == 2 and len(array) == graph.num_nodes for array in arrays.values())


def _by_query(arrays: Mapping[str, AnyArray], plan: ShadowPlan, release: str) -> dict[str, AnyArray]:
    queries = _queries(plan)
    query_of = {name: query for query in queries for name in (query, f"{query}_{release}")}
    if len(arrays) == 1 and next(iter(arrays)) in SINGLE:
        if len(queries) > 1:
            raise InputError(
                f"it holds the outputs of one query, and the plan asks {' and '.join(queries)}: save them by name, "
                f"numpy.savez('model.npz', {', '.join(f'{query}=…' for query in queries)})"
            )
        return {queries[0]: next(iter(arrays.values()))}
    found: dict[str, AnyArray] = {}
    for name, array in arrays.items():
        if name not in query_of:
            raise InputError(f"unknown query {name!r}; the plan asks {' and '.join(queries)}")
        if query_of[name] in found:
            raise InputError(f"the outputs of query {query_of[name]} are there twice")
        found[query_of[name]] = array
    return {query: found[query] for query in queries if query in found}


def _weight_outputs(
    arrays: Mapping[str, AnyArray], graph: Graph, plan: ShadowPlan, release: str
) -> dict[str, AnyArray]:
    model = plan.model
    if isinstance(model, UntrustedPart):
        raise registry.untrusted(model.kind, model.target)
    if not isinstance(model, NativeModel):
        what = "models trained elsewhere" if isinstance(model, TrainedElsewhere) else f"the model {model}"
        raise InputError(
            f"weights can be read of built-in models only, and the plan is of {what}: give outputs by query, in arrays "
            f"named {' and '.join(_queries(plan))}"
        )
    _check_gives_logits(plan, release, "weights")
    flat = flat_weights(arrays, model, graph)
    kernel = make_kernel(graph, model, plan.training or Training())
    shown = zip(_queries(plan), shown_graphs(plan, graph), strict=True)
    return {query: kernel.logits(flat, other.indptr, other.indices) for query, other in shown}


def _module_outputs(module: Any, graph: Graph, plan: ShadowPlan, release: str) -> dict[str, AnyArray]:
    import torch

    from bmpaudit.shadow.engines.torch import edge_index_of

    _check_gives_logits(plan, release, "a module")
    first = next(iter(module.parameters()), torch.empty(0))
    features = torch.tensor(graph.dense_features, dtype=first.dtype, device=first.device)
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            return {
                query: _as_array(module(features, edge_index_of(other).to(first.device)))
                for query, other in zip(_queries(plan), shown_graphs(plan, graph), strict=True)
            }
    finally:
        module.train(was_training)


def _classifier_outputs(estimator: Any, graph: Graph, plan: ShadowPlan, release: str) -> dict[str, AnyArray]:
    _check_gives_logits(plan, release, "a classifier")
    if plan.engine_name != "sklearn":
        raise InputError(f"the plan is of {registry.title(plan.model)}, got the classifier {type(estimator).__name__}")
    probabilities = class_probabilities(estimator, table_features(graph), graph.num_classes)
    return dict.fromkeys(_queries(plan), log_votes(probabilities))


def _check_gives_logits(plan: ShadowPlan, release: str, what: str) -> None:
    if _release_part(plan, release).changes_outputs:
        raise InputError(f"release {release} gives out changed outputs, not the model: give these instead of {what}")


def _as_array(values: Any) -> AnyArray:
    if hasattr(values, "detach"):  # a tensor
        tensor = values.detach().cpu()
        return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
    return np.asarray(values)


def _statistic(query: str, outputs: AnyArray, graph: Graph, plan: ShadowPlan, release: str) -> Floats32:
    """The plan's statistic of a model's outputs, which are checked first."""
    num_nodes, num_classes = graph.num_nodes, graph.num_classes
    if outputs.ndim != 2:
        raise InputError(f"{query}: outputs must have shape ({num_nodes}, {num_classes}), got {outputs.shape}")
    if len(outputs) != num_nodes:
        raise InputError(
            f"{query}: outputs are of {len(outputs):,} nodes, and the graph has {num_nodes:,}: of another graph?"
        )
    if outputs.shape[1] != num_classes:
        raise InputError(f"{query}: outputs have {outputs.shape[1]} classes, and the graph has {num_classes}")
    if outputs.dtype.kind not in "fiu":
        raise InputError(f"{query}: outputs must be real numbers, got {outputs.dtype}")
    is_nan = np.isnan(outputs)
    if is_nan.any():
        node, column = np.argwhere(is_nan)[0].tolist()
        raise InputError(
            f"{query}: outputs must not be NaN, got one for {describe_node(node, graph.node_names)}, class {column}"
        )
    is_converted = not _release_part(plan, release).changes_outputs and is_probabilities(outputs)
    if is_converted and plan.engine_name == "sklearn":
        outputs = log_votes(outputs)  # as those of the shadow models, which give out probabilities too
    elif is_converted:
        warnings.warn(
            f"{query}: the outputs are probabilities (each row sums to 1): converted to log-probabilities",
            ProbabilitiesConvertedWarning,
            stacklevel=6,
        )
        outputs = log_probabilities(outputs)
    with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
        statistics = np.asarray(plan.statistic(outputs.astype(np.float32), graph.labels), dtype=np.float32)
    is_finite = np.isfinite(statistics)
    if not is_finite.all():
        node = int(is_finite.argmin())
        raise InputError(
            f"{query}: the margin of the true label must be finite, got {statistics[node]} for "
            f"{describe_node(node, graph.node_names)}"
        )
    return statistics
