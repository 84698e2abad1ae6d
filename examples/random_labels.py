"""Do models leak where there is nothing to learn? Constant features, random edges, random labels.

    python examples/random_labels.py [--graphs 20] [--models 150] [--nodes 1200]

All that a model can learn there is how frequent each class is in its sample, and every member moves that a little. Each
graph is attacked and tested twice: with the samples that the models were trained on, and with other samples, about
which the models cannot know anything. A count of the classes in each sample, which no audit sees, shows what there is
to find.
"""

import argparse
import tempfile
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu

from bmpaudit.attack import SHADOW_FREQUENCY, Evidence, Student, Weak, attack_performance, challenge, permutation_test
from bmpaudit.attack.permutation import SIGNIFICANT
from bmpaudit.graph.graph import Graph
from bmpaudit.releases import Clean
from bmpaudit.samplers import Uniform, draw_memberships
from bmpaudit.shadow import ShadowPlan, train_shadows

NUM_CLASSES, EDGES_PER_NODE = 4, 2
SAMPLER = Uniform(0.25)
OTHER_SAMPLES = 1_000_000  # added to a graph's seed


@dataclass(frozen=True)
class Found:
    """What comes out for one graph.

    Attributes:
        auc: AUC of the attack.
        p_value: Of the permutation test.
        null_auc: AUC with memberships that the models know nothing about.
        null_p_value: Of the permutation test with them.
        best_auc: AUC of counting the classes of each sample.
    """

    auc: float
    p_value: float
    null_auc: float
    null_p_value: float
    best_auc: float


def examine(seed: int, num_models: int, num_nodes: int) -> Found:
    """Makes a graph, trains models and tests both pairings of models and samples."""
    graph = random_graph(seed, num_nodes)
    with tempfile.TemporaryDirectory() as folder:
        plan = ShadowPlan(SAMPLER, releases=(Clean(),), seed=seed)
        runs = train_shadows(graph, plan, num_models, folder)
        seen = Evidence.of_runs(runs, "clean", ("full", "none"), graph)
        others = draw_memberships(graph, SAMPLER, num_models, OTHER_SAMPLES + seed)
        null_models = Evidence(seen.statistics, others, seen.indices, graph)
        real, null = (_auc_and_p_value(models, seed) for models in (seen, null_models))
        memberships = np.asarray(seen.memberships)
    counts = memberships @ np.eye(NUM_CLASSES)[graph.labels]
    guesses = counts[:, graph.labels] - counts[:, graph.labels].mean(axis=0)
    best = (
        mannwhitneyu(guesses[memberships], guesses[~memberships]).statistic / memberships.sum() / (~memberships).sum()
    )
    return Found(*real, *null, best)


def _auc_and_p_value(models: Evidence, seed: int) -> tuple[float, float]:
    scores = challenge(Student(), models, SHADOW_FREQUENCY, {"weak": Weak()}, with_scores=True).scores
    assert scores is not None  # noqa: S101 - they were asked for
    return attack_performance(scores, Weak()).auc, permutation_test(models, seed=seed).p_value


def random_graph(seed: int, num_nodes: int) -> Graph:
    """Random edges and labels; every node has the same feature."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(num_nodes, size=(EDGES_PER_NODE * num_nodes, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    labels = rng.integers(NUM_CLASSES, size=num_nodes)
    return Graph.from_edges(pairs, np.ones((num_nodes, 1), dtype=np.float32), labels)


def main() -> None:
    """Prints a line for each graph, and what they have in common."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--models", type=int, default=150)
    parser.add_argument("--nodes", type=int, default=1_200)
    options = parser.parse_args()
    found = []
    for seed in range(options.graphs):
        found.append(examine(seed, options.models, options.nodes))
        one = found[-1]
        print(
            f"graph {seed}: AUC {one.auc:.4f}, p = {one.p_value:.3f}; with other samples {one.null_auc:.4f}, "
            f"p = {one.null_p_value:.3f}; by counting classes {one.best_auc:.4f}",
            flush=True,
        )
    for name, kind in (("its own samples", ""), ("other samples", "null_")):
        auc, p_values = (np.array([getattr(one, kind + value) for one in found]) for value in ("auc", "p_value"))
        low, middle, high = np.quantile(p_values, [0.25, 0.5, 0.75])
        print(
            f"{name}: leakage found in {np.count_nonzero(p_values <= SIGNIFICANT)} of {len(found)}; mean AUC "
            f"{auc.mean():.4f}; quartiles of p {low:.2f}, {middle:.2f}, {high:.2f}"
        )
    print(f"by counting classes: mean AUC {np.mean([one.best_auc for one in found]):.4f}")


if __name__ == "__main__":
    main()
