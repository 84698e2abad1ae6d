"""PrivateSGC: each bound of its proof against brute force, its noise, and the guarantee end to end."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
import torch.nn.functional as F  # noqa: N812
from helpers import random_graph

from bmpaudit.graph.graph import Graph
from bmpaudit.models.private import PrivateSGC, bound_degrees
from bmpaudit.models.torch_modules import PrivateModule, gamma_noise, optimum
from bmpaudit.plan import AuditPlan, format_plan, read_plan
from bmpaudit.samplers import Bernoulli, Snowball, Uniform
from bmpaudit.shadow import ShadowPlan
from bmpaudit.util.errors import InputError

TINY = PrivateSGC(epsilon=0.7, hops=2, max_degree=3, dimensions=64, regularization=2.0, max_norm=3.0)


def averaged(model: PrivateSGC, graph: Graph, nodes: np.ndarray) -> torch.Tensor:
    """H of a sample."""
    sample = graph.to_pyg().subgraph(torch.from_numpy(nodes))
    module: PrivateModule = model.torch_module(graph.num_features, graph.num_classes)
    return module.features(sample.x, sample.edge_index)


def exact_weights(model: PrivateSGC, graph: Graph, nodes: np.ndarray) -> torch.Tensor:
    """Θ* of a sample, to many more digits than training needs."""
    labels = torch.from_numpy(graph.labels[nodes].astype(np.int64))
    return optimum(averaged(model, graph, nodes), labels, graph.num_classes, model, 1e-11)


def bounded_random_graph(model: PrivateSGC, seed: int, num_nodes: int = 24) -> Graph:
    return model.training_graph(random_graph(num_nodes, kind="dense", seed=seed))


def star(num_leaves: int) -> Graph:
    """A node and its neighbours, whose features are the opposite of its own and whose label is another."""
    features = np.array([[1.0]] + [[-1.0]] * num_leaves)
    return Graph.from_edges([(0, leaf) for leaf in range(1, num_leaves + 1)], features, [0] + [1] * num_leaves)


def tree(degree: int, depth: int) -> Graph:
    """A tree whose inner nodes all have the same degree; node 0 is its root."""
    edges, level, count = [], [0], 1
    for _ in range(depth):
        below = []
        for parent in level:
            for _ in range(degree - (parent > 0)):
                edges.append((parent, count))
                below.append(count)
                count += 1
        level = below
    features = np.random.default_rng(0).normal(size=(count, 4))
    return Graph.from_edges(edges, features, np.arange(count) % 2)


class TestDegreeBound:
    @pytest.mark.parametrize("max_degree", [1, 2, 4])
    def test_keeps_a_maximal_set_of_edges_within_the_bound(self, max_degree: int) -> None:
        graph = random_graph(200)
        bounded = bound_degrees(graph, max_degree)
        assert bounded.degrees.max() <= max_degree
        kept, edges = {tuple(edge) for edge in bounded.edges}, {tuple(edge) for edge in graph.edges}
        assert kept < edges
        assert all(max(bounded.degrees[u], bounded.degrees[v]) == max_degree for u, v in edges - kept)
        assert np.array_equal(bounded.labels, graph.labels)
        assert np.array_equal(bounded.dense_features, graph.dense_features)

    def test_leaves_a_graph_within_the_bound_alone(self) -> None:
        graph = random_graph(50)
        assert bound_degrees(graph, int(graph.degrees.max())) is graph

    def test_training_refuses_a_graph_beyond_it(self) -> None:
        data = star(5).to_pyg()
        model = PrivateSGC(max_degree=4)
        with pytest.raises(InputError, match=r"must have at most max_degree=4 neighbours, got 5"):
            model.train(model.torch_module(1, 2), data, 0)


class TestFeatures:
    @pytest.mark.parametrize("hops", [0, 1, 3])
    def test_are_a_power_of_the_lazy_walk(self, hops: int) -> None:
        model = replace(TINY, hops=hops)
        graph = bounded_random_graph(model, 3)
        adjacency = graph.adjacency.toarray().astype(float)
        walk = np.eye(graph.num_nodes) - (np.diag(adjacency.sum(axis=1)) - adjacency) / (1 + model.max_degree)
        rows = graph.dense_features.astype(float)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        expected = np.linalg.matrix_power(walk, hops) @ rows
        np.testing.assert_allclose(averaged(model, graph, np.arange(graph.num_nodes)).numpy(), expected, atol=1e-12)

    def test_rows_are_no_longer_than_1_also_projected_and_on_a_graph_with_larger_degrees(self) -> None:
        graph = random_graph(100, kind="dense")
        rows = averaged(replace(TINY, dimensions=5), graph, np.arange(100))
        assert rows.shape == (100, 5)
        assert float(rows.norm(dim=1).max()) <= 1 + 1e-12


class TestSensitivityOfFeatures:
    @pytest.mark.parametrize(("hops", "max_degree"), [(1, 1), (1, 3), (2, 2), (3, 3), (2, 6)])
    def test_no_node_changes_more_rows_or_moves_them_further(self, hops: int, max_degree: int) -> None:
        model = replace(TINY, hops=hops, max_degree=max_degree)
        for seed in range(4):
            graph = bounded_random_graph(model, seed)
            rng = np.random.default_rng(seed)
            for _ in range(3):
                nodes = np.flatnonzero(rng.random(graph.num_nodes) < 0.8)
                with_all = averaged(model, graph, nodes)
                for node in nodes:
                    moved = (with_all[nodes != node] - averaged(model, graph, nodes[nodes != node])).norm(dim=1)
                    assert float(moved.sum()) <= model.rows_movement + 1e-12
                    assert int((moved > 1e-12).sum()) <= model.rows_reached

    @pytest.mark.parametrize("degree", [1, 3, 20])
    def test_movement_is_attained_by_a_star(self, degree: int) -> None:
        model = replace(TINY, hops=1, max_degree=degree)
        graph = star(degree)
        moved = averaged(model, graph, np.arange(degree + 1))[1:] - averaged(model, graph, np.arange(1, degree + 1))
        assert float(moved.norm(dim=1).sum()) == pytest.approx(model.rows_movement, rel=1e-12)

    @pytest.mark.parametrize(("degree", "hops"), [(3, 1), (3, 2), (4, 2), (2, 3)])
    def test_number_of_rows_is_attained_by_a_tree(self, degree: int, hops: int) -> None:
        model = replace(TINY, hops=hops, max_degree=degree)
        graph = tree(degree, hops + 1)
        others = np.arange(1, graph.num_nodes)
        moved = averaged(model, graph, np.arange(graph.num_nodes))[1:] - averaged(model, graph, others)
        assert int((moved.norm(dim=1) > 1e-12).sum()) == model.rows_reached


class TestSensitivityOfWeights:
    @pytest.mark.parametrize(
        "model",
        [
            TINY,
            replace(TINY, hops=1, max_degree=2, regularization=0.3),
            replace(TINY, hops=3, regularization=20.0, max_norm=0.3),
            replace(TINY, hops=0, regularization=0.1),
            replace(TINY, max_degree=1, max_norm=50.0, regularization=0.05),  # the bound by rows is the smaller one
        ],
    )
    def test_no_node_moves_the_optimum_further(self, model: PrivateSGC) -> None:
        largest = 0.0
        for seed in range(3):
            graph = bounded_random_graph(model, seed, num_nodes=16)
            nodes = np.flatnonzero(np.random.default_rng(seed).random(16) < 0.8)
            with_all = exact_weights(model, graph, nodes)
            for node in nodes:
                moved = with_all - exact_weights(model, graph, nodes[nodes != node])
                largest = max(largest, float(moved.norm()))
        assert 0 < largest <= model.gradient_sensitivity / model.regularization

    def test_comes_within_a_factor_of_about_2_of_the_bound(self) -> None:
        """A star of opposite features and another label, with a small optimum: p is uniform, ‖p - e_y‖ = 1/√2."""
        model = PrivateSGC(hops=1, max_degree=50, regularization=1e4, max_norm=0.1)
        graph = star(50)
        moved = exact_weights(model, graph, np.arange(51)) - exact_weights(model, graph, np.arange(1, 51))
        bound = model.gradient_sensitivity / model.regularization
        assert 0.45 * bound < float(moved.norm()) <= bound

    def test_counts_rows_or_movement_whichever_is_less(self) -> None:
        root = math.sqrt(2)
        assert replace(TINY, hops=0).gradient_sensitivity == pytest.approx(root)
        many = PrivateSGC(hops=2, max_degree=5, max_norm=2.0)
        assert many.rows_reached == 25
        assert many.gradient_sensitivity == pytest.approx(root + (root + 1) * 20 / 6)
        assert PrivateSGC(hops=1, max_degree=1, max_norm=1e3).gradient_sensitivity == pytest.approx(root + 2 * root)
        assert math.isfinite(PrivateSGC(hops=64, max_degree=10**9).sensitivity)


class TestOptimum:
    @pytest.mark.parametrize(("regularization", "max_norm"), [(0.5, 50.0), (0.5, 0.4), (30.0, 1.0)])
    def test_satisfies_the_conditions_of_optimality(self, regularization: float, max_norm: float) -> None:
        model = replace(TINY, regularization=regularization, max_norm=max_norm)
        graph = bounded_random_graph(model, 1)
        features = averaged(model, graph, np.arange(graph.num_nodes))
        labels = torch.from_numpy(graph.labels.astype(np.int64))
        weights = optimum(features, labels, graph.num_classes, model, model.gradient_tolerance).requires_grad_()
        loss = F.cross_entropy(features @ weights.T, labels, reduction="sum")
        (loss + regularization / 2 * (weights**2).sum()).backward()
        gradient, weights = weights.grad, weights.detach()
        assert gradient is not None
        if float(weights.norm()) < max_norm - 1e-9:
            assert float(gradient.norm()) < 1e-5
        else:  # the gradient points inwards, along the radius
            assert float(weights.norm()) == pytest.approx(max_norm)
            assert float((gradient * weights).sum()) < 0
            assert float((gradient + gradient.norm() / max_norm * weights).norm()) < 1e-4

    def test_training_ends_as_near_the_optimum_as_the_noise_accounts_for(self) -> None:
        graph = bounded_random_graph(TINY, 2)
        nodes = np.arange(graph.num_nodes)
        labels = torch.from_numpy(graph.labels.astype(np.int64))
        trained = optimum(averaged(TINY, graph, nodes), labels, graph.num_classes, TINY, TINY.gradient_tolerance)
        distance = float((trained - exact_weights(TINY, graph, nodes)).norm())
        assert distance <= TINY.gradient_tolerance / TINY.regularization
        assert TINY.sensitivity * TINY.regularization == TINY.gradient_sensitivity + 2 * TINY.gradient_tolerance


class TestNoise:
    def test_norm_is_gamma_and_direction_uniform(self) -> None:
        rng = np.random.default_rng(0)
        size, scale, count = 5, 0.3, 4_000
        noise = np.array([gamma_noise(size, scale, rng) for _ in range(count)])
        norms = np.linalg.norm(noise, axis=1)
        assert scipy.stats.kstest(norms, scipy.stats.gamma(size, scale=scale).cdf).pvalue > 1e-3
        directions = noise / norms[:, None]
        share = scipy.stats.beta((size - 1) / 2, (size - 1) / 2, loc=-1, scale=2)  # of a coordinate on the sphere
        axes = [np.eye(size)[0], np.ones(size) / math.sqrt(size), np.array([3.0, 0, -4.0, 0, 0]) / 5]
        for axis in axes:
            assert scipy.stats.kstest(directions @ axis, share.cdf).pvalue > 1e-3
        assert abs(scipy.stats.spearmanr(norms, directions[:, 0]).statistic) < 4 / math.sqrt(count)

    def test_is_what_training_adds(self) -> None:
        graph = bounded_random_graph(TINY, 0)
        module = TINY.torch_module(graph.num_features, graph.num_classes)
        TINY.train(module, graph.to_pyg(), 7)
        labels = torch.from_numpy(graph.labels.astype(np.int64))
        trained = optimum(
            averaged(TINY, graph, np.arange(graph.num_nodes)), labels, graph.num_classes, TINY, TINY.gradient_tolerance
        )
        expected = trained.numpy().ravel() + gamma_noise(trained.numel(), TINY.noise_scale, np.random.default_rng(7))
        np.testing.assert_allclose(module.linear.weight.detach().numpy().ravel(), expected, rtol=1e-6, atol=1e-6)


class TestGuarantee:
    def test_no_release_is_more_than_e_to_the_epsilon_times_as_likely_with_a_node(self) -> None:
        """The density of the released weights is ∝ exp(-ε‖w - Θ‖/Δ): its ratio, for every node and many releases."""
        graph = bounded_random_graph(TINY, 4, num_nodes=12)
        nodes = np.arange(12)
        with_all = exact_weights(TINY, graph, nodes).numpy()
        rng = np.random.default_rng(1)
        for node in nodes:
            without = exact_weights(TINY, graph, nodes[nodes != node]).numpy()
            for center in (with_all, without):
                for _ in range(50):
                    weights = center + gamma_noise(center.size, TINY.noise_scale, rng).reshape(center.shape)
                    distances = np.linalg.norm(weights - with_all), np.linalg.norm(weights - without)
                    assert abs(distances[0] - distances[1]) / TINY.noise_scale <= TINY.epsilon

    def test_depends_on_the_sampler(self) -> None:
        graph = random_graph(60)
        mp = {sampler: TINY.guarantee(graph, sampler).mp for sampler in (Bernoulli(0.5), Uniform(0.5), Snowball(0.1))}
        assert [each.epsilon for each in mp.values()] == pytest.approx([0.7, 1.4, 0.7 * 12])
        assert all(each.delta == 0 for each in mp.values())
        assert TINY.guarantee(graph, lambda *_: [0]).distance == 60


class TestInPlans:
    def test_brings_its_own_training(self) -> None:
        plan = ShadowPlan(Bernoulli(), model=PrivateSGC(), engine="torch")
        assert plan.training is None
        described = plan.describe(random_graph())
        assert described["training"] == {"name": "bmpaudit.models.private:PrivateSGC.train"}
        assert described["model"]["epsilon"] == 1.0

    def test_needs_the_torch_engine(self) -> None:
        with pytest.raises(
            InputError, match=r"the native engine cannot train PrivateSGC with ε = 1: it needs engine='torch'"
        ):
            ShadowPlan(Bernoulli(), model=PrivateSGC())

    def test_goes_into_a_plan_file_and_back(self, tmp_path: Path) -> None:
        plan = AuditPlan(model={"name": "private-sgc", "epsilon": 2.0, "hops": 2}, engine="torch")
        assert plan.model == PrivateSGC(epsilon=2.0, hops=2)
        text = format_plan(plan, "cora")
        assert "[training]" not in text
        (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
        assert read_plan(tmp_path / "plan.toml").plan == plan

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"epsilon": 0.0}, r"epsilon must be in \[1e-09, 1e\+09\], got epsilon=0.0"),
            ({"epsilon": 1e-10}, r"epsilon must be in \[1e-09, 1e\+09\], got epsilon=1e-10"),
            ({"epsilon": math.nan}, r"epsilon must be in \[1e-09, 1e\+09\], got epsilon=nan"),
            ({"epsilon": math.inf}, r"epsilon must be in \[1e-09, 1e\+09\], got epsilon=inf"),
            ({"hops": 65}, r"hops must be a whole number in \[0, 64\], got hops=65"),
            ({"max_degree": 0}, r"max_degree must be a whole number of at least 1, got max_degree=0"),
            ({"dimensions": 0}, r"dimensions must be a whole number of at least 1, got dimensions=0"),
            ({"regularization": 0.0}, r"regularization must be positive and finite, got regularization=0.0"),
            ({"max_norm": math.inf}, r"max_norm must be positive and finite, got max_norm=inf"),
        ],
    )
    def test_what_cannot_be_is_refused(self, settings: dict[str, float], message: str) -> None:
        with pytest.raises(InputError, match=message):
            PrivateSGC(**settings)  # type: ignore[arg-type]
