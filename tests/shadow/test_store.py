"""What the store of shadow models takes and gives back, and whom it refuses."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored_models
import xarray
import zarr
from own_parts import Rounded, Thirds, first_class
from stored_models import NUM_MODELS, PLAN, arrays

from bmpaudit import registry
from bmpaudit.graph.graph import Graph
from bmpaudit.models import GAT, GCN, Training
from bmpaudit.registry import UntrustedPart
from bmpaudit.releases import Clean, FullEdges, NoisyLastLayer
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan, ShadowRuns, ShadowStore, train_shadows
from bmpaudit.shadow.batch import ShadowBatch
from bmpaudit.util.errors import DataError, InputError, UntrustedCodeError

graph, whole, copy = stored_models.graph, stored_models.whole, stored_models.copy


def test_models_are_where_they_belong(graph: Graph, whole: Path) -> None:
    runs = train_shadows(graph, PLAN, NUM_MODELS, whole)
    assert runs.num_models == NUM_MODELS
    assert np.array_equal(runs.memberships, draw_memberships(graph, PLAN.sampler, NUM_MODELS, PLAN.seed))
    assert list(runs.statistics) == ["full_clean", "full_noisy", "none_clean", "none_noisy"]
    assert all(np.isfinite(margins).all() for margins in runs.statistics.values())
    assert runs.train_accuracy.mean() > runs.held_out_accuracy.mean() > 0.5


def test_raising_the_number_keeps_what_is_there(graph: Graph, whole: Path, tmp_path: Path) -> None:
    first = train_shadows(graph, PLAN, 45, tmp_path)
    counts: list[int] = []
    runs = train_shadows(graph, PLAN, NUM_MODELS, tmp_path, progress=counts.append)
    assert counts[0] == 45
    assert arrays(tmp_path) == arrays(whole)
    assert runs.statistics["full_clean"][:45].tobytes() == first.statistics["full_clean"].tobytes()
    assert train_shadows(graph, PLAN, 10, tmp_path).num_models == 10, "fewer may be asked for"
    assert arrays(tmp_path) == arrays(whole)


def test_a_folder_has_room_for_so_many_models(graph: Graph, copy: Path) -> None:
    with pytest.raises(InputError, match=r"at most 1,048,576 shadow models, got 2,147,483,647"):
        ShadowStore(copy, graph, PLAN).extend(2**31 - 1)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (replace(PLAN, seed=7), "holds shadow models with seed 6; this plan has seed 7"),
        (replace(PLAN, model=GAT()), r"holds shadow models with model gcn \(hidden=16, .*; this plan has model gat"),
        (replace(PLAN, model=GCN(8)), "holds shadow models with model gcn, hidden=16; this plan has hidden=8"),
        (
            replace(PLAN, sampler=Uniform(0.25)),
            r"with sampler snowball \(train_fraction=0.25, .*\); this plan has sampler uniform \(train_fraction=0.25\)",
        ),
        (
            replace(PLAN, releases=(Clean(), NoisyLastLayer(0.5))),
            r"with releases clean, noisy \(noise_std=0.25\); this plan has releases clean, noisy \(noise_std=0.5\)",
        ),
        (replace(PLAN, training=Training(epochs=7)), "with training epochs=40; this plan has epochs=7"),
        (replace(PLAN, engine="torch"), "with engine native; this plan has engine torch"),
    ],
)
def test_a_folder_of_another_plan_is_refused(plan: ShadowPlan, message: str, graph: Graph, whole: Path) -> None:
    with pytest.raises(InputError, match=message):
        train_shadows(graph, plan, NUM_MODELS, whole)


def test_a_folder_of_another_graph_is_refused_with_the_sizes(graph: Graph, whole: Path) -> None:
    other = Graph.from_edges(graph.edges[1:], graph.features, graph.labels)
    message = f"of a graph with {graph.num_edges:,} edges; this one has {other.num_edges:,} edges"
    with pytest.raises(InputError, match=message):
        train_shadows(other, PLAN, NUM_MODELS, whole)
    relabelled = Graph.from_edges(graph.edges, graph.features, np.roll(graph.labels, 1))
    with pytest.raises(InputError, match="of a graph of the same size with other edges, features or labels"):
        train_shadows(relabelled, PLAN, NUM_MODELS, whole)


def test_a_folder_that_keeps_logits_keeps_all(graph: Graph, tmp_path: Path) -> None:
    train_shadows(graph, PLAN, 3, tmp_path, keep_logits=True)
    train_shadows(graph, PLAN, 40, tmp_path)
    logits = zarr.open_group(tmp_path / "shadows", mode="r")["logits_full_clean"]
    assert np.isfinite(np.asarray(logits[:])).all()  # type: ignore[index]


def test_what_cannot_be_sampled_leaves_no_folder(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="less than one node"):
        train_shadows(graph, ShadowPlan(Uniform(0.0001)), 5, tmp_path / "audit")
    assert not (tmp_path / "audit").exists()


def test_another_sampler_of_the_same_name_is_refused_and_loses_nothing(graph: Graph, tmp_path: Path) -> None:
    def draw(size: int) -> Callable[[Graph, np.random.Generator], np.ndarray]:
        return lambda graph, rng: rng.choice(graph.num_nodes, size, replace=False)

    training = Training(epochs=2)
    train_shadows(graph, ShadowPlan(draw(200), GCN(), training), 5, tmp_path)
    before = arrays(tmp_path)
    with pytest.raises(InputError, match="holds shadow models of other samples"):
        train_shadows(graph, ShadowPlan(draw(300), GCN(), training), 5, tmp_path)
    assert arrays(tmp_path) == before


def test_slow_models_are_written_a_few_at_a_time(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = ShadowStore.write

    def note_and_write(store: ShadowStore, batch: ShadowBatch) -> None:
        written.append(len(batch.indices))
        write(store, batch)

    monkeypatch.setattr("bmpaudit.shadow.train.SECONDS_BETWEEN_WRITES", 1e-9)
    monkeypatch.setattr(ShadowStore, "write", note_and_write)
    train_shadows(graph, PLAN, 20, tmp_path, num_threads=2)
    assert written == [4, 2, 2, 2, 2, 2, 2, 2, 2]


def test_a_folder_that_cannot_be_made_is_one_clear_error(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        train_shadows(graph, PLAN, 3, tmp_path / "file" / "folder")


def test_opens_in_xarray(whole: Path) -> None:
    with xarray.open_zarr(whole / "shadows", consolidated=False) as data:
        assert data["statistic_full_clean"].dims == ("model", "node")
        assert data["statistic_full_clean"].shape == (NUM_MODELS, 1_000)
        members = data["memberships"].values
        assert float(data["statistic_none_clean"].values[members].mean()) > float(
            data["statistic_none_clean"].values[~members].mean()
        )


def test_arrays_are_compressed_and_checksummed_and_the_plan_is_readable(whole: Path) -> None:
    about = json.loads((whole / "shadows" / "statistic_full_clean" / "zarr.json").read_text())
    assert [codec["name"] for codec in about["codecs"]] == ["bytes", "zstd", "crc32c"]
    assert about["zarr_format"] == 3
    assert about["fill_value"] == "NaN"
    assert json.loads((whole / "shadows.json").read_text())["sampler"]["fan_out"] == 5


def test_failed_models_are_kept_apart_and_not_trained_again(graph: Graph, tmp_path: Path) -> None:
    def sometimes_nobody(graph: Graph, rng: np.random.Generator) -> Any:
        return np.arange(graph.num_nodes // 4) if rng.random() < 0.5 else []

    plan = ShadowPlan(sometimes_nobody, GCN(), Training(epochs=2))
    empty = ~draw_memberships(graph, sometimes_nobody, 20, plan.seed).any(axis=1)
    assert 0 < empty.sum() < 20
    counts: list[int] = []
    for _ in range(2):
        runs = train_shadows(graph, plan, 20, tmp_path, progress=counts.append)
        assert runs.failed == tuple(np.flatnonzero(empty).tolist())
        assert runs.indices.tolist() == np.flatnonzero(~empty).tolist()
        assert f"{len(runs.failed)} failed" in str(runs)
    assert counts[-1] == 20


def test_logits_are_kept_if_asked_for(graph: Graph, tmp_path: Path) -> None:
    train_shadows(graph, PLAN, 5, tmp_path / "with", keep_logits=True)
    group = zarr.open_group(tmp_path / "with" / "shadows", mode="r")
    assert group["logits_none_noisy"].shape == (5, 1_000, 5)  # type: ignore[union-attr]
    train_shadows(graph, PLAN, 5, tmp_path / "without")
    with pytest.raises(InputError, match="holds shadow models without logits_full_clean"):
        train_shadows(graph, PLAN, 5, tmp_path / "without", keep_logits=True)


@pytest.mark.parametrize("num_models", [0, -3, 1.5])
def test_number_of_models_must_be_positive(num_models: int, graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=f"num_models must be a whole number of at least 1, got num_models={num_models}"
    ):
        train_shadows(graph, PLAN, num_models, tmp_path)


def test_more_threads_than_cores_is_allowed_and_none_is_not(graph: Graph, whole: Path, tmp_path: Path) -> None:
    runs = train_shadows(graph, PLAN, 20, tmp_path, num_threads=10 * (os.cpu_count() or 1))
    first: ShadowRuns = train_shadows(graph, PLAN, 20, whole)
    assert runs.statistics["full_noisy"].tobytes() == first.statistics["full_noisy"].tobytes()
    with pytest.raises(InputError, match="num_threads must be a whole number of at least 1, got num_threads=0"):
        train_shadows(graph, PLAN, 20, tmp_path, num_threads=0)


def everything_in(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def test_reading_changes_nothing_and_takes_no_lock(graph: Graph, copy: Path) -> None:
    (copy / ".lock").unlink(missing_ok=True)
    (copy / "shadows" / "done" / "c" / "0.abc.partial").write_bytes(b"half")
    before = everything_in(copy)
    assert ShadowStore(copy, graph, PLAN, read_only=True).read().num_models == NUM_MODELS
    assert everything_in(copy) == before


@pytest.mark.parametrize("make", [lambda _: None, Path.mkdir])
def test_reading_a_folder_without_models_says_so_and_makes_nothing(
    make: Callable[[Path], None], graph: Graph, tmp_path: Path
) -> None:
    folder = tmp_path / "audit"
    make(folder)
    with pytest.raises(DataError, match="audit has no shadow models"):
        ShadowStore(folder, graph, PLAN, read_only=True)
    assert list(tmp_path.rglob("*")) == ([folder] if folder.exists() else [])


def test_reading_needs_no_code_of_the_plan(graph: Graph, tmp_path: Path) -> None:
    """A folder made with parts of one's own is read with their names alone."""
    plan = ShadowPlan(
        Thirds(offset=1), GCN(), Training(epochs=2), (Clean(), Rounded(digits=1)), (FullEdges(),), statistic=first_class
    )
    trained = train_shadows(graph, plan, 3, tmp_path)
    assert list(trained.statistics) == ["full_clean", "full_rounded-1"]

    def by_name(kind: str, part: Any) -> Any:
        return registry.build(kind, registry.table_of(kind, part), trust_code=False)

    named = replace(
        plan,
        sampler=by_name("sampler", plan.sampler),
        releases=tuple(by_name("release", release) for release in plan.releases),
        statistic=by_name("statistic", plan.statistic),
    )
    assert isinstance(named.sampler, UntrustedPart)
    runs = ShadowStore(tmp_path, graph, named, read_only=True).read()
    for name, statistics in trained.statistics.items():
        assert runs.statistics[name].tobytes() == statistics.tobytes()
    with pytest.raises(UntrustedCodeError, match="the sampler 'own_parts:Thirds' is code that a file names"):
        train_shadows(graph, named, 4, tmp_path)
