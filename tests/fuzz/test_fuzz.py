"""Damaged and hostile files of every kind end in bmpaudit's own errors, never in a traceback.

`make fuzz` does the same for minutes, with the help of a coverage-guided fuzzer.
"""

from __future__ import annotations

import random
from pathlib import Path

import hypothesis.strategies as st
import pytest
import targets
from hypothesis import HealthCheck, given, settings
from targets import TARGETS, attempt

EXAMPLES = {"audit folders": 40, "posteriors": 100}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.filterwarnings("ignore::bmpaudit.GraphCleanedWarning")
def test_whole_files_are_read(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "REFUSALS", ())
    TARGETS[kind].make(tmp_path)
    TARGETS[kind].read(tmp_path)


@pytest.mark.parametrize("kind", TARGETS)
def test_only_our_own_errors_come_out(kind: str, folders: Path) -> None:
    target, whole = TARGETS[kind], folders / kind
    whole.mkdir()
    target.make(whole)

    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=EXAMPLES.get(kind, 150), suppress_health_check=list(HealthCheck))
    def damage(seed: int) -> None:
        attempt(target, whole, folders / "scratch", random.Random(seed))

    damage()
