"""Pictures drawn by helper processes are those drawn here, whatever happens to a helper."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import NoReturn

import numpy as np
import pytest

from bmpaudit.report.drawing import Drawing, Picture, picture_formats
from bmpaudit.util.errors import InputError

RATES = np.linspace(0, 1, 20)
PICTURES: Mapping[str, Picture] = {
    "roc": Picture("roc", {"curves": {"a $x$": (RATES, np.sqrt(RATES))}}),
    "permutation_test": Picture("permutation_test", {"statistic": 0.9, "null_statistics": np.linspace(0.4, 0.6, 9)}),
}


class Unsendable(str):
    """Cannot be pickled."""

    def __reduce__(self) -> NoReturn:
        raise pickle.PicklingError("never")


class Unreadable(str):
    """Can be pickled but not read by another process, as if it were of a script of the user's."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return import_module, ("only_known_here",)


def all_drawn(num_helpers: int) -> tuple[dict[str, bytes], int]:
    """Files of the pictures, and how often `advance` was called."""
    num_done = 0

    def advance() -> None:
        nonlocal num_done
        num_done += 1

    with Drawing(("png", "svg"), num_helpers) as drawing:
        drawing.start()
        name = next(iter(PICTURES))
        drawing.draw({name: PICTURES[name]})
        drawing.draw(PICTURES)  # the first is not drawn twice
        for future in drawing._sent:
            future.exception(timeout=60)  # the helpers draw what they can, with nobody here to help
        return drawing.finish(advance), num_done


def test_helpers_draw_the_same_bytes() -> None:
    alone, num_alone = all_drawn(0)
    helped, num_helped = all_drawn(2)
    assert num_alone == num_helped == 2
    assert list(alone) == [f"{name}.{suffix}" for name in ("permutation_test", "roc") for suffix in ("png", "svg")]
    assert alone == helped


@pytest.mark.parametrize("kind", [Unsendable, Unreadable])
def test_what_cannot_be_sent_is_drawn_here(kind: type[str]) -> None:
    curves = {kind(label): curve for label, curve in PICTURES["roc"].values["curves"].items()}
    with Drawing(("svg",), 1) as drawing:
        drawing.start()
        drawing.draw({"here": Picture("roc", {"curves": curves}), **PICTURES})
        drawn = [future for future, name in drawing._sent.items() if name != "here"]
        assert [future.exception(timeout=60) for future in drawn] == [None, None]  # whatever became of the first
        files = drawing.finish()
    assert files["here.svg"] == files["roc.svg"]


@pytest.mark.parametrize("number", [9, 15])
def test_what_a_dead_helper_had_is_drawn_here(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmpaudit.report.drawing._import_all", partial(signal.raise_signal, number))
    assert set(all_drawn(1)[0]) == set(all_drawn(0)[0])


def test_if_no_process_can_be_started_everything_is_drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError("too many processes")

    monkeypatch.setattr("bmpaudit.workers.Pool", fail)
    assert len(all_drawn(1)[0]) == 4


def test_an_error_of_a_picture_is_told() -> None:
    wrong = {"roc": Picture("regions", {"regions": {}})}
    with Drawing(("png",), 1) as drawing:
        drawing.start()
        drawing.draw(wrong)
        with pytest.raises(InputError, match="regions must be at least one"):
            drawing.finish()


def test_leaving_early_ends_the_helpers() -> None:
    with Drawing(("png",), 2) as drawing:
        drawing.start()
        drawing.draw(PICTURES)
    assert multiprocessing.active_children() == []


def test_formats_are_those_asked_for() -> None:
    assert picture_formats("PDF,png") == ("png", "pdf")
    assert picture_formats("none") == ()
    for wrong in ("jpg", "", "png,none", "png;pdf"):
        with pytest.raises(InputError, match=r"pictures must be png, pdf, svg \(several separated by commas\) or none"):
            picture_formats(wrong)
