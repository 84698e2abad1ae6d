"""Large answers come by way of files from workers that see them, and in a message from others."""

from __future__ import annotations

import os
import pickle
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
from bmpaudit.io.codec import to_arrays
from bmpaudit.proof import expose
from bmpaudit.util import matrices
from bmpaudit.workers import SMALLEST_PART, Answer, crew_of, executor_at, run_task


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
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that answers were read from."""
    noticed: list[str] = []
    fromfile = np.fromfile

    def read(path: str, dtype: Any) -> Any:
        noticed.append(path)
        return fromfile(path, dtype)

    monkeypatch.setattr(np, "fromfile", read)
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


def test_large_arrays_come_in_files_that_then_go(processes: Executor, temporary: Path, read: list[str]) -> None:
    for number, answer in crew_of(processes).run(many_arrays, 600, deque(range(5))):
        assert_right(answer, 600, number)
    assert len(read) == 5 * 3  # every other column is one of the whole
    assert not any(Path(path).exists() for path in read)
    (folder,) = temporary.iterdir()
    assert list(folder.iterdir()) == []


def test_small_answers_come_in_a_message(processes: Executor, read: list[str]) -> None:
    ((_, answer),) = crew_of(processes).run(np.add, np.arange(3), deque([1]))
    assert answer.tolist() == [1, 2, 3]
    assert read == []


def test_answers_that_nobody_takes_go_too(processes: Executor) -> None:
    crew = crew_of(processes)
    answered: Any = crew.run(many_arrays, 600, deque(range(5)))
    next(answered)
    (inbox,) = [path for path in Path(crew.folder.path).iterdir() if path.is_dir()]
    answered.close()
    assert not inbox.exists()


def test_threads_of_this_process_need_no_files(read: list[str]) -> None:
    with ThreadPoolExecutor(2) as threads:
        for number, answer in crew_of(threads).run(many_arrays, 600, deque(range(3))):
            assert_right(answer, 600, number)
    assert read == []


def answered(folder: Path, reader: int = 0) -> Any:
    return run_task(many_arrays, "", (pickle.dumps(600), {}), str(folder), reader, (7,))


def test_a_worker_that_sees_no_inbox_answers_in_a_message(tmp_path: Path) -> None:
    """Also if it had been there: another worker has given that answer long ago."""
    made = answered(tmp_path / "elsewhere")
    assert isinstance(made, Answer)
    assert len(made.content) > 600 * 600 * 8
    assert_right(made.read(), 600, 7)
    assert_right(answered(tmp_path, os.getpid()), 600, 7)


def test_a_worker_that_cannot_write_answers_in_a_message(tmp_path: Path) -> None:
    made = answered(tmp_path)
    assert len(made.content) < SMALLEST_PART
    assert_right(made.read(), 600, 7)
    assert list(tmp_path.iterdir()) == []
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):  # as root may
        (tmp_path / "file").touch()
        made = answered(tmp_path / "file")
    else:
        made = answered(tmp_path)
    assert_right(made.read(), 600, 7)


@pytest.mark.parametrize("kind", ["processes", "local"])
def test_attack_and_exposure_with_large_answers(
    kind: str, processes: Executor, read: list[str], monkeypatch: pytest.MonkeyPatch
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
        with executor_at("local:1") as executor:
            assert found(executor) == expected
    assert len(read) >= 2
