"""Pictures as files and in notebooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from figure_values import (
    FLAGGED,
    HIGH,
    LOW,
    MEDIAN,
    PRIOR,
)
from matplotlib import image
from matplotlib.text import Text

from bmpaudit.privacy import Region
from bmpaudit.report import figures


def test_no_pyplot_and_settings_of_the_user_stay(tmp_path: Path) -> None:
    program = """
import sys, matplotlib
matplotlib.rcParams["font.size"] = 31.0
from bmpaudit.privacy import Region
from bmpaudit.proof import ExposureCurve, Reliability
from bmpaudit.proof.exposure import Band
from bmpaudit.report import figures
figure = figures.regions({"a": Region(1.0, 1.0, 1.0)})
figures.save_figure(figure, sys.argv[1])
print(matplotlib.rcParams["font.size"], figure.axes[0].xaxis.label.get_size(), "matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "figure")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["31.0", "9.0", "False"]


def test_a_notebook_can_display_it_without_pyplot(tmp_path: Path) -> None:
    figure = figures.regions({"a": Region(1.0, 1.0, 1.0)})
    with mpl.rc_context({"font.size": 31.0}):
        picture = figure._repr_png_()  # type: ignore[attr-defined]
    (tmp_path / "figure.png").write_bytes(picture)
    assert image.imread(tmp_path / "figure.png").shape[1] == pytest.approx(6.9 * 150, abs=1)
    assert picture == figure._repr_png_()  # type: ignore[attr-defined]


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("v1.0", "b"):
        figures.save_figure(figures.prior_against_epsilon(PRIOR, MEDIAN, LOW, HIGH, FLAGGED), tmp_path / name)
    content = (tmp_path / "v1.0.pdf").read_bytes()
    assert content == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "v1.0.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert b"CreationDate" not in content
    assert b"/Type3" not in content
    assert image.imread(tmp_path / "b.png").shape[1] == pytest.approx(3.35 * 300, abs=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.pdf", "b.png", "v1.0.pdf", "v1.0.png"]


def test_a_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = figures.permutation_test(0.5, np.array([0.1, 0.2]))
    figures.save_figure(figure, tmp_path / "a")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    save = figure.savefig

    def fail(file: Any, **options: Any) -> None:
        save(file, **options)
        if options["format"] == "png":
            raise OSError("disk full")

    figure.axes[0].add_artist(Text(0.3, 0.5, "changed"))
    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        figures.save_figure(figure, tmp_path / "a")
    assert len(before) == 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
