"""One released model: from its weights, its outputs or the module itself to what each query gives out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bmpaudit import registry
from bmpaudit.arrays import Floats32
from bmpaudit.errors import DataError, InputError
from bmpaudit.graph import Graph
from bmpaudit.graph.node_error import describe_node
from bmpaudit.reading.archive import read_array
from bmpaudit.registry import QUERY, RELEASE, UntrustedPart
from bmpaudit.shadow.class_probabilities import class_probabilities, log_votes, table_features
from bmpaudit.shadow.engines.native import make_kernel
from bmpaudit.shadow.engines.scoring import shown_graphs
from bmpaudit.shadow.models import NativeModel, TrainedElsewhere, Training
from bmpaudit.shadow.models.estimator_table import is_estimator
from bmpaudit.shadow.output_table import read_output_table
from bmpaudit.shadow.plan import ShadowPlan
from bmpaudit.shadow.runs import ProbabilitiesConvertedWarning, is_probabilities, log_probabilities
from bmpaudit.shadow.weight_files import read_named_arrays, refuse_pickle
from bmpaudit.shadow.weights import flat_weights

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

    from bmpaudit.shadow.engines.torch_trainer import edge_index_of

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
