"""DPMLP and DPGCN: their steps against a slow reference, which rows a node changes, and the guarantee."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from helpers import random_graph

from bmpaudit.graph.graph import Graph
from bmpaudit.models.private import DPGCN, DPMLP, DPModel
from bmpaudit.models.torch_modules import DPModule
from bmpaudit.plan import AuditPlan, format_plan, read_plan
from bmpaudit.privacy import ApproximateMP
from bmpaudit.releases import FullEdges
from bmpaudit.samplers import Bernoulli, Uniform
from bmpaudit.shadow import ShadowPlan, train_shadows
from bmpaudit.util.errors import InputError

torch.set_num_threads(1)
QUICK: dict[str, Any] = {"noise_multiplier": 0.5, "steps": 4, "sampling_rate": 0.4, "hidden": 3, "dimensions": 5}
BOTH = [DPMLP(**QUICK), DPGCN(**QUICK, max_degree=2)]


def trained(model: DPModel, graph: Graph, seed: int = 3) -> DPModule:
    torch.manual_seed(seed)
    module: DPModule = model.torch_module(graph.num_features, graph.num_classes)
    model.train(module, graph.to_pyg(), seed)
    return module


def slow_training(model: DPModel, graph: Graph, seed: int) -> list[torch.Tensor]:
    """DP-SGD row by row: clipped, summed, with noise, and into Adam."""
    torch.manual_seed(seed)
    module = model.torch_module(graph.num_features, graph.num_classes)
    data = graph.to_pyg()
    rows = module.rows(data.x, data.edge_index)
    draws = torch.Generator().manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]))
    weights = list(module.head.parameters())
    optimizer = torch.optim.Adam(weights, lr=model.step_size)
    for _ in range(model.steps):
        is_drawn = torch.rand(len(rows), generator=draws) < model.sampling_rate
        sums = [torch.zeros_like(weight) for weight in weights]
        for node in np.flatnonzero(is_drawn):
            loss = F.cross_entropy(module.head(rows[node : node + 1]), data.y[node : node + 1])
            gradients = torch.autograd.grad(loss, weights)
            length = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
            for total, gradient in zip(sums, gradients, strict=True):
                total += gradient * min(1.0, model.clip / length)
        for weight, total in zip(weights, sums, strict=True):
            noise = torch.normal(0.0, model.noise * model.clip, weight.shape, generator=draws)
            weight.grad = total + noise
        optimizer.step()
    return weights


class TestTraining:
    @pytest.mark.parametrize("model", BOTH)
    def test_is_dp_sgd(self, model: DPModel) -> None:
        graph = model.training_graph(random_graph(30, seed=1))
        expected = slow_training(model, graph, 3)
        for weight, other in zip(trained(model, graph).head.parameters(), expected, strict=True):
            np.testing.assert_allclose(weight.detach().numpy(), other.detach().numpy(), atol=2e-5)

    @pytest.mark.parametrize("model", BOTH)
    def test_depends_on_the_seed_alone(self, model: DPModel) -> None:
        graph = model.training_graph(random_graph(30, seed=1))
        weights = [trained(model, graph, seed).head[0].weight.detach().numpy() for seed in (3, 3, 4)]
        assert weights[0].tobytes() == weights[1].tobytes()
        assert not np.array_equal(weights[0], weights[2])

    def test_goes_on_when_a_batch_is_empty(self) -> None:
        graph = random_graph(4, seed=1)
        module = trained(DPMLP(**QUICK | {"sampling_rate": 1e-6}), graph)
        assert torch.isfinite(module.head[0].weight).all()

    def test_learns_where_noise_allows(self) -> None:
        rng = np.random.default_rng(0)
        labels = np.arange(600) % 3
        graph = Graph.from_edges(
            np.zeros((0, 2), dtype=np.int64), np.eye(3)[labels] + rng.normal(0, 0.3, (600, 3)), labels
        )
        data = graph.to_pyg()
        module = trained(DPMLP(epsilon=4.0, delta=1e-5), graph)
        assert float((module(data.x, data.edge_index).argmax(1) == data.y).float().mean()) > 0.9


class TestRows:
    def test_of_a_gcn_are_means_of_neighbours_of_length_1(self) -> None:
        graph = random_graph(40, seed=2)
        module = DPGCN(**QUICK | {"dimensions": 999}).torch_module(graph.num_features, graph.num_classes)
        features = graph.dense_features.astype(float)
        features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
        means = features + graph.adjacency.toarray().astype(float) @ features
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        data = graph.to_pyg()
        np.testing.assert_allclose(module.rows(data.x, data.edge_index).numpy(), means, atol=1e-6)

    @pytest.mark.parametrize("model", BOTH)
    def test_no_node_changes_more_of_them_than_are_accounted_for(self, model: DPModel) -> None:
        most = 0
        for seed in range(3):
            graph = model.training_graph(random_graph(24, kind="dense", seed=seed))
            module = model.torch_module(graph.num_features, graph.num_classes)
            data = graph.to_pyg()
            nodes = np.flatnonzero(np.random.default_rng(seed).random(24) < 0.8)

            def rows(kept: np.ndarray, data: Any = data, module: Any = module) -> torch.Tensor:
                sample = data.subgraph(torch.from_numpy(kept))
                found: torch.Tensor = module.rows(sample.x, sample.edge_index)
                return found

            with_all = rows(nodes)
            for node in nodes:
                changed = (with_all[nodes != node] != rows(nodes[nodes != node])).any(dim=1)
                most = max(most, int(changed.sum()))
        assert most == model.rows_changed

    def test_a_graph_beyond_the_degree_bound_is_refused(self) -> None:
        star = Graph.from_edges([(0, leaf) for leaf in range(1, 5)], np.eye(5), [0, 1, 0, 1, 0])
        with pytest.raises(InputError, match=r"must have at most max_degree=2 neighbours, got 4"):
            trained(BOTH[1], star)
        assert trained(BOTH[0], star) is not None, "a perceptron has no neighbours"


class TestGuarantee:
    def test_is_what_was_asked_for_or_what_the_noise_gives(self) -> None:
        graph = random_graph(20)
        for model in (DPMLP(steps=20), DPGCN(steps=20)):
            assert model.guaranteed_epsilon == 8.0
            assert model.accounting.epsilon(model.noise, model.delta) <= 8.0
            given = type(model)(noise_multiplier=model.noise, steps=20)
            assert 7.8 < given.guaranteed_epsilon <= 8.0
            assert given.guarantee(graph, Bernoulli(0.5)).mp == ApproximateMP(given.guaranteed_epsilon, 1e-6)
        assert DPGCN(steps=20).noise > 2 * DPMLP(steps=20).noise, "it pays for the neighbours"

    def test_doubles_where_samples_have_a_fixed_size(self) -> None:
        guarantee = DPMLP(epsilon=1.0).guarantee(random_graph(20), Uniform(0.5))
        assert guarantee.mechanism == "DPMLP"
        assert guarantee.mp.epsilon == 2.0
        assert guarantee.mp.delta == pytest.approx(1e-6 * (1 + math.e))


class TestInPlans:
    @pytest.mark.parametrize(
        ("name", "model"), [("dp-mlp", DPMLP(epsilon=2.0, steps=7)), ("dp-gcn", DPGCN(epsilon=2.0, steps=7))]
    )
    def test_goes_into_a_plan_file_and_back(self, name: str, model: DPModel, tmp_path: Path) -> None:
        plan = AuditPlan(model={"name": name, "epsilon": 2.0, "steps": 7}, engine="torch")
        assert plan.model == model
        (tmp_path / "plan.toml").write_text(format_plan(plan, "cora"), encoding="utf-8")
        assert read_plan(tmp_path / "plan.toml").plan == plan

    def test_trains_shadow_models(self, tmp_path: Path) -> None:
        plan = ShadowPlan(Bernoulli(0.5), BOTH[1], queries=(FullEdges(),), engine="torch")
        runs = train_shadows(random_graph(30), plan, 3, tmp_path)
        assert np.isfinite(runs.statistics["full_clean"]).all()

    def test_there_is_no_graph_without_features(self) -> None:
        with pytest.raises(InputError, match=r"features must have at least one column, got 0"):
            Graph.from_edges([(0, 1), (1, 2)], np.zeros((3, 0)), [0, 1, 0])

    def test_an_epsilon_that_no_noise_gives_is_refused(self, tmp_path: Path) -> None:
        plan = ShadowPlan(Bernoulli(0.5), DPMLP(epsilon=1e-6, delta=1e-12, sampling_rate=1.0), engine="torch")
        with pytest.raises(InputError, match=r"no noise_multiplier up to 10,000 gives epsilon=1e-06 with delta=1e-12"):
            train_shadows(random_graph(20), plan, 1, tmp_path)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"epsilon": 0.0}, r"epsilon must be positive and finite, got epsilon=0.0"),
            ({"epsilon": math.nan}, r"epsilon must be positive and finite, got epsilon=nan"),
            ({"epsilon": 1.0, "noise_multiplier": 1.0}, r"one of epsilon and noise_multiplier sets the noise"),
            ({"noise_multiplier": 0.0}, r"noise_multiplier must be in \[0.3, 10000\], got 0.0"),
            ({"delta": 0.0}, r"delta must be in \[1e-12, 1\), got delta=0.0"),
            ({"sampling_rate": 1.5}, r"sampling_rate must be in \(0, 1\], got sampling_rate=1.5"),
            ({"clip": 0.0}, r"clip must be positive and finite, got clip=0.0"),
            ({"steps": 0}, r"steps must be a whole number of at least 1, got steps=0"),
            ({"max_degree": 0}, r"max_degree must be a whole number of at least 1, got max_degree=0"),
            ({"max_degree": 201}, r"max_degree must be at most 200, got max_degree=201"),
        ],
    )
    def test_settings_that_cannot_be_are_refused(self, settings: dict[str, float], message: str) -> None:
        with pytest.raises(InputError, match=message):
            DPGCN(**settings)  # type: ignore[arg-type]
