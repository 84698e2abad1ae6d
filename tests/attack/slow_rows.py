"""What the row kernel computes, one number after the other; and models made as its model says."""

from typing import Any

import numpy as np

from bmpaudit.attack import Evidence, Rows
from bmpaudit.graph.graph import Graph


class SlowSweeps:
    """Sweeps over one model's nodes: p, the parts and the variances of rows after each of them."""

    def __init__(
        self, x: Any, rows: Any, state: Any, noise: Any, mean: Any, variance: Any, log_odds: Any, with_spread: bool
    ) -> None:
        self.x, self.rows, self.state, self.noise, self.mean = x, rows, state, noise, mean
        self.variance, self.log_odds, self.with_spread = variance, log_odds, with_spread
        num_nodes, num_classes = mean.shape
        self.prob = np.array(
            [{0: 0.0, 1: 1.0}.get(s, 1 / (1 + np.exp(-o))) for s, o in zip(state, log_odds, strict=True)]
        )
        self.part = self.prob[:, None] * mean
        square = (mean**2).sum(axis=1) / num_classes
        self.spread = self.prob * variance + self.prob * (1 - self.prob) * square
        self.small_before = np.zeros(num_nodes, dtype=bool)
        self.settled = np.zeros(num_nodes, dtype=bool)

    def estimate(self, i: int) -> tuple[float, Any]:
        """κ and b̂ of a node, its own part taken out."""
        others = np.arange(len(self.x)) != i
        left = self.rows - self.x[others].T @ self.part[others]
        v = self.noise + (self.x[others] ** 2).T @ (
            self.spread[others] if self.with_spread else 0 * self.spread[others]
        )
        kappa = (self.x[i] ** 2 / v).sum()
        return kappa, (self.x[i] / v) @ left / kappa if kappa > 0 else 0 * self.mean[i]

    def sweep(self, temperature: float) -> None:
        """All nodes in their order."""
        num_classes = self.mean.shape[1]
        for i in range(len(self.x)):
            kappa, b = self.estimate(i)
            if self.state[i] == 0 or kappa == 0 or self.settled[i]:
                continue
            tau2 = self.variance[i]
            # The logarithm of the ratio of two normal densities of b̂, with variances τ² + 1/κ about the mean and 1/κ.
            ratio = -num_classes / 2 * np.log((tau2 + 1 / kappa) * kappa)
            ratio += -((b - self.mean[i]) ** 2).sum() / (2 * (tau2 + 1 / kappa)) + kappa * (b**2).sum() / 2
            self.prob[i] = 1.0 if self.state[i] == 1 else 1 / (1 + np.exp(-(self.log_odds[i] + temperature * ratio)))
            as_member = (self.mean[i] / tau2 + kappa * b) / (1 / tau2 + kappa)
            self.part[i] = self.prob[i] * as_member
            doubt = self.prob[i] * (1 - self.prob[i])
            self.spread[i] = self.prob[i] / (1 / tau2 + kappa) + doubt * (as_member**2).sum() / num_classes
        is_small = self.prob < 1e-3
        self.settled |= is_small & self.small_before
        self.small_before = is_small

    def statistic(self) -> Any:
        """b̂·mean/|mean| of all nodes."""
        lengths = np.linalg.norm(self.mean, axis=1)
        return np.array([self.estimate(i)[1] @ self.mean[i] / lengths[i] for i in range(len(self.x))])


def simulated_models(
    num_models: int, num_nodes: int = 60, num_features: int = 120, *, words: int = 6, leak: float = 1.0, seed: int = 0
) -> Evidence:
    """Models whose rows are sums over members, on a ring; the statistics tell little. The last node has no features."""
    rng = np.random.default_rng(seed)
    x = np.zeros((num_nodes, num_features), dtype=np.float32)
    for node in range(num_nodes - 1):
        x[node, rng.choice(num_features, words, replace=False)] = 1
    labels = np.arange(num_nodes) % 3
    graph = Graph.from_edges([[i, (i + 1) % num_nodes] for i in range(num_nodes)], x, labels)
    mean = rng.uniform(0.6, 1.4, num_nodes)[:, None] * (np.eye(3)[labels] - 1 / 3)
    members = rng.random((num_models, num_nodes)) < 0.3
    b = mean + 0.1 * rng.normal(size=(num_models, num_nodes, 3))
    rows = leak * np.einsum("nf,jn,jnc->jfc", x, members, b) + 0.05 * rng.normal(size=(num_models, num_features, 3))
    is_touched = members @ x > 0
    norms = np.where(is_touched, 1.0, 0.001) * rng.uniform(1, 1.5, is_touched.shape)
    statistics = {
        query: (0.3 * members + rng.normal(size=members.shape)).astype(np.float32) for query in ("full", "none")
    }
    rows_of = Rows(rows.astype(np.float32), norms.astype(np.float32))
    return Evidence(statistics, members, np.arange(num_models), graph, rows=rows_of)
