"""The experiments and the published tables."""

from bmpaudit.paper import CELLS, CONFIGURATIONS, VARIANTS, published_table
from bmpaudit.paper.experiments import KEY
from bmpaudit.paper.published import is_exchanged
from bmpaudit.samplers import Snowball, Uniform
from bmpaudit.shadow import GAT, GCN


def test_there_are_256_cells_and_every_one_is_published() -> None:
    assert (len(CONFIGURATIONS), len(VARIANTS), len(CELLS)) == (16, 8, 256)
    for as_printed in (True, False):
        table = published_table(as_printed=as_printed)
        keys = set(table[list(KEY)].itertuples(index=False, name=None))
        assert len(table) == 256
        assert keys == {cell.key for cell in CELLS}
        assert (table["p5"] <= table["p50"]).all()
        assert (table["p50"] <= table["p95"]).all()


def published(as_printed: bool, **key: object) -> tuple[float, ...]:
    table = published_table(as_printed=as_printed)
    for name, value in key.items():
        table = table[table[name] == value]
    (row,) = table[["p5", "p50", "p95"]].itertuples(index=False, name=None)
    return tuple(row)


def test_values_as_the_paper_prints_them() -> None:
    first = {"dataset": "cora", "train_fraction": 0.25, "sampling": "random", "model": "gcn", "edges": "full"}
    assert published(True, **first, output="clean", decision="weak", measure="bmp-r") == (2.2, 2.3, 2.4)
    last = {"dataset": "citeseer", "train_fraction": 0.5, "sampling": "snowball", "model": "gat", "edges": "none"}
    assert published(True, **last, output="noisy", decision="strong", measure="mp") == (11, 12, 14)
    middle = {"dataset": "citeseer", "train_fraction": 0.25, "sampling": "snowball", "model": "gcn", "edges": "none"}
    assert published(False, **middle, output="noisy", decision="strong", measure="bmp-r") == (5, 6.4, 9)


def test_only_gat_under_random_sampling_in_table_two_is_exchanged() -> None:
    key = {"dataset": "cora", "train_fraction": 0.25, "sampling": "random", "model": "gat", "output": "clean"}
    key |= {"decision": "weak", "measure": "bmp-r"}
    assert published(True, **key, edges="full") == published(False, **key, edges="none") == (6.2, 7.4, 9.9)
    assert published(True, **key, edges="none") == published(False, **key, edges="full") == (1.8, 1.9, 2)
    printed, right = (published_table(as_printed=as_printed) for as_printed in (True, False))
    assert is_exchanged(right).sum() == 16
    assert printed[~is_exchanged(printed)].equals(right[~is_exchanged(right)])


def test_plans_are_the_papers() -> None:
    by_name = {of.name: of for of in CONFIGURATIONS}
    random, snowball = by_name["cora-25-random-gcn"].plan(3), by_name["citeseer-50-snowball-gat"].plan(0)
    assert (random.sampler, random.model, random.seed) == (Uniform(0.25), GCN(), 3)
    assert (snowball.sampler, snowball.model) == (Snowball(0.5, fan_out=5, restart=False), GAT())
    assert (random.training.epochs, random.noise_std, len(random.views)) == (100, 0.25, 4)
