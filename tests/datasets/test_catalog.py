import dataclasses
from typing import Any

import pytest

from bmpaudit import datasets
from bmpaudit.datasets import NAMED_DATASETS
from bmpaudit.util.errors import DataError


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("cora", (2_708, 5_278, 1_433, 7)),
        ("citeseer", (3_327, 4_552, 3_703, 6)),
        ("pubmed", (19_717, 44_324, 500, 3)),
    ],
)
def test_published_sizes(name: str, sizes: tuple[int, ...]) -> None:
    dataset = NAMED_DATASETS[name]
    assert (dataset.num_nodes, dataset.num_edges, dataset.num_features, dataset.num_classes) == sizes


def test_every_file_has_a_sha256_of_its_own() -> None:
    hashes = [
        sha256 for dataset in NAMED_DATASETS.values() for form in dataset.forms for sha256 in form.sha256.values()
    ]
    assert len(set(hashes)) == len(hashes) == 3 * 8 + 2
    assert all(len(sha256) == 64 and int(sha256, 16) for sha256 in hashes)


@pytest.mark.parametrize("what", ["num_nodes", "num_edges", "num_features", "num_classes"])
def test_a_graph_of_another_size_is_refused(what: str) -> None:
    demo = NAMED_DATASETS["demo"]
    demo.check(datasets.load("demo"))
    changed: dict[str, Any] = {what: 1_234}
    other = dataclasses.replace(demo, **changed)
    with pytest.raises(DataError, match=rf"^demo: {what} must be 1,234, got [\d,]+$"):
        other.check(datasets.load("demo"))
