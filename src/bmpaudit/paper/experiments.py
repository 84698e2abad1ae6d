"""The paper's experiments as audit plans: 16 configurations, 8 ways to attack each, two definitions; 256 cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from bmpaudit.auditing.plan import AuditPlan
from bmpaudit.auditing.variant import Variant, variants

NUM_MODELS = 1_000
QUICK_SHARE = 10  # a quick run takes one model in this many

DATASETS = ("cora", "citeseer")
FRACTIONS = (0.25, 0.5)
SAMPLERS = ("uniform", "snowball")
SAMPLER_SETTINGS: Mapping[str, Mapping[str, bool]] = {
    "uniform": {},
    "snowball": {"any_order": True, "walked_edges": True},
}
"""What the paper leaves open, as it was inferred from its tables (docs/reproduction.md)."""
MODELS = ("gcn", "gat")
QUERIES = ("full", "none")
RELEASES = ("clean", "noisy")
RULES = ("weak", "strong")
DEFINITIONS = ("bmp-r", "mp")
COUNTINGS: Mapping[str, Mapping[str, str]] = {
    "paper": {"prior_source": "shadow-frequency", "unfittable": "non-member"},
    "ours": {"prior_source": "exact", "unfittable": "leave-out"},
}
"""The two ways of counting errors, as settings of the plan."""

TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}


@dataclass(frozen=True, order=True)
class Configuration:
    """What is trained: one set of J shadow models serves all attacks on it.

    Attributes:
        dataset: Name of the data set.
        train_fraction: Share of the nodes that are sampled.
        sampler: `uniform` (the paper's "random") or `snowball`.
        model: `gcn`, `gat` or `mlp`.
    """

    dataset: str
    train_fraction: float
    sampler: str
    model: str

    @property
    def name(self) -> str:
        """`cora-25-uniform-gcn`, and so on."""
        return f"{self.dataset}-{round(100 * self.train_fraction)}-{self.sampler}-{self.model}"

    def plan(self, seed: int = 0, shadows: int = NUM_MODELS, counting: str = "paper") -> AuditPlan:
        """The audit plan; settings that the paper leaves open are the same for all cells (docs/reproduction.md)."""
        return AuditPlan(
            shadows=shadows,
            seed=seed,
            sampler={"name": self.sampler, "train_fraction": self.train_fraction, **SAMPLER_SETTINGS[self.sampler]},
            model=self.model,
            releases=RELEASES,
            queries=QUERIES,
            attack="gaussian",
            rules=RULES,
            definitions=DEFINITIONS,
            **COUNTINGS[counting],
        )


@dataclass(frozen=True, order=True)
class Cell:
    """One entry of the paper's Tables II to V."""

    configuration: Configuration
    variant: Variant
    definition: str

    @property
    def key(self) -> dict[str, Any]:
        """The columns of `KEY` with their values."""
        (query,) = self.variant.queries
        attack = {"query": query, "release": self.variant.release, "rule": self.variant.rule}
        return {**asdict(self.configuration), **attack, "definition": self.definition}


CONFIGURATIONS = tuple(Configuration(*chosen) for chosen in product(DATASETS, FRACTIONS, SAMPLERS, MODELS))
VARIANTS = variants(CONFIGURATIONS[0].plan())
CELLS = tuple(Cell(*chosen) for chosen in product(CONFIGURATIONS, VARIANTS, DEFINITIONS))
KEY = tuple(CELLS[0].key)
"""The columns that name a cell."""

BEYOND = (
    *(Configuration("pubmed", 0.25, sampler, model) for sampler in SAMPLERS for model in ("gcn", "mlp")),
    *(Configuration(dataset, 0.25, sampler, "mlp") for dataset in DATASETS for sampler in SAMPLERS),
)
"""A data set and a model that the paper does not have, under the same attacks."""

JOINT = tuple(Configuration("cora", 0.5, sampler, "gcn") for sampler in SAMPLERS)
"""Figure 4: the joint posterior of (ε_L, ε_R), for clean outputs."""

NODES_SHOWN = tuple(Configuration("cora", 0.25, sampler, "gcn") for sampler in SAMPLERS)
NODES_SHOWN_VARIANT = Variant("clean", ("full",), "strong")
"""Figure 3: priors against implied ε. The paper does not say for which sampler."""

MHAAR_SUBSET = tuple(Configuration("cora", 0.25, sampler, "gcn") for sampler in SAMPLERS)
"""Also estimated by Algorithm 3 with the paper's settings, for clean outputs."""


def cell_label(row: Mapping[Any, Any]) -> str:
    """A cell in words, without its definition: `Cora 25% uniform GCN full clean weak`."""
    attack = " ".join(str(row[name]) for name in ("query", "release", "rule"))
    return f"{TITLES[row['dataset']]} {row['train_fraction']:.0%} {row['sampler']} {str(row['model']).upper()} {attack}"
