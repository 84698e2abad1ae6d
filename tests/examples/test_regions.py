import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from matplotlib import image

EXAMPLE = Path(__file__).parents[2] / "examples" / "regions.py"


@pytest.fixture(scope="module")
def regions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("regions", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_panels_are_those_of_figure_1(regions: ModuleType) -> None:
    parameters = [(panel.prior_odds, panel.epsilon_left, panel.epsilon_right) for panel in regions.PANELS.values()]
    assert parameters == [(1, 0.5, 0.5), (4, 0.5, 2), (0.25, 2, math.inf), (4, math.inf, 2)]


def test_draws_something_into_the_file(
    regions: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figure.png"
    monkeypatch.setattr("sys.argv", ["regions.py", str(path)])
    regions.main()
    assert str(path) in capsys.readouterr().out
    pixels = np.asarray(image.imread(path))[..., :3]
    fill = np.array([0xDB, 0xE6, 0xF7]) / 255
    # The four regions have 1.59 of the 4 unit squares, and these most of the page.
    assert 0.15 < np.mean(np.abs(pixels - fill).max(axis=-1) < 0.01) < 0.4
