"""The built-in data set: a synthetic citation graph."""

import numpy as np
import numpy.typing as npt
import scipy.sparse

from bmpaudit.graph import Graph
from bmpaudit.streams import Purpose, stream

NUM_NODES = 1_000
NUM_CLASSES = 5
NUM_WORDS = 600
WORDS_PER_NODE = 18
NUM_CITATIONS = 2_000
SHARE_WITHIN_CLASS = 0.8
SHARE_ON_TOPIC = 0.35


def make_demo() -> Graph:
    """A small graph that resembles Cora: papers that mostly cite papers of their own field.

    The model is a degree-corrected block model. Every paper makes one citation; the papers that make further citations,
    and all papers cited, are drawn in proportion to a heavy-tailed attractiveness, within the citing paper's class with
    probability 0.8. Words follow Zipf's law, and about a third of a paper's words come from the part of the vocabulary
    that belongs to its class. Only uniform doubles are drawn, from one fixed stream, so that the graph is the same with
    every version of NumPy.
    """
    random = stream(0, 0, Purpose.DEMO_GRAPH).random
    labels = (random(NUM_NODES) ** 1.3 * NUM_CLASSES).astype(np.int64)  # classes of unequal size
    attraction = (1.0 - random(NUM_NODES)) ** -0.45

    anyone = np.cumsum(attraction)
    first = np.concatenate([np.arange(NUM_NODES), _draw(anyone, random(NUM_CITATIONS - NUM_NODES))])
    second = _draw(anyone, random(NUM_CITATIONS))
    is_within = random(NUM_CITATIONS) < SHARE_WITHIN_CLASS
    for label in range(NUM_CLASSES):
        colleagues = np.flatnonzero(labels == label)
        chosen = np.flatnonzero(is_within & (labels[first] == label))
        second[chosen] = colleagues[_draw(np.cumsum(attraction[colleagues]), random(len(chosen)))]
    # Sorted pairs, each once, and nobody cites themselves: the generator leaves nothing to clean.
    pairs = np.unique(np.sort(np.column_stack([first, second]), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]

    shape = (NUM_NODES, WORDS_PER_NODE)
    zipf = np.cumsum(1.0 / np.arange(1, NUM_WORDS + 1))
    words = _draw(zipf, random(shape))
    topic_size = NUM_WORDS // NUM_CLASSES
    topic = labels[:, None] + NUM_CLASSES * _draw(zipf[:topic_size], random(shape))  # every fifth word
    words = np.where(random(shape) < SHARE_ON_TOPIC, topic, words)
    counts = scipy.sparse.coo_array(
        (np.ones(words.size), (np.repeat(np.arange(NUM_NODES), WORDS_PER_NODE), words.ravel())),
        shape=(NUM_NODES, NUM_WORDS),
    )
    return Graph.from_edges(pairs, (scipy.sparse.csr_array(counts) > 0), labels)


def _draw(cumulative: npt.NDArray[np.float64], uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Indices drawn with probabilities in proportion to the increments of `cumulative`."""
    return np.searchsorted(cumulative, uniform * cumulative[-1], side="right").astype(np.int64)
