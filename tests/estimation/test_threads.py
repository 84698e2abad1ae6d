"""The number of threads that a user asks for reaches every native function of the estimator."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from bmpaudit import _native
from bmpaudit.attack.counts import ErrorCounts
from bmpaudit.estimation import StrengthPrior, estimate, node_leakage
from bmpaudit.util.errors import InputError

FUNCTIONS = {
    "log_likelihood": 7,
    "grid_log_likelihood": 7,
    "node_log_likelihood": 5,
    "leakage_quantiles": 2,
}  # where num_threads stands
NO_LEAK = ErrorCounts.from_arrays([300] * 3, [100] * 3, [150, 148, 152], [50, 51, 49], [0.25] * 3)
COUNTS = ErrorCounts.from_arrays([30, 20], [20, 20], [3, 0], [4, 20], [0.4, 0.5])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Names of native functions and the numbers of threads they are called with."""
    seen: list[tuple[str, int]] = []

    def spy(name: str, original: Callable[..., Any], place: int | None) -> Callable[..., Any]:
        def function(*args: Any, **named: Any) -> Any:
            seen.append((name, named["num_threads"] if place is None else args[place]))
            return original(*args, **named)

        return function

    for name, place in {**FUNCTIONS, "run_mhaar": None}.items():
        monkeypatch.setattr(_native, name, spy(name, getattr(_native, name), place))
    return seen


WORK: list[tuple[str, Callable[[int | None], object]]] = [
    ("log_likelihood", lambda threads: estimate(COUNTS, "mp", num_threads=threads)),
    ("grid_log_likelihood", lambda threads: estimate(COUNTS.take([0]), "bmp", num_threads=threads)),
    ("log_likelihood", lambda threads: estimate(NO_LEAK, "bmp", num_threads=threads)),
    ("log_likelihood", lambda threads: estimate(COUNTS.take([0]), "bmp-r", strength=0.4, num_threads=threads)),
    (
        "log_likelihood",
        lambda threads: estimate(COUNTS.take([0]), "mp", strength=StrengthPrior(2, 2), num_threads=threads),
    ),
    ("run_mhaar", lambda threads: estimate(COUNTS, "bmp", method="mhaar", num_iterations=50, num_threads=threads)),
    ("node_log_likelihood", lambda threads: estimate(COUNTS, "bmp-r", num_threads=threads).influence()),
    ("leakage_quantiles", lambda threads: node_leakage(COUNTS, num_threads=threads)),
]


@pytest.mark.parametrize(("function", "work"), WORK)
def test_the_number_of_threads_is_passed_on(
    calls: list[tuple[str, int]], function: str, work: Callable[[int | None], object]
) -> None:
    work(3)
    assert function in {name for name, _ in calls}
    assert {threads for _, threads in calls} == {3}
    calls.clear()
    work(None)
    assert {threads for _, threads in calls} == {os.cpu_count() or 1}


@pytest.mark.parametrize("work", [work for _, work in WORK])
@pytest.mark.parametrize("num_threads", [0, -1, 1.5])
def test_a_wrong_number_is_refused(work: Callable[[Any], object], num_threads: Any) -> None:
    with pytest.raises(
        InputError, match=f"num_threads must be a whole number of at least 1, got num_threads={num_threads}"
    ):
        work(num_threads)
