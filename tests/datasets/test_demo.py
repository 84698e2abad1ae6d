import subprocess
import sys

import numpy as np
import scipy.sparse.csgraph

from bmpaudit import datasets
from bmpaudit.datasets.catalog import make_demo

DEMO_HASH = "4a20e50a3bfc8a137f3f9f223508ef3ab9bd21a57c0f3795fcfd273e6f8ba690"


def test_content_is_pinned() -> None:
    assert make_demo().content_hash == DEMO_HASH


def test_every_process_makes_the_same_graph() -> None:
    program = "import bmpaudit; print(bmpaudit.datasets.load('demo').content_hash)"
    hashes = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    }
    assert hashes == {DEMO_HASH}


def test_global_random_state_is_neither_used_nor_changed() -> None:
    np.random.seed(1)  # noqa: NPY002 - the state that must not matter
    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    make_demo()
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002


def test_there_is_nothing_to_clean() -> None:
    cleaning = make_demo().cleaning
    assert (cleaning.num_self_loops, cleaning.num_duplicates) == (0, 0)


def test_it_looks_like_a_citation_graph() -> None:
    graph = datasets.load("demo")
    num_components, component = scipy.sparse.csgraph.connected_components(graph.adjacency)
    assert np.bincount(component).max() >= 0.95 * graph.num_nodes
    assert num_components < 20
    # Heavy tail: somebody is cited far more often than the average paper.
    assert graph.degrees.max() > 5 * graph.degrees.mean()
    # Homophily: far more edges within classes than the class sizes alone would give.
    source, target = graph.edges.T
    share = np.bincount(graph.labels) / graph.num_nodes
    assert np.mean(graph.labels[source] == graph.labels[target]) > 2 * np.sum(share**2)
    assert share.min() > 0.05


def test_words_are_sparse_and_tell_something_about_the_class() -> None:
    graph = datasets.load("demo")
    assert not isinstance(graph.features, np.ndarray)
    assert set(graph.features.data.tolist()) == {1.0}
    assert graph.degrees.min() >= 1
    # The nearest class centre, fitted on even and tried on odd nodes, beats the largest class by far.
    words, labels = graph.dense_features, graph.labels
    centers = np.stack([words[::2][labels[::2] == label].mean(axis=0) for label in range(graph.num_classes)])
    distances = ((words[1::2, None, :] - centers) ** 2).sum(axis=2)
    accuracy = np.mean(distances.argmin(axis=1) == labels[1::2])
    assert accuracy > 2 * np.max(np.bincount(labels)) / graph.num_nodes
