"""Large answers come by way of files from workers that see them, and in a message from others."""

from __future__ import annotations

import errno
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmpaudit.attack import Evidence, Gaussian, challenge
from bmpaudit.attack.rules import Strong
from bmpaudit.proof import expose
from bmpaudit.proof.flat_arrays import to_arrays
from bmpaudit.util import matrices
from bmpaudit.workers import SMALLEST_PART, Filed, Inbox, call_and_file, crew_of, dask_executor, new_inbox


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process puts its temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Filed]:
    """The answers that were read from files."""
    noticed: list[Filed] = []
    original = Filed.read

    def read(filed: Filed) -> Any:
        noticed.append(filed)
        return original(filed)

    monkeypatch.setattr(Filed, "read", read)
    return noticed


def many_arrays(size: int, number: int) -> dict[str, Any]:
    large = np.random.default_rng(number).random((size, size))
    return {
        "whole": large,
        "odd": np.arange(2 * SMALLEST_PART + 3, dtype=np.uint8),
        "by columns": np.asfortranarray(large),
        "every other": large[:, ::2],
        "small": large[0],
        "number": number,
    }


def assert_right(answer: dict[str, Any], size: int, number: int) -> None:
    for name, expected in many_arrays(size, number).items():
        np.testing.assert_array_equal(answer[name], expected)
        if name != "number":
            assert answer[name].dtype == expected.dtype
            assert answer[name].flags.aligned


def test_large_arrays_come_in_files_that_then_go(processes: Executor, temporary: Path, read: list[Filed]) -> None:
    crew = crew_of(processes)
    for number, answer in crew.run(many_arrays, 600, deque(range(5))):
        assert_right(answer, 600, number)
        assert not Path(read[-1].path).exists()
        assert len(read[-1].content) < SMALLEST_PART + 600 * 300 * 8  # what does not lie together is in the message
    assert len(read) == 5
    assert list(temporary.iterdir()) == []


def test_small_answers_come_in_a_message(processes: Executor, read: list[Filed]) -> None:
    ((_, answer),) = crew_of(processes).run(np.add, np.arange(3), deque([1]))
    assert answer.tolist() == [1, 2, 3]
    assert read == []


def test_answers_that_nobody_takes_go_too(processes: Executor, temporary: Path) -> None:
    answered: Any = crew_of(processes).run(many_arrays, 600, deque(range(5)))
    next(answered)
    (inbox,) = [path for path in temporary.iterdir() if path.is_dir()]
    answered.close()
    assert not inbox.exists()


def test_threads_of_this_process_need_no_files(read: list[Filed]) -> None:
    with ThreadPoolExecutor(2) as threads:
        for number, answer in crew_of(threads).run(many_arrays, 600, deque(range(3))):
            assert_right(answer, 600, number)
    assert read == []


def test_a_worker_that_sees_no_inbox_answers_in_a_message(tmp_path: Path) -> None:
    assert_right(call_and_file(600, many_arrays, Inbox(str(tmp_path / "elsewhere"), 0), 7), 600, 7)


def test_a_worker_that_cannot_write_answers_in_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(call_and_file(600, many_arrays, Inbox(str(tmp_path), 0), 7), Filed)
    (before,) = tmp_path.iterdir()
    fdopen = os.fdopen

    class Full:
        def __init__(self, handle: int, *options: Any, **named: Any) -> None:
            self.file = fdopen(handle, *options, **named)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def seek(self, place: int) -> None:
            self.file.seek(place)

        def write(self, content: memoryview) -> int:
            if self.file.tell():
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self.file.write(content[:1_000]))

    monkeypatch.setattr(os, "fdopen", Full)
    assert_right(call_and_file(600, many_arrays, Inbox(str(tmp_path), 0), 7), 600, 7)
    assert list(tmp_path.iterdir()) == [before]


def test_an_inbox_that_a_late_worker_still_writes_to() -> None:
    """Its answer is one that was given by another worker long ago."""
    with new_inbox() as inbox:
        pass
    assert_right(call_and_file(600, many_arrays, inbox._replace(reader=0), 1), 600, 1)
    assert not Path(inbox.folder).exists()


@pytest.mark.parametrize("kind", ["processes", "dask"])
def test_attack_and_exposure_with_large_answers(
    kind: str, processes: Executor, read: list[Filed], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    members = rng.random((100, 8_000)) < 0.4
    models = Evidence({"full": rng.normal(size=members.shape) + members}, members, np.arange(100))
    monkeypatch.setattr(matrices, "MAX_BLOCK", members.size * 3 // 4)

    def found(executor: Executor | None) -> dict[str, bytes]:
        prior = np.full(8_000, 0.4)
        made = challenge(Gaussian(), models, prior, {"strong": Strong()}, with_scores=True, executor=executor)
        assert made.scores is not None
        exposed = to_arrays(expose(Gaussian(), models, prior, executor=executor))
        arrays = {**exposed, "scores": made.scores.log_likelihood_ratio, **made.errors["strong"]._asdict()}
        return {name: np.asarray(values).tobytes() for name, values in arrays.items()}

    expected = found(None)
    assert read == []
    if kind == "processes":
        assert found(processes) == expected
    else:
        with dask_executor("local:1") as executor:
            assert found(executor) == expected
    assert len(read) >= 2
