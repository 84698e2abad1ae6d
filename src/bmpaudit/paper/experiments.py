"""The paper's experiments as data: 16 configurations, 8 ways to attack each, two definitions; 256 cells."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

from bmpaudit.attack import RuleName as Decision
from bmpaudit.errors import InputError
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.shadow import GAT, GCN, MLP, Clean, NoisyLastLayer, ShadowPlan, Training

Measure = Literal["bmp-r", "mp"]
Counting = Literal["paper", "ours"]

NUM_MODELS = 1_000
QUICK_SHARE = 10  # a quick look takes one model in so many

DATASETS = ("cora", "citeseer")
FRACTIONS = (0.25, 0.5)
SAMPLINGS = ("random", "snowball")
MODELS = ("gcn", "gat")
EDGES = ("full", "none")
OUTPUTS = ("clean", "noisy")
DECISIONS: tuple[Decision, ...] = ("weak", "strong")
MEASURES: tuple[Measure, ...] = ("bmp-r", "mp")
COUNTINGS: tuple[Counting, ...] = ("paper", "ours")
"""`paper`: nodes that cannot be attacked count as "non-member", priors are frequencies over the J samples. `ours`: such
nodes are left out, priors are exact or over 100,000 draws."""

_SAMPLERS: dict[str, type[Uniform] | type[Snowball]] = {"random": Uniform, "snowball": Snowball}
_MODELS: dict[str, type[GCN] | type[GAT] | type[MLP]] = {"gcn": GCN, "gat": GAT, "mlp": MLP}
NOISE_STD = 0.25  # the paper's, on all parameters of the last layer


@dataclass(frozen=True, order=True)
class Configuration:
    """What is trained: one set of J shadow models serves all attacks on it."""

    dataset: str
    train_fraction: float
    sampling: str
    model: str

    def __post_init__(self) -> None:
        if self.sampling not in _SAMPLERS:
            raise InputError(f"sampling must be {' or '.join(_SAMPLERS)}, got sampling={self.sampling!r}")
        if self.model not in _MODELS:
            raise InputError(f"model must be one of {', '.join(_MODELS)}, got model={self.model!r}")

    @property
    def name(self) -> str:
        """`cora-25-random-gcn`, and so on."""
        return f"{self.dataset}-{round(100 * self.train_fraction)}-{self.sampling}-{self.model}"

    @property
    def sampler(self) -> Uniform | Snowball:
        """Random: floor(f·N) nodes without replacement. Snowball: fan-out 5, ends where its queue runs dry."""
        return _SAMPLERS[self.sampling](self.train_fraction)

    def plan(self, seed: int) -> ShadowPlan:
        """The shadow models, with the settings inferred for all cells alike (docs/reproduction.md)."""
        return ShadowPlan(
            self.sampler, _MODELS[self.model](), Training(), (Clean(), NoisyLastLayer(NOISE_STD)), seed=seed
        )


@dataclass(frozen=True, order=True)
class Variant:
    """How the trained models are attacked."""

    edges: Literal["full", "none"]
    output: Literal["clean", "noisy"]
    decision: Decision

    @property
    def view(self) -> str:
        """Name of the query view."""
        return f"{self.edges}_{self.output}"

    @property
    def name(self) -> str:
        """`full_clean_weak`, and so on."""
        return f"{self.view}_{self.decision}"


@dataclass(frozen=True, order=True)
class Cell:
    """One entry of the paper's Tables II to V."""

    configuration: Configuration
    variant: Variant
    measure: Measure

    @property
    def key(self) -> tuple[str, float, str, str, str, str, str, str]:
        """The values of `KEY`, as a row of the tables has them."""
        of, by = self.configuration, self.variant
        return (of.dataset, of.train_fraction, of.sampling, of.model, by.edges, by.output, by.decision, self.measure)


KEY = ("dataset", "train_fraction", "sampling", "model", "edges", "output", "decision", "measure")
"""The columns that name a cell."""

CONFIGURATIONS = tuple(Configuration(*chosen) for chosen in product(DATASETS, FRACTIONS, SAMPLINGS, MODELS))
VARIANTS = tuple(Variant(*chosen) for chosen in product(EDGES, OUTPUTS, DECISIONS))  # type: ignore[arg-type]
CELLS = tuple(Cell(*chosen) for chosen in product(CONFIGURATIONS, VARIANTS, MEASURES))

BEYOND = (
    *(Configuration("pubmed", 0.25, sampling, model) for sampling in SAMPLINGS for model in ("gcn", "mlp")),
    *(Configuration(name, 0.25, sampling, "mlp") for name in DATASETS for sampling in SAMPLINGS),
)
"""A data set and a model that the paper does not have, through the same attacks."""

JOINT = tuple(Configuration("cora", 0.5, sampling, "gcn") for sampling in SAMPLINGS)
"""Figure 4: (ε_L, ε_R) jointly, for clean outputs."""

NODES_SHOWN = tuple(Configuration("cora", 0.25, sampling, "gcn") for sampling in SAMPLINGS)
NODES_SHOWN_VARIANT = Variant("full", "clean", "strong")
"""Figure 3: priors against implied ε. The paper does not say of which sampling."""

MHAAR_SUBSET = tuple(Configuration("cora", 0.25, sampling, "gcn") for sampling in SAMPLINGS)
"""Estimated by Algorithm 3 with the paper's settings too, with clean outputs."""
