"""One released model, from weights, a module or outputs in a file, asked as the shadow models were."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.graph.graph import describe_node, node_ids
from bmpaudit.io.readers import damage_in, opened, parse_json, read_archive, read_array, read_table
from bmpaudit.models import NativeModel, TrainedElsewhere, Training
from bmpaudit.models.gnn import Shape
from bmpaudit.models.own import is_estimator
from bmpaudit.registry import QUERY, RELEASE, UntrustedPart
from bmpaudit.releases import LABELS, QUERIES, SCORES
from bmpaudit.shadow.class_rows import UnitNodes, WeightRows
from bmpaudit.shadow.engines import shown_graphs
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import as_logits, class_probabilities, is_probabilities, log_votes, table_features
from bmpaudit.util.errors import DataError, InputError
from bmpaudit.util.matrices import Rows
from bmpaudit.util.values import Floats32

AnyArray = npt.NDArray[Any]
NamedArrays = Mapping[str, AnyArray]

UNNAMED = "outputs"
SINGLE = (UNNAMED, "arr_0")  # an array without a name, and what NumPy calls it in an archive


@dataclass(frozen=True, eq=False)
class ReleasedModel:
    """What one released model gives out."""

    came_as: str  # in what form it was given: `weights`, `outputs`, `module` or `classifier`
    statistics: Mapping[str, Floats32]  # by query label, in the plan's order, of every node, shape (N,)
    rows: Mapping[str, Rows]  # class rows by access, of those that the plan keeps and this form of the model can give


def read_released(model: Any, graph: Graph, plan: ShadowPlan, release: str, access: str = SCORES) -> ReleasedModel:
    """What a released model gives out under each query; `InputError` if it does not fit the plan or the graph.

    It is the path of a file, arrays by name, one array, an `nn.Module` with `forward(x, edge_index)`, or a scikit-learn
    classifier that is fitted. A file is `.npz` or `.safetensors` with the weights of a built-in model or with outputs
    by query, or `.npy` or `.parquet` with the outputs of a plan's only query. Outputs have shape (nodes, classes).
    Weights and modules are taken as given out: noise of a noisy release is in them already. With access to labels, all
    that is seen of outputs is whether the likeliest class is right.
    """
    for part in (plan.statistic, *plan.releases):
        if isinstance(part, UntrustedPart):
            raise registry.untrusted(part.kind, part.target)
    asked = _Asked(graph, plan, release, access)
    if not isinstance(model, (str, Path)):
        return asked.released(model)
    path = Path(model)
    content = _read_file(path, graph)
    try:
        return asked.released(content)
    except DataError:
        raise
    except InputError as wrong:
        raise type(wrong)(f"{path}: {wrong}") from None


def first_layer_norms(model: Any, graph: Graph) -> Floats32:
    """How long the first layer's weights of each feature are, shape (F,), of any model that has them.

    A model is the path of an `.npz` or `.safetensors` file, arrays by name, or an `nn.Module`. Weights of the first
    layer are those with a column for each feature or, if there are none, with a row for each.
    """
    if isinstance(model, (str, Path)):
        arrays: NamedArrays = read_named_arrays(Path(model))
    else:
        named = model.state_dict() if hasattr(model, "state_dict") else model
        arrays = {str(name): _as_array(values) for name, values in named.items()}
    tables = {name: values for name, values in arrays.items() if values.ndim == 2 and values.dtype.kind == "f"}
    for axis in (1, 0):
        first = [values for values in tables.values() if values.shape[axis] == graph.num_features]
        if first:
            squares = sum(np.square(values, dtype=np.float64).sum(axis=1 - axis) for values in first)
            norms = np.sqrt(squares).astype(np.float32)
            if not np.isfinite(norms).all():
                raise InputError("the weights of the first layer must be finite")
            return norms
    shapes = ", ".join(f"{name} {values.shape}" for name, values in list(arrays.items())[:MOST_NAMES_SHOWN])
    raise InputError(f"no weights of a first layer for the graph's {graph.num_features:,} features, got {shapes}")


class _Asked:
    """What a model is asked, and how its answers are looked at."""

    def __init__(self, graph: Graph, plan: ShadowPlan, release: str, access: str) -> None:
        self.graph, self.plan, self.release, self.access = graph, plan, release, access
        self.queries = [registry.label(QUERY, query) for query in plan.queries]
        self.rows: dict[str, Rows] = {}
        self.changes_outputs = {registry.label(RELEASE, part): part.changes_outputs for part in plan.releases}[release]

    def released(self, model: Any) -> ReleasedModel:
        outputs: NamedArrays
        if is_estimator(model):
            came_as, outputs = "classifier", self._classifier_outputs(model)
        elif callable(model) and hasattr(model, "state_dict"):
            came_as, outputs = "module", self._module_outputs(model)
        else:
            named = model if isinstance(model, Mapping) else {UNNAMED: model}
            arrays = {str(name): _as_array(value) for name, value in named.items()}
            came_as = "outputs" if self._are_outputs(arrays) else "weights"
            outputs = self._by_query(arrays) if came_as == "outputs" else self._weight_outputs(arrays)
        statistics = {}
        for query, values in outputs.items():  # no comprehension: warnings name the caller by the depth of the stack
            statistics[query] = self._statistic(query, values)
        return ReleasedModel(came_as, statistics, self.rows)

    def _ask_unit_nodes(self, ask: Callable[[Graph], Floats32], flat: Floats32 | None = None) -> None:
        """Class rows by unit queries, and from the weights of a built-in model."""
        for access, release in self.plan.row_sets:
            if registry.label(RELEASE, release) != self.release:
                continue
            if access == QUERIES:
                unit_nodes = UnitNodes(self.graph)
                values, norms = unit_nodes.class_rows(ask(unit_nodes.graph))
            elif flat is not None:
                values, norms = WeightRows(self.graph, self.plan.model).class_rows(flat, release)
            else:
                continue
            self.rows[access] = Rows(values[None], norms[None])

    def _are_outputs(self, arrays: NamedArrays) -> bool:
        """Whether arrays are outputs by query rather than weights: by their names, else by their shapes."""
        if not arrays:
            raise InputError("a released model must hold weights, or outputs by query, got nothing")
        if any(name in arrays for query in self.queries for name in (query, f"{query}_{self.release}")):
            return True
        is_single = len(arrays) == 1 and next(iter(arrays)) in SINGLE
        return is_single or all(array.ndim == 2 and len(array) == self.graph.num_nodes for array in arrays.values())

    def _by_query(self, arrays: NamedArrays) -> NamedArrays:
        queries, asked = self.queries, " and ".join(self.queries)
        if len(arrays) == 1 and next(iter(arrays)) in SINGLE:
            if len(queries) > 1:
                raise InputError(
                    f"it holds the outputs of one query, and the plan asks {asked}: save them by name, "
                    f"numpy.savez('model.npz', {', '.join(f'{query}=…' for query in queries)})"
                )
            return {queries[0]: next(iter(arrays.values()))}
        found: dict[str, AnyArray] = {}
        for name, array in arrays.items():
            query = name.removesuffix(f"_{self.release}") if name not in queries else name
            if query not in queries:
                raise InputError(f"unknown query {name!r}; the plan asks {asked}")
            if query in found:
                raise InputError(f"the outputs of query {query} are there twice")
            found[query] = array
        return {query: found[query] for query in queries if query in found}

    def _weight_outputs(self, arrays: NamedArrays) -> NamedArrays:
        plan, graph, model = self.plan, self.graph, self.plan.model
        if isinstance(model, UntrustedPart):
            raise registry.untrusted(model.kind, model.target)
        if not isinstance(model, NativeModel):
            what = "models trained elsewhere" if isinstance(model, TrainedElsewhere) else f"the model {model}"
            names = f"give outputs by query, in arrays named {' and '.join(self.queries)}"
            raise InputError(f"weights can be read of built-in models only, and the plan is of {what}: {names}")
        self._check_gives_logits("weights")
        flat = flat_weights(arrays, model, graph)
        kernel = make_kernel(graph, model, plan.training or Training())
        shown = zip(self.queries, shown_graphs(plan, graph), strict=True)

        def ask(unit_nodes: Graph) -> Floats32:
            asked = make_kernel(unit_nodes, model, plan.training or Training())
            return asked.logits(flat, unit_nodes.indptr, unit_nodes.indices)

        self._ask_unit_nodes(ask, flat)
        return {query: kernel.logits(flat, other.indptr, other.indices) for query, other in shown}

    def _module_outputs(self, module: Any) -> NamedArrays:
        import torch

        from bmpaudit.shadow.engines.torch import Neighborhoods

        self._check_gives_logits("a module")
        first = next(iter(module.parameters()), torch.empty(0))
        was_training, outputs = module.training, {}

        def ask(graph: Graph) -> AnyArray:
            features = torch.tensor(graph.dense_features, dtype=first.dtype, device=first.device)
            edge_index = Neighborhoods(graph.indptr, graph.indices).edge_index
            return _as_array(module(features, edge_index.to(first.device)))

        module.eval()
        try:
            with torch.no_grad():
                for query, other in zip(self.queries, shown_graphs(self.plan, self.graph), strict=True):
                    outputs[query] = ask(other)
                self._ask_unit_nodes(ask)
                return outputs
        finally:
            module.train(was_training)

    def _classifier_outputs(self, estimator: Any) -> NamedArrays:
        self._check_gives_logits("a classifier")
        if self.plan.engine_name != "sklearn":
            name = type(estimator).__name__
            raise InputError(f"the plan is of {registry.title(self.plan.model)}, got the classifier {name}")

        def ask(graph: Graph) -> Floats32:
            return log_votes(class_probabilities(estimator, table_features(graph), graph.num_classes))

        self._ask_unit_nodes(ask)
        return dict.fromkeys(self.queries, ask(self.graph))

    def _check_gives_logits(self, what: str) -> None:
        if self.changes_outputs:
            raise InputError(f"release {self.release} gives out changed outputs, so give these instead of {what}")

    def _statistic(self, query: str, outputs: AnyArray) -> Floats32:
        """The plan's statistic of a model's outputs, which are checked first."""
        graph, plan = self.graph, self.plan
        wanted = graph.num_nodes, graph.num_classes
        if outputs.ndim != 2:
            raise InputError(f"{query}: outputs must have shape {wanted}, got {outputs.shape}")
        if len(outputs) != graph.num_nodes:
            sizes = f"of {len(outputs):,} nodes, and the graph has {graph.num_nodes:,}"
            raise InputError(f"{query}: outputs are {sizes}: of another graph?")
        if outputs.shape != wanted:
            raise InputError(f"{query}: outputs have {outputs.shape[1]} classes, and the graph has {wanted[1]}")
        if outputs.dtype.kind not in "fiu":
            raise InputError(f"{query}: outputs must be real numbers, got {outputs.dtype}")
        if np.isnan(outputs).any():
            node, column = np.argwhere(np.isnan(outputs))[0].tolist()
            where = f"{describe_node(node, graph.node_names)}, class {column}"
            raise InputError(f"{query}: outputs must not be NaN, got one for {where}")
        if self.access == LABELS:
            return (outputs.argmax(axis=1) == graph.labels).astype(np.float32)
        if not self.changes_outputs and plan.engine_name != "sklearn":
            outputs = as_logits(outputs, query, stacklevel=6)
        elif not self.changes_outputs and is_probabilities(outputs):
            outputs = log_votes(outputs)  # as those of the shadow models, which give out probabilities too
        with np.errstate(over="ignore"):  # a number too large becomes infinite, which is refused
            statistics = np.asarray(plan.statistic(outputs.astype(np.float32), graph.labels), dtype=np.float32)
        is_finite = np.isfinite(statistics)
        if not is_finite.all():
            node = int(is_finite.argmin())
            found = f"{statistics[node]} for {describe_node(node, graph.node_names)}"
            raise InputError(f"{query}: the margin of the true label must be finite, got {found}")
        return statistics


def _as_array(values: Any) -> AnyArray:
    if hasattr(values, "detach"):  # a tensor
        tensor = values.detach().cpu()
        return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())
    return np.asarray(values)


# Files, which are read without running anything.

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".tar")  # as PyTorch writes them

TENSOR_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?"} | {
    f"{letter}{8 * size}": f"<{letter.lower()}{size}" for letter in "IU" for size in (1, 2, 4, 8)
}
"""Types of safetensors that NumPy has, and bfloat16, the upper half of a float32, which its own reader cannot give."""


def _read_file(path: Path, graph: Graph) -> NamedArrays | AnyArray:
    match path.suffix.lower():
        case ".npz" | ".safetensors":
            return read_named_arrays(path)
        case ".parquet":
            return _read_output_table(path, graph)
        case ".npy":
            return read_array(path)
        case suffix if suffix in PICKLES:
            target = path.with_suffix(".npz").name
            raise DataError(
                f"{path}: a pickle, which can run code when it is read, and is never loaded; convert a state dict with "
                f"python -c \"import numpy, torch; numpy.savez('{target}', **{{name: value.numpy() for name, value in "
                f"torch.load('{path.name}', 'cpu', weights_only=True).items()}})\""
            )
    raise DataError(
        f"{path}: a released model must be .npz or .safetensors (weights, or outputs by query), .npy or .parquet "
        "(outputs of one query)"
    )


def read_named_arrays(path: Path) -> dict[str, AnyArray]:
    """The arrays of an `.npz` archive or a `.safetensors` file, in the order of the file.

    Safetensors: eight bytes with the length of the header (little-endian), the header as JSON, then the arrays' bytes.
    For each name the header has `dtype`, `shape` and `data_offsets`, begin and end counted from the end of the header.
    """
    if path.suffix.lower() != ".safetensors":
        return read_archive(path)
    with damage_in(path, "a safetensors file"), opened(path) as file:
        content = file.read()
        start = 8 + int.from_bytes(content[:8], "little")
        if len(content) < 8 or start > len(content):
            raise ValueError("it ends within its header")
        header = parse_json(content[8:start].decode("utf-8"))
        data, arrays = memoryview(content)[start:], {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            if kind not in TENSOR_TYPES:
                raise ValueError(f"{name} must be one of {', '.join(TENSOR_TYPES)}, got {kind}")
            size = math.prod(shape) * np.dtype(TENSOR_TYPES[kind]).itemsize
            if min(shape, default=0) < 0 or not 0 <= begin <= end <= len(data) or end - begin != size:
                raise ValueError(f"{name} of shape {tuple(shape)} cannot be at bytes {begin} to {end} of {len(data)}")
            values = np.frombuffer(data[begin:end], dtype=TENSOR_TYPES[kind])
            values = (values.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else values
            arrays[name] = values.reshape(shape)
        return arrays


def _read_output_table(path: Path, graph: Graph) -> AnyArray:
    """Outputs of one query, a row for each node and a column for each class.

    With a column `node` of names or numbers, rows are put in the graph's order.
    """
    columns = dict(read_table(path).items())
    nodes = columns.pop("node", None)
    if not columns:
        raise DataError(f"{path}: a table of outputs must have a column for each class, got none")
    try:
        outputs = np.column_stack([np.array(column, dtype=np.float64) for column in columns.values()])
    except (TypeError, ValueError) as failure:
        raise DataError(f"{path}: a table of outputs must hold numbers: {failure}") from None
    if nodes is None or len(nodes) != graph.num_nodes:
        return outputs
    ordered = np.empty_like(outputs)
    ordered[node_ids(nodes.tolist(), graph, str(path))] = outputs
    return ordered


# A layer's name, then the parameter's: PyTorch Geometric has lin.weight, before 2.5 lin_src.weight in GATConv, and
# lin_l and lin_r, for a node's neighbours and itself, in SAGEConv.
_NAME = re.compile(
    r"(?:(?P<layer>.*?)\.)??(?:(?P<root>lin_r\.)|(?:lin|lin_src|lin_l)\.)?(?P<parameter>weight|bias|att_src|att_dst|"
    r"running_mean|running_var)"
)
MOST_NAMES_SHOWN = 12

LayerShapes = Mapping[str, Shape]
"""Shapes of a layer's parameters, by their short names, in the order in which C++ has them."""


