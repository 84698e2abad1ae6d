from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bmpaudit import datasets
from bmpaudit.graph.graph import Graph
from bmpaudit.samplers import (
    Snowball,
    Uniform,
    check_memberships,
    draw_memberships,
    prior_probabilities,
)
from bmpaudit.util.errors import InputError
from bmpaudit.util.streams import Purpose


@pytest.fixture(scope="module")
def cora() -> Graph:
    return datasets.load("cora")


class SpiedSnowball(Snowball):
    """Keeps the number of threads of every call of the kernel."""

    threads: list[int] = []  # noqa: RUF012 - a dataclass field would be a setting

    def kernel(self, graph: Graph) -> Any:
        kernel = super().kernel(graph)

        def spy(method: str) -> Any:
            def call(seed: int, purpose: int, first: int, count: int, num_threads: int) -> Any:
                self.threads.append(num_threads)
                return getattr(kernel, method)(seed, purpose, first, count, num_threads)

            return call

        return SimpleNamespace(counts=spy("counts"), memberships=spy("memberships"))


@pytest.mark.parametrize(("num_threads", "expected"), [(1, {1}), (3, {3}), (None, {7})])
def test_the_kernel_gets_the_number_of_threads(
    num_threads: int | None, expected: set[int], cora: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    monkeypatch.setattr(SpiedSnowball, "threads", [])
    sampler = SpiedSnowball()
    memberships = draw_memberships(cora, sampler, 3, seed=0, num_threads=num_threads)
    assert len(SpiedSnowball.threads) == 1
    priors = prior_probabilities(cora, sampler, num_draws=100, num_threads=num_threads)
    assert len(SpiedSnowball.threads) == 3  # the pilot and the other draws
    check_memberships(memberships, cora, sampler, priors, num_references=5, num_threads=num_threads)
    assert len(SpiedSnowball.threads) == 4
    assert set(SpiedSnowball.threads) == expected


def test_prior_draws_are_independent_of_the_training_samples(cora: Graph) -> None:
    drawn = prior_probabilities(cora, Uniform(0.25), num_draws=50, exact=False).prob * 50
    assert not np.allclose(drawn, draw_memberships(cora, Uniform(0.25), 50, seed=0).sum(axis=0))
    assert np.allclose(drawn, draw_memberships(cora, Uniform(0.25), 50, seed=0, purpose=Purpose.PRIOR).sum(axis=0))


def test_counts_do_not_depend_on_threads_or_parts(cora: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[int] = []
    whole = prior_probabilities(cora, Snowball(0.25), num_draws=500, seed=3, num_threads=1)
    monkeypatch.setattr("bmpaudit.samplers.priors._FLAGS_AT_ONCE", 150 * cora.num_nodes)
    parts = prior_probabilities(cora, Snowball(0.25), num_draws=500, seed=3, progress=reports.append, num_threads=3)
    assert np.array_equal(whole.prob, parts.prob)
    assert np.array_equal(whole.pilot_counts, parts.pilot_counts)
    assert reports == [64, 214, 364, 500]
    drawn = draw_memberships(cora, Snowball(0.25), 500, seed=3, purpose=Purpose.PRIOR)
    assert np.allclose(whole.prob * 500, drawn.sum(axis=0))
    assert np.array_equal(whole.pilot_counts, drawn[:64].sum(axis=0))


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_the_number_of_samples_must_be_at_least_one(count: int) -> None:
    graph = datasets.load("demo")
    with pytest.raises(InputError, match=f"num_samples must be a whole number of at least 1, got num_samples={count}"):
        draw_memberships(graph, Uniform(0.5), count, seed=0)
    with pytest.raises(InputError, match=f"num_draws must be a whole number of at least 1, got num_draws={count}"):
        prior_probabilities(graph, Snowball(0.5), num_draws=count)


def test_the_first_sample_must_not_be_negative() -> None:
    with pytest.raises(InputError, match="first must be at least 0, got first=-1"):
        draw_memberships(datasets.load("demo"), Uniform(0.5), 1, seed=0, first=-1)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True])
def test_the_seed_must_be_a_whole_number_in_range(seed: int) -> None:
    with pytest.raises(InputError, match=r"seed must be a whole number in \[0, 2\*\*63\)"):
        draw_memberships(datasets.load("demo"), Uniform(0.5), 1, seed=seed)
    with pytest.raises(InputError, match=r"seed must be a whole number in \[0, 2\*\*63\)"):
        prior_probabilities(datasets.load("demo"), Uniform(0.5), seed=seed)
