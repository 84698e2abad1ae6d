"""The number of threads reaches everything that has threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_audit import leaky_graph, small_plan

from bmpaudit import _native
from bmpaudit.auditing.context import Runtime
from bmpaudit.graph import Graph
from bmpaudit.pipeline.pipeline import audit
from bmpaudit.samplers import Snowball

FUNCTIONS = ("challenge_models", "log_likelihood", "grid_log_likelihood", "leakage_quantiles")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """By kernel, the numbers of threads that it was called with."""
    numbers: dict[str, set[int]] = {}

    def spied(name: str, kernel: Any, place: int) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            number = options["num_threads"] if "num_threads" in options else arguments[place]
            numbers.setdefault(name, set()).add(number)
            return kernel(*arguments, **options)

        return call

    places = {"challenge_models": 9, "log_likelihood": 7, "grid_log_likelihood": 7, "leakage_quantiles": 2}
    for name, place in places.items():
        monkeypatch.setattr(_native, name, spied(name, getattr(_native, name), place))

    class Drawing:
        """A native sampler."""

        def __init__(self, *arguments: Any) -> None:
            self._sampler = snowball(*arguments)

        def memberships(self, *arguments: Any) -> Any:
            numbers.setdefault("memberships", set()).add(arguments[-1])
            return self._sampler.memberships(*arguments)

        def counts(self, *arguments: Any) -> Any:
            numbers.setdefault("counts", set()).add(arguments[-1])
            return self._sampler.counts(*arguments)

    class Training:
        """The native engine."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._engine = engine(*arguments, **options)

        def run(self, *arguments: Any, **options: Any) -> Any:
            numbers.setdefault("training", set()).add(
                options.get("num_threads", arguments[5] if len(arguments) > 5 else 0)
            )
            return self._engine.run(*arguments, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._engine, name)

    snowball, engine = _native.Snowball, _native.ShadowEngine
    monkeypatch.setattr(_native, "Snowball", Drawing)
    monkeypatch.setattr(_native, "ShadowEngine", Training)
    return numbers


@pytest.mark.parametrize("num_threads", [1, 3])
def test_every_kernel_gets_the_number_of_threads(num_threads: int, asked: dict[str, set[int]]) -> None:
    plan = small_plan(sampler=Snowball(0.4), definitions=("bmp", "bmp-r"), rules="weak", prior_draws=1_000, shadows=12)
    audit(leaky_graph(), plan, runtime=Runtime(num_threads=num_threads, quiet=True))
    assert set(asked) == {*FUNCTIONS, "memberships", "counts", "training"}
    # A single sample is drawn first, to find out whether that can be done at all.
    asked["memberships"] -= {1} if num_threads > 1 else set()
    assert all(numbers == {num_threads} for numbers in asked.values())


class Sampling:
    """A sampler in Python that notes from how many threads it is called."""

    threads: set[int] = set()  # noqa: RUF012

    def sample(self, graph: Graph, rng: np.random.Generator) -> np.ndarray:
        import threading

        self.threads.add(threading.get_ident())
        return rng.permutation(graph.num_nodes)[:20]


def test_one_thread_is_one_thread_for_samplers_in_python() -> None:
    audit(
        leaky_graph(),
        small_plan(sampler=Sampling(), prior_draws=100, shadows=10, rules="weak", definitions="mp"),
        runtime=Runtime(num_threads=1, quiet=True),
    )
    assert len(Sampling.threads) == 1
