"""What determines the shadow models: everything that changes the answer, and nothing that only changes the speed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bmpaudit import registry
from bmpaudit.graph import Graph
from bmpaudit.interfaces import Query, Release, Statistic
from bmpaudit.models import GCN, NativeModel, SklearnModel, TrainedElsewhere, Training, as_model
from bmpaudit.models.own import function_name, has_own_name
from bmpaudit.registry import ENGINE, MODEL, QUERY, RELEASE, SAMPLER, STATISTIC, UntrustedPart
from bmpaudit.releases import (
    QUERIES,
    WEIGHTS,
    Clean,
    FullEdges,
    NoEdges,
    NoisyLastLayer,
    gives_labels_only,
    label_margin,
    models_of,
)
from bmpaudit.samplers import AnySampler
from bmpaudit.shadow.class_rows import RowSet, row_sets
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import check_seed

FORMAT = 5


@dataclass(frozen=True)
class View:
    """What an adversary sees of a model: the answers to one query under one release."""

    query: Query
    release: Release

    @property
    def query_name(self) -> str:
        """`full`, `none`, and so on."""
        return registry.label(QUERY, self.query)

    @property
    def release_name(self) -> str:
        """`clean`, `noisy`, `noisy-0.5`, and so on."""
        return registry.label(RELEASE, self.release)

    @property
    def name(self) -> str:
        """`full_clean`, `none_noisy`, and so on."""
        return f"{self.query_name}_{self.release_name}"


@dataclass(frozen=True)
class ShadowPlan:
    """The experiment: shadow model j is a function of (graph, plan, j)."""

    sampler: AnySampler  # who is in the training sample
    # A built-in model, a `TorchModel`, an `nn.Module` class or another factory of modules, a scikit-learn classifier.
    model: Any = field(default_factory=GCN)
    # None for a model that brings its own training or was trained elsewhere.
    training: Training | None = field(default_factory=Training)
    releases: Sequence[Release] = (Clean(), NoisyLastLayer())  # what the owner gives out of a trained model
    queries: Sequence[Query] = (FullEdges(), NoEdges())  # how the trained models are asked
    statistic: Statistic = label_margin  # what is kept of the answers, one number for each node
    seed: int = 0
    engine: str | UntrustedPart = "native"  # its name, or `module:Name` of your own
    rows: Sequence[str] = ()  # accesses whose class rows are kept: queries, weights (`shadow.class_rows`)

    def __post_init__(self) -> None:
        check_seed(self.seed)
        object.__setattr__(self, "model", as_model(self.model))
        object.__setattr__(self, "releases", tuple(self.releases))
        object.__setattr__(self, "queries", tuple(self.queries))
        object.__setattr__(self, "rows", tuple(self.rows))
        if len(set(self.rows)) != len(self.rows) or not {QUERIES, WEIGHTS}.issuperset(self.rows):
            raise InputError(f"rows must be of {QUERIES} and {WEIGHTS}, each once, got {', '.join(self.rows)}")
        takes_training = not self.is_trained_elsewhere and self.own_training is None
        object.__setattr__(self, "training", (self.training or Training()) if takes_training else None)
        if self.training is not None and not isinstance(self.model, UntrustedPart):
            self.training.check_model(self.model)
        if not isinstance(self.sampler, UntrustedPart) and not callable(getattr(self.sampler, "sample", self.sampler)):
            raise InputError(f"sampler must have a method sample or be a function, got {self.sampler!r}")
        for kind, parts, method in ((RELEASE, self.releases, "outputs"), (QUERY, self.queries, "graph")):
            for part in parts:
                if not isinstance(part, UntrustedPart) and not callable(getattr(part, method, None)):
                    raise InputError(f"a {kind} must have a method {method}, got {part!r}")
            names = [registry.label(kind, part) for part in parts]
            if not names or len(set(names)) != len(names):
                raise InputError(f"a plan needs at least one {kind}, each of its own name, got {', '.join(names)}")
        if not isinstance(self.statistic, UntrustedPart):
            self._check_statistic()
        if not isinstance(self.engine, UntrustedPart):
            self._check_engine()

    def _check_statistic(self) -> None:
        """Refuses what cannot be told by its name, and statistics of scores where only labels are given out."""
        if not callable(self.statistic):
            raise InputError(f"statistic must be a function of (outputs, labels), got {self.statistic!r}")
        if not dataclasses.is_dataclass(self.statistic) and not has_own_name(self.statistic):
            remedy = "use one that is defined by name in a module, or a dataclass with a method __call__"
            raise InputError(f"statistic: {function_name(self.statistic)} may stand for many functions; {remedy}")
        if self.statistic is label_margin or getattr(self.statistic, "takes_labels", False):
            return
        for release in self.releases:
            if gives_labels_only(release):
                raise InputError(
                    f"release {registry.label(RELEASE, release)} gives out no scores, which the statistic "
                    f"{registry.label(STATISTIC, self.statistic)} needs; one that does not has takes_labels = True"
                )

    def _check_engine(self) -> None:
        """Refuses models that the engine cannot train, and what only a model with layers and edges can give."""
        if self.engine not in registry.ENTRIES[ENGINE] and not registry.is_code(str(self.engine)):
            raise registry.unknown_name(ENGINE, str(self.engine))
        if self.engine == "native" and not isinstance(self.model, NativeModel | TrainedElsewhere | UntrustedPart):
            raise InputError(f"the native engine cannot train {self.model}: it needs engine={engine_of(self.model)!r}")
        if self.engine != "sklearn":
            return
        for release in self.releases:
            if not isinstance(release, UntrustedPart) and release.last_layer_noise > 0:
                name = registry.label(RELEASE, release)
                raise InputError(f"release {name} puts noise on a last layer, and {self.model} has none")
        if len(self.queries) > 1:
            names = ", ".join(registry.label(QUERY, query) for query in self.queries)
            raise InputError(f"{self.model} sees no edges, so that one query is all there is, got queries {names}")

    @property
    def views(self) -> tuple[View, ...]:
        """All combinations of a query and a release, query by query."""
        return tuple(View(query, release) for query in self.queries for release in self.releases)

    @property
    def keeps_labels(self) -> bool:
        """Whether it is kept which labels are right: not by engines of the user's own, nor of models from outside."""
        return not self.is_trained_elsewhere and self.engine_name in registry.ENTRIES[ENGINE]

    @property
    def row_sets(self) -> tuple[RowSet, ...]:
        """The class rows that are kept of each model: none by engines of the user's own, or of models from outside."""
        if not self.keeps_labels:
            return ()
        return row_sets(self.rows, self.releases, self.model)

    @property
    def num_repeats(self) -> int:
        """How many models are trained on each sample: as many as a release takes."""
        return max(map(models_of, self.releases))

    @property
    def is_trained_elsewhere(self) -> bool:
        """Whether the models come from outside, so that no more of them can be trained."""
        return isinstance(self.model, TrainedElsewhere)

    @property
    def own_training(self) -> str | None:
        """`module:Name` of the function by which a model is trained, if it brings one."""
        if self.engine_name == "sklearn":
            return "fit"
        if getattr(type(self.model), "trains_itself", False):
            return function_name(type(self.model).train)
        if isinstance(self.model, UntrustedPart) or hasattr(self.model, "registry_table"):
            return registry.table_of(MODEL, self.model).get("train")
        return None

    @property
    def engine_name(self) -> str:
        """Name of the engine, also of one whose code has not been run."""
        return self.engine.target if isinstance(self.engine, UntrustedPart) else self.engine

    def check_trusted(self) -> None:
        """Raises `UntrustedCodeError` if a part is code that has not been run."""
        for part in (self.sampler, self.model, self.statistic, *self.releases, *self.queries, self.engine):
            if isinstance(part, UntrustedPart):
                raise registry.untrusted(part.kind, part.target)

    def describe(self, graph: Graph) -> dict[str, Any]:
        """The plan and the graph as plain values, by which a folder of shadow models is recognised."""
        training: Any = "trained elsewhere" if self.is_trained_elsewhere else {"name": self.own_training}
        if self.training is not None:
            training = {name: _plain(value) for name, value in registry.settings_of(self.training).items()}
        return {
            "format": FORMAT,
            "graph": {
                "content_hash": graph.content_hash,
                **{n: getattr(graph, n) for n in ("num_nodes", "num_edges", "num_features", "num_classes")},
            },
            "sampler": _describe_part(SAMPLER, self.sampler),
            "model": _describe_part(MODEL, self.model),
            "training": training,
            "releases": [_describe_part(RELEASE, release) for release in self.releases],
            "queries": [_describe_part(QUERY, query) for query in self.queries],
            "statistic": _describe_part(STATISTIC, self.statistic),
            "seed": int(self.seed),
            "engine": None if self.is_trained_elsewhere else self.engine_name,
            "rows": list(dict.fromkeys(each.access for each in self.row_sets)),
        }


def engine_of(model: Any) -> str:
    """The built-in engine that a model is trained by unless a plan says otherwise."""
    if isinstance(model, NativeModel | TrainedElsewhere | UntrustedPart):
        return "native"
    return "sklearn" if isinstance(model, SklearnModel) else "torch"


def _describe_part(kind: str, part: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in registry.table_of(kind, part).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if callable(value):
        return function_name(value)
    return value
