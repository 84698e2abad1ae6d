"""The experiments and the published tables."""

from reproduction import CELLS, CONFIGURATIONS, VARIANTS, published_table
from reproduction.experiments import KEY, is_swapped

from bmpaudit.attack import Gaussian
from bmpaudit.estimation import NormalPrior
from bmpaudit.models import GAT, GCN
from bmpaudit.releases import Clean, FullEdges, NoEdges, NoisyLastLayer
from bmpaudit.samplers import Snowball, Uniform


def test_there_are_256_cells_and_every_one_is_published() -> None:
    assert (len(CONFIGURATIONS), len(VARIANTS), len(CELLS)) == (16, 8, 256)
    for as_printed in (True, False):
        table = published_table(as_printed=as_printed)
        keys = table[list(KEY)].to_dict("records")
        assert len(table) == 256
        assert keys == [cell.key for cell in CELLS]
        assert (table["p5"] <= table["p50"]).all()
        assert (table["p50"] <= table["p95"]).all()


def published(as_printed: bool, **key: object) -> tuple[float, ...]:
    table = published_table(as_printed=as_printed)
    for name, value in key.items():
        table = table[table[name] == value]
    (row,) = table[["p5", "p50", "p95"]].itertuples(index=False, name=None)
    return tuple(row)


def test_values_as_the_paper_prints_them() -> None:
    first = {"dataset": "cora", "train_fraction": 0.25, "sampler": "uniform", "model": "gcn", "query": "full"}
    assert published(True, **first, release="clean", rule="weak", definition="bmp-r") == (2.2, 2.3, 2.4)
    last = {"dataset": "citeseer", "train_fraction": 0.5, "sampler": "snowball", "model": "gat", "query": "none"}
    assert published(True, **last, release="noisy", rule="strong", definition="mp") == (11, 12, 14)
    middle = {"dataset": "citeseer", "train_fraction": 0.25, "sampler": "snowball", "model": "gcn", "query": "none"}
    assert published(False, **middle, release="noisy", rule="strong", definition="bmp-r") == (5, 6.4, 9)


def test_only_gat_under_uniform_sampling_in_table_two_is_swapped() -> None:
    key = {"dataset": "cora", "train_fraction": 0.25, "sampler": "uniform", "model": "gat", "release": "clean"}
    key |= {"rule": "weak", "definition": "bmp-r"}
    assert published(True, **key, query="full") == published(False, **key, query="none") == (6.2, 7.4, 9.9)
    assert published(True, **key, query="none") == published(False, **key, query="full") == (1.8, 1.9, 2)
    printed, right = (published_table(as_printed=as_printed) for as_printed in (True, False))
    assert is_swapped(right).sum() == 16
    assert printed[~is_swapped(printed)].equals(right[~is_swapped(right)])


def test_plans_are_the_papers() -> None:
    by_name = {configuration.name: configuration for configuration in CONFIGURATIONS}
    uniform, snowball = (
        by_name["cora-25-uniform-gcn"].plan(3),
        by_name["citeseer-50-snowball-gat"].plan(counting="ours"),
    )
    assert (uniform.sampler, uniform.model, uniform.seed, uniform.shadows) == (Uniform(0.25), GCN(), 3, 1_000)
    assert (snowball.sampler, snowball.model) == (Snowball(0.5, any_order=True, walked_edges=True), GAT())
    for plan in (uniform, snowball):
        assert (plan.training.epochs, plan.releases) == (100, (Clean(), NoisyLastLayer(0.25)))
        assert plan.queries == (FullEdges(), NoEdges())
        assert (plan.attack, list(plan.rules_by_name)) == (Gaussian(), ["weak", "strong"])
        assert plan.epsilon_prior == NormalPrior(0.0, 10.0)
    assert (uniform.prior_source, uniform.unfittable) == ("shadow-frequency", "non-member")
    assert (snowball.prior_source, snowball.unfittable) == ("exact", "leave-out")