def flat_weights(arrays: NamedArrays, model: NativeModel, graph: Graph) -> Floats32:
    """All parameters of a model on a graph in one array, as C++ takes them; `InputError` says what else was found.

    Names are those of a state dict: the layer's name, which can be anything, then the parameter's: `layers.0.bias`.
    Layers are recognised by their shapes, those of the same shapes by the numbers in their names.
    """
    expected: list[LayerShapes] = []
    inputs = graph.num_features
    for layer in model.native_layers(graph.num_classes):
        expected += layer.parameter_shapes(inputs)
        inputs = layer.units
    # No parameters: a counter of batches, and the ε of a GINConv where it is 0.
    arrays = {name: array for name, array in arrays.items() if not name.endswith("num_batches_tracked")}
    arrays = {name: each for name, each in arrays.items() if name.rpartition(".")[2] != "eps" or each.any()}

    def misfit(why: str = "") -> InputError:
        wanted = _listed([f"{name} {shape}" for shapes in expected for name, shape in shapes.items()])
        found = _listed([f"{name} {array.shape}" for name, array in arrays.items()]) or "nothing"
        return InputError(
            f"the weights must be those of the plan's {type(model).__name__} with {model.layers} layers on this graph: "
            f"{wanted}; got {found}{why}"
        )

    known = {parameter for shapes in expected for parameter in shapes}
    layers: dict[str, dict[str, AnyArray]] = {}
    for name, array in arrays.items():
        match = _NAME.fullmatch(name)
        parameter = "" if match is None else f"root_{match['parameter']}" if match["root"] else match["parameter"]
        if match is None or parameter not in known:
            raise misfit(f"; {name} is not one of them")
        parts = layers.setdefault(match["layer"] or "", {})
        if parameter in parts:
            raise misfit(f"; {match['layer']} has {parameter} twice")
        # Some versions of PyTorch Geometric have attention vectors of shape (1, heads, channels), some without the 1.
        parts[parameter] = array[0] if array.ndim == 3 and len(array) == 1 else array
    if len(layers) != len(expected):
        raise misfit()
    left, ordered = sorted(layers, key=_numbers), []
    for shapes in expected:
        wanted = {part: shape[-2:] for part, shape in shapes.items()}
        fitting = [name for name in left if {part: array.shape for part, array in layers[name].items()} == wanted]
        if not fitting:
            raise misfit()
        if len(fitting) > 1 and _numbers(fitting[0]) == _numbers(fitting[1]):
            alike = f"{fitting[0]} and {fitting[1]}"
            raise InputError(f"layers of the same shape must have numbers in their names, in order, got {alike}")
        left.remove(fitting[0])
        ordered += [layers[fitting[0]][part] for part in shapes]
    for name, array in arrays.items():
        with np.errstate(over="ignore"):
            is_wrong = array.dtype.kind not in "fiu" or ~np.isfinite(array.astype(np.float32))
        if np.any(is_wrong):
            found = f"values of type {array.dtype}" if is_wrong is True else array[is_wrong][0]
            raise InputError(f"weights must be finite in single precision, got {found} in {name}")
    return np.concatenate([array.astype(np.float32).ravel() for array in ordered])


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]


def _listed(items: list[str]) -> str:
    more = len(items) - MOST_NAMES_SHOWN
    return ", ".join(items[:MOST_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
