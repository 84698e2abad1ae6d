"""The paper's experiments as audit plans: 16 configurations, 8 ways to attack each, two definitions; 256 cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import product
from typing import Any

import jinja2
import pandas as pd

from bmpaudit.auditing.context import Variant, variants
from bmpaudit.plan import AuditPlan

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


# The published Tables II to V, and the two columns of Table II that are swapped.


TABLES = {("cora", 0.25): "II", ("cora", 0.5): "III", ("citeseer", 0.25): "IV", ("citeseer", 0.5): "V"}

# The file keeps the paper's words. Here, and only here, they become ours.
OUR_COLUMNS = {
    "sampling": "sampler",
    "edges": "query",
    "output": "release",
    "decision": "rule",
    "measure": "definition",
}
OUR_SAMPLERS = {"random": "uniform", "snowball": "snowball"}
PAPERS_SAMPLERS = {"uniform": "random (uniform)", "snowball": "snowball"}
"""What the rows of the paper's tables are called where they are shown."""


def published_table(*, as_printed: bool = False) -> pd.DataFrame:
    """The 256 published cells in the order of `CELLS`: the columns of `KEY`, and p5, p50, p95.

    Args:
        as_printed: Table II prints, in its rows "random", the GAT columns "full edge" and "no edges" the wrong way
            round (in every other table and in our runs, no edges leak far more). They are swapped back unless this is
            set.

    >>> len(published_table())
    256
    """
    import pandas as pd

    with (files("reproduction") / "published.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file).rename(columns=OUR_COLUMNS)
    table["sampler"] = table["sampler"].map(OUR_SAMPLERS)
    if not as_printed:
        swapped = is_swapped(table)
        table.loc[swapped, "query"] = table.loc[swapped, "query"].map({"full": "none", "none": "full"})
    return pd.DataFrame([cell.key for cell in CELLS]).merge(table, on=list(KEY))


def is_swapped(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows belong to the swapped columns: Cora, 25 %, uniform, GAT."""
    is_table_two = (table["dataset"] == "cora") & (table["train_fraction"] == 0.25)
    return is_table_two & (table["sampler"] == "uniform") & (table["model"] == "gat")


# Marginal effects: how much ε changes with one factor, averaged over all others (Figure 2).


FACTORS: dict[str, tuple[object, object]] = {
    "train_fraction": FRACTIONS,
    "release": RELEASES,
    "sampler": SAMPLERS,
    "model": MODELS,
    "query": QUERIES,
    "rule": RULES,
}
"""The two levels of each factor."""


def marginal_effects(cells: pd.DataFrame, value: str) -> pd.Series[float]:
    """Mean of `value` at the second level of each factor minus the mean at the first.

    >>> cells = pd.DataFrame({"release": ["clean", "noisy"], "x": [5.0, 3.0]})
    >>> marginal_effects(cells, "x")["release"]
    np.float64(-2.0)
    """
    effects = {
        factor: cells.loc[cells[factor] == second, value].mean() - cells.loc[cells[factor] == first, value].mean()
        for factor, (first, second) in FACTORS.items()
        if factor in cells
    }
    return pd.Series(effects, dtype=float)


def render_page(template: str, parts: Mapping[str, str]) -> str:
    """A page of the docs from its template; parts that are empty leave no gap."""
    loader = jinja2.PackageLoader("reproduction")
    environment = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined)  # noqa: S701 - Markdown, not HTML
    page = environment.get_template(template).render(parts)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"
