"""More and more shadow models, until ε is known well enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audit import small_subject

from bmpaudit import ErrorCounts, InputError
from bmpaudit.auditing import until_width
from bmpaudit.auditing.steps import Subject, run_audit, train_step
from bmpaudit.auditing.until_width import WidthReached, run_until_width
from bmpaudit.estimation import estimate
from bmpaudit.plan import Runtime, read_plan
from bmpaudit.shadow import QueryView, Training

QUIET = Runtime()
# Hardly trained: no node is told apart without error.
WEAK: dict[str, Any] = {
    "views": (QueryView(),),
    "decisions": ("weak",),
    "definitions": ("mp",),
    "training": Training(epochs=2, learning_rate=0.01),
}


def run(subject: Subject, width: float, max_shadows: int = 90) -> WidthReached:
    return run_until_width(subject, width, max_shadows, QUIET, pictures=False)


def test_rates_with_endless_models() -> None:
    """Both kinds of error never made: so it stays. One kind never made: it may just be rare."""
    counts = ErrorCounts.from_arrays(
        num_out=[20, 20, 20, 20],
        num_in=10,
        false_positives=[0, 20, 0, 5],
        false_negatives=[0, 10, 10, 5],
        prior_prob=0.4,
    )
    scaled = until_width._scaled(counts)
    assert scaled.num_out.tolist() == [200_000] * 4
    np.testing.assert_allclose(scaled.false_positives / scaled.num_out, [0, 1, 0.5 / 21, 5.5 / 21], atol=1e-5)
    np.testing.assert_allclose(scaled.false_negatives / scaled.num_in, [0, 1, 10.5 / 11, 0.5], atol=1e-5)


def test_a_wide_target_is_reached_at_once(tmp_path: Path) -> None:
    subject = small_subject(tmp_path, **WEAK)
    reached = run(subject, 50.0)
    assert reached.is_reached
    assert reached.num_shadows == 40
    assert reached.message == f"the 90 % interval of mp is {reached.width:.2f} wide with 40 models"
    assert reached.summary == run_audit(subject, QUIET, pictures=False)
    p5, p95 = (reached.summary["headline"][0][name] for name in ("p5", "p95"))
    assert reached.width == pytest.approx(p95 - p5, abs=1e-6)


def narrower_with_more(subject: Subject, *_: object) -> tuple[float, float]:
    """As the interval would be if it shrank with the root of the number of models."""
    return 10 / np.sqrt(train_step(subject, QUIET).num_models), 0.1


def test_models_are_added_until_it_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(until_width, "_widths", narrower_with_more)
    reached = run(small_subject(tmp_path, **WEAK), 1.2)
    assert (reached.is_reached, reached.num_shadows) == (True, 90)  # 40, 60, 90
    assert reached.message == "the 90 % interval of mp is 1.05 wide with 90 models"
    assert read_plan(tmp_path / "plan.toml").plan.num_shadows == 90
    assert reached.summary["shadow_models"]["trained"] == 90
    # Again: what is there is enough.
    assert run(small_subject(tmp_path, **WEAK), 1.2).summary == reached.summary


def test_the_limit_is_kept_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(until_width, "_widths", narrower_with_more)
    reached = run(small_subject(tmp_path, **WEAK), 1.2, max_shadows=50)
    assert (reached.is_reached, reached.num_shadows) == (False, 50)
    assert reached.message == (
        "stopped at the limit of 50 models: with 50 the 90 % interval of mp is 1.41 wide, not 1.2"
    )
    assert reached.summary["shadow_models"]["trained"] == 50


def test_it_stops_at_once_where_endless_models_would_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    separated = ErrorCounts.from_arrays(
        num_out=[24] * 48, num_in=16, false_positives=0, false_negatives=0, prior_prob=0.4
    )
    monkeypatch.setattr(until_width, "node_mia", lambda *_, **__: separated)
    reached = run(small_subject(tmp_path, **WEAK), 0.5)
    assert not reached.is_reached
    assert reached.num_shadows == 40
    assert reached.message == (
        f"stopped: at the present error rates the 90 % interval of mp would be {reached.endless_width:.2f} wide even "
        f"with endless models (now {reached.width:.2f}), not 0.5: what is left is the prior's"
    )
    scaled = replace(separated, num_out=separated.num_out * 10_000, num_in=separated.num_in * 10_000)
    assert reached.endless_width == estimate(scaled, "mp").interval(0.9).width > 0.5


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan])
def test_impossible_widths(width: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="until_width must be positive, got until_width="):
        run(small_subject(tmp_path, **WEAK), width)
    with pytest.raises(InputError, match="max_shadows must be"):
        run(small_subject(tmp_path, **WEAK), 1.0, max_shadows=0)
    assert list(tmp_path.iterdir()) == []
