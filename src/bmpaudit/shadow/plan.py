"""What determines the shadow models: everything that changes the answer, and nothing that only changes the speed."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bmpaudit.errors import InputError
from bmpaudit.graph import Graph
from bmpaudit.samplers import AnySampler
from bmpaudit.shadow.models import GCN, BuiltInModel, Training
from bmpaudit.shadow.torch_model import TorchModel
from bmpaudit.streams import check_seed

FORMAT = 1


@dataclass(frozen=True)
class QueryView:
    """How a trained model is asked about the nodes of the whole graph.

    Attributes:
        edges: `full`: with all edges of the graph; `none`: each node by itself.
        output: `clean`, or `noisy`: with Gaussian noise on all parameters of the last layer.
    """

    edges: Literal["full", "none"] = "full"
    output: Literal["clean", "noisy"] = "clean"

    def __post_init__(self) -> None:
        if self.edges not in ("full", "none") or self.output not in ("clean", "noisy"):
            raise InputError(
                f"a view has edges full or none and output clean or noisy, got edges={self.edges!r}, "
                f"output={self.output!r}"
            )

    @property
    def name(self) -> str:
        """`full_clean`, `none_noisy`, and so on."""
        return f"{self.edges}_{self.output}"


ALL_VIEWS = tuple(QueryView(edges, output) for edges in ("full", "none") for output in ("clean", "noisy"))
"""The four ways of asking that the paper studies; the two noisy ones share one draw of noise."""


@dataclass(frozen=True)
class ShadowPlan:
    """The experiment: shadow model j is a function of (graph, plan, j).

    Attributes:
        sampler: Who is in the training sample.
        model: What is trained: a `GCN`, `GAT` or `MLP`, or a `TorchModel`.
        training: How.
        views: How the trained models are asked.
        noise_std: Standard deviation of the noise of noisy views.
        seed: Of all random numbers.
        engine: `native` or `torch`; a `TorchModel` needs `torch`.
    """

    sampler: AnySampler
    model: BuiltInModel | TorchModel = field(default_factory=GCN)
    training: Training = field(default_factory=Training)
    views: tuple[QueryView, ...] = ALL_VIEWS
    noise_std: float = 0.25
    seed: int = 0
    engine: Literal["native", "torch"] = "native"

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if not callable(self.sampler) and not hasattr(self.sampler, "sample"):
            raise InputError(f"sampler must have a method sample or be a function, got {self.sampler!r}")
        if not 0 <= self.noise_std < float("inf"):
            raise InputError(f"noise_std must be at least 0, got noise_std={self.noise_std}")
        if not self.views or len(set(self.views)) != len(self.views):
            raise InputError("views must name at least one view, each once")
        if self.engine not in ("native", "torch"):
            raise InputError(f"engine must be native or torch, got engine={self.engine!r}")
        if isinstance(self.model, TorchModel) and self.engine != "torch":
            raise InputError("a TorchModel needs engine='torch'")
        if isinstance(self.model, TorchModel) and not self.model.version:
            for part in (self.model.factory, self.model.train):
                if part is not None and not _has_name_of_its_own(part):
                    raise InputError(
                        f"TorchModel: {_plain(part)} may stand for many functions; tell them apart by version='…'"
                    )

    def describe(self, graph: Graph) -> dict[str, Any]:
        """The plan and the graph as plain values, by which a folder of shadow models is recognised."""
        return {
            "format": FORMAT,
            "graph": {
                "content_hash": graph.content_hash,
                **{n: getattr(graph, n) for n in ("num_nodes", "num_edges", "num_features", "num_classes")},
            },
            "sampler": describe_part(self.sampler),
            "model": describe_part(self.model),
            "training": describe_part(self.training),
            "views": [view.name for view in self.views],
            "noise_std": float(self.noise_std),
            "seed": int(self.seed),
            "engine": self.engine,
        }


def describe_part(part: Any) -> dict[str, Any]:
    """A setting as plain values: its kind and its fields; a function by the name it can be imported by."""
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = {f.name: _plain(getattr(part, f.name)) for f in dataclasses.fields(part)}
        return {"kind": type(part).__name__, **fields}
    if hasattr(part, "sample"):  # an object of the user's own, known by its class
        return {"kind": "object", "name": f"{type(part).__module__}.{type(part).__qualname__}"}
    return {"kind": "function", "name": _plain(part)}


def _has_name_of_its_own(function: Any) -> bool:
    """Whether a function can be told by its name: not a lambda, a partial, or one made within another."""
    name = getattr(function, "__qualname__", "")
    return bool(name) and "<" not in name


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return value
