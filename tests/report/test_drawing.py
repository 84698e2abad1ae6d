"""Pictures drawn by helper processes are those drawn here, whatever happens to a helper."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest

from bmpaudit.errors import InputError
from bmpaudit.report import figures
from bmpaudit.report.drawing import Drawing, Picture
from bmpaudit.report.picture_formats import picture_formats

RATES = np.linspace(0, 1, 20)
PICTURES: Mapping[str, Picture] = {
    "roc": Picture("roc", {"curves": {"a $x$": (RATES, np.sqrt(RATES))}}),
    "permutation_test": Picture("permutation_test", {"statistic": 0.9, "null_statistics": np.linspace(0.4, 0.6, 9)}),
}


def all_drawn(num_helpers: int) -> tuple[dict[str, bytes], int]:
    """Files of the pictures and of one that only this process can draw, and how often `advance` was called."""
    here = partial(figures.permutation_test, 0.1, [0.2, 0.3])
    num_done = 0

    def advance() -> None:
        nonlocal num_done
        num_done += 1

    with Drawing({**PICTURES, "here": here}, ("png", "svg"), num_helpers, advance) as started:
        return started.finish(), num_done


def test_helpers_draw_the_same_bytes() -> None:
    alone, num_alone = all_drawn(0)
    helped, num_helped = all_drawn(2)
    assert num_alone == num_helped == 3
    assert list(alone) == [
        f"{name}.{suffix}" for name in ("here", "permutation_test", "roc") for suffix in ("png", "svg")
    ]
    assert alone == helped


def test_helpers_take_pictures_while_this_process_is_busy() -> None:
    with Drawing(PICTURES, ("png",), 1, lambda: None) as started:
        for helper in started._helpers:  # as if this process had enough to do
            helper.result()
        assert not started._anywhere
        assert set(started.finish()) == {"roc.png", "permutation_test.png"}


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "print('no pickle')", "import os; os.kill(os.getpid(), 9)"])
def test_what_a_dead_helper_had_is_drawn_here(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **how: start([*command[:2], program], **how))
    assert set(all_drawn(1)[0]) == set(all_drawn(0)[0])


def test_without_an_interpreter_everything_is_drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert len(all_drawn(1)[0]) == 6


def test_an_error_of_a_picture_is_told() -> None:
    wrong = {"roc": Picture("roc", {"curves": {}})}
    with (
        pytest.raises(InputError, match="curves must be at least one"),
        Drawing(wrong, ("png",), 1, lambda: None) as started,
    ):
        started.finish()


def test_leaving_early_ends_the_helpers() -> None:
    with pytest.raises(KeyboardInterrupt), Drawing(PICTURES, ("png",), 1, lambda: None) as started:
        raise KeyboardInterrupt
    assert all(process.poll() is not None for process in started._processes)


def test_a_helper_imports_little() -> None:
    program = "import sys; import bmpaudit.report.figures; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"scipy", "pandas", "zarr", "bmpaudit.proof", "bmpaudit.estimation"}.isdisjoint(done.stdout.split())


def test_formats_are_those_asked_for() -> None:
    assert picture_formats("PDF,png") == ("png", "pdf")
    assert picture_formats("none") == ()
    for wrong in ("jpg", "", "png,none", "png;pdf"):
        with pytest.raises(InputError, match=r"pictures must be png, pdf, svg \(several separated by commas\) or none"):
            picture_formats(wrong)
